// edit.h - changes a graph of ONNX: nodes, values, inputs, outputs, weights.
#pragma once
#include <tonnx/graph.h>

TONNX_BEGIN

class Model;

/// The value of an attribute that is to be set.
class TONNX_API AttributeValue {
 public:
  AttributeValue(int64_t value);                        // NOLINT: all of these are attributes
  AttributeValue(int value);                            // NOLINT
  AttributeValue(double value);                         // NOLINT
  AttributeValue(const char* value);                    // NOLINT
  AttributeValue(std::string value);                    // NOLINT
  AttributeValue(std::vector<int64_t> value);           // NOLINT
  AttributeValue(std::vector<double> value);            // NOLINT
  AttributeValue(std::vector<std::string> value);       // NOLINT
  AttributeValue(const Tensor& value);                  // NOLINT
  explicit AttributeValue(const AttributeView& other);  // one of another node, but for graphs: see add_graph()
  AttributeValue(const AttributeValue& other);
  AttributeValue(AttributeValue&& other) noexcept;
  AttributeValue& operator=(AttributeValue other) noexcept;
  ~AttributeValue();

 private:
  friend struct Access;
  struct Content;
  Content* content_;
};

/// What is said of a node when it is made.
struct NodeOptions {
  std::string name = {};
  std::string domain = {};                ///< empty for ai.onnx
  std::vector<std::string> outputs = {};  ///< names; nothing: one, with a name that is made
  std::vector<std::pair<std::string, AttributeValue>> attributes = {};
  NodeView before = {};  ///< which it stands in front of; nothing: at the end
};

/// Changes a graph; the views that it takes and gives are of that graph, or, as inputs of nodes, of the graphs around
/// it. A change costs the same in a small graph and in a large one, but for those that say otherwise. What the
/// changes come to is looked at by Model::check(), and so before a model that was edited is written or simplified:
/// names may be given twice on the way, and nodes stand in any order.
class TONNX_API GraphEditor {
 public:
  GraphView graph() const;

  ValueView add_input(std::string name, const Type& type);
  /// A weight; it shares the bytes of the tensor.
  ValueView add_initializer(std::string name, const Tensor& tensor);
  void add_output(ValueView value);
  /// `op` is one of the model's opset.
  NodeView add_node(std::string_view op, const std::vector<ValueView>& inputs, const NodeOptions& options = {});
  /// A node in the place of another, whose outputs become its own, with their names; the other one is gone.
  NodeView replace(NodeView node, std::string_view op, const std::vector<ValueView>& inputs,
                   const NodeOptions& options = {});

  void set_input(NodeView node, size_t i, ValueView value);
  void set_attribute(NodeView node, std::string_view name, const AttributeValue& value);
  void remove_attribute(NodeView node, std::string_view name);
  void set_metadata(NodeView node, std::string key, std::string value);
  void rename(NodeView node, std::string name);
  void rename(ValueView value, std::string name);
  /// What a value is, as a file declares it.
  void set_type(ValueView value, const Type& type);
  /// All that took `old_value` takes `new_value`, outputs of the graph too.
  void replace_uses(ValueView old_value, ValueView new_value);
  /// A node whose outputs nobody uses.
  void remove(NodeView node);
  /// An input that nobody uses, or one that stops to be an output, or a weight that nobody uses. Each looks through
  /// the list of those.
  void remove_input(ValueView value);
  void remove_output(ValueView value);
  void remove_initializer(ValueView value);
  /// Removes all that no output of the graph needs, and says how many nodes that were.
  size_t remove_unused();
  /// Puts nodes in an order in which they can run, and otherwise leaves them as they are. Throws Error where there is
  /// a cycle.
  void sort();
  /// A graph inside a node, such as the branch of an If.
  GraphEditor edit(const AttributeView& graph) const;
  /// An attribute that is a new, empty graph.
  GraphEditor add_graph(NodeView node, std::string_view attribute);

 private:
  friend class Model;
  GraphEditor(const detail::Graph* graph, void* content) : graph_(graph), content_(content) {}
  const detail::Graph* graph_;
  void* content_;
};

TONNX_END
