// runtime_types.cpp - which element types the CPU kernels of ONNX Runtime and older opsets lack.
#include "ops/frame/runtime_types.h"

#include <algorithm>

#include "base/error.h"
#include "ir/graph.h"

namespace tonnx {
namespace {

/// What the operator takes at the target opset: each later version added types.
bool takes(const OnnxOp& op, DType dtype, int64_t target_opset) {
  return std::none_of(op.history.begin(), op.history.end(),
                      [&](const OpsetStep& step) { return step.to > target_opset && contains(step.adds, dtype); });
}

/// The narrowest type that the runtime has a kernel for and that holds all values; nothing where there is none. The
/// bits of uint64 in int64 are exact for what only moves, adds or multiplies.
template <class Fits>
std::optional<DType> find_wider(DType dtype, const Fits& fits) {
  for (const DType wide : {DType::UInt8, DType::Int32, DType::Int64}) {
    const bool holds =
        dtype == DType::Bool || info(wide).bits > info(dtype).bits || (dtype == DType::UInt64 && wide == DType::Int64);
    if (wide != dtype && holds && fits(wide)) return wide;
  }
  return std::nullopt;
}

}  // namespace

std::optional<KernelType> find_kernel_type(std::string_view op, const std::vector<Value*>& inputs,
                                           int64_t target_opset) {
  const OnnxOpEntry* entry = find_onnx_op("", op);
  if (entry == nullptr || entry->op->runtime.types == 0) return std::nullopt;
  const RuntimeTypes& runtime = entry->op->runtime;
  if (runtime.first_input >= inputs.size() || inputs[runtime.first_input] == nullptr) return std::nullopt;
  const DType dtype = inputs[runtime.first_input]->type.dtype;
  if (!is_integer(dtype) && dtype != DType::Bool) return std::nullopt;
  const auto fits = [&](DType type) { return contains(runtime.types, type) && takes(*entry->op, type, target_opset); };
  if (fits(dtype)) return std::nullopt;
  const auto wide = find_wider(dtype, fits);
  return wide ? std::optional(KernelType{dtype, *wide, runtime.first_input, runtime.gives_same}) : std::nullopt;
}

DType kernel_dtype(std::string_view op, DType dtype) {
  const OnnxOpEntry* entry = find_onnx_op("", op);
  ensure(entry != nullptr, "an operator that a kernel is asked for is in the tables");
  const DTypeSet types = entry->op->runtime.types;
  if (dtype == DType::BFloat16 && types != 0) return DType::Float32;
  if (types == 0 || (!is_integer(dtype) && dtype != DType::Bool) || contains(types, dtype)) return dtype;
  return find_wider(dtype, [&](DType type) { return contains(types, type); }).value_or(dtype);
}

}  // namespace tonnx
