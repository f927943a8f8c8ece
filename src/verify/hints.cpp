// hints.cpp - follows the inputs of a model to what is done with them.
#include "verify/hints.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/budget.h"
#include "convert/simplify.h"
#include "ir/clone.h"
#include "verify/equations.h"
#include "verify/operator_class.h"
#include "verify/sizes.h"

namespace tonnx::judge {
namespace {

constexpr int64_t kLargestConstant = int64_t{1} << 16;  // elements of a constant that an input is compared with
constexpr int64_t kTelling = 2;                         // a size inside that is one says nothing of what goes along it
constexpr int64_t kOnnxBool = 9;                        // the number of bool in attributes
constexpr int64_t kFew = 4;                             // times what a size is divided by, or compared with

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

/// Operators whose result holds the elements of their first input.
bool passes_on(std::string_view op) {
  return is_one_of(
      op, {"Cast",    "Identity",  "Reshape", "Unsqueeze", "Squeeze", "Flatten",   "Transpose", "Slice",  "Expand",
           "Tile",    "Clip",      "Split",   "Dropout",   "Gather",  "to",        "_to_copy",  "clone",  "view",
           "reshape", "unsqueeze", "squeeze", "flatten",   "permute", "transpose", "slice",     "expand", "contiguous",
           "type_as", "alias",     "detach",  "select",    "clamp",   "unflatten"});
}

/// Whether a larger input makes the comparison true (1), a smaller one (-1), or an equal one (0).
std::optional<int> comparison_of(std::string_view op) {
  if (is_one_of(op, {"Equal", "eq"})) return 0;
  if (is_one_of(op, {"Less", "LessOrEqual", "lt", "le"})) return -1;
  if (is_one_of(op, {"Greater", "GreaterOrEqual", "gt", "ge"})) return 1;
  return std::nullopt;
}

bool counts_by_input(std::string_view op) {
  return is_one_of(op, {"Range", "Expand", "ConstantOfShape", "Tile", "TopK", "OneHot", "SequenceMask"});
}

TensorPtr constant_of(const Value* value) {
  if (value == nullptr) return nullptr;
  if (value->constant || value->producer == nullptr || value->producer->op != "Constant") return value->constant;
  const Attribute* attribute = value->producer->find_attribute("value");
  const auto* tensor = attribute != nullptr ? attribute->value.get<TensorPtr>() : nullptr;
  return tensor != nullptr ? *tensor : nullptr;
}

std::vector<int64_t> ints_attribute(const Node& node, std::string_view name) {
  const Attribute* attribute = node.find_attribute(name);
  const auto* numbers = attribute != nullptr ? attribute->value.get<std::vector<int64_t>>() : nullptr;
  return numbers != nullptr ? *numbers : std::vector<int64_t>();
}

const Value* input_of(const Node& node, size_t i) { return i < node.inputs().size() ? node.inputs()[i] : nullptr; }

void limit(InputHint& hint, int64_t rows) {
  hint.limit = std::max<int64_t>(1, std::min(hint.limit.value_or(rows), rows));
}

/// Follows inputs through what only moves their elements.
class Follower {
 public:
  explicit Follower(std::vector<InputHint>& hints) : hints_(hints) {}

  void note_input(const Value* value, size_t index) { from_[value] = index; }

  void visit(const Graph& graph) {
    for (const Node& node : graph) {
      look_at(node);
      for (const GraphPtr& inner : subgraphs_of(node)) visit(*inner);
    }
  }

 private:
  InputHint* find(const Value* value) {
    const auto at = from_.find(value);
    return at == from_.end() ? nullptr : &hints_[at->second];
  }

  void look_at(const Node& node) {
    const std::string_view op = node.op.view();
    InputHint* first = find(input_of(node, 0));
    if (passes_on(op) && first != nullptr) {
      if (op == "Cast" && int_of(node, "to") == kOnnxBool) first->is_mask = true;
      for (const Value* output : node.outputs()) from_[output] = from_[input_of(node, 0)];
    }
    if (is_one_of(op, {"Concat", "cat"})) follow_only_source(node);
    if (is_one_of(op, {"Gather", "GatherElements"})) note_rows(node, int_of(node, "axis").value_or(0));
    if (op == "embedding") note_rows(node, 0);
    if (op == "OneHot" && first != nullptr) note_depth(*first, constant_of(input_of(node, 1)));
    if (const auto sign = comparison_of(op)) note_comparison(node, *sign);
    if (!counts_by_input(op)) return;
    for (const Value* input : node.inputs()) {
      if (InputHint* hint = find(input)) hint->is_length = true;
    }
  }

  void follow_only_source(const Node& node) {
    std::set<size_t> sources;
    for (const Value* input : node.inputs()) {
      if (const auto at = from_.find(input); at != from_.end()) sources.insert(at->second);
    }
    if (sources.size() == 1 && !node.outputs().empty()) from_[node.outputs()[0]] = *sources.begin();
  }

  void note_rows(const Node& node, int64_t axis) {
    const TensorPtr table = constant_of(input_of(node, 0));
    InputHint* hint = find(input_of(node, 1));
    if (!table || hint == nullptr) return;
    const auto rank = static_cast<int64_t>(table->dims.size());
    if (axis < -rank || axis >= rank) return;
    limit(*hint, table->dims[static_cast<size_t>(axis < 0 ? axis + rank : axis)]);
  }

  static void note_depth(InputHint& hint, const TensorPtr& depth) {
    if (!depth || depth->count() < 1) return;
    if (const auto numbers = ints_of(*depth, 1)) limit(hint, numbers->at(0));
  }

  void note_comparison(const Node& node, int sign) {
    for (const size_t at : {size_t{0}, size_t{1}}) {
      InputHint* hint = find(input_of(node, at));
      if (hint == nullptr) continue;
      const TensorPtr constant = constant_of(input_of(node, 1 - at));
      if (!constant) {
        hint->is_length = true;  // positions are compared with it
        continue;
      }
      const auto numbers = floats_of(*constant, kLargestConstant);
      if (!numbers || numbers->empty()) continue;
      const auto [low, high] = std::minmax_element(numbers->begin(), numbers->end());
      add_choices(*hint, *low, *high, numbers->size(), at == 0 ? sign : -sign);
    }
  }

  /// The first makes the comparison true, the second false.
  static void add_choices(InputHint& hint, double low, double high, size_t count, int sign) {
    std::pair<double, double> choices(low, low + 1);
    if (sign > 0) choices = count > 1 ? std::pair(high, low) : std::pair(high + 1, low - 1);
    if (sign < 0) choices = count > 1 ? std::pair(low, high) : std::pair(low - 1, high + 1);
    for (const double choice : {choices.first, choices.second}) {
      if (std::find(hint.choices.begin(), hint.choices.end(), choice) == hint.choices.end())
        hint.choices.push_back(choice);
    }
  }

  std::vector<InputHint>& hints_;
  std::unordered_map<const Value*, size_t> from_;
};

bool has(std::string_view text, std::string_view part) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower.find(part) != lower.npos;
}

std::vector<InputHint> inputs_of(const Graph& graph) {
  std::vector<InputHint> hints;
  std::vector<const Value*> values;
  for (const Value* input : graph.inputs()) {
    if (input->constant || input->sparse) continue;
    InputHint& hint = hints.emplace_back();
    hint.name = input->name;
    if (input->type.is_tensor() && input->type.shape) hint.shape = *input->type.shape;
    values.push_back(input);
  }
  Follower follower(hints);
  for (size_t i = 0; i < values.size(); ++i) follower.note_input(values[i], i);
  follower.visit(graph);
  for (size_t i = 0; i < values.size(); ++i) {
    InputHint& hint = hints[i];
    hint.is_mask = hint.is_mask || has(hint.name, "mask");
    const bool is_number = (!hint.shape || hint.shape->size() <= 1) && is_integer(values[i]->type.dtype);
    hint.is_length = is_number && (hint.is_length || has(hint.name, "len")) && hint.choices.empty();
  }
  return hints;
}

bool is_aten(const Node& node) { return node.domain == "aten"; }

/// How much of each size a window looks at.
std::vector<int64_t> windows_of(const Node& node) {
  const std::string_view op = node.op.view();
  const std::string kind = operator_class(op);
  const bool is_pool = is_one_of(kind, {"maxpool", "avgpool", "lppool"});
  const bool is_conv = is_one_of(kind, {"conv", "convinteger", "qlinearconv"});
  if (!is_pool && !is_conv) return {};
  std::vector<int64_t> kernel = ints_attribute(node, is_aten(node) ? "kernel_size" : "kernel_shape");
  const TensorPtr weight = constant_of(input_of(node, op == "QLinearConv" ? 3 : 1));
  if (kernel.empty() && is_conv && weight && weight->dims.size() > 2)
    kernel.assign(weight->dims.begin() + 2, weight->dims.end());
  const std::vector<int64_t> spacing = ints_attribute(node, is_aten(node) ? "dilation" : "dilations");
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t step = spacing.size() == kernel.size() ? spacing[i] : 1;
    constexpr int64_t kMost = int64_t{1} << 20;
    kernel[i] = (std::clamp<int64_t>(kernel[i], 1, kMost) - 1) * std::clamp<int64_t>(step, 1, kMost) + 1;
  }
  return kernel;
}

/// How many samples of a signal one frame of its spectrum takes.
int64_t frame_of(const Node& node) {
  if (node.op != "STFT") return 0;
  const TensorPtr window = constant_of(input_of(node, 2));
  return window && window->dims.size() == 1 ? window->dims[0] : 1;
}

template <class IsOver>
void needs_of_frame(const Value* signal, int64_t frame, const IsOver& is_over_names, std::vector<SizeNeed>& needs) {
  if (signal == nullptr || !signal->type.is_tensor() || !signal->type.shape || signal->type.shape->size() < 2) return;
  const Dim& length = (*signal->type.shape)[1];
  if (!length.is_constant() && is_over_names(length)) needs.push_back({length, frame});
}

void add_needs(const Graph& graph, const std::set<std::string>& names, std::vector<SizeNeed>& needs) {
  std::set<std::string> seen;
  const auto is_over_names = [&](const Dim& dim) {
    const std::set<std::string> used = names_in(dim);
    return !used.empty() && std::includes(names.begin(), names.end(), used.begin(), used.end());
  };
  for (const Node& node : graph) {
    for (const Value* output : node.outputs()) {
      if (output == nullptr || !output->type.is_tensor() || !output->type.shape) continue;
      for (const Dim& dim : *output->type.shape) {
        if (dim.is_constant() || names.contains(dim.text()) || !is_over_names(dim) || !seen.insert(dim.text()).second)
          continue;
        needs.push_back({dim, 1});
        needs.push_back({dim, kTelling});
        for (const std::string& name : names_in(dim)) needs.push_back({Dim::symbol(name), kFew * scale_of(dim)});
      }
    }
    const std::vector<int64_t> windows = windows_of(node);
    const Value* input = input_of(node, 0);
    if (const int64_t frame = frame_of(node); frame > 0) needs_of_frame(input, frame, is_over_names, needs);
    if (windows.empty() || input == nullptr || !input->type.is_tensor() || !input->type.shape) continue;
    const Shape& shape = *input->type.shape;
    for (size_t i = 0; i < windows.size() && i + 2 < shape.size(); ++i) {
      if (!shape[i + 2].is_constant() && is_over_names(shape[i + 2])) needs.push_back({shape[i + 2], windows[i]});
    }
  }
}

ModelHints hints_in(const Graph& graph) {
  ModelHints hints{inputs_of(graph), {}, {}};
  std::set<std::string> names;
  for (const InputHint& hint : hints.inputs) {
    for (size_t i = 0; hint.shape && i < hint.shape->size(); ++i) {
      if (const auto name = (*hint.shape)[i].symbol_name()) names.insert(*name);
    }
  }
  add_needs(graph, names, hints.needs);
  if (!names.empty()) hints.equations = equations_in(graph);
  return hints;
}

}  // namespace

void take_limits(ModelHints& hints, const ModelHints& others) {
  for (InputHint& hint : hints.inputs) {
    for (const InputHint& other : others.inputs) {
      if (other.name == hint.name && other.limit) limit(hint, *other.limit);
    }
  }
}

ModelHints hints_of(const Model& model) {
  const Graph& graph = *model.graph;
  if (graph.first() != nullptr && is_aten(*graph.first())) return hints_in(graph);  // a program says its sizes itself
  const BudgetScope scope({}, model.file_size);
  Model inferred = clone(model);
  inferred.graph->input_declarations.resize(inferred.graph->inputs().size());
  inferred.graph->output_declarations.resize(inferred.graph->outputs().size());
  try {
    infer_and_declare(inferred);
    return hints_in(*inferred.graph);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;  // otherwise the sizes are guessed
    return hints_in(*model.graph);
  }
}

}  // namespace tonnx::judge
