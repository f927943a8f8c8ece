// identity_affine.h - whether the scale and the bias of a normalisation change nothing, and stand there because ONNX
// requires them.
#pragma once
#include <algorithm>

#include "ir/graph.h"
#include "ops/frame/python_names.h"

namespace tonnx {

/// `constant`, `group_norm_constant_2`: what tonnx calls numbers that it needs for an operator.
inline bool is_constant_name(std::string_view name) {
  while (!name.empty() && (name.back() == '_' || (name.back() >= '0' && name.back() <= '9'))) name.remove_suffix(1);
  return name == "constant" || name.ends_with("_constant");
}

/// Whether a weight, which may be absent, is a constant of this number that an exporter made: none that has the name of
/// a weight, which somebody may train.
inline bool is_placeholder(const Value* weight, double number) {
  if (weight == nullptr) return true;
  const bool is_named = weight->trainable && !python::is_made_up(weight->name) && !is_constant_name(weight->name);
  const auto elements = weight->constant && !is_named ? floats_of(*weight->constant) : std::nullopt;
  return elements && std::all_of(elements->begin(), elements->end(), [&](double each) { return each == number; });
}

/// The same of a scale and a bias.
inline bool is_identity_affine(const Value* scale, const Value* bias) {
  return is_placeholder(scale, 1) && is_placeholder(bias, 0);
}

}  // namespace tonnx
