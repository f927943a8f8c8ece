// whole_attention.cpp - aten: recognises nn.MultiheadAttention by what happens to each dimension between its weights.
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/frame/python_names.h"
#include "passes/frame/aten_match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

/// What the dimensions of the projected tensor are made of: its first two, then query, key and value, heads, and the
/// size of a head. The output projection joins the heads into the embedding.
enum class Atom : uint8_t { First, Second, Three, Head, Unit, Embedding };
using Dimension = std::vector<Atom>;
using Dimensions = std::vector<Dimension>;

constexpr int64_t kMostUnits = int64_t{1} << 24;  // of a head, and heads: their product is a number

size_t from_front(int64_t dim, size_t rank) {
  return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
}

bool is_swap_of_first_two(const Node* node) {
  if (!is_aten(node, "transpose", "int")) return false;
  const int64_t *a = find_int(*node, "dim0"), *b = find_int(*node, "dim1");
  return a && b && std::min(*a, *b) == 0 && std::max(*a, *b) == 1;
}

/// A matrix that is a weight, as it is or turned around.
Value* weight_of(Value* value) {
  if (value == nullptr || value->constant) return value;
  const bool is_turned = is_aten(value->producer, "t") && value->uses.size() == 1;
  return is_turned && value->producer->input(0)->constant ? value->producer->input(0) : nullptr;
}

class WholeAttention {
 public:
  WholeAttention(Graph& graph, Node& node) : graph_(graph), node_(node) {}

  /// Whether it was one, and is now.
  bool replace() {
    if (!is_plain() || !find_sizes() || !find_inputs() || !find_output() || !are_own_weights()) return false;
    return put();
  }

 private:
  /// A mask that is added may be for all heads and all of a batch; the scale is what it is anyway.
  bool is_plain() const {
    if (!is_aten(node_, "scaled_dot_product_attention") || node_.graph != &graph_) return false;
    for (const char* name : {"dropout_p", "is_causal", "enable_gqa"}) {
      const Attribute* given = node_.find_attribute(name);
      const bool* flag = given ? given->value.get<bool>() : nullptr;
      const auto number = number_of(node_, name);
      if (given && !(flag && !*flag) && !(number && *number == 0)) return false;
    }
    const Value* mask = operand(node_, "attn_mask");
    if (mask == nullptr) return true;
    const auto& shape = mask->type.shape;
    const bool is_for_all = shape && (shape->size() == 2 || is_in_brackets(*shape));
    return is_for_all && mask->type.dtype == operand(node_, "query")->type.dtype;
  }

  /// A matrix behind two dimensions of size 1.
  static bool is_in_brackets(const Shape& shape) { return shape.size() == 4 && shape[0].is(1) && shape[1].is(1); }

  bool find_sizes() {
    const auto& shape = operand(node_, "query")->type.shape;
    if (!shape || shape->size() != 4) return false;
    const auto heads = (*shape)[1].constant(), unit = (*shape)[3].constant();
    if (!heads || !unit || *heads < 1 || *unit < 1 || *heads > kMostUnits || *unit > kMostUnits) return false;
    heads_ = *heads;
    unit_ = *unit;
    const Attribute* scale = node_.find_attribute("scale");
    return scale == nullptr || scale->value.is_none() ||
           is_number(node_, "scale", 1 / std::sqrt(static_cast<double>(unit_)));
  }

  /// Query, key and value are the three parts of one projection.
  bool find_inputs() {
    constexpr std::array<const char*, 3> kNames{"query", "key", "value"};
    for (size_t i = 0; i < kNames.size(); ++i) {
      std::vector<const Value*> way;
      Value* value = operand(node_, kNames[i]);
      while (value && value->producer && value->producer->graph == &graph_ && !is_aten(value->producer, "linear")) {
        way.insert(way.begin(), value);
        value = operand(*value->producer, "self");
      }
      Node* linear = value ? value->producer : nullptr;
      if (!is_aten(linear, "linear") || linear->graph != &graph_ || (in_ && linear != in_)) return false;
      in_ = linear;
      const auto& shape = value->type.shape;
      if (!shape || shape->size() != 3 || !shape->back().is(3 * heads_ * unit_)) return false;
      for (size_t dim = 0; dim < 2; ++dim) lead_[dim] = (*shape)[dim];
      Dimensions dims{{Atom::First}, {Atom::Second}, {Atom::Three, Atom::Head, Atom::Unit}};
      int64_t part = -1;
      for (const Value* step : way) {
        if (!follow(*step, dims, part)) return false;
      }
      if (part != static_cast<int64_t>(i) || !is_in_heads(dims)) return false;
    }
    return true;
  }

  /// batch x heads x positions x units, the same for all three.
  bool is_in_heads(const Dimensions& dims) {
    if (dims.size() != 4 || dims[1] != Dimension{Atom::Head} || dims[3] != Dimension{Atom::Unit}) return false;
    const bool is_first = dims[0] == Dimension{Atom::First} && dims[2] == Dimension{Atom::Second};
    const bool is_second = dims[0] == Dimension{Atom::Second} && dims[2] == Dimension{Atom::First};
    if (!is_first && !is_second) return false;
    const Atom batch = is_first ? Atom::First : Atom::Second;
    if (batch_ && *batch_ != batch) return false;
    batch_ = batch;
    return true;
  }

  /// What heads give goes side by side into the other projection.
  bool find_output() {
    const Atom positions = *batch_ == Atom::First ? Atom::Second : Atom::First;
    Dimensions dims{{*batch_}, {Atom::Head}, {positions}, {Atom::Unit}};
    int64_t part = -1;
    const Value* value = node_.output(0);
    for (;;) {
      Node* user = only_user(value);
      if (user == nullptr || user->output(0) == nullptr) return false;
      if (is_aten(user, "linear") && operand(*user, "input") == value) {
        out_ = user;
        break;
      }
      if (operand(*user, "self") != value || !follow(*user->output(0), dims, part)) return false;
      value = user->output(0);
    }
    forget_single(dims);
    if (part >= 0 || dims.back() != Dimension{Atom::Head, Atom::Unit}) return false;
    dims.back() = {Atom::Embedding};
    if (!find_result(dims)) return false;
    if (dims[2] != Dimension{Atom::Embedding} || dims[0].size() != 1 || dims[1].size() != 1) return false;
    first_of_output_ = dims[0][0];
    return first_of_output_ == Atom::First || first_of_output_ == Atom::Second;
  }

  /// The result with three dimensions: what the output projection gives, or a reshape of it. An exporter flattens the
  /// first two around a projection.
  bool find_result(Dimensions& dims) {
    result_ = out_->output(0);
    if (dims.size() == 2) {
      const Node* user = only_user(result_);
      int64_t part = -1;
      if (user == nullptr || operand(*user, "self") != result_ || user->output(0) == nullptr ||
          !follow(*user->output(0), dims, part) || part >= 0)
        return false;
      result_ = user->output(0);
    }
    if (dims.size() != 3) return false;
    for (const Atom atom : {Atom::First, Atom::Second}) {
      if (!size_of(atom).is(1)) continue;
      const auto empty = std::find(dims.begin(), dims.end(), Dimension{});
      if (empty == dims.end()) return false;
      empty->push_back(atom);
    }
    return true;
  }

  /// A dimension of size 1 may stand anywhere, so it says nothing of the order.
  void forget_single(Dimensions& dims) const {
    for (Dimension& dim : dims) {
      std::erase_if(dim,
                    [&](Atom atom) { return (atom == Atom::First || atom == Atom::Second) && size_of(atom).is(1); });
    }
  }

  /// What a step makes of the dimensions. False for all that does more than to move them, or to take one part.
  bool follow(const Value& result, Dimensions& dims, int64_t& part) const {
    const Node& step = *result.producer;
    if (is_aten(step, "chunk") && number_of(step, "chunks") == 3.0) {
      const int64_t* dim = find_int(step, "dim");
      const size_t at = from_front(dim ? *dim : 0, dims.size());
      if (part >= 0 || at >= dims.size() || dims[at].empty() || dims[at].front() != Atom::Three) return false;
      part = result.output_index;
      dims[at].erase(dims[at].begin());
      return true;
    }
    if (is_aten(step, "unbind", "int")) {
      const int64_t* dim = find_int(step, "dim");
      const size_t at = from_front(dim ? *dim : 0, dims.size());
      if (part >= 0 || at >= dims.size() || dims[at] != Dimension{Atom::Three}) return false;
      part = result.output_index;
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(at));
      return true;
    }
    if (const auto order = order_of(&step, dims.size())) {
      Dimensions moved;
      for (const int64_t dim : *order) moved.push_back(dims[static_cast<size_t>(dim)]);
      dims = std::move(moved);
      return true;
    }
    if (is_aten(step, "select", "int")) {
      const int64_t *dim = find_int(step, "dim"), *index = find_int(step, "index");
      const size_t at = dim ? from_front(*dim, dims.size()) : dims.size();
      if (!index || part >= 0 || at >= dims.size() || dims[at] != Dimension{Atom::Three}) return false;
      part = *index < 0 ? *index + 3 : *index;
      dims.erase(dims.begin() + static_cast<ptrdiff_t>(at));
      return true;
    }
    static constexpr std::string_view kReshapes[] = {"reshape", "view",    "_unsafe_view", "unflatten",
                                                     "flatten", "squeeze", "unsqueeze",    "contiguous"};
    const bool keeps_order = step.domain == "aten" && std::find(std::begin(kReshapes), std::end(kReshapes),
                                                                step.op.view()) != std::end(kReshapes);
    const auto& shape = step.output(0)->type.shape;
    return keeps_order && shape && reshape(*shape, dims);
  }

  Dim size_of(Atom atom) const {
    switch (atom) {
      case Atom::First: return lead_[0];
      case Atom::Second: return lead_[1];
      case Atom::Three: return Dim(3);
      case Atom::Head: return Dim(heads_);
      case Atom::Embedding: return Dim(heads_ * unit_);
      default: return Dim(unit_);
    }
  }

  /// Gives each new dimension as many of the parts, in their order, as make its size.
  bool reshape(const Shape& shape, Dimensions& dims) const {
    Dimension parts;
    for (const Dimension& dim : dims) parts.insert(parts.end(), dim.begin(), dim.end());
    Dimensions made;
    size_t at = 0;
    for (const Dim& size : shape) {
      Dimension& dim = made.emplace_back();
      const auto wanted = size.constant();
      if (!wanted) {  // an open size, or a product of one with others
        Dim whole(1);
        while (!(whole == size)) {
          if (at == parts.size()) return false;
          whole = whole * size_of(parts[at]);
          dim.push_back(parts[at++]);
        }
        continue;
      }
      int64_t product = 1;
      while (at < parts.size() && (product < *wanted || dim.empty())) {
        const auto next = size_of(parts[at]).constant();
        if (!next || *next < 1 || *next > *wanted / product) break;
        product *= *next;
        dim.push_back(parts[at++]);
      }
      if (product != *wanted) return false;
    }
    while (at < parts.size() && !made.empty() && size_of(parts[at]).is(1)) made.back().push_back(parts[at++]);
    dims = std::move(made);
    return at == parts.size();
  }

  /// Weights that nothing else has, of one module, as their names say.
  bool are_own_weights() {
    weights_ = {weight_of(operand(*in_, "weight")), operand(*in_, "bias"), weight_of(operand(*out_, "weight")),
                operand(*out_, "bias")};
    constexpr std::array<std::string_view, 4> kNames{".in_proj_weight", ".in_proj_bias", ".out_proj.weight",
                                                     ".out_proj.bias"};
    std::string module;
    std::array<bool, 4> is_named{};
    for (size_t i = 0; i < weights_.size(); ++i) {
      const Value* weight = weights_[i];
      if (weight == nullptr || !weight->constant || weight->uses.size() != 1) return false;
      is_named[i] = weight->name.ends_with(kNames[i]);
      if (!is_named[i] && !python::is_made_up(weight->name)) return false;
      if (!is_named[i]) continue;
      const std::string of = weight->name.substr(0, weight->name.size() - kNames[i].size());
      if (module.empty()) module = of;
      if (of != module) return false;
    }
    const int64_t units = heads_ * unit_;
    return (is_named[0] || is_named[1]) && (is_named[2] || is_named[3]) && in_->output(0)->type.dtype == dtype_of(1) &&
           dtype_of(0) == dtype_of(1) && dtype_of(2) == dtype_of(1) && dtype_of(3) == dtype_of(1) &&
           weights_[1]->constant->dims == std::vector{3 * units} && weights_[3]->constant->dims == std::vector{units} &&
           has_elements(0, 3 * units * units) && has_elements(2, units * units);
  }

  DType dtype_of(size_t weight) const { return weights_[weight]->constant->dtype; }
  bool has_elements(size_t weight, int64_t count) const {
    const auto& dims = weights_[weight]->constant->dims;
    return dims.size() == 2 && dims[0] * dims[1] == count;
  }

  /// A tensor whose first two dimensions may be the other way round.
  struct Side {
    Value* value;
    Atom first;
  };

  /// The inputs and results that it may have, those with the batch in front first.
  bool put() {
    Value *x = operand(*in_, "input"), *y = result_;
    const Atom other = first_of_output_ == Atom::First ? Atom::Second : Atom::First;
    std::vector<Side> inputs{{x, Atom::First}}, outputs{{y, first_of_output_}};
    if (x->producer && x->producer->graph == &graph_ && is_swap_of_first_two(x->producer))
      inputs.push_back({operand(*x->producer, "self"), Atom::Second});
    if (Node* turn = only_user(y); is_swap_of_first_two(turn)) outputs.push_back({turn->output(0), other});
    for (const bool batch_first : {true, false}) {
      for (const Side& input : inputs) {
        for (const Side& output : outputs) {
          if (input.first != output.first || (input.first == *batch_) != batch_first) continue;
          write(input.value, output.value, batch_first);
          return true;
        }
      }
    }
    return false;
  }

  void write(Value* x, Value* y, bool batch_first) {
    Node* last = y->producer;
    Node* made = graph_.add_node("tonnx", "multihead_attention", last);
    made->name = in_->name;
    made->metadata = in_->metadata;
    for (const char* name : {"query", "key", "value"}) add_operand(*made, name, x);
    constexpr std::array<const char*, 4> kNames{"in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias"};
    for (size_t i = 0; i < weights_.size(); ++i) {
      const Node& linear = i < 2 ? *in_ : *out_;
      add_operand(*made, kNames[i], operand(linear, i % 2 == 0 ? "weight" : "bias"));
    }
    if (Value* mask = operand(node_, "attn_mask")) add_operand(*made, "attn_mask", matrix_of(mask, made));
    made->attributes.push_back({"num_heads", heads_, AttrType::None, {}, {}});
    made->attributes.push_back({"batch_first", batch_first, AttrType::None, {}, {}});
    graph_.move_output(y, made, 0);
    last->resize_outputs(0);
    graph_.erase(last);
  }

  Value* matrix_of(Value* mask, Node* before) {
    const Shape& shape = *mask->type.shape;
    if (!is_in_brackets(shape)) return mask;
    Value* bare = mask;  // without the brackets that were put around it
    while (bare && bare->type.rank() != 2 && is_aten(bare->producer, "unsqueeze") && bare->producer->graph == &graph_)
      bare = operand(*bare->producer, "self");
    if (bare && bare->type.shape && *bare->type.shape == Shape(shape.begin() + 2, shape.end())) return bare;
    Node* squeeze = graph_.add_node("aten", "squeeze", before);
    squeeze->overload = "dims";
    squeeze->name = node_.name;
    squeeze->metadata = node_.metadata;
    add_operand(*squeeze, "self", mask);
    squeeze->attributes.push_back({"dim", std::vector<int64_t>{0, 1}, AttrType::None, {}, {}});
    Type type = mask->type;
    type.shape = Shape(shape.begin() + 2, shape.end());
    return graph_.add_output_to(squeeze, graph_.unique_name(mask->name), type);
  }

  Graph& graph_;
  Node& node_;
  int64_t heads_ = 0, unit_ = 0;
  std::array<Dim, 2> lead_;
  Node *in_ = nullptr, *out_ = nullptr;
  Value* result_ = nullptr;
  std::optional<Atom> batch_;
  Atom first_of_output_ = Atom::First;
  std::array<Value*, 4> weights_{};
};

}  // namespace

void recognise_whole_attention(Graph& graph) {
  bool is_changed = false;
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    if (is_aten(node, "scaled_dot_product_attention"))
      is_changed = WholeAttention(graph, *node).replace() || is_changed;
  }
  if (is_changed) remove_unused_nodes(graph);
}

}  // namespace tonnx
