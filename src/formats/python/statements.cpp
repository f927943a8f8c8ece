// statements.cpp - turns a graph into statements: short expressions are nested, variables are used again when they are
// free.
#include "formats/python/statements.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "base/budget.h"
#include "base/error.h"
#include "formats/python/control_flow.h"
#include "formats/python/variables.h"

namespace tonnx::python {
namespace {

constexpr size_t kNestedWidth = 96;  // a statement with nested expressions stays below this
constexpr int kNestedDepth = 3;      // and has at most so many calls inside one another
constexpr int kReach = 12;           // an expression moves at most so many nodes down
constexpr std::string_view kPool[] = {"x", "y", "z", "u", "v", "w"};

/// What all blocks of a forward method share.
struct Scope {
  const Structure& structure;
  Forward result;
  NameSet parameters;
  std::string device;
};

/// The statements of one graph: forward itself, a branch, or the body of a loop.
class BlockWriter {
 public:
  BlockWriter(const Graph& graph, Scope& scope, BlockWriter* parent = nullptr, const Node* owner = nullptr,
              int level = 0)
      : graph_(graph), scope_(scope), structure_(scope.structure), parent_(parent), owner_(owner), level_(level) {
    if (parent == nullptr) name_parameters();
    int index = 0;
    for (const Node& node : graph_) position_[&node] = index++;
    for (const Node& node : graph_) decide(node);
    nest_into_end();
    find_last_uses();
  }

  /// A name for a value that comes from outside: what is carried through a loop.
  void set_variable(const Value* value, const std::string& name) {
    variable_[value] = name;
    holder_[name] = value;
  }
  /// A name that statements of this block must not set.
  void reserve(const std::string& name) { reserved_.insert(name); }

  void write_statements() {
    for (const Node& node : graph_) {
      if (nested_.contains(&node)) continue;
      if (is_tonnx(node, "cond"))
        write_if(node);
      else if (is_tonnx(node, "loop"))
        write_loop(node);
      else
        write_statement(node);
    }
  }

  void write_return(bool copies = false, const std::string& first = "") {
    std::vector<std::string> texts;
    if (!first.empty()) texts.push_back(first);
    for (const Value* output : graph_.outputs())
      texts.push_back(copies && is_alias(output) ? copy_of(output) : text_of(output, 0));
    add("return " + join(texts));
  }

  /// `x, y = ...` at the end of a block: the outputs from number `from` on.
  void write_assignment(const std::vector<std::string>& names, size_t from = 0) {
    std::vector<std::string> targets, texts;
    for (size_t i = 0; i < names.size(); ++i) {
      std::string text = text_of(graph_.outputs()[from + i], 0);
      if (names[i].empty() || text == names[i]) continue;
      targets.push_back(names[i]);
      texts.push_back(std::move(text));
    }
    if (!targets.empty()) add(fmt::format("{} = {}", join(targets), join(texts)));
  }

  std::string output_text(size_t i) const { return text_of(graph_.outputs()[i], 0); }
  size_t statement_count() const { return scope_.result.statements.size(); }

 private:
  void add(std::string text, int deeper = 0) {
    budget().take(Resource::Text, static_cast<int64_t>(text.size()));
    scope_.result.statements.push_back({level_ + deeper, std::move(text)});
  }

  // Phase 1: which nodes are nested into the expression that uses them.

  static bool is_constant(const Value* value) { return value->constant != nullptr; }

  bool can_nest(const Node& node, const Node& user) const {
    if (node.outputs().size() != 1 || node.output(0)->uses.size() != 1 || node.graph != user.graph) return false;
    if (node.overload.view() == "no_nesting" || is_control(node)) return false;
    return position_.at(&user) - position_.at(&node) <= kReach;
  }

  void decide(const Node& node) {
    if (is_control(node)) {  // its inputs are named, but for the number of iterations
      const Value* first = node.input(0);
      if (first && is_number(*first) && first->producer && can_nest(*first->producer, node))
        nested_.insert(first->producer);
      return;
    }
    std::vector<const Node*> candidates;
    for (const Value* input : node.inputs()) {
      if (input && input->producer && can_nest(*input->producer, node)) candidates.push_back(input->producer);
    }
    for (const Node* candidate : candidates) nested_.insert(candidate);
    drop_repeated(node, candidates);
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

  /// What the text of a node has twice is a variable.
  void drop_repeated(const Node& node, std::vector<const Node*>& candidates) {
    if (candidates.empty() || is_call_module(node) || structure_.module_of.contains(&node)) return;
    const AtenOpEntry& entry = get_aten_op(node);
    if (entry.op->emit == nullptr) return;
    const auto text = [&](const Value* value, int place) {
      const std::string mark = fmt::format("<{}>", static_cast<const void*>(value));
      return value->producer && nested_.contains(value->producer) ? mark : text_of(value, place);
    };
    const std::string all =
        spell(Emission(node, entry, text, scope_.device, [](const Value*) { return false; }), *entry.op).first;
    std::erase_if(candidates, [&](const Node* candidate) {
      const std::string mark = fmt::format("<{}>", static_cast<const void*>(candidate->output(0)));
      const bool is_repeated = all.find(mark) != all.rfind(mark);
      if (is_repeated) nested_.erase(candidate);
      return is_repeated;
    });
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
    if (is_call_module(node) || is_control(node)) return false;
    const std::string_view spelling = get_aten_op(node).op->python;
    return !spelling.empty() && spelling[0] != '.' && !std::isalpha(static_cast<unsigned char>(spelling[0]));
  }

  static bool is_subscript(const Node& node) { return !is_call_module(node) && get_aten_op(node).op->subscript; }
  static bool is_call_module(const Node& node) { return is_tonnx(node, "call_module"); }

  /// What is returned, or carried on to the next iteration, need not be a variable first.
  void nest_into_end() {
    constexpr size_t kShort = 48;
    for (const Value* output : graph_.outputs()) {
      const Node* producer = output->producer;
      if (!producer || producer->graph != &graph_ || producer->outputs().size() != 1 || output->uses.size() != 1 ||
          is_control(*producer))
        continue;
      if (graph_.outputs().size() > 1 &&
          (parent_ == nullptr || expression(*producer).first.size() > kShort || depth(*producer) > 1))
        continue;
      nested_.insert(producer);
    }
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
    if (is_control(node)) {
      for (const Value* value : captured_by(node)) use(value);
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
      const std::string name = scope_.parameters.add(wish);
      variable_[input] = name;
      scope_.result.parameters.push_back(name);
      if (scope_.device.empty() && input->type.is_tensor()) scope_.device = name + ".device";
    }
    if (scope_.device.empty() && !structure_.state.empty())
      scope_.device = "self." + structure_.state[0].name + ".device";
  }

  std::string text_of(const Value* value, int place) const {
    if (is_constant(value)) return structure_.place.at(value);
    if (value->producer && nested_.contains(value->producer)) {
      const auto [text, binding] = expression(*value->producer);
      return binding < place ? "(" + text + ")" : text;
    }
    const std::string* name = find_variable(value);
    return name == nullptr ? "xx" : *name;  // before names are given, a text of usual length
  }

  const std::string* find_variable(const Value* value) const {
    const auto at = variable_.find(value);
    if (at != variable_.end()) return &at->second;
    return parent_ != nullptr ? parent_->find_variable(value) : nullptr;
  }

  bool is_tensor_counter(const Value* value) const {
    return value == tensor_counter_ || (parent_ != nullptr && parent_->is_tensor_counter(value));
  }

  std::pair<std::string, int> expression(const Node& node) const {
    if (is_tonnx(node, "int_scalar") && node.input(0) != nullptr && is_tensor_counter(node.input(0))) {
      return {text_of(node.input(0), 0), precedence::kAtom};
    }
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
    const Emission emission(node, entry, text, scope_.device, is_inside);
    const auto module = structure_.module_of.find(&node);
    if (module == structure_.module_of.end()) return spell(emission, *entry.op);
    const Submodule& submodule = structure_.modules[module->second];
    std::vector<std::string> arguments;
    for (const std::string& input : submodule.spec.inputs) {
      const Param& param = entry.signature.inputs[static_cast<size_t>(entry.signature.find_input(input))];
      const bool is_tuple = param.is_list && param.type == "Tensor";
      arguments.push_back(is_tuple ? python_tuple(emission.items(input)) : emission.text(input));
    }
    return {fmt::format("self.{}({})", submodule.name, join(arguments)), precedence::kAtom};
  }

  /// Whether the variable is needed behind that position, here or in the blocks around.
  bool is_live(const std::string& name, int position) const {
    if (reserved_.contains(name)) return true;
    if (const auto at = holder_.find(name); at != holder_.end()) {
      const auto last = last_use_.find(at->second);
      if (last != last_use_.end() && last->second > position) return true;
    }
    return parent_ != nullptr && parent_->is_live(name, parent_->position_.at(owner_) - 1);
  }

  /// Up to which position of this block a name is needed.
  int needed_until(const std::string& name) const {
    if (scope_.parameters.contains(name) || reserved_.contains(name)) return Numbers::kAlways;
    if (parent_ != nullptr && parent_->is_live(name, parent_->position_.at(owner_) - 1)) return Numbers::kAlways;
    const auto held = holder_.find(name);
    const auto last = held == holder_.end() ? last_use_.end() : last_use_.find(held->second);
    return last == last_use_.end() ? -1 : last->second;
  }

  /// The numbers behind a word, of which the first is `first`.
  Numbers& numbers_of(const std::string& word, int first) {
    if (const auto at = numbers_.find({word, first}); at != numbers_.end()) return at->second;
    Numbers* outer = nullptr;
    if (parent_ != nullptr) {
      outer = &parent_->numbers_of(word, first);
      outer->release(parent_->position_.at(owner_) - 1);
    }
    return numbers_.try_emplace({word, first}, first, outer).first->second;
  }

  /// The word with the lowest number, from `first` on, that is not needed behind the position and not among `others`.
  std::string numbered(const std::string& word, int first, int position, ChosenNames* others = nullptr) {
    const auto name = [&](int number) { return fmt::format("{}{}", word, number); };
    const int number =
        numbers_of(word, first)
            .find(
                position, others ? others->last_number(word) : 0, [&](int i) { return needed_until(name(i)); },
                [&](int i) { return others == nullptr || !others->contains(name(i)); });
    if (others != nullptr) others->last_number(word) = number;
    return name(number);
  }

  std::string free_name(int position) {
    for (const std::string_view name : kPool) {
      if (!scope_.parameters.contains(name) && !is_live(std::string(name), position)) return std::string(name);
    }
    return numbered("x", 1, position);
  }

  /// A plain number or a list of them.
  static bool is_number(const Value& value) {
    const Type::Kind kind = value.type.kind;
    return kind == Type::Kind::Int || kind == Type::Kind::IntList || kind == Type::Kind::Float ||
           kind == Type::Kind::Bool;
  }

  /// The name of a size, as `batch`, where the model has one for it.
  std::string number_name(const Value* value, int position) {
    std::string wish = identifier(value->name);
    if (wish.empty() || wish.size() > 24 || is_made_up(value->name) || value->name.find('/') != std::string::npos)
      wish = "n";
    for (const std::string_view plain : {"n", "ints"}) {  // what has no name of its own
      if (wish.starts_with(plain) && wish.find_first_not_of("_0123456789", plain.size()) == std::string::npos)
        wish = plain;
    }
    return needed_until(wish) <= position ? wish : numbered(wish, 2, position);
  }

  std::string choose_name(const Value* output, const Node& node, int position) {
    if (!last_use_.contains(output)) return "_";
    if (is_number(*output)) return number_name(output, position);
    std::string reuse;
    visit_leaves(node, [&](const Value* value) {
      if (!reuse.empty() || is_number(*value)) return;
      const std::string& name = *find_variable(value);
      if (!scope_.parameters.contains(name) && !is_live(name, position)) reuse = name;
    });
    return reuse.empty() ? free_name(position) : reuse;
  }

  /// `y, (h, c)`, or `y, _` where nobody wants what is inside.
  static std::vector<std::string> nested_targets(const std::vector<std::string>& targets) {
    const std::vector<std::string> inner(targets.begin() + 1, targets.end());
    const bool is_unused = std::all_of(inner.begin(), inner.end(), [](const std::string& name) { return name == "_"; });
    return {targets[0], is_unused ? "_" : python_tuple(inner)};
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
    if (const auto module = structure_.module_of.find(&node);
        module != structure_.module_of.end() && structure_.modules[module->second].spec.nests_results) {
      targets = nested_targets(targets);
    }
    const AtenOpEntry* entry = find_aten_op(node);
    const bool is_nested = entry && entry->signature.outputs.size() == 2 && entry->signature.outputs[1].is_list;
    if (is_nested) targets = nested_targets(targets);  // a tensor, and a list of them
    const bool unpacks_one = targets.size() == 1 && entry && entry->signature.outputs[0].is_list &&
                             entry->signature.outputs[0].type == "Tensor";
    add(fmt::format("{} = {}", unpacks_one ? fmt::format("({},)", targets[0]) : join(targets), text));
  }

  // Branches

  /// Whether a value may share memory with one that exists outside the block.
  bool is_alias(const Value* value) const {
    static const std::set<std::string, std::less<>> kViews = {
        "view",    "reshape",    "flatten", "permute", "transpose", "t",         "squeeze",          "unsqueeze",
        "slice",   "select",     "expand",  "narrow",  "movedim",   "split",     "split_with_sizes", "unbind",
        "chunk",   "contiguous", "to",      "detach",  "diagonal",  "unfold",    "swapaxes",         "expand_as",
        "view_as", "list_at",    "real",    "mT",      "squeeze_",  "unflatten", "dropout"};
    if (value->graph != &graph_ || value->producer == nullptr) return true;
    if (std::count(graph_.outputs().begin(), graph_.outputs().end(), value) > 1) return true;
    if (is_control(*value->producer) && !(is_tonnx(*value->producer, "cond") && can_be_cond(*value->producer)))
      return true;
    return kViews.contains(value->producer->op.view());
  }

  /// Both branches must give tensors that lie in memory in the same way.
  std::string copy_of(const Value* value) const {
    const bool is_view = value->graph == &graph_ && value->producer != nullptr;
    return text_of(value, precedence::kAtom) + (is_view ? ".clone(memory_format=torch.contiguous_format)" : ".clone()");
  }

  void write_if(const Node& node) {
    const int position = position_.at(&node);
    std::string condition = text_of(node.input(0), 0);
    if (condition.starts_with('(') && condition.ends_with(')') && !node.input(0)->type.is_tensor() &&
        nested_.contains(node.input(0)->producer)) {
      condition = condition.substr(1, condition.size() - 2);
    }
    if (can_be_cond(node)) {
      if (!scope_.result.statements.empty() && scope_.result.statements.back().level == level_) add("");
      for (const char* name : {"then_branch", "else_branch"}) {
        BlockWriter branch(graph_of(node, name), scope_, this, &node, level_ + 1);
        add(fmt::format("def {}():", name));
        branch.write_statements();
        branch.write_return(true);
        add("");
      }
      set_outputs(node, position);
      std::vector<std::string> names;
      for (const Value* output : node.outputs())
        names.push_back(variable_.contains(output) ? variable_.at(output) : "_");
      add(fmt::format("{} = torch.cond({} if torch.compiler.is_compiling() else bool({}), then_branch, else_branch)",
                      names.size() == 1 ? names[0] : join(names), condition, condition));
      return;
    }
    // the names are chosen first, and set at the end of each branch
    std::vector<std::string> names;
    ChosenNames chosen;
    for (const Value* output : node.outputs())
      names.push_back(last_use_.contains(output) ? new_name(*output, position, chosen) : "");
    for (const char* name : {"then_branch", "else_branch"}) {
      BlockWriter branch(graph_of(node, name), scope_, this, &node, level_ + 1);
      add(name[0] == 't' ? fmt::format("if {}:", condition) : "else:");
      const size_t before = statement_count();
      branch.write_statements();
      branch.write_assignment(names);
      if (statement_count() == before) add("pass", 1);
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (!names[i].empty()) set_variable(node.output(i), names[i]);
    }
  }

  void set_outputs(const Node& node, int position) {
    ChosenNames names;
    for (const Value* output : node.outputs()) {
      if (last_use_.contains(output)) set_variable(output, new_name(*output, position, names));
    }
  }

  /// A name that nothing has which is needed at that position or behind it, and that is not among `others`, where it is
  /// added.
  std::string new_name(const Value& value, int position, ChosenNames& others) {
    std::string name = find_name(value, position, others);
    others.add(name);
    return name;
  }

  std::string find_name(const Value& value, int position, ChosenNames& others) {
    const auto is_free = [&](const std::string& name) {
      return needed_until(name) < position && !others.contains(name);
    };
    if (value.type.kind == Type::Kind::Tensor || value.type.kind == Type::Kind::Unknown) {
      for (const std::string_view name : kPool) {
        if (is_free(std::string(name))) return std::string(name);
      }
      return numbered("x", 1, position - 1, &others);
    }
    const char* word = value.type.kind == Type::Kind::Sequence ? "items"
                       : value.type.kind == Type::Kind::Int    ? "i"
                                                               : "x";
    if (word[0] == 'x') return numbered(word, 1, position - 1, &others);
    return is_free(word) ? word : numbered(word, 2, position - 1, &others);
  }

  // Loops

  LoopParts parts_of(const Node& node) const {
    const AttrValue& scans = node.find_attribute("scans")->value;
    static const AttrList kNone;
    const auto* initial = node.find_attribute("initial")->value.get<AttrList>();
    LoopParts parts{graph_of(node, "body"), initial ? *initial : kNone, "", nullptr,
                    static_cast<size_t>(*scans.get<int64_t>())};
    if (const Attribute* count = node.find_attribute("count")) {
      if (const auto* number = count->value.get<int64_t>()) parts.count = std::to_string(*number);
      if (const auto* operand = count->value.get<Operand>()) parts.count = text_of(node.input(operand->index), 0);
      if (parts.count.starts_with('(') && parts.count.ends_with(" else 0)"))
        parts.count = parts.count.substr(1, parts.count.size() - 2);
    }
    if (const Attribute* keep = node.find_attribute("keep_on")) {
      if (const auto* operand = keep->value.get<Operand>()) parts.keep_on = node.input(operand->index);
    }
    return parts;
  }

  /// What the loop may go up to, as a tensor or a number: `n` of `n.item()`, and the condition that comes with it.
  std::string while_condition(const Node& node, const LoopParts& parts, const std::string& counter,
                              const std::string& keep) const {
    std::vector<std::string> terms;
    if (!keep.empty()) terms.push_back(keep);
    if (const Attribute* count = node.find_attribute("count"); count && !parts.count.empty()) {
      std::string limit = parts.count;
      if (const auto* operand = count->value.get<Operand>()) {
        const Node* counted = node.input(operand->index)->producer;
        if (counted && is_tonnx(*counted, "count_if")) {
          terms.push_back(text_of(counted->input(0), precedence::kBitAnd));
          const Value* number = counted->input(1);
          const auto* constant = counted->find_attribute("count")->value.get<int64_t>();
          limit = constant ? std::to_string(*constant) : text_of(number, precedence::kCompare + 1);
          counted = number ? number->producer : nullptr;
        }
        if (counted && is_tonnx(*counted, "item")) limit = text_of(counted->input(0), precedence::kCompare + 1);
      }
      const std::string below = fmt::format("{} < {}", counter, limit);
      terms.push_back(terms.empty() ? below : "(" + below + ")");
    }
    if (terms.size() == 1 && terms[0] == keep) return keep + ".clone()";  // what goes in must not come out
    return join(terms, " & ");
  }

  void write_while(const Node& node, const LoopParts& parts) {
    const int position = position_.at(&node);
    BlockWriter inner(parts.body, scope_, this, &node, level_ + 1);
    ChosenNames chosen;
    std::vector<std::string> names{free_word("i", chosen, position)};
    if (parts.keep_on != nullptr) names.push_back(free_word("keep_on", chosen, position));
    const std::string keep = parts.keep_on != nullptr ? names[1] : "";
    std::unordered_set<std::string> given;  // texts among the initial values
    std::vector<std::string> initial{
        fmt::format("torch.tensor(0{})", scope_.device.empty() ? "" : ", device=" + scope_.device)};
    if (parts.keep_on != nullptr) initial.push_back(text_of(parts.keep_on, 0));
    given.insert(initial.begin(), initial.end());
    for (const std::string& name : names) inner.reserve(name);
    inner.set_variable(parts.body.inputs()[0], names[0]);
    inner.tensor_counter_ = parts.body.inputs()[0];
    for (size_t i = 0; i < parts.initial.size(); ++i) {
      const Value* value = node.input(parts.initial[i].get<Operand>()->index);
      std::string text = text_of(value, 0);
      const bool is_twice = given.contains(text);
      names.push_back(new_name(*node.output(i), position, chosen));
      initial.push_back(is_twice || is_constant(value) ? text_of(value, precedence::kAtom) + ".clone()"
                                                       : std::move(text));
      given.insert(initial.back());
      inner.set_variable(parts.body.inputs()[i + 1], names.back());
    }
    if (!scope_.result.statements.empty() && scope_.result.statements.back().level == level_) add("");
    add(fmt::format("def condition({}):", join(names)));
    add("return " + while_condition(node, parts, names[0], keep), 1);
    add("");
    add(fmt::format("def body({}):", join(names)));
    inner.write_statements();
    inner.write_return(true, names[0] + " + 1");
    add("");
    const std::string state = free_word("state", chosen, position);
    add(fmt::format("{} = ({}{})", state, join(initial), initial.size() == 1 ? "," : ""));
    add("if torch.compiler.is_compiling():");
    add(fmt::format("{} = torch.while_loop(condition, body, {})", state, state), 1);
    add("else:");
    add(fmt::format("while condition(*{}):", state), 1);
    add(fmt::format("{} = body(*{})", state, state), 2);
    std::vector<std::string> targets(names.size() - node.outputs().size(), "_");
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      const bool is_used = last_use_.contains(node.output(i));
      targets.push_back(is_used ? names[names.size() - node.outputs().size() + i] : "_");
      if (is_used) set_variable(node.output(i), targets.back());
    }
    add(fmt::format("{} = {}", targets.size() == 1 ? targets[0] + "," : join(targets), state));
  }

  void write_loop(const Node& node) {
    const int position = position_.at(&node);
    const LoopParts parts = parts_of(node);
    if (can_be_while(node, parts)) return write_while(node, parts);
    const Graph& body = parts.body;
    const size_t carried = parts.initial.size();
    BlockWriter inner(body, scope_, this, &node, level_ + 1);
    ChosenNames chosen;
    std::vector<std::string> names;  // of what is carried, then of the lists
    for (size_t i = 0; i < carried; ++i) {
      const Value* initial = node.input(parts.initial[i].get<Operand>()->index);
      names.push_back(new_name(*node.output(i), position, chosen));
      add(fmt::format("{} = {}", names[i], text_of(initial, 0)));
      inner.set_variable(body.inputs()[i + 1], names[i]);
    }
    for (size_t i = 0; i < parts.scans; ++i) {
      names.push_back(free_word("steps", chosen, position));
      add(names.back() + " = []");
      inner.reserve(names.back());
    }
    std::string keep;
    if (parts.keep_on != nullptr) {
      keep = free_word("keep_on", chosen, position);
      inner.reserve(keep);
      add(fmt::format("{} = {}", keep, text_of(parts.keep_on, 0)));
    }
    std::string counter = "_";
    if (!body.inputs()[0]->uses.empty()) {
      counter = new_name(*body.inputs()[0], position, chosen);
      inner.set_variable(body.inputs()[0], counter);
      inner.reserve(counter);
    }
    const bool is_while = parts.count.empty() && counter == "_" && !keep.empty();
    add(is_while              ? fmt::format("while {}:", keep)
        : parts.count.empty() ? fmt::format("for {} in itertools.count():", counter)
                              : fmt::format("for {} in range({}):", counter, parts.count));
    const size_t before = statement_count();
    if (!keep.empty() && !is_while) {
      add(fmt::format("if not {}:", keep), 1);
      add("break", 2);
    }
    inner.write_statements();
    const size_t first = keep.empty() ? 0 : 1;
    for (size_t i = 0; i < parts.scans; ++i)
      add(fmt::format("{}.append({})", names[carried + i], inner.output_text(first + carried + i)), 1);
    std::vector<std::string> targets(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(carried));
    if (!keep.empty()) targets.insert(targets.begin(), keep);
    inner.write_assignment(targets);
    if (statement_count() == before) add("pass", 1);
    for (size_t i = 0; i < parts.scans; ++i) {
      const Value* output = node.output(carried + i);
      if (last_use_.contains(output)) add(stacked(names[carried + i], *output, keep.empty() ? parts.count : ""));
    }
    for (size_t i = 0; i < node.outputs().size(); ++i) set_variable(node.output(i), names[i]);
  }

  /// The list of scan outputs as one tensor; without iterations there is nothing to be stacked.
  std::string stacked(const std::string& name, const Value& output, const std::string& count) const {
    const bool runs = !count.empty() && count.find_first_not_of("0123456789") == std::string::npos && count != "0";
    if (runs) return fmt::format("{} = torch.stack({})", name, name);
    std::vector<std::string> arguments{"0"};
    for (size_t i = 1; output.type.shape && i < output.type.shape->size(); ++i) {
      arguments.push_back(std::to_string((*output.type.shape)[i].constant().value_or(0)));
    }
    if (output.type.dtype != DType::Undefined && output.type.dtype != DType::Float32)
      arguments.push_back("dtype=" + python_dtype(output.type.dtype));
    if (!scope_.device.empty()) arguments.push_back("device=" + scope_.device);
    return fmt::format("{} = torch.stack({}) if {} else torch.empty({})", name, name, name, join(arguments));
  }

  std::string free_word(const std::string& wish, ChosenNames& others, int position) {
    const bool is_free = needed_until(wish) < position && !others.contains(wish);
    std::string name = is_free ? wish : numbered(wish, 2, position - 1, &others);
    others.add(name);
    return name;
  }

  const Graph& graph_;
  Scope& scope_;
  const Structure& structure_;
  BlockWriter* parent_;
  const Node* owner_;
  int level_;
  std::unordered_map<const Node*, int> position_;
  std::unordered_set<const Node*> nested_;
  std::unordered_map<const Value*, int> last_use_;
  std::unordered_map<const Value*, std::string> variable_;
  std::unordered_map<std::string, const Value*> holder_;  // variable -> the value it has now
  std::set<std::string, std::less<>> reserved_;
  std::map<std::pair<std::string, int>, Numbers> numbers_;  // by the word in front of them, and the first
  const Value* tensor_counter_ = nullptr;                   // the number of the iteration, where that is a tensor
};

}  // namespace

Forward write_forward(const Graph& graph, const Structure& structure) {
  Scope scope{structure, {}, {}, {}};
  BlockWriter block(graph, scope);
  block.write_statements();
  block.write_return();
  return std::move(scope.result);
}

}  // namespace tonnx::python
