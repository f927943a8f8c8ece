// code_writer.cpp - statements, branches, loops and classes of TorchScript's code.
#include "formats/torchscript/code/code_writer.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/code/spelling.h"
#include "formats/torchscript/dtype.h"
#include "ops/frame/emission.h"
#include "ops/frame/python_names.h"

namespace tonnx::torchscript {
namespace {

/// What code of TorchScript means by itself.
constexpr const char* kReserved[] = {"torch",   "ops",     "annotate",   "unchecked_cast", "uninitialized", "CONSTANTS",
                                     "inf",     "nan",     "fork",       "Tensor",         "List",          "Optional",
                                     "Tuple",   "Dict",    "Any",        "NoneType",       "range",         "print",
                                     "getattr", "hasattr", "isinstance", "tuple",          "list",          "dict",
                                     "str",     "complex", "device",     "Device",         "enumerate",     "zip",
                                     "super",   "abs",     "round",      "divmod",         "sorted",        "id",
                                     "Module",  "Future",  "Generator",  "number",         "Scalar",        "Stream",
                                     "bool",    "any",     "all"};

const Graph& graph_of(const Node& node, std::string_view name) {
  return **node.find_attribute(name)->value.get<GraphPtr>();
}

constexpr size_t kLargeBranch = 40;  // nodes

size_t size_of(const Graph& graph) {
  size_t count = graph.node_count();
  for (const Node& node : graph) {
    for (const GraphPtr& inner : subgraphs_of(node)) count += size_of(*inner);
  }
  return count;
}

bool is_own(const Node& node, std::string_view op) { return node.domain == "tonnx" && node.op == Symbol(op); }

std::string list_of_names(const std::vector<StateEntry>& tensors, bool trainable) {
  std::string text;
  for (const StateEntry& tensor : tensors) {
    if (tensor.trainable == trainable) text += python_string(tensor.name) + ", ";
  }
  return "[" + text + "]";
}

/// The lines of a class in front of its methods.
std::string class_head(std::string_view name, const std::vector<StateEntry>& tensors) {
  std::string text = fmt::format("class {}(Module):\n  __parameters__ = {}\n  __buffers__ = {}\n", name,
                                 list_of_names(tensors, true), list_of_names(tensors, false));
  for (const StateEntry& tensor : tensors) text += fmt::format("  {} : Tensor\n", tensor.name);
  return text + "  training : bool\n";
}

class CodeWriter {
 public:
  CodeWriter(const Graph& graph, const ModuleTree& tree) : graph_(graph), tree_(tree) {
    for (const char* name : kReserved) taken_.reserve(name);
    classes_.reserve("Model");
    context_.name_of = [this](const Value* value) { return name_of(value); };
    context_.type_of = [this](const Value* value) { return type_of(*value); };
    result_.classes.resize(tree.submodules.size());
  }

  Code write() {
    name_state();
    name_inputs();
    write_nodes(graph_);
    write_return();
    finish();
    return std::move(result_);
  }

 private:
  void name_state() {
    members_.reserve("forward");
    for (const StateEntry& tensor : tree_.tensors) {
      names_[tensor.value] = "self." + tensor.name;
      members_.reserve(tensor.name);
    }
    for (const Submodule& module : tree_.submodules) {
      members_.reserve(module.name);
      for (const StateEntry& tensor : module.state)
        names_[tensor.value] = fmt::format("self.{}.{}", module.name, tensor.name);
    }
  }

  void name_inputs() {
    for (const Value* input : graph_.inputs()) {
      std::string hint = python::identifier(input->name);
      if (hint.empty() || python::is_made_up(input->name)) hint = graph_.inputs().size() == 1 ? "x" : "input";
      if (input->type.is_tensor() && input->type.dtype == DType::String)
        fail_unsupported("input '{}' is of strings, which PyTorch has no tensors of", input->name);
      result_.arguments.push_back(give_name(input, hint));
      if (!input->type.is_tensor()) continue;
      // a tensor of no dimensions may be of the processor beside others of a device
      const bool is_better = device_input_ == nullptr || (device_input_->type.rank() == 0 && input->type.rank() != 0);
      if (!is_better) continue;
      device_input_ = input;
      context_.device = fmt::format("ops.prim.device({})", result_.arguments.back());
    }
  }

  std::string name_of(const Value* value) const {
    const auto at = names_.find(value);
    if (at == names_.end()) fail_unsupported("'{}' has no place in a TorchScript file", value->name);
    return at->second;
  }

  std::string type_of(const Value& value) const {
    const auto at = types_.find(&value);
    return at == types_.end() ? type_text(value) : at->second;
  }

  const std::string& give_name(const Value* value, std::string_view hint) {
    const std::string name = python::identifier(hint);
    return names_[value] = taken_.add(name.empty() ? "value" : name);
  }

  void add(std::string_view text) {
    budget().take(Resource::Text, static_cast<int64_t>(text.size()));
    body_ += fmt::format("{:{}}{}\n", "", 2 * level_, text);
  }

  // Statements

  void write_nodes(const Graph& graph) {
    for (const Node& node : graph) {
      in_context(
          [&] { return fmt::format("writing node '{}' ({}::{})", node.name, node.domain.view(), node.op.view()); },
          [&] {
            if (is_own(node, "cond")) return write_if(node);
            if (is_own(node, "loop")) return write_loop(node);
            write_node(node);
          });
    }
  }

  void write_node(const Node& node) {
    const auto module = tree_.submodule_of.find(&node);
    const std::string text =
        module == tree_.submodule_of.end() ? node_text(node, context_) : call_module(node, module->second);
    if (gives_list(node)) {
      const std::string all = taken_.add("parts");
      add(fmt::format("{} = {}", all, text));
      for (size_t i = 0; i < node.outputs().size(); ++i) {
        if (node.output(i) != nullptr && !node.output(i)->uses.empty())
          add(fmt::format("{} = {}[{}]", give_name(node.output(i), node.output(i)->name), all, i));
      }
      return;
    }
    const size_t count = node.domain == "aten" ? get_aten_op(node).signature.outputs.size() : 1;
    std::vector<std::string> targets;
    for (size_t i = 0; i < count; ++i) {
      const Value* output = node.output(i);
      targets.push_back(output != nullptr ? give_name(output, output->name) : taken_.add("unused"));
    }
    add(fmt::format("{} = {}", joined(targets), text));
  }

  void write_return() {
    std::vector<std::string> texts, types;
    for (const Value* output : graph_.outputs()) {
      texts.push_back(name_of(output));
      types.push_back(type_of(*output));
    }
    add(texts.size() == 1 ? "return " + texts[0] : fmt::format("return ({})", joined(texts)));
    return_type_ = types.size() == 1 ? types[0] : fmt::format("Tuple[{}]", joined(types));
  }

  // Modules

  /// What is called where a node is one of a module; the class of the module is made on the first call.
  std::string call_module(const Node& node, size_t index) {
    const Submodule& module = tree_.submodules[index];
    std::map<const Value*, std::string> inner;
    std::vector<std::string> arguments, parameters;
    for (const StateEntry& tensor : module.state) inner[tensor.value] = "self." + tensor.name;
    for (const Value* input : node.inputs()) {
      if (input == nullptr || inner.contains(input)) continue;
      inner[input] = arguments.empty() ? "input" : fmt::format("input_{}", arguments.size());
      parameters.push_back(fmt::format("{}: {}", inner[input], type_of(*input)));
      arguments.push_back(name_of(input));
    }
    Context context;
    context.in_module = true;
    context.name_of = [&](const Value* value) { return inner.at(value); };
    context.type_of = context_.type_of;
    const std::string text = node_text(node, context);
    if (gives_list(node) || !context.functions.empty()) return node_text(node, context_);
    const size_t count = get_aten_op(node).signature.outputs.size();
    std::string type = "Tensor";
    if (count != 1) type = fmt::format("Tuple[{}]", joined(std::vector<std::string>(count, "Tensor")));
    parameters.insert(parameters.begin(), "self");
    const std::string method =
        fmt::format("  def forward({}) -> {}:\n    return {}\n", joined(parameters, ",\n    "), type, text);
    std::string& name = result_.classes[index];
    if (name.empty()) name = class_for(module, method);
    if (methods_.at(name) != method) return node_text(node, context_);
    return fmt::format("(self.{}).forward({})", module.name, joined(arguments));
  }

  const std::string& class_for(const Submodule& module, const std::string& method) {
    std::string& name = class_of_[module.spec.type + class_head("", module.state) + method];
    if (!name.empty()) return name;
    const size_t dot = module.spec.type.rfind('.');
    name = classes_.add(module.spec.type.substr(dot == std::string::npos ? 0 : dot + 1));
    methods_[name] = method;
    result_.source += class_head(name, module.state) + method;
    return name;
  }

  // Branches and loops

  /// The value as that of another variable, which may hold nothing, or may not.
  std::string as_type_of(const Value& variable, const Value& value) const {
    const std::string type = type_of(variable);
    if (type.starts_with("Optional[")) return fmt::format("annotate({}, {})", type, name_of(&value));
    return unwrapped(name_of(&value), type_of(value));
  }

  void write_if(const Node& node) {
    const std::string condition = condition_text(*node.input(0), context_);
    for (const Value* output : node.outputs()) {
      if (output == nullptr) continue;
      give_name(output, output->name);
      for (const char* name : {"then_branch", "else_branch"}) {
        const std::string type = type_of(*graph_of(node, name).outputs()[output->output_index]);
        if (output->type.kind == Type::Kind::Unknown && type.starts_with("Optional[")) types_[output] = type;
      }
    }
    for (const char* name : {"then_branch", "else_branch"}) {
      const Graph& branch = graph_of(node, name);
      add(name[0] == 't' ? fmt::format("if {}:", condition) : "else:");
      ++level_;
      if (size_of(branch) > kLargeBranch) {
        write_branch_call(node, branch);
      } else {
        const size_t before = body_.size();
        write_nodes(branch);
        for (const Value* output : node.outputs()) {
          if (output != nullptr) add(fmt::format("{} = {}", name_of(output), result_text(*output, branch)));
        }
        if (body_.size() == before) add("pass");
      }
      --level_;
    }
  }

  /// What a branch gives for an output of its node.
  std::string result_text(const Value& output, const Graph& branch) const {
    return as_type_of(output, *branch.outputs()[output.output_index]);
  }

  /// A branch as a method of its own: the loader takes long for each variable that only one of two branches has.
  void write_branch_call(const Node& node, const Graph& branch) {
    std::string outer;
    std::swap(body_, outer);
    const int level = std::exchange(level_, 2);
    write_nodes(branch);
    std::vector<std::string> targets, texts, types;
    for (const Value* output : node.outputs()) {
      if (output == nullptr) continue;
      targets.push_back(name_of(output));
      texts.push_back(result_text(*output, branch));
      types.push_back(type_of(*output));
    }
    add(texts.size() == 1 ? "return " + texts[0] : fmt::format("return ({})", joined(texts)));
    std::vector<std::string> parameters{"self"}, arguments;
    for (const Value* value : used_from_outside(branch)) {
      arguments.push_back(name_of(value));
      parameters.push_back(fmt::format("{}: {}", arguments.back(), type_of(*value)));
    }
    const std::string name = members_.add("branch");
    methods_text_ += fmt::format("  def {}({}) -> {}:\n{}", name, joined(parameters, ",\n    "),
                                 types.size() == 1 ? types[0] : fmt::format("Tuple[{}]", joined(types)), body_);
    body_ = std::move(outer);
    level_ = level;
    add(fmt::format("{} = self.{}({})", joined(targets), name, joined(arguments)));
  }

  /// The variables that a branch uses, and the input whose device it may ask for.
  std::vector<const Value*> used_from_outside(const Graph& branch) const {
    std::vector<const Value*> found;
    std::set<const Value*> seen;
    std::set<const Graph*> inside;
    const auto use = [&](const Value* value) {
      if (value == nullptr || inside.contains(value->graph) || !seen.insert(value).second) return;
      if (!name_of(value).starts_with("self.")) found.push_back(value);
    };
    const std::function<void(const Graph&)> walk = [&](const Graph& graph) {
      inside.insert(&graph);
      for (const Node& node : graph) {
        for (const Value* input : node.inputs()) use(input);
        for (const GraphPtr& inner : subgraphs_of(node)) walk(*inner);
      }
      for (const Value* output : graph.outputs()) use(output);
    };
    walk(branch);
    use(device_input_);
    return found;
  }

  struct Loop {
    const Graph& body;
    std::vector<const Value*> initial;
    std::string count;  // empty: no limit
    const Value* keep_on = nullptr;
    size_t scans = 0;
  };

  Loop loop_of(const Node& node) const {
    Loop loop{graph_of(node, "body"), {}, "", nullptr, 0};
    if (const Attribute* count = node.find_attribute("count")) {
      if (const auto* number = count->value.get<int64_t>()) loop.count = std::to_string(*number);
      if (const auto* at = count->value.get<Operand>()) loop.count = name_of(node.input(at->index));
    }
    if (const Attribute* keep = node.find_attribute("keep_on")) {
      if (const auto* at = keep->value.get<Operand>()) loop.keep_on = node.input(at->index);
    }
    if (const auto* list = node.find_attribute("initial")->value.get<AttrList>()) {
      for (const AttrValue& item : *list) loop.initial.push_back(node.input(item.get<Operand>()->index));
    }
    loop.scans = static_cast<size_t>(*node.find_attribute("scans")->value.get<int64_t>());
    return loop;
  }

  void write_loop(const Node& node) {
    const Loop loop = loop_of(node);
    const size_t carried = loop.initial.size();
    std::vector<std::string> names;  // of what is carried
    for (size_t i = 0; i < carried; ++i) {
      const Value* output = node.output(i);
      const Value* inside = loop.body.inputs()[i + 1];
      names.push_back(give_name(inside, output ? output->name : inside->name));
      const std::string type = type_of(*loop.initial[i]);
      if (type.starts_with("Optional[") || inside->type.kind == Type::Kind::Unknown) types_[inside] = type;
      add(fmt::format("{} = {}", names[i], as_type_of(*inside, *loop.initial[i])));
      if (output == nullptr) continue;
      names_[output] = names[i];
      types_[output] = type_of(*inside);
    }
    std::vector<std::string> steps;
    for (size_t i = 0; i < loop.scans; ++i) {
      steps.push_back(taken_.add("steps"));
      add(steps.back() + " = annotate(List[Tensor], [])");
    }
    const std::string counter = give_name(loop.body.inputs()[0], "i");
    const std::string keep = loop.keep_on != nullptr ? taken_.add("keep_on") : "";
    if (keep.empty()) {
      if (loop.count.empty()) fail_unsupported("a loop without an end");
      add(fmt::format("for {} in range({}):", counter, loop.count));
    } else {
      add(fmt::format("{} = {}", keep, condition_text(*loop.keep_on, context_)));
      add(counter + " = 0");
      add(loop.count.empty() ? fmt::format("while {}:", keep)
                             : fmt::format("while {} < {} and {}:", counter, loop.count, keep));
    }
    ++level_;
    write_body(loop, names, steps, counter, keep);
    --level_;
    for (size_t i = 0; i < loop.scans; ++i) {
      const Value* output = node.output(carried + i);
      if (output != nullptr) add(fmt::format("{} = {}", give_name(output, output->name), stacked(steps[i], *output)));
    }
  }

  void write_body(const Loop& loop, const std::vector<std::string>& names, const std::vector<std::string>& steps,
                  const std::string& counter, const std::string& keep) {
    write_nodes(loop.body);
    const auto& outputs = loop.body.outputs();
    const size_t first = keep.empty() ? 0 : 1;
    for (size_t i = 0; i < steps.size(); ++i)
      add(fmt::format("torch.append({}, {})", steps[i], value_text(*outputs[first + names.size() + i], context_)));
    std::vector<std::string> targets, texts;
    for (size_t i = 0; i < names.size(); ++i) {
      std::string text = as_type_of(*loop.body.inputs()[i + 1], *outputs[first + i]);
      if (text == names[i]) continue;
      targets.push_back(names[i]);
      texts.push_back(std::move(text));
    }
    if (!keep.empty()) {
      targets.push_back(keep);
      texts.push_back(condition_text(*outputs[0], context_));
      targets.push_back(counter);
      texts.push_back(counter + " + 1");
    }
    if (targets.size() == 1) {
      add(fmt::format("{} = {}", targets[0], texts[0]));
    } else if (!targets.empty()) {
      add(fmt::format("{} = ({})", joined(targets), joined(texts)));
    } else {
      add("pass");
    }
  }

  /// What the iterations gave as one tensor; without any there is nothing to be stacked.
  std::string stacked(const std::string& steps, const Value& output) const {
    std::vector<std::string> sizes{"0"};
    for (size_t i = 1; output.type.shape && i < output.type.shape->size(); ++i)
      sizes.push_back(std::to_string((*output.type.shape)[i].constant().value_or(0)));
    const DType dtype = output.type.dtype == DType::Undefined ? DType::Float32 : output.type.dtype;
    return fmt::format("torch.stack({0}) if len({0}) > 0 else torch.zeros([{1}], dtype={2}{3})", steps, joined(sizes),
                       number_of(dtype), context_.device.empty() ? "" : ", device=" + context_.device);
  }

  void finish() {
    for (size_t i = 0; i < tree_.submodules.size(); ++i) {
      if (result_.classes[i].empty()) result_.classes[i] = class_for(tree_.submodules[i], "");
    }
    for (const auto& [name, definition] : context_.functions) result_.source += definition;
    std::string head = class_head("Model", tree_.tensors);
    for (size_t i = 0; i < tree_.submodules.size(); ++i)
      head += fmt::format("  {} : __torch__.{}\n", tree_.submodules[i].name, result_.classes[i]);
    std::vector<std::string> parameters{"self"};
    for (size_t i = 0; i < graph_.inputs().size(); ++i)
      parameters.push_back(fmt::format("{}: {}", result_.arguments[i], type_text(*graph_.inputs()[i])));
    result_.source += fmt::format("{}{}  def forward({}) -> {}:\n{}", head, methods_text_,
                                  joined(parameters, ",\n    "), return_type_, body_);
  }

  const Graph& graph_;
  const ModuleTree& tree_;
  Code result_;
  Context context_;
  python::NameSet taken_, classes_, members_;
  std::unordered_map<const Value*, std::string> names_;
  std::unordered_map<const Value*, std::string> types_;  // where it is not what the value says
  std::map<std::string, std::string> class_of_;          // by what it declares and does
  std::map<std::string, std::string> methods_;           // by the name of the class
  std::string body_, return_type_, methods_text_;
  const Value* device_input_ = nullptr;  // new tensors are made where it is
  int level_ = 2;
};

}  // namespace

Code write_code(const Graph& graph, const ModuleTree& tree) {
  return in_context([] { return std::string("writing the code"); }, [&] { return CodeWriter(graph, tree).write(); });
}

}  // namespace tonnx::torchscript
