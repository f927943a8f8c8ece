// safetensors.h - writes weights in the safetensors format, copied from file to file where they are mapped.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "formats/state_tensor.h"

namespace tonnx {

/// Writes the tensors in their order. `progress`, where given, is told the bytes written and their total.
void write_safetensors(OutputFile& file, const std::vector<StateTensor>& state,
                       const std::function<void(uint64_t, uint64_t)>& progress = nullptr);

}  // namespace tonnx
