// rewriter.h - how passes change graphs of ONNX.
#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/frame/node_facts.h"

namespace tonnx {

/// How one node is written as the newest opset has it; what it gives is called after `hint`.
struct NewNode {
  std::string_view op;
  std::vector<Value*> inputs;
  std::vector<Attribute> attributes = {};
  std::string_view domain = {};
  size_t outputs = 1;
};

/// Changes a graph of ONNX whose types have been inferred. Nodes follow the opset of the model throughout.
class Rewriter {
 public:
  struct Hooks {
    /// Brings a node that was made as the newest opset has it to the model's opset, with what that needs around it.
    /// False where the model's opset cannot say it: the node is as it was then.
    std::function<bool(Node&)> bring_down;
    /// Finds out types and constants of the outputs of a node that was made or changed.
    std::function<void(Node&)> infer;
    /// Whether a new constant of so many bytes in place of so many others is not too much.
    std::function<bool(int64_t added, int64_t removed)> may_grow;
    /// The graph of the model itself; others are inside nodes, or bodies of functions.
    const Graph* main = nullptr;
    /// Whether a weight has to stay as it is.
    std::function<bool(const Value&)> keeps_weight = nullptr;
    /// Whether the model may be trained afterwards.
    bool is_for_training = false;
  };
  Rewriter(int64_t opset, Hooks hooks) : opset_(opset), hooks_(std::move(hooks)) {}

  /// The opset of ai.onnx that the model follows.
  int64_t opset() const { return opset_; }
  bool has_op(std::string_view op) const;
  bool is_main(const Graph& graph) const { return &graph == hooks_.main; }
  bool keeps_weight(const Value& value) const { return hooks_.keeps_weight && hooks_.keeps_weight(value); }
  bool is_for_training() const { return hooks_.is_for_training; }

  /// Adds a node in front of another and gives its first output, whose type is known. Null where the opset of the model
  /// cannot say it: nothing has changed then.
  Value* add(Node& before, NewNode node, std::string_view hint = {});
  /// A constant that the graph is to use.
  Value* constant(Graph& graph, TensorPtr tensor, std::string_view hint);
  Value* ints(Graph& graph, std::vector<int64_t> values, std::string_view hint = "ints");

  /// Makes all users of a value use another one, which is the same. An output of a graph keeps its name: the other one
  /// takes it, or, where it has to keep its own, the value stays for that use alone. Says whether nobody uses the value
  /// any more; then the node that made it goes away, and all that was only made for it.
  bool replace(Value* value, Value* by);
  /// Makes an input of a node another value, of the same type, and removes what was only made for the old one.
  void set_input(Node& node, size_t i, Value* value);
  /// After a change of a node: its outputs are looked at anew.
  void infer(Node& node) { hooks_.infer(node); }
  /// Removes a node that nobody uses, and all nodes that were only made for it.
  void erase_unused(Node* node);
  bool may_grow(int64_t added, int64_t removed) const { return hooks_.may_grow(added, removed); }

 private:
  int64_t opset_;
  Hooks hooks_;
};

/// What makes a Reshape give this shape, as constants; nothing where that needs a size that only the run knows.
std::optional<std::vector<int64_t>> reshape_to(const Shape& from, const Shape& to, bool zero_is_zero = false);

/// The elements of x in the shape of y, before the node: Squeeze or Unsqueeze where only axes of size 1 come or go,
/// otherwise Reshape; null where its shape needs a size that only the run knows.
Value* add_reshape(Node& node, Rewriter& rewriter, Value* x, const Value* y);

}  // namespace tonnx
