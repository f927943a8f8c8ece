// fuse_pads.cpp - what is put around a tensor for a convolution or a pool becomes its own padding.
#include <algorithm>
#include <limits>

#include "passes/frame/onnx_match.h"
#include "passes/frame/op_symbols.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

/// Elements of one value that a Pad puts around the last axes of a tensor.
struct Padding {
  std::vector<int64_t> begins, ends;  // of the axes from the third on
  double value;
};

std::optional<Padding> find_padding(const Node& pad) {
  if (text_of(pad, "mode").value_or("constant") != "constant" || pad.input(0) == nullptr) return std::nullopt;
  const auto rank = pad.input(0)->type.rank();
  const auto pads = ints_of(pad, "pads");
  if (!rank || *rank < 3 || !pads || pads->size() % 2 != 0) return std::nullopt;
  std::vector<int64_t> begins(static_cast<size_t>(*rank)), ends(begins);
  const size_t count = pads->size() / 2;
  std::optional<std::vector<int64_t>> axes;
  if (has(pad, "axes")) {
    axes = ints_of(pad, "axes");
    if (!axes) return std::nullopt;
  }
  if (count != (axes ? axes->size() : begins.size())) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    const auto axis = from_front(axes ? (*axes)[i] : static_cast<int64_t>(i), *rank);
    if (!axis || (*pads)[i] < 0 || (*pads)[i + count] < 0) return std::nullopt;
    const auto at = static_cast<size_t>(*axis);
    if (begins[at] != 0 || ends[at] != 0) return std::nullopt;
    begins[at] = (*pads)[i];
    ends[at] = (*pads)[i + count];
    if (at < 2 && (begins[at] != 0 || ends[at] != 0)) return std::nullopt;
  }
  Padding result{{begins.begin() + 2, begins.end()}, {ends.begin() + 2, ends.end()}, 0};
  const char* name = pad.version < 11 ? "value" : "constant_value";
  if (has(pad, name)) {
    const auto value = pad.version < 11 ? float_of(pad, name) : uniform_value(pad.input(2));
    if (!value) return std::nullopt;
    result.value = *value;
  }
  return result;
}

/// The pads that a window has of itself, `count` of them; nothing where they follow from the sizes.
std::optional<std::vector<int64_t>> find_own_pads(const Node& node, size_t count) {
  const std::string how = text_of(node, "auto_pad").value_or("NOTSET");
  if (how == "VALID") return std::vector<int64_t>(count);
  if (how != "NOTSET") return std::nullopt;
  const auto pads = ints_of(node, "pads");
  if (!pads) return has(node, "pads") ? std::nullopt : std::optional(std::vector<int64_t>(count));
  return pads->size() == count ? pads : std::nullopt;
}

bool is_zero(const std::vector<int64_t>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](int64_t number) { return number == 0; });
}

/// Whether what the window pads with is that number.
bool pads_with(const Node& node, double value) {
  if (is_onnx(node, kConvInteger)) return node.input(2) ? uniform_value(node.input(2)) == value : value == 0;
  if (is_onnx(node, kQLinearConv)) return uniform_value(node.input(2)) == value;
  if (!is_onnx(node, kMaxPool)) return value == 0;
  const DType dtype = node.input(0)->type.dtype;  // what is smaller than all others is never the largest
  if (dtype == DType::Int8) return value == std::numeric_limits<int8_t>::min();
  if (dtype == DType::UInt8) return value == 0;
  return value == -std::numeric_limits<double>::infinity();
}

bool is_pool(const Node& node) { return is_onnx(node, kAveragePool) || is_onnx(node, kMaxPool); }

bool has_floats(const Node& node) { return node.input(0) && is_float(node.input(0)->type.dtype); }

/// Whether a pool with these pads is the same: every window must have elements of its own.
bool suits_pool(const Node& pool, const std::vector<int64_t>& own, const std::vector<int64_t>& pads) {
  if (int_of(pool, "ceil_mode").value_or(0) != 0 || pool.outputs().size() != 1) return false;
  const auto kernel = ints_of(pool, "kernel_shape");
  if (!kernel || kernel->size() * 2 != pads.size()) return false;
  for (size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] >= (*kernel)[i % kernel->size()]) return false;
  }
  if (!is_onnx(pool, kAveragePool)) return true;
  return pool.version >= 7 && (is_zero(own) || int_of(pool, "count_include_pad").value_or(0) != 0);
}

/// Takes the elements that a Pad puts around the first input of the node into its own pads.
bool take_pads(Node& node, Rewriter& rewriter) {
  const Node* pad = made_by(node.input(0), kPad);
  const auto padding = pad ? find_padding(*pad) : std::nullopt;
  if (!padding || !pads_with(node, padding->value)) return false;
  const size_t axes = padding->begins.size();
  const auto own = find_own_pads(node, axes * 2);
  if (!own) return false;
  constexpr int64_t kMost = int64_t{1} << 30;
  std::vector<int64_t> pads = *own;
  for (size_t i = 0; i < axes * 2; ++i) {
    const int64_t more = i < axes ? padding->begins[i] : padding->ends[i - axes];
    if (pads[i] < 0 || pads[i] > kMost || more > kMost) return false;
    pads[i] += more;
  }
  if (is_pool(node) && !suits_pool(node, *own, pads)) return false;
  if (is_onnx(node, kAveragePool) && !is_zero(pads)) node.set_attribute("count_include_pad", int64_t{1});
  node.take_attribute("auto_pad");
  node.set_attribute("pads", std::move(pads));
  rewriter.set_input(node, 0, pad->input(0));
  rewriter.infer(node);
  return true;
}

}  // namespace

bool fuse_pads(Node& node, Rewriter& rewriter) {
  // 1. Conv(Pad(x, 0)) of spatial axes: Conv(x) with more pads. ConvInteger and QLinearConv pad with their zero point.
  // 2. AveragePool(Pad(x, 0)): AveragePool that counts what is padded.
  // 3. MaxPool(Pad(x, lowest)) of integers
  const bool is_found = is_onnx(node, kConv) || is_onnx(node, kConvInteger) || is_onnx(node, kQLinearConv) ||
                        is_onnx(node, kAveragePool) || (is_onnx(node, kMaxPool) && !has_floats(node));
  return is_found && take_pads(node, rewriter);
}

bool fuse_pads_into_max_pool(Node& node, Rewriter& rewriter) {
  // 1. MaxPool(Pad(x, -inf))
  return is_onnx(node, kMaxPool) && has_floats(node) && take_pads(node, rewriter);
}

}  // namespace tonnx
