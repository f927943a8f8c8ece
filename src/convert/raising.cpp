// raising.cpp - walks an aten graph and calls each operator's own raising.
#include "convert/raising.h"

#include <algorithm>
#include <stdexcept>

#include "base/budget.h"
#include "base/checked_int.h"
#include "base/error.h"
#include "base/join.h"
#include "convert/evaluate.h"
#include "convert/raised_model.h"
#include "ops/move/rows.h"

namespace tonnx {
namespace {

constexpr size_t kSmallConstant = 64;

bool is_number(const Value* value) { return value && value->type.kind == Type::Kind::Int; }

bool is_onnx_op(const Node& node) { return node.domain == "tonnx" && node.op == "onnx_op"; }

bool is_complex(const Type& type) { return type.is_tensor() && info(type.dtype).kind == 'c'; }

/// PyTorch's complex numbers are pairs of floats in ONNX, in a last dimension of their own.
Type represented(const Type& type) {
  Type result = type;
  if (type.dtype != DType::Complex64 && type.dtype != DType::Complex128) return result;
  result.dtype = type.dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
  if (result.shape) result.shape->emplace_back(2);
  return result;
}

/// A raising that gives something else than PyTorch, or a file that says something else than what its nodes do, is
/// found here rather than by the one who runs it.
void check_result(const Node& node, size_t i, const Type& wanted, const Type& found) {
  const auto differ = [&] {
    const auto is_pairs = [](const Value* value) { return value != nullptr && is_complex(value->type); };
    if (std::any_of(node.inputs().begin(), node.inputs().end(), is_pairs) || is_pairs(node.output(i)))
      fail_unsupported("{} of complex numbers", full_name(node));
    fail_invalid("{} gives {} as output {}, and the program says {}", full_name(node), text_of(found), i,
                 text_of(wanted));
  };
  if (found.kind != Type::Kind::Tensor) return;
  if (found.dtype != DType::Undefined && found.dtype != wanted.dtype) differ();
  if (!found.shape || !wanted.shape) return;
  if (found.shape->size() != wanted.shape->size()) differ();
  for (size_t d = 0; d < found.shape->size(); ++d) {
    const auto a = (*found.shape)[d].constant(), b = (*wanted.shape)[d].constant();
    if (a && b && *a != *b) differ();
  }
}

}  // namespace

Value* ModelRaising::weight_of(const Value* aten) {
  auto [at, fresh] = weights_.try_emplace(aten, nullptr);
  if (fresh) {
    TensorPtr tensor = aten->constant;
    if (is_complex(aten->type)) {
      auto pairs = std::make_shared<Tensor>(*tensor);
      pairs->dtype = represented(aten->type).dtype;
      pairs->dims.push_back(2);
      pairs->source = {};
      tensor = std::move(pairs);
    }
    at->second = root_->add_initializer(aten->name, std::move(tensor));
    at->second->trainable = aten->trainable;
  }
  return at->second;
}

Value* ModelRaising::value_of(const Value* aten) {
  if (Value* const* known = values_.find(aten)) return *known;
  if (aten->constant) return weight_of(aten);
  require(is_number(aten) && aten->known_ints.has_value(), "the value '{}' is not a tensor, and not a size",
          aten->name);
  return OnnxBuilder(*this).list(int_of(aten->known_ints->front()));
}

void ModelRaising::learn_sizes(Value* onnx, const Type& type) {
  if (!type.is_tensor() || !type.shape) return;
  for (size_t i = 0; i < type.shape->size(); ++i) {
    const Dim& dim = (*type.shape)[i];
    if (dim.is_constant() || where_.find(dim.text()) != nullptr || sizes_.find(dim.text()) != nullptr) continue;
    if (!onnx->constant) {
      where_.set(dim.text(), {onnx, static_cast<int64_t>(i)});
    } else if (i < onnx->constant->dims.size()) {  // folding knows what the program did not
      sizes_.set(dim.text(), OnnxBuilder(*this).list(onnx->constant->dims[i]));
    }
  }
}

void ModelRaising::define(const Value* aten, Value* onnx) {
  values_.set(aten, onnx);
  if (!aten->type.is_tensor()) return;
  if (!onnx->constant) onnx->type = represented(aten->type);
  learn_sizes(onnx, aten->type);
}

void ModelRaising::define_number(const Value* aten, Value* onnx) {
  if (!is_number(aten)) return values_.set(aten, onnx);
  define_list(aten, OnnxBuilder(*this).unsqueeze(onnx, {0}));
}

void ModelRaising::define_list(const Value* aten, Value* onnx) {
  values_.set(aten, onnx);
  if (is_number(aten) && aten->known_ints) sizes_.set(aten->known_ints->front().text(), onnx);
}

Value* ModelRaising::constant(TensorPtr tensor, std::string_view hint) {
  budget().take(Resource::Memory, static_cast<int64_t>(tensor->data.size()));
  if (tensor->data.size() > kSmallConstant) return root_->add_initializer(std::string(hint), std::move(tensor));
  std::string key = fmt::format("{} {} ", static_cast<int>(tensor->dtype), joined(tensor->dims, ","));
  key += tensor->data.view();
  auto [at, fresh] = constants_.try_emplace(std::move(key), nullptr);
  if (fresh) at->second = root_->add_initializer(std::string(hint), std::move(tensor));
  return at->second;
}

Node* ModelRaising::append(std::string_view op, const std::vector<Value*>& inputs, std::vector<Attribute> attributes) {
  const size_t dot = op.rfind('.');
  const bool is_standard = dot == std::string_view::npos;
  Node* made = onnx_->add_node(is_standard ? "" : op.substr(0, dot), is_standard ? op : op.substr(dot + 1));
  made->version = is_standard ? kNewestOpset : 1;
  for (Attribute& attribute : attributes)
    made->set_attribute(attribute.name, std::move(attribute.value), attribute.type);
  size_t last = inputs.size();
  while (last > 0 && inputs[last - 1] == nullptr) --last;
  for (size_t i = 0; i < last; ++i) made->add_input(inputs[i]);
  if (current_ != nullptr) {
    made->name = current_->name;
    budget().take(Resource::Text, static_cast<int64_t>(made->name.size()));
    made->metadata = current_->metadata;
  }
  return made;
}

void ModelRaising::complete(Node& node) {
  const OnnxOpEntry* entry = find_onnx_op(node.domain.view(), node.op.view());
  if (entry == nullptr) return;
  check_against_signature(node, *entry);
  if (entry->op->infer != nullptr) {
    InferNode view(node, *entry, fresh_);
    entry->op->infer(view);
  }
  const bool is_of_weights = std::any_of(node.inputs().begin(), node.inputs().end(),
                                         [](const Value* input) { return input && input->trainable; });
  for (Value* output : node.outputs()) {  // what a weight is in other sizes, inference has found out
    if (output == nullptr || !output->constant || !is_of_weights) continue;
    if (options_->keeps_weights) output->constant = nullptr;
    output->trainable = output->constant && is_float(output->constant->dtype);
  }
  if (options_->keeps_weights && node.op != "Transpose" && is_of_weights) return;
  if (has_trait(node, kQuantizes)) return;  // engines know quantised weights by the nodes around them
  fold_node(node, *entry, fresh_);
}

bool ModelRaising::can_make(const Dim& dim) const {
  if (dim.is_constant()) return true;
  const std::string text = dim.text();
  if (sizes_.find(text) != nullptr || where_.find(text) != nullptr) return true;
  const auto terms = dim.terms();
  return !dim.symbol_name() && std::all_of(terms.begin(), terms.end(), [&](const auto& term) {
    return std::all_of(term.first.begin(), term.first.end(), [&](const Dim::AtomPtr& atom) {
      return atom->kind == 's' ? can_make(Dim::symbol(atom->text)) : can_make(atom->a) && can_make(atom->b);
    });
  });
}

IntArg ModelRaising::int_of(const Dim& dim) {
  if (const auto number = dim.constant()) return *number;
  const std::string text = dim.text();
  if (Value* const* known = sizes_.find(text)) return *known;
  const auto remember = [&](const IntArg& arg) {
    if (arg.value != nullptr) {
      arg.value->known_ints = {dim};
      sizes_.set(text, arg.value);
    }
    return arg;
  };
  OnnxBuilder onnx(*this);
  if (const auto* at = where_.find(text))
    return remember(onnx("Shape", {at->first}, {{"start", at->second}, {"end", at->second + 1}}));
  if (dim.symbol_name()) fail_unsupported("no tensor at hand has the size '{}'", text);
  int64_t constant = dim.constant_term();
  for (const auto& [product, coefficient] : dim.terms()) {
    if (product.size() == 1) constant = checked_sub(constant, checked_mul(coefficient, lift_of(*product[0])));
  }
  IntArg sum = constant;
  for (const auto& [product, coefficient] : dim.terms()) {
    IntArg term = product.size() == 1 ? lifted(*product[0]) : int_of_atom(*product[0]);
    for (size_t i = 1; i < product.size(); ++i) term = onnx.mul(term, int_of_atom(*product[i]));
    const IntArg scaled =
        coefficient == -1 ? term : onnx.mul(term, coefficient < 0 ? checked_sub(0, coefficient) : coefficient);
    sum = coefficient < 0 ? onnx.sub(sum, scaled) : onnx.add(sum, scaled);
  }
  return remember(sum);
}

/// How many divisors are added to what is divided, so that it is never negative; 0 where none are needed, or where no
/// number of them is known to be enough.
int64_t ModelRaising::lift_of(const Dim::Atom& atom) {
  const auto divisor = atom.kind == '/' ? atom.b.constant() : std::nullopt;
  if (!divisor || *divisor <= 0 || atom.a.constant_term() >= 0) return 0;
  const int64_t steps = -*floor_div(Dim(atom.a.constant_term()), atom.b).constant();
  return (atom.a + Dim(steps) * atom.b).is_non_negative() ? steps : 0;
}

/// The atom, and more by its lift.
IntArg ModelRaising::lifted(const Dim::Atom& atom) {
  const int64_t lift = lift_of(atom);
  if (lift == 0) return int_of_atom(atom);
  return OnnxBuilder(*this).floor_div(int_of(atom.a + Dim(lift) * atom.b), int_of(atom.b));
}

/// Div goes towards zero, and this does not: what is divided is made a multiple of the divisor first.
IntArg ModelRaising::quotient(const Dim& a, const Dim& b) {
  OnnxBuilder onnx(*this);
  if (a.is_non_negative()) return onnx.floor_div(int_of(a), int_of(b));
  Value *dividend = onnx.list(int_of(a)), *divisor = onnx.list(int_of(b));
  return onnx("Div", {onnx("Sub", {dividend, onnx("Mod", {dividend, divisor})}), divisor});
}

IntArg ModelRaising::int_of_atom(const Dim::Atom& atom) {
  OnnxBuilder onnx(*this);
  switch (atom.kind) {
    case '/': {
      const int64_t lift = lift_of(atom);
      return lift == 0 ? quotient(atom.a, atom.b) : onnx.sub(lifted(atom), lift);
    }
    case '>': return onnx.max(int_of(atom.a), int_of(atom.b));
    case '<': return onnx.min(int_of(atom.a), int_of(atom.b));
    case '%': return onnx("Mod", {onnx.list(int_of(atom.a)), onnx.list(int_of(atom.b))});
    default: return int_of(Dim::symbol(atom.text));
  }
}

/// A node of ONNX itself, which a symbolic of the user's own asked for.
void ModelRaising::raise_onnx_op(const Node& node) {
  constexpr std::string_view kPrefix = "attr.";
  std::vector<Value*> inputs;
  std::vector<Attribute> attributes;
  std::string op;
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name == "op") {
      op = *attribute.value.get<std::string>();
    } else if (attribute.name.starts_with(kPrefix)) {
      attributes.push_back(attribute);
      attributes.back().name = attribute.name.substr(kPrefix.size());
    }
  }
  const auto* list = node.find_attribute("inputs")->value.get<AttrList>();
  for (const AttrValue& item : *list) {
    const auto* operand = item.get<Operand>();
    inputs.push_back(operand ? value_of(node.input(operand->index)) : nullptr);
  }
  const size_t colons = op.find("::");
  const bool is_standard = colons == std::string::npos || op.starts_with("onnx::");
  const std::string name = colons == std::string::npos ? op : op.substr(colons + 2);
  Node* made = append(is_standard ? name : op.substr(0, colons) + "." + name, inputs, std::move(attributes));
  for (const Value* output : node.outputs()) {
    Value* result = onnx_->add_output_to(made, onnx_->unique_name(output ? output->name : "unused"),
                                         output ? represented(output->type) : Type{});
    if (output != nullptr) define(output, result);
  }
  // inference of what nobody knows would replace what PyTorch knows
  const bool is_known = std::all_of(inputs.begin(), inputs.end(), [](const Value* input) {
    return !input || input->type.kind != Type::Kind::Unknown;
  });
  if (is_standard && is_known) complete(*made);
}

namespace {

/// The net below the checks: what a program asks of a container that cannot be is the program's fault.
Values raised(const AtenOpEntry& entry, const AtenNode& node, OnnxBuilder& onnx) {
  try {
    const auto is_pairs = [](const Value* value) { return value != nullptr && is_complex(value->type); };
    const auto are_pairs = [&](const std::vector<Value*>& values) {
      return std::any_of(values.begin(), values.end(), is_pairs);
    };
    const bool is_own =
        entry.op->raise_complex == nullptr || (!are_pairs(node.node().inputs()) && !are_pairs(node.node().outputs()));
    return is_own ? entry.op->raise(node, onnx) : entry.op->raise_complex(node, onnx);
  } catch (const std::logic_error&) {
    fail_invalid("an argument is out of range");
  }
}

/// Whether all sizes of 1 are taken away, of which only the run tells some: the type of the result is one of many.
bool takes_away_open_sizes(const Node& node, const AtenOp& op) {
  if (op.view != ViewRule::Squeeze || !node.overload.empty() || node.inputs().empty()) return false;
  const Value* from = node.input(0);
  return from != nullptr && from->type.shape &&
         std::any_of(from->type.shape->begin(), from->type.shape->end(), [](const Dim& d) { return !d.is_constant(); });
}

/// Whether all that a node gives is tensors without elements, whatever its open sizes are.
bool gives_nothing(const Node& node, const AtenOp& op) {
  if (takes_away_open_sizes(node, op)) return false;
  bool is_any = false;
  for (const Value* output : node.outputs()) {
    if (output == nullptr) continue;
    const Type& type = output->type;
    if (!type.is_tensor() || !type.shape || type.dtype == DType::Undefined) return false;
    const bool is_empty = std::any_of(type.shape->begin(), type.shape->end(), [](const Dim& d) { return d == Dim(0); });
    if (!is_empty) return false;
    is_any = true;
  }
  return is_any;
}

}  // namespace

/// PyTorch computes nothing with any operator; those of ONNX refuse types and sizes there too.
void ModelRaising::raise_nothing(const Node& node) {
  OnnxBuilder onnx(*this);
  for (const Value* output : node.outputs()) {
    if (output == nullptr) continue;
    const Type type = represented(output->type);
    define(output, filled(onnx, onnx.ints_of(*type.shape), type.dtype, 0));
  }
}

void ModelRaising::raise_node(const Node& node) {
  if (is_onnx_op(node)) return raise_onnx_op(node);
  // numbers that follow from sizes are made where they are needed, in the form that is needed
  if (std::all_of(node.outputs().begin(), node.outputs().end(), [this](const Value* output) {
        return output == nullptr || (is_number(output) && output->known_ints && can_make(output->known_ints->front()));
      })) {
    return;
  }
  const CustomAtenOp* custom = custom_ != nullptr ? custom_->find_aten(full_name(node)) : nullptr;
  const AtenOpEntry& entry = custom != nullptr ? custom->entry : get_aten_op(node);
  if (custom == nullptr && entry.op->raise == nullptr)
    fail_unsupported("{} of sizes that no tensor at hand has", full_name(node));
  const auto is_made = [this](const Value* output) {
    return output == nullptr || std::all_of(output->type.shape->begin(), output->type.shape->end(),
                                            [this](const Dim& dim) { return can_make(dim); });
  };
  if (custom == nullptr && gives_nothing(node, *entry.op) &&
      std::all_of(node.outputs().begin(), node.outputs().end(), is_made))
    return raise_nothing(node);
  AtenNode view(node, entry, *this);
  OnnxBuilder onnx(*this);
  const Node* before = onnx_->last();
  const Values results = custom != nullptr ? custom->raise(view, onnx) : raised(entry, view, onnx);
  if (custom == nullptr) view.require_all_used();
  const auto is_new = [&](const Value* value) {
    for (const Node* made = onnx_->last(); made != nullptr && made != before; made = made->previous) {
      if (value->producer == made) return true;
    }
    return false;
  };
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* output = node.output(i);
    if (output == nullptr) continue;
    Value* result = i < results.size() ? results[i] : nullptr;
    if (result == nullptr) {
      if (!output->uses.empty()) fail_unsupported("output {} cannot be given", i);
      continue;
    }
    if (is_number(output)) {
      values_.set(output, result);
      const auto symbol = output->known_ints ? output->known_ints->front().symbol_name() : std::nullopt;
      if (symbol && sizes_.find(*symbol) == nullptr) sizes_.set(*symbol, result);
      continue;
    }
    if (output->type.is_tensor()) check_result(node, i, represented(output->type), result->type);
    if (is_new(result)) result->name = onnx_->unique_name(output->name);
    define(output, result);
  }
}

void ModelRaising::raise_nodes(const Graph& source) {
  const Node* around = current_;
  for (const Node& node : source) {
    in_context(
        [&] {
          return node.name.empty() ? fmt::format("converting {}", full_name(node))
                                   : fmt::format("converting {} in module '{}'", full_name(node), shown(node.name));
        },
        [&] {
          current_ = &node;
          raise_node(node);
        });
  }
  current_ = around;
}

void ModelRaising::in_graph(Node& owner, std::string_view attribute, const std::function<void(Graph&)>& fill) {
  auto graph = std::make_shared<Graph>();
  owner.set_attribute(attribute, graph);
  graph->name = attribute;
  Graph* around = onnx_;
  onnx_ = graph.get();
  values_.enter();
  where_.enter();
  sizes_.enter();
  fill(*graph);
  values_.leave();
  where_.leave();
  sizes_.leave();
  onnx_ = around;
}

namespace {

void collect_unsupported(const Graph& graph, const CustomOps* custom, std::map<std::string, UnsupportedAten>& found) {
  for (const Node& node : graph) {
    for (const GraphPtr& subgraph : subgraphs_of(node)) collect_unsupported(*subgraph, custom, found);
    if (is_onnx_op(node)) continue;
    const std::string target = full_name(node);
    if (custom != nullptr && custom->find_aten(target) != nullptr) continue;
    const AtenOpEntry* entry = find_aten_op(target);
    if (entry != nullptr && entry->op->raise != nullptr) continue;
    const bool is_arithmetic = std::all_of(node.outputs().begin(), node.outputs().end(),
                                           [](const Value* output) { return is_number(output) && output->known_ints; });
    if (is_arithmetic && !node.outputs().empty()) continue;  // sizes, which are made where they are needed
    UnsupportedAten& op = found[target];
    op.target = target;
    if (entry != nullptr) op.reason = entry->op->note;
    op.paths.push_back(node.name);
  }
}

}  // namespace

std::vector<UnsupportedAten> find_unsupported_aten(const Graph& aten, const CustomOps* custom) {
  std::map<std::string, UnsupportedAten> found;
  collect_unsupported(aten, custom, found);
  std::vector<UnsupportedAten> result;
  for (auto& [target, op] : found) result.push_back(std::move(op));
  return result;
}

std::string describe(const std::vector<UnsupportedAten>& unsupported) {
  constexpr size_t kShown = 3;
  std::string text;
  for (const UnsupportedAten& op : unsupported) {
    std::vector<std::string> paths;
    for (const std::string& path : op.paths) {
      if (std::find(paths.begin(), paths.end(), path) == paths.end() && !path.empty()) paths.push_back(path);
    }
    text += fmt::format("\n  {}, {} time{}", shown(op.target), op.paths.size(), op.paths.size() == 1 ? "" : "s");
    if (!paths.empty()) {
      const size_t count = std::min(paths.size(), kShown);
      text += fmt::format(", in {}{}", fmt::join(paths.begin(), paths.begin() + static_cast<ptrdiff_t>(count), ", "),
                          paths.size() > count ? " ..." : "");
    }
    if (!op.reason.empty()) text += fmt::format(": {}", op.reason);
  }
  return text;
}

Model raise(const Model& aten, const std::vector<std::string>& output_names, const RaiseOptions& options,
            const CustomOps* custom) {
  if (const auto unsupported = find_unsupported_aten(*aten.graph, custom); !unsupported.empty())
    throw Error(ErrorKind::Unsupported, "these operators cannot be converted to ONNX:" + describe(unsupported));
  Model model;
  model.graph = std::make_shared<Graph>();
  model.graph->name = aten.graph->name;
  ModelRaising raising(*model.graph, options, custom);
  for (const Value* input : aten.graph->inputs()) {
    const bool is_tensor = input->type.is_tensor();
    const DType number = input->type.kind == Type::Kind::Float  ? DType::Float32
                         : input->type.kind == Type::Kind::Bool ? DType::Bool
                                                                : DType::Int64;
    Value* made =
        model.graph->add_input(input->name, is_tensor ? represented(input->type) : Type::tensor(number, Shape{}));
    if (is_tensor) {
      raising.define(input, made);
    } else {
      raising.define_number(input, made);
    }
  }
  raising.raise_nodes(*aten.graph);
  std::vector<Value*> outputs;
  for (const Value* output : aten.graph->outputs()) {
    Value* value = raising.value_of(output);
    outputs.push_back(is_number(output) ? OnnxBuilder(raising).scalar(value) : value);
  }
  finish_raised(model, outputs, output_names, options.source_lines);
  return model;
}

}  // namespace tonnx
