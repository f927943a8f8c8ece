// raise.cpp - PyTorch's pools over sliding windows as ONNX.
#include <numeric>

#include "base/budget.h"
#include "ops/frame/aten_types.h"
#include "ops/pool/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// The arguments of a pool. Where the sizes are known ceil_mode is written as pads behind: runtimes do not agree
/// on what it means for windows that reach past the end.
struct Pool {
  Ints kernel, strides, padding, dilations;
  Ints behind;             // pads behind
  bool ceil_mode = false;  // that is left to the runtime

  std::vector<Attribute> attributes() const {
    std::vector<int64_t> pads = padding;
    pads.insert(pads.end(), behind.begin(), behind.end());
    std::vector<Attribute> result{attr("kernel_shape", kernel)};
    add_unless(result, "strides", strides, 1);
    add_unless(result, "pads", pads, 0);
    add_unless(result, "dilations", dilations, 1);
    if (ceil_mode) result.push_back(attr("ceil_mode", int64_t{1}));
    return result;
  }
  /// Whether windows reach past what PyTorch counts as pads.
  bool is_extended() const { return ceil_mode || behind != padding; }
};

/// As many windows as PyTorch has: none starts in the pads behind.
int64_t window_count(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil) {
  require(stride > 0, "a stride of {}", stride);
  const int64_t span = checked_mul(dilation, checked_sub(kernel, 1));
  const int64_t room = checked_sub(checked_add(size, checked_mul(2, padding)), checked_add(span, 1));
  int64_t count = checked_add(room, ceil ? stride - 1 : 0) / stride + 1;
  if (ceil && checked_mul(count - 1, stride) >= checked_add(size, padding)) --count;
  return count;
}

Pool pool_of(const AtenNode& n, bool has_dilation) {
  const int64_t spatial = spatial_of(n);
  Pool pool;
  pool.kernel = each(n.positives("kernel_size"), spatial);
  pool.strides = each(n.positives("stride"), spatial);
  if (pool.strides.empty()) pool.strides = pool.kernel;
  pool.padding = pool.behind = each(n.ints("padding"), spatial);
  pool.dilations = has_dilation ? each(n.positives("dilation"), spatial) : Ints(pool.kernel.size(), 1);
  if (!n.flag("ceil_mode")) return pool;
  const Shape& shape = n.shape("self");
  for (size_t i = 0; i < pool.kernel.size(); ++i) {
    const auto size = shape.at(shape.size() - pool.kernel.size() + i).constant();
    if (!size) {
      pool.ceil_mode = true;
      continue;
    }
    const int64_t count =
        window_count(*size, pool.kernel[i], pool.strides[i], pool.padding[i], pool.dilations[i], true);
    const int64_t reach = checked_add(checked_mul(count - 1, pool.strides[i]),
                                      checked_add(checked_mul(pool.dilations[i], pool.kernel[i] - 1), 1));
    pool.behind[i] = std::max(checked_sub(checked_sub(reach, *size), pool.padding[i]), pool.padding[i]);
    // no more windows than PyTorch has, and no pads of a whole window
    if (window_count(checked_add(*size, checked_sub(pool.behind[i], pool.padding[i])), pool.kernel[i], pool.strides[i],
                     pool.padding[i], pool.dilations[i], false) != count ||
        pool.behind[i] >= pool.kernel[i]) {
      pool.behind[i] = pool.padding[i];
      pool.ceil_mode = true;
    }
  }
  if (pool.ceil_mode) pool.behind = pool.padding;
  return pool;
}

/// The spatial dimensions as one.
Shape flat_planes(const Shape& shape, int64_t spatial) {
  Shape planes = shape.without_last(spatial);
  planes.push_back(count_of(shape.last(spatial)));
  return planes;
}

/// The elements of a plane that a value has, as a list of one.
IntArg plane_size(OnnxBuilder& onnx, Value* x, int64_t spatial) {
  IntArg size = 1;
  const int64_t rank = onnx.rank(x);
  for (int64_t axis = rank - spatial; axis < rank; ++axis) size = onnx.mul(size, onnx.size(x, axis));
  return size;
}

/// ONNX counts in the whole tensor, PyTorch in each plane.
Value* plane_indices(OnnxBuilder& onnx, Value* indices, Value* x, int64_t spatial) {
  if (onnx.shape(x)[0].is(1) && onnx.shape(x)[1].is(1)) return indices;
  return onnx("Mod", {indices, onnx.list(plane_size(onnx, x, spatial))});
}

/// A type that runtimes pool, and that holds the same numbers.
DType max_type(const AtenNode& n, DType dtype) {
  if (is_float(dtype) || dtype == DType::Int8 || dtype == DType::UInt8) return dtype;
  if (info(dtype).bits >= 64) n.cannot("a pool of {}", name_of(dtype));
  return DType::Float64;
}

Values max_pooled(const AtenNode& n, OnnxBuilder& onnx, const std::vector<Attribute>& attributes, int64_t spatial) {
  const DType dtype = n.dtype("self"), kernel = max_type(n, dtype);
  const Batched in = batched(onnx, n.input_as("self", kernel), spatial);
  const bool wants_indices = n.output_count() > 1 && n.wants_output(1);
  if (!wants_indices) return {in.undo(onnx, onnx.cast(onnx("MaxPool", {in.x}, attributes), dtype)), nullptr};
  const Values y = onnx.all(2, "MaxPool", {in.x}, attributes);
  return {in.undo(onnx, onnx.cast(y[0], dtype)), in.undo(onnx, plane_indices(onnx, y[1], in.x, spatial))};
}

}  // namespace

Values raise_max_pool(const AtenNode& n, OnnxBuilder& onnx) {
  return max_pooled(n, onnx, pool_of(n, true).attributes(), spatial_of(n));
}

namespace {

/// What the mean of each window of the whole kernel is to be multiplied by, where PyTorch divides by something else: by
/// the elements that lie in the input or in its pads. Nothing where a size is not known.
Value* find_share(const AtenNode& n, OnnxBuilder& onnx, const Pool& pool, DType dtype) {
  const size_t spatial = pool.kernel.size();
  const Shape& shape = n.shape("self");
  std::vector<double> shares{1};
  std::vector<int64_t> dims;
  for (size_t i = 0; i < spatial; ++i) {
    const auto size = shape.at(shape.size() - spatial + i).constant();
    if (!size) return nullptr;
    const int64_t count = window_count(*size, pool.kernel[i], pool.strides[i], pool.padding[i], 1, true);
    std::vector<double> more;
    more.reserve(room_for<double>({static_cast<int64_t>(shares.size()), std::max<int64_t>(count, 0)}));
    for (const double share : shares) {
      for (int64_t at = 0; at < count; ++at) {
        const int64_t start = checked_sub(checked_mul(at, pool.strides[i]), pool.padding[i]);
        const int64_t end = std::min(checked_add(start, pool.kernel[i]), checked_add(*size, pool.padding[i]));
        more.push_back(share * static_cast<double>(pool.kernel[i]) / static_cast<double>(end - start));
      }
    }
    shares = std::move(more);
    dims.push_back(count);
  }
  return onnx.numbers(dtype, std::move(dims), shares);
}

}  // namespace

Values raise_avg_pool(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t spatial = spatial_of(n);
  const Pool pool = pool_of(n, false);
  const int64_t divisor = spatial > 1 ? n.find_i("divisor_override").value_or(0) : 0;  // 0: none
  const bool is_padded = pool.behind != std::vector<int64_t>(pool.behind.size(), 0) || pool.ceil_mode;
  const bool has_pads = pool.padding != std::vector<int64_t>(pool.padding.size(), 0);
  const bool counts_pads = (n.flag("count_include_pad") && has_pads) || divisor != 0;
  const DType dtype = n.dtype("self");
  if (!is_float(dtype)) n.cannot("a mean of {}", name_of(dtype));
  std::vector<Attribute> attributes = pool.attributes();
  if (is_padded && counts_pads) attributes.push_back(attr("count_include_pad", int64_t{1}));
  const Batched in = batched(onnx, n.input("self"), spatial);
  Value* y = onnx("AveragePool", {in.x}, std::move(attributes));
  if (divisor != 0) {
    if (pool.ceil_mode) n.cannot("divisor_override with ceil_mode and sizes that are not known");
    const int64_t all = std::accumulate(pool.kernel.begin(), pool.kernel.end(), int64_t{1}, checked_mul);
    if (divisor != all)
      y = onnx("Mul", {y, onnx.number(dtype, static_cast<double>(all) / static_cast<double>(divisor))});
  } else if (counts_pads && pool.is_extended()) {
    Value* share = find_share(n, onnx, pool, dtype);
    if (share == nullptr) n.cannot("ceil_mode with pads that count, and sizes that are not known");
    y = onnx("Mul", {y, share});
  }
  return in.undo(onnx, y);
}

namespace {

/// The windows of an adaptive pool along one dimension.
struct Span {
  int64_t start, end;
};
std::vector<Span> adaptive_spans(int64_t in, int64_t out) {
  std::vector<Span> spans;
  spans.reserve(room_for<Span>({out}));
  checked_add(checked_mul(in, out), checked_add(in, out));  // beyond all that is computed here
  for (int64_t i = 0; i < out; ++i) spans.push_back({i * in / out, ((i + 1) * in + out - 1) / out});
  return spans;
}

/// For each window the places in the plane that it covers. Shorter windows repeat their first place.
struct WindowTable {
  int64_t windows = 1, longest = 0;
  std::vector<int64_t> places;
  std::vector<int64_t> counts;  // how many of each window's are its own
};

WindowTable table_of(const AtenNode& n, const std::vector<int64_t>& in, const std::vector<int64_t>& out) {
  constexpr int64_t kMost = int64_t{1} << 22;
  std::vector<std::vector<int64_t>> windows{{0}};
  int64_t window_count = 1, place_count = 1;
  for (size_t d = 0; d < in.size(); ++d) {
    require(in[d] > 0, "a pool of {} elements", in[d]);
    const std::vector<Span> spans = adaptive_spans(in[d], out[d]);
    int64_t covered = 0;
    for (const Span& span : spans) covered += span.end - span.start;
    if (in[d] == 0) n.cannot("an adaptive pool of no elements");
    window_count = checked_mul(window_count, out[d]);
    place_count = checked_mul(place_count, covered);
    if (window_count > kMost || place_count > kMost) n.cannot("an adaptive pool with so many and large windows");
    std::vector<std::vector<int64_t>> next;
    for (const std::vector<int64_t>& window : windows) {
      for (const Span& span : spans) {
        std::vector<int64_t>& made = next.emplace_back();
        for (const int64_t place : window) {
          for (int64_t i = span.start; i < span.end; ++i) made.push_back(place * in[d] + i);
        }
      }
    }
    windows = std::move(next);
  }
  WindowTable table;
  table.windows = static_cast<int64_t>(windows.size());
  for (const auto& window : windows) table.longest = std::max(table.longest, static_cast<int64_t>(window.size()));
  if (checked_mul(table.windows, table.longest) > kMost) n.cannot("an adaptive pool with so many and large windows");
  for (const auto& window : windows) {
    table.places.insert(table.places.end(), window.begin(), window.end());
    table.places.insert(table.places.end(), static_cast<size_t>(table.longest) - window.size(), window.front());
    table.counts.push_back(static_cast<int64_t>(window.size()));
  }
  return table;
}

/// An adaptive pool whose sizes are known.
struct Adaptive {
  std::vector<int64_t> in, out;

  bool is_global() const {
    return std::all_of(out.begin(), out.end(), [](int64_t size) { return size == 1; });
  }
  /// Whether all windows are of one size and do not overlap.
  bool is_regular() const {
    for (size_t i = 0; i < in.size(); ++i) {
      if (out[i] == 0 || in[i] % out[i] != 0) return false;
    }
    return true;
  }
  std::vector<Attribute> attributes() const {
    std::vector<int64_t> kernel;
    for (size_t i = 0; i < in.size(); ++i) kernel.push_back(in[i] / out[i]);
    std::vector<Attribute> result{attr("kernel_shape", kernel)};
    add_unless(result, "strides", kernel, 1);
    return result;
  }
};

/// Nothing where a size that matters is only known at run time.
std::optional<Adaptive> find_adaptive(const AtenNode& n, int64_t spatial) {
  n.ignore({"output_size"});
  Adaptive result;
  const Shape &x = n.shape("self"), &y = n.output_shape();
  const Shape ins = x.last(spatial), outs = y.last(spatial);
  for (size_t i = 0; i < ins.size(); ++i) {
    const auto in = ins[i].constant(), out = outs[i].constant();
    if (!in || !out) return std::nullopt;
    result.in.push_back(*in);
    result.out.push_back(*out);
  }
  return result;
}

bool is_global(const AtenNode& n, int64_t spatial) {
  const Shape y = n.output_shape().last(spatial);
  return std::all_of(y.begin(), y.end(), [](const Dim& size) { return size.is(1); });
}

std::vector<int64_t> last_axes(int64_t rank, int64_t count) {
  std::vector<int64_t> axes;
  for (int64_t axis = rank - count; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

/// The windows of every plane, side by side: [..., windows, longest].
Value* gathered(OnnxBuilder& onnx, Value* x, const WindowTable& table, int64_t spatial) {
  Value* planes = onnx.reshape(x, flat_planes(onnx.shape(x), spatial));
  auto places = std::make_shared<Tensor>(*make_ints(table.places));
  places->dims = {table.windows, table.longest};
  return onnx.gather(planes, onnx.constant(places, "windows"), onnx.rank(planes) - 1);
}

Value* adaptive_mean(const AtenNode& n, OnnxBuilder& onnx, const Adaptive& pool, int64_t spatial) {
  const WindowTable table = table_of(n, pool.in, pool.out);
  Value* windows = gathered(onnx, n.input("self"), table, spatial);
  const DType dtype = onnx.dtype(windows);
  const int64_t last = onnx.rank(windows) - 1;
  std::vector<double> own, shares;
  for (const int64_t count : table.counts) {
    for (int64_t i = 0; i < table.longest; ++i) own.push_back(i < count ? 1 : 0);
    shares.push_back(1.0 / static_cast<double>(count));
  }
  if (std::find(own.begin(), own.end(), 0) == own.end()) {
    windows = onnx.reduce("ReduceMean", windows, {last}, false);
  } else {
    Value* mask = onnx.numbers(DType::Bool, {table.windows, table.longest}, own);
    windows = onnx.where(mask, windows, onnx.number(dtype, 0));
    windows = onnx.reduce("ReduceSum", windows, {last}, false);
    windows = onnx("Mul", {windows, onnx.numbers(dtype, {table.windows}, shares)});
  }
  return onnx.reshape(windows, n.output_shape());
}

}  // namespace

Values raise_adaptive_avg_pool(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t spatial = spatial_of(n);
  Value* x = n.input("self");
  if (is_global(n, spatial)) {
    n.ignore({"output_size"});
    if (onnx.rank(x) == spatial + 2) return onnx("GlobalAveragePool", {x});
    return onnx.reduce("ReduceMean", x, last_axes(onnx.rank(x), spatial), true);
  }
  const auto pool = find_adaptive(n, spatial);
  if (!pool) return pooled_at_run_time(n, onnx, spatial, "ReduceMean");
  if (!pool->is_regular()) return adaptive_mean(n, onnx, *pool, spatial);
  const Batched in = batched(onnx, x, spatial);
  return in.undo(onnx, onnx("AveragePool", {in.x}, pool->attributes()));
}

Values raise_adaptive_max_pool(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t spatial = spatial_of(n);
  Value* x = n.input("self");
  if (is_global(n, spatial) && !n.wants_output(1) && onnx.rank(x) == spatial + 2 && is_float(onnx.dtype(x))) {
    n.ignore({"output_size"});
    return {onnx("GlobalMaxPool", {x}), nullptr};
  }
  const auto pool = find_adaptive(n, spatial);
  if (!pool && n.wants_output(1)) n.cannot("the places of maxima in windows whose sizes are only known at run time");
  if (!pool) return {pooled_at_run_time(n, onnx, spatial, "ReduceMax"), nullptr};
  if (pool->is_regular()) return max_pooled(n, onnx, pool->attributes(), spatial);
  const WindowTable table = table_of(n, pool->in, pool->out);
  Value* windows = gathered(onnx, x, table, spatial);
  const int64_t last = onnx.rank(windows) - 1;
  Values result{onnx.reshape(onnx.reduce("ReduceMax", windows, {last}, false), n.output_shape()), nullptr};
  if (!n.wants_output(1)) return result;
  Value* at = onnx("ArgMax", {windows}, {attr("axis", last), attr("keepdims", int64_t{0})});
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < table.windows; ++i) starts.push_back(i * table.longest);
  Value* place = onnx("Add", {at, onnx.ints(starts)});
  result[1] = onnx.reshape(onnx.gather(onnx.ints(table.places), place, 0), n.output_shape(1));
  return result;
}

namespace {

/// Every element goes to its place in a plane of zeros.
Values raise_max_unpool(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t spatial = spatial_of(n);
  n.ignore({"output_size"});
  if (spatial == 3) n.ignore({"stride", "padding"});
  Value *x = n.input("self"), *indices = n.input("indices");
  Value* zeros = onnx.expand(onnx.number(onnx.dtype(x), 0), flat_planes(n.output_shape(), spatial));
  const Shape flat = flat_planes(onnx.shape(x), spatial);
  Value* y = onnx("ScatterElements", {zeros, onnx.reshape(indices, flat), onnx.reshape(x, flat)},
                  {attr("axis", onnx.rank(x) - spatial)});
  return onnx.reshape(y, n.output_shape());
}

/// The gradient goes to the element that was the largest.
Values raise_max_pool_backward(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"kernel_size", "stride", "padding", "dilation", "ceil_mode", "self"});
  constexpr int64_t kSpatial = 2;
  Value *gradient = n.input("grad_output"), *indices = n.input("indices");
  Value* zeros = onnx.expand(onnx.number(onnx.dtype(gradient), 0), flat_planes(n.output_shape(), kSpatial));
  const Shape flat = flat_planes(onnx.shape(gradient), kSpatial);
  Value* y = onnx("ScatterElements", {zeros, onnx.reshape(indices, flat), onnx.reshape(gradient, flat)},
                  {attr("axis", onnx.rank(gradient) - kSpatial), attr("reduction", std::string("add"))});
  return onnx.reshape(y, n.output_shape());
}

constexpr AtenOp kAtenPoolAten[] = {
    {.sig = "aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
     .types = types_adaptive_pool,
     .python = "F.adaptive_avg_pool1d",
     .raise = raise_adaptive_avg_pool},
    {.sig = "aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
     .types = types_adaptive_pool,
     .layout = Layout::Channels,
     .python = "F.adaptive_avg_pool3d",
     .raise = raise_adaptive_avg_pool},
    {.sig = "aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
     .types = types_adaptive_pool,
     .python = "torch.ops.aten.adaptive_max_pool1d",
     .raise = raise_adaptive_max_pool},
    {.sig = "aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
     .types = types_adaptive_pool,
     .layout = Layout::Channels,
     .python = "torch.ops.aten.adaptive_max_pool2d",
     .raise = raise_adaptive_max_pool},
    {.sig = "aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
     .types = types_adaptive_pool,
     .layout = Layout::Channels,
     .python = "torch.ops.aten.adaptive_max_pool3d",
     .raise = raise_adaptive_max_pool},
    {.sig = "aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] "
            "stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
     .types = types_as_self,
     .python = "torch.ops.aten.max_pool2d_with_indices_backward",
     .raise = raise_max_pool_backward},
    {.sig = "aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
     .types = types_adaptive_pool,
     .python = "torch.ops.aten.max_unpool2d",
     .raise = raise_max_unpool},
    {.sig = "aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> "
            "Tensor",
     .types = types_adaptive_pool,
     .python = "torch.ops.aten.max_unpool3d",
     .raise = raise_max_unpool},
};

}  // namespace

extern const OpFamily kAtenPoolOps;
constinit const OpFamily kAtenPoolOps{"aten_pool", {}, kAtenPoolAten};

}  // namespace tonnx
