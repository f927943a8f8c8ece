// quant_matmul.cpp - com.microsoft: products with quantised matrices, and tables of them, whose weights stay packed.
#include "base/error.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/size_node.h"
#include "ops/matmul/matmul.h"

namespace tonnx {
namespace {

Value* cast_to(OnnxEdit& edit, Value* x, DType dtype) {
  return edit.before("Cast", {x}, {{"to", static_cast<int64_t>(dtype)}});
}

Value* input_of(const NodeView& n, OnnxEdit& edit, std::string_view name) {
  return edit.node().input(static_cast<size_t>(n.entry().signature.find_input(name)));
}

/// The integer product, scaled, with the bias added.
Value* scaled_product(OnnxEdit& edit, const std::vector<Value*>& operands, Value* a_scale, Value* b_scale, Value* bias,
                      DType dtype) {
  Value* product = cast_to(edit, edit.before("MatMulInteger", operands), dtype);
  Value* y = edit.before("Mul", {product, edit.before("Mul", {a_scale, b_scale})});
  return bias ? edit.before("Add", {y, bias}) : y;
}

bool expand_mat_mul_integer_to_float(const NodeView& n, OnnxEdit& edit) {
  const auto in = [&](std::string_view name) { return input_of(n, edit, name); };
  const DType dtype = n.dtype("a_scale") == DType::Undefined ? DType::Float32 : n.dtype("a_scale");
  return edit.replace_with({scaled_product(edit, {in("A"), in("B"), in("a_zero_point"), in("b_zero_point")},
                                           in("a_scale"), in("b_scale"), in("bias"), dtype)});
}

bool expand_dynamic_quantize_mat_mul(const NodeView& n, OnnxEdit& edit) {
  const auto in = [&](std::string_view name) { return input_of(n, edit, name); };
  const std::vector<Value*> a = edit.node_before("DynamicQuantizeLinear", {in("A")}, {}, 3)->outputs();
  return edit.replace_with({scaled_product(edit, {a[0], in("B"), a[2], in("b_zero_point")}, a[1], in("b_scale"),
                                           in("bias"), DType::Float32)});
}

/// Products of 16 bits are exact in float64; their sum may wrap around.
bool expand_mat_mul_integer_16(const NodeView& n, OnnxEdit& edit) {
  Value* a = cast_to(edit, input_of(n, edit, "A"), DType::Float64);
  Value* b = cast_to(edit, input_of(n, edit, "B"), DType::Float64);
  Value* y = cast_to(edit, edit.before("MatMul", {a, b}), DType::Int64);
  return edit.replace_with({cast_to(edit, y, DType::Int32)});
}

/// A matrix with its two dimensions swapped; a constant of bytes is turned now, so that its sums stay known.
Value* transposed_matrix(OnnxEdit& edit, Value* matrix) {
  const TensorPtr& constant = matrix->constant;
  if (!constant || info(constant->dtype).bits != 8 || constant->dims.size() != 2) {
    return edit.before("Transpose", {matrix}, {{"perm", std::vector<int64_t>{1, 0}}});
  }
  const auto rows = static_cast<size_t>(constant->dims[0]), columns = static_cast<size_t>(constant->dims[1]);
  std::vector<uint8_t> bytes(rows * columns);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) bytes[c * rows + r] = constant->data.data()[r * columns + c];
  }
  auto result = std::make_shared<Tensor>();
  result->dtype = constant->dtype;
  result->dims = {constant->dims[1], constant->dims[0]};
  result->data = Bytes::own(std::move(bytes));
  return edit.graph().add_initializer(matrix->name, std::move(result));
}

bool expand_q_gemm(const NodeView& n, OnnxEdit& edit) {
  const auto in = [&](std::string_view name) { return input_of(n, edit, name); };
  Value* a = n.flag("transA") ? transposed_matrix(edit, in("A")) : in("A");
  Value* b = n.flag("transB") ? transposed_matrix(edit, in("B")) : in("B");
  Value* y = edit.before("MatMulInteger", {a, b, in("a_zero_point"), in("b_zero_point")});
  if (in("C") != nullptr) y = edit.before("Add", {y, in("C")});
  Value* scale = edit.before("Mul", {in("a_scale"), in("b_scale")});
  if (const double alpha = n.f("alpha"); alpha != 1.0) {
    scale = edit.before("Mul", {scale, edit.constant(make_scalar(DType::Float32, alpha), "alpha")});
  }
  if (in("y_scale") != nullptr) scale = edit.before("Div", {scale, in("y_scale")});
  y = edit.before("Mul", {cast_to(edit, y, DType::Float32), scale});
  if (in("y_scale") == nullptr) return edit.replace_with({y});
  Value* one = edit.constant(make_scalar(DType::Float32, 1), "one");
  if (in("y_zero_point") != nullptr)
    return edit.replace_with({edit.before("QuantizeLinear", {y, one, in("y_zero_point")})});
  return edit.replace_with(
      {edit.before("QuantizeLinear", {y, one}, {{"output_dtype", static_cast<int64_t>(n.dtype("A"))}})});
}

int64_t bits_of_weights(const NodeView& n) {
  const int64_t bits = n.i("bits");
  if (bits != 2 && bits != 4 && bits != 8) fail_unsupported("weights of {} bits", bits);
  return bits;
}

int64_t block_size_of(const NodeView& n) {
  const int64_t size = n.i("block_size");
  require(size >= 16 && size <= (int64_t{1} << 20) && (size & (size - 1)) == 0, "block_size is {}", size);
  return size;
}

/// Numbers packed into bytes, the lowest bits first, side by side in the last dimension.
Value* unpacked_bits(AtenBuilder& aten, Value* bytes, int64_t bits) {
  if (bits == 8) return bytes;
  std::vector<Value*> parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    Value* part = shift == 0 ? bytes : aten("bitwise_right_shift.Tensor_Scalar", bytes, shift);
    parts.push_back(shift + bits == 8 ? part : aten("bitwise_and.Scalar", part, (int64_t{1} << bits) - 1));
  }
  return aten("flatten.using_ints", aten("stack", parts, -1), -2, -1);
}

struct BlockCounts {
  int64_t k, n, block, blocks;
};

BlockCounts block_counts(const NodeView& n) {
  const int64_t k = n.i("K"), rows = n.i("N"), block = block_size_of(n);
  require(k >= 1 && k <= (int64_t{1} << 31) && rows >= 1 && rows <= (int64_t{1} << 31), "K is {} and N is {}", k, rows);
  return {k, rows, block, (k + block - 1) / block};
}

void infer_mat_mul_n_bits(InferNode& n) {
  const BlockCounts counts = block_counts(n);
  const Shape* a = n.find_shape("A");
  if (a == nullptr) return n.set(0, n.dtype("A"), std::nullopt);
  require(!a->empty(), "a matrix product of a scalar");
  require(!a->back().is_constant() || a->back().is(counts.k), "the input has {} columns where K is {}",
          a->back().text(), counts.k);
  Shape shape = *a;
  shape.back() = counts.n;
  n.set(0, n.dtype("A"), std::move(shape));
}

/// A constant, or a value, with other sizes for its elements.
Value* resized(AtenBuilder& aten, Value* x, std::vector<int64_t> dims) {
  if (!x->constant) return aten("reshape", x, dims);
  require(x->constant->count() == count_of(dims), "a weight has {} elements where {} are needed", x->constant->count(),
          count_of(dims));
  return aten.reshaped(x, std::move(dims));
}

Values lower_mat_mul_n_bits(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t bits = bits_of_weights(n);
  const BlockCounts counts = block_counts(n);
  n.i("accuracy_level");  // how little is allowed; more does no harm
  if (n.i("weight_prepacked") != 0) fail_unsupported("the weights are packed for one kind of GPU");
  if (n.has("g_idx")) fail_unsupported("input 'g_idx' is not supported");
  const DType dtype = n.dtype("A");
  Value* bytes = resized(aten, n.input("B"), {counts.n, counts.blocks, counts.block * bits / 8});
  Value* w = aten("to.dtype", unpacked_bits(aten, bytes, bits), dtype);
  if (!n.has("zero_points")) {
    w = aten("sub.Scalar", w, int64_t{1} << (bits - 1));
  } else if (is_float(n.dtype("zero_points"))) {
    w = aten("sub.Tensor", w, resized(aten, n.input("zero_points"), {counts.n, counts.blocks, 1}));
  } else {
    const int64_t row = (counts.blocks * bits + 7) / 8;
    Value* zeros = unpacked_bits(aten, resized(aten, n.input("zero_points"), {counts.n, row}), bits);
    if (row * 8 / bits != counts.blocks) zeros = aten("narrow", zeros, 1, 0, counts.blocks);
    w = aten("sub.Tensor", w, aten("unsqueeze", zeros, 2));
  }
  w = aten("mul.Tensor", w, resized(aten, n.input("scales"), {counts.n, counts.blocks, 1}));
  w = aten("flatten.using_ints", w, 1, -1);
  if (counts.blocks * counts.block != counts.k) w = aten("narrow", w, 1, 0, counts.k);
  return aten("linear", n.input("A"), w, n.find_input("bias"));
}

void infer_gather_block_quantized(InferNode& n) {
  const Shape* data = n.find_shape("data");
  const Shape* indices = n.find_shape("indices");
  const DType dtype = n.dtype("scales");
  if (data == nullptr || indices == nullptr) return n.set(0, dtype, std::nullopt);
  Shape rows = *data;
  require(!rows.empty(), "the data has no dimensions");
  if (n.dtype("data") == DType::UInt8) rows.back() = rows.back() * Dim(8 / bits_of_weights(n));
  const auto axis = static_cast<std::ptrdiff_t>(n.axis("gather_axis", "data"));
  Shape shape(rows.begin(), rows.begin() + axis);
  shape.insert(shape.end(), indices->begin(), indices->end());
  shape.insert(shape.end(), rows.begin() + axis + 1, rows.end());
  n.set(0, dtype, std::move(shape));
}

/// Types of 4 bits of the standard are gathered, and what is gathered is dequantised.
bool expand_gather_block_quantized(const NodeView& n, OnnxEdit& edit) {
  if (n.dtype("data") == DType::UInt8) return false;
  const int64_t gather = n.axis("gather_axis", "data"), quantize = n.axis("quantize_axis", "data");
  require(gather != quantize, "data is gathered along the axis {} that has the blocks", gather);
  const auto picked = [&](std::string_view name) -> Value* {
    Value* from = input_of(n, edit, name);
    return from ? edit.before("Gather", {from, input_of(n, edit, "indices")}, {{"axis", gather}}) : nullptr;
  };
  const int64_t axis = quantize < gather ? quantize : quantize + n.rank("indices") - 1;
  return edit.replace_with({edit.before("DequantizeLinear", {picked("data"), picked("scales"), picked("zero_points")},
                                        {{"axis", axis}, {"block_size", block_size_of(n)}})});
}

Values lower_gather_block_quantized(const OnnxNode& n, AtenBuilder& aten) {
  const int64_t bits = bits_of_weights(n), block = block_size_of(n);
  const int64_t rank = n.rank("data");
  require(n.axis("gather_axis", "data") == 0, "bytes are gathered along the first axis only");
  if (n.axis("quantize_axis", "data") != rank - 1) fail_unsupported("blocks along another axis than the last");
  Value* indices = n.input("indices");
  const auto picked = [&](std::string_view name) {
    return aten("index.Tensor", n.input(name), std::vector<Value*>{indices});
  };
  const Dim& row = n.find_shape("data")->back();
  const Dim count = row * Dim(8 / bits);
  const Dim blocks = n.find_shape("scales") ? n.find_shape("scales")->back() : n.find_shape("data")->back();
  const bool is_even = blocks * Dim(block) == count;
  const auto spread = [&](Value* x) {
    Value* all = aten("repeat_interleave.self_int", x, block, -1);
    return is_even ? all : aten("narrow", all, -1, 0, n.int_arg(count));
  };
  Value* q = aten("to.dtype", unpacked_bits(aten, picked("data"), bits), n.dtype("scales"));
  if (!n.has("zero_points")) {
    q = aten("sub.Scalar", q, int64_t{1} << (bits - 1));
  } else {
    Value* zeros = unpacked_bits(aten, picked("zero_points"), bits);
    const Shape* packed = n.find_shape("zero_points");
    if (packed == nullptr) fail_unsupported("the shape of 'zero_points' is not known");
    if (!(packed->back() * Dim(8 / bits) == blocks)) zeros = aten("narrow", zeros, -1, 0, n.int_arg(blocks));
    q = aten("sub.Tensor", q, spread(zeros));
  }
  return aten("mul.Tensor", q, spread(picked("scales")));
}

/// The columns of the first input are as many as the attribute says.
void sizes_of_n_bits(SizeNode& n) {
  const Dim depth(int_of(n.node(), "K").value_or(0));
  n.equal(n.size(0, -1), &depth);
}

constexpr OnnxOp kMsQuantMatMulOnnx[] = {
    {.sig = "com.microsoft::MatMulIntegerToFloat(T1 A, T2 B, T3 a_scale, T3 b_scale, T1? a_zero_point, "
            "T2? b_zero_point, T3? bias) -> T3 Y",
     .since = 1,
     .traits = kSumsProducts,
     .sizes = sizes_of_product<1>,
     .expand = expand_mat_mul_integer_to_float},
    {.sig = "com.microsoft::DynamicQuantizeMatMul(T1 A, T2 B, T1 b_scale, T2? b_zero_point, T1? bias) -> T1 Y",
     .since = 1,
     .traits = kSumsProducts,
     .sizes = sizes_of_product<1>,
     .expand = expand_dynamic_quantize_mat_mul},
    {.sig = "com.microsoft::MatMulInteger16(T1 A, T2 B) -> T3 Y",
     .since = 1,
     .sizes = sizes_of_product<1>,
     .expand = expand_mat_mul_integer_16},
    {.sig = "com.microsoft::QGemm(TA A, T a_scale, TA a_zero_point, TB B, T b_scale, TB b_zero_point, TC? C, "
            "T? y_scale, TYZ? y_zero_point, *, float alpha=1.0, int transA=0, int transB=0) -> TY Y",
     .since = 1,
     .traits = kSumsProducts,
     .sizes = sizes_of_gemm<3>,
     .expand = expand_q_gemm},
    {.sig = "com.microsoft::MatMulNBits(T1 A, T2 B, T1 scales, T3? zero_points, T4? g_idx, T1? bias, *, int K, int N, "
            "int accuracy_level=0, int bits=4, int block_size, int weight_prepacked=0) -> T1 Y",
     .since = 1,
     .traits = kSumsProducts,
     .infer = infer_mat_mul_n_bits,
     .sizes = sizes_of_n_bits,
     .lower = lower_mat_mul_n_bits,
     .note = "weights of 2, 4 or 8 bits; no g_idx"},
    {.sig = "com.microsoft::GatherBlockQuantized(T1 data, Tind indices, T2 scales, T1? zero_points, *, int bits=4, "
            "int block_size=128, int gather_axis=0, int quantize_axis=1) -> T2 output",
     .since = 1,
     .infer = infer_gather_block_quantized,
     .lower = lower_gather_block_quantized,
     .expand = expand_gather_block_quantized},
};

}  // namespace

extern const OpFamily kMsQuantMatMulOps;
constinit const OpFamily kMsQuantMatMulOps{"ms_quant_matmul", kMsQuantMatMulOnnx, {}};

}  // namespace tonnx
