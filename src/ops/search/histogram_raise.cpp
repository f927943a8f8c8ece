// histogram_raise.cpp - PyTorch's counts of elements as ONNX.
#include <array>
#include <cmath>

#include "base/budget.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/node_facts.h"
#include "ops/frame/node_view.h"
#include "ops/index/rows.h"
#include "ops/move/rows.h"
#include "ops/search/rows.h"

namespace tonnx {
namespace {

/// Adds the weights of elements that come to the same of so many places.
Value* counted(const AtenNode& n, OnnxBuilder& onnx, Value* places, Value* weights, const IntArg& count) {
  require_opset(n, onnx, 16, "a sum of what comes to the same place");
  const DType dtype = onnx.dtype(weights);
  const DType kernel = scatter_dtype(dtype);
  Value* zeros = filled(onnx, IntArgs{count}, kernel, 0);
  Value* y = onnx("ScatterND", {zeros, onnx.unsqueeze(places, {1}), onnx.cast(weights, kernel)},
                  {{"reduction", std::string("add")}});
  return onnx.cast(y, dtype);
}

Value* ones_like(OnnxBuilder& onnx, Value* x, DType dtype) {
  return broadcast(onnx, onnx.number(dtype, 1), onnx.sizes(x));
}

Values raise_bincount(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = n.input_as("self", DType::Int64);
  const IntArg least = n.int_arg("minlength");
  Value* last = onnx.reduce("ReduceMax", onnx.concat({x, onnx.list(onnx.sub(least, 1))}, 0), {0}, true);
  const DType dtype = n.output_dtype();
  Value* weights = n.has("weights") ? n.input_as("weights", dtype) : ones_like(onnx, x, dtype);
  return counted(n, onnx, x, weights, onnx.add(last, 1));
}

struct Bounds {
  Value *low, *high;
};

/// The least and the greatest, and so much more on both sides where they are the same.
Bounds bounds_of(const AtenNode& n, OnnxBuilder& onnx, Value* x, double margin) {
  if (element_count(onnx.shape(x)) == 0) n.cannot("the bounds of nothing");
  const DType dtype = onnx.dtype(x);
  Value *low = onnx.reduce("ReduceMin", x, {0}, false), *high = onnx.reduce("ReduceMax", x, {0}, false);
  Value *same = onnx("Equal", {low, high}), *more = onnx.number(dtype, margin);
  return {onnx.where(same, onnx("Sub", {low, more}), low), onnx.where(same, onnx("Add", {high, more}), high)};
}

/// Integers that are counted as floats, where each number between the bounds is a bin of its own; null where not.
Value* counted_integers(const AtenNode& n, OnnxBuilder& onnx, Value* x, int64_t bins) {
  constexpr int64_t kMostBins = 2048;  // the bounds of more lie so near to the numbers that these are rounded over them
  static const Symbol kCast("Cast");
  const Node* cast = producer_of(x, kCast);
  const double low = n.f("min"), high = n.f("max");
  if (cast == nullptr || bins < 2 || bins > kMostBins || low != std::floor(low) || std::abs(low) > kMostBins)
    return nullptr;
  if (high - low != static_cast<double>(bins - 1) || !is_integer(onnx.dtype(cast->input(0)))) return nullptr;
  Value* places = onnx.cast(flat(onnx, cast->input(0)), DType::Int64);
  const auto first = static_cast<int64_t>(low);
  // the others are counted before the first bin and behind the last
  places = onnx("Clip", {places, onnx.integer(DType::Int64, first - 1), onnx.integer(DType::Int64, first + bins)});
  places = onnx("Sub", {places, onnx.integer(DType::Int64, first - 1)});
  return onnx.slice(counted(n, onnx, places, ones_like(onnx, places, onnx.dtype(x)), bins + 2), 0, 1, bins + 1);
}

/// Which of `bins` parts of equal width each element is in, of those that are in any; the last takes its end too.
Values raise_histc(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t bins = n.i("bins");
  const DType dtype = n.dtype("self");
  if (dtype != DType::Float32 && dtype != DType::Float64) n.cannot("histc of {}", name_of(dtype));
  if (Value* counts = counted_integers(n, onnx, n.input("self"), bins)) return {counts};
  Value* x = flat(onnx, n.input("self"));
  Bounds bounds{n.input_as("min", dtype), n.input_as("max", dtype)};
  if (n.f("min") == n.f("max")) bounds = bounds_of(n, onnx, x, 1);
  Value* inside = onnx("And", {onnx("GreaterOrEqual", {x, bounds.low}), onnx("LessOrEqual", {x, bounds.high})});
  x = in_kernel_dtype(onnx, "Compress", {x}, {inside}, {{"axis", int64_t{0}}});
  Value* scaled = onnx("Mul", {onnx("Sub", {x, bounds.low}), onnx.integer(dtype, bins)});
  Value* place = onnx.cast(onnx("Div", {scaled, onnx("Sub", {bounds.high, bounds.low})}), DType::Int64);
  place = onnx("Min", {place, onnx.integer(DType::Int64, bins - 1)});
  return counted(n, onnx, place, ones_like(onnx, place, dtype), bins);
}

/// Counts of points, which have one or more coordinates, between edges.
class Histogram {
 public:
  Histogram(const AtenNode& n, OnnxBuilder& onnx, Value* points)
      : n_(n), onnx_(onnx), points_(points), dtype_(onnx.dtype(points)) {
    if (dtype_ != DType::Float32 && dtype_ != DType::Float64) n.cannot("a histogram of {}", name_of(dtype_));
  }

  /// Parts of equal width of the next coordinate, between two numbers or the least and the greatest.
  void add_equal(int64_t bins, const std::optional<std::vector<double>>& range) {
    const size_t axis = edges_.size();
    Bounds bounds{};
    if (range) {
      require(range->size() > 2 * axis + 1, "the range of a histogram has {} numbers", range->size());
      double low = (*range)[2 * axis], high = (*range)[2 * axis + 1];
      if (low == high) {
        low -= 0.5;
        high += 0.5;
      }
      bounds = {onnx_.number(dtype_, low), onnx_.number(dtype_, high)};
    } else {
      bounds = bounds_of(n_, onnx_, column(axis), 0.5);
    }
    edges_.push_back(between(bounds, bins));
    bins_.emplace_back(bins);
  }

  void add_edges(Value* edges) {
    bins_.push_back(onnx_.sub(onnx_.size(edges, 0), 1));
    edges_.push_back(edges);
  }

  const std::vector<Value*>& edges() const { return edges_; }

  Value* counts() {
    Value *inside = nullptr, *place = nullptr;
    IntArg total = 1;
    for (size_t axis = 0; axis < edges_.size(); ++axis) {
      Value *x = column(axis), *edges = edges_[axis];
      Value *low = onnx_.slice(edges, 0, 0, 1), *high = onnx_.slice(edges, 0, -1, kEnd);
      Value* within = onnx_("And", {onnx_("GreaterOrEqual", {x, low}), onnx_("LessOrEqual", {x, high})});
      inside = inside ? onnx_("And", {inside, within}) : within;
      Value* before = onnx_("Sub", {count_before(onnx_, edges, x, true), onnx_.integer(DType::Int64, 1)});
      Value* last = onnx_.list(onnx_.sub(bins_[axis], 1));
      Value* own = onnx_("Min", {before, last});  // the last part takes its end too
      place = place ? onnx_("Add", {onnx_("Mul", {place, onnx_.list(bins_[axis])}), own}) : own;
      total = onnx_.mul(total, bins_[axis]);
    }
    place = onnx_("Compress", {place, inside}, {{"axis", int64_t{0}}});
    Value* weights = nullptr;
    if (n_.has("weight")) {
      weights = onnx_("Compress", {flat(onnx_, n_.input_as("weight", dtype_)), inside}, {{"axis", int64_t{0}}});
    } else {
      weights = ones_like(onnx_, place, dtype_);
    }
    Value* y = onnx_.reshape(counted(n_, onnx_, place, weights, total), bins_);
    return n_.flag("density") ? density(y) : y;
  }

 private:
  Value* column(size_t axis) {
    return onnx_.gather(points_, onnx_.integer(DType::Int64, static_cast<int64_t>(axis)), 1);
  }

  /// From both ends to the middle, as torch.linspace does.
  Value* between(const Bounds& bounds, int64_t bins) {
    std::vector<double> up, down, is_low;
    up.reserve(room_for<std::array<double, 3>>({checked_add(bins, 1)}));
    for (int64_t i = 0; i <= bins; ++i) {
      up.push_back(static_cast<double>(i));
      down.push_back(static_cast<double>(bins - i));
      is_low.push_back(i < (bins + 1) / 2 ? 1 : 0);
    }
    Value* step = onnx_("Div", {onnx_("Sub", {bounds.high, bounds.low}), onnx_.integer(dtype_, bins)});
    Value* low = onnx_("Add", {bounds.low, onnx_("Mul", {step, onnx_.numbers(dtype_, {bins + 1}, up)})});
    Value* high = onnx_("Sub", {bounds.high, onnx_("Mul", {step, onnx_.numbers(dtype_, {bins + 1}, down)})});
    return onnx_.where(onnx_.numbers(DType::Bool, {bins + 1}, is_low), low, high);
  }

  Value* density(Value* y) {
    y = onnx_("Div", {y, onnx_.reduce("ReduceSum", y, {}, false)});
    const auto rank = static_cast<int64_t>(edges_.size());
    for (int64_t axis = 0; axis < rank; ++axis) {
      Value* edges = edges_[static_cast<size_t>(axis)];
      Value* widths = onnx_("Sub", {onnx_.slice(edges, 0, 1, kEnd), onnx_.slice(edges, 0, 0, -1)});
      IntArgs line(static_cast<size_t>(rank - axis), IntArg(1));
      line[0] = -1;
      y = onnx_("Div", {y, onnx_.reshape(widths, line)});
    }
    return y;
  }

  const AtenNode& n_;
  OnnxBuilder& onnx_;
  Value* points_;
  DType dtype_;
  std::vector<Value*> edges_;
  IntArgs bins_;
};

Values counts_and_edges(Histogram& histogram) {
  Values results{histogram.counts()};
  for (Value* edges : histogram.edges()) results.push_back(edges);
  return results;
}

Values raise_histogram(const AtenNode& n, OnnxBuilder& onnx) {
  Histogram histogram(n, onnx, onnx.reshape(n.input("self"), IntArgs{-1, 1}));
  if (n.is_tensor("bins")) {
    histogram.add_edges(n.input("bins"));
  } else {
    histogram.add_equal(n.i("bins"), n.find_floats("range"));
  }
  return counts_and_edges(histogram);
}

Values raise_histogramdd(const AtenNode& n, OnnxBuilder& onnx) {
  const auto coordinates = n.shape("self").back().constant();
  if (!coordinates) n.cannot("points of an unknown number of coordinates");
  require(*coordinates <= kMaxRank, "a histogram of {} dimensions", *coordinates);
  Histogram histogram(n, onnx, onnx.reshape(n.input("self"), IntArgs{-1, *coordinates}));
  std::vector<int64_t> bins = n.ints("bins");
  if (bins.size() == 1) bins.assign(static_cast<size_t>(*coordinates), bins[0]);
  for (const int64_t count : bins) histogram.add_equal(count, n.find_floats("range"));
  return counts_and_edges(histogram);
}

Values raise_histogramdd_edges(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"range"});
  const CheckedList<Value*> bins = n.inputs("bins");
  const auto coordinates = static_cast<int64_t>(bins.size());
  require(coordinates <= kMaxRank, "a histogram of {} dimensions", coordinates);
  Histogram histogram(n, onnx, onnx.reshape(n.input("self"), IntArgs{-1, coordinates}));
  for (Value* edges : bins) histogram.add_edges(edges);
  return counts_and_edges(histogram);
}

constexpr AtenOp kAtenHistogramAten[] = {
    {.sig = "aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
     .types = types_bincount,
     .python = "torch.bincount",
     .raise = raise_bincount},
    {.sig = "aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
     .types = types_histc,
     .python = "torch.histc",
     .raise = raise_histc},
    {.sig = "aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> "
            "(Tensor hist, Tensor bin_edges)",
     .python = "torch.histogram",
     .raise = raise_histogram},
    {.sig = "aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool "
            "density=False) -> (Tensor hist, Tensor bin_edges)",
     .python = "torch.histogram",
     .raise = raise_histogram},
    {.sig = "aten::histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) "
            "-> (Tensor hist, Tensor[] bin_edges)",
     .python = "torch.ops.aten.histogramdd",
     .raise = raise_histogramdd},
    {.sig = "aten::histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool "
            "density=False) -> (Tensor hist, Tensor[] bin_edges)",
     .python = "torch.ops.aten.histogramdd",
     .raise = raise_histogramdd},
    {.sig = "aten::histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, "
            "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
     .python = "torch.ops.aten.histogramdd",
     .raise = raise_histogramdd_edges},
};

}  // namespace

extern const OpFamily kAtenHistogramOps;
constinit const OpFamily kAtenHistogramOps{"aten_histogram", {}, kAtenHistogramAten};

}  // namespace tonnx
