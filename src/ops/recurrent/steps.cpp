// steps.cpp - RNN, GRU and LSTM that PyTorch's modules do not compute, written as a Scan over the steps:
// peepholes, other activations, clipping, lengths of sequences.
#include "base/error.h"
#include "ops/frame/expansion.h"
#include "ops/recurrent/recurrent.h"

namespace tonnx {
namespace {

/// A weight of one direction, transposed: [inputs, gates * hidden]. Where it is quantised, with its scale.
struct Weight {
  Value* matrix = nullptr;
  Value* scale = nullptr;
  Value* zero_point = nullptr;
};

/// What is known outside of the steps of one direction, to be used inside.
struct Direction {
  Weight recurrent;
  Value* recurrent_bias = nullptr;  // GRU with linear_before_reset only
  std::vector<Value*> peepholes;    // of i, o and f; empty where there are none
};

/// The product with a weight. With a quantised weight the other side is quantised too, over all that it has now.
Value* product(Expansion& make, Value* x, const Weight& weight) {
  if (weight.scale == nullptr) return make("MatMul", {x, weight.matrix});
  const std::vector<Value*> numbers = make.all(3, "DynamicQuantizeLinear", {x});
  Value* sum = make("MatMulInteger", {numbers[0], weight.matrix, numbers[2], weight.zero_point});
  Value* scale = make("Mul", {numbers[1], weight.scale});
  return make("Mul", {make("CastLike", {sum, x}), scale});
}

class StepWriter {
 public:
  StepWriter(Expansion& body, DType dtype, const Cell& cell, const Direction& outside,
             std::vector<CellActivation> activations)
      : body_(body), dtype_(dtype), cell_(cell), outside_(outside), activations_(std::move(activations)) {}

  /// The next h, and of an LSTM the next c, from the product of the input with its weights.
  std::vector<Value*> next(Value* x, Value* h, Value* c) {
    switch (cell_.kind) {
      case CellKind::Rnn: return {active(0, body_("Add", {x, recurrent(h)}))};
      case CellKind::Gru: return {gru(x, h)};
      default: return lstm(x, h, c);
    }
  }

 private:
  std::vector<Value*> split(Value* x, size_t count) {
    return body_.all(count, "Split", {x}, {{"axis", int64_t{-1}}, {"num_outputs", static_cast<int64_t>(count)}});
  }
  Value* scalar(double value) { return body_.number(dtype_, value); }
  Value* recurrent(Value* h) { return product(body_, h, outside_.recurrent); }

  /// The activation of that number; what goes in is clipped before.
  Value* active(size_t number, Value* x, bool clips = true) {
    const CellActivation& f = activations_[number];
    if (clips && cell_.clip) x = body_("Clip", {x, scalar(-*cell_.clip), scalar(*cell_.clip)});
    if (f.name == "Affine") {
      return body_("Add", {body_("Mul", {x, scalar(f.alpha)}), scalar(f.beta)});
    }
    if (f.name == "ScaledTanh") {
      return body_("Mul", {body_("Tanh", {body_("Mul", {x, scalar(f.beta)})}), scalar(f.alpha)});
    }
    std::vector<Attribute> attributes;
    if (f.name == "LeakyRelu" || f.name == "ThresholdedRelu" || f.name == "Elu" || f.name == "HardSigmoid") {
      attributes.push_back({"alpha", f.alpha, AttrType::Float, {}, {}});
    }
    if (f.name == "HardSigmoid") attributes.push_back({"beta", f.beta, AttrType::Float, {}, {}});
    return body_(f.name, {x}, std::move(attributes));
  }

  Value* gru(Value* x, Value* h) {
    const std::vector<Value*> from_x = split(x, 3);
    Value *z = nullptr, *r = nullptr, *candidate = nullptr;
    if (cell_.linear_before_reset) {
      Value* all = recurrent(h);
      if (outside_.recurrent_bias) all = body_("Add", {all, outside_.recurrent_bias});
      const std::vector<Value*> from_h = split(all, 3);
      z = active(0, body_("Add", {from_x[0], from_h[0]}));
      r = active(0, body_("Add", {from_x[1], from_h[1]}));
      candidate = active(1, body_("Add", {from_x[2], body_("Mul", {r, from_h[2]})}));
    } else {
      const std::vector<Value*> weights = split(outside_.recurrent.matrix, 3);
      z = active(0, body_("Add", {from_x[0], body_("MatMul", {h, weights[0]})}));
      r = active(0, body_("Add", {from_x[1], body_("MatMul", {h, weights[1]})}));
      candidate = active(1, body_("Add", {from_x[2], body_("MatMul", {body_("Mul", {r, h}), weights[2]})}));
    }
    Value* fresh = body_("Mul", {body_("Sub", {scalar(1), z}), candidate});
    return body_("Add", {fresh, body_("Mul", {z, h})});
  }

  Value* with_peephole(Value* gate, Value* c, size_t number) {
    return outside_.peepholes.empty() ? gate : body_("Add", {gate, body_("Mul", {c, outside_.peepholes[number]})});
  }

  std::vector<Value*> lstm(Value* x, Value* h, Value* c) {
    const std::vector<Value*> gates = split(body_("Add", {x, recurrent(h)}), 4);
    Value* i = active(0, with_peephole(gates[0], c, 0));
    Value* f = cell_.input_forget ? body_("Sub", {scalar(1), i}) : active(0, with_peephole(gates[2], c, 2));
    Value* kept = body_("Mul", {f, c});
    Value* next_c = body_("Add", {kept, body_("Mul", {i, active(1, gates[3])})});
    Value* o = active(0, with_peephole(gates[1], next_c, 1));
    return {body_("Mul", {o, active(2, next_c, false)}), next_c};
  }

  Expansion& body_;
  const DType dtype_;
  const Cell& cell_;
  const Direction& outside_;
  std::vector<CellActivation> activations_;
};

class ScanWriter {
 public:
  ScanWriter(const NodeView& n, OnnxEdit& edit, const Cell& cell)
      : n_(n), edit_(edit), make_(edit), cell_(cell), dtype_(n.dtype("X")) {}

  bool run() {
    if (dtype_ == DType::Undefined) fail_unsupported("the element type of 'X' is not known");
    require(is_float(dtype_), "input 'X' is of type {}", name_of(dtype_));
    x_ = in("X");
    if (cell_.is_batch_first) x_ = make_.transpose(x_, {1, 0, 2});
    if (!has_full_sequences(n_, cell_)) is_inside_ = inside_mask();
    std::vector<Value*> outputs, hidden, cells;
    for (int64_t d = 0; d < cell_.directions; ++d) {
      const Node* scan = direction(d, cell_.is_reverse || d == 1);
      const size_t states = cell_.kind == CellKind::Lstm ? 2 : 1;
      outputs.push_back(make_.unsqueeze(scan->output(states), {1}));
      hidden.push_back(make_.unsqueeze(scan->output(0), {0}));
      if (states == 2) cells.push_back(make_.unsqueeze(scan->output(1), {0}));
    }
    Value* y = joined(outputs, 1);
    Value* h = joined(hidden, 0);
    Value* c = cells.empty() ? nullptr : joined(cells, 0);
    if (cell_.is_batch_first) {
      y = make_.transpose(y, {2, 0, 1, 3});
      h = make_.transpose(h, {1, 0, 2});
      if (c) c = make_.transpose(c, {1, 0, 2});
    }
    return edit_.replace_with({y, h, c});
  }

 private:
  Value* in(std::string_view name) {
    const int at = n_.entry().signature.find_input(name);
    return at < 0 ? nullptr : edit_.node().input(static_cast<size_t>(at));
  }
  Value* joined(const std::vector<Value*>& parts, int64_t axis) {
    return parts.size() == 1 ? parts[0] : make_.concat(parts, axis);
  }
  /// The part of an input that belongs to a direction.
  Value* part(std::string_view name, int64_t direction, int64_t axis = 0) {
    return make_("Gather", {in(name), make_.number(DType::Int64, static_cast<double>(direction))}, {{"axis", axis}});
  }
  Weight weight(const std::string& name, int64_t direction) {
    if (!cell_.is_quantized) return {.matrix = make_.transpose(part(name, direction), {1, 0})};
    Value* zero_point = in(name + "_zero_point");
    return {.matrix = bytes_of(name, direction),
            .scale = part(name + "_scale", direction),
            .zero_point = zero_point ? part(name + "_zero_point", direction) : nullptr};
  }
  /// The part of a constant as a constant, so that the bounds of its sums are known.
  Value* bytes_of(std::string_view name, int64_t direction) {
    const TensorPtr all = in(name)->constant;
    if (!all || info(all->dtype).bits != 8 || all->dims.size() != 3) return part(name, direction);
    auto one = std::make_shared<Tensor>();
    one->dtype = all->dtype;
    one->dims = {all->dims[1], all->dims[2]};
    const auto size = static_cast<size_t>(all->dims[1] * all->dims[2]);
    one->data = all->data.slice(static_cast<size_t>(direction) * size, size);
    return edit_.graph().add_initializer(in(name)->name, std::move(one));
  }
  std::vector<Value*> split(Value* x, size_t count) {
    return make_.all(count, "Split", {x}, {{"axis", int64_t{0}}, {"num_outputs", static_cast<int64_t>(count)}});
  }

  /// Whether a step belongs to the sequence, as [steps, batch, 1].
  Value* inside_mask() {
    Value* numbers = make_.range(make_.size(x_, 0));
    Value* lengths = make_.cast(in("sequence_lens"), DType::Int64);
    return make_.unsqueeze(make_("Less", {make_.unsqueeze(numbers, {1}), lengths}), {2});
  }

  Value* initial(std::string_view name, int64_t direction) {
    if (in(name) != nullptr) return part(name, direction, cell_.is_batch_first ? 1 : 0);
    Value* sizes = make_.concat({make_.size(x_, 1), make_.ints({cell_.hidden})}, 0);
    return make_("Expand", {edit_.constant(make_scalar(dtype_, 0), "zero"), sizes});
  }

  Node* direction(int64_t d, bool is_backwards) {
    Direction outside;
    Value* from_x = product(make_, x_, weight("W", d));
    outside.recurrent = weight("R", d);
    if (in("B") != nullptr) {
      const std::vector<Value*> biases = split(part("B", d), 2);
      from_x = make_("Add", {from_x, biases[0]});
      if (cell_.kind == CellKind::Gru && cell_.linear_before_reset) {
        outside.recurrent_bias = biases[1];
      } else {
        from_x = make_("Add", {from_x, biases[1]});
      }
    }
    if (cell_.kind == CellKind::Lstm && in("P") != nullptr) outside.peepholes = split(part("P", d), 3);
    std::vector<Value*> inputs{initial("initial_h", d)};
    if (cell_.kind == CellKind::Lstm) inputs.push_back(initial("initial_c", d));
    const size_t states = inputs.size();
    inputs.push_back(from_x);
    if (is_inside_ != nullptr) inputs.push_back(is_inside_);
    const auto scanned = static_cast<int64_t>(inputs.size() - states);
    std::vector<Attribute> attributes{{"num_scan_inputs", scanned}};
    if (is_backwards) {
      attributes.push_back({"scan_input_directions", std::vector<int64_t>(static_cast<size_t>(scanned), 1)});
      attributes.push_back({"scan_output_directions", std::vector<int64_t>{1}});
    }
    Node* scan = edit_.node_before("Scan", inputs, std::move(attributes), states + 1);
    add_body(*scan, d, outside);
    return scan;
  }

  void add_body(Node& scan, int64_t d, const Direction& outside) {
    auto graph = std::make_shared<Graph>();
    scan.set_attribute("body", graph, AttrType::Graph);  // from the start: it must not go away where a step fails
    graph->name = "step";
    Expansion body(edit_, *graph);
    const auto input = [&](const char* name, DType dtype, Shape shape) {
      return add_input(*graph, name, Type::tensor(dtype, std::move(shape)));
    };
    const Shape* x = n_.find_shape("X");
    const Dim batch = x ? (*x)[cell_.is_batch_first ? 0 : 1] : Dim::symbol("");
    Value* h = input("h", dtype_, {batch, cell_.hidden});
    Value* c = cell_.kind == CellKind::Lstm ? input("c", dtype_, {batch, cell_.hidden}) : nullptr;
    Value* step = input("x", dtype_, {batch, cell_.gates() * cell_.hidden});
    Value* is_inside = is_inside_ ? input("is_inside", DType::Bool, {batch, 1}) : nullptr;
    std::vector<Value*> next = StepWriter(body, dtype_, cell_, outside, cell_.activations_of(d)).next(step, h, c);
    Value* y = next[0];
    if (is_inside != nullptr) {  // behind its end a sequence stays as it is, and gives zeros
      y = body("Where", {is_inside, next[0], body.number(dtype_, 0)});
      next[0] = body("Where", {is_inside, next[0], h});
      if (c != nullptr) next[1] = body("Where", {is_inside, next[1], c});
    }
    next.push_back(y);
    for (Value* value : next) graph->add_output(body("Identity", {value}));
  }

  const NodeView& n_;
  OnnxEdit& edit_;
  Expansion make_;
  const Cell& cell_;
  const DType dtype_;
  Value* x_ = nullptr;
  Value* is_inside_ = nullptr;
};

}  // namespace

bool expand_recurrent(const NodeView& n, OnnxEdit& edit) {
  const Cell cell = cell_of(n);
  if (is_plain_cell(n, cell)) return false;
  return ScanWriter(n, edit, cell).run();
}

}  // namespace tonnx
