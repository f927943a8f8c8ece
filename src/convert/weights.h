// weights.h - files of weights alone: read, listed and converted.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/state_tensor.h"

namespace tonnx {

/// Whether the ending is that of weights alone: .pth or .safetensors.
bool is_weights_file(const std::string& path);

/// The tensors of a .pth or .safetensors file, by name. `part` says which dict of a checkpoint; `.` is all that there
/// is.
std::vector<StateTensor> read_weights(const std::string& path, const std::optional<std::string>& part = std::nullopt);

/// Names, types and shapes, one line each, and what else the file holds. Never refuses a file for what it asks for.
std::string print_weights(const std::string& path);

/// From one form to the other, under the same names.
void convert_weights(const std::string& source, const std::string& target, const std::optional<std::string>& part,
                     const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace tonnx
