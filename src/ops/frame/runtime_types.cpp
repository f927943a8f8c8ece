// runtime_types.cpp - which element types the CPU kernels of ONNX Runtime and older opsets lack.
#include "ops/frame/runtime_types.h"

#include <algorithm>
#include <unordered_map>

#include "ir/graph.h"

namespace tonnx {
namespace {

constexpr DTypeSet kWide = dtype_set(DType::Int32, DType::Int64);
constexpr DTypeSet kNumbers = kAllInts;
constexpr DTypeSet kClipped = kWide | dtype_set(DType::Int8, DType::UInt8, DType::UInt32, DType::UInt64);
constexpr DTypeSet kBytes = kWide | dtype_set(DType::Int8, DType::UInt8);
constexpr DTypeSet kFlags = dtype_set(DType::Bool);

struct KernelRow {
  std::string_view op;
  DTypeSet types;  // of integers and bool; floats are never changed
  size_t first_input = 0;
  bool gives_same = true;
};

constexpr KernelRow kRows[] = {
    {"Abs", kNumbers},
    {"Add", kNumbers},
    {"ArgMax", kBytes, 0, false},
    {"ArgMin", kBytes, 0, false},
    {"Clip", kClipped},
    {"CumSum", kWide},
    {"CumProd", kWide},
    {"Div", kNumbers},
    {"Einsum", kWide},
    {"Equal", kNumbers | kFlags, 0, false},
    {"Greater", kNumbers, 0, false},
    {"GreaterOrEqual", kNumbers, 0, false},
    {"Less", kNumbers, 0, false},
    {"LessOrEqual", kNumbers, 0, false},
    {"MatMul", kWide},
    {"Max", kClipped},
    {"Min", kClipped},
    {"Mod", kNumbers},
    {"Mul", kNumbers},
    {"Neg", kSignedInts},
    {"NonZero", kWide | kFlags | dtype_set(DType::UInt8), 0, false},
    {"Pad", kClipped | kFlags},
    {"Pow", kWide},
    {"Range", kWide | dtype_set(DType::Int16)},
    {"ReduceMax", kBytes | kFlags},
    {"ReduceMin", kBytes | kFlags},
    {"ReduceL1", kWide},
    {"ReduceProd", kWide},
    {"ReduceSum", kWide},
    {"ReduceSumSquare", kWide},
    {"Sign", kNumbers},
    {"Sub", kNumbers},
    {"TopK", kBytes | dtype_set(DType::Int16)},
    {"Trilu", kWide | kFlags},
    {"Where", kWide | dtype_set(DType::Int8, DType::UInt8, DType::UInt32), 1},
};

const KernelRow* find_row(std::string_view op) {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const KernelRow*> result;
    for (const KernelRow& row : kRows) result.emplace(row.op, &row);
    return result;
  }();
  const auto at = rows.find(op);
  return at == rows.end() ? nullptr : at->second;
}

/// What the operator takes at the target opset: each later version added types.
bool takes(const OnnxOp& op, DType dtype, int64_t target_opset) {
  return std::none_of(op.history.begin(), op.history.end(),
                      [&](const OpsetStep& step) { return step.to > target_opset && contains(step.adds, dtype); });
}

}  // namespace

std::optional<KernelType> find_kernel_type(std::string_view op, const std::vector<Value*>& inputs,
                                           int64_t target_opset) {
  const KernelRow* row = find_row(op);
  if (row == nullptr || row->first_input >= inputs.size() || inputs[row->first_input] == nullptr) return std::nullopt;
  const DType dtype = inputs[row->first_input]->type.dtype;
  if (!is_integer(dtype) && dtype != DType::Bool) return std::nullopt;
  const OnnxOpEntry* entry = find_onnx_op("", op);
  const auto fits = [&](DType type) { return contains(row->types, type) && takes(*entry->op, type, target_opset); };
  if (fits(dtype)) return std::nullopt;
  // the bits of uint64 in int64 are exact for what only moves, adds or multiplies
  for (const DType wide : {DType::UInt8, DType::Int32, DType::Int64}) {
    const bool holds = dtype == DType::Bool || info(wide).bits > info(dtype).bits || dtype == DType::UInt64;
    if (wide != dtype && holds && fits(wide)) return KernelType{dtype, wide, row->first_input, row->gives_same};
  }
  return std::nullopt;
}

}  // namespace tonnx
