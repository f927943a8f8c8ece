// sequence.cpp - sequences, which are lists of tensors, and optional values, which may be None.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ir/clone.h"
#include "ops/control/script.h"
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/emission.h"
#include "ops/frame/expansion.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"

namespace tonnx {
namespace {

/// The type of the elements of a sequence; an unknown one where it is not known.
Type element_of(const Type& type) {
  return type.kind == Type::Kind::Sequence && !type.elements.empty() ? type.elements[0] : Type{};
}

/// What is true of both: a sequence may have tensors of different shapes.
Type common(const Type& a, const Type& b) {
  if (a == b) return a;
  if (a.kind == Type::Kind::Unknown) return b;
  if (!a.is_tensor() || !b.is_tensor() || a.dtype != b.dtype) return {};
  return Type::tensor(a.dtype);
}

// SequenceConstruct, SequenceEmpty

void infer_construct(InferNode& n) {
  Type element;
  bool first = true;
  for (const Value* input : n.values("inputs")) {
    require(input != nullptr, "an input is missing");
    element = first ? input->type : common(element, input->type);
    first = false;
  }
  n.set(0, Type::sequence(element));
}

Values lower_construct(const OnnxNode& n, AtenBuilder& aten) { return aten("tonnx::list", n.inputs("inputs")); }

void infer_empty(InferNode& n) {
  n.set(0, Type::sequence(Type::tensor(n.find_dtype("dtype").value_or(DType::Float32))));
}

Values lower_empty(const OnnxNode& n, AtenBuilder& aten) {
  (void)n.find_dtype("dtype");
  return aten("tonnx::list", std::vector<Value*>());
}

// SequenceInsert, SequenceErase, SequenceAt, SequenceLength

/// Tensors can be put into an empty sequence of any type that was made for them.
void infer_insert(InferNode& n) {
  const Value* sequence = n.value("input_sequence");
  const bool is_empty = sequence && sequence->producer && sequence->producer->op == "SequenceEmpty";
  n.set(0,
        Type::sequence(is_empty ? n.type("tensor") : common(element_of(n.type("input_sequence")), n.type("tensor"))));
}

Arg position_of(const OnnxNode& n) { return n.has("position") ? Arg(n.int_arg("position")) : Arg(nullptr); }

Values lower_insert(const OnnxNode& n, AtenBuilder& aten) {
  return aten("tonnx::list_insert", n.input("input_sequence"), n.input("tensor"), position_of(n));
}

void infer_erase(InferNode& n) { n.set(0, n.type("input_sequence")); }

Values lower_erase(const OnnxNode& n, AtenBuilder& aten) {
  return aten("tonnx::list_erase", n.input("input_sequence"), position_of(n));
}

void infer_at(InferNode& n) {
  Type element = element_of(n.type("input_sequence"));
  const Value* sequence = n.value("input_sequence");
  const Node* producer = sequence ? sequence->producer : nullptr;
  const auto position = n.find_const_ints("position");
  if (producer && producer->op == "SequenceConstruct" && position && position->size() == 1) {
    const auto count = static_cast<int64_t>(producer->inputs().size());
    const int64_t at = NodeView::normalized((*position)[0], count);
    element = producer->input(static_cast<size_t>(at))->type;
  }
  n.set(0, std::move(element));
}

Values lower_at(const OnnxNode& n, AtenBuilder& aten) {
  return aten("tonnx::list_at", n.input("input_sequence"), n.int_arg("position"));
}

void infer_length(InferNode& n) {
  n.set(0, DType::Int64, Shape{});
  n.set_dims({n.fresh()});
}

Values lower_length(const OnnxNode& n, AtenBuilder& aten) {
  return aten("tonnx::list_length", n.input("input_sequence"));
}

// ConcatFromSequence, SplitToSequence

void infer_concat(InferNode& n) {
  const Type element = element_of(n.type("input_sequence"));
  if (!element.is_tensor()) return n.set(0, Type{});
  n.set(0, element.dtype, std::nullopt);
}

Values lower_concat(const OnnxNode& n, AtenBuilder& aten) {
  return aten(n.flag("new_axis") ? "stack" : "cat", n.input("input_sequence"), n.i("axis"));
}

void infer_split(InferNode& n) {
  const Type& type = n.type("input");
  if (!type.shape) return n.set(0, Type::sequence(Type::tensor(type.dtype)));
  const int64_t axis = n.axis("axis", "input");
  Shape shape = *type.shape;
  if (n.has("split")) {
    shape[static_cast<size_t>(axis)] = n.fresh();
  } else if (n.flag("keepdims")) {
    shape[static_cast<size_t>(axis)] = 1;
  } else {
    shape.erase(shape.begin() + axis);
  }
  n.set(0, Type::sequence(Type::tensor(type.dtype, n.has("split") ? std::optional<Shape>() : shape)));
}

Values lower_split(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("input");
  const int64_t axis = n.axis_of_any_rank("axis", "input");
  // PyTorch makes one empty piece of nothing, and ONNX none
  const Shape* shape = n.find_shape("input");
  const auto size = shape ? (*shape)[static_cast<size_t>(axis)].constant() : std::nullopt;
  const bool may_be_empty = size.value_or(0) == 0;
  if (!n.has("split")) {
    if (!n.flag("keepdims")) return aten("tonnx::unbind_list", x, axis);
    return aten("tonnx::split_list", x, int64_t{1}, axis, may_be_empty);
  }
  (void)n.flag("keepdims");
  if (n.find_rank("split") == 0) return aten("tonnx::split_list", x, n.int_arg("split"), axis, may_be_empty);
  return aten("tonnx::split_list", x, n.int_list("split"), axis);
}

// SequenceMap: a Loop that takes the elements one by one, and puts what the body gives into new sequences

bool expand_map(const NodeView& n, OnnxEdit& edit) {
  const GraphPtr map_body = n.find_graph("body");
  const auto& inputs = n.node().inputs();
  require(map_body->inputs().size() == inputs.size() && map_body->outputs().size() >= n.output_count(),
          "the body has {} inputs and {} outputs, and the node {} and {}", map_body->inputs().size(),
          map_body->outputs().size(), inputs.size(), n.output_count());
  for (const Value* input : inputs) require(input != nullptr, "an input is missing");
  std::vector<Value*> loop_inputs{edit.before("SequenceLength", {inputs[0]}), nullptr};
  const size_t count = map_body->outputs().size();
  for (size_t i = 0; i < count; ++i) {
    const DType dtype = map_body->outputs()[i]->type.dtype;
    std::vector<Attribute> attributes;
    if (dtype != DType::Undefined) attributes.push_back({"dtype", static_cast<int64_t>(dtype)});
    loop_inputs.push_back(edit.before("SequenceEmpty", {}, std::move(attributes)));
  }
  Node* loop = edit.node_before("Loop", loop_inputs, {}, count);
  const auto body = new_loop_body(*loop);
  Expansion inner(edit, *body);
  body->add_output(inner("Identity", {body->inputs()[1]}));
  std::vector<Value*> carried;
  for (size_t i = 0; i < count; ++i) carried.push_back(add_input(*body, "out", {}));
  ValueMap map;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_sequence = i == 0 || inputs[i]->type.kind == Type::Kind::Sequence;
    map[map_body->inputs()[i]] = is_sequence ? inner("SequenceAt", {inputs[i], body->inputs()[0]}) : inputs[i];
  }
  clone_nodes(*map_body, *body, nullptr, map);
  for (size_t i = 0; i < count; ++i) {
    body->add_output(inner("SequenceInsert", {carried[i], copy_of(map_body->outputs()[i], map)}));
  }
  loop->set_attribute("body", GraphPtr(body));
  return edit.replace_with(std::vector<Value*>(loop->outputs().begin(), loop->outputs().end()));
}

// Optional, OptionalHasElement, OptionalGetElement

void infer_optional(InferNode& n) {
  if (n.has("input")) return n.set(0, Type::optional(n.type("input")));
  n.set(0, Type::optional(n.find_type("type").value_or(Type{})));
}

Values lower_optional(const OnnxNode& n, AtenBuilder& aten) {
  (void)n.find_type("type");
  return n.has("input") ? n.input("input") : aten("tonnx::none");
}

/// Whether it is there, where that is known before the run.
std::optional<bool> is_given(const Value* value) {
  if (value == nullptr) return false;
  if (value->type.kind != Type::Kind::Optional)
    return value->type.kind == Type::Kind::Unknown ? std::nullopt : std::optional(true);
  const Node* producer = value->producer;
  if (producer && producer->domain.empty() && producer->op == "Optional") return producer->input(0) != nullptr;
  return std::nullopt;
}

void infer_has_element(InferNode& n) {
  n.set(0, DType::Bool, Shape{});
  if (const auto given = is_given(n.value("input"))) n.set_constant(make_scalar(DType::Bool, *given ? 1 : 0));
}

Values lower_has_element(const OnnxNode& n, AtenBuilder& aten) { return aten("tonnx::is_given", n.input("input")); }

void infer_get_element(InferNode& n) {
  const Type& type = n.type("input");
  n.set(0, type.kind == Type::Kind::Optional && !type.elements.empty() ? type.elements[0] : type);
}

Values lower_get_element(const OnnxNode& n, AtenBuilder&) { return n.input("input"); }

/// Whether the value is known to be a tensor or a sequence that is no optional: older opsets do not take it.
bool is_no_optional(const Value* value) {
  return value != nullptr && value->type.kind != Type::Kind::Optional && value->type.kind != Type::Kind::Unknown;
}

void down_has_element_15(OnnxEdit& edit) {
  const Value* input = edit.node().input(0);
  if (input == nullptr) edit.cannot("the older opset needs the input");
  if (!is_no_optional(input)) return;
  edit.node().set_input(0, edit.constant(make_scalar(DType::Bool, 1), "has_element"));
  edit.node().op = "Identity";
}

void down_get_element_15(OnnxEdit& edit) {
  if (!is_no_optional(edit.node().input(0))) return;
  edit.node().op = "Identity";
  edit.node().mark_changed();
}

Values raise_unbind_list(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx("SplitToSequence", {n.input("self")}, {{"axis", n.i("dim")}, {"keepdims", int64_t{0}}});
}

// Python

std::string emit_list(const Emission& e) { return "[" + joined(e.items("items")) + "]"; }

std::string emit_list_at(const Emission& e) { return e.text("self", precedence::kAtom) + "[" + e.text("index") + "]"; }

std::string emit_list_insert(const Emission& e) {
  const std::string list = e.text("self", precedence::kAtom), value = e.text("value");
  if (!e.has("index")) return fmt::format("[*{}, {}]", list, value);
  const std::string index = e.text("index");
  return index == "0" ? fmt::format("[{}, *{}]", value, list)
                      : fmt::format("[*{}[:{}], {}, *{}[{}:]]", list, index, value, list, index);
}

std::string emit_list_erase(const Emission& e) {
  const std::string list = e.text("self", precedence::kAtom);
  if (!e.has("index")) return list + "[:-1]";
  if (const auto index = e.find_int("index"); index && *index < std::numeric_limits<int64_t>::max()) {
    if (*index == -1) return list + "[:-1]";
    if (*index == 0) return list + "[1:]";
    return fmt::format("[*{}[:{}], *{}[{}:]]", list, *index, list, *index + 1);
  }
  const std::string index = e.text("index");
  return fmt::format("[*{}[:{}], *{}[{}:][1:]]", list, index, list, index);
}

std::string emit_list_length(const Emission& e) { return "len(" + e.text("self") + ")"; }

std::string emit_split_list(const Emission& e) {
  const std::string self = e.text("self", precedence::kAtom), dim = e.text("dim");
  std::string sizes = e.text("sizes"), rest;
  if (e.flag("may_be_empty")) {
    const std::string count = fmt::format("{}.size({})", self, dim);
    if (sizes == "1")
      sizes = "[1] * " + count;
    else
      rest = "[: " + count + "]";
  }
  return fmt::format("list({}.split({}{})){}", self, sizes, dim == "0" ? "" : ", dim=" + dim, rest);
}

std::string emit_unbind_list(const Emission& e) {
  return fmt::format("list({}.unbind({}))", e.text("self", precedence::kAtom),
                     e.find_int("dim") == 0 ? "" : e.text("dim"));
}

std::string emit_none(const Emission&) { return "None"; }

std::string emit_is_given(const Emission& e) {
  return fmt::format("torch.tensor({} is not None{})", e.text("self", precedence::kCompare + 1),
                     e.device().empty() ? "" : ", device=" + e.device());
}

constexpr OpsetStep kSplitHistory[] = {{.to = 24, .adds = kBFloat16}};
constexpr OpsetStep kOptionalHistory[] = {
    {.to = 28, .adds = kBFloat16 | kFloat8 | kFloat4 | kFloat8E8M0 | kInt4 | kInt2}};
constexpr OpsetStep kGetElementHistory[] = {
    {.to = 18, .down = down_get_element_15},
    {.to = 28, .adds = kBFloat16 | kFloat8 | kFloat4 | kFloat8E8M0 | kInt4 | kInt2}};
constexpr OpsetStep kHasElementHistory[] = {
    {.to = 18, .down = down_has_element_15},
    {.to = 28, .adds = kBFloat16 | kFloat8 | kFloat4 | kFloat8E8M0 | kInt4 | kInt2}};

constexpr OnnxOp kSequenceOnnx[] = {
    {.sig = "SequenceConstruct(T... inputs) -> S output_sequence",
     .since = 11,
     .infer = infer_construct,
     .lower = lower_construct},
    {.sig = "SequenceEmpty(*, int? dtype) -> S output", .since = 11, .infer = infer_empty, .lower = lower_empty},
    {.sig = "SequenceInsert(S input_sequence, T tensor, I? position) -> S output_sequence",
     .since = 11,
     .infer = infer_insert,
     .lower = lower_insert},
    {.sig = "SequenceErase(S input_sequence, I? position) -> S output_sequence",
     .since = 11,
     .infer = infer_erase,
     .lower = lower_erase},
    {.sig = "SequenceAt(S input_sequence, I position) -> T tensor", .since = 11, .infer = infer_at, .lower = lower_at},
    {.sig = "SequenceLength(S input_sequence) -> I length", .since = 11, .infer = infer_length, .lower = lower_length},
    {.sig = "ConcatFromSequence(S input_sequence, *, int axis, int new_axis=0) -> T concat_result",
     .since = 11,
     .infer = infer_concat,
     .lower = lower_concat},
    {.sig = "SplitToSequence(T input, I? split, *, int axis=0, int keepdims=1) -> S output_sequence",
     .since = 11,
     .history = kSplitHistory,
     .infer = infer_split,
     .lower = lower_split},
    {.sig = "SequenceMap(S input_sequence, V... additional_inputs, *, graph body) -> S... out_sequence",
     .since = 17,
     .note = "a loop over lists of tensors",
     .expand = expand_map},
    {.sig = "Optional(V? input, *, type? type) -> O output",
     .since = 15,
     .history = kOptionalHistory,
     .infer = infer_optional,
     .lower = lower_optional},
    {.sig = "OptionalHasElement(O? input) -> B output",
     .since = 15,
     .history = kHasElementHistory,
     .infer = infer_has_element,
     .lower = lower_has_element},
    {.sig = "OptionalGetElement(O input) -> V output",
     .since = 15,
     .history = kGetElementHistory,
     .infer = infer_get_element,
     .lower = lower_get_element},
};

constexpr AtenOp kSequenceAten[] = {
    {.sig = "tonnx::list(Tensor[] items) -> list", .emit = emit_list, .script = script_list},
    {.sig = "tonnx::list_at(list self, SymInt index) -> Tensor", .emit = emit_list_at, .script = script_list_at},
    {.sig = "tonnx::list_insert(list self, Tensor value, SymInt? index=None) -> list",
     .emit = emit_list_insert,
     .script = script_list_insert},
    {.sig = "tonnx::list_erase(list self, SymInt? index=None) -> list",
     .emit = emit_list_erase,
     .script = script_list_erase},
    {.sig = "tonnx::list_length(list self) -> SymInt", .emit = emit_list_length, .script = script_list_length},
    {.sig = "tonnx::split_list(Tensor self, SymInt[] sizes, int dim=0, bool may_be_empty=False) -> list",
     .emit = emit_split_list,
     .script = script_split_list},
    {.sig = "tonnx::unbind_list(Tensor self, int dim=0) -> list",
     .emit = emit_unbind_list,
     .script = script_unbind_list,
     .raise = raise_unbind_list},
    {.sig = "tonnx::none() -> Tensor", .emit = emit_none, .script = script_none},
    {.sig = "tonnx::is_given(Tensor self) -> Tensor", .emit = emit_is_given, .script = script_is_given},
};

}  // namespace

extern const OpFamily kSequenceOps;
constinit const OpFamily kSequenceOps{"sequence", kSequenceOnnx, kSequenceAten};

}  // namespace tonnx
