// raising.h - the state of one conversion from aten to ONNX: which ONNX value stands for which aten value.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "convert/custom_ops.h"
#include "convert/scoped_map.h"
#include "ir/model.h"
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/conversion.h"

namespace tonnx {

class ModelRaising final : public Raising {
 public:
  ModelRaising(Graph& onnx, const RaiseOptions& options, const CustomOps* custom = nullptr)
      : root_(&onnx), onnx_(&onnx), options_(&options), custom_(custom) {}

  Graph& onnx() override { return *onnx_; }
  const RaiseOptions& options() const override { return *options_; }
  const Node* current() const override { return current_; }
  FreshDims& fresh() override { return fresh_; }
  void raise_nodes(const Graph& source) override;
  void in_graph(Node& owner, std::string_view attribute, const std::function<void(Graph&)>& fill) override;
  Value* value_of(const Value* aten) override;
  void define(const Value* aten, Value* onnx) override;
  /// A number that is an input: it has no dimensions.
  void define_number(const Value* aten, Value* onnx);
  void define_list(const Value* aten, Value* onnx) override;
  void learn_sizes(Value* onnx, const Type& type) override;
  Value* constant(TensorPtr tensor, std::string_view hint) override;
  Node* append(std::string_view op, const std::vector<Value*>& inputs, std::vector<Attribute> attributes) override;
  void complete(Node& node) override;
  IntArg int_of(const Dim& dim) override;
  bool can_make(const Dim& dim) const override;
  Graph& stand_ins() override { return stand_ins_; }

 private:
  void raise_node(const Node& node);
  void raise_nothing(const Node& node);
  void raise_onnx_op(const Node& node);
  Value* weight_of(const Value* aten);
  IntArg int_of_atom(const Dim::Atom& atom);
  static int64_t lift_of(const Dim::Atom& atom);
  IntArg lifted(const Dim::Atom& atom);
  IntArg quotient(const Dim& a, const Dim& b);

  Graph* root_;
  Graph* onnx_;
  const RaiseOptions* options_;
  const CustomOps* custom_;
  const Node* current_ = nullptr;
  FreshDims fresh_;
  Graph stand_ins_;
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
std::vector<UnsupportedAten> find_unsupported_aten(const Graph& aten, const CustomOps* custom = nullptr);
/// One line for each, with its count and the modules that it is in.
std::string describe(const std::vector<UnsupportedAten>& unsupported);

/// The ONNX model of an aten graph that was made functional, at the newest opset. Everything that is not supported is
/// reported in one error, before anything is raised.
Model raise(const Model& aten, const std::vector<std::string>& output_names, const RaiseOptions& options,
            const CustomOps* custom = nullptr);

}  // namespace tonnx
