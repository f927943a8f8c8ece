// outline.cpp - gives each block of a model a graph of its own.
#include "modules/outline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/join.h"
#include "ir/clone.h"
#include "modules/alike.h"
#include "modules/bodies.h"
#include "modules/sequences.h"

namespace tonnx {
namespace {

using Kind = ModulePart::Kind;

const Symbol kTonnx("tonnx"), kCallPart("call_part");
constexpr std::string_view kOwn = "own";  // for each result of a call whether nothing else has its memory

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
      : graph_(graph), tree_(tree), scopes_(tree), bodies_(graph, tree, scopes_) {
    for (size_t i = 0; i < tree.tensors.size(); ++i) owner_[tree.tensors[i].value] = scopes_.of_tensor(i);
    for (size_t i = 0; i < tree.submodules.size(); ++i) {
      const bool is_tied = tree.submodules[i].tied_to >= 0;
      for (const StateEntry& entry : tree.submodules[i].state) {
        if (is_tied) tied_owners_[entry.value].push_back(scopes_.of_layer(i));
        if (!is_tied) owner_[entry.value] = scopes_.of_layer(i);
      }
    }
    for (int i = 0; i < scopes_.count(); ++i) kinds_.push_back(kind_of(i));
    for (const auto& [key, name] : graph.metadata) class_names_.emplace(key, name);
  }

  std::shared_ptr<ModulePart> run() {
    parts_.resize(static_cast<size_t>(scopes_.count()));
    std::shared_ptr<ModulePart> root = make_part(0);
    if (bodies_.has_blocks() || std::count(kinds_.begin(), kinds_.end(), Kind::List) > 0) {
      write_method(0, graph_);
      align_arguments(*root);
      find_sequences_in(*root);
    } else {
      take_graph(*root);
    }
    return root;
  }

 private:
  Kind kind_of(int scope) const {
    const Scope& each = scopes_[scope];
    if (bodies_.is_block(scope) || !each.tensors.empty() || each.children.empty()) return Kind::Class;
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
      std::vector<std::pair<int, int>> numbered;
      for (const int child : children) numbered.emplace_back(std::stoi(scopes_[child].name), child);
      std::sort(numbered.begin(), numbered.end());
      for (size_t i = 0; i < children.size(); ++i) children[i] = numbered[i].second;
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

  /// What is written for one graph of a block: its method, or a branch or loop inside that.
  struct Draft {
    int block = 0;
    Method* method = nullptr;
    Graph* graph = nullptr;
    Draft* around = nullptr;  // of the graph around, in the same method
    ValueMap map;
    std::vector<Value*> outputs;                  // values of the model's graphs, in the order of the outputs
    std::vector<Value*> arguments;                // of the call, in the order of the inputs
    std::unordered_map<size_t, size_t> layer_at;  // of the tree's layers: which of the calls it is
  };

  static Draft& whole(Draft& draft) { return draft.around ? whole(*draft.around) : draft; }

  /// What arguments are called follows from what they are for, or from their order: blocks that are alike call them
  /// alike.
  std::string argument_word(const Draft& draft, const Value& value) const {
    static constexpr std::string_view kWords[] = {"x", "y", "z", "u", "v", "w"};
    if (!value.type.is_tensor()) return "n";
    if (const auto word = tree_.words.find(&value); word != tree_.words.end()) return std::string(word->second);
    const auto has_own = [&](const Value* argument) { return tree_.words.contains(argument); };
    const auto index = static_cast<size_t>(std::count_if(draft.arguments.begin(), draft.arguments.end(),
                                                         [&](const Value* each) { return !has_own(each); }));
    return std::string(index < std::size(kWords) ? kWords[index] : "x");
  }

  /// What stands in the block for a value of the model's graphs.
  Value* resolve(Draft& draft, Value* value) {
    if (value == nullptr) return nullptr;
    if (const auto at = draft.map.find(value); at != draft.map.end()) return at->second;
    if (draft.around != nullptr) return draft.map[value] = resolve(*draft.around, value);
    const auto owner = owner_.find(value);
    if (value->constant && owner != owner_.end() && scopes_.is_within(owner->second, draft.block)) {
      add_constant(draft, value, owner->second);
      return draft.map[value] = value;
    }
    if (const auto tied = tied_owners_.find(value); tied != tied_owners_.end()) {
      for (const int scope : tied->second) {
        if (!scopes_.is_within(scope, draft.block)) continue;
        add_constant(draft, value, scope);
        return draft.map[value] = value;
      }
    }
    Value* input = draft.graph->add_input(draft.graph->unique_name(argument_word(draft, *value)), value->type);
    input->known_ints = value->known_ints;
    draft.arguments.push_back(value);
    return draft.map[value] = input;
  }

  /// A tensor of the block, or of a place inside it, by the name that code has for it.
  void add_constant(Draft& draft, Value* value, int owner) {
    const Scope& scope = scopes_[owner];
    const auto add = [&](const StateEntry& entry, const std::string& name) {
      draft.method->calls.tensors.push_back(entry);
      draft.method->calls.tensors.back().name = within(access(draft.block, owner), name);
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

  static bool is_around(const Graph& graph, const Node& node) {
    const Graph* around = node.graph;
    while (around != nullptr && around != &graph) around = around->owner ? around->owner->graph : nullptr;
    return around != nullptr;
  }

  /// What a node and those inside it take of the graphs around.
  void resolve_captured(Draft& draft, const Node& outer, const Node& node) {
    for (Value* input : node.inputs()) {
      if (input && is_around(*input->graph, outer)) resolve(draft, input);
    }
    for (const GraphPtr& inner : subgraphs_of(node)) {
      for (const Node& each : *inner) resolve_captured(draft, outer, each);
      for (Value* output : inner->outputs()) {
        if (is_around(*output->graph, outer)) resolve(draft, output);
      }
    }
  }

  void add_node(Draft& draft, const Node& node) {
    const std::vector<GraphPtr> inside = subgraphs_of(node);
    const bool has_blocks = std::any_of(inside.begin(), inside.end(),
                                        [&](const GraphPtr& graph) { return bodies_.find(*graph) != nullptr; });
    if (has_blocks) return add_control(draft, node);
    resolve_captured(draft, node, node);
    const Node* copy = clone_node(node, *draft.graph, nullptr, draft.map);
    note_sizes(node, *copy);
    visit_pairs(node, *copy, [&](const Node& original, const Node& made) {
      note_layer(draft, original, made);
      for (size_t i = 0; i < original.outputs().size(); ++i) note_word(draft, original.output(i), made.output(i));
    });
  }

  void note_word(Draft& draft, const Value* original, const Value* copy) const {
    if (const auto word = tree_.words.find(original); word != tree_.words.end())
      draft.method->calls.words.emplace(copy, word->second);
  }

  static void note_sizes(const Node& node, const Node& copy) {
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (node.outputs()[i]) copy.outputs()[i]->known_ints = node.outputs()[i]->known_ints;
    }
  }

  /// The copy calls the layer that the original calls.
  void note_layer(Draft& draft, const Node& original, const Node& copy) {
    const auto layer = tree_.submodule_of.find(&original);
    if (layer == tree_.submodule_of.end()) return;
    ModuleTree& calls = draft.method->calls;
    const auto [at, fresh] = whole(draft).layer_at.try_emplace(layer->second, calls.submodules.size());
    if (fresh) {
      const Submodule& submodule = tree_.submodules[layer->second];
      calls.submodules.push_back(
          {access(draft.block, scopes_.of_layer(layer->second)), submodule.spec, submodule.state});
    }
    calls.submodule_of[&copy] = at->second;
  }

  /// A branch or loop, some of whose graphs have blocks.
  void add_control(Draft& draft, const Node& node) {
    for (Value* input : node.inputs()) resolve(draft, input);
    Node* copy = clone_node(node, *draft.graph, nullptr, draft.map,
                            [](const Attribute& attribute) { return attribute.value.get<GraphPtr>() == nullptr; });
    note_sizes(node, *copy);
    for (const Attribute& attribute : node.attributes) {
      const auto* inner = attribute.value.get<GraphPtr>();
      if (inner == nullptr) continue;
      copy->set_attribute(attribute.name, std::make_shared<Graph>());
      write_inside(draft, **inner, **copy->find_attribute(attribute.name)->value.get<GraphPtr>());
    }
  }

  void write_inside(Draft& draft, const Graph& from, Graph& to) {
    Draft inside{.block = draft.block, .method = draft.method, .graph = &to, .around = &draft};
    for (const Value* input : from.inputs()) inside.map[input] = to.add_input(to.unique_name(input->name), input->type);
    if (bodies_.find(from) != nullptr) {
      add_items(inside, from);
    } else {
      for (const Node& node : from) add_node(inside, node);
    }
    for (Value* output : from.outputs()) to.add_output(resolve(inside, output));
  }

  /// Returns what the call gives, as values of the model's graphs.
  std::vector<Value*> add_call(Draft& draft, int block, const Graph& body) {
    const Draft inner = write_method(block, body);
    Graph& graph = *draft.graph;
    std::vector<Value*> inputs;
    for (Value* argument : inner.arguments) inputs.push_back(resolve(draft, argument));
    Node* call = graph.add_node(kTonnx, kCallPart);
    call->name = parts_[static_cast<size_t>(block)]->path;
    for (Value* input : inputs) call->add_input(input);
    inner.method->callers.push_back(call);
    callee_of_[call] = inner.method;
    for (const Value* output : inner.outputs) {
      Value* made = graph.add_output_to(call, graph.unique_name(output->name), output->type);
      made->known_ints = output->known_ints;
      draft.map[output] = made;
      note_word(draft, output, made);
    }
    std::vector<int64_t> own;
    for (const Value* output : inner.graph->outputs()) own.push_back(may_share(*inner.graph, *output) ? 0 : 1);
    call->set_attribute(kOwn, std::move(own));
    ModuleTree& calls = draft.method->calls;
    calls.submodule_of[call] = calls.submodules.size();
    const std::string name = access(draft.block, block);
    const bool is_forward = inner.method == parts_[static_cast<size_t>(block)];
    calls.submodules.push_back({is_forward ? name : within(name, inner.method->name), {}, {}});
    return inner.outputs;
  }

  /// Returns the values that were made by nodes of the block, and of those inside it.
  std::vector<Value*> add_items(Draft& draft, const Graph& body) {
    std::vector<Value*> made;
    for (const BlockItem& item : bodies_.find(body)->blocks.items[static_cast<size_t>(draft.block)]) {
      if (item.node != nullptr) {
        add_node(draft, *item.node);
        for (Value* output : item.node->outputs()) made.push_back(output);
      } else {
        const std::vector<Value*> given = add_call(draft, item.scope, body);
        made.insert(made.end(), given.begin(), given.end());
      }
    }
    return made;
  }

  /// A model without blocks has the graph that there is.
  void take_graph(ModulePart& model) const {
    model.graph = GraphPtr(GraphPtr(), const_cast<Graph*>(&graph_));  // nobody changes it
    model.owns_graph = false;
    model.calls = tree_;
    for (size_t i = 0; i < tree_.submodules.size(); ++i)
      model.calls.submodules[i].name = access(0, scopes_.of_layer(i));
    for (size_t i = 0; i < tree_.tensors.size(); ++i)
      model.calls.tensors[i].name = within(access(0, scopes_.of_tensor(i)), last_part(tree_.tensors[i].name));
  }

  bool is_used_outside(const Value& value, int block, const Graph& body) const {
    const auto& block_of = bodies_.find(body)->blocks.block_of;
    return std::any_of(value.uses.begin(), value.uses.end(), [&](const Use& use) {
      const Graph* in = use.user ? use.user->graph : use.output_of;
      const Node* node = use.user;
      while (in != nullptr && in != &body) {
        node = in->owner;
        if (node == nullptr) return false;  // a copy, inside a block
        in = node->graph;
      }
      if (in == nullptr || node == nullptr) return true;  // an output of the graph
      const auto at = block_of.find(node);
      return at != block_of.end() && !scopes_.is_within(at->second, block);
    });
  }

  /// What a block does in one of the model's graphs, with the blocks inside it.
  Draft write_method(int block, const Graph& body) {
    ModulePart& part = *parts_[static_cast<size_t>(block)];
    std::unique_ptr<Method> other = part.graph ? std::make_unique<Method>() : nullptr;
    Draft draft{.block = block, .method = other ? other.get() : &part};
    draft.method->graph = std::make_shared<Graph>();
    draft.graph = draft.method->graph.get();
    draft.method->calls.external_names = tree_.external_names;
    draft.method->calls.outer_parts = tree_.outer_parts;
    if (block == 0) {
      for (Value* input : graph_.inputs()) {
        Value* made = draft.graph->add_input(draft.graph->unique_name(input->name), input->type);
        made->known_ints = input->known_ints;
        draft.map[input] = made;
      }
    }
    const std::vector<Value*> made = add_items(draft, body);
    if (block == 0) {
      for (Value* output : graph_.outputs()) draft.graph->add_output(resolve(draft, output));
      return draft;
    }
    for (Value* value : made) {
      if (value == nullptr || !is_used_outside(*value, block, body)) continue;
      draft.outputs.push_back(value);
      draft.graph->add_output(draft.map.at(value));
    }
    name_residual(*draft.graph);
    if (other) {
      draft.method = add_method(part, std::move(other), bodies_.find(body)->word);
      draft.graph = draft.method->graph.get();  // the other is gone where it was equal to one that was there
      draft.map.clear();
    }
    return draft;
  }

  /// What the method, which is to go away, calls is not called by it.
  void drop(const Method& method) {
    for (const auto& [node, index] : method.calls.submodule_of) {
      if (const auto call = callee_of_.find(node); call != callee_of_.end()) {
        std::erase(call->second->callers, node);
        callee_of_.erase(call);
      }
    }
  }

  /// The method that is equal to the given one, which may be itself.
  Method* add_method(ModulePart& part, std::unique_ptr<Method> made, std::string_view word) {
    if (are_equal(part, *made)) return drop(*made), &part;
    python::NameSet names;
    for (const auto& known : part.others) {
      if (are_equal(*known, *made)) return drop(*made), known.get();
      names.reserve(known->name);
    }
    for (const Member& member : part.members) names.reserve(member.name);
    made->name = names.add(fmt::format("forward_{}", word));
    part.others.push_back(std::move(made));
    return part.others.back().get();
  }

  /// From the innermost parts on.
  static void find_sequences_in(ModulePart& part) {
    for (const Member& member : part.members) {
      if (member.part) find_sequences_in(*member.part);
    }
    if (part.graph) find_sequences(part);
  }

  const Graph& graph_;
  const ModuleTree& tree_;
  Scopes scopes_;
  Bodies bodies_;
  std::vector<Kind> kinds_;
  std::unordered_map<std::string, std::string> class_names_;  // by their notes
  std::vector<ModulePart*> parts_;
  std::unordered_map<const Value*, int> owner_;
  std::unordered_map<const Value*, std::vector<int>> tied_owners_;  // others that have it
  std::unordered_map<const Node*, Method*> callee_of_;              // of the calls of parts
};

}  // namespace

Method::~Method() {
  if (graph && owns_graph) graph->release_uses();
}

std::string access_step(Kind around, const std::string& name) {
  if (around == Kind::List) return fmt::format("[{}]", name);
  if (around == Kind::Dict) return fmt::format("[\"{}\"]", name);
  return is_attribute(name) ? "." + name : fmt::format(".get_submodule(\"{}\")", name);
}

bool is_call_part(const Node& node) { return node.domain == kTonnx && node.op == kCallPart; }

bool may_share(const Graph& graph, const Value& value) {
  if (value.graph != &graph || value.producer == nullptr) return true;
  if (const Attribute* own = value.producer->find_attribute(kOwn); own && value.producer->domain == kTonnx)
    return (*own->value.get<std::vector<int64_t>>())[value.output_index] == 0;
  const AtenOpEntry* entry = find_aten_op(*value.producer);
  return entry == nullptr || !subgraphs_of(*value.producer).empty() || entry->op->view != ViewRule::None ||
         (value.producer->domain == kTonnx && value.producer->op == "list_at");
}

std::shared_ptr<ModulePart> outline(const Graph& graph, const ModuleTree& tree) { return Outliner(graph, tree).run(); }

}  // namespace tonnx
