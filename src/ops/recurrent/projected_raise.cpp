// projected_raise.cpp - LSTMs whose states are projected to a smaller size, which ONNX's LSTM has not: a Scan over
// time.
#include "ops/recurrent/projected_raise.h"

#include "ops/frame/expansion.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// One step of one direction: the new states.
struct States {
  Value *h, *c;
};
States step(OnnxBuilder& onnx, Value* gates_of_x, const States& old, Value* to_gates, Value* to_state) {
  Value* gates = onnx("Add", {gates_of_x, onnx("MatMul", {old.h, to_gates})});
  const Values parts = onnx.all(4, "Split", {gates}, {attr("axis", int64_t{1}), attr("num_outputs", int64_t{4})});
  Value* kept = onnx("Mul", {onnx("Sigmoid", {parts[1]}), old.c});
  Value* c = onnx("Add", {kept, onnx("Mul", {onnx("Sigmoid", {parts[0]}), onnx("Tanh", {parts[2]})})});
  Value* h = onnx("Mul", {onnx("Sigmoid", {parts[3]}), onnx("Tanh", {c})});
  return {onnx("MatMul", {h, to_state}), c};
}

/// Where each sequence still goes on: [time, batch, 1].
Value* goes_on(OnnxBuilder& onnx, Value* x, Value* lengths) {
  Value* time = onnx.cast(onnx.range(onnx.size(x, 0)), DType::Int32);
  return onnx.unsqueeze(onnx("Less", {onnx.unsqueeze(time, {1}), onnx.unsqueeze(lengths, {0})}), {2});
}

/// All steps of one direction: [time, batch, projected], and the last states.
Values direction(OnnxBuilder& onnx, Value* x, const ProjectedWeights& weights, const States& first, Value* mask,
                 bool is_reversed) {
  Value* gates = onnx("MatMul", {x, onnx.transpose(weights.input, {1, 0})});
  if (weights.bias_input) gates = onnx("Add", {gates, onnx("Add", {weights.bias_input, weights.bias_state})});
  Value *to_gates = onnx.transpose(weights.state, {1, 0}), *to_state = onnx.transpose(weights.projection, {1, 0});
  std::vector<Value*> inputs{first.h, first.c, gates};
  if (mask) inputs.push_back(mask);
  Node* scan = onnx.node("Scan", inputs);
  const size_t parts = mask ? 2 : 1;
  scan->set_attribute("num_scan_inputs", static_cast<int64_t>(parts));
  if (is_reversed) {
    scan->set_attribute("scan_input_directions", std::vector<int64_t>(parts, 1));
    scan->set_attribute("scan_output_directions", std::vector<int64_t>{1});
  }
  const auto element = [&](const Value* whole) {
    const Shape& shape = onnx.shape(whole);
    return Type::tensor(OnnxBuilder::dtype(whole), Shape{shape[1], shape[2]});
  };
  onnx.add_body(*scan, "body", [&](Graph& body) -> std::vector<Value*> {
    const States old{add_input(body, "h", first.h->type), add_input(body, "c", first.c->type)};
    Value* now = add_input(body, "gates", element(gates));
    Value* is_there = mask ? add_input(body, "goes_on", element(mask)) : nullptr;
    States next = step(onnx, now, old, to_gates, to_state);
    if (is_there) next = {onnx.where(is_there, next.h, old.h), onnx.where(is_there, next.c, old.c)};
    return {next.h, next.c, onnx("Identity", {next.h})};
  });
  Value* last_h = onnx.add_output_to(*scan, "h", first.h->type);
  Value* last_c = onnx.add_output_to(*scan, "c", first.c->type);
  const Shape &all = onnx.shape(gates), &state = onnx.shape(first.h);
  const Type type = Type::tensor(OnnxBuilder::dtype(x), Shape{all[0], all[1], state[1]});
  return {onnx.add_output_to(*scan, "y", type), last_h, last_c};
}

}  // namespace

Values projected_layer(OnnxBuilder& onnx, Value* x, const std::vector<ProjectedWeights>& directions, Value* h, Value* c,
                       Value* lengths) {
  Value* mask = lengths ? goes_on(onnx, x, lengths) : nullptr;
  std::vector<Value*> joined[3];
  for (size_t d = 0; d < directions.size(); ++d) {
    const auto at = static_cast<int64_t>(d);
    const auto first = [&](Value* given, const Dim& size) {
      if (given) return onnx.squeeze(onnx.slice(given, 0, at, at + 1), {0});
      Value* sizes = onnx.list(IntArgs{onnx.size(x, 1), onnx.int_of(size)});
      return onnx("Expand", {onnx.number(OnnxBuilder::dtype(x), 0), sizes});
    };
    const Shape& projection = onnx.shape(directions[d].projection);
    const States states{first(h, projection.at(0)), first(c, projection.at(1))};
    const Values y = direction(onnx, x, directions[d], states, mask, d == 1);
    joined[0].push_back(onnx.unsqueeze(y[0], {1}));
    for (size_t i = 1; i < 3; ++i) joined[i].push_back(onnx.unsqueeze(y[i], {0}));
  }
  return {onnx.concat(joined[0], 1), onnx.concat(joined[1], 0), onnx.concat(joined[2], 0)};
}

}  // namespace tonnx
