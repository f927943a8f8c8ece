// infer.cpp - inferences that many operators share.
#include "ops/frame/infer.h"

#include <algorithm>
#include <charconv>

#include "base/budget.h"
#include "base/error.h"

namespace tonnx {

Dim FreshDims::next() { return Dim::symbol("u" + std::to_string(count_++)); }

void InferNode::set(size_t output, DType dtype, std::optional<Shape> shape) {
  set(output, Type::tensor(dtype, std::move(shape)));
}

namespace {
constexpr size_t kLongSize = 256;
}  // namespace

void InferNode::set(size_t output, Type type) {
  Value* value = node_->output(output);
  if (value == nullptr) return;
  if (type.shape) {  // sizes of layers behind layers may grow without end: a long one is as good as one not known
    for (Dim& dim : *type.shape) {
      if (!dim.is_constant() && dim.text().size() > kLongSize) dim = fresh();
    }
  }
  value->type = std::move(type);
}

/// The number of a name such as `u7`.
std::optional<int> FreshDims::number_of(std::string_view name) {
  int number = 0;
  if (name.size() < 2 || name[0] != 'u') return std::nullopt;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + 1, end, number);
  return error == std::errc() && stop == end && number >= 0 ? std::optional(number) : std::nullopt;
}

void FreshDims::avoid(std::string_view name) {
  constexpr int kLast = 1 << 30;  // a file that goes on behind it may do as it likes
  const auto number = number_of(name);
  if (number && *number >= count_ && *number < kLast) count_ = *number + 1;
}

void FreshDims::note_equal(const Dim& a, const Dim& b) {
  if (a == b) return;
  equal_.emplace_back(a, b);
}

Dim InferNode::same(const Dim& a, const Dim& b) {
  if (a == b) return a;
  require(!a.is_constant() || !b.is_constant(), "sizes {} and {} differ", a.text(), b.text());
  fresh_->note_equal(a, b);
  return a.is_constant() || !b.is_constant() ? a : b;
}

bool FreshDims::is_newer(const Dim& dim, int mark) {
  for (const auto& [product, coefficient] : dim.terms()) {
    for (const Dim::AtomPtr& atom : product) {
      if (atom->kind != 's') {
        if (is_newer(atom->a, mark) || is_newer(atom->b, mark)) return true;
        continue;
      }
      const auto number = number_of(atom->text);
      if (number && *number >= mark) return true;
    }
  }
  return false;
}

bool FreshDims::take_bytes(int64_t bytes) {
  constexpr int64_t kLargest = int64_t{1} << 26;
  if (bytes > kLargest || bytes > bytes_left_ || !budget().try_take(Resource::Memory, bytes)) return false;
  bytes_left_ -= bytes;
  return true;
}

void InferNode::set_dims(size_t output, Dims elements) {
  if (Value* value = node_->output(output)) value->known_ints = std::move(elements);
}

void InferNode::set_constant(TensorPtr tensor) {
  Value* value = node_->output(0);
  if (value == nullptr) return;
  value->type = Type::tensor(tensor->dtype, Shape(tensor->dims.begin(), tensor->dims.end()));
  value->constant = std::move(tensor);
}

void InferNode::keep_elements(std::string_view input) {
  const Value* from = value(input);
  Value* to = node_->output(0);
  if (from == nullptr || to == nullptr || !to->type.shape) return;
  const Shape& shape = *to->type.shape;
  // a weight that others use too stays one tensor, and is seen in another shape where it is used
  if (from->constant && (!is_float(from->constant->dtype) || from->uses.size() == 1)) {
    auto tensor = std::make_shared<Tensor>(*from->constant);
    tensor->dims.clear();
    for (const Dim& dim : shape) {
      if (!dim.is_constant()) return;
      tensor->dims.push_back(*dim.constant());
    }
    if (count_of(tensor->dims) != from->constant->count()) return;
    tensor->source = {};
    to->constant = std::move(tensor);
    return;
  }
  if (shape.size() <= 1) {
    if (auto elements = find_dims(input)) to->known_ints = std::move(elements);
  }
}

void InferNode::learn_rank(std::string_view input, std::optional<int64_t> rank) {
  if (!rank || *rank < 0 || *rank > kMaxRank) return;
  for (Value* value : node_->inputs()) {
    // what another graph has may be of many ranks, and of this one only where this graph runs
    if (value == nullptr || value != this->value(input) || value->graph != node_->graph) continue;
    if (!value->type.is_tensor() || value->type.shape) return;
    value->type.shape.emplace();
    for (int64_t i = 0; i < *rank; ++i) value->type.shape->push_back(fresh());
    return;
  }
}

std::optional<Shape> InferNode::fresh_shape(std::string_view list) {
  const Shape* shape = find_shape(list);
  if (shape == nullptr || shape->size() != 1 || !shape->at(0).is_constant()) return std::nullopt;
  const int64_t rank = *shape->at(0).constant();
  require(rank >= 0 && rank <= kMaxRank, "a tensor of {} dimensions", rank);
  Shape result;
  for (int64_t i = 0; i < rank; ++i) result.push_back(fresh());
  return result;
}

Dim InferNode::declared_or_fresh(size_t output, size_t dim, size_t rank, const Shape& input) {
  const Value* value = node_->output(output);
  const bool fits = value && value->type.shape && value->type.shape->size() == rank;
  if (fits && value->type.shape->at(dim).is_constant() &&
      std::all_of(input.begin(), input.end(), [](const Dim& size) { return size.is_constant(); })) {
    return value->type.shape->at(dim);
  }
  return fresh();
}

void infer_same_as_first(InferNode& n) {
  if (const Value* first = n.node().input(0)) n.set(0, first->type);
}

std::optional<Shape> broadcast(const std::optional<Shape>& a, const std::optional<Shape>& b, FreshDims* fresh) {
  if (!a || !b) return std::nullopt;
  const Shape& longer = a->size() >= b->size() ? *a : *b;
  const Shape& shorter = a->size() >= b->size() ? *b : *a;
  Shape result = longer;
  const size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const Dim& x = longer[i + shift];
    const Dim& y = shorter[i];
    if (x == y || y.is(1)) continue;
    if (x.is(1)) {
      result[i + shift] = y;
    } else if (x.is_constant() && y.is_constant()) {
      fail_invalid("sizes {} and {} cannot be broadcast together", x.text(), y.text());
    } else if (y.is_constant()) {
      result[i + shift] = y;  // the symbolic one must be equal to it, or 1
    } else if (!x.is_constant()) {
      result[i + shift] = fresh ? fresh->next() : max(x, y);
    }
  }
  return result;
}

namespace {

void infer_elementwise(InferNode& n, DType dtype) {
  std::optional<Shape> shape = Shape{};
  for (const Value* input : n.node().inputs()) {
    if (input != nullptr) shape = broadcast(shape, input->type.shape);
  }
  n.set(0, dtype, std::move(shape));
}

}  // namespace

void infer_broadcast(InferNode& n) {
  const Value* first = n.node().input(0);
  infer_elementwise(n, first ? first->type.dtype : DType::Undefined);
}

void infer_compare(InferNode& n) { infer_elementwise(n, DType::Bool); }

}  // namespace tonnx
