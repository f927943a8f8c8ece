// onnx_builder.cpp - appends ONNX nodes, and leaves out those that would do nothing.
#include <algorithm>
#include <numeric>

#include "base/checked_int.h"
#include "base/error.h"
#include "ops/frame/aten_to_onnx.h"
#include "ops/frame/conversion.h"
#include "ops/frame/runtime_types.h"

namespace tonnx {

namespace {

/// Max, Min and Clip took no integers before opset 12, and ONNX Runtime has that Clip for float32 only.
Value* before_12(OnnxBuilder& onnx, std::string_view op, const std::vector<Value*>& inputs) {
  const DType type = inputs[0]->type.dtype;
  if (op == "Clip" && (is_integer(type) || type == DType::Float64)) {
    Value* x = inputs[0];
    if (inputs.size() > 1 && inputs[1] != nullptr) x = onnx("Max", {x, inputs[1]});
    return inputs.size() > 2 && inputs[2] != nullptr ? onnx("Min", {x, inputs[2]}) : x;
  }
  if ((op != "Max" && op != "Min") || !is_integer(type) || inputs.size() != 2) return nullptr;
  return onnx.where(onnx(op == "Max" ? "Greater" : "Less", inputs), inputs[0], inputs[1]);
}

}  // namespace

Values OnnxBuilder::all(size_t count, std::string_view op, const std::vector<Value*>& inputs,
                        std::vector<Attribute> attributes) {
  if (target_opset() < 12 && !inputs.empty() && inputs[0] != nullptr) {
    if (Value* result = before_12(*this, op, inputs)) return result;
  }
  if (const auto kernel = find_kernel_type(op, inputs, target_opset())) {
    std::vector<Value*> wide = inputs;
    for (size_t i = kernel->first_input; i < wide.size(); ++i) {
      if (wide[i] != nullptr && dtype(wide[i]) == kernel->from) wide[i] = cast(wide[i], kernel->to);
    }
    Values results = all(count, op, wide, std::move(attributes));
    if (kernel->gives_same) results[0] = cast(results[0], kernel->from);
    return results;
  }
  Node* made = raising_->append(op, inputs, std::move(attributes));
  Graph& graph = raising_->onnx();
  const Node* source = raising_->current();
  const std::string base = source && source->output(0) ? source->output(0)->name : "value";
  for (size_t i = 0; i < count; ++i)
    graph.add_output_to(made, graph.unique_name(fmt::format("{}_{}", base, made->op.view())));
  raising_->complete(*made);
  return Values(made->outputs());
}

Node* OnnxBuilder::node(std::string_view op, const std::vector<Value*>& inputs) {
  return raising_->append(op, inputs, {});
}

void OnnxBuilder::add_body(Node& owner, const char* attribute, const std::function<std::vector<Value*>(Graph&)>& fill) {
  raising_->in_graph(owner, attribute, [&](Graph& graph) {
    std::vector<Value*> given;
    for (Value* output : fill(graph)) {
      // an output of a graph is a value that the graph makes, and each is one of its own
      if (output->graph != &graph || std::find(given.begin(), given.end(), output) != given.end()) {
        Node* copy = raising_->append("Identity", {output}, {});
        output = graph.add_output_to(copy, graph.unique_name(output->name), output->type);
      }
      given.push_back(output);
      graph.add_output(output);
    }
  });
}

Value* OnnxBuilder::add_output_to(Node& node, std::string_view hint, Type type) {
  Graph& graph = raising_->onnx();
  Value* made = graph.add_output_to(&node, graph.unique_name(hint), type);
  raising_->learn_sizes(made, type);
  return made;
}

std::vector<Value*> OnnxBuilder::inline_graph(const Graph& aten, const std::vector<Value*>& arguments) {
  require(aten.inputs().size() == arguments.size(), "a graph inside the node has {} inputs, and {} are given",
          aten.inputs().size(), arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (aten.inputs()[i]->type.is_tensor()) {
      const Type outer = arguments[i]->type;
      raising_->define(aten.inputs()[i], arguments[i]);
      if (arguments[i]->graph != &raising_->onnx()) arguments[i]->type = outer;
    } else {
      raising_->define_list(aten.inputs()[i], arguments[i]);
    }
  }
  raising_->raise_nodes(aten);
  std::vector<Value*> results;
  for (const Value* output : aten.outputs()) results.push_back(raising_->value_of(output));
  return results;
}

Value* OnnxBuilder::constant(TensorPtr tensor, std::string_view hint) {
  return raising_->constant(std::move(tensor), hint);
}

Value* OnnxBuilder::integer(DType dtype, int64_t value) {
  auto tensor = std::make_shared<Tensor>();
  tensor->dtype = dtype;
  if (!is_integer(dtype)) return number(dtype, static_cast<double>(value));
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, 1)));
  set_element_bits(dtype, bytes.data(), 0, static_cast<uint64_t>(value));
  tensor->data = Bytes::own(std::move(bytes));
  return constant(std::move(tensor));
}

Value* OnnxBuilder::numbers(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values) {
  return constant(make_floats(dtype, std::move(dims), values));
}

Value* OnnxBuilder::ints(std::vector<int64_t> values) { return constant(make_ints(std::move(values)), "ints"); }

Value* OnnxBuilder::list(const IntArgs& values) {
  if (values.size() == 1 && values[0].value != nullptr) return values[0].value;
  std::vector<Value*> parts;
  std::vector<int64_t> numbers;
  const auto flush = [&] {
    if (!numbers.empty()) parts.push_back(ints(numbers));
    numbers.clear();
  };
  for (const IntArg& value : values) {
    if (value.value == nullptr) {
      numbers.push_back(value.number);
    } else {
      flush();
      parts.push_back(value.value);
    }
  }
  if (parts.empty()) return ints(numbers);
  flush();
  return concat(parts, 0);
}

Value* OnnxBuilder::scalar(const IntArg& value) {
  return value.value == nullptr ? integer(DType::Int64, value.number) : squeeze(value.value, {0});
}

IntArg OnnxBuilder::add(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return checked_add(a.number, b.number);
  if (a.is(0)) return b;
  return b.is(0) ? a : IntArg((*this)("Add", {list(a), list(b)}));
}

IntArg OnnxBuilder::sub(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return checked_sub(a.number, b.number);
  return b.is(0) ? a : IntArg((*this)("Sub", {list(a), list(b)}));
}

IntArg OnnxBuilder::mul(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return checked_mul(a.number, b.number);
  if (a.is(1)) return b;
  return b.is(1) ? a : IntArg((*this)("Mul", {list(a), list(b)}));
}

IntArg OnnxBuilder::floor_div(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) {
    require(b.number > 0, "a size is divided by {}", b.number);
    return *tonnx::floor_div(Dim(a.number), Dim(b.number)).constant();
  }
  // sizes are not negative, so that Div, which goes towards zero, is the same
  return b.is(1) ? a : IntArg((*this)("Div", {list(a), list(b)}));
}

IntArg OnnxBuilder::max(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return std::max(a.number, b.number);
  return IntArg((*this)("Max", {list(a), list(b)}));
}

IntArg OnnxBuilder::min(const IntArg& a, const IntArg& b) {
  if (!a.value && !b.value) return std::min(a.number, b.number);
  return IntArg((*this)("Min", {list(a), list(b)}));
}

IntArg OnnxBuilder::size(Value* x, int64_t axis) {
  const Dim& dim = shape(x).at(static_cast<size_t>(axis));
  if (dim.is_constant() || raising_->can_make(dim)) return raising_->int_of(dim);
  return IntArg((*this)("Shape", {x}, {{"start", axis}, {"end", axis + 1}}));
}

IntArgs OnnxBuilder::sizes(Value* x) {
  IntArgs result;
  for (int64_t axis = 0; axis < rank(x); ++axis) result.push_back(size(x, axis));
  return result;
}

IntArg OnnxBuilder::int_of(const Dim& dim) { return raising_->int_of(dim); }

bool OnnxBuilder::can_make(const Dim& dim) const { return dim.is_constant() || raising_->can_make(dim); }

IntArgs OnnxBuilder::ints_of(const Shape& shape) {
  IntArgs result;
  for (const Dim& dim : shape) result.push_back(int_of(dim));
  return result;
}

Value* OnnxBuilder::cast(Value* x, DType to) {
  return dtype(x) == to ? x : (*this)("Cast", {x}, {{"to", static_cast<int64_t>(to)}});
}

Value* OnnxBuilder::reshape(Value* x, const IntArgs& sizes) {
  const auto any = [&](auto is) { return std::any_of(sizes.begin(), sizes.end(), is); };
  const bool has_zero = any([](const IntArg& size) { return size.is(0); });
  const bool has_rest = any([](const IntArg& size) { return size.is(-1); });
  const bool may_have_zero = any([](const IntArg& size) { return size.value != nullptr; }) && target_opset() >= 14;
  std::vector<Attribute> attributes;
  if (has_zero || (may_have_zero && !has_rest)) attributes.push_back({"allowzero", int64_t{1}, AttrType::None, {}, {}});
  return (*this)("Reshape", {x, list(sizes)}, std::move(attributes));
}

Value* OnnxBuilder::reshape(Value* x, const Shape& shape) {
  const Shape& from = this->shape(x);
  if (from == shape) return x;
  const bool has_zero = std::any_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is(0); });
  IntArgs sizes;
  size_t kept = 0, others = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (const auto number = shape[i].constant()) {
      sizes.emplace_back(*number);
    } else if (!has_zero && i < from.size() && from[i] == shape[i]) {
      sizes.emplace_back(0);  // as it is
      ++kept;
    } else {
      sizes.emplace_back(-1);
      ++others;
    }
  }
  // What is left of an open size that is 0 can be anything: -1 is for the only one that is open.
  if (has_zero || others > 1 || (others == 1 && kept != 0)) {
    const auto is_made = [&](const Dim& dim) { return raising_->can_make(dim); };
    const auto lost = std::find_if_not(shape.begin(), shape.end(), is_made);
    if (has_zero || lost == shape.end() || !std::all_of(lost + 1, shape.end(), is_made))
      return reshape(x, ints_of(shape));
    IntArgs made;  // a size that nothing but this tensor has
    for (auto dim = shape.begin(); dim != shape.end(); ++dim)
      made.push_back(dim == lost ? IntArg(-1) : raising_->int_of(*dim));
    return reshape(x, made);
  }
  return (*this)("Reshape", {x, list(sizes)});
}

Value* OnnxBuilder::expand(Value* x, const Shape& shape) {
  const Shape& from = this->shape(x);
  if (from == shape) return x;
  require(from.size() <= shape.size(), "a tensor of {} dimensions is expanded to {}", from.size(), shape.size());
  const size_t added = shape.size() - from.size();
  IntArgs sizes;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool stays = i >= added && from[i - added] == shape[i];
    sizes.push_back(stays ? IntArg(1) : int_of(shape[i]));
  }
  return (*this)("Expand", {x, list(sizes)});
}

Value* OnnxBuilder::transpose(Value* x, std::vector<int64_t> order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  return (*this)("Transpose", {x}, {{"perm", std::move(order)}});
}

Value* OnnxBuilder::swap_axes(Value* x, int64_t a, int64_t b) {
  std::vector<int64_t> order(static_cast<size_t>(rank(x)));
  std::iota(order.begin(), order.end(), 0);
  if (!order.empty()) std::swap(order.at(static_cast<size_t>(a)), order.at(static_cast<size_t>(b)));
  return transpose(x, std::move(order));
}

Value* OnnxBuilder::unsqueeze(Value* x, std::vector<int64_t> axes) {
  return axes.empty() ? x : (*this)("Unsqueeze", {x, ints(std::move(axes))});
}

Value* OnnxBuilder::squeeze(Value* x, std::vector<int64_t> axes) {
  return axes.empty() ? x : (*this)("Squeeze", {x, ints(std::move(axes))});
}

Value* OnnxBuilder::concat(const std::vector<Value*>& parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : (*this)("Concat", parts, {{"axis", axis}});
}

Value* OnnxBuilder::gather(Value* x, Value* indices, int64_t axis) {
  return (*this)("Gather", {x, indices}, {{"axis", axis}});
}

Value* OnnxBuilder::slice(Value* x, int64_t axis, const IntArg& start, const IntArg& end, int64_t step) {
  if (start.is(0) && end.is(kEnd) && step == 1) return x;
  std::vector<Value*> inputs{x, list(start), list(end), ints({axis})};
  if (step != 1) inputs.push_back(ints({step}));
  return (*this)("Slice", inputs);
}

Value* OnnxBuilder::reduce(std::string_view op, Value* x, const std::vector<int64_t>& axes, bool keepdims) {
  return (*this)(op, {x, axes.empty() ? nullptr : ints(axes)}, {{"keepdims", static_cast<int64_t>(keepdims)}});
}

Value* OnnxBuilder::range(const IntArg& end) {
  return (*this)("Range", {integer(DType::Int64, 0), scalar(end), integer(DType::Int64, 1)});
}

int64_t OnnxBuilder::rank(const Value* x) const { return static_cast<int64_t>(shape(x).size()); }

const Shape& OnnxBuilder::shape(const Value* x) const {
  if (!x->type.shape) fail_unsupported("the rank of '{}' is not known", x->name);
  return *x->type.shape;
}

Dim OnnxBuilder::fresh() { return raising_->fresh().next(); }

int64_t OnnxBuilder::target_opset() const { return raising_->options().opset; }
bool OnnxBuilder::is_training() const { return raising_->options().training; }

}  // namespace tonnx
