// size.cpp - sizes and integers in aten graphs: sym_size, arithmetic on integers, and lists read from tensors.
#include "ops/frame/emission.h"
#include "ops/frame/op_def.h"
#include "ops/shape/rows.h"
#include "ops/shape/script.h"

namespace tonnx {
namespace {

std::string device_of(const Emission& e) { return e.device().empty() ? "" : ", device=" + e.device(); }

std::string dtype_of(const Emission& e) {
  const auto* dtype = e.constant("dtype")->get<DType>();
  return dtype && *dtype != DType::Int64 ? ", dtype=" + python_dtype(*dtype) : "";
}

std::string emit_int_tensor(const Emission& e) {
  return "torch.tensor([" + joined(e.items("values")) + "]" + dtype_of(e) + device_of(e) + ")";
}

std::string emit_int_scalar(const Emission& e) {
  return "torch.tensor(" + e.text("value") + dtype_of(e) + device_of(e) + ")";
}

/// `x.dtype`
std::string emit_dtype_of(const Emission& e) { return e.text("self", precedence::kAtom) + ".dtype"; }

/// `torch.finfo(x.dtype).min`
std::string emit_finfo_min(const Emission& e) {
  return "torch.finfo(" + e.text("self", precedence::kAtom) + ".dtype).min";
}

std::string emit_list_item(const Emission& e) {
  return e.text("list", precedence::kAtom) + "[" + e.text("index") + "]";
}

/// All sizes of a tensor whose rank is not known; it may have none, and an empty list would become a tensor of floats.
std::string emit_shape(const Emission& e) {
  std::string shape = e.text("self", precedence::kAtom) + ".shape";
  if (e.has("start") || e.has("end")) {
    shape += fmt::format("[{}:{}]", e.has("start") ? e.text("start") : "", e.has("end") ? e.text("end") : "");
  }
  return "torch.tensor(" + shape + ", dtype=torch.int64" + device_of(e) + ")";
}

/// The sizes of `self` in place of the zeros of a list.
std::string emit_copied_zeros(const Emission& e) {
  return fmt::format("[n or {}.size(i) for i, n in enumerate({})]", e.text("self", precedence::kAtom), e.text("list"));
}

std::string emit_broadcast_shapes(const Emission& e) {
  return fmt::format("torch.broadcast_shapes({}.shape, {})", e.text("self", precedence::kAtom), e.text("shape"));
}

std::string emit_axes(const Emission& e) {
  const std::string rank = e.text("self", precedence::kAtom) + ".dim()";
  return fmt::format("list(range({}{}))", e.has("start") ? e.text("start") + ", " : "", rank);
}

std::string emit_reversed_axes(const Emission& e) {
  return fmt::format("list(range({}.dim()))[::-1]", e.text("self", precedence::kAtom));
}

std::string emit_max(const Emission& e) { return "torch.sym_max(" + e.text("a") + ", " + e.text("b") + ")"; }
std::string emit_min(const Emission& e) { return "torch.sym_min(" + e.text("a") + ", " + e.text("b") + ")"; }

constexpr AtenOp kSizeAten[] = {
    {.sig = "aten::sym_size.int(Tensor self, int dim) -> SymInt",
     .types = types_size,
     .python = ".size",
     .script = script_renamed<"size">,
     .raise = raise_sym_size},
    {.sig = "aten::dim(Tensor self) -> int", .types = types_dim, .python = ".dim"},
    {.sig = "_operator::add(SymInt a, SymInt b) -> SymInt",
     .types = types_sum_of_numbers,
     .python = "+",
     .raise = raise_number<"Add">},
    {.sig = "_operator::sub(SymInt a, SymInt b) -> SymInt",
     .types = types_difference,
     .python = "-",
     .raise = raise_number<"Sub">},
    {.sig = "_operator::mul(SymInt a, SymInt b) -> SymInt",
     .types = types_product,
     .python = "*",
     .raise = raise_number<"Mul">},
    {.sig = "_operator::floordiv(SymInt a, SymInt b) -> SymInt",
     .types = types_quotient,
     .python = "//",
     .raise = raise_number_floor_div},
    {.sig = "_operator::neg(SymInt a) -> SymInt", .types = types_negative, .python = "-", .raise = raise_number_neg},
    {.sig = "_operator::mod(SymInt a, SymInt b) -> SymInt",
     .types = types_rest,
     .python = "%",
     .raise = raise_number_mod},
    {.sig = "_operator::add.float(Scalar a, Scalar b) -> float", .python = "+"},
    {.sig = "_operator::sub.float(Scalar a, Scalar b) -> float", .python = "-"},
    {.sig = "_operator::mul.float(Scalar a, Scalar b) -> float", .python = "*"},
    {.sig = "_operator::truediv(Scalar a, Scalar b) -> float", .python = "/", .raise = raise_number_true_div},
    {.sig = "math::floor(float a) -> SymInt",
     .python = "math.floor",
     .script = script_function<"torch.floor">,
     .raise = raise_integer<"Floor">},
    {.sig = "math::ceil(float a) -> SymInt",
     .python = "math.ceil",
     .script = script_function<"torch.ceil">,
     .raise = raise_integer<"Ceil">},
    {.sig = "torch::sym_max.float(float a, float b) -> float",
     .emit = emit_max,
     .script = script_function<"ops.prim.max">},
    {.sig = "torch::sym_min.float(float a, float b) -> float",
     .emit = emit_min,
     .script = script_function<"ops.prim.min">},
    {.sig = "torch::sym_max(SymInt a, SymInt b) -> SymInt",
     .types = types_larger,
     .emit = emit_max,
     .script = script_function<"ops.prim.max">,
     .raise = raise_number<"Max">},
    {.sig = "torch::sym_min(SymInt a, SymInt b) -> SymInt",
     .types = types_smaller,
     .emit = emit_min,
     .script = script_function<"ops.prim.min">,
     .raise = raise_number<"Min">},
    {.sig = "tonnx::int_tensor(SymInt[] values, *, ScalarType dtype) -> Tensor",
     .emit = emit_int_tensor,
     .script = script_int_tensor},
    {.sig = "tonnx::int_scalar(SymInt value, *, ScalarType dtype) -> Tensor",
     .emit = emit_int_scalar,
     .script = script_int_scalar},
    {.sig = "tonnx::dtype_of(Tensor self) -> ScalarType", .emit = emit_dtype_of},
    {.sig = "tonnx::finfo_min(Tensor self) -> float", .emit = emit_finfo_min},
    {.sig = "tonnx::tolist(Tensor self) -> int[]", .python = ".tolist", .script = script_tolist},
    {.sig = "tonnx::list_item(int[] list, int index) -> SymInt", .emit = emit_list_item, .script = script_list_item},
    {.sig = "tonnx::item(Tensor self) -> SymInt", .python = ".item", .script = script_item},
    {.sig = "tonnx::shape(Tensor self, int? start=None, int? end=None) -> Tensor",
     .emit = emit_shape,
     .script = script_shape},
    {.sig = "tonnx::copied_zeros(int[] list, Tensor self) -> int[]",
     .emit = emit_copied_zeros,
     .script = script_copied_zeros},
    {.sig = "tonnx::broadcast_shapes(Tensor self, int[] shape) -> int[]",
     .emit = emit_broadcast_shapes,
     .script = script_broadcast_shapes},
    {.sig = "tonnx::axes(Tensor self, int? start=None) -> int[]", .emit = emit_axes, .script = script_axes},
    {.sig = "tonnx::reversed_axes(Tensor self) -> int[]", .emit = emit_reversed_axes, .script = script_reversed_axes},
    {.sig = "aten::sym_numel(Tensor self) -> SymInt",
     .types = types_count,
     .python = ".numel",
     .script = script_renamed<"numel">,
     .raise = raise_sym_numel},
};

}  // namespace

extern const OpFamily kSizeOps;
constinit const OpFamily kSizeOps{"size", {}, kSizeAten};

}  // namespace tonnx
