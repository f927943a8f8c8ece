// safetensors.h - weights in the safetensors format: read where they lie, written from file to file where they are
// mapped.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "formats/state_tensor.h"

namespace tonnx {

/// The tensors in the order of their data, each a part of the bytes. Throws BadFile where the header is none, or where
/// tensors overlap, leave gaps or lie outside, and Unsupported for a type that is not known.
std::vector<StateTensor> read_safetensors(const Bytes& bytes, std::string_view what);

/// Writes the tensors in their order. `progress`, where given, is told the bytes written and their total.
void write_safetensors(OutputFile& file, const std::vector<StateTensor>& state,
                       const std::function<void(uint64_t, uint64_t)>& progress = nullptr);

}  // namespace tonnx
