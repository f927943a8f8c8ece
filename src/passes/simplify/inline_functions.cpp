// inline_functions.cpp - replaces calls of model-local functions by their bodies.
#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "ir/clone.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr int kMaxDepth = 64;          // of functions that call functions
constexpr size_t kMaxNodes = 1000000;  // a few functions that each call the next one twice can grow without end

class Inliner {
 public:
  explicit Inliner(const Model& model) {
    for (const Function& function : model.functions) {
      const Symbol domain = function.domain.view() == "ai.onnx" ? Symbol() : function.domain;
      functions_.try_emplace(key_of(domain, function.name, function.overload), &function);
    }
    require_bounded(*model.graph, 0);
  }

  void walk(Graph& graph, int depth) {
    for (Node* node = graph.first(); node != nullptr;) {
      Node* next = node->next;
      if (const Function* function = find(*node)) {
        in_context([&] { return fmt::format("inlining function '{}'", function->name.view()); },
                   [&] { inline_call(graph, *node, *function, depth); });
      } else {
        for (const GraphPtr& subgraph : subgraphs_of(*node)) walk(*subgraph, depth);
      }
      node = next;
    }
  }

 private:
  static std::string key_of(Symbol domain, Symbol name, Symbol overload) {
    return fmt::format("{}\n{}\n{}", domain.view(), name.view(), overload.view());
  }

  const Function* find(const Node& node) const {
    const auto at = functions_.find(key_of(node.domain, node.op, node.overload));
    return at == functions_.end() ? nullptr : at->second;
  }

  /// How many nodes the graph has once everything is inlined; throws where that is too much, before anything is copied.
  size_t require_bounded(const Graph& graph, int depth) {
    size_t count = 0;
    for (const Node& node : graph) {
      if (const Function* function = find(node)) {
        require(depth < kMaxDepth, "functions call each other more than {} deep", kMaxDepth);
        const auto at = sizes_.find(function);
        // a call takes its place too, if only for a while: functions that do nothing may call each other without end
        count += 1 + (at != sizes_.end() ? at->second : sizes_[function] = require_bounded(*function->body, depth + 1));
      } else {
        ++count;
        for (const GraphPtr& subgraph : subgraphs_of(node)) count += require_bounded(*subgraph, depth);
      }
      require(count <= kMaxNodes, "the functions grow past {} nodes", kMaxNodes);
    }
    return count;
  }

  void inline_call(Graph& graph, Node& call, const Function& function, int depth) {
    require(depth < kMaxDepth, "functions call each other more than {} deep", kMaxDepth);
    const Graph& body = *function.body;
    require(call.inputs().size() <= body.inputs().size(), "{} inputs for a function of {}", call.inputs().size(),
            body.inputs().size());
    ValueMap map;
    for (size_t i = 0; i < body.inputs().size(); ++i) map[body.inputs()[i]] = call.input(i);
    Node* before = call.previous;
    clone_nodes(
        body, graph, &call, map, [&](Attribute& attribute) { return resolve(attribute, call, function); }, call.name);
    for (size_t i = 0; i < call.outputs().size(); ++i) {
      Value* old_output = call.output(i);
      if (old_output == nullptr) continue;
      require(i < body.outputs().size(), "output {} of a function that has {}", i, body.outputs().size());
      Value* made = map.at(body.outputs()[i]);
      require(made != nullptr, "an output of the function is an input that is not given");
      const bool is_fresh = made->producer != nullptr && made->graph == &graph &&
                            std::count(body.outputs().begin(), body.outputs().end(), body.outputs()[i]) == 1 &&
                            body.outputs()[i]->producer != nullptr;
      if (is_fresh) {  // the value keeps the name that the caller gave it
        Node* producer = made->producer;
        const size_t index = made->output_index;
        graph.replace_uses(made, old_output);
        graph.move_output(old_output, producer, index);
      } else {
        Node* identity = graph.add_node("", "Identity", &call);
        identity->version = 1;
        identity->set_input(0, made);
        graph.move_output(old_output, identity, 0);
      }
    }
    call.resize_outputs(0);
    graph.erase(&call);
    // what the function calls in its turn
    for (Node* node = before ? before->next : graph.first(); node != call.next;) {
      Node* next = node->next;
      if (const Function* inner = find(*node)) {
        inline_call(graph, *node, *inner, depth + 1);
      } else {
        for (const GraphPtr& subgraph : subgraphs_of(*node)) walk(*subgraph, depth + 1);
      }
      node = next;
    }
  }

  /// An attribute of the function as the caller gives it; none where it is absent in both.
  static bool resolve(Attribute& attribute, const Node& call, const Function& function) {
    if (attribute.reference.empty()) return true;
    const Attribute* given = call.find_attribute(attribute.reference);
    if (given == nullptr) {
      const auto at = std::find_if(function.default_attributes.begin(), function.default_attributes.end(),
                                   [&](const Attribute& a) { return a.name == attribute.reference; });
      if (at == function.default_attributes.end()) return false;
      given = &*at;
    }
    attribute.value = given->value;
    attribute.type = given->type;
    attribute.reference.clear();
    return true;
  }

  std::unordered_map<std::string, const Function*> functions_;
  std::unordered_map<const Function*, size_t> sizes_;
};

}  // namespace

void inline_functions(Model& model) {
  if (model.functions.empty()) return;
  Inliner(model).walk(*model.graph, 0);
  model.functions.clear();
}

}  // namespace tonnx
