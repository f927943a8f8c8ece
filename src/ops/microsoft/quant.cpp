// quant.cpp - com.microsoft: elementwise operators and pools of quantised numbers, in the arithmetic of ONNX
// Runtime.
#include <cmath>

#include "base/error.h"
#include "ops/frame/expansion.h"
#include "ops/quantize/quantize.h"

namespace tonnx {
namespace {

/// Builds the expansion of a node whose inputs are known by their names.
class QuantEdit : public Expansion {
 public:
  QuantEdit(const NodeView& n, OnnxEdit& edit) : Expansion(edit), n_(n) {}

  Value* in(std::string_view name) {
    return edit_->node().input(static_cast<size_t>(n_.entry().signature.find_input(name)));
  }
  Value* number(double value) { return edit_->constant(make_scalar(DType::Float32, value), "number"); }
  /// The number that an input of one element is; 0 for a zero point that is absent.
  std::optional<double> find(std::string_view name) {
    if (in(name) == nullptr) return 0.0;
    const auto numbers = n_.find_const_floats(name);
    return numbers && numbers->size() == 1 ? std::optional((*numbers)[0]) : std::nullopt;
  }
  Value* as_float(Value* x) { return cast(x, DType::Float32); }
  Value* times(Value* x, double by) { return by == 1.0 ? x : (*this)("Mul", {x, number(by)}); }
  Value* plus(Value* x, double more) {
    if (more == 0.0) return x;
    return more < 0 ? (*this)("Sub", {x, number(-more)}) : (*this)("Add", {x, number(more)});
  }
  Value* dequantized(std::string_view x, std::string_view scale, std::string_view zero_point) {
    return (*this)("DequantizeLinear", {in(x), in(scale), in(zero_point)});
  }
  /// As QuantizeLinear, with the type of another tensor where there is no zero point.
  Value* quantized(Value* y, Value* scale, Value* zero_point, DType dtype) {
    if (zero_point != nullptr) return (*this)("QuantizeLinear", {y, scale, zero_point});
    return (*this)("QuantizeLinear", {y, scale}, {{"output_dtype", static_cast<int64_t>(dtype)}});
  }
  /// Rounded once the zero point has been added: what lies between two numbers goes to the even one of the result.
  Value* rounded(Value* y, DType dtype) {
    const auto [low, high] = range_of(dtype);
    Value* held =
        (*this)("Clip", {(*this)("Round", {y}), number(static_cast<double>(low)), number(static_cast<double>(high))});
    return cast(held, dtype);
  }
  bool done(Value* result) { return edit_->replace_with({result}); }

 private:
  const NodeView& n_;
};

DType byte_type(const NodeView& n, std::string_view input) {
  const DType dtype = n.dtype(input);
  if (dtype == DType::Undefined) fail_unsupported("the element type of '{}' is not known", input);
  range_of(dtype);
  return dtype;
}

std::vector<Attribute> copied(const NodeView& n, std::initializer_list<std::string_view> names) {
  std::vector<Attribute> result;
  for (const std::string_view name : names) {
    if (const Attribute* found = n.node().find_attribute(name)) result.push_back(*found);
  }
  return result;
}

std::vector<int64_t> to_channels_first(int64_t rank) {
  std::vector<int64_t> perm{0, rank - 1};
  for (int64_t d = 1; d < rank - 1; ++d) perm.push_back(d);
  return perm;
}
std::vector<int64_t> to_channels_last(int64_t rank) {
  std::vector<int64_t> perm{0};
  for (int64_t d = 2; d < rank; ++d) perm.push_back(d);
  perm.push_back(1);
  return perm;
}

bool expand_add(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  const DType dtype = byte_type(n, "A");
  const auto a = q.find("A_scale"), b = q.find("B_scale"), c = q.find("C_scale");
  const auto a_zero = q.find("A_zero_point"), b_zero = q.find("B_zero_point"), c_zero = q.find("C_zero_point");
  if (!a || !b || !c || !a_zero || !b_zero || !c_zero) {
    Value* sum =
        q("Add", {q.dequantized("A", "A_scale", "A_zero_point"), q.dequantized("B", "B_scale", "B_zero_point")});
    return q.done(q.quantized(sum, q.in("C_scale"), q.in("C_zero_point"), dtype));
  }
  const float left = static_cast<float>(*a) / static_cast<float>(*c),
              right = static_cast<float>(*b) / static_cast<float>(*c);
  const float fixed =
      static_cast<float>(*c_zero) - (left * static_cast<float>(*a_zero) + right * static_cast<float>(*b_zero));
  Value* y = q.plus(q.times(q.as_float(q.in("A")), left), fixed);
  y = q("Add", {y, q.times(q.as_float(q.in("B")), right)});
  return q.done(q.rounded(y, dtype));
}

bool expand_mul(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  const DType dtype = byte_type(n, "A");
  const auto a = q.find("A_scale"), b = q.find("B_scale"), c = q.find("C_scale");
  const auto a_zero = q.find("A_zero_point"), b_zero = q.find("B_zero_point"), c_zero = q.find("C_zero_point");
  if (!a || !b || !c || !a_zero || !b_zero || !c_zero) {
    Value* product =
        q("Mul", {q.dequantized("A", "A_scale", "A_zero_point"), q.dequantized("B", "B_scale", "B_zero_point")});
    return q.done(q.quantized(product, q.in("C_scale"), q.in("C_zero_point"), dtype));
  }
  const float ratio = static_cast<float>(*a) * static_cast<float>(*b) / static_cast<float>(*c);
  Value* left = q.plus(q.as_float(q.in("A")), -*a_zero);
  Value* product = q("Mul", {left, q.plus(q.as_float(q.in("B")), -*b_zero)});
  return q.done(q.rounded(q.plus(q.times(product, ratio), *c_zero), dtype));
}

template <FixedText Op>
bool expand_activation(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  Value* x = q.dequantized("X", "X_scale", "X_zero_point");
  Value* y = q(Op.value, {x}, copied(n, {"alpha"}));
  return q.done(q.quantized(y, q.in("Y_scale"), q.in("Y_zero_point"), byte_type(n, "X")));
}

/// ONNX Runtime multiplies by the whole part of 1 / y_scale.
bool expand_softmax(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  const DType dtype = byte_type(n, "X");
  const bool is_flat = n.i("opset") < 13;
  const int64_t axis = n.i("axis");
  Value* x = q("Mul", {q.as_float(q.in("X")), q.in("X_scale")});
  const auto rank = n.find_rank("X");
  const bool is_last = axis == -1 || (rank && axis == *rank - 1);
  Value* y = nullptr;
  if (is_flat && !is_last) {
    Value* rows = q("Flatten", {x}, {{"axis", axis}});
    y = q("Reshape", {q("Softmax", {rows}, {{"axis", int64_t{-1}}}), q("Shape", {x})}, {{"allowzero", int64_t{1}}});
  } else {
    y = q("Softmax", {x}, {{"axis", axis}});
  }
  const auto scale = q.find("y_scale");
  if (scale && *scale > 0) {
    y = q.times(y, std::floor(1.0F / static_cast<float>(*scale)));
  } else {
    y = q("Mul", {y, q("Floor", {q("Reciprocal", {q.in("y_scale")})})});
  }
  return q.done(q.quantized(y, q.number(1), q.in("y_zero_point"), dtype));
}

bool expand_average_pool(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  const DType dtype = byte_type(n, "X");
  const bool is_last = n.flag("channels_last");
  Value* x = q.dequantized("X", "x_scale", "x_zero_point");
  if (is_last) x = q.transpose(x, to_channels_first(n.rank("X")));
  Value* y = q("AveragePool", {x},
               copied(n, {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"}));
  y = q("Div", {y, q.in("y_scale")});
  if (const auto zero_point = q.find("y_zero_point")) {
    y = q.plus(y, *zero_point);
  } else {
    y = q("Add", {y, q.as_float(q.in("y_zero_point"))});
  }
  y = q.rounded(y, dtype);
  return q.done(is_last ? q.transpose(y, to_channels_last(n.rank("X"))) : y);
}

/// The exact sum, multiplied by one number.
bool expand_global_average_pool(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  const DType dtype = byte_type(n, "X");
  const int64_t rank = n.rank("X");
  require(rank >= 3, "the input has {} dimensions", rank);
  const int64_t first = n.flag("channels_last") ? 1 : 2;
  std::vector<int64_t> axes;
  Dim count(1);
  for (int64_t d = first; d < first + rank - 2; ++d) {
    axes.push_back(d);
    count = count * (*n.find_shape("X"))[static_cast<size_t>(d)];
  }
  Value* axes_value = edit.ints(axes, "axes");
  const auto x_scale = q.find("x_scale"), y_scale = q.find("y_scale"), x_zero = q.find("x_zero_point");
  if (!x_scale || !y_scale || !x_zero || !count.is_constant()) {
    Value* x = q.dequantized("X", "x_scale", "x_zero_point");
    return q.done(q.quantized(q("ReduceMean", {x, axes_value}), q.in("y_scale"), q.in("y_zero_point"), dtype));
  }
  const float scale =
      static_cast<float>(*x_scale) / (static_cast<float>(*y_scale) * static_cast<float>(*count.constant()));
  Value* sum = q("ReduceSum", {q.plus(q.as_float(q.in("X")), -*x_zero), axes_value});
  return q.done(q.quantized(q.times(sum, scale), q.number(1), q.in("y_zero_point"), dtype));
}

bool expand_reduce_mean(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  Value* x = q.dequantized("data", "data_scale", "data_zero_point");
  Value* y = q("ReduceMean", {x, edit.ints(n.ints("axes"), "axes")}, copied(n, {"keepdims"}));
  return q.done(q.quantized(y, q.in("reduced_scale"), q.in("reduced_zero_point"), byte_type(n, "data")));
}

bool same_number(const Value* a, const Value* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || !a->constant || !b->constant) return false;
  const auto left = floats_of(*a->constant), right = floats_of(*b->constant);
  return left && right && left->size() == 1 && *left == *right;
}

/// x in another scale; itself where it is the same.
Value* rescaled(QuantEdit& q, Value* x, Value* scale, Value* zero_point, Value* to_scale, Value* to_zero_point) {
  if (same_number(scale, to_scale) && same_number(zero_point, to_zero_point)) return x;
  return q("QuantizeLinear", {q("DequantizeLinear", {x, scale, zero_point}), to_scale, to_zero_point});
}

bool expand_concat(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  const std::vector<Value*> all = edit.node().inputs();
  require(all.size() >= 5 && all.size() % 3 == 2, "{} inputs, and three are needed for each part", all.size());
  std::vector<Value*> parts;
  for (size_t i = 2; i < all.size(); i += 3)
    parts.push_back(rescaled(q, all[i], all[i + 1], all[i + 2], all[0], all[1]));
  return q.done(q("Concat", parts, {{"axis", n.i("axis")}}));
}

bool expand_where(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  Value *scale = q.in("z_scale"), *zero_point = q.in("z_zero_point");
  Value* x = rescaled(q, q.in("X"), q.in("x_scale"), q.in("x_zero_point"), scale, zero_point);
  Value* y = rescaled(q, q.in("Y"), q.in("y_scale"), q.in("y_zero_point"), scale, zero_point);
  return q.done(q("Where", {q.in("condition"), x, y}));
}

bool expand_conv(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  std::vector<Value*> inputs = edit.node().inputs();
  const bool is_last = n.flag("channels_last");
  if (is_last) inputs[0] = q.transpose(inputs[0], to_channels_first(n.rank("x")));
  Value* y = q("QLinearConv", inputs, copied(n, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  return q.done(is_last ? q.transpose(y, to_channels_last(n.rank("x"))) : y);
}

bool expand_nhwc_max_pool(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  Value* x = q.transpose(q.in("x"), to_channels_first(n.rank("x")));
  Value* y = q("MaxPool", {x}, copied(n, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"}));
  return q.done(q.transpose(y, to_channels_last(n.rank("x"))));
}

template <FixedText Op>
bool expand_standard(const NodeView& n, OnnxEdit& edit) {
  QuantEdit q(n, edit);
  return q.done(q(Op.value, edit.node().inputs(), copied(n, {"axis"})));
}

constexpr OnnxOp contrib(Signature sig, ExpandFn expand, std::string_view note = {}) {
  return {.sig = sig, .since = 1, .note = note, .expand = expand};
}

constexpr OnnxOp kMsQuantOnnx[] = {
    contrib("com.microsoft::QLinearAdd(T A, tensor(float) A_scale, T? A_zero_point, T B, tensor(float) B_scale, "
            "T? B_zero_point, tensor(float) C_scale, T? C_zero_point) -> T C",
            expand_add),
    contrib("com.microsoft::QLinearMul(T A, tensor(float) A_scale, T? A_zero_point, T B, tensor(float) B_scale, "
            "T? B_zero_point, tensor(float) C_scale, T? C_zero_point) -> T C",
            expand_mul),
    contrib("com.microsoft::QLinearSigmoid(T X, tensor(float) X_scale, T? X_zero_point, tensor(float) Y_scale, "
            "T? Y_zero_point) -> T Y",
            expand_activation<"Sigmoid">),
    contrib("com.microsoft::QLinearLeakyRelu(T X, tensor(float) X_scale, T? X_zero_point, tensor(float) Y_scale, "
            "T? Y_zero_point, *, float alpha=0.01) -> T Y",
            expand_activation<"LeakyRelu">),
    contrib("com.microsoft::QLinearSoftmax(T X, tensor(float) X_scale, T? x_zero_point, tensor(float) y_scale, "
            "T y_zero_point, *, int axis=-1, int opset) -> T Y",
            expand_softmax),
    contrib("com.microsoft::QLinearAveragePool(T X, tensor(float) x_scale, T? x_zero_point, tensor(float) y_scale, "
            "T? y_zero_point, *, str auto_pad=\"NOTSET\", int ceil_mode=0, int channels_last=0, "
            "int count_include_pad=0, ints kernel_shape, ints? pads, ints? strides) -> T Y",
            expand_average_pool),
    contrib(
        "com.microsoft::QLinearGlobalAveragePool(T X, tensor(float) x_scale, T x_zero_point, tensor(float) y_scale, "
        "T y_zero_point, *, int channels_last=0) -> T Y",
        expand_global_average_pool),
    contrib("com.microsoft::QLinearReduceMean(T data, tensor(float) data_scale, T? data_zero_point, "
            "tensor(float) reduced_scale, T? reduced_zero_point, *, ints axes, int keepdims) -> T reduced",
            expand_reduce_mean),
    contrib("com.microsoft::QLinearConcat(TF Y_scale, T8 Y_zero_point, TV... inputs, *, int axis) -> T8 Y",
            expand_concat),
    contrib(
        "com.microsoft::QLinearWhere(B condition, T X, TF x_scale, T x_zero_point, T Y, TF y_scale, T y_zero_point, "
        "TF z_scale, T z_zero_point) -> T Z",
        expand_where),
    contrib("com.microsoft::QLinearConv(T1 x, tensor(float) x_scale, T1 x_zero_point, T2 w, tensor(float) w_scale, "
            "T2 w_zero_point, tensor(float) y_scale, T3 y_zero_point, T4? B, *, str auto_pad=\"NOTSET\", "
            "int channels_last=0, ints? dilations, int group=1, ints? kernel_shape, ints? pads, ints? strides) -> T3 y",
            expand_conv),
    contrib("com.microsoft::NhwcMaxPool(T x, *, str auto_pad=\"NOTSET\", int ceil_mode=0, ints? dilations, "
            "ints kernel_shape, ints? pads, ints? strides) -> T y",
            expand_nhwc_max_pool),
    contrib("com.microsoft::QuantizeLinear(T1 x, T1 y_scale, T2? y_zero_point, *, int? axis) -> T2 y",
            expand_standard<"QuantizeLinear">),
    contrib("com.microsoft::DequantizeLinear(T1 x, T2 x_scale, T1? x_zero_point, *, int? axis) -> T2 y",
            expand_standard<"DequantizeLinear">),
};

}  // namespace

extern const OpFamily kMsQuantOps;
constinit const OpFamily kMsQuantOps{"ms_quant", kMsQuantOnnx, {}};

}  // namespace tonnx
