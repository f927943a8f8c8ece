// create.h - how generated code spells operators that make a tensor from nothing.
#pragma once
#include <string>

namespace tonnx {

class Emission;

/// `torch.full([2, n], 0.0, dtype=torch.float32, device=x.device)`
std::string emit_factory(const Emission& e);

}  // namespace tonnx
