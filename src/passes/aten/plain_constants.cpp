// plain_constants.cpp - aten: constants that a line of code says, such as 0, 1, 2 ..., are computed, and weights that
// an exporter repeated are stored once.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "base/computed.h"
#include "ops/frame/python_names.h"
#include "passes/aten/aten_writer.h"
#include "passes/aten/match.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr int64_t kManyElements = 1 << 16;            // what is larger is not computed each time
constexpr int64_t kFarthestStart = int64_t{1} << 40;  // that numbers are counted from
constexpr size_t kManyUses = 64;

using Sizes = std::vector<int64_t>;

/// The sizes of a tensor, but 1 along the axes on which it repeats itself.
Sizes slim_dims(const Sizes& dims, const std::vector<int64_t>& numbers) {
  Sizes slim = dims;
  int64_t inner = static_cast<int64_t>(numbers.size());
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t size = dims[axis], block = inner;
    inner /= size;
    bool repeats = true;
    for (int64_t start = 0; start < static_cast<int64_t>(numbers.size()) && repeats; start += block) {
      for (int64_t i = inner; i < block && repeats; ++i)
        repeats = numbers[static_cast<size_t>(start + i)] == numbers[static_cast<size_t>(start + i % inner)];
    }
    if (repeats) slim[axis] = 1;
  }
  return slim;
}

/// The elements of a tensor that does not repeat itself along the others of its axes.
std::vector<int64_t> slim_numbers(const Sizes& dims, const Sizes& slim, const std::vector<int64_t>& numbers) {
  std::vector<int64_t> kept;
  for (size_t i = 0; i < numbers.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i);
    bool is_first = true;
    for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
      is_first = is_first && (slim[axis] == dims[axis] || rest % dims[axis] == 0);
    if (is_first) kept.push_back(numbers[i]);
  }
  return kept;
}

/// The diagonal up to which rows of ones go, with zeros behind it; nothing where they are others.
std::optional<int64_t> lower_diagonal(const std::vector<int64_t>& numbers, int64_t rows, int64_t columns) {
  const auto first = std::find(numbers.begin(), numbers.begin() + columns, 0);
  const int64_t diagonal = first - numbers.begin() - 1;
  if (diagonal < 0 || diagonal + 1 >= columns) return std::nullopt;
  for (int64_t i = 0; i < rows * columns; ++i) {
    if ((numbers[static_cast<size_t>(i)] != 0) != (i % columns <= i / columns + diagonal)) return std::nullopt;
  }
  return diagonal;
}

bool is_empty(const Tensor& tensor) {
  return std::find(tensor.dims.begin(), tensor.dims.end(), 0) != tensor.dims.end();
}

class PlainConstant {
 public:
  PlainConstant(Graph& graph, const Value& value) : graph_(graph), value_(value), sizes_(value.constant->dims) {}

  /// The value that code computes in front of the node, or at the end; null where the constant is not plain.
  Value* write_before(Node* node) {
    writer_.write_before(node);
    like_ = node;
    if (is_empty(*value_.constant)) return filled(0);
    const auto numbers = ints_of(*value_.constant, kManyElements);
    if (!numbers || numbers->size() < 2) return nullptr;
    const Sizes slim = slim_dims(sizes_, *numbers);
    const std::vector<int64_t> kept = slim_numbers(sizes_, slim, *numbers);
    Sizes axes;
    for (size_t i = 0; i < slim.size(); ++i) {
      if (slim[i] > 1) axes.push_back(static_cast<int64_t>(i));
    }
    if (axes.empty()) return filled(kept[0]);
    const auto rank = static_cast<int64_t>(sizes_.size());
    if (axes.size() == 1) return widened(counted(kept), slim);
    if (axes.size() == 2 && axes[0] == rank - 2 && dtype() == DType::Bool) return widened(triangle(kept, slim), slim);
    return nullptr;
  }

 private:
  DType dtype() const { return value_.constant->dtype; }

  Value* add(const AtenCall& call, const Sizes& dims) {
    Type type = value_.type;
    type.shape = Shape(dims.begin(), dims.end());
    return writer_.add(call, std::move(type), value_.name);
  }

  Value* filled(int64_t number) {
    AtenCall call(number == 0 ? "zeros" : number == 1 ? "ones" : "full", "", like_);
    call.with("size", AttrValue(sizes_));
    if (number != 0 && number != 1) call.with("fill_value", AttrValue(number));
    call.with("dtype", AttrValue(dtype()));
    return add(call, sizes_);
  }

  /// 0, 1, 2 ..., or from another number on; null where it goes on otherwise.
  Value* counted(const std::vector<int64_t>& numbers) {
    const auto count = static_cast<int64_t>(numbers.size());
    if (numbers[0] < -kFarthestStart || numbers[0] > kFarthestStart) return nullptr;
    for (int64_t i = 0; i < count; ++i) {
      if (dtype() == DType::Bool || numbers[static_cast<size_t>(i)] != numbers[0] + i) return nullptr;
    }
    const bool is_plain = numbers[0] == 0;
    AtenCall call("arange", is_plain ? "" : "start", like_);
    if (!is_plain) call.with("start", AttrValue(numbers[0]));
    call.with("end", AttrValue(numbers[0] + count));
    if (dtype() != DType::Int64) call.with("dtype", AttrValue(dtype()));
    return add(call, {count});
  }

  /// Ones up to a diagonal.
  Value* triangle(const std::vector<int64_t>& numbers, const Sizes& slim) {
    const int64_t rows = slim[slim.size() - 2], columns = slim.back();
    const auto diagonal = lower_diagonal(numbers, rows, columns);
    if (!diagonal) return nullptr;
    AtenCall ones("ones", "", like_);
    ones.with("size", AttrValue(Sizes{rows, columns})).with("dtype", AttrValue(DType::Bool));
    AtenCall lower("tril", "", like_);
    lower.with("self", add(ones, {rows, columns}));
    if (*diagonal != 0) lower.with("diagonal", AttrValue(*diagonal));
    return add(lower, {rows, columns});
  }

  /// The same with the dimensions that it had.
  Value* widened(Value* made, const Sizes& slim) {
    if (made == nullptr) return nullptr;
    Sizes sizes;
    for (const Dim& dim : *made->type.shape) sizes.push_back(*dim.constant());
    for (size_t i = 0; i < slim.size() && sizes.size() < slim.size(); ++i) {
      if (slim[i] != 1) continue;
      sizes.insert(sizes.begin() + static_cast<ptrdiff_t>(i), 1);
      AtenCall call("unsqueeze", "", like_);
      made = add(call.with("self", made).with("dim", AttrValue(static_cast<int64_t>(i))), sizes);
    }
    if (slim == sizes_) return made;
    AtenCall call("expand", "", like_);
    return add(call.with("self", made).with("size", AttrValue(sizes_)), sizes_);
  }

  Graph& graph_;
  const Value& value_;
  const Sizes& sizes_;
  AtenWriter writer_{graph_};
  const Node* like_ = nullptr;
};

bool may_be_plain(const Value& value) {
  return value.constant && !value.trainable && !value.sparse && !value.uses.empty() && value.uses.size() <= kManyUses &&
         (value.constant->dtype == DType::Int64 || value.constant->dtype == DType::Bool) &&
         value.type.kind == Type::Kind::Tensor && !python::is_state_key(value.name) && !is_empty(*value.constant) &&
         std::all_of(value.uses.begin(), value.uses.end(),
                     [&](const Use& use) { return use.user != nullptr && use.user->graph == value.graph; });
}

/// The graph whose node or output the use is.
Graph* graph_of(const Use& use) { return use.user ? use.user->graph : use.output_of; }

bool is_plain_type(DType dtype) {
  return (is_float(dtype) || is_integer(dtype) || dtype == DType::Bool) && !is_sub_byte(dtype);
}

/// The node in front of which an empty tensor is made; null: at the end, where only outputs need it.
Node* user_of_empty(const Value& value) {
  const bool is_output = std::all_of(value.uses.begin(), value.uses.end(), [](const Use& use) { return !use.user; });
  if (is_output) return nullptr;
  return value.uses.size() == 1 ? value.uses[0].user : graph_of(value.uses[0])->first();
}

/// A tensor of no elements that only one graph uses. What an output of a branch is called is no name of a weight; what
/// the model itself gives stays a buffer, which goes to a device with it.
bool is_plain_and_empty(const Value& value) {
  if (!value.constant || value.sparse || value.uses.empty() || value.uses.size() > kManyUses ||
      value.type.kind != Type::Kind::Tensor || !is_empty(*value.constant) || !is_plain_type(value.constant->dtype))
    return false;
  const Graph* user = graph_of(value.uses[0]);
  const bool is_output = std::any_of(value.uses.begin(), value.uses.end(), [](const Use& use) { return !use.user; });
  return (is_output ? user != value.graph : !python::is_state_key(value.name)) &&
         std::all_of(value.uses.begin(), value.uses.end(), [&](const Use& use) { return graph_of(use) == user; });
}

/// The nodes of a graph, numbered when somebody asks.
class Order {
 public:
  explicit Order(const Graph& graph) : graph_(graph) {}

  /// The first of the nodes that use a value.
  Node* first_user(const Value& value) {
    if (number_.empty()) {
      for (const Node& node : graph_) number_.emplace(&node, number_.size());
    }
    const auto first = std::min_element(value.uses.begin(), value.uses.end(), [&](const Use& a, const Use& b) {
      return number_.at(a.user) < number_.at(b.user);
    });
    return first->user;
  }

 private:
  const Graph& graph_;
  std::unordered_map<const Node*, size_t> number_;
};

/// Rows of a weight that are all equal, beside others: an exporter wrote the batch of its example into it.
bool is_repeated(const Value& value) {
  if (!value.constant || !value.trainable || value.uses.size() != 1 || value.constant->dims.size() < 2) return false;
  const Node* user = value.uses[0].user;
  const int64_t rows = value.constant->dims[0];
  if (!is_aten(user, "cat") || user->graph != value.graph || rows < 2) return false;
  const std::string_view bytes = value.constant->data.view();
  const size_t row = bytes.size() / static_cast<size_t>(rows);
  return row > 0 && row * static_cast<size_t>(rows) == bytes.size() &&
         bytes.substr(row) == bytes.substr(0, bytes.size() - row);
}

void store_once(Graph& graph, Value& value) {
  Node& user = *value.uses[0].user;
  auto first = std::make_shared<Tensor>(*value.constant);
  first->dims[0] = 1;
  first->data =
      value.constant->data.slice(0, value.constant->data.size() / static_cast<size_t>(value.constant->dims[0]));
  const Sizes dims = value.constant->dims;
  AtenWriter writer(graph);
  writer.write_before(&user);
  AtenCall call("expand", "", &user);
  call.with("self", &value);
  call.with("size", AttrValue(dims));
  const size_t index = value.uses[0].index;
  Value* wide = writer.add(call, value.type, value.name);
  user.set_input(index, wide);
  value.constant = std::move(first);
  (*value.type.shape)[0] = Dim(1);
}

}  // namespace

void write_plain_constants(Graph& graph) {
  const std::vector<Value*> initializers = graph.initializers();
  Order order(graph);
  std::map<std::tuple<const Graph*, DType, Sizes>, Value*> at_end;  // those of no elements, once each
  for (Value* value : initializers) {
    if (value->constant && is_computed(value->constant->data)) continue;
    if (is_repeated(*value) && value->type.shape) store_once(graph, *value);
    const bool is_empty = is_plain_and_empty(*value);
    if (!is_empty && !may_be_plain(*value)) continue;
    Graph& user = *graph_of(value->uses[0]);
    Node* before = is_empty ? user_of_empty(*value) : order.first_user(*value);
    Value*& last = at_end[{&user, value->constant->dtype, value->constant->dims}];
    Value* made = before || !last ? PlainConstant(user, *value).write_before(before) : last;
    if (made == nullptr) continue;
    graph.replace_uses(value, made);
    if (before == nullptr) last = made;
  }
}

}  // namespace tonnx
