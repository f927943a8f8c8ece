// inference.h - types, symbolic shapes and constants of a whole graph, in one walk from the first node to the last.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "convert/evaluate.h"
#include "ir/model.h"
#include "ops/frame/infer.h"

namespace tonnx {

struct InferenceOptions {
  /// Nodes are brought to the newest opset, and those that can be written in terms of others are; a branch that is
  /// known to be taken stands in place of its If. Otherwise the graph stays as it is, and a node of an older form is
  /// looked at through a copy that is brought up.
  bool rewrites = true;
  /// Nodes that nothing is done to.
  std::function<bool(const Node&)> leave_alone;
  FoldLimits fold;
  /// Says what is known of the outputs of such nodes, and of those whose operators the tables do not have.
  std::function<void(Node&)> infer_other;
  /// Called before and after a node is looked at, where nothing is rewritten; with those of copies that are tried too.
  std::function<void(Node&)> before, after;
};

class OnnxInference {
 public:
  explicit OnnxInference(InferenceOptions options) : options_(std::move(options)) {}

  /// All nodes, in order.
  void walk(Graph& graph);
  /// One node, whose inputs are known.
  void visit(Node& node);

  FreshDims& fresh() { return fresh_; }

 private:
  void visit_node(Node& node);
  void name_unknown_dims(Graph& graph);
  void visit_at_newest(Node& node, const OnnxOpEntry& entry);
  void visit_as_is(Node& node, const OnnxOpEntry& entry);
  void infer_from_copy(Node& node);
  const OnnxOpEntry& upgrade(Node& node, const OnnxOpEntry& entry, std::vector<Node*>& behind);
  bool expand(Node& node, const OnnxOpEntry& entry);
  void visit_chain(Node& node);
  void infer(Node& node, const OnnxOpEntry& entry);
  void complete(Node& node, const std::vector<Type>& declared);

  // inference_control.cpp
  bool visit_control(Node& node, const OnnxOpEntry& entry);
  bool inline_branch(Node& node);
  void visit_if(Node& node);
  void visit_loop(Node& node);
  void walk_body(Graph& body, const std::vector<Type>& carried, const std::vector<std::optional<Dim>>& counters);
  Type merged(const Type& a, const Type& b, int mark);
  Type outside(Type type, int mark);
  Dim trip_count(const Node& node, const Graph& body);

  InferenceOptions options_;
  FreshDims fresh_;
  int loop_depth_ = 0;
};

/// Brings every node of ai.onnx to kNewestOpset and infers types and shapes. Nodes that `leave_alone` accepts, and
/// those of operators that the tables do not have, stay as they are.
void upgrade_and_infer(Graph& graph, const std::function<bool(const Node&)>& leave_alone = nullptr,
                       const FoldLimits& fold = {}, const std::function<void(Node&)>& infer_other = nullptr);

/// `node 'name' (Op-version)`
std::string describe(const Node& node);

}  // namespace tonnx
