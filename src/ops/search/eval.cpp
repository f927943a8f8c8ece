// eval.cpp - evaluation of what orders and compares elements: TopK, Unique, NonMaxSuppression.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/frame/eval_elements.h"
#include "ops/search/rows.h"

namespace tonnx {
namespace {

/// The order of the elements of a tensor: as ranks of equal width, which are compared quickly.
class Order {
 public:
  /// Nothing where elements have no order: other types, and NaN.
  static std::optional<Order> find(const Tensor& x) {
    Order order;
    order.tensor_ = &x;
    if (x.dtype == DType::String) return order;
    if (!is_plain_number(x.dtype)) return std::nullopt;
    if (is_float(x.dtype)) {
      order.floats_ = numbers_of(x);
      if (std::any_of(order.floats_.begin(), order.floats_.end(), [](double v) { return std::isnan(v); }))
        return std::nullopt;
      return order;
    }
    const int64_t turn = x.dtype == DType::UInt64 ? INT64_MIN : 0;
    for (int64_t i = 0; i < x.count(); ++i) order.ints_.push_back(element_as_int(x, i) ^ turn);
    return order;
  }

  /// Below zero, zero or above it.
  int compare(int64_t a, int64_t b) const {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    if (tensor_->dtype == DType::String) return tensor_->strings[i].compare(tensor_->strings[j]);
    if (is_float(tensor_->dtype)) return (floats_[i] > floats_[j]) - (floats_[i] < floats_[j]);
    return (ints_[i] > ints_[j]) - (ints_[i] < ints_[j]);
  }

 private:
  const Tensor* tensor_ = nullptr;
  std::vector<double> floats_;
  std::vector<int64_t> ints_;
};

TensorPtr ints_tensor(const std::vector<int64_t>& values, std::vector<int64_t> dims) {
  auto result = std::make_shared<Tensor>(*make_ints(values));
  result->dims = std::move(dims);
  return result;
}

}  // namespace

Results eval_top_k(const NodeView& n) {
  const TensorPtr x = n.find_constant("X");
  const auto dims = static_dims(n.node().output(0));
  const auto order = Order::find(*x);
  if (!dims || !order || x->dims.empty() || dims->size() != x->dims.size()) return {};
  const auto axis = static_cast<size_t>(n.axis("axis", "X"));
  const AroundAxis around = around_axis(x->dims, axis);
  const int64_t k = (*dims)[axis];
  const bool largest = n.flag("largest");
  if (k > around.size) return {};
  Elements values(x->dtype, *dims);
  NewTensor indices(DType::Int64, *dims);
  std::vector<int64_t> line(static_cast<size_t>(around.size));
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t i = 0; i < around.inner; ++i) {
      const auto place = [&](int64_t at) { return (o * around.size + at) * around.inner + i; };
      std::iota(line.begin(), line.end(), 0);
      std::partial_sort(line.begin(), line.begin() + k, line.end(), [&](int64_t a, int64_t b) {
        const int sign = order->compare(place(a), place(b));
        return sign == 0 ? a < b : (sign > 0) == largest;
      });
      for (int64_t j = 0; j < k; ++j) {
        const int64_t to = (o * k + j) * around.inner + i, from = line[static_cast<size_t>(j)];
        values.copy(to, *x, place(from));
        indices.set(to, from);
      }
    }
  }
  Results results;
  results.push_back(values.done());
  results.push_back(indices.done());
  return results;
}

Results eval_unique(const NodeView& n) {
  const TensorPtr x = n.find_constant("X");
  const auto order = Order::find(*x);
  Ints dims = n.has("axis") ? x->dims : Ints{x->count()};
  if (!order || dims.empty()) return {};
  const auto axis = n.has("axis") ? static_cast<size_t>(n.axis("axis", "X")) : 0;
  const AroundAxis around = around_axis(dims, axis);
  const auto compare = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < around.outer; ++o) {
      for (int64_t i = 0; i < around.inner; ++i) {
        const int sign =
            order->compare((o * around.size + a) * around.inner + i, (o * around.size + b) * around.inner + i);
        if (sign != 0) return sign;
      }
    }
    return 0;
  };
  std::vector<int64_t> line(static_cast<size_t>(around.size));
  std::iota(line.begin(), line.end(), 0);
  std::sort(line.begin(), line.end(), [&](int64_t a, int64_t b) {
    const int sign = compare(a, b);
    return sign == 0 ? a < b : sign < 0;
  });
  struct Group {
    int64_t first;
    std::vector<int64_t> members;
  };
  std::vector<Group> groups;
  for (const int64_t at : line) {
    if (groups.empty() || compare(groups.back().first, at) != 0) groups.push_back({at, {}});
    groups.back().members.push_back(at);
  }
  if (!n.flag("sorted"))
    std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.first < b.first; });
  const auto found = static_cast<int64_t>(groups.size());
  dims[axis] = found;
  Elements values(x->dtype, dims);
  std::vector<int64_t> first, counts, inverse(line.size());
  for (int64_t g = 0; g < found; ++g) {
    const Group& group = groups[static_cast<size_t>(g)];
    for (int64_t o = 0; o < around.outer; ++o) {
      values.copy((o * found + g) * around.inner, *x, (o * around.size + group.first) * around.inner, around.inner);
    }
    first.push_back(group.first);
    counts.push_back(static_cast<int64_t>(group.members.size()));
    for (const int64_t member : group.members) inverse[static_cast<size_t>(member)] = g;
  }
  Results results(values.done());
  results.push_back(make_ints(first));
  results.push_back(make_ints(inverse));
  results.push_back(make_ints(counts));
  return results;
}

namespace {

struct Box {
  float low[2], high[2];

  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

Box box_at(const Tensor& boxes, int64_t at, bool is_centred) {
  float numbers[4];
  for (int64_t i = 0; i < 4; ++i) numbers[i] = static_cast<float>(element_as_double(boxes, at * 4 + i));
  Box box{};
  for (size_t i = 0; i < 2; ++i) {
    const float first = numbers[i], second = numbers[i + 2];
    box.low[i] = is_centred ? first - second / 2 : std::min(first, second);
    box.high[i] = is_centred ? first + second / 2 : std::max(first, second);
  }
  return box;
}

/// In float32, as it is everywhere: whether a quotient is past the threshold depends on it.
bool overlap(const Box& a, const Box& b, float threshold) {
  float shared = 1;
  for (size_t i = 0; i < 2; ++i) {
    const float length = std::min(a.high[i], b.high[i]) - std::max(a.low[i], b.low[i]);
    if (!(length > 0)) return false;
    shared *= length;
  }
  const float all = a.area() + b.area() - shared;
  return shared > 0 && a.area() > 0 && b.area() > 0 && all > 0 && shared / all > threshold;
}

/// The one number of an optional input.
std::optional<double> find_number(const NodeView& n, std::string_view input, double otherwise) {
  const TensorPtr tensor = n.find_constant(input);
  if (!tensor) return otherwise;
  if (tensor->count() != 1 || !is_plain_number(tensor->dtype)) return std::nullopt;
  return element_as_double(*tensor, 0);
}

}  // namespace

Results eval_nms(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr boxes = n.find_constant("boxes"), scores = n.find_constant("scores");
  const auto most = find_number(n, "max_output_boxes_per_class", 0), threshold = find_number(n, "iou_threshold", 0),
             least = find_number(n, "score_threshold", -HUGE_VAL);
  if (boxes->dims.size() != 3 || scores->dims.size() != 3 || boxes->dims[2] != 4 || boxes->dims[0] != scores->dims[0] ||
      boxes->dims[1] != scores->dims[2] || boxes->dtype != DType::Float32 || !most || !threshold || !least)
    return {};
  const int64_t count = boxes->dims[1], classes = scores->dims[1];
  if (!is_feasible({scores->count(), std::min(count, static_cast<int64_t>(std::clamp(*most, 0.0, 1e15)))})) return {};
  const std::vector<double> rates = numbers_of(*scores);
  if (std::any_of(rates.begin(), rates.end(), [](double rate) { return std::isnan(rate); })) return {};
  std::vector<int64_t> chosen;
  for (int64_t line = 0; line < scores->dims[0] * classes; ++line) {
    const double* rate = rates.data() + line * count;
    std::vector<int64_t> left;
    for (int64_t i = 0; i < count; ++i) {
      if (!n.has("score_threshold") || rate[i] > *least) left.push_back(i);
    }
    std::stable_sort(left.begin(), left.end(), [&](int64_t a, int64_t b) { return rate[a] > rate[b]; });
    std::vector<Box> taken;
    for (const int64_t i : left) {
      if (static_cast<double>(taken.size()) >= *most) break;
      const Box box = box_at(*boxes, line / classes * count + i, n.flag("center_point_box"));
      const auto hides = [&](const Box& other) { return overlap(box, other, static_cast<float>(*threshold)); };
      if (std::any_of(taken.begin(), taken.end(), hides)) continue;
      taken.push_back(box);
      chosen.insert(chosen.end(), {line / classes, line % classes, i});
    }
  }
  return ints_tensor(chosen, {static_cast<int64_t>(chosen.size() / 3), 3});
}

}  // namespace tonnx
