// loss.h - how generated code spells losses.
#pragma once
#include <string>

namespace tonnx {

class Emission;

/// `F.mse_loss(x, target, reduction="sum")`: tensors that must be given come first, all others by their names.
std::string emit_reduced(const Emission& e);

}  // namespace tonnx
