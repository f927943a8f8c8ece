// plain_constants.cpp - aten: constants that a line of code says, such as 0, 1, 2 ..., are computed, and weights that
// an exporter repeated are stored once.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "base/computed.h"
#include "ir/origins.h"
#include "ops/frame/python_names.h"
#include "ops/frame/trained_scalar.h"
#include "passes/constants/tables.h"
#include "passes/frame/aten_match.h"
#include "passes/frame/aten_writer.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr int64_t kManyElements = 1 << 16;            // what is larger is not computed each time
constexpr int64_t kManyOfMask = 1 << 20;              // but for masks, which are compared and no more
constexpr double kLargestOfMask = 1 << 24;            // is whole in all types
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

/// Whole numbers that are written as floats; nothing where there are others, or a negative zero.
std::optional<std::vector<int64_t>> whole_numbers(const Tensor& tensor) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < tensor.count(); ++i) {  // most are weights, and end with the first number
    const double number = element_as_double(tensor, i);
    const bool is_whole = std::abs(number) <= kLargestOfMask && number == std::trunc(number);
    if (!is_whole || (number == 0 && std::signbit(number))) return std::nullopt;
    numbers.push_back(static_cast<int64_t>(number));
  }
  return numbers;
}

bool is_empty(const Tensor& tensor) {
  return std::find(tensor.dims.begin(), tensor.dims.end(), 0) != tensor.dims.end();
}

/// Whether an exporter made the name, and not the model, which may have a buffer `distances`.
bool is_of_exporter(std::string_view name) {
  const std::string_view word = name.ends_with('_') ? name.substr(0, name.size() - 1) : name;  // `add_`, which wrote
  return name.find_first_of("/:") != std::string_view::npos || python::is_made_up(name) || is_operator_word(word) ||
         is_result_name(word);
}

class PlainConstant {
 public:
  PlainConstant(Graph& graph, const Value& value) : graph_(graph), value_(value), sizes_(value.constant->dims) {}

  /// A mask as whole numbers: what it is added to says its type.
  void leave_whole() { made_as_ = DType::Int64; }

  /// The same so many times along the dimension behind the first one, which is of size 1 and left out.
  Value* write_repeated(Node* node, int64_t count) {
    sizes_.erase(sizes_.begin());
    Value* made = write_before(node);
    if (made == nullptr) return nullptr;
    Sizes repeats(sizes_.size(), 1), sizes = sizes_;
    repeats[0] = count;
    sizes[0] *= count;
    return add(call("repeat", "", made).with("repeats", AttrValue(repeats)), sizes);
  }

  /// The value that code computes in front of the node, or at the end; null where the constant is not plain.
  Value* write_before(Node* node) {
    writer_.write_before(node);
    like_ = node;
    if (is_empty(*value_.constant)) return filled(0);
    const bool is_mask = is_float(dtype());
    const auto numbers = is_mask ? whole_numbers(*value_.constant) : ints_of(*value_.constant, kManyElements);
    if (!numbers || numbers->size() < 2) return nullptr;
    const Sizes slim = slim_dims(sizes_, *numbers);
    const std::vector<int64_t> kept = slim_numbers(sizes_, slim, *numbers);
    Sizes axes;
    for (size_t i = 0; i < slim.size(); ++i) {
      if (slim[i] > 1) axes.push_back(static_cast<int64_t>(i));
    }
    const auto rank = static_cast<int64_t>(sizes_.size());
    const bool is_matrix = axes.size() >= 2 && axes[axes.size() - 2] == rank - 2 && axes.back() == rank - 1;
    if (is_mask && is_matrix && axes.size() == 3)
      return widened(windows(kept, slim[static_cast<size_t>(axes[0])], slim), slim);
    if (is_mask) return nullptr;
    if (axes.empty()) return filled(kept[0]);
    if (axes.size() == 1) return widened(counted(kept), slim);
    if (!is_matrix || axes.size() > 2) return nullptr;
    return widened(dtype() == DType::Bool ? triangle(kept, slim) : relative(kept, slim), slim);
  }

 private:
  DType dtype() const { return value_.constant->dtype; }

  Value* add(const AtenCall& call, const Sizes& dims) { return add(call, dims, made_as_); }

  Value* add(const AtenCall& call, const Sizes& dims, DType of, Symbol domain = "aten") {
    Type type = value_.type;
    type.dtype = of;
    type.shape = Shape(dims.begin(), dims.end());
    return writer_.add(call, std::move(type), value_.name, domain);
  }

  AtenCall call(Symbol op, Symbol overload, Value* self) const {
    AtenCall made(op, overload, like_);
    made.with("self", self);
    return made;
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

  Value* count_to(int64_t end) {
    AtenCall arange("arange", "", like_);
    return add(arange.with("end", AttrValue(end)), {end}, DType::Int64);
  }

  /// Whether a place is behind an edge; counted from the end that is nearer.
  Value* is_behind(int64_t edge, int64_t size) {
    if (edge <= size - edge)
      return add(call("ge", "Scalar", count_to(size)).with("other", AttrValue(edge)), {size}, DType::Bool);
    AtenCall back("arange", "start_step", like_);
    back.with("start", AttrValue(size)).with("end", AttrValue(int64_t{0})).with("step", AttrValue(int64_t{-1}));
    Value* from_end = add(back, {size}, DType::Int64);
    return add(call("le", "Scalar", from_end).with("other", AttrValue(size - edge)), {size}, DType::Bool);
  }

  /// Whether rows or columns of the windows are behind the edge: [windows, 1, places].
  Value* windows_behind(int64_t edge, int64_t windows, int64_t places) {
    if (edge == 0) return nullptr;
    AtenCall split = call("unflatten", "int", is_behind(edge, windows * places));
    split.with("dim", AttrValue(int64_t{0})).with("sizes", AttrValue(Sizes{-1, 1, places}));
    return add(split, {windows, 1, places}, DType::Bool);
  }

  /// A number for each place of each window: what has the same one is on the same side of both edges.
  Value* regions_of(const WindowRegions& r) {
    const Sizes sizes{r.rows, r.columns, r.height, r.width};
    Value* column = windows_behind(r.column_edge, r.columns, r.width);
    const bool are_alike = r.row_edge == r.column_edge && r.rows == r.columns && r.height == r.width;
    Value* row = are_alike ? column : windows_behind(r.row_edge, r.rows, r.height);
    if (row != nullptr)
      row = add(call("unsqueeze", "", row).with("dim", AttrValue(int64_t{3})), {r.rows, 1, r.height, 1}, DType::Bool);
    if (row == nullptr || column == nullptr)
      return add(call("expand", "", row ? row : column).with("size", AttrValue(sizes)), sizes, DType::Bool);
    row = add(call("mul", "Scalar", row).with("other", AttrValue(int64_t{2})), {r.rows, 1, r.height, 1}, DType::Int64);
    return add(call("add", "Tensor", row).with("other", column), sizes, DType::Int64);
  }

  /// What shifted windows may see: 0, and a number that hides where the places are of two regions.
  Value* windows(const std::vector<int64_t>& numbers, int64_t count, const Sizes& slim) {
    const int64_t places = slim.back();
    const auto found = slim[slim.size() - 2] == places ? find_window_regions(numbers, count, places) : std::nullopt;
    if (!found) return nullptr;
    const WindowRegions& r = *found;
    Value* region = regions_of(r);
    const DType of = region->type.dtype;
    region = add(call("flatten", "using_ints", region).with("start_dim", AttrValue(int64_t{2})),
                 {r.rows, r.columns, places}, of);
    region = add(call("flatten", "using_ints", region).with("end_dim", AttrValue(int64_t{1})), {count, places}, of);
    Value* from = add(call("unsqueeze", "", region).with("dim", AttrValue(int64_t{2})), {count, places, 1}, of);
    Value* to = add(call("unsqueeze", "", region).with("dim", AttrValue(int64_t{1})), {count, 1, places}, of);
    const Sizes whole{count, places, places};
    AtenCall choice("where", "Scalar", like_);
    choice.with("condition", add(call("eq", "Tensor", from).with("other", to), whole, DType::Bool));
    choice.with("self", AttrValue(r.same)).with("other", AttrValue(r.other));
    if (made_as_ == DType::Int64) return add(choice, whole);
    return add(call("to", "dtype", add(choice, whole, DType::Int64)).with("dtype", AttrValue(dtype())), whole);
  }

  /// A number for each distance between row and column, as tables of relative positions have it.
  Value* relative(const std::vector<int64_t>& numbers, const Sizes& slim) {
    const int64_t rows = slim[slim.size() - 2], columns = slim.back();
    const auto found = is_of_exporter(value_.name) ? find_relative_table(numbers, rows, columns) : std::nullopt;
    if (!found) return nullptr;
    const Sizes sizes{rows, columns};
    Value* column = count_to(columns);
    Value* row = add(
        call("unsqueeze", "", rows == columns ? column : count_to(rows)).with("dim", AttrValue(int64_t{1})), {rows, 1});
    const bool is_of_rows = found->of == RelativeTable::Of::Rows;
    Value* offset =
        add(call("sub", "Tensor", is_of_rows ? row : column).with("other", is_of_rows ? column : row), sizes);
    Value* made = offset;
    int64_t least = is_of_rows ? 1 - columns : 1 - rows, most = is_of_rows ? rows - 1 : columns - 1;
    if (found->of == RelativeTable::Of::Distance) {
      made = add(call("abs", "", offset), sizes);
      least = 0;
      most = std::max(rows, columns) - 1;
    }
    made = stepped(made, found->steps, least, most, found->first);
    if (found->behind == 0) return made;
    Value* is_behind = add(call("gt", "Scalar", offset).with("other", AttrValue(int64_t{0})), sizes, DType::Bool);
    Value* more = add(call("mul", "Scalar", is_behind).with("other", AttrValue(found->behind)), sizes);
    return add(call("add", "Tensor", made).with("other", more), sizes);
  }

  /// `first`, and one more from each of the steps on, of numbers from `least` to `most`.
  Value* stepped(Value* x, const Sizes& steps, int64_t least, int64_t most, int64_t first) {
    Sizes sizes;
    for (const Dim& dim : *x->type.shape) sizes.push_back(*dim.constant());
    if (steps.size() > 1 && steps[0] == steps.back()) {  // all at once
      Value* is_behind = add(call("ge", "Scalar", x).with("other", AttrValue(steps[0])), sizes, DType::Bool);
      x = add(call("mul", "Scalar", is_behind).with("other", AttrValue(static_cast<int64_t>(steps.size()))), sizes);
      return first == 0 ? x : add(call("add", "Scalar", x).with("other", AttrValue(first)), sizes);
    }
    bool is_counting = true;
    for (size_t i = 0; i < steps.size(); ++i) is_counting &= steps[i] == steps[0] + static_cast<int64_t>(i);
    if (is_counting) {
      AtenCall clamp = call("clamp", "", x);
      if (steps[0] - 1 > least) clamp.with("min", AttrValue(steps[0] - 1));
      if (steps.back() < most) clamp.with("max", AttrValue(steps.back()));
      if (clamp.attributes.size() > 1) x = add(clamp, sizes);
      first -= steps[0] - 1;
    } else {
      AtenCall list("int_tensor", "", like_);
      list.with("values", AttrValue(steps)).with("dtype", AttrValue(DType::Int64));
      Value* edges = add(list, {static_cast<int64_t>(steps.size())}, DType::Int64, "tonnx");
      x = add(call("bucketize", "Tensor", x).with("boundaries", edges).with("right", AttrValue(true)), sizes);
    }
    return first == 0 ? x : add(call("add", "Scalar", x).with("other", AttrValue(first)), sizes);
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
  Sizes sizes_;
  DType made_as_ = value_.constant->dtype;
  AtenWriter writer_{graph_};
  const Node* like_ = nullptr;
};

/// A constant without the name of a weight, which nodes of its own graph alone use.
bool may_be_made(const Value& value) {
  return value.constant && !value.sparse && !value.uses.empty() && value.uses.size() <= kManyUses &&
         value.type.kind == Type::Kind::Tensor && !python::is_state_key(value.name) && !is_empty(*value.constant) &&
         std::all_of(value.uses.begin(), value.uses.end(),
                     [&](const Use& use) { return use.user != nullptr && use.user->graph == value.graph; });
}

bool may_be_plain(const Value& value) {
  return !value.trainable && may_be_made(value) &&
         (value.constant->dtype == DType::Int64 || value.constant->dtype == DType::Bool);
}

/// Windows of squares of floats: to each place of a window from each other one. No training ends with such numbers,
/// so that it does not matter whether a file calls them a weight.
bool may_be_mask(const Value& value) {
  if (!may_be_made(value) || is_computed(value.constant->data) || !is_of_exporter(value.name)) return false;
  const Tensor& tensor = *value.constant;
  const size_t rank = tensor.dims.size();
  return is_float(tensor.dtype) && info(tensor.dtype).bits >= 16 && rank >= 3 &&
         tensor.dims[rank - 1] == tensor.dims[rank - 2] && tensor.count() <= kManyOfMask;
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
  Node* first_user(const std::vector<Use>& uses) {
    if (number_.empty()) {
      for (const Node& node : graph_) number_.emplace(&node, number_.size());
    }
    const auto first = std::min_element(
        uses.begin(), uses.end(), [&](const Use& a, const Use& b) { return number_.at(a.user) < number_.at(b.user); });
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
  const size_t row = value.constant->data.size() / static_cast<size_t>(value.constant->dims[0]);
  first->data = value.constant->data.slice(0, row);
  for (size_t at = row; origins() != nullptr && at < value.constant->data.size(); at += row) {
    auto other = std::make_shared<Tensor>(*first);
    other->data = value.constant->data.slice(at, row);
    note_equal(first, other);
  }
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

/// The node that joins the first two dimensions of what the use repeats along the first, once for each of a batch; null
/// where it is used otherwise.
Node* find_repeat(const Use& use) {
  const Node& wide = *use.user;
  const Value* made = is_aten(wide, "expand") && !wide.find_attribute("implicit") ? wide.output(0) : nullptr;
  if (made == nullptr || made->uses.size() != 1 || !made->type.shape || made->type.shape->size() < 3) return nullptr;
  Node* join = made->uses[0].user;
  const bool joins_two = is_aten(join, "flatten", "using_ints") && find_int(*join, "end_dim") &&
                         *find_int(*join, "end_dim") == 1 &&
                         (!find_int(*join, "start_dim") || *find_int(*join, "start_dim") == 0);
  const Shape &from = *wide.input(0)->type.shape, &to = *made->type.shape;
  const bool widens_first = from.size() == to.size() && from[0].constant() == 1 && to[0].constant() &&
                            std::equal(from.begin() + 1, from.end(), to.begin() + 1);
  return joins_two && widens_first && join->graph == wide.graph ? join : nullptr;
}

/// Whether nothing is done with a tensor but to add it to others of the type: these are what says the type then.
bool are_added(const std::vector<Use>& uses, DType dtype) {
  return std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    if (!is_aten(use.user, "add", "Tensor") || use.user->find_attribute("alpha")) return false;
    const Value *self = operand(*use.user, "self"), *other = operand(*use.user, "other");
    return self && other && self != other &&
           std::all_of(use.user->inputs().begin(), use.user->inputs().end(), [&](const Value* x) {
             return x->type.is_tensor() && x->type.dtype == dtype && x->type.rank().value_or(0) > 0;
           });
  });
}

/// A mask that several modules use is made by each of them, as it was in the model: otherwise one would have to hand it
/// to the others.
void write_mask(Graph& graph, Value& mask, Order& order) {
  std::map<std::string, std::vector<Use>> by_place;
  for (const Use& use : mask.uses) by_place[python::path_of_node(use.user->name)].push_back(use);
  for (const auto& [place, uses] : by_place) {
    Node* first = order.first_user(uses);
    PlainConstant constant(graph, mask);
    Node* join = uses.size() == 1 ? find_repeat(uses[0]) : nullptr;
    if (are_added(join ? join->output(0)->uses : uses, mask.constant->dtype)) constant.leave_whole();
    if (join != nullptr) {
      const int64_t count = *first->output(0)->type.shape->front().constant();
      if (Value* made = constant.write_repeated(first, count)) graph.replace_uses(join->output(0), made);
      continue;
    }
    Value* made = constant.write_before(first);
    if (made == nullptr) return;
    for (const Use& use : uses) use.user->set_input(use.index, made);
  }
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
    Node* before = is_empty ? user_of_empty(*value) : order.first_user(value->uses);
    Value*& last = at_end[{&user, value->constant->dtype, value->constant->dims}];
    Value* made = before || !last ? PlainConstant(user, *value).write_before(before) : last;
    if (made == nullptr) continue;
    graph.replace_uses(value, made);
    if (before == nullptr) last = made;
  }
}

void write_window_masks(Graph& graph) {
  const std::vector<Value*> initializers = graph.initializers();
  Order order(graph);
  for (Value* value : initializers) {
    if (may_be_mask(*value)) write_mask(graph, *value, order);
  }
}

}  // namespace tonnx
