// cell.cpp - reads what RNN, GRU and LSTM ask for, and says whether PyTorch's own modules compute it.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "ops/recurrent/recurrent.h"

namespace tonnx {
namespace {

bool is_quantized(const NodeView& n) { return n.node().op.view() == "DynamicQuantizeLSTM"; }

constexpr int64_t kMostUnits = int64_t{1} << 26;

struct KnownActivation {
  std::string_view name;
  std::optional<double> alpha, beta;  // their defaults; nothing where the function has none
};
constexpr KnownActivation kActivations[] = {
    {"Tanh", {}, {}},        {"Sigmoid", {}, {}},          {"Relu", {}, {}},         {"Affine", 1.0, 0.0},
    {"LeakyRelu", 0.01, {}}, {"ThresholdedRelu", 1.0, {}}, {"ScaledTanh", 1.0, 1.0}, {"HardSigmoid", 0.2, 0.5},
    {"Elu", 1.0, {}},        {"Softsign", {}, {}},         {"Softplus", {}, {}},
};

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

const KnownActivation& known_activation(const std::string& name) {
  const auto* at = std::find_if(std::begin(kActivations), std::end(kActivations),
                                [&](const KnownActivation& known) { return same_letters(known.name, name); });
  require(at != std::end(kActivations), "'{}' is not an activation function", name);
  return *at;
}

std::vector<std::string> default_activations(CellKind kind) {
  if (kind == CellKind::Rnn) return {"Tanh"};
  return kind == CellKind::Gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                               : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
}

/// The numbers of activation_alpha and activation_beta go in turn to those functions that have such a number.
std::vector<CellActivation> activations_of_node(const NodeView& n, CellKind kind, int64_t directions) {
  const std::vector<std::string> usual = default_activations(kind);
  const size_t count = usual.size() * static_cast<size_t>(directions);
  auto names = n.find_strings("activations").value_or(std::vector<std::string>{});
  const auto alphas = n.find_floats("activation_alpha").value_or(std::vector<double>{});
  const auto betas = n.find_floats("activation_beta").value_or(std::vector<double>{});
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), usual.begin(), usual.end());
  }
  require(names.size() >= count, "{} activations are given where {} are needed", names.size(), count);
  names.resize(count);
  std::vector<CellActivation> result;
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string& name : names) {
    const KnownActivation& known = known_activation(name);
    CellActivation activation{std::string(known.name), known.alpha.value_or(0), known.beta.value_or(0)};
    if (known.alpha && next_alpha < alphas.size()) activation.alpha = alphas[next_alpha++];
    if (known.beta && next_beta < betas.size()) activation.beta = betas[next_beta++];
    result.push_back(std::move(activation));
  }
  return result;
}

/// Throws where an input has another rank, or a number of another size, than it should.
void require_sizes(const NodeView& n, std::string_view input, const std::vector<std::optional<int64_t>>& sizes) {
  const Shape* shape = n.find_shape(input);
  if (shape == nullptr) return;
  require(shape->size() == sizes.size(), "input '{}' has {} dimensions where {} are needed", input, shape->size(),
          sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto found = (*shape)[i].constant();
    require(!found || !sizes[i] || *found == *sizes[i], "input '{}' has a size of {} where {} is needed", input,
            found.value_or(0), sizes[i].value_or(0));
  }
}

void check_sizes(const NodeView& n, const Cell& cell) {
  const Shape* x = n.find_shape("X");
  require_sizes(n, "X", {std::nullopt, std::nullopt, std::nullopt});
  const auto features = x ? (*x)[2].constant() : std::nullopt;
  const auto batch = x ? (*x)[cell.is_batch_first ? 0 : 1].constant() : std::nullopt;
  const int64_t rows = cell.gates() * cell.hidden;
  if (cell.is_quantized) {
    require_sizes(n, "W", {cell.directions, features, rows});
    require_sizes(n, "R", {cell.directions, cell.hidden, rows});
  } else {
    require_sizes(n, "W", {cell.directions, rows, features});
    require_sizes(n, "R", {cell.directions, rows, cell.hidden});
  }
  require_sizes(n, "B", {cell.directions, 2 * rows});
  require_sizes(n, "sequence_lens", {batch});
  for (const char* name : {"initial_h", "initial_c"}) {
    if (std::string_view(name) == "initial_c" && cell.kind != CellKind::Lstm) continue;
    if (cell.is_batch_first) {
      require_sizes(n, name, {batch, cell.directions, cell.hidden});
    } else {
      require_sizes(n, name, {cell.directions, batch, cell.hidden});
    }
  }
  if (cell.kind == CellKind::Lstm) require_sizes(n, "P", {cell.directions, 3 * cell.hidden});
}

/// The value that has the same numbers, in front of nodes that only move or repeat them.
const Value* source_of(const Value* value) {
  constexpr std::array kMoves{"Identity", "Cast",      "Expand",  "Tile",  "Unsqueeze", "Squeeze",
                              "Reshape",  "Transpose", "Flatten", "Slice", "Gather"};
  for (int depth = 0; depth < 32 && value != nullptr && !value->constant && !value->known_ints; ++depth) {
    const Node* node = value->producer;
    const bool moves = node != nullptr && node->domain.empty() &&
                       std::find(kMoves.begin(), kMoves.end(), node->op.view()) != kMoves.end();
    if (!moves) break;
    value = node->input(0);
  }
  return value;
}

bool is_zero_tensor(const Tensor& tensor) {
  const auto numbers = floats_of(tensor, 1 << 20);
  return numbers && std::all_of(numbers->begin(), numbers->end(), [](double number) { return number == 0.0; });
}

}  // namespace

std::vector<CellActivation> Cell::activations_of(int64_t direction) const {
  const auto count = static_cast<std::ptrdiff_t>(activations.size()) / directions;
  return {activations.begin() + direction * count, activations.begin() + (direction + 1) * count};
}

CellKind cell_kind(const NodeView& n) {
  const std::string_view op = n.node().op.view();
  return op == "RNN" ? CellKind::Rnn : op == "GRU" ? CellKind::Gru : CellKind::Lstm;
}

std::optional<int64_t> find_hidden(const NodeView& n) {
  const auto given = n.find_i("hidden_size");
  require(!given || (*given >= 1 && *given <= kMostUnits), "hidden_size is {}", given.value_or(0));
  if (given) return given;
  const Shape* r = n.find_shape("R");
  require(r == nullptr || r->size() == 3, "input 'R' has {} dimensions where 3 are needed", r ? r->size() : 0);
  const auto found = r ? (*r)[is_quantized(n) ? 1 : 2].constant() : std::nullopt;
  require(!found || (*found >= 1 && *found <= kMostUnits), "input 'R' is for {} hidden units", found.value_or(0));
  return found;
}

Cell cell_of(const NodeView& n) {
  const std::string direction = n.s("direction");
  require(direction == "forward" || direction == "reverse" || direction == "bidirectional", "the direction is '{}'",
          direction);
  const int64_t layout = is_quantized(n) ? 0 : n.i("layout");
  require(layout == 0 || layout == 1, "the layout is {}", layout);
  const auto hidden = find_hidden(n);
  if (!hidden) fail_unsupported("neither hidden_size nor the shape of R is known");
  Cell cell{.kind = cell_kind(n),
            .hidden = *hidden,
            .directions = direction == "bidirectional" ? 2 : 1,
            .is_reverse = direction == "reverse",
            .is_batch_first = layout == 1,
            .activations = {},
            .clip = n.find_f("clip")};
  require(!cell.clip || *cell.clip >= 0, "clip is {}", cell.clip.value_or(0));
  cell.activations = activations_of_node(n, cell.kind, cell.directions);
  if (cell.kind == CellKind::Gru) cell.linear_before_reset = n.flag("linear_before_reset");
  if (cell.kind == CellKind::Lstm) cell.input_forget = n.flag("input_forget");
  cell.is_quantized = is_quantized(n);
  check_sizes(n, cell);
  return cell;
}

bool has_full_sequences(const NodeView& n, const Cell& cell) {
  const Value* lengths = n.value("sequence_lens");
  if (lengths == nullptr) return true;
  const Shape* x = n.find_shape("X");
  if (x == nullptr) return false;
  const Dim& steps = (*x)[cell.is_batch_first ? 1 : 0];
  const Value* source = source_of(lengths);
  if (source == nullptr) return false;
  Dims numbers;
  if (source->known_ints) {
    numbers = *source->known_ints;
  } else if (const auto ints = source->constant ? ints_of(*source->constant) : std::nullopt) {
    numbers.assign(ints->begin(), ints->end());
  }
  return !numbers.empty() && std::all_of(numbers.begin(), numbers.end(), [&](const Dim& d) { return d == steps; });
}

bool is_zeros(const Value* value, int depth) {
  if (value == nullptr) return true;
  const Value* source = source_of(value);
  if (source == nullptr) return false;
  if (source->constant) return is_zero_tensor(*source->constant);
  const Node* node = source->producer;
  if (node == nullptr || !node->domain.empty() || depth > 8) return false;
  if (node->op == "ConstantOfShape") {
    const Attribute* filled = node->find_attribute("value");
    const auto* tensor = filled ? filled->value.get<TensorPtr>() : nullptr;
    return filled == nullptr || (tensor != nullptr && *tensor && is_zero_tensor(**tensor));
  }
  if (node->op == "Concat") {
    return std::all_of(node->inputs().begin(), node->inputs().end(),
                       [&](const Value* input) { return is_zeros(input, depth + 1); });
  }
  return false;
}

bool is_plain_cell(const NodeView& n, const Cell& cell) {
  if (cell.is_quantized || cell.clip || cell.input_forget || (cell.kind == CellKind::Lstm && !is_zeros(n.value("P"))))
    return false;
  if (cell.kind == CellKind::Gru && !cell.linear_before_reset) return false;
  const std::vector<std::string> usual = default_activations(cell.kind);
  const std::string& first = cell.activations[0].name;
  for (size_t i = 0; i < cell.activations.size(); ++i) {
    const std::string& name = cell.activations[i].name;
    const bool fits = cell.kind == CellKind::Rnn ? name == first && (name == "Tanh" || name == "Relu")
                                                 : name == usual[i % usual.size()];
    if (!fits) return false;
  }
  // PyTorch gives the last cell only of the whole sequence
  return cell.kind != CellKind::Lstm || !n.wants_output(2) || has_full_sequences(n, cell);
}

}  // namespace tonnx
