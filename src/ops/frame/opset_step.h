// opset_step.h - what one step of an operator's history sees and may change: the node, and nodes around it.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/frame/op_def.h"

namespace tonnx {

/// A node of ONNX on its way from one version of its operator to the next. Going up, the types of its inputs are known
/// as far as inference goes.
class OnnxEdit {
 public:
  OnnxEdit(Node& node, int step_to, bool upwards) : node_(&node), to_(step_to), upwards_(upwards) {}

  Node& node() { return *node_; }
  Graph& graph() { return *node_->graph; }

  int64_t i(std::string_view attribute, int64_t otherwise) const;
  std::optional<std::vector<int64_t>> find_ints(std::string_view attribute) const;
  std::optional<int64_t> rank(size_t input) const;
  /// The numbers of a constant input.
  std::optional<std::vector<int64_t>> const_ints(size_t input) const;
  std::optional<std::vector<double>> const_floats(size_t input) const;

  Value* ints(std::vector<int64_t> values, std::string_view hint = "ints");
  Value* constant(TensorPtr tensor, std::string_view hint = "constant");

  /// Inserts a node before this one and returns its output.
  Value* before(std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes = {});
  /// The same for a node of several outputs. `op` may be `com.microsoft.Gelu`.
  Node* node_before(std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes = {},
                    size_t outputs = 1);
  /// In an expansion: these values, of nodes that were made before this one, are its outputs from now on; a null one is
  /// an output that nobody uses. The node itself goes away.
  bool replace_with(const std::vector<Value*>& results);
  /// Gives this node a new value in place of its output number i, and makes `op` produce the old one from it.
  /// `inputs` are those of the new node; a null first one stands for the new value.
  Node* after(size_t i, std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes = {});

  /// Throws Unsupported: this node cannot go down.
  template <class... Args>
  [[noreturn]] void cannot(fmt::format_string<Args...> why, Args&&... args) const;

  /// The nodes that the step made.
  const std::vector<Node*>& created() const { return created_; }
  bool is_replaced() const { return is_replaced_; }

 private:
  Node* make(std::string_view op, const std::vector<Value*>& inputs, std::vector<Attribute> attributes, Node* before);

  Node* node_;
  int to_;
  bool upwards_;
  std::vector<Node*> created_;
  bool is_replaced_ = false;
};

/// The first step of the operator's history behind a version; null where there is none.
const OpsetStep* next_step(const OnnxOpEntry& entry, int64_t version);

[[noreturn]] void fail_step(const Node& node, const std::string& why);

template <class... Args>
void OnnxEdit::cannot(fmt::format_string<Args...> why, Args&&... args) const {
  fail_step(*node_, fmt::format(why, std::forward<Args>(args)...));
}

// Steps that many operators share. The template arguments are fixed when the table is written.

/// A text that can be a template argument.
template <size_t N>
struct FixedText {
  constexpr FixedText(const char (&text)[N]) { std::copy_n(text, N, value); }  // NOLINT
  char value[N];
};

void drop_attribute(OnnxEdit& edit, std::string_view name);
void attribute_to_input(OnnxEdit& edit, std::string_view name, size_t input);
void input_to_attribute(OnnxEdit& edit, std::string_view name, size_t input);
void axes_from_front(OnnxEdit& edit, std::string_view name, bool added);
/// Going down: refuses the attribute unless it is at its default, and drops it.
void require_default(OnnxEdit& edit, std::string_view name, int64_t otherwise);

/// The attribute meant nothing, such as consumed_inputs of opset 1.
template <FixedText Name>
void up_drop(OnnxEdit& edit) {
  drop_attribute(edit, Name.value);
}
/// A list attribute became an input.
template <FixedText Name, size_t Input>
void up_attr_to_input(OnnxEdit& edit) {
  attribute_to_input(edit, Name.value, Input);
}
template <FixedText Name, size_t Input>
void down_input_to_attr(OnnxEdit& edit) {
  input_to_attribute(edit, Name.value, Input);
}
/// An integer attribute that the step brought: without it only at its default.
template <FixedText Name, int64_t Default>
void down_require_default(OnnxEdit& edit) {
  require_default(edit, Name.value, Default);
}
/// Axes count from the front only in the older version. `Added`: they are axes of the output, which has so many more
/// dimensions as there are axes.
template <FixedText Name, bool Added = false>
void down_axes_from_front(OnnxEdit& edit) {
  axes_from_front(edit, Name.value, Added);
}
/// The value, of that rank, with `count` more sizes of 1 behind the others.
Value* with_trailing_ones(OnnxEdit& edit, Value* value, int64_t rank, int64_t count);
/// Opsets 1 to 6 broadcast only on request: `broadcast` and `axis`.
void up_legacy_broadcast(OnnxEdit& edit);
void down_legacy_broadcast(OnnxEdit& edit);
/// The older version takes and gives no sequences; or no optionals.
void down_without_sequences(OnnxEdit& edit);
void down_without_optionals(OnnxEdit& edit);

}  // namespace tonnx
