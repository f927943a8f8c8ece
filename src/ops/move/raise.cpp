// raise.cpp - what raisings that move elements around share.
#include <algorithm>
#include <numeric>

#include "base/budget.h"
#include "ops/move/rows.h"

namespace tonnx {
Shape onnx_shape(const Type& aten) {
  Shape shape = *aten.shape;
  if (aten.dtype == DType::Complex64 || aten.dtype == DType::Complex128) shape.emplace_back(2);
  return shape;
}

Value* in_kernel_dtype(OnnxBuilder& onnx, std::string_view op, std::vector<Value*> data,
                       const std::vector<Value*>& others, std::vector<Attribute> attributes) {
  const DType own = onnx.dtype(data[0]);
  const DType kernel = kernel_dtype(op, own);
  for (Value*& x : data) x = onnx.cast(x, kernel);
  data.insert(data.end(), others.begin(), others.end());
  return onnx.cast(onnx(op, data, std::move(attributes)), own);
}

Value* pick(OnnxBuilder& onnx, Value* condition, Value* a, Value* b) {
  const DType own = onnx.dtype(a);
  const DType kernel = kernel_dtype("Where", own);
  return onnx.cast(onnx.where(condition, onnx.cast(a, kernel), onnx.cast(b, kernel)), own);
}

Value* broadcast(OnnxBuilder& onnx, Value* x, const Shape& shape) {
  if (onnx.shape(x) == shape) return x;
  const DType own = onnx.dtype(x);
  return onnx.cast(onnx.expand(onnx.cast(x, kernel_dtype("Expand", own)), shape), own);
}

Value* broadcast(OnnxBuilder& onnx, Value* x, const IntArgs& sizes) {
  return in_kernel_dtype(onnx, "Expand", {x}, {onnx.list(sizes)});
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dim& dim = result[longer.size() - shorter.size() + i];
    // of two sizes that are not known to be 1, the number is the one that tells most
    if (dim.is(1) || (!dim.is_constant() && shorter[i].is_constant() && !shorter[i].is(1))) dim = shorter[i];
  }
  return result;
}

Value* at_least_1d(OnnxBuilder& onnx, Value* x) { return onnx.rank(x) == 0 ? onnx.unsqueeze(x, {0}) : x; }

Value* flat(OnnxBuilder& onnx, Value* x) { return onnx.rank(x) == 1 ? x : onnx.reshape(x, IntArgs{-1}); }

Value* range_on(OnnxBuilder& onnx, const IntArg& size, int64_t axis, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) axes.push_back(i);
  }
  if (size.value != nullptr) return onnx.unsqueeze(onnx.range(size), axes);
  require(size.number >= 0, "a size of {}", size.number);
  std::vector<int64_t> numbers(room_for<int64_t>({size.number})), dims(static_cast<size_t>(rank), 1);
  std::iota(numbers.begin(), numbers.end(), 0);
  dims.at(static_cast<size_t>(axis)) = size.number;
  auto tensor = std::make_shared<Tensor>(*make_ints(std::move(numbers)));
  tensor->dims = std::move(dims);
  return onnx.constant(std::move(tensor), "range");
}

std::vector<int64_t> moved_axis(int64_t rank, int64_t from, int64_t to) {
  Ints order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  order.erase_at(from);
  order.insert_at(to, from);
  return order;
}

std::vector<int64_t> inverted(const std::vector<int64_t>& order) {
  std::vector<int64_t> result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result.at(static_cast<size_t>(order[i])) = static_cast<int64_t>(i);
  return result;
}

Value* filled(OnnxBuilder& onnx, const IntArgs& sizes, DType dtype, double value) {
  return broadcast(onnx, onnx.number(dtype, value), sizes);
}

std::optional<int64_t> element_count(const Shape& shape) {
  int64_t count = 1;
  for (const Dim& dim : shape) {
    const auto size = dim.constant();
    if (!size || __builtin_mul_overflow(count, *size, &count)) return std::nullopt;
  }
  return count;
}

void require_opset(const AtenNode& n, const OnnxBuilder& onnx, int64_t since, const char* what) {
  if (onnx.target_opset() < since) n.cannot("{} needs opset {}", what, since);
}

}  // namespace tonnx
