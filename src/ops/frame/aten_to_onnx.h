// aten_to_onnx.h - what a raising sees (an aten node whose arguments are ONNX values) and what it builds with.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "ops/frame/int_arg.h"
#include "ops/frame/op_def.h"
#include "ops/frame/opset_step.h"

namespace tonnx {

class Raising;  // the conversion that runs (conversion.h)

/// Appends ONNX nodes of the newest opset. What it makes of constants is a constant.
class OnnxBuilder {
 public:
  explicit OnnxBuilder(Raising& raising) : raising_(&raising) {}

  /// Appends a node and returns its output: `onnx("Add", {a, b})`. A null input is one that is absent. `op` may be
  /// `com.microsoft.Gelu`.
  Value* operator()(std::string_view op, const std::vector<Value*>& inputs, std::vector<Attribute> attributes = {}) {
    return all(1, op, inputs, std::move(attributes))[0];
  }
  /// All outputs of a node that has `count` of them.
  Values all(size_t count, std::string_view op, const std::vector<Value*>& inputs,
             std::vector<Attribute> attributes = {});
  /// A node without outputs yet, which is to have graphs inside.
  Node* node(std::string_view op, const std::vector<Value*>& inputs);
  /// A graph inside the node: `fill` appends its nodes, which see the values around it, and gives its outputs. Inputs
  /// are made by `add_input`.
  void add_body(Node& owner, const char* attribute, const std::function<std::vector<Value*>(Graph&)>& fill);
  Value* add_output_to(Node& node, std::string_view hint, Type type);
  /// The nodes of a graph inside the aten node, its inputs standing for these values; what its outputs are.
  std::vector<Value*> inline_graph(const Graph& aten, const std::vector<Value*>& arguments);

  // Constants. Equal small ones are one.
  Value* constant(TensorPtr tensor, std::string_view hint = "constant");
  Value* number(DType dtype, double value) { return numbers(dtype, {}, {value}); }
  Value* integer(DType dtype, int64_t value);  // exact
  Value* numbers(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values);
  Value* ints(std::vector<int64_t> values);
  Value* flag(bool value) { return number(DType::Bool, value ? 1 : 0); }

  // Integers that may only be known at run time. A value among them is a list of one int64.
  /// All of them as one list, for Reshape, Expand, Slice ...
  Value* list(const IntArgs& values);
  /// One as a list of one, and as a tensor without dimensions.
  Value* list(const IntArg& value) { return list(IntArgs{value}); }
  Value* scalar(const IntArg& value);
  IntArg add(const IntArg& a, const IntArg& b);
  IntArg sub(const IntArg& a, const IntArg& b);
  IntArg mul(const IntArg& a, const IntArg& b);
  IntArg floor_div(const IntArg& a, const IntArg& b);
  IntArg max(const IntArg& a, const IntArg& b);
  IntArg min(const IntArg& a, const IntArg& b);
  /// A size of a tensor: a number where its type says so.
  IntArg size(Value* x, int64_t axis);
  IntArgs sizes(Value* x);
  IntArg int_of(const Dim& dim);
  bool can_make(const Dim& dim) const;  // whether the sizes in it are those of tensors at hand
  IntArgs ints_of(const Shape& shape);

  // What nearly every raising needs. Nothing is made where nothing would happen.
  Value* cast(Value* x, DType to);
  Value* reshape(Value* x, const IntArgs& sizes);
  /// To a shape that is known as expressions: sizes that stay are copied, one that does not is left to the run.
  Value* reshape(Value* x, const Shape& shape);
  Value* expand(Value* x, const Shape& shape);
  Value* transpose(Value* x, std::vector<int64_t> order);
  Value* swap_axes(Value* x, int64_t a, int64_t b);
  Value* unsqueeze(Value* x, std::vector<int64_t> axes);
  Value* squeeze(Value* x, std::vector<int64_t> axes);
  Value* concat(const std::vector<Value*>& parts, int64_t axis);
  Value* gather(Value* x, Value* indices, int64_t axis);
  /// From `start` to `end` (behind the last where it is kToTheEnd).
  Value* slice(Value* x, int64_t axis, const IntArg& start, const IntArg& end, int64_t step = 1);
  Value* where(Value* condition, Value* a, Value* b) { return (*this)("Where", {condition, a, b}); }
  /// `op` is ReduceSum, ReduceMax ...; no axes: all of them.
  Value* reduce(std::string_view op, Value* x, const std::vector<int64_t>& axes, bool keepdims);
  /// 0, 1 ... as a list of int64.
  Value* range(const IntArg& end);

  /// What is known of an ONNX value.
  static DType dtype(const Value* x) { return x->type.dtype; }
  int64_t rank(const Value* x) const;
  const Shape& shape(const Value* x) const;
  Dim fresh();

  /// The opset that the model is to have in the end; a raising may choose by it, where one form cannot become the
  /// other.
  int64_t target_opset() const;
  /// Whether Dropout and BatchNormalization are written in their training forms.
  bool is_training() const;

  Raising& raising() { return *raising_; }

 private:
  Raising* raising_;
};

inline constexpr int64_t kEnd = int64_t{1} << 62;

/// An aten node whose arguments have been raised. Defaults are those of the schema. Accessors throw InvalidModel where
/// the node does not have what its schema demands, and Internal where the schema has no such name.
class AtenNode {
 public:
  AtenNode(const Node& node, const AtenOpEntry& entry, Raising& raising)
      : node_(&node), entry_(&entry), raising_(&raising) {}

  const Node& node() const { return *node_; }

  /// Whether an argument is given, and not None.
  bool has(std::string_view name) const;
  /// Whether it is a tensor, and not a number.
  bool is_tensor(std::string_view name) const;

  /// The ONNX tensor of an argument. A number is a constant without dimensions, of the type that PyTorch gives it; a
  /// complex one is a pair of float64.
  Value* input(std::string_view name) const;
  Value* find_input(std::string_view name) const;  // null where None
  CheckedList<Value*> inputs(std::string_view name) const;
  /// A list of tensors and numbers as `OnnxBuilder::inline_graph` takes them: integers are lists of one.
  CheckedList<Value*> operands(std::string_view name) const;
  /// The same, of another element type.
  Value* input_as(std::string_view name, DType dtype) const;

  /// Of an argument that is a tensor.
  const Type& type(std::string_view name) const;
  DType dtype(std::string_view name) const;
  int64_t rank(std::string_view name) const;
  const Shape& shape(std::string_view name) const;
  /// The types that PyTorch gives the results.
  const Type& output_type(size_t i = 0) const;
  DType output_dtype(size_t i = 0) const { return output_type(i).dtype; }
  const Shape& output_shape(size_t i = 0) const;
  size_t output_count() const { return node_->outputs().size(); }
  bool wants_output(size_t i) const { return node_->output(i) != nullptr && !node_->output(i)->uses.empty(); }

  /// The element type that PyTorch computes with where these arguments, tensors or numbers, meet.
  DType promoted(std::initializer_list<std::string_view> names) const;

  // Arguments that are constants.
  int64_t i(std::string_view name) const;
  double f(std::string_view name) const;  // any number
  bool flag(std::string_view name) const;
  std::string s(std::string_view name) const;
  Ints ints(std::string_view name) const;  // a number stands for a list of one
  // Numbers that something is divided by or made of: a stride, a count of groups. None is below 1.
  int64_t positive(std::string_view name) const;
  Ints positives(std::string_view name) const;
  std::optional<int64_t> find_i(std::string_view name) const;
  std::optional<double> find_f(std::string_view name) const;
  std::optional<bool> find_flag(std::string_view name) const;
  std::optional<std::string> find_s(std::string_view name) const;
  std::optional<Ints> find_ints(std::string_view name) const;
  std::optional<std::vector<double>> find_floats(std::string_view name) const;
  std::optional<DType> find_dtype(std::string_view name) const;
  GraphPtr graph(std::string_view name) const;
  /// Read and not needed: device, layout, memory_format ...
  void ignore(std::initializer_list<std::string_view> names) const;

  // Integers that may be symbolic.
  IntArg int_arg(std::string_view name) const;
  std::optional<IntArg> find_int_arg(std::string_view name) const;
  IntArgs int_args(std::string_view name) const;

  /// A dimension counted from the front, for an argument of that rank; a tensor without dimensions has dimension 0.
  int64_t dim(std::string_view name, std::string_view of) const;
  Ints dims(std::string_view name, std::string_view of) const;
  static int64_t normalized(int64_t dim, int64_t rank);

  /// Throws Unsupported: this form of the operator cannot be raised.
  template <class... Args>
  [[noreturn]] void cannot(fmt::format_string<Args...> why, Args&&... args) const {
    throw_error(ErrorKind::Unsupported, why, fmt::make_format_args(args...));
  }

  /// Throws Unsupported where an argument is given, not at its default, and was never asked for.
  void require_all_used() const;

 private:
  const AttrValue& value(std::string_view name) const;  // the default where it is not given
  Value* raised(const AttrValue& argument) const;
  const Value* aten_value(const AttrValue& argument) const;

  const Node* node_;
  const AtenOpEntry* entry_;
  Raising* raising_;
  mutable uint64_t used_ = 0;
};

// Raisings that many operators share.

/// The one tensor, as it is, through one node: Abs, Exp ... Integers are computed in the type of the result.
Values raise_elementwise(const AtenNode& n, OnnxBuilder& onnx, std::string_view op);
template <FixedText Op>
Values raise_unary(const AtenNode& n, OnnxBuilder& onnx) {
  return raise_elementwise(n, onnx, Op.value);
}
/// The argument itself: detach, clone, contiguous ...
Values raise_nothing(const AtenNode& n, OnnxBuilder& onnx);

/// PyTorch's rule for two element types; a number (a Scalar) counts only where it is of a higher kind.
DType promote(DType a, DType b);
DType promote_number(DType tensor, DType number);

}  // namespace tonnx
