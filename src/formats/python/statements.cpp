// statements.cpp - turns a graph into statements: short expressions are nested, variables are used again when they are free.
#include "formats/python/statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/error.h"

namespace tonnx::python {
namespace {

constexpr size_t kNestedWidth = 96;   // a statement with nested expressions stays below this
constexpr int kNestedDepth = 3;       // and has at most so many calls inside one another
constexpr int kReach = 12;            // an expression moves at most so many nodes down
constexpr std::string_view kPool[] = {"x", "y", "z", "u", "v", "w"};

class ForwardWriter {
 public:
  ForwardWriter(const Graph& graph, const Structure& structure) : graph_(graph), structure_(structure) {}

  Forward run() {
    name_parameters();
    int index = 0;
    for (const Node& node : graph_) position_[&node] = index++;
    for (const Node& node : graph_) decide(node);
    nest_into_return();
    find_last_uses();
    for (const Node& node : graph_) {
      if (!nested_.contains(&node)) write_statement(node);
    }
    write_return();
    return std::move(result_);
  }

 private:
  // Phase 1: which nodes are nested into the expression that uses them.

  static bool is_constant(const Value* value) { return value->constant != nullptr; }

  bool can_nest(const Node& node, const Node& user) const {
    if (node.outputs().size() != 1 || node.output(0)->uses.size() != 1 || node.graph != user.graph) return false;
    if (node.overload.view() == "no_nesting") return false;
    return position_.at(&user) - position_.at(&node) <= kReach;
  }

  void decide(const Node& node) {
    std::vector<const Node*> candidates;
    for (const Value* input : node.inputs()) {
      if (input && input->producer && can_nest(*input->producer, node)) candidates.push_back(input->producer);
    }
    for (const Node* candidate : candidates) nested_.insert(candidate);
    const auto measure = [&] { return std::pair(expression(node).first.size(), depth(node)); };
    auto [width, levels] = measure();
    while (!candidates.empty() && (width > kNestedWidth || levels > kNestedDepth)) {
      const auto largest = std::max_element(candidates.begin(), candidates.end(), [&](const Node* a, const Node* b) {
        return std::pair(depth(*a), expression(*a).first.size()) < std::pair(depth(*b), expression(*b).first.size());
      });
      nested_.erase(*largest);
      candidates.erase(largest);
      std::tie(width, levels) = measure();
    }
  }

  int depth(const Node& node) const {
    int deepest = 0;
    for (const Value* input : node.inputs()) {
      if (!input || !input->producer || !nested_.contains(input->producer)) continue;
      const bool same_brackets = is_subscript(node) && is_subscript(*input->producer) && input == node.input(0);
      deepest = std::max(deepest, depth(*input->producer) - (same_brackets ? 1 : 0));
    }
    return deepest + (is_operator(node) ? 0 : 1);
  }

  /// `a + b` reads as one expression with what is inside it; a call does not.
  static bool is_operator(const Node& node) {
    if (is_call_module(node)) return false;
    const std::string_view spelling = get_aten_op(node).op->python;
    return !spelling.empty() && spelling[0] != '.' && !std::isalpha(static_cast<unsigned char>(spelling[0]));
  }

  static bool is_subscript(const Node& node) { return !is_call_module(node) && get_aten_op(node).op->subscript; }
  static bool is_call_module(const Node& node) {
    return node.domain == Symbol("tonnx") && node.op == Symbol("call_module");
  }

  void nest_into_return() {
    if (graph_.outputs().size() != 1) return;
    const Value* output = graph_.outputs()[0];
    if (output->producer && output->producer->outputs().size() == 1 && output->uses.size() == 1) nested_.insert(output->producer);
  }

  // Phase 2: how long each variable is needed.

  void visit_leaves(const Node& node, const std::function<void(const Value*)>& use) const {
    for (const Value* input : node.inputs()) {
      if (input == nullptr || is_constant(input)) continue;
      if (input->producer && nested_.contains(input->producer)) {
        visit_leaves(*input->producer, use);
      } else {
        use(input);
      }
    }
  }

  void find_last_uses() {
    for (const Node& node : graph_) {
      if (nested_.contains(&node)) continue;
      visit_leaves(node, [&](const Value* value) { last_use_[value] = position_.at(&node); });
    }
    const int end = static_cast<int>(position_.size());
    for (const Value* output : graph_.outputs()) {
      last_use_[output] = end;
      if (output->producer && nested_.contains(output->producer)) {
        visit_leaves(*output->producer, [&](const Value* value) { last_use_[value] = end; });
      }
    }
  }

  // Phase 3: text.

  void name_parameters() {
    for (const Value* input : graph_.inputs()) {
      std::string wish = identifier(input->name);
      if (wish.empty() || is_made_up(input->name)) wish = graph_.inputs().size() == 1 ? "x" : "input";
      const std::string name = parameters_.add(wish);
      variable_[input] = name;
      result_.parameters.push_back(name);
      if (device_.empty() && input->type.is_tensor()) device_ = name + ".device";
    }
    if (!device_.empty()) return;
    if (!structure_.state.empty()) device_ = "self." + structure_.state[0].name + ".device";
  }

  std::string text_of(const Value* value, int place) const {
    if (is_constant(value)) return structure_.place.at(value);
    if (value->producer && nested_.contains(value->producer)) {
      const auto [text, binding] = expression(*value->producer);
      return binding < place ? "(" + text + ")" : text;
    }
    const auto at = variable_.find(value);
    return at == variable_.end() ? "xx" : at->second;  // before names are given, a text of usual length
  }

  std::pair<std::string, int> expression(const Node& node) const {
    const auto text = [this](const Value* value, int place) { return text_of(value, place); };
    if (is_call_module(node)) {
      std::vector<std::string> arguments;
      for (const AttrValue& argument : *node.find_attribute("arguments")->value.get<AttrList>()) {
        const auto* operand = argument.get<Operand>();
        arguments.push_back(operand ? text_of(node.input(operand->index), 0) : "None");
      }
      const auto index = static_cast<size_t>(*node.find_attribute("index")->value.get<int64_t>());
      return {fmt::format("self.{}({})", structure_.external_names[index], join(arguments)), precedence::kAtom};
    }
    const AtenOpEntry& entry = get_aten_op(node);
    const auto is_inside = [this](const Value* value) {
      return value->producer && nested_.contains(value->producer) && !is_call_module(*value->producer) &&
             !structure_.module_of.contains(value->producer);
    };
    const Emission emission(node, entry, text, device_, is_inside);
    const auto module = structure_.module_of.find(&node);
    if (module == structure_.module_of.end()) return spell(emission, *entry.op);
    const Submodule& submodule = structure_.modules[module->second];
    std::vector<std::string> arguments;
    for (const std::string& input : submodule.spec.inputs) arguments.push_back(emission.text(input));
    return {fmt::format("self.{}({})", submodule.name, join(arguments)), precedence::kAtom};
  }

  bool is_live(const std::string& name, int position) const {
    const auto at = holder_.find(name);
    if (at == holder_.end()) return false;
    const auto last = last_use_.find(at->second);
    return last != last_use_.end() && last->second > position;
  }

  std::string free_name(int position) const {
    for (const std::string_view name : kPool) {
      if (!parameters_.contains(name) && !is_live(std::string(name), position)) return std::string(name);
    }
    for (int i = 1;; ++i) {
      std::string name = fmt::format("x{}", i);
      if (!parameters_.contains(name) && !is_live(name, position)) return name;
    }
  }

  /// A plain number or a list of them.
  static bool is_number(const Value& value) {
    const Type::Kind kind = value.type.kind;
    return kind == Type::Kind::Int || kind == Type::Kind::IntList || kind == Type::Kind::Float;
  }

  /// The name of a size, as `batch`, where the model has one for it.
  std::string number_name(const Value* value, int position) const {
    std::string wish = identifier(value->name);
    if (wish.empty() || wish.size() > 24 || is_made_up(value->name) || value->name.find('/') != std::string::npos) wish = "n";
    for (const std::string_view plain : {"n", "ints"}) {  // what has no name of its own
      if (wish.starts_with(plain) && wish.find_first_not_of("_0123456789", plain.size()) == std::string::npos) wish = plain;
    }
    std::string name = wish;
    for (int i = 2; parameters_.contains(name) || is_live(name, position); ++i) name = fmt::format("{}{}", wish, i);
    return name;
  }

  std::string choose_name(const Value* output, const Node& node, int position) {
    if (!last_use_.contains(output)) return "_";
    if (is_number(*output)) return number_name(output, position);
    std::string reuse;
    visit_leaves(node, [&](const Value* value) {
      if (!reuse.empty() || is_number(*value)) return;
      const std::string& name = variable_.at(value);
      if (!parameters_.contains(name) && !is_live(name, position)) reuse = name;
    });
    return reuse.empty() ? free_name(position) : reuse;
  }

  void write_statement(const Node& node) {
    const int position = position_.at(&node);
    const std::string text = expression(node).first;
    std::vector<std::string> targets;
    for (const Value* output : node.outputs()) {
      const std::string name = choose_name(output, node, position);
      if (name != "_") {
        holder_[name] = output;
        variable_[output] = name;
      }
      targets.push_back(name);
    }
    const AtenOpEntry* entry = find_aten_op(fmt::format("{}::{}{}{}", node.domain.view(), node.op.view(),
                                                        node.overload.empty() ? "" : ".", node.overload.view()));
    const bool unpacks_one = targets.size() == 1 && entry && entry->signature.outputs[0].is_list && entry->signature.outputs[0].type == "Tensor";
    result_.statements.push_back(fmt::format("{} = {}", unpacks_one ? fmt::format("({},)", targets[0]) : join(targets), text));
  }

  void write_return() {
    std::vector<std::string> texts;
    for (const Value* output : graph_.outputs()) texts.push_back(text_of(output, 0));
    result_.statements.push_back("return " + join(texts));
  }

  const Graph& graph_;
  const Structure& structure_;
  Forward result_;
  std::unordered_map<const Node*, int> position_;
  std::unordered_set<const Node*> nested_;
  std::unordered_map<const Value*, int> last_use_;
  std::unordered_map<const Value*, std::string> variable_;
  std::unordered_map<std::string, const Value*> holder_;  // variable -> the value it has now
  NameSet parameters_;
  std::string device_;
};

}  // namespace

Forward write_forward(const Graph& graph, const Structure& structure) { return ForwardWriter(graph, structure).run(); }

}  // namespace tonnx::python
