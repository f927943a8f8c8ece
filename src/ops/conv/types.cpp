// types.cpp - types of what convolutions give.
#include "ops/conv/rows.h"

namespace tonnx {
namespace {

void convolve(TypeNode& n, bool turns) {
  const Type* input = n.tensor("input");
  const Shape* weight = n.shape("weight");
  if (input == nullptr) return;
  if (!input->shape || weight == nullptr || weight->size() < 3) return n.set(input->dtype, std::nullopt);
  const size_t spatial = weight->size() - 2, first = input->shape->size() - spatial;
  if (input->shape->size() < spatial + 1) return n.set(input->dtype, std::nullopt);
  Shape shape = *input->shape;
  const Shape stride = n.list("stride"), padding = n.list("padding"), dilation = n.list("dilation"),
              extra = turns ? n.list("output_padding") : Shape();
  const std::string mode = turns ? "" : n.args().string("padding");
  shape[first - 1] = turns ? (*weight)[1] * Dim(n.args().find_int("groups").value_or(1)) : (*weight)[0];
  for (size_t i = 0; i < spatial; ++i) {
    Dim& size = shape[first + i];
    const Dim reach = (size_at(dilation, i, 1) * ((*weight)[i + 2] - Dim(1)));
    const Dim s = size_at(stride, i, 1), p = size_at(padding, i, 0);
    if (turns) {
      size = (size - Dim(1)) * s - p * Dim(2) + reach + size_at(extra, i, 0) + Dim(1);
    } else if (mode != "same") {
      size = floor_div(size + (mode == "valid" ? Dim(0) : p * Dim(2)) - reach - Dim(1), s) + Dim(1);
    }
  }
  n.set(input->dtype, shape);
}

}  // namespace

void types_conv(TypeNode& n) { convolve(n, false); }
void types_conv_transpose(TypeNode& n) { convolve(n, true); }

}  // namespace tonnx
