// conversion.h - what the builders ask of the conversion that they work for (convert/lowering.h, convert/raising.h).
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/frame/infer.h"
#include "ops/frame/int_arg.h"

namespace tonnx {

/// A conversion from ONNX to aten: which aten value stands for which ONNX value.
class Lowering {
 public:
  virtual ~Lowering() = default;

  /// The graph that nodes are appended to: the main one, or a graph inside it.
  virtual Graph& aten() = 0;
  /// The node that is being lowered.
  virtual const Node* current() const = 0;

  /// All nodes of a graph, in order.
  virtual void lower_nodes(const Graph& source) = 0;
  /// Runs `fill` with a new graph, which is to be that attribute of the node, as the one that nodes are appended to.
  virtual void in_graph(Node& owner, std::string_view attribute, const std::function<void(Graph&)>& fill) = 0;

  /// The aten tensor of an ONNX value; constants and known integers are made when first asked for.
  virtual Value* tensor_of(const Value* value) = 0;
  virtual void define(const Value* onnx, Value* aten) = 0;
  /// A symbol that stands for an integer of the aten graph.
  virtual void define_int(const Dim& symbol, Value* aten) = 0;

  /// A constant of the main graph, whatever graph is being filled.
  virtual Value* add_constant(std::string name, TensorPtr tensor) = 0;
  /// The same constant with other sizes, one for all that ask for it.
  virtual Value* reshaped(Value* constant, std::vector<int64_t> dims) = 0;

  /// An expression over sizes, as numbers and sizes of tensors that exist at this point.
  virtual IntArg int_of(const Dim& dim) = 0;
  virtual IntArg size_of(Value* aten, int64_t dim) = 0;
  /// The integers of a list as a tensor.
  virtual Value* tensor_of_ints(const IntArgs& ints, bool is_scalar, DType dtype) = 0;
};

struct RaiseOptions {
  int64_t opset = 20;
  bool training = false;
  bool keeps_weights = false;  // what is computed of weights is left to the runtime, but for turned ones
  bool source_lines = true;    // whether nodes say which line of the model they come from
};

/// A conversion from aten to ONNX: which ONNX value stands for which aten value.
class Raising {
 public:
  virtual ~Raising() = default;

  /// The graph that nodes are appended to: the main one, or a graph inside it.
  virtual Graph& onnx() = 0;
  virtual const RaiseOptions& options() const = 0;
  /// The node that is being raised.
  virtual const Node* current() const = 0;
  virtual FreshDims& fresh() = 0;

  virtual void raise_nodes(const Graph& source) = 0;
  /// Runs `fill` with a new graph, which is to be that attribute of the node, as the one that nodes are appended to.
  virtual void in_graph(Node& owner, std::string_view attribute, const std::function<void(Graph&)>& fill) = 0;

  /// The ONNX tensor of an aten tensor, or of a number: integers are lists of one, other numbers have no dimensions.
  virtual Value* value_of(const Value* aten) = 0;
  virtual void define(const Value* aten, Value* onnx) = 0;
  /// A number that is an input of a graph inside a node, in the form that numbers have.
  virtual void define_list(const Value* aten, Value* onnx) = 0;
  /// Remembers which tensor has which sizes.
  virtual void learn_sizes(Value* onnx, const Type& type) = 0;

  /// A constant of the main graph, whatever graph is being filled; equal small ones are one.
  virtual Value* constant(TensorPtr tensor, std::string_view hint) = 0;
  virtual Node* append(std::string_view op, const std::vector<Value*>& inputs, std::vector<Attribute> attributes) = 0;
  /// Types of the outputs, and their values where all inputs are constants.
  virtual void complete(Node& node) = 0;

  virtual IntArg int_of(const Dim& dim) = 0;
  virtual bool can_make(const Dim& dim) const = 0;
  /// A graph of aten nodes that are raised in place of others.
  virtual Graph& stand_ins() = 0;
};

}  // namespace tonnx
