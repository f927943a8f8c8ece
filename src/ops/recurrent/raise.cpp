// raise.cpp - PyTorch's recurrent layers and cells as ONNX.
#include "base/budget.h"
#include "ops/recurrent/projected_raise.h"
#include "ops/recurrent/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// What differs between LSTM, GRU and RNN. `gates`: for each gate of ONNX its number in PyTorch.
struct Kind {
  const char* op;
  std::vector<int64_t> gates;
  std::vector<Attribute> attributes;
};

Kind kind_of(const AtenNode& n) {
  const std::string& name = n.node().op.str();
  if (name.starts_with("lstm")) return {"LSTM", {0, 3, 1, 2}, {}};
  // PyTorch multiplies the reset gate with what the recurrent weights gave
  if (name.starts_with("gru")) return {"GRU", {1, 0, 2}, {attr("linear_before_reset", int64_t{1})}};
  if (name.starts_with("rnn_relu")) return {"RNN", {0}, {attr("activations", std::vector<std::string>{"Relu"})}};
  return {"RNN", {0}, {}};
}

/// Whether all elements are zero, as those of an initial state that nobody gave.
bool is_zero(const Value* value) {
  const auto all_zero = [](const TensorPtr& tensor) {
    const std::string_view bytes = tensor->data.view();
    return tensor->dtype != DType::String && bytes.find_first_not_of('\0') == std::string_view::npos;
  };
  if (value->constant) return all_zero(value->constant);
  const Node* maker = value->producer;
  if (maker == nullptr || !maker->domain.empty()) return false;
  const std::string_view op = maker->op.view();
  if (op == "Expand" || op == "Identity" || op == "Reshape" || op == "Transpose") return is_zero(maker->input(0));
  if (op != "ConstantOfShape") return false;
  const Attribute* filling = maker->find_attribute("value");
  const auto* tensor = filling ? filling->value.get<TensorPtr>() : nullptr;
  return tensor == nullptr || all_zero(*tensor);
}

/// The weights of one direction of one layer, their gates in the order of ONNX.
struct Weights {
  Value *input, *state;
  Value* bias = nullptr;
};

class Recurrent {
 public:
  Recurrent(const AtenNode& n, OnnxBuilder& onnx) : onnx_(onnx), kind_(kind_of(n)) {}

  Value* ordered(Value* weight) {
    const auto rows = onnx_.shape(weight).at(0).constant();
    if (!rows) fail_unsupported("the size of a weight is not known");
    if (kind_.gates.size() == 1) return weight;
    const int64_t each = *rows / static_cast<int64_t>(kind_.gates.size());
    std::vector<int64_t> order;
    order.reserve(room_for<int64_t>({*rows}));
    for (const int64_t gate : kind_.gates) {
      for (int64_t i = 0; i < each; ++i) order.push_back(gate * each + i);
    }
    return onnx_.gather(weight, onnx_.ints(order), 0);
  }

  Weights weights(Value* input, Value* state, Value* bias_input, Value* bias_state) {
    Weights made{ordered(input), ordered(state)};
    if (bias_input && bias_state) made.bias = onnx_.concat({ordered(bias_input), ordered(bias_state)}, 0);
    return made;
  }

  /// One layer over [time, batch, features]: the outputs of the ONNX operator. An initial state may be null, and so may
  /// the lengths of the sequences, which are int32.
  Values layer(Value* x, const std::vector<Weights>& directions, Value* h, Value* c, Value* lengths = nullptr) {
    const auto joined = [&](Value* Weights::*part) -> Value* {
      std::vector<Value*> parts;
      for (const Weights& each : directions) {
        if (each.*part == nullptr) return nullptr;
        parts.push_back(onnx_.unsqueeze(each.*part, {0}));
      }
      return onnx_.concat(parts, 0);
    };
    std::vector<Attribute> attributes = kind_.attributes;
    const auto hidden = onnx_.shape(directions[0].state).at(1).constant();
    if (!hidden) fail_unsupported("the size of the state is not known");
    attributes.push_back(attr("hidden_size", *hidden));
    if (directions.size() == 2) {
      attributes.push_back(attr("direction", std::string("bidirectional")));
      for (Attribute& given : attributes) {
        if (given.name == "activations") given.value = std::vector<std::string>{"Relu", "Relu"};
      }
    }
    std::vector<Value*> inputs{x, joined(&Weights::input), joined(&Weights::state), joined(&Weights::bias), lengths, h};
    const bool is_lstm = std::string_view(kind_.op) == "LSTM";
    if (is_lstm) inputs.push_back(c);
    return onnx_.all(is_lstm ? 3 : 2, kind_.op, inputs, std::move(attributes));
  }

  /// [time, directions, batch, size] as [time, batch, features], or with the batch first.
  Value* features(Value* y, bool batch_first) {
    const bool is_one = onnx_.shape(y).at(1).is(1);
    if (is_one && !batch_first) return onnx_.squeeze(y, {1});
    if (is_one) return onnx_.transpose(onnx_.squeeze(y, {1}), {1, 0, 2});
    Value* moved =
        onnx_.transpose(y, batch_first ? std::vector<int64_t>{2, 0, 1, 3} : std::vector<int64_t>{0, 2, 1, 3});
    const Shape& shape = onnx_.shape(moved);
    return onnx_.reshape(moved, Shape{shape[0], shape[1], shape[2] * shape[3]});
  }

 private:
  OnnxBuilder& onnx_;
  Kind kind_;
};

}  // namespace

Values raise_layers(const AtenNode& n, OnnxBuilder& onnx, Value* x, Value* lengths, bool batch_first) {
  const bool is_lstm = n.node().op == "lstm";
  const bool has_biases = n.flag("has_biases"), both = n.flag("bidirectional");
  if (n.flag("train") && n.f("dropout") != 0) n.cannot("dropout between the layers of a recurrent network");
  n.ignore({"dropout"});
  const auto layers = static_cast<size_t>(n.i("num_layers")), directions = size_t{both ? 2U : 1U};
  const CheckedList<Value*> params = n.inputs("params");
  const size_t plain = has_biases ? 4 : 2, cells = layers * directions;
  const bool is_projected = is_lstm && params.size() == cells * (plain + 1);
  const size_t per_direction = is_projected ? plain + 1 : plain;
  require(params.size() == cells * per_direction, "a recurrent layer has {} weights, not {}", params.size(),
          cells * per_direction);
  const CheckedList<Value*> states = is_lstm ? n.inputs("hx") : CheckedList<Value*>{n.input("hx")};
  Recurrent recurrent(n, onnx);
  const auto state_of = [&](size_t which, size_t layer) -> Value* {
    Value* all = states.at(which);
    if (is_zero(all)) return nullptr;
    if (layers == 1) return all;
    const auto first = static_cast<int64_t>(layer * directions), count = static_cast<int64_t>(directions);
    return onnx.slice(all, 0, first, first + count);
  };
  std::vector<Value*> last[2];
  for (size_t layer = 0; layer < layers; ++layer) {
    std::vector<Weights> weights;
    std::vector<ProjectedWeights> projected;
    for (size_t d = 0; d < directions; ++d) {
      Value* const* param = params.data() + (layer * directions + d) * per_direction;
      Value *bias_input = has_biases ? param[2] : nullptr, *bias_state = has_biases ? param[3] : nullptr;
      if (is_projected) {
        projected.push_back({param[0], param[1], bias_input, bias_state, param[plain]});
      } else {
        weights.push_back(recurrent.weights(param[0], param[1], bias_input, bias_state));
      }
    }
    Value *h = state_of(0, layer), *c = is_lstm ? state_of(1, layer) : nullptr;
    const Values y =
        is_projected ? projected_layer(onnx, x, projected, h, c, lengths) : recurrent.layer(x, weights, h, c, lengths);
    x = recurrent.features(y[0], batch_first && layer + 1 == layers);
    for (size_t i = 1; i < y.size(); ++i) last[i - 1].push_back(y[i]);
  }
  Values results{x};
  for (size_t i = 0; i < states.size(); ++i)
    results.push_back(n.wants_output(i + 1) ? onnx.concat(last[i], 0) : nullptr);
  return results;
}

Values raise_recurrent(const AtenNode& n, OnnxBuilder& onnx) {
  const bool batch_first = n.flag("batch_first");
  Value* x = n.input("input");
  return raise_layers(n, onnx, batch_first ? onnx.transpose(x, {1, 0, 2}) : x, nullptr, batch_first);
}

namespace {

/// A step alone is a sequence of one.
Values raise_cell(const AtenNode& n, OnnxBuilder& onnx) {
  const bool is_lstm = n.node().op == "lstm_cell";
  const CheckedList<Value*> states = is_lstm ? n.inputs("hx") : CheckedList<Value*>{n.input("hx")};
  Recurrent recurrent(n, onnx);
  const std::vector<Weights> weights{
      recurrent.weights(n.input("w_ih"), n.input("w_hh"), n.find_input("b_ih"), n.find_input("b_hh"))};
  const auto state_of = [&](size_t which) -> Value* {
    return is_zero(states.at(which)) ? nullptr : onnx.unsqueeze(states[which], {0});
  };
  const Values y =
      recurrent.layer(onnx.unsqueeze(n.input("input"), {0}), weights, state_of(0), is_lstm ? state_of(1) : nullptr);
  Values results{onnx.squeeze(y[1], {0})};
  if (is_lstm) results.push_back(n.wants_output(1) ? onnx.squeeze(y[2], {0}) : nullptr);
  return results;
}

#define CELL(op) \
  "aten::" op "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor"

constexpr AtenOp kAtenRecurrentAten[] = {
    {.sig = "aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
            "b_hh=None) -> (Tensor, Tensor)",
     .types = types_cell,
     .python = "torch.lstm_cell",
     .raise = raise_cell},
    {.sig = CELL("gru_cell"), .types = types_cell, .python = "torch.gru_cell", .raise = raise_cell},
    {.sig = CELL("rnn_tanh_cell"), .types = types_cell, .python = "torch.rnn_tanh_cell", .raise = raise_cell},
    {.sig = CELL("rnn_relu_cell"), .types = types_cell, .python = "torch.rnn_relu_cell", .raise = raise_cell},
};

#undef CELL

}  // namespace

extern const OpFamily kAtenRecurrentOps;
constinit const OpFamily kAtenRecurrentOps{"aten_recurrent", {}, kAtenRecurrentAten};

}  // namespace tonnx
