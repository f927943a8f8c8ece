// raising.h - the state of one conversion from aten to ONNX: which ONNX value stands for which aten value.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "convert/scoped_map.h"
#include "ir/model.h"
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/infer.h"

namespace tonnx {

struct RaiseOptions {
  int64_t opset = 20;
  bool training = false;
};

class Raising {
 public:
  Raising(Graph& onnx, const RaiseOptions& options) : root_(&onnx), onnx_(&onnx), options_(&options) {}

  /// The graph that nodes are appended to: the main one, or a graph inside it.
  Graph& onnx() { return *onnx_; }
  const RaiseOptions& options() const { return *options_; }
  const Node* current() const { return current_; }
  FreshDims& fresh() { return fresh_; }

  void raise_nodes(const Graph& source);
  /// Runs `fill` with a new graph, which is to be that attribute of the node, as the one that nodes are appended to.
  void in_graph(Node& owner, std::string_view attribute, const std::function<void(Graph&)>& fill);

  /// The ONNX tensor of an aten tensor, or of a number: integers are lists of one, other numbers have no dimensions.
  Value* value_of(const Value* aten);
  void define(const Value* aten, Value* onnx);
  /// A number that is an input: it has no dimensions.
  void define_number(const Value* aten, Value* onnx);
  /// A number that is an input of a graph inside a node, in the form that numbers have.
  void define_list(const Value* aten, Value* onnx);
  /// Remembers which tensor has which sizes.
  void learn_sizes(Value* onnx, const Type& type);

  /// A constant of the main graph, whatever graph is being filled; equal small ones are one.
  Value* constant(TensorPtr tensor, std::string_view wish);
  Node* append(std::string_view op, const std::vector<Value*>& inputs, std::vector<Attribute> attributes);
  /// Types of the outputs, and their values where all inputs are constants.
  void complete(Node& node);

  IntArg int_of(const Dim& dim);
  bool can_make(const Dim& dim) const;

 private:
  void raise_node(const Node& node);
  void raise_onnx_op(const Node& node);
  Value* weight_of(const Value* aten);
  IntArg int_of_atom(const Dim::Atom& atom);

  Graph* root_;
  Graph* onnx_;
  const RaiseOptions* options_;
  const Node* current_ = nullptr;
  FreshDims fresh_;
  std::unordered_map<const Value*, Value*> weights_;
  std::map<std::string, Value*> constants_;  // by type, sizes and bytes
  ScopedMap<const Value*, Value*> values_;
  ScopedMap<std::string, std::pair<Value*, int64_t>> where_;  // text of a size -> a tensor that has it
  ScopedMap<std::string, Value*> sizes_;                      // text of a size -> a list of one
};

/// An operator that cannot be raised.
struct UnsupportedAten {
  std::string target;              // aten::foo.Tensor
  std::string reason;              // empty where the tables do not have it
  std::vector<std::string> paths;  // of the modules that call it, one for each call
};
std::vector<UnsupportedAten> find_unsupported_aten(const Graph& aten);
/// One line for each, with its count and the modules that it is in.
std::string describe(const std::vector<UnsupportedAten>& unsupported);

/// The ONNX model of an aten graph that was made functional, at the newest opset. Everything that is not supported is
/// reported in one error, before anything is raised.
Model raise(const Model& aten, const std::vector<std::string>& output_names, const RaiseOptions& options);

}  // namespace tonnx
