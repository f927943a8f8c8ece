// lowering.h - the state of one conversion from ONNX to aten: which aten value stands for which ONNX value.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/model.h"
#include "ops/lowering.h"

namespace tonnx {

/// A node that a converter of the user's own takes over.
struct ExternalNode {
  std::string domain;
  std::string op;
  int64_t version;  // of the schema, or of the imported opset where the domain is not ours
};

/// Which values the module that stands for such a node takes and gives, by name; an empty name is None.
struct ExternalMapping {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

struct LoweringOptions {
  std::vector<ExternalNode> external;
  std::vector<ExternalMapping> mappings;  // one for each such node, in order; none: as the node has them
};

class Lowering {
 public:
  explicit Lowering(Graph& aten) : aten_(&aten) {}

  Graph& aten() { return *aten_; }
  const Node* current() const { return current_; }
  void set_current(const Node* node) { current_ = node; }

  /// The aten tensor of an ONNX value; constants and known integers are made when first asked for.
  Value* tensor_of(const Value* value);
  /// Whether the value has an aten tensor already, or can have one.
  bool has(const Value* value) const { return values_.contains(value); }
  void define(const Value* onnx, Value* aten);

  /// The same constant with other sizes, one for all that ask for it.
  Value* reshaped(Value* constant, std::vector<int64_t> dims);

  /// An expression over sizes, as numbers and sizes of tensors that exist at this point.
  IntArg int_of(const Dim& dim);
  IntArg size_of(Value* aten, int64_t dim);
  /// The integers of a list as a tensor.
  Value* tensor_of_ints(const IntArgs& ints, bool is_scalar, DType dtype);

 private:
  Value* constant_of(const Value* value);
  IntArg int_of_atom(const Dim::Atom& atom);

  Graph* aten_;
  const Node* current_ = nullptr;
  std::unordered_map<const Value*, Value*> values_;
  std::map<std::pair<const Value*, std::vector<int64_t>>, Value*> reshaped_;
  std::unordered_map<std::string, std::pair<Value*, int64_t>> where_;  // text of a size -> a tensor that has it
  std::unordered_map<std::string, Value*> sizes_;                      // text of a size -> the integer
  std::unordered_map<const Value*, std::unordered_map<int64_t, Value*>> size_values_;
};

/// The model must have been brought to the newest opset and inferred. All nodes that are not supported are reported in one
/// error, before anything is lowered.
GraphPtr lower(const Model& model, const LoweringOptions& options = {});

/// Whether a converter of the user's own takes the node.
bool is_external(const Node& node, const LoweringOptions& options);
/// All such nodes of the main graph.
std::vector<const Node*> external_nodes(const Model& model, const LoweringOptions& options);

}  // namespace tonnx
