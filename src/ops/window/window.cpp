// window.cpp - the geometry of sliding windows: pads, auto_pad and the number of windows.
#include "ops/window/window.h"

#include <algorithm>

#include "base/error.h"

namespace tonnx {

Dim Window::count(size_t i, const Dim& in) const {
  const Dim room = in + begin[i] + end[i] - extent(i);
  const Dim stride(strides[i]);
  if (!ceil_mode) return floor_div(room, stride) + 1;
  // A window that would start in the pads at the end does not count; with short pads there is none.
  const Dim whole = ceil_div(room, stride);
  if ((extent(i) - end[i] - stride).is_non_negative()) return whole + 1;
  return min(whole, ceil_div(in + begin[i], stride) - 1) + 1;
}

bool Window::is_dilated() const {
  return std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; });
}

bool Window::is_padded() const {
  const auto is_zero = [](const Dim& pad) { return pad.is(0); };
  return !std::all_of(begin.begin(), begin.end(), is_zero) || !std::all_of(end.begin(), end.end(), is_zero);
}

std::optional<std::vector<int64_t>> Window::symmetric_pads() const {
  std::vector<int64_t> pads;
  for (size_t i = 0; i < rank(); ++i) {
    if (!begin[i].is_constant() || !(begin[i] == end[i])) return std::nullopt;
    pads.push_back(*begin[i].constant());
  }
  return pads;
}

std::vector<int64_t> Window::const_kernel() const {
  std::vector<int64_t> result;
  for (const Dim& size : kernel) {
    if (!size.is_constant()) fail_unsupported("the size of the window is not known");
    result.push_back(*size.constant());
  }
  return result;
}

std::vector<int64_t> spatial_ints(const NodeView& n, std::string_view name, size_t rank, int64_t otherwise,
                                  int64_t least) {
  const auto given = n.find_ints(name);
  if (!given) return std::vector<int64_t>(rank, otherwise);
  require(given->size() == rank, "attribute '{}' has {} numbers where {} are needed", name, given->size(), rank);
  for (const int64_t i : *given) {
    require(i >= least && i <= kLargestWindow, "attribute '{}' has the number {}", name, i);
  }
  return *given;
}

Window window_of(const NodeView& n, Dims kernel, std::string_view input) {
  Window window;
  window.kernel = std::move(kernel);
  const size_t rank = window.kernel.size();
  window.strides = spatial_ints(n, "strides", rank, 1, 1);
  window.dilations = spatial_ints(n, "dilations", rank, 1, 1);
  const std::vector<int64_t> pads = spatial_ints(n, "pads", 2 * rank, 0, 0);
  const std::string auto_pad = n.s("auto_pad");
  const bool is_same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  require(is_same || auto_pad == "NOTSET" || auto_pad == "VALID", "auto_pad is '{}'", auto_pad);
  const Shape* x = n.find_shape(input);
  require(x == nullptr || x->size() == rank + 2, "the input has {} dimensions where the window asks for {}",
          x ? x->size() : 0, rank + 2);
  window.larger_first = auto_pad == "SAME_LOWER";
  for (size_t i = 0; i < rank; ++i) {
    Dim begin(auto_pad == "NOTSET" ? pads[i] : 0), end(auto_pad == "NOTSET" ? pads[rank + i] : 0);
    if (is_same) {
      // as many windows as strides begin inside: the last one starts (size - 1) % stride before the end
      const Dim stride(window.strides[i]);
      if (x == nullptr && !stride.is(1)) fail_unsupported("auto_pad needs the sizes of the input, which are not known");
      const Dim behind = stride.is(1) ? Dim(0) : mod((*x)[i + 2] - 1, stride);
      const Dim least = window.extent(i) - stride;  // `behind` is less than the stride
      const Dim total = least.is_non_negative() ? window.extent(i) - 1 - behind : max(window.extent(i) - 1 - behind, 0);
      const Dim half = floor_div(total, 2);
      begin = window.larger_first ? total - half : half;
      end = total - begin;
      window.total.push_back(total);
    }
    window.begin.push_back(begin);
    window.end.push_back(end);
  }
  return window;
}

Window window_of(const NodeView& n) {
  const std::vector<int64_t> kernel = n.ints("kernel_shape");
  require(!kernel.empty(), "kernel_shape is empty");
  for (const int64_t size : kernel)
    require(size >= 1 && size <= kLargestWindow, "kernel_shape has the number {}", size);
  Window window = window_of(n, Dims(kernel.begin(), kernel.end()));
  // auto_pad fixes the number of windows by itself
  window.ceil_mode = n.flag("ceil_mode") && n.s("auto_pad") == "NOTSET";
  return window;
}

Shape window_shape(const Shape& x, const Window& window, const Dim& channels) {
  Shape result{x[0], channels};
  for (size_t i = 0; i < window.rank(); ++i) {
    const Dim padded = x[i + 2] + window.begin[i] + window.end[i], room = padded - window.extent(i);
    // a window that lacks one stride fits no time; with other strides runtimes count once what the standard does not
    require(!room.is_constant() || *room.constant() >= 0 || room.is(-window.strides[i]) || window.ceil_mode,
            "a window of {} does not fit into a size of {}", window.extent(i).text(), padded.text());
    result.push_back(window.count(i, x[i + 2]));
  }
  return result;
}

Value* find_empty(const OnnxNode& n, AtenBuilder& aten, Value* x) {
  const auto& shape = n.output_type().shape;
  if (!shape || shape->size() < 2) return nullptr;
  if (std::none_of(shape->begin() + 2, shape->end(), [](const Dim& size) { return size.is(0); })) return nullptr;
  IntArgs sizes;
  for (const Dim& size : *shape) sizes.push_back(n.int_arg(size));
  return aten("new_zeros", x, sizes);
}

std::pair<IntArg, IntArg> pad_arguments(const OnnxNode& n, AtenBuilder& aten, const Window& window, size_t i) {
  if (window.total.empty() || window.total[i].is_constant())
    return {n.int_arg(window.begin[i]), n.int_arg(window.end[i])};
  const IntArg total = n.int_arg(window.total[i]);
  const IntArg half = aten.floor_div(total, 2), rest = aten.sub(total, half);
  return window.larger_first ? std::pair(rest, half) : std::pair(half, rest);
}

Value* pad_spatial(AtenBuilder& aten, Value* x, const std::vector<std::pair<IntArg, IntArg>>& pads,
                   std::optional<double> value) {
  IntArgs list;  // the last dimension first; dimensions in front that need none are left out
  for (size_t i = pads.size(); i-- > 0;) {
    list.push_back(pads[i].first);
    list.push_back(pads[i].second);
  }
  while (!list.empty() && list.back().is(0) && list[list.size() - 2].is(0)) list.erase(list.end() - 2, list.end());
  if (list.empty()) return x;
  return value ? aten("pad", x, list, Kw{"value", *value}) : aten("pad", x, list);
}

Value* pad_spatial(const OnnxNode& n, AtenBuilder& aten, Value* x, const Window& window, std::optional<double> value) {
  std::vector<std::pair<IntArg, IntArg>> pads;
  for (size_t i = 0; i < window.rank(); ++i) pads.push_back(pad_arguments(n, aten, window, i));
  return pad_spatial(aten, x, pads, value);
}

namespace {

std::string text_of_argument(const Emission& e, std::string_view name) {
  const Param& param = e.signature().inputs[static_cast<size_t>(e.signature().find_input(name))];
  const auto ints = param.is_list ? e.find_ints(name) : std::nullopt;
  return ints ? python_pair(*ints) : e.text(name);
}

}  // namespace

std::string window_keywords(const Emission& e, std::initializer_list<std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    if (e.node().find_attribute(name) != nullptr) text += fmt::format(", {}={}", name, text_of_argument(e, name));
  }
  return text;
}

std::string spell_window_call(const Emission& e, size_t positional) {
  std::string name = e.signature().name;
  std::string behind;
  if (const size_t at = name.find("_with_indices"); at != std::string::npos) {
    name.resize(at);
    behind = ", return_indices=True";
  }
  std::string text;
  bool gap = false;
  const auto& params = e.signature().inputs;
  for (size_t i = 0; i < params.size(); ++i) {
    if (e.node().find_attribute(params[i].name) == nullptr) {
      gap = true;
    } else if (i < positional && !gap) {
      text += (text.empty() ? "" : ", ") + text_of_argument(e, params[i].name);
    } else {
      text += window_keywords(e, {params[i].name});
    }
  }
  return fmt::format("F.{}({}{})", name, text, behind);
}

}  // namespace tonnx
