// graph.h - a model seen from outside: its graphs, nodes, values and attributes.
//
// Views are as large as a pointer or two, and copied at will. They are valid as long as the model is there, and that
// part of it is not changed; a text or a list that they give by reference is valid as long.
#pragma once
#include <tonnx/tensor.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

TONNX_BEGIN

namespace detail {
struct Graph;
struct Node;
struct Value;
struct Attribute;
}  // namespace detail

class GraphView;
class NodeView;

/// Keys and values.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// What nodes give to one another. An input or output of a node that is left out is a view of nothing, which is
/// false.
class TONNX_API ValueView {
 public:
  ValueView() = default;
  explicit ValueView(const detail::Value* value) : value_(value) {}
  explicit operator bool() const { return value_ != nullptr; }
  bool operator==(const ValueView&) const = default;

  std::string_view name() const;
  Type type() const;
  bool is_input() const;        ///< of its graph
  bool is_output() const;       ///< of its graph, or of one inside it
  bool is_initializer() const;  ///< whether it has a value
  /// Of an initializer. Throws Error where the value is none.
  TensorView tensor() const;
  /// Whether it is a parameter that is trained; known of programs of PyTorch.
  bool is_trainable() const;
  /// The node that gives it; nothing, which is false, for inputs and initializers.
  NodeView producer() const;
  /// The nodes that take it, each as often as it does.
  std::vector<NodeView> users() const;

  const detail::Value* handle() const { return value_; }

 private:
  const detail::Value* value_ = nullptr;
};

/// A constant argument of a node: an attribute in ONNX, any argument in a program of PyTorch.
class TONNX_API AttributeView {
 public:
  enum class Kind : uint8_t {
    None,
    Bool,
    Int,
    Float,
    Text,
    DType,
    Value,  ///< a value of the graph stands here, in programs of PyTorch
    Type,
    Tensor,
    SparseTensor,
    Graph,
    Ints,
    Floats,
    Texts,
    List,  ///< of any of these
  };
  AttributeView(const detail::Node* node, const detail::Attribute* attribute, std::string_view name)
      : node_(node), attribute_(attribute), name_(name) {}

  std::string_view name() const { return name_; }
  Kind kind() const;
  // Each throws Error where the attribute is of another kind.
  int64_t as_int() const;  ///< also a Bool, and the number of a DType
  double as_float() const;
  std::string_view as_text() const;
  std::vector<int64_t> as_ints() const;
  std::vector<double> as_floats() const;
  std::vector<std::string> as_texts() const;
  TensorView as_tensor() const;
  GraphView as_graph() const;
  ValueView as_value() const;
  std::vector<AttributeView> items() const;

  const detail::Attribute* handle() const { return attribute_; }

 private:
  const detail::Node* node_;
  const detail::Attribute* attribute_;
  std::string_view name_;
};

class TONNX_API NodeView {
 public:
  NodeView() = default;
  explicit NodeView(const detail::Node* node) : node_(node) {}
  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const NodeView&) const = default;

  std::string_view op() const;        ///< `Conv`, `conv2d`
  std::string_view domain() const;    ///< empty for ai.onnx; `aten` in programs of PyTorch
  std::string_view overload() const;  ///< `Tensor`, in programs of PyTorch
  int64_t version() const;            ///< of the opset that it follows
  std::string_view name() const;      ///< of a program of PyTorch: the path of its module
  std::string_view doc() const;

  size_t input_count() const;
  ValueView input(size_t i) const;  ///< nothing past the last too
  std::vector<ValueView> inputs() const;
  size_t output_count() const;
  ValueView output(size_t i = 0) const;
  std::vector<ValueView> outputs() const;

  std::vector<AttributeView> attributes() const;
  std::optional<AttributeView> find_attribute(std::string_view name) const;
  std::vector<GraphView> subgraphs() const;
  const Metadata& metadata() const;
  GraphView graph() const;

  const detail::Node* handle() const { return node_; }

 private:
  const detail::Node* node_ = nullptr;
};

/// The nodes of a graph, in the order in which they run.
class TONNX_API GraphView {
 public:
  class TONNX_API Iterator {
   public:
    explicit Iterator(const detail::Node* node) : node_(node) {}
    const NodeView& operator*() const { return node_; }
    const NodeView* operator->() const { return &node_; }
    Iterator& operator++();
    bool operator==(const Iterator&) const = default;

   private:
    NodeView node_;
  };

  explicit GraphView(const detail::Graph* graph) : graph_(graph) {}

  Iterator begin() const;
  Iterator end() const { return Iterator(nullptr); }
  size_t node_count() const;

  std::string_view name() const;
  std::string_view doc() const;
  const Metadata& metadata() const;
  /// Those that a caller gives; a file from before IR version 4 lists its weights among the inputs, and they are left
  /// out.
  std::vector<ValueView> inputs() const;
  std::vector<ValueView> outputs() const;
  std::vector<ValueView> initializers() const;
  /// Nothing where there is none. Looks through the whole graph.
  ValueView find_value(std::string_view name) const;
  NodeView find_node(std::string_view name) const;

  const detail::Graph* handle() const { return graph_; }

 private:
  const detail::Graph* graph_;
};

TONNX_END
