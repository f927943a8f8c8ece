// types.cpp - types of what resizing gives.
#include "ops/resize/rows.h"

namespace tonnx {

void types_upsample(TypeNode& n) {
  const Type* input = n.first();
  if (input == nullptr) return;
  MaybeShape shape = input->shape;
  const auto sizes = n.args().signature().find_input("output_size") >= 0 && n.args().has("output_size")
                         ? n.sizes("output_size")
                         : std::nullopt;
  if (shape && sizes && sizes->size() <= shape->size()) {
    for (size_t i = 0; i < sizes->size(); ++i) (*shape)[shape->size() - sizes->size() + i] = (*sizes)[i];
  } else if (shape) {
    const Attribute* given = n.node().find_attribute("scale_factors");
    const auto* scales = given ? given->value.get<std::vector<double>>() : nullptr;
    for (size_t i = 2; i < shape->size(); ++i) {
      constexpr double kMost = 1e6;  // beyond it no size is one
      const double given_scale = scales && i - 2 < scales->size() ? (*scales)[i - 2] : 0;
      const double scale = given_scale <= kMost ? given_scale : 0;
      Dim& size = (*shape)[i];
      if (scale > 0 && size.is_constant()) {
        size = static_cast<int64_t>(static_cast<double>(*size.constant()) * scale);
      } else if (scale > 0 && scale == static_cast<double>(static_cast<int64_t>(scale))) {
        size = size * Dim(static_cast<int64_t>(scale));
      } else {
        size = n.fresh();
      }
    }
  }
  n.set(input->dtype, shape);
}

}  // namespace tonnx
