// recurrent.cpp - RNN, GRU and LSTM as PyTorch's own: nn.RNN, nn.GRU and nn.LSTM, whose gates stand in another order.
#include "ops/recurrent/recurrent.h"

#include "base/error.h"
#include "ir/origins.h"
#include "ops/frame/emission.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/size_node.h"
#include "ops/recurrent/rows.h"

namespace tonnx {
namespace {

void infer_recurrent(InferNode& n) {
  n.learn_rank("X", 3);
  const std::string direction = n.s("direction");
  const auto hidden_size = find_hidden(n);
  const Dim hidden = hidden_size ? Dim(*hidden_size) : n.fresh();
  const Dim directions(direction == "bidirectional" ? 2 : 1);
  const bool is_batch_first = n.flag("layout");
  const Shape* x = n.find_shape("X");
  require(x == nullptr || x->size() == 3, "input 'X' has {} dimensions where 3 are needed", x ? x->size() : 0);
  const Dim steps = x ? (*x)[is_batch_first ? 1 : 0] : n.fresh();
  const Dim batch = x ? (*x)[is_batch_first ? 0 : 1] : n.fresh();
  const DType dtype = n.dtype("X");
  const Shape y = is_batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden};
  const Shape last = is_batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  for (size_t i = 0; i < n.output_count(); ++i) n.set(i, dtype, i == 0 ? y : last);
}

/// Where PyTorch's gates stand among those of ONNX: iofc and ifgo, zrh and rzn.
std::vector<int64_t> gate_order(CellKind kind) {
  if (kind == CellKind::Rnn) return {0};
  return kind == CellKind::Gru ? std::vector<int64_t>{1, 0, 2} : std::vector<int64_t>{0, 2, 3, 1};
}

/// The rows of one direction of a constant [directions, rows, ...], from the given one on, in PyTorch's order.
TensorPtr reordered(const Tensor& all, int64_t direction, int64_t from, const Cell& cell) {
  const std::vector<int64_t> order = gate_order(cell.kind);
  auto result = std::make_shared<Tensor>();
  result->dtype = all.dtype;
  result->dims.assign(all.dims.begin() + 1, all.dims.end());
  result->dims[0] = cell.gates() * cell.hidden;
  const int64_t width = count_of(std::vector(all.dims.begin() + 2, all.dims.end()));
  const int64_t row = byte_size(all.dtype, width);
  const int64_t start = (direction * all.dims[1] + from) * row;
  const int64_t gate = cell.hidden * row;
  std::vector<uint8_t> bytes;
  bytes.reserve(static_cast<size_t>(gate * cell.gates()));
  for (const int64_t at : order) {
    const uint8_t* begin = all.data.data() + start + at * gate;
    bytes.insert(bytes.end(), begin, begin + gate);
  }
  result->data = Bytes::own(std::move(bytes));
  return result;
}

class RecurrentLowering {
 public:
  RecurrentLowering(const OnnxNode& n, AtenBuilder& aten)
      : n_(n), aten_(aten), cell_(cell_of(n)), time_(cell_.is_batch_first ? 1 : 0) {
    is_module_ = true;
    for (const char* name : {"W", "R", "B"}) is_module_ = is_module_ && (!n.has(name) || n.find_constant(name));
    h_ = initial("initial_h");
    if (cell_.kind == CellKind::Lstm) c_ = initial("initial_c");
    if (h_ == nullptr && c_ != nullptr) h_ = zeros();
    if (c_ == nullptr && h_ != nullptr && cell_.kind == CellKind::Lstm) c_ = zeros();
  }

  Values run() {
    if (cell_.kind == CellKind::Lstm) n_.value("P");
    if (!has_full_sequences(n_, cell_)) return of_lengths();
    Value* x = n_.input("X");
    if (!cell_.is_reverse) {
      std::vector<Value*> weights = weights_of(0);
      if (cell_.directions == 2) {
        const std::vector<Value*> others = weights_of(1);
        weights.insert(weights.end(), others.begin(), others.end());
      }
      const Values results = call(x, weights, h_, c_, cell_.directions == 2);
      return {shaped(results[0]), last(results[1]), results.size() > 2 ? last(results[2]) : nullptr};
    }
    const Values results = call(aten_("flip", x, std::vector{time_}), weights_of(0), h_, c_, false);
    Value* y = n_.wants_output(0) ? aten_("flip", results[0], std::vector{time_}) : results[0];
    return {shaped(y), last(results[1]), results.size() > 2 ? last(results[2]) : nullptr};
  }

 private:
  /// The initial state as [directions, batch, hidden]; null where it is zero and the module knows that by itself.
  Value* initial(std::string_view name) {
    const Value* given = n_.value(name);
    if (is_zeros(given)) return is_module_ ? nullptr : given ? in_layout(n_.input(name)) : zeros();
    return in_layout(n_.input(name));
  }

  Value* in_layout(Value* state) { return cell_.is_batch_first ? aten_("transpose.int", state, 0, 1) : state; }

  Value* zeros() {
    const IntArgs sizes{cell_.directions, n_.size("X", 1 - time_), cell_.hidden};
    const DType dtype = n_.dtype("X");
    return dtype == DType::Float32 ? aten_("zeros", sizes) : aten_("zeros", sizes, Kw{"dtype", dtype});
  }

  /// weight_ih, weight_hh, bias_ih and bias_hh of one direction.
  std::vector<Value*> weights_of(int64_t direction) {
    const int64_t rows = cell_.gates() * cell_.hidden;
    std::vector<Value*> weights{rows_of("W", direction, 0), rows_of("R", direction, 0)};
    if (n_.has("B")) {
      weights.push_back(rows_of("B", direction, 0));
      weights.push_back(rows_of("B", direction, rows));
    }
    return weights;
  }

  Value* rows_of(std::string_view name, int64_t direction, int64_t from) {
    if (const TensorPtr all = n_.find_constant(name)) {
      const auto in_order = [direction, from, cell = cell_](const Tensor& of) {
        return reordered(of, direction, from, cell);
      };
      const TensorPtr rows = in_order(*all);
      note_move(rows, all, in_order);
      Value* made = aten_.constant(rows, n_.value(name)->name);
      made->trainable = true;
      return made;
    }
    Value* all = aten_("select.int", n_.input(name), 0, direction);
    const std::vector<int64_t> order = gate_order(cell_.kind);
    if (order.size() == 1 && name != "B") return all;
    std::vector<Value*> parts;
    for (size_t i = 0; i < order.size();) {
      size_t end = i + 1;
      while (end < order.size() && order[end] == order[end - 1] + 1) ++end;
      const int64_t start = from + order[i] * cell_.hidden;
      parts.push_back(aten_("slice.Tensor", all, 0, start, start + static_cast<int64_t>(end - i) * cell_.hidden));
      i = end;
    }
    return parts.size() == 1 ? parts[0] : aten_("cat", parts);
  }

  Values call(Value* x, const std::vector<Value*>& weights, Value* h, Value* c, bool both) {
    const bool has_bias = n_.has("B");
    if (cell_.kind == CellKind::Lstm) {
      const std::vector<Value*> states = h ? std::vector{h, c} : std::vector<Value*>{};
      return aten_.all("lstm.input", x, states, weights, has_bias, 1, 0.0, false, both, cell_.is_batch_first);
    }
    const bool is_relu = cell_.activations[0].name == "Relu";
    const char* op = cell_.kind == CellKind::Gru ? "gru.input" : is_relu ? "rnn_relu.input" : "rnn_tanh.input";
    return aten_.all(op, x, h, weights, has_bias, 1, 0.0, false, both, cell_.is_batch_first);
  }

  /// The output with a dimension for the directions, which PyTorch has beside the hidden units.
  Value* shaped(Value* y) {
    if (!n_.wants_output(0)) return nullptr;
    if (cell_.directions == 1) return aten_("unsqueeze", y, cell_.is_batch_first ? 2 : 1);
    y = aten_("unflatten.int", y, 2, IntArgs{2, cell_.hidden});
    return cell_.is_batch_first ? y : aten_("transpose.int", y, 1, 2);
  }

  Value* last(Value* state) { return in_layout(state); }

  /// Sequences of differing lengths: what comes behind the end of one changes nothing in front of it, so that it only
  /// has to be blanked out; backwards each one is turned around by itself.
  Values of_lengths() {
    Value* x = n_.input("X");
    Value* lengths = aten_("to.dtype", n_.input("sequence_lens"), DType::Int64);
    Value* steps = aten_("arange", n_.size("X", time_));
    Value* by_row = cell_.is_batch_first ? aten_("unsqueeze", lengths, 1) : lengths;
    if (!cell_.is_batch_first) steps = aten_("unsqueeze", steps, 1);
    Value* is_behind = aten_("unsqueeze", aten_("ge.Tensor", steps, by_row), 2);
    Value* end = aten_("clamp", aten_("sub.Scalar", lengths, 1), 0);
    Value* rows = aten_("arange", n_.size("X", 1 - time_));
    const auto taken = [&](Value* from, Value* step, Value* row) {
      return aten_("index.Tensor", from,
                   cell_.is_batch_first ? std::vector<Value*>{row, step} : std::vector<Value*>{step, row});
    };
    std::vector<Value*> outputs, states;
    for (int64_t d = 0; d < cell_.directions; ++d) {
      Value* order = nullptr;
      if (cell_.is_reverse || d == 1) {
        Value* reversed = aten_("sub.Tensor", aten_("sub.Scalar", by_row, 1), steps);
        order = aten_("where.self", aten_("lt.Tensor", steps, by_row), reversed, steps);
      }
      const auto reversed = [&](Value* x) {
        return order ? taken(x, order, cell_.is_batch_first ? aten_("unsqueeze", rows, 1) : rows) : x;
      };
      const auto part = [&](Value* state) {
        return state && cell_.directions == 2 ? aten_("slice.Tensor", state, 0, d, d + 1) : state;
      };
      Value* y = call(reversed(x), weights_of(d), part(h_), part(c_), false)[0];
      if (n_.wants_output(1)) states.push_back(taken(y, end, rows));
      outputs.push_back(aten_("masked_fill.Scalar", reversed(y), is_behind, 0.0));
    }
    const auto joined = [&](const std::vector<Value*>& parts, int64_t dim) {
      return parts.size() == 1 ? aten_("unsqueeze", parts[0], dim) : aten_("stack", parts, dim);
    };
    Value* y = joined(outputs, cell_.is_batch_first ? 2 : 1);
    return {y, n_.wants_output(1) ? joined(states, time_) : nullptr, nullptr};
  }

  const OnnxNode& n_;
  AtenBuilder& aten_;
  const Cell cell_;
  const int64_t time_;  // the dimension of the steps
  bool is_module_ = false;
  Value* h_ = nullptr;
  Value* c_ = nullptr;
};

Values lower_recurrent(const OnnxNode& n, AtenBuilder& aten) { return RecurrentLowering(n, aten).run(); }

/// The values of a list of tensors.
std::vector<Value*> tensors_of(const Emission& e, std::string_view argument) {
  std::vector<Value*> values;
  const auto* list = e.constant(argument)->get<AttrList>();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto* operand = (*list)[i].get<Operand>();
    values.push_back(operand ? e.node().input(operand->index) : nullptr);
  }
  return values;
}

std::optional<ModuleSpec> module_recurrent(const Emission& e) {
  const std::vector<Value*> params = tensors_of(e, "params");
  const bool has_bias = e.flag("has_biases"), both = e.flag("bidirectional");
  const size_t per_direction = has_bias ? 4 : 2, per_layer = per_direction * (both ? 2 : 1);
  const auto layers = static_cast<size_t>(std::max<int64_t>(e.find_int("num_layers").value_or(0), 0));
  if (layers == 0 || params.size() != per_layer * layers) return std::nullopt;
  for (const Value* param : params) {
    if (param == nullptr || !param->constant) return std::nullopt;
  }
  if (params[0]->constant->dims.size() != 2 || params[1]->constant->dims.size() != 2) return std::nullopt;
  const std::string& op = e.signature().name;
  const bool is_lstm = op == "lstm";
  ModuleSpec spec{.type = is_lstm       ? "nn.LSTM"
                          : op == "gru" ? "nn.GRU"
                                        : "nn.RNN",
                  .inputs = {"input"},
                  .short_name = is_lstm       ? "lstm"
                                : op == "gru" ? "gru"
                                              : "rnn",
                  .nests_results = is_lstm};
  spec.arguments = fmt::format("{}, {}", params[0]->constant->dims[1], params[1]->constant->dims[1]);
  if (layers > 1) spec.arguments += fmt::format(", num_layers={}", layers);
  if (op == "rnn_relu") spec.arguments += ", nonlinearity=\"relu\"";
  if (!has_bias) spec.arguments += ", bias=False";
  if (e.flag("batch_first")) spec.arguments += ", batch_first=True";
  if (const double dropout = e.find_float("dropout").value_or(0); dropout != 0 && layers > 1)
    spec.arguments += ", dropout=" + python_float(dropout);
  if (both) spec.arguments += ", bidirectional=True";
  const bool has_state = is_lstm ? !tensors_of(e, "hx").empty() : e.has("hx");
  if (has_state) spec.inputs.emplace_back("hx");
  constexpr std::string_view kNames[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
  for (size_t i = 0; i < params.size(); ++i) {
    const bool is_reverse = i % per_layer >= per_direction;
    spec.weights.push_back(
        {fmt::format("{}_l{}{}", kNames[i % per_direction], i / per_layer, is_reverse ? "_reverse" : ""), params[i]});
  }
  return spec;
}

/// `torch.lstm(x, [h, c], [w_ih, w_hh], has_biases=False, num_layers=1, ...)`: what the modules call.
std::string emit_recurrent(const Emission& e) {
  return fmt::format(
      "torch.{}({}, {}, {}, has_biases={}, num_layers={}, dropout={}, train=self.training, bidirectional={}, "
      "batch_first={})",
      e.signature().name, e.text("input"), e.text("hx"), e.text("params"), e.text("has_biases"), e.text("num_layers"),
      e.text("dropout"), e.text("bidirectional"), e.text("batch_first"));
}

void down_output_sequence(OnnxEdit& edit) {
  const Value* y = edit.node().output(0);
  if (y != nullptr) edit.node().set_attribute("output_sequence", int64_t{1});
}

/// Opset 1 spells its default so.
void up_gru_3(OnnxEdit& edit) {
  const Attribute* direction = edit.node().find_attribute("direction");
  const auto* text = direction ? direction->value.get<std::string>() : nullptr;
  if (text != nullptr && *text == "foward") edit.node().set_attribute("direction", std::string("forward"));
}

constexpr OpsetStep kRecurrentHistory[] = {
    {.to = 7, .up = up_drop<"output_sequence">, .down = down_output_sequence},
    {.to = 14, .down = down_require_default<"layout", 0>},
    {.to = 22, .adds = kBFloat16},
};
constexpr OpsetStep kGruHistory[] = {
    {.to = 3, .up = up_gru_3, .down = down_require_default<"linear_before_reset", 0>},
    {.to = 7, .up = up_drop<"output_sequence">, .down = down_output_sequence},
    {.to = 14, .down = down_require_default<"layout", 0>},
    {.to = 22, .adds = kBFloat16},
};

constexpr OnnxOp kRecurrentOnnx[] = {
    {.sig = "RNN(T X, T W, T R, T? B, T1? sequence_lens, T? initial_h, *, floats? activation_alpha, "
            "floats? activation_beta, strs? activations, float? clip, str direction=\"forward\", int? hidden_size, "
            "int layout=0) -> (T? Y, T? Y_h)",
     .since = 1,
     .traits = kSumsProducts | kWeightOrderDiffersFromTorch,
     .zeros = {1 << 3 | 1 << 5},
     .history = kRecurrentHistory,
     .infer = infer_recurrent,
     .sizes = sizes_of_recurrent,
     .open = open_recurrent,
     .eval = eval_recurrent,
     .lower = lower_recurrent,
     .expand = expand_recurrent},
    {.sig = "GRU(T X, T W, T R, T? B, T1? sequence_lens, T? initial_h, *, floats? activation_alpha, "
            "floats? activation_beta, strs? activations, float? clip, str direction=\"forward\", int? hidden_size, "
            "int layout=0, int linear_before_reset=0) -> (T? Y, T? Y_h)",
     .since = 1,
     .traits = kSumsProducts | kWeightOrderDiffersFromTorch,
     .zeros = {1 << 3 | 1 << 5},
     .history = kGruHistory,
     .infer = infer_recurrent,
     .sizes = sizes_of_recurrent,
     .open = open_recurrent,
     .eval = eval_recurrent,
     .lower = lower_recurrent,
     .expand = expand_recurrent},
    {.sig = "com.microsoft::DynamicQuantizeLSTM(T X, T2 W, T2 R, T? B, T1? sequence_lens, T? initial_h, T? initial_c, "
            "T? P, T W_scale, T2 W_zero_point, T R_scale, T2 R_zero_point, *, floats? activation_alpha, "
            "floats? activation_beta, strs? activations, float? clip, str direction=\"forward\", int? hidden_size, "
            "int input_forget=0) -> (T? Y, T? Y_h, T? Y_c)",
     .since = 1,
     .traits = kSumsProducts | kWeightOrderDiffersFromTorch,
     .expand = expand_recurrent},
    {.sig = "LSTM(T X, T W, T R, T? B, T1? sequence_lens, T? initial_h, T? initial_c, T? P, *, "
            "floats? activation_alpha, floats? activation_beta, strs? activations, float? clip, "
            "str direction=\"forward\", int? hidden_size, int input_forget=0, int layout=0) -> (T? Y, T? Y_h, T? Y_c)",
     .since = 1,
     .traits = kSumsProducts | kWeightOrderDiffersFromTorch,
     .zeros = {1 << 3 | 1 << 5 | 1 << 6 | 1 << 7},
     .history = kRecurrentHistory,
     .infer = infer_recurrent,
     .sizes = sizes_of_recurrent,
     .open = open_recurrent,
     .eval = eval_recurrent,
     .lower = lower_recurrent,
     .expand = expand_recurrent},
};

#define TONNX_RECURRENT(op)                                                                                       \
  "aten::" op                                                                                                     \
  ".input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, " \
  "bool bidirectional, bool batch_first) -> (Tensor, Tensor)"

constexpr AtenOp kRecurrentAten[] = {
    {.sig = "aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float "
            "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
     .types = types_lstm,
     .layout = Layout::Own,
     .low_precision = true,
     .emit = emit_recurrent,
     .module = module_recurrent,
     .raise = raise_recurrent},
    {.sig = TONNX_RECURRENT("gru"),
     .types = types_recurrent,
     .low_precision = true,
     .emit = emit_recurrent,
     .module = module_recurrent,
     .raise = raise_recurrent},
    {.sig = TONNX_RECURRENT("rnn_tanh"),
     .types = types_recurrent,
     .low_precision = true,
     .emit = emit_recurrent,
     .module = module_recurrent,
     .raise = raise_recurrent},
    {.sig = TONNX_RECURRENT("rnn_relu"),
     .types = types_recurrent,
     .low_precision = true,
     .emit = emit_recurrent,
     .module = module_recurrent,
     .raise = raise_recurrent},
};

#undef TONNX_RECURRENT

}  // namespace

extern const OpFamily kRecurrentOps;
constinit const OpFamily kRecurrentOps{"recurrent", kRecurrentOnnx, kRecurrentAten};

}  // namespace tonnx
