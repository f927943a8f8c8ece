// rows.h - what the rows of this family name, and other families share with it.
#pragma once
#include <optional>

#include "ops/frame/emission.h"
#include "ops/frame/eval.h"

namespace tonnx {

// Evaluations; each gives {} for a form or a type that it does not evaluate

Results eval_quantize(const NodeView& n);
Results eval_dequantize(const NodeView& n);
Results eval_dynamic_quantize(const NodeView& n);

// Modules of generated code with weights of 8 bits

std::optional<ModuleSpec> module_quant_linear(const Emission& e);
std::optional<ModuleSpec> module_quant_conv(const Emission& e);

}  // namespace tonnx
