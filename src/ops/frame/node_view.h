// node_view.h - an ONNX node seen through its signature: inputs and attributes by name, defaults filled in.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/frame/op_def.h"

namespace tonnx {

inline constexpr int64_t kMaxRank = 64;  // that of PyTorch; axes of tensors of unknown rank stay below it

/// All accessors throw InvalidModel where the node does not have what its signature demands, and Internal where the
/// signature has no such name.
class NodeView {
 public:
  NodeView(const Node& node, const OnnxOpEntry& entry) : node_(&node), entry_(&entry) {}

  const Node& node() const { return *node_; }
  const OnnxOpEntry& entry() const { return *entry_; }

  /// Whether an input is connected, or an attribute given.
  bool has(std::string_view name) const;
  /// The ONNX value of an input; null where it is absent.
  const Value* value(std::string_view input) const;
  /// All values of a variadic input.
  std::vector<const Value*> values(std::string_view input) const;
  size_t output_count() const { return node_->outputs().size(); }
  /// Whether anybody uses the output of that number.
  bool wants_output(size_t i) const { return node_->output(i) != nullptr && !node_->output(i)->uses.empty(); }

  const Type& type(std::string_view input) const;
  DType dtype(std::string_view input) const;
  /// The rank and the sizes of an input, where known.
  std::optional<int64_t> find_rank(std::string_view input) const;
  const Shape* find_shape(std::string_view input) const;
  /// The same; throws Unsupported where it is not known.
  int64_t rank(std::string_view input) const;

  // Attributes. The plain ones give the default of the signature, and throw where there is neither.
  int64_t i(std::string_view name) const;
  double f(std::string_view name) const;
  std::string s(std::string_view name) const;
  bool flag(std::string_view name) const { return i(name) != 0; }
  Ints ints(std::string_view name) const;
  std::optional<int64_t> find_i(std::string_view name) const;
  std::optional<double> find_f(std::string_view name) const;
  std::optional<Ints> find_ints(std::string_view name) const;
  std::optional<std::vector<double>> find_floats(std::string_view name) const;
  std::optional<std::vector<std::string>> find_strings(std::string_view name) const;
  TensorPtr find_tensor(std::string_view name) const;
  GraphPtr find_graph(std::string_view name) const;
  std::optional<Type> find_type(std::string_view name) const;
  /// An element type given by its ONNX number.
  std::optional<DType> find_dtype(std::string_view name) const;

  // Inputs whose values are known while converting.
  TensorPtr find_constant(std::string_view input) const;
  /// The elements of an integer input, where they are all known numbers. An absent input gives nothing too.
  std::optional<Ints> find_const_ints(std::string_view input) const;
  std::optional<std::vector<double>> find_const_floats(std::string_view input) const;
  /// The elements as expressions over sizes.
  std::optional<Dims> find_dims(std::string_view input) const;
  /// Throws Unsupported where the input is not constant.
  Ints const_ints(std::string_view input) const;
  int64_t const_int(std::string_view input) const;

  /// An axis, from an attribute or a constant input, counted from the front, for an input of that rank.
  int64_t axis(std::string_view name, std::string_view of) const;
  /// The same from an attribute; where the rank is not known, as it stands there, which may be from the back.
  int64_t axis_of_any_rank(std::string_view name, std::string_view of) const;
  /// `axis` brought into [0, rank), or an error.
  static int64_t normalized(int64_t axis, int64_t rank);

 protected:
  int input_index(std::string_view name) const;
  const Attribute* attribute(std::string_view name, AttrType type) const;
  const AttrValue* attribute_or_default(std::string_view name, AttrType type) const;
  void mark_used_input(int index) const { used_inputs_ |= uint64_t{1} << (index & 63); }

  const Node* node_;
  const OnnxOpEntry* entry_;
  mutable uint64_t used_inputs_ = 0;
  mutable uint64_t used_attributes_ = 0;
};

/// Checks arity, attribute names and types against the signature. Throws InvalidModel.
void check_against_signature(const Node& node, const OnnxOpEntry& entry);

/// The tensor that a node of the operator Constant gives; null where it gives strings, or says nothing.
TensorPtr find_tensor_of_constant(const Node& node);

/// The known elements of a value: a constant, or what follows from shapes.
std::optional<Dims> find_dims(const Value& value);

}  // namespace tonnx
