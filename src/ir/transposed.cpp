// transposed.cpp - swaps rows and columns in blocks.
#include "ir/transposed.h"

#include <algorithm>
#include <cstring>

namespace tonnx {
namespace {

constexpr size_t kBuffer = 8 << 20;

}  // namespace

void write_transposed(const Tensor& matrix, const std::function<void(std::string_view)>& sink) {
  const auto rows = static_cast<size_t>(matrix.dims[0]), columns = static_cast<size_t>(matrix.dims[1]);
  const auto step = static_cast<size_t>(info(matrix.dtype).bits / 8);
  if (rows == 0 || columns == 0) return;
  const size_t at_once = std::max<size_t>(1, std::min(columns, kBuffer / (rows * step)));
  std::string buffer(at_once * rows * step, '\0');
  const auto* data = reinterpret_cast<const char*>(matrix.data.data());
  for (size_t first = 0; first < columns; first += at_once) {
    const size_t count = std::min(at_once, columns - first);
    for (size_t r = 0; r < rows; ++r) {
      const char* source = data + (r * columns + first) * step;
      for (size_t c = 0; c < count; ++c) std::memcpy(buffer.data() + (c * rows + r) * step, source + c * step, step);
    }
    sink(std::string_view(buffer).substr(0, count * rows * step));
  }
}

}  // namespace tonnx
