// modules.h - modules of generated code with weights of 8 bits.
#pragma once
#include <optional>

#include "ops/frame/emission.h"

namespace tonnx {

std::optional<ModuleSpec> module_quant_linear(const Emission& e);
std::optional<ModuleSpec> module_quant_conv(const Emission& e);

}  // namespace tonnx
