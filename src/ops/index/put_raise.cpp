// put_raise.cpp - writing of elements at places that masks and tensors of any shape say, as ONNX.
#include <algorithm>

#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/index/rows.h"
#include "ops/index/subscript.h"

namespace tonnx {
namespace {

std::vector<Attribute> reduction(const char* name) {
  return {{"reduction", std::string(name), AttrType::None, {}, {}}};
}

Value* added(OnnxBuilder& onnx, Value* a, Value* b) {
  return onnx(onnx.dtype(a) == DType::Bool ? "Or" : "Add", {a, b});
}

/// What is written; one element may have any number of dimensions.
Value* written_values(const AtenNode& n, OnnxBuilder& onnx) {
  Value* values = n.input_as("values", n.dtype("self"));
  const Shape& shape = onnx.shape(values);
  const bool is_one = std::all_of(shape.begin(), shape.end(), [](const Dim& size) { return size.is(1); });
  return is_one ? onnx.reshape(values, Shape{}) : values;
}

/// `values` where a mask is true, if they do not depend on how many places that are.
Value* put_where(const AtenNode& n, OnnxBuilder& onnx, const Subscript& at, Value* values, bool adds) {
  Value* self = n.input("self");
  const auto rank = static_cast<int64_t>(n.rank("self")), behind = rank - at.dims.back() - 1;
  // as counted from the end, the dimension of the places that are true
  const int64_t place = onnx.rank(values) - 1 - behind;
  if (place >= 0) {
    if (!onnx.shape(values)[static_cast<size_t>(place)].is(1)) return nullptr;
    if (at.mask_rank > 1) {
      Shape shape = onnx.shape(values);
      for (int64_t i = 1; i < at.mask_rank; ++i) shape.insert_at(place, Dim(1));
      values = onnx.reshape(values, shape);
    }
  }
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < behind; ++i) axes.push_back(at.mask_rank + i);
  Value* mask = onnx.unsqueeze(at.mask, axes);
  return pick(onnx, mask, adds ? added(onnx, self, values) : values, self);
}

Value* put(OnnxBuilder& onnx, const Subscript& at, Value* self, Value* values, bool adds) {
  const int64_t rank = onnx.rank(self);
  const std::vector<int64_t> order = at.order(rank);
  const auto inner = static_cast<int64_t>(at.shape.size()), place = static_cast<int64_t>(at.place());
  const auto indexed = static_cast<int64_t>(at.dims.size());
  // values are broadcast to what reading would give, then brought to the order in which ScatterND takes them
  Value* stacked = at.stacked(onnx);
  IntArgs sizes;
  for (int64_t i = 0; i < place; ++i) sizes.push_back(onnx.size(self, i));
  for (int64_t i = 0; i < inner; ++i) sizes.push_back(onnx.size(stacked, i));
  for (int64_t i = indexed + place; i < rank; ++i) sizes.push_back(onnx.size(self, order[static_cast<size_t>(i)]));
  Shape wanted;
  for (int64_t i = 0; i < place; ++i) wanted.push_back(onnx.shape(self)[static_cast<size_t>(i)]);
  for (int64_t i = 0; i < inner; ++i) wanted.push_back(onnx.shape(stacked)[static_cast<size_t>(i)]);
  for (int64_t i = indexed + place; i < rank; ++i)
    wanted.push_back(onnx.shape(self)[static_cast<size_t>(order[static_cast<size_t>(i)])]);
  if (onnx.shape(values) != wanted) values = broadcast(onnx, values, sizes);
  if (place > 0) {
    std::vector<int64_t> front;
    for (int64_t i = 0; i < inner; ++i) front.push_back(place + i);
    for (int64_t i = 0; i < place; ++i) front.push_back(i);
    for (int64_t i = place + inner; i < onnx.rank(values); ++i) front.push_back(i);
    values = onnx.transpose(values, front);
  }
  const DType own = onnx.dtype(self), dtype = adds ? scatter_dtype(own) : own;
  Value* data = onnx.cast(onnx.transpose(self, order), dtype);
  values = onnx.cast(values, dtype);
  Value* written = onnx("ScatterND", {data, stacked, values}, adds ? reduction("add") : std::vector<Attribute>{});
  return onnx.transpose(onnx.cast(written, own), inverted(order));
}

}  // namespace

Values raise_index_put(const AtenNode& n, OnnxBuilder& onnx) {
  const bool adds = n.flag("accumulate");
  Subscript at = read_subscript(n, onnx, true);
  Value* self = n.input("self");
  Value* values = written_values(n, onnx);
  if (at.dims.empty()) return adds ? added(onnx, self, values) : broadcast(onnx, values, n.output_shape());
  if (at.mask != nullptr) {
    if (Value* y = put_where(n, onnx, at, values, adds)) return y;
    at = read_subscript(n, onnx, false);
  }
  if (adds) require_opset(n, onnx, 16, "index_put that adds");
  return put(onnx, at, self, values, adds);
}

Values raise_masked_fill(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.dtype("self");
  return pick(onnx, n.input_as("mask", DType::Bool), n.input_as("value", dtype), n.input("self"));
}

/// The elements of `source` one after another, where the mask is true.
Values raise_masked_scatter(const AtenNode& n, OnnxBuilder& onnx) {
  Value* self = broadcast(onnx, n.input("self"), n.output_shape());
  Value* mask = broadcast(onnx, n.input_as("mask", DType::Bool), n.output_shape());
  Value* source = flat(onnx, n.input("source"));
  const bool is_scalar = onnx.rank(self) == 0;
  Value* places = onnx.transpose(true_places(onnx, at_least_1d(onnx, mask)), {1, 0});
  Value* used = onnx.slice(source, 0, 0, onnx.size(places, 0));
  Value* y = onnx("ScatterND", {at_least_1d(onnx, self), places, used});
  return is_scalar ? onnx.squeeze(y, {0}) : y;
}

namespace {

/// Adds where the mask is true; what it hides may be out of range.
Values raise_masked_index_put(const AtenNode& n, OnnxBuilder& onnx) {
  require_opset(n, onnx, 16, "_unsafe_masked_index_put_accumulate");
  Value* mask = n.input_as("mask", DType::Bool);
  const DType dtype = n.dtype("self");
  Value* values = pick(onnx, mask, n.input_as("values", dtype), onnx.number(dtype, 0));
  const CheckedList<Value*> given = n.inputs("indices");
  Subscript at;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] == nullptr) n.cannot("a masked index that leaves out a dimension");
    at.dims.push_back(static_cast<int64_t>(i));
    at.indices.push_back(onnx.where(mask, onnx.cast(given[i], DType::Int64), onnx.integer(DType::Int64, 0)));
    at.shape = broadcast_shape(at.shape, onnx.shape(at.indices.back()));
  }
  return put(onnx, at, n.input("self"), values, true);
}

constexpr AtenOp kAtenIndexPutAten[] = {
    {.sig = "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = ".masked_fill",
     .raise = raise_masked_fill,
     .raise_complex = raise_each_part},
    {.sig = "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
     .elementwise = Elementwise::Kept,
     .python = ".masked_fill",
     .raise = raise_masked_fill,
     .raise_complex = raise_each_part},
    {.sig = "aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> "
            "Tensor",
     .types = types_as_self,
     .python = "torch.ops.aten._unsafe_masked_index_put_accumulate",
     .raise = raise_masked_index_put},
};

}  // namespace

extern const OpFamily kAtenIndexPutOps;
constinit const OpFamily kAtenIndexPutOps{"aten_index_put", {}, kAtenIndexPutAten};

}  // namespace tonnx
