// lowering.h - the state of one conversion from ONNX to aten: which aten value stands for which ONNX value.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "convert/custom_ops.h"
#include "convert/scoped_map.h"
#include "ir/model.h"
#include "ops/frame/conversion.h"
#include "ops/frame/onnx_to_aten.h"

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
  std::vector<ExternalMapping> mappings;    // one for each such node, in order; none: as the node has them
  std::shared_ptr<const CustomOps> custom;  // operators that functions of the user's own lower
};

class ModelLowering final : public Lowering {
 public:
  ModelLowering(Graph& aten, const LoweringOptions& options) : root_(&aten), aten_(&aten), options_(&options) {}

  Graph& aten() override { return *aten_; }
  const Node* current() const override { return current_; }
  void lower_nodes(const Graph& source) override;
  void in_graph(Node& owner, std::string_view attribute, const std::function<void(Graph&)>& fill) override;
  Value* tensor_of(const Value* value) override;
  void define(const Value* onnx, Value* aten) override;
  void define_int(const Dim& symbol, Value* aten) override { sizes_.set(symbol.text(), aten); }
  Value* add_constant(std::string name, TensorPtr tensor) override {
    return root_->add_initializer(std::move(name), std::move(tensor));
  }
  Value* reshaped(Value* constant, std::vector<int64_t> dims) override;
  IntArg int_of(const Dim& dim) override;
  IntArg size_of(Value* aten, int64_t dim) override;
  Value* tensor_of_ints(const IntArgs& ints, bool is_scalar, DType dtype) override;

 private:
  void lower_node(const Node& node);
  void define_outputs(const Node& node, const Values& outputs);
  void lower_custom(const Node& node, const CustomOnnxOp& op);
  void lower_external(const Node& node);
  bool is_new_symbol(const Value& value) const;
  void hand_on_weights(const Node& node);
  Value* constant_of(const Value* value);
  IntArg int_of_atom(const Dim::Atom& atom);

  Graph* root_;
  Graph* aten_;
  const LoweringOptions* options_;
  const Node* current_ = nullptr;
  size_t external_count_ = 0;
  std::unordered_map<const Value*, Value*> constants_;
  std::map<std::pair<const Value*, std::vector<int64_t>>, Value*> reshaped_;
  ScopedMap<const Value*, Value*> values_;
  ScopedMap<std::string, std::pair<Value*, int64_t>> where_;  // text of a size -> a tensor that has it
  ScopedMap<std::string, Value*> sizes_;                      // text of a size -> the integer
  ScopedMap<std::pair<const Value*, int64_t>, Value*> size_values_;
};

/// The model must have been brought to the newest opset and inferred. All nodes that are not supported are reported in
/// one error, before anything is lowered.
GraphPtr lower(const Model& model, const LoweringOptions& options = {});

/// Whether a converter of the user's own takes the node.
bool is_external(const Node& node, const LoweringOptions& options);
/// All such nodes, in the order in which they are lowered.
std::vector<const Node*> external_nodes(const Model& model, const LoweringOptions& options);

}  // namespace tonnx
