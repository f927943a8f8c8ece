// check.cpp - whether a model of ONNX that was edited is one.
#include <set>
#include <unordered_map>

#include "api/internal.h"
#include "convert/inference.h"
#include "ops/frame/node_view.h"
#include "ops/frame/op_def.h"

namespace tonnx::v1 {
namespace {

class Check {
 public:
  explicit Check(const core::Model& model) {
    for (const core::Function& function : model.functions)
      functions_.emplace(function.domain.str(), function.name.str());
  }

  void graph(const core::Graph& graph) {
    const size_t outer = defined_.size();
    if (outer == 0) reserve(graph);
    for (const core::Value* value : graph.inputs()) define(*value);
    for (const core::Value* value : graph.initializers()) {
      if (!is_known(*value)) define(*value);
    }
    for (const core::Node& each : graph) node(each);
    for (const core::Value* output : graph.outputs()) use(*output, nullptr);
    if (outer == 0) return;
    for (size_t i = outer; i < defined_.size(); ++i) names_.erase(defined_[i]->name);
    defined_.resize(outer);
  }

 private:
  void node(const core::Node& node) {
    core::in_context([&] { return "checking " + core::describe(node); },
                     [&] {
                       for (const core::Value* input : node.inputs()) {
                         if (input != nullptr) use(*input, &node);
                       }
                       for (const core::GraphPtr& inner : core::subgraphs_of(node)) graph(*inner);
                       check_operator(node);
                     });
    for (const core::Value* output : node.outputs()) {
      if (output != nullptr) define(*output);
    }
  }

  void reserve(const core::Graph& graph) {
    const size_t count = graph.node_count() + graph.inputs().size() + graph.initializers().size();
    names_.reserve(count);
    defined_.reserve(count);
  }

  bool is_known(const core::Value& value) const {
    const auto at = names_.find(value.name);
    return at != names_.end() && at->second == &value;
  }

  void define(const core::Value& value) {
    core::require(names_.emplace(value.name, &value).second, "the name '{}' is given to two values", value.name);
    defined_.push_back(&value);
  }

  void use(const core::Value& value, const core::Node* user) const {
    if (is_known(value)) return;
    if (user == nullptr) core::fail_invalid("the output '{}' is given by nobody", value.name);
    if (value.producer == user) core::fail_invalid("the node takes its own output '{}'", value.name);
    if (value.producer != nullptr && value.producer->graph != nullptr)
      core::fail_invalid("'{}' is used before it is made: sort() puts the nodes in order", value.name);
    core::fail_invalid("'{}' is used, and given by nobody", value.name);
  }

  /// Operators of other domains may be known to a runtime.
  void check_operator(const core::Node& node) const {
    if (functions_.contains({node.domain.str(), node.op.str()})) return;
    const core::OnnxOpEntry* entry = core::find_onnx_op(node.domain.view(), node.op.view());
    if (!node.domain.empty() && entry == nullptr) return;
    if (node.domain.empty()) {
      core::require(!core::standard_versions(node.op.view()).empty(), "there is no operator '{}' in ONNX",
                    node.op.view());
      core::require(core::schema_version(node.op.view(), node.version) > 0, "opset {} has no operator '{}'",
                    node.version, node.op.view());
    }
    const bool is_newest = !node.domain.empty() || core::schema_version(node.op.view(), node.version) ==
                                                       core::schema_version(node.op.view(), core::kNewestOpset);
    const bool has_references = std::any_of(node.attributes.begin(), node.attributes.end(),
                                            [](const core::Attribute& each) { return !each.reference.empty(); });
    if (entry != nullptr && is_newest && !has_references) core::check_against_signature(node, *entry);
  }

  std::set<std::pair<std::string, std::string>> functions_;
  std::unordered_map<std::string_view, const core::Value*> names_;
  std::vector<const core::Value*> defined_;
};

}  // namespace

void check_model(const core::Model& model) { Check(model).graph(*model.graph); }

void check_edited(const Model::Content& content) {
  if (content.is_checked) return;
  check_model(content.model());
  content.is_checked = true;
}

void Model::check() const {
  translated([&] {
    content_->require_onnx("check");
    check_model(content_->model());
    content_->is_checked = true;
  });
}

}  // namespace tonnx::v1
