// outline.cpp - gives each block of a model a graph of its own.
#include "formats/modules/outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/join.h"
#include "formats/modules/blocks.h"
#include "formats/modules/repeats.h"
#include "formats/modules/sequences.h"
#include "ir/clone.h"

namespace tonnx {
namespace {

using Kind = ModulePart::Kind;

const Symbol kTonnx("tonnx"), kCallPart("call_part");

/// `weight` of `encoder.layer.0.weight`.
std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string behind(const std::string& place, const std::string& name) {
  return place.empty() ? name : place + "." + name;
}

/// Calls the function for a node and its copy, and for those inside them.
template <typename F>
void visit_pairs(const Node& node, const Node& copy, const F& f) {
  f(node, copy);
  const std::vector<GraphPtr> graphs = subgraphs_of(node), copies = subgraphs_of(copy);
  for (size_t i = 0; i < graphs.size(); ++i) {
    const Node* other = copies[i]->first();
    for (const Node& each : *graphs[i]) {
      visit_pairs(each, *other, f);
      other = other->next;
    }
  }
}

class Outliner {
 public:
  Outliner(const Graph& graph, const ModuleTree& tree)
      : graph_(graph), tree_(tree), scopes_(tree), blocks_(find_blocks(graph, tree, scopes_)) {
    for (size_t i = 0; i < tree.tensors.size(); ++i) owner_[tree.tensors[i].value] = scopes_.of_tensor(i);
    for (size_t i = 0; i < tree.submodules.size(); ++i) {
      for (const StateEntry& entry : tree.submodules[i].state) owner_[entry.value] = scopes_.of_layer(i);
    }
    for (int i = 0; i < scopes_.count(); ++i) kinds_.push_back(kind_of(i));
    for (const auto& [key, name] : graph.metadata) class_names_.emplace(key, name);
  }

  std::shared_ptr<ModulePart> run() {
    parts_.resize(static_cast<size_t>(scopes_.count()));
    std::shared_ptr<ModulePart> root = make_part(0);
    const bool has_blocks = std::count(blocks_.is_block.begin(), blocks_.is_block.end(), true) > 1;
    if (has_blocks || std::count(kinds_.begin(), kinds_.end(), Kind::List) > 0)
      write_graph(0);
    else
      take_graph(*root);
    return root;
  }

 private:
  Kind kind_of(int scope) const {
    const Scope& each = scopes_[scope];
    if (blocks_.is_block[static_cast<size_t>(scope)] || !each.tensors.empty() || each.children.empty())
      return Kind::Class;
    if (scopes_.is_list(scope)) return Kind::List;
    static const std::set<std::string_view> taken{"clear", "items",  "keys",
                                                  "pop",   "update", "values"};  // nn.ModuleDict's
    const bool is_dict = std::none_of(each.children.begin(), each.children.end(), [&](int child) {
      return is_index(scopes_[child].name) || taken.contains(scopes_[child].name);
    });
    return is_dict ? Kind::Dict : Kind::Class;
  }

  std::shared_ptr<ModulePart> make_part(int scope) {
    auto part = std::make_shared<ModulePart>();
    parts_[static_cast<size_t>(scope)] = part.get();
    part->kind = kinds_[static_cast<size_t>(scope)];
    part->path = scopes_.path_of(scope);
    if (const auto known = class_names_.find(class_note(part->path)); known != class_names_.end())
      part->class_name = known->second;
    for (const size_t tensor : scopes_[scope].tensors) {
      const StateEntry& entry = tree_.tensors[tensor];
      part->members.push_back({.name = last_part(entry.name), .tensor = &entry});
    }
    std::vector<int> children = scopes_[scope].children;
    if (part->kind == Kind::List) {
      std::sort(children.begin(), children.end(),
                [&](int a, int b) { return std::stoi(scopes_[a].name) < std::stoi(scopes_[b].name); });
    }
    for (const int child : children) {
      const Scope& each = scopes_[child];
      Member member{.name = each.name};
      if (each.layer >= 0)
        member.layer = &tree_.submodules[static_cast<size_t>(each.layer)];
      else if (each.external >= 0)
        member.external = each.external;
      else
        member.part = make_part(child);
      part->members.push_back(std::move(member));
    }
    return part;
  }

  /// How code of the block says the place: `layer[0].attention["self"]`.
  std::string access(int block, int scope) const {
    std::string text;
    for (; scope != block; scope = scopes_[scope].parent) {
      const Scope& each = scopes_[scope];
      text = access_step(kinds_[static_cast<size_t>(each.parent)], each.name) + text;
    }
    return text.empty() ? text : text.substr(1);  // without the dot: a block's own attributes are names
  }

  struct Body {
    int block = 0;
    ModulePart* part = nullptr;
    ValueMap map;
    std::vector<Value*> outputs;                  // values of the main graph, in the order of the outputs
    std::vector<Value*> arguments;                // of the call: values of the main graph, in the order of the inputs
    std::unordered_map<size_t, size_t> layer_at;  // of the tree's layers: which of the calls it is
  };

  /// What arguments are called follows from their order: blocks that are alike call them alike.
  static std::string argument_word(const Body& body, const Value& value) {
    static constexpr std::string_view kWords[] = {"x", "y", "z", "u", "v", "w"};
    if (!value.type.is_tensor()) return "n";
    const size_t index = body.arguments.size();
    return std::string(index < std::size(kWords) ? kWords[index] : "x");
  }

  /// What stands in the block for a value of the main graph.
  Value* resolve(Body& body, Value* value) {
    if (value == nullptr) return nullptr;
    if (const auto at = body.map.find(value); at != body.map.end()) return at->second;
    const auto owner = owner_.find(value);
    if (value->constant && owner != owner_.end() && scopes_.is_within(owner->second, body.block)) {
      add_constant(body, value, owner->second);
      return body.map[value] = value;
    }
    Value* input = body.part->graph->add_input(body.part->graph->unique_name(argument_word(body, *value)), value->type);
    input->known_ints = value->known_ints;
    body.arguments.push_back(value);
    return body.map[value] = input;
  }

  /// A tensor of the block, or of a place inside it, by the name that code has for it.
  void add_constant(Body& body, Value* value, int owner) {
    const Scope& scope = scopes_[owner];
    const auto add = [&](const StateEntry& entry, const std::string& name) {
      body.part->calls.tensors.push_back(entry);
      body.part->calls.tensors.back().name = behind(access(body.block, owner), name);
    };
    if (scope.layer >= 0) {
      for (const StateEntry& entry : tree_.submodules[static_cast<size_t>(scope.layer)].state) {
        if (entry.value == value) add(entry, entry.name);
      }
    }
    for (const size_t tensor : scope.tensors) {
      const StateEntry& entry = tree_.tensors[tensor];
      if (entry.value == value) add(entry, last_part(entry.name));
    }
  }

  void resolve_captured(Body& body, const Node& node) {
    for (Value* input : node.inputs()) {
      if (input && input->graph == &graph_) resolve(body, input);
    }
    for (const GraphPtr& inner : subgraphs_of(node)) {
      for (const Node& each : *inner) resolve_captured(body, each);
      for (Value* output : inner->outputs()) {
        if (output->graph == &graph_) resolve(body, output);
      }
    }
  }

  void add_node(Body& body, const Node& node) {
    resolve_captured(body, node);
    const Node* copy = clone_node(node, *body.part->graph, nullptr, body.map);
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (node.outputs()[i]) copy->outputs()[i]->known_ints = node.outputs()[i]->known_ints;
    }
    visit_pairs(node, *copy, [&](const Node& original, const Node& made) {
      const auto layer = tree_.submodule_of.find(&original);
      if (layer == tree_.submodule_of.end()) return;
      ModuleTree& calls = body.part->calls;
      const auto [at, fresh] = body.layer_at.try_emplace(layer->second, calls.submodules.size());
      if (fresh) {
        const Submodule& submodule = tree_.submodules[layer->second];
        calls.submodules.push_back(
            {access(body.block, scopes_.of_layer(layer->second)), submodule.spec, submodule.state});
      }
      calls.submodule_of[&made] = at->second;
    });
  }

  /// Returns what the call gives, as values of the main graph.
  std::vector<Value*> add_call(Body& body, int block) {
    const Body inner = write_graph(block);
    Graph& graph = *body.part->graph;
    std::vector<Value*> inputs;
    for (Value* argument : inner.arguments) inputs.push_back(resolve(body, argument));
    Node* call = graph.add_node(kTonnx, kCallPart);
    call->name = inner.part->path;
    for (Value* input : inputs) call->add_input(input);
    for (const Value* output : inner.outputs) {
      Value* made = graph.add_output_to(call, graph.unique_name(output->name), output->type);
      made->known_ints = output->known_ints;
      body.map[output] = made;
    }
    ModuleTree& calls = body.part->calls;
    calls.submodule_of[call] = calls.submodules.size();
    calls.submodules.push_back({access(body.block, block), {}, {}});
    return inner.outputs;
  }

  /// A model without blocks has the graph that there is.
  void take_graph(ModulePart& model) const {
    model.graph = GraphPtr(GraphPtr(), const_cast<Graph*>(&graph_));  // nobody changes it
    model.owns_graph = false;
    model.calls = tree_;
    for (size_t i = 0; i < tree_.submodules.size(); ++i)
      model.calls.submodules[i].name = access(0, scopes_.of_layer(i));
    for (size_t i = 0; i < tree_.tensors.size(); ++i)
      model.calls.tensors[i].name = behind(access(0, scopes_.of_tensor(i)), last_part(tree_.tensors[i].name));
  }

  bool is_used_outside(const Value& value, int block) const {
    return std::any_of(value.uses.begin(), value.uses.end(), [&](const Use& use) {
      const Graph* in = use.user ? use.user->graph : use.output_of;
      const Node* node = use.user;
      while (in != nullptr && in != &graph_) {
        node = in->owner;
        if (node == nullptr) return false;  // a copy, inside a block
        in = node->graph;
      }
      if (in == nullptr || node == nullptr) return true;  // an output of the model
      const auto at = blocks_.block_of.find(node);
      return at != blocks_.block_of.end() && !scopes_.is_within(at->second, block);
    });
  }

  /// The graph of a block, with the blocks inside it.
  Body write_graph(int block) {
    Body body{.block = block, .part = parts_[static_cast<size_t>(block)]};
    body.part->graph = std::make_shared<Graph>();
    body.part->calls.external_names = tree_.external_names;
    body.part->calls.outer_parts = tree_.outer_parts;
    if (block == 0) {
      for (Value* input : graph_.inputs()) {
        Value* made = body.part->graph->add_input(body.part->graph->unique_name(input->name), input->type);
        made->known_ints = input->known_ints;
        body.map[input] = made;
      }
    }
    std::vector<Value*> made;  // by nodes of this block, and of those inside it
    for (const BlockItem& item : blocks_.items[static_cast<size_t>(block)]) {
      if (item.node != nullptr) {
        add_node(body, *item.node);
        for (Value* output : item.node->outputs()) made.push_back(output);
      } else {
        const std::vector<Value*> given = add_call(body, item.scope);
        made.insert(made.end(), given.begin(), given.end());
      }
    }
    if (block == 0) {
      for (Value* output : graph_.outputs()) body.part->graph->add_output(resolve(body, output));
    } else {
      for (Value* value : made) {
        if (value == nullptr || !is_used_outside(*value, block)) continue;
        body.outputs.push_back(value);
        body.part->graph->add_output(body.map.at(value));
      }
    }
    find_sequences(*body.part);
    return body;
  }

  const Graph& graph_;
  const ModuleTree& tree_;
  Scopes scopes_;
  Blocks blocks_;
  std::vector<Kind> kinds_;
  std::unordered_map<std::string, std::string> class_names_;  // by their notes
  std::vector<ModulePart*> parts_;
  std::unordered_map<const Value*, int> owner_;
};

}  // namespace

ModulePart::~ModulePart() {
  if (graph && owns_graph) graph->release_uses();
}

std::string access_step(Kind around, const std::string& name) {
  if (around == Kind::List) return fmt::format("[{}]", name);
  if (around == Kind::Dict) return fmt::format("[\"{}\"]", name);
  return is_attribute(name) ? "." + name : fmt::format(".get_submodule(\"{}\")", name);
}

bool is_call_part(const Node& node) { return node.domain == kTonnx && node.op == kCallPart; }

namespace {

void shorten_paths(const Graph& graph, ModuleTree& tree) {
  const auto is_fixed = [](const auto& entry) { return entry.is_key || entry.name.find('.') == std::string::npos; };
  if (std::all_of(tree.submodules.begin(), tree.submodules.end(), is_fixed) &&
      std::all_of(tree.tensors.begin(), tree.tensors.end(), is_fixed))
    return;
  const Scopes scopes(tree);
  const Blocks blocks = find_blocks(graph, tree, scopes);
  Places places;
  const auto add = [&](std::string& name, int scope) {
    Path path = path_of_name(name);
    while (!blocks.is_block[static_cast<size_t>(scope)]) scope = scopes[scope].parent;
    const auto depth = static_cast<size_t>(scopes[scope].depth);
    if (depth + 1 < path.size()) join_from(path, depth);
    name = joined(places.add(std::move(path)), ".");
  };
  const auto keep = [&](std::string& name) { name = joined(places.add(path_of_name(name)), "."); };
  for (std::string& name : tree.external_names) keep(name);
  for (Submodule& module : tree.submodules) {
    if (is_fixed(module)) keep(module.name);
  }
  for (StateEntry& tensor : tree.tensors) {
    if (is_fixed(tensor)) keep(tensor.name);
  }
  for (size_t i = 0; i < tree.submodules.size(); ++i) {
    if (!is_fixed(tree.submodules[i])) add(tree.submodules[i].name, scopes[scopes.of_layer(i)].parent);
  }
  for (size_t i = 0; i < tree.tensors.size(); ++i) {
    if (!is_fixed(tree.tensors[i])) add(tree.tensors[i].name, scopes.of_tensor(i));
  }
}

}  // namespace

void arrange_modules(const Graph& graph, ModuleTree& tree) {
  shorten_paths(graph, tree);
  find_repeats(graph, tree);
}

std::shared_ptr<ModulePart> outline(const Graph& graph, const ModuleTree& tree) { return Outliner(graph, tree).run(); }

}  // namespace tonnx
