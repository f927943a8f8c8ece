// graph.h - the graph of a model in static single assignment: values, nodes, subgraphs; one type for ONNX and aten.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/stable_store.h"
#include "ir/attribute.h"
#include "ir/symbol.h"

namespace tonnx {

struct Node;
class Graph;

/// Where a value is used: an input of a node, or, with no node, an output of a graph, which may be one inside its own.
struct Use {
  Node* user;
  uint32_t index;
  Graph* output_of = nullptr;
};

struct Value {
  std::string name;  // unique in its graph and those around it
  Type type;
  Graph* graph = nullptr;
  Node* producer = nullptr;  // null for inputs and initializers
  uint32_t output_index = 0;
  TensorPtr constant;      // set for initializers
  SparseTensorPtr sparse;  // set beside `constant` where the file had it in sparse form
  std::vector<Use> uses;
  std::optional<Dims> known_ints;  // its elements, where they follow from shapes; filled by inference
  bool trainable = false;          // in aten: a parameter, and not a constant
  Ints file_dims;                  // in aten: the sizes that the file gives a weight which was reshaped since
};

/// Whether anybody uses the value, which may be absent.
inline bool is_used(const Value* value) { return value != nullptr && !value->uses.empty(); }

struct Node {
  Symbol domain;
  Symbol op;
  Symbol overload;
  int64_t version = 0;  // in ONNX: the opset that its meaning follows
  std::string name;
  std::vector<Attribute> attributes;
  Metadata metadata;
  std::string doc;
  Bytes source;  // the message it was read from; empty once anything about it has changed

  Graph* graph = nullptr;
  Node* previous = nullptr;
  Node* next = nullptr;

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  Value* input(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  Value* output(size_t i = 0) const { return i < outputs_.size() ? outputs_[i] : nullptr; }

  void set_input(size_t i, Value* value);  // grows the list with absent inputs as needed
  void add_input(Value* value) { set_input(inputs_.size(), value); }
  void resize_inputs(size_t count);
  void resize_outputs(size_t count);

  const Attribute* find_attribute(std::string_view name) const;
  void set_attribute(std::string_view name, AttrValue value, AttrType type = AttrType::None);
  /// Takes the attribute away and returns its value; None where there is none.
  AttrValue take_attribute(std::string_view name);
  /// To be called after any change that is made to the fields directly: it, and all nodes around it, differ from the
  /// file.
  void mark_changed();

 private:
  friend class Graph;
  void link(size_t i, Value* value);
  void unlink(size_t i);
  static void drop_use(Value* value, size_t place);

  std::vector<Value*> inputs_;        // null: an optional input that is absent
  std::vector<uint32_t> use_places_;  // where among its value's uses each input is listed
  std::vector<Value*> outputs_;       // null: an optional output that is absent
};

/// Owns its nodes and values. A node of a subgraph may use values of the graphs around it.
class Graph {
 public:
  std::string name;
  std::string doc;
  Metadata metadata;
  uint64_t given = 0;     // a bit for each field of the file's message that is there, even where it is empty
  Node* owner = nullptr;  // the node that this is a subgraph of
  Bytes extra;            // fields of the file's graph that are carried along as they are (quantization annotations)
  // How the file declares inputs, outputs and other values (ValueInfoProto); empty once the declaration is changed.
  std::vector<Bytes> input_declarations;
  std::vector<Bytes> output_declarations;
  std::vector<std::pair<Value*, Bytes>> value_declarations;

  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  const std::vector<Value*>& initializers() const { return initializers_; }

  /// A value of exactly that name, which is to become an initializer.
  Value* new_value(std::string name, Type type);
  Value* add_input(std::string name, Type type);
  /// A constant; the name is made unique.
  Value* add_initializer(std::string name, TensorPtr tensor);
  void add_initializer(Value* value);  // a new value, or an input that has a default
  void add_output(Value* value);
  void set_output(size_t i, Value* value);
  void remove_initializer(Value* value);
  /// Removes all that the question is answered with yes for, in one walk.
  void remove_initializers(const std::function<bool(const Value&)>& is_unwanted);
  void remove_input(size_t i);
  void remove_output(size_t i);

  /// Appends a node, or inserts it before `before`.
  Node* add_node(Symbol domain, Symbol op, Node* before = nullptr);
  Value* add_output_to(Node* node, std::string name, Type type = {});
  /// Makes `value`, which `node` does not produce, the node's output number i; its former producer loses it.
  void move_output(Value* value, Node* node, size_t i);
  /// Puts a node of this graph in front of another one of it.
  void move_node(Node* node, Node* before);
  /// Removes a node whose outputs nobody uses, with the graphs inside it.
  void erase(Node* node);
  void replace_uses(Value* old_value, Value* new_value);

  /// Takes back all uses that the nodes of this graph, which is to go away, make of other graphs' values.
  void release_uses();

  /// A name that no value of this graph and of those around it has: `hint` itself, or `hint_2` and so on.
  std::string unique_name(std::string_view hint);

  Node* first() const { return first_; }
  Node* last() const { return last_; }
  size_t node_count() const { return node_count_; }

  class Iterator {
   public:
    explicit Iterator(Node* node) : node_(node) {}
    Node& operator*() const { return *node_; }
    Iterator& operator++() {
      node_ = node_->next;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return node_ != other.node_; }

   private:
    Node* node_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }

 private:
  bool is_taken(const std::string& name) const;
  void unlink_output(size_t i);
  void unlink_node(Node* node);
  void mark_changed();  // the nodes around it differ from the file

  StableStore<Node> node_storage_;
  StableStore<Value> value_storage_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  size_t node_count_ = 0;
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::vector<Value*> initializers_;
  std::unordered_map<std::string, unsigned> names_;  // name -> the last number tried behind it
};

/// The graphs among the node's attributes.
std::vector<GraphPtr> subgraphs_of(const Node& node);
/// Nodes whose results nobody uses go away; weights stay.
void remove_unused_nodes(Graph& graph);

/// The inputs that have no value of their own: a file of before IR version 4 lists its weights among the inputs.
std::vector<Value*> inputs_without_values(const Graph& graph);

/// Throws Internal where the links between nodes, values and uses do not agree, or a value is used before it is made.
/// docs/ir.md lists what holds.
void check_invariants(const Graph& graph);

}  // namespace tonnx
