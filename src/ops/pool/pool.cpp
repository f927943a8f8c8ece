// pool.cpp - pools over sliding windows and over whole planes: MaxPool, AveragePool, LpPool, GlobalAveragePool and
// their kin.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/frame/emission.h"
#include "ops/frame/infer.h"
#include "ops/frame/kernel_type.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"
#include "ops/frame/opset_step.h"
#include "ops/frame/same_value.h"
#include "ops/pool/rows.h"
#include "ops/shape/rows.h"
#include "ops/window/window.h"

namespace tonnx {
namespace {

void infer_pool(InferNode& n) {
  if (const auto kernel = n.find_ints("kernel_shape")) n.learn_rank("X", static_cast<int64_t>(kernel->size()) + 2);
  const Shape* x = n.find_shape("X");
  std::optional<Shape> shape;
  if (x != nullptr) {
    const Window window = window_of(n);
    shape = window_shape(*x, window, (*x)[1]);
  }
  n.set(0, n.dtype("X"), shape);
  if (n.output_count() > 1) n.set(1, DType::Int64, shape);
}

/// The pads as PyTorch's pools take them: the same on both sides, at most half a window. One stride less one more at
/// the end is what ceil_mode gives, for every size, where pads do not count.
std::optional<std::vector<int64_t>> find_padding(Window& window, bool pads_count) {
  std::vector<int64_t> padding;
  bool is_symmetric = true, is_ceil = !pads_count && !window.ceil_mode;
  for (size_t i = 0; i < window.rank(); ++i) {
    const auto begin = window.begin[i].constant(), end = window.end[i].constant();
    const auto extent = window.extent(i).constant();
    if (!begin || !end || !extent || *begin > *extent / 2) return std::nullopt;
    is_symmetric = is_symmetric && *begin == *end;
    is_ceil = is_ceil && *end == *begin + window.strides[i] - 1 && *end < *extent;
    padding.push_back(*begin);
  }
  if (!is_symmetric && !is_ceil) return std::nullopt;
  window.ceil_mode = window.ceil_mode || !is_symmetric;
  return padding;
}

/// Turns ceil_mode into pads at the end, so that rounding down gives as many windows.
void make_ceil_explicit(const OnnxNode& n, Window& window) {
  if (!window.ceil_mode) return;
  const Shape* x = n.find_shape("X");
  if (x == nullptr) fail_unsupported("ceil_mode with such pads needs the sizes of the input, which are not known");
  for (size_t i = 0; i < window.rank(); ++i) {
    const Dim& size = (*x)[i + 2];
    const Dim reach = (window.count(i, size) - 1) * Dim(window.strides[i]) + window.extent(i);
    window.end[i] = max(reach - size - window.begin[i], 0);
  }
  window.ceil_mode = false;
}

/// Whether ceil_mode gives as many windows once the pads are a part of the input: it does where no window starts in
/// them.
bool ceil_survives_padding(const Window& window) {
  for (size_t i = 0; window.ceil_mode && i < window.rank(); ++i) {
    if (!(window.extent(i) - window.end[i] - window.strides[i]).is_non_negative()) return false;
  }
  return true;
}

/// A stride that is the size of the window is what the pools of PyTorch do by themselves.
std::vector<int64_t> stride_argument(const Window& window) {
  return window.strides == window.const_kernel() ? std::vector<int64_t>{} : window.strides;
}

/// The windows as new dimensions at the end, one for each spatial dimension: x.unfold(2, 3, 1).
Value* unfold_windows(AtenBuilder& aten, Value* x, const Window& window) {
  for (size_t i = 0; i < window.rank(); ++i) {
    x = aten("unfold", x, static_cast<int64_t>(i + 2), *window.extent(i).constant(), window.strides[i]);
    if (window.dilations[i] != 1) x = aten("slice.Tensor", x, -1, nullptr, nullptr, window.dilations[i]);
  }
  return x;
}

std::vector<int64_t> last_dims(size_t count) {
  std::vector<int64_t> dims;
  for (size_t i = count; i > 0; --i) dims.push_back(-static_cast<int64_t>(i));
  return dims;
}

double lowest(DType dtype) {
  if (!is_integer(dtype)) return -std::numeric_limits<double>::infinity();
  return is_unsigned(dtype) ? 0.0 : -std::ldexp(1.0, info(dtype).bits - 1);
}

/// PyTorch counts inside one plane of the padded input, row by row; ONNX in the whole tensor without its pads, and,
/// where storage_order says so, with the first spatial dimension the fastest.
Value* onnx_indices(const OnnxNode& n, AtenBuilder& aten, Value* indices, const Window& given, bool was_padded) {
  const size_t rank = given.rank();
  const bool by_column = n.i("storage_order") != 0;
  std::vector<IntArg> sizes;
  IntArg plane(1);
  for (size_t i = 0; i < rank; ++i) {
    sizes.push_back(n.size("X", static_cast<int64_t>(i + 2)));
    plane = aten.mul(plane, sizes[i]);
  }
  if (was_padded || (by_column && rank > 1)) {
    Value* rest = indices;
    indices = nullptr;
    std::vector<Value*> places(rank);
    for (size_t i = rank; i-- > 0;) {
      const auto [begin, end] = was_padded ? pad_arguments(n, aten, given, i) : std::pair(IntArg(0), IntArg(0));
      const IntArg padded = aten.add(aten.add(sizes[i], begin), end);
      places[i] = i > 0 ? aten("remainder.Scalar", rest, padded) : rest;
      if (i > 0) rest = aten("div.Scalar_mode", rest, padded, Kw{"rounding_mode", "floor"});
      if (!begin.is(0)) places[i] = aten("sub.Scalar", places[i], begin);
    }
    IntArg step(1);
    for (size_t k = 0; k < rank; ++k) {
      const size_t i = by_column ? k : rank - 1 - k;
      Value* term = step.is(1) ? places[i] : aten("mul.Scalar", places[i], step);
      indices = indices ? aten("add.Tensor", indices, term) : term;
      step = aten.mul(step, sizes[i]);
    }
  }
  const IntArg batch = n.size("X", 0), channels = n.size("X", 1);
  const IntArg planes = aten.mul(batch, channels);
  if (planes.is(1)) return indices;
  IntArgs shape{batch, channels};
  shape.insert(shape.end(), rank, 1);
  Value* first = aten("mul.Scalar", aten("arange", planes), plane);
  return aten("add.Tensor", indices, aten("reshape", first, shape));
}

Values lower_max_pool(const OnnxNode& n, AtenBuilder& aten) {
  Window window = window_of(n);
  n.i("storage_order");
  if (Value* empty = find_empty(n, aten, n.input("X")))
    return {empty, n.wants_output(1) ? aten("to.dtype", empty, DType::Int64) : nullptr};
  // PyTorch counts the elements of a channels-last image in the type of the image: no more than 255 of them
  const DType given = n.dtype("X");
  const DType dtype = given == DType::UInt8 || given == DType::Int8 ? DType::Float32 : given;
  Value* x = cast(aten, n.input("X"), given, dtype);
  const bool wants_indices = n.wants_output(1);
  auto padding = find_padding(window, false);
  if (window.rank() > 3) {
    if (wants_indices) fail_unsupported("PyTorch gives no indices for a pool over {} dimensions", window.rank());
    make_ceil_explicit(n, window);
    x = pad_spatial(n, aten, x, window, lowest(dtype));
    return cast(aten, aten("amax", unfold_windows(aten, x, window), last_dims(window.rank())), dtype, given);
  }
  const bool pads_first = !padding;
  if (pads_first) {
    if (!ceil_survives_padding(window)) make_ceil_explicit(n, window);
    x = pad_spatial(n, aten, x, window, lowest(dtype));
    padding = std::vector<int64_t>(window.rank(), 0);
  }
  const std::string name = fmt::format("max_pool{}d", window.rank());
  // without indices max_pool1d takes no integers
  if (!wants_indices && !(window.rank() == 1 && is_integer(dtype))) {
    x = aten(name, x, window.const_kernel(), stride_argument(window), *padding, window.dilations, window.ceil_mode);
    return cast(aten, x, dtype, given);
  }
  Values y = aten.all(name + "_with_indices", x, window.const_kernel(), stride_argument(window), *padding,
                      window.dilations, window.ceil_mode);
  y[0] = cast(aten, y[0], dtype, given);
  if (wants_indices) y[1] = onnx_indices(n, aten, y[1], window, pads_first);
  return y;
}

/// On the CPU PyTorch averages no numbers of 16 bits over three dimensions.
DType average_type(DType dtype, size_t rank) {
  const bool is_half = dtype == DType::Float16 || dtype == DType::BFloat16;
  return is_half && rank == 3 ? DType::Float32 : dtype;
}

/// The mean over each window of an input that has its pads.
Value* mean_of_windows(AtenBuilder& aten, Value* x, const Window& window) {
  if (window.rank() > 3 || window.is_dilated()) {
    return aten("mean.dim", unfold_windows(aten, x, window), last_dims(window.rank()));
  }
  return aten(fmt::format("avg_pool{}d", window.rank()), x, window.const_kernel(), stride_argument(window),
              std::vector<int64_t>(window.rank(), 0), window.ceil_mode);
}

Value* average_of_windows(const OnnxNode& n, AtenBuilder& aten, Value* x, Window window) {
  const bool pads_count = n.flag("count_include_pad") && window.is_padded();
  if (window.rank() <= 3 && !window.is_dilated()) {
    if (const auto padding = find_padding(window, pads_count)) {
      const bool is_padded = std::any_of(padding->begin(), padding->end(), [](int64_t pad) { return pad != 0; });
      return aten(fmt::format("avg_pool{}d", window.rank()), x, window.const_kernel(), stride_argument(window),
                  *padding, window.ceil_mode, pads_count || !is_padded);
    }
    if (pads_count && ceil_survives_padding(window)) {
      return mean_of_windows(aten, pad_spatial(n, aten, x, window), window);
    }
  }
  const Window given = window;
  make_ceil_explicit(n, window);
  const bool all_count = (pads_count || !given.is_padded()) && !given.ceil_mode;
  Value* mean = mean_of_windows(aten, pad_spatial(n, aten, x, window), window);
  if (all_count) return mean;
  // the mean over what counts is the mean of all, divided by the share that counts
  Value* share = aten("ones_like", aten("slice.Tensor", aten("slice.Tensor", x, 0, 0, 1), 1, 0, 1));
  if (pads_count) {
    share = pad_spatial(n, aten, share, given, 1.0);
    std::vector<std::pair<IntArg, IntArg>> more;
    for (size_t i = 0; i < window.rank(); ++i) more.emplace_back(0, n.int_arg(window.end[i] - given.end[i]));
    share = pad_spatial(aten, share, more);
  } else {
    share = pad_spatial(n, aten, share, window);
  }
  share = mean_of_windows(aten, share, window);
  return aten("div.Tensor", mean, share);
}

Values lower_average_pool(const OnnxNode& n, AtenBuilder& aten) {
  const Window window = window_of(n);
  n.i("count_include_pad");
  const DType dtype = n.dtype("X"), kernel = average_type(dtype, window.rank());
  if (Value* empty = find_empty(n, aten, n.input("X"))) return empty;
  return cast(aten, average_of_windows(n, aten, cast(aten, n.input("X"), dtype, kernel), window), kernel, dtype);
}

Value* power(AtenBuilder& aten, Value* x, int64_t p) {
  if (p == 1) return aten("abs", x);
  return aten("pow.Tensor_Scalar", p % 2 == 0 ? x : aten("abs", x), p);
}

Value* root(AtenBuilder& aten, Value* x, int64_t p) {
  if (p == 1) return x;
  return p == 2 ? aten("sqrt", x) : aten("pow.Tensor_Scalar", x, 1.0 / static_cast<double>(p));
}

int64_t order_of(const NodeView& n) {
  const int64_t p = n.i("p");
  require(p >= 1, "the order of a norm is {}", p);
  return p;
}

Values lower_lp_pool(const OnnxNode& n, AtenBuilder& aten) {
  Window window = window_of(n);
  const int64_t p = order_of(n);
  const DType dtype = n.dtype("X"), kernel = average_type(dtype, window.rank());
  if (Value* empty = find_empty(n, aten, n.input("X"))) return empty;
  Value* x = power(aten, cast(aten, n.input("X"), dtype, kernel), p);
  if ((window.rank() == 2 || window.rank() == 3) && !window.is_dilated()) {
    auto padding = find_padding(window, false);
    if (!padding) {
      if (!ceil_survives_padding(window)) make_ceil_explicit(n, window);
      x = pad_spatial(n, aten, x, window);
      padding = std::vector<int64_t>(window.rank(), 0);
    }
    x = aten(fmt::format("avg_pool{}d", window.rank()), x, window.const_kernel(), stride_argument(window), *padding,
             window.ceil_mode, Kw{"divisor_override", 1});
  } else {
    make_ceil_explicit(n, window);
    x = pad_spatial(n, aten, x, window);
    x = aten("sum.dim_IntList", unfold_windows(aten, x, window), last_dims(window.rank()));
  }
  return cast(aten, root(aten, x, p), kernel, dtype);
}

void infer_global_pool(InferNode& n) {
  const Shape* x = n.find_shape("X");
  if (x == nullptr) return n.set(0, n.dtype("X"), std::nullopt);
  require(x->size() >= 2, "the input has {} dimensions where at least two are needed", x->size());
  Shape shape(x->size(), Dim(1));
  shape[0] = (*x)[0];
  shape[1] = (*x)[1];
  n.set(0, n.dtype("X"), std::move(shape));
}

std::vector<int64_t> spatial_dims(int64_t rank) {
  std::vector<int64_t> dims;
  for (int64_t dim = 2; dim < rank; ++dim) dims.push_back(dim);
  return dims;
}

/// The same where only the run tells the rank.
Value* spatial_dims_at_run_time(const OnnxNode& n, AtenBuilder& aten) { return aten("tonnx::axes", n.input("X"), 2); }

Values lower_global_average_pool(const OnnxNode& n, AtenBuilder& aten) {
  const auto rank = n.find_rank("X");
  if (!rank) return aten("mean.dim", n.input("X"), spatial_dims_at_run_time(n, aten), true);
  const std::vector<int64_t> dims = spatial_dims(*rank);
  if (dims.empty()) return n.input("X");
  if (dims.size() == 2) return aten("adaptive_avg_pool2d", n.input("X"), std::vector<int64_t>{1, 1});
  return aten("mean.dim", n.input("X"), dims, true);
}

Values lower_global_max_pool(const OnnxNode& n, AtenBuilder& aten) {
  const auto rank = n.find_rank("X");
  if (!rank) return aten("amax", n.input("X"), spatial_dims_at_run_time(n, aten), true);
  const std::vector<int64_t> dims = spatial_dims(*rank);
  return dims.empty() ? n.input("X") : aten("amax", n.input("X"), dims, true);
}

Values lower_global_lp_pool(const OnnxNode& n, AtenBuilder& aten) {
  const std::vector<int64_t> dims = spatial_dims(n.rank("X"));
  const int64_t p = order_of(n);
  return dims.empty() ? aten("abs", n.input("X")) : aten("linalg_vector_norm", n.input("X"), p, dims, true);
}

/// The order of the norm was a float in opset 1.
void up_order(OnnxEdit& edit) {
  const Attribute* p = edit.node().find_attribute("p");
  const auto* value = p ? p->value.get<double>() : nullptr;
  if (value == nullptr) return;
  if (std::floor(*value) != *value || *value < 1 || *value > 1e6) edit.cannot("the order of the norm is {}", *value);
  const auto order = static_cast<int64_t>(*value);
  edit.node().set_attribute("p", order, AttrType::Int);
}

void down_order(OnnxEdit& edit) {
  const auto order = static_cast<double>(edit.i("p", 2));
  edit.node().set_attribute("p", order, AttrType::Float);
}

void require_no_dilations(OnnxEdit& edit) {
  const auto dilations = edit.find_ints("dilations");
  if (dilations && std::any_of(dilations->begin(), dilations->end(), [](int64_t d) { return d != 1; })) {
    edit.cannot("the older opset has no dilations");
  }
  drop_attribute(edit, "dilations");
}

void down_ceil_and_dilations(OnnxEdit& edit) {
  require_default(edit, "ceil_mode", 0);
  require_no_dilations(edit);
}

void down_no_indices(OnnxEdit& edit) {
  const Value* indices = edit.node().output(1);
  if (indices != nullptr && !indices->uses.empty()) edit.cannot("opset 7 gives no indices");
  edit.node().resize_outputs(1);
  drop_attribute(edit, "storage_order");
}

constexpr OpsetStep kMaxPoolHistory[] = {
    {.to = 8, .down = down_no_indices},
    {.to = 10, .down = down_ceil_and_dilations},
    {.to = 11},
    {.to = 12, .adds = dtype_set(DType::Int8, DType::UInt8)},
    {.to = 22, .adds = kBFloat16},
};
constexpr OpsetStep kAveragePoolHistory[] = {
    {.to = 7, .down = down_require_default<"count_include_pad", 0>},
    {.to = 10, .down = down_require_default<"ceil_mode", 0>},
    {.to = 11},
    {.to = 19, .down = require_no_dilations},
    {.to = 22, .adds = kBFloat16},
};
constexpr OpsetStep kLpPoolHistory[] = {
    {.to = 2, .up = up_order, .down = down_order},
    {.to = 11},
    {.to = 18, .down = down_ceil_and_dilations},
    {.to = 22, .adds = kBFloat16},
};
constexpr OpsetStep kGlobalPoolHistory[] = {{.to = 22, .adds = kBFloat16}};
constexpr OpsetStep kGlobalLpPoolHistory[] = {{.to = 2, .up = up_order, .down = down_order},
                                              {.to = 22, .adds = kBFloat16}};

/// Neither given nor other than that number.
bool all_are_or_absent(const Node& node, std::string_view name, int64_t number) {
  return !has(node, name) || all_are(ints_of(node, name), number);
}

/// AveragePool and MaxPool of one element each
Value* same_of_pool(const Node& node) {
  const bool is_one = all_are(ints_of(node, "kernel_shape"), 1) && all_are_or_absent(node, "strides", 1) &&
                      all_are_or_absent(node, "pads", 0);
  return is_one && keeps_type(node) ? node.input(0) : nullptr;
}

constexpr OnnxOp kPoolOnnx[] = {
    {.sig = "MaxPool(T X, *, str auto_pad=\"NOTSET\", int ceil_mode=0, ints? dilations, ints kernel_shape, ints? pads, "
            "int storage_order=0, ints? strides) -> (T Y, I? Indices)",
     .since = 1,
     .history = kMaxPoolHistory,
     .infer = infer_pool,
     .open = open_samples,
     .eval = eval_max_pool,
     .same = same_of_pool,
     .lower = lower_max_pool},
    {.sig = "AveragePool(T X, *, str auto_pad=\"NOTSET\", int ceil_mode=0, int count_include_pad=0, ints? dilations, "
            "ints kernel_shape, ints? pads, ints? strides) -> T Y",
     .since = 1,
     .history = kAveragePoolHistory,
     .infer = infer_pool,
     .open = open_samples,
     .eval = eval_average_pool,
     .same = same_of_pool,
     .lower = lower_average_pool},
    {.sig = "LpPool(T X, *, str auto_pad=\"NOTSET\", int ceil_mode=0, ints? dilations, ints kernel_shape, int p=2, "
            "ints? pads, ints? strides) -> T Y",
     .since = 1,
     .history = kLpPoolHistory,
     .infer = infer_pool,
     .open = open_samples,
     .eval = eval_lp_pool,
     .lower = lower_lp_pool},
    {.sig = "GlobalAveragePool(T X) -> T Y",
     .since = 1,
     .history = kGlobalPoolHistory,
     .infer = infer_global_pool,
     .eval = eval_global_average_pool,
     .same = same_where_shape_stays,
     .lower = lower_global_average_pool},
    {.sig = "GlobalMaxPool(T X) -> T Y",
     .since = 1,
     .history = kGlobalPoolHistory,
     .infer = infer_global_pool,
     .eval = eval_global_max_pool,
     .same = same_where_shape_stays,
     .lower = lower_global_max_pool},
    {.sig = "GlobalLpPool(T X, *, int p=2) -> T Y",
     .since = 1,
     .history = kGlobalLpPoolHistory,
     .infer = infer_global_pool,
     .eval = eval_global_lp_pool,
     .lower = lower_global_lp_pool},
};

std::string emit_pool(const Emission& e) { return spell_window_call(e, 2); }

constexpr AtenOp kPoolAten[] = {
    {.sig = "aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
            "dilation=[1], bool ceil_mode=False) -> Tensor",
     .types = types_pool1d,
     .emit = emit_pool,
     .raise = raise_max_pool},
    {.sig = "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
            "bool ceil_mode=False) -> Tensor",
     .types = types_pool2d,
     .layout = Layout::Channels,
     .emit = emit_pool,
     .raise = raise_max_pool},
    {.sig = "aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
            "bool ceil_mode=False) -> Tensor",
     .types = types_pool3d,
     .layout = Layout::Channels,
     .emit = emit_pool,
     .raise = raise_max_pool},
    {.sig = "aten::max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], "
            "int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)",
     .types = types_pool1d,
     .emit = emit_pool,
     .raise = raise_max_pool},
    {.sig = "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
            "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     .types = types_pool2d,
     .layout = Layout::Channels,
     .emit = emit_pool,
     .raise = raise_max_pool},
    {.sig = "aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
            "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
     .types = types_pool3d,
     .layout = Layout::Channels,
     .emit = emit_pool,
     .raise = raise_max_pool},
    {.sig = "aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool "
            "ceil_mode=False, bool count_include_pad=True) -> Tensor",
     .types = types_pool1d,
     .emit = emit_pool,
     .raise = raise_avg_pool},
    {.sig = "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
            "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     .types = types_pool2d,
     .layout = Layout::Channels,
     .emit = emit_pool,
     .raise = raise_avg_pool},
    {.sig = "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
            "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     .types = types_pool3d,
     .layout = Layout::Channels,
     .emit = emit_pool,
     .raise = raise_avg_pool},
    {.sig = "aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
     .types = types_adaptive_pool,
     .layout = Layout::Channels,
     .emit = emit_pool,
     .raise = raise_adaptive_avg_pool},
    {.sig = "aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
     .types = types_unfold,
     .view = ViewRule::Unfold,
     .python = ".unfold",
     .raise = raise_unfold},
};

}  // namespace

extern const OpFamily kPoolOps;
constinit const OpFamily kPoolOps{"pool", kPoolOnnx, kPoolAten};

}  // namespace tonnx
