// window.h - the geometry of sliding windows, which convolutions and pools share.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/frame/emission.h"
#include "ops/frame/onnx_to_aten.h"

namespace tonnx {

/// A window that slides over the spatial dimensions of a tensor [N, C, ...].
struct Window {
  Dims kernel;
  std::vector<int64_t> strides, dilations;
  Dims begin, end;            // pads
  Dims total;                 // begin + end, where they are halves of one number; empty where each is given
  bool larger_first = false;  // the larger half is in front
  bool ceil_mode = false;     // a last window that only starts inside counts too

  size_t rank() const { return strides.size(); }
  /// How many elements the window spans.
  Dim extent(size_t i) const { return (kernel[i] - 1) * Dim(dilations[i]) + 1; }
  /// How many windows there are; `in` is the size without pads.
  Dim count(size_t i, const Dim& in) const;
  bool is_dilated() const;
  bool is_padded() const;
  /// The pads, where they are numbers and the same on both sides.
  std::optional<std::vector<int64_t>> symmetric_pads() const;
  std::vector<int64_t> const_kernel() const;
};

/// The window that strides, dilations, pads and auto_pad of the node describe, over one of its inputs. Throws
/// Unsupported where that depends on a size that is not known.
Window window_of(const NodeView& n, Dims kernel, std::string_view input = "X");
/// Of an operator whose kernel_shape is an attribute.
Window window_of(const NodeView& n);

/// A list attribute with one number for each spatial dimension, each between `least` and a limit that no sum overflows.
std::vector<int64_t> spatial_ints(const NodeView& n, std::string_view name, size_t rank, int64_t otherwise,
                                  int64_t least);
/// An attribute of that type: a spatial number of the node that nobody can take for a size.
inline constexpr int64_t kLargestWindow = (int64_t{1} << 31) - 1;

/// The shape [N, channels, windows ...]; throws where X cannot have it.
Shape window_shape(const Shape& x, const Window& window, const Dim& channels);
/// The result, of the type of `x`, where no window fits into the input, which PyTorch refuses; null elsewhere.
Value* find_empty(const OnnxNode& n, AtenBuilder& aten, Value* x);

/// The pads of one dimension as arguments.
std::pair<IntArg, IntArg> pad_arguments(const OnnxNode& n, AtenBuilder& aten, const Window& window, size_t i);
/// F.pad over the spatial dimensions, one pair for each, where negative numbers crop; x itself where there is nothing
/// to do.
Value* pad_spatial(AtenBuilder& aten, Value* x, const std::vector<std::pair<IntArg, IntArg>>& pads,
                   std::optional<double> value = std::nullopt);
/// The same, with the pads of the window.
Value* pad_spatial(const OnnxNode& n, AtenBuilder& aten, Value* x, const Window& window,
                   std::optional<double> value = std::nullopt);

/// `F.max_pool2d(x, 3, stride=2)`: the first `positional` arguments by their place, the others by their name, and lists
/// of equal numbers as one number.
std::string spell_window_call(const Emission& e, size_t positional);
/// `, stride=2, padding=(1, 0)`: those of the arguments that are given.
std::string window_keywords(const Emission& e, std::initializer_list<std::string_view> names);

}  // namespace tonnx
