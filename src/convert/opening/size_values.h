// size_values.h - expressions over sizes as nodes of ONNX that compute them.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "ir/dim.h"
#include "ir/model.h"

namespace tonnx {

/// False for the graph of a copy that is only tried.
bool is_in_model(const Graph& graph, const Graph& main);

class SizeValues {
 public:
  /// `find_source`: a tensor and the axis that has the size of a symbol.
  using Source = std::pair<Value*, int64_t>;
  using FindSource = std::function<std::optional<Source>(const std::string& symbol)>;
  using Visit = std::function<void(Node&)>;
  /// `infer` finds out the types of what a node gives that was made.
  SizeValues(Model& model, FindSource find_source, Visit infer);

  /// A list of these sizes. A size whose symbols are those of inputs is computed once, at the start of the model;
  /// others where they are asked for, in front of `before`. Null where a symbol has no source, or the opset of the
  /// model cannot compute it.
  Value* list(const Dims& sizes, Node& before, std::string_view hint);

  /// Adds a node of the model's opset.
  Value* add(Node& before, std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes = {},
             std::string_view hint = {});
  Value* ints(Graph& graph, std::vector<int64_t> values, std::string_view hint);
  Value* constant(Graph& graph, TensorPtr tensor, std::string_view hint);
  /// A size as a tensor of no dimensions; null as for `list`.
  Value* scalar(const Dim& size, Node& before, std::string_view hint);
  int64_t opset() const { return opset_; }
  /// Removes what was made and is not used after all.
  void remove_unused();

 private:
  Value* size(const Dim& size, Node& before);
  Value* atom(const Dim::Atom& atom, Node& before);

  Model& model_;
  FindSource find_source_;
  Visit infer_;
  int64_t opset_;
  Node* start_;                          // the first node of the file's own
  std::map<std::string, Value*> known_;  // by text, at the start of the model
  std::vector<Node*> made_;
  std::vector<Value*> constants_;
};

}  // namespace tonnx
