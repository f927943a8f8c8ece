// registry.h - the operators of a registry, as conversions look for them.
#pragma once
#include "api/internal.h"
#include "convert/custom_ops.h"

namespace tonnx::v1 {

std::shared_ptr<const core::CustomOps> custom_of(const Registry& registry);

}  // namespace tonnx::v1
