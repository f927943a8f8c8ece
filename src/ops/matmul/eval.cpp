// eval.cpp - evaluation of matrix products and determinants.
#include "ops/matmul/eval.h"

#include <cmath>

#include "base/budget.h"
#include "ops/frame/eval_map.h"

namespace tonnx {

namespace {

constexpr int64_t kMostProducts = int64_t{1} << 29, kMostNumbers = int64_t{1} << 25;

}  // namespace

bool is_worth_product(int64_t batches, int64_t rows, int64_t inner, int64_t columns) {
  int64_t work = 1;
  for (const int64_t size : {batches, rows, inner, columns}) {
    if (size == 0) return true;
    if (__builtin_mul_overflow(work, size, &work)) return false;
  }
  return work <= kMostProducts && rows * inner <= kMostNumbers && inner * columns <= kMostNumbers &&
         budget().try_take(Resource::Steps, work);
}

template <class T>
void add_product(const T* a, const T* b, T* c, int64_t rows, int64_t inner, int64_t columns) {
  // some columns at a time, packed one behind the other, and four rows, whose sums stay in the nearest cache
  constexpr int64_t kColumns = 256, kRows = 4;
  const int64_t width = std::min(kColumns, columns);  // a long product of few columns needs no more room than they do
  std::vector<T> panel(static_cast<size_t>(inner * width));
  for (int64_t first = 0; first < columns; first += kColumns) {
    const int64_t count = std::min(kColumns, columns - first);
    for (int64_t k = 0; k < inner; ++k)
      std::copy(b + k * columns + first, b + k * columns + first + count, panel.data() + k * width);
    const auto use = [&](int64_t begin, int64_t end) {
      T sums[kRows][kColumns];
      for (int64_t i = begin; i < end; i += kRows) {
        const int64_t taken = std::min(kRows, end - i);
        for (int64_t r = 0; r < kRows; ++r) std::fill(sums[r], sums[r] + kColumns, T{});
        for (int64_t k = 0; k < inner; ++k) {
          const T* __restrict line = panel.data() + k * width;
          T f[kRows];
          for (int64_t r = 0; r < kRows; ++r) f[r] = r < taken ? a[(i + r) * inner + k] : T{};
          for (int64_t j = 0; j < width; ++j) {
            const T element = line[j];
            sums[0][j] += f[0] * element;
            sums[1][j] += f[1] * element;
            sums[2][j] += f[2] * element;
            sums[3][j] += f[3] * element;
          }
        }
        for (int64_t r = 0; r < taken; ++r) {
          for (int64_t j = 0; j < count; ++j) c[(i + r) * columns + first + j] += sums[r][j];
        }
      }
    };
    in_parallel(rows, use, inner * width);
  }
}
template void add_product(const double*, const double*, double*, int64_t, int64_t, int64_t);
template void add_product(const uint64_t*, const uint64_t*, uint64_t*, int64_t, int64_t, int64_t);

namespace {

template <class T>
std::vector<T> elements_of(const Tensor& x, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  std::vector<T> elements(static_cast<size_t>(count_of(dims)));
  NumberReader(x, dims, strides).read(0, static_cast<int64_t>(elements.size()), elements.data());
  return elements;
}

/// How the batches of a product of stacks of matrices lie.
struct Stacks {
  std::vector<int64_t> batch;
  std::vector<int64_t> a_dims, b_dims;  // with the dimension that a vector lacks
  int64_t rows, inner, columns;
  std::vector<int64_t> result_dims;
};

std::optional<Stacks> find_stacks(const Tensor& a, const Tensor& b) {
  if (a.dims.empty() || b.dims.empty()) return std::nullopt;
  Stacks s{.a_dims = a.dims, .b_dims = b.dims};
  if (a.dims.size() == 1) s.a_dims.insert(s.a_dims.begin(), 1);
  if (b.dims.size() == 1) s.b_dims.push_back(1);
  const auto batch = broadcast_dims({s.a_dims.begin(), s.a_dims.end() - 2}, {s.b_dims.begin(), s.b_dims.end() - 2});
  s.rows = s.a_dims[s.a_dims.size() - 2];
  s.inner = s.a_dims.back();
  s.columns = s.b_dims.back();
  if (!batch || s.b_dims[s.b_dims.size() - 2] != s.inner) return std::nullopt;
  s.batch = *batch;
  if (!is_worth_product(count_of(s.batch), s.rows, s.inner, s.columns)) return std::nullopt;
  s.result_dims = s.batch;
  if (a.dims.size() > 1) s.result_dims.push_back(s.rows);
  if (b.dims.size() > 1) s.result_dims.push_back(s.columns);
  return s;
}

std::vector<int64_t> batch_places(const std::vector<int64_t>& dims, const std::vector<int64_t>& batch) {
  const std::vector<int64_t> own(dims.begin(), dims.end() - 2);
  std::vector<int64_t> places(static_cast<size_t>(count_of(batch)));
  Walk(batch, broadcast_strides(own, batch)).for_each([&](int64_t i, int64_t from) {
    places[static_cast<size_t>(i)] = from;
  });
  return places;
}

template <class T>
TensorPtr product(const Stacks& s, const std::vector<T>& a, const std::vector<T>& b, DType to) {
  NewTensor result(to, s.result_dims);
  const std::vector<int64_t> from_a = batch_places(s.a_dims, s.batch), from_b = batch_places(s.b_dims, s.batch);
  std::vector<T> sums(static_cast<size_t>(s.rows * s.columns));
  for (size_t i = 0; i < from_a.size() && !sums.empty(); ++i) {
    std::fill(sums.begin(), sums.end(), T{});
    add_product(a.data() + from_a[i] * s.rows * s.inner, b.data() + from_b[i] * s.inner * s.columns, sums.data(),
                s.rows, s.inner, s.columns);
    const auto count = static_cast<int64_t>(sums.size());
    store_numbers(to, result.data(), static_cast<int64_t>(i) * count, count, sums.data());
  }
  return result.done();
}

template <class T>
std::vector<T> all_of(const Tensor& x) {
  std::vector<T> elements(static_cast<size_t>(x.count()));
  load_numbers(x, 0, 1, x.count(), elements.data());
  return elements;
}

bool is_size_fine(const Tensor& a, const Tensor& b) { return a.count() <= kMostNumbers && b.count() <= kMostNumbers; }

}  // namespace

Results eval_matmul(const NodeView& n) {
  const Tensor &a = *n.node().input(0)->constant, &b = *n.node().input(1)->constant;
  if (a.dtype != b.dtype || !contains(kComputed, a.dtype) || a.dtype == DType::Bool || !is_size_fine(a, b)) return {};
  const auto stacks = find_stacks(a, b);
  if (!stacks) return {};
  if (is_float(a.dtype)) return product(*stacks, all_of<double>(a), all_of<double>(b), a.dtype);
  return product(*stacks, all_of<uint64_t>(a), all_of<uint64_t>(b), a.dtype);
}

namespace {

/// The elements less their zero point, which is one number, or one for each row or column.
std::optional<std::vector<uint64_t>> centred(const Tensor& x, const std::vector<int64_t>& dims, const Value* zero_point,
                                             bool by_row) {
  std::vector<uint64_t> numbers = all_of<uint64_t>(x);
  if (zero_point == nullptr) return numbers;
  const Tensor& zero = *zero_point->constant;
  if (zero.dtype != x.dtype) return std::nullopt;
  std::vector<int64_t> zero_dims = zero.dims;
  if (zero.count() == 1) {
    zero_dims.clear();
  } else if (zero.dims.size() == 1) {
    zero_dims = by_row ? std::vector<int64_t>{zero.dims[0], 1} : std::vector<int64_t>{zero.dims[0]};
  }
  if (broadcast_dims(zero_dims, dims) != dims) return std::nullopt;
  const std::vector<uint64_t> zeros = elements_of<uint64_t>(zero, dims, broadcast_strides(zero_dims, dims));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] -= zeros[i];
  return numbers;
}

}  // namespace

Results eval_matmul_integer(const NodeView& n) {
  const Tensor &a = *n.find_constant("A"), &b = *n.find_constant("B");
  if (!is_integer(a.dtype) || !is_integer(b.dtype) || info(a.dtype).bits != 8 || info(b.dtype).bits != 8 ||
      !is_size_fine(a, b))
    return {};
  const auto stacks = find_stacks(a, b);
  if (!stacks) return {};
  const auto left = centred(a, stacks->a_dims, n.value("a_zero_point"), true),
             right = centred(b, stacks->b_dims, n.value("b_zero_point"), false);
  return left && right ? Results(product(*stacks, *left, *right, DType::Int32)) : Results();
}

/// One scale for each tensor; the whole sum is scaled and rounded once.
Results eval_qlinear_matmul(const NodeView& n) {
  const Tensor &a = *n.find_constant("a"), &b = *n.find_constant("b"), &zero = *n.find_constant("y_zero_point");
  double factor = 1;
  const bool is_single = n.dtype("y_scale") == DType::Float32;
  for (const Tensor* x : {&a, &b, &zero}) {
    if (!is_integer(x->dtype) || info(x->dtype).bits != 8) return {};
  }
  for (const char* name : {"a_scale", "b_scale", "y_scale"}) {
    const TensorPtr scale = n.find_constant(name);
    if (scale->count() != 1 || !is_float(scale->dtype) || scale->dtype != n.dtype("y_scale")) return {};
    const double number = element_as_double(*scale, 0);
    factor = name[0] == 'y' ? factor / number : factor * number;
    if (is_single) factor = static_cast<float>(factor);
  }
  const auto stacks = find_stacks(a, b);
  if (!stacks || !is_size_fine(a, b) || zero.count() != 1 || !std::isfinite(factor)) return {};
  const auto left = centred(a, stacks->a_dims, n.value("a_zero_point"), true),
             right = centred(b, stacks->b_dims, n.value("b_zero_point"), false);
  if (!left || !right) return {};
  const TensorPtr sums = product(*stacks, *left, *right, DType::Int32);
  const double offset = element_as_double(zero, 0), low = zero.dtype == DType::Int8 ? -128 : 0;
  return mapped<double>(*sums, zero.dtype, [=](double sum) {
    const double scaled = is_single ? static_cast<float>(sum) * static_cast<float>(factor) : sum * factor;
    return std::clamp(std::nearbyint(scaled) + offset, low, low + 255);
  });
}

Results eval_gemm(const NodeView& n) {
  const Tensor &a = *n.find_constant("A"), &b = *n.find_constant("B");
  if (a.dtype != b.dtype || !is_float(a.dtype) || !contains(kComputed, a.dtype) || a.dims.size() != 2 ||
      b.dims.size() != 2 || !is_size_fine(a, b))
    return {};
  const auto transposed = [](const Tensor& x, bool turn, std::vector<int64_t>& dims) {
    std::vector<int64_t> strides = strides_of(x.dims);
    dims = x.dims;
    if (turn) {
      std::swap(dims[0], dims[1]);
      std::swap(strides[0], strides[1]);
    }
    return elements_of<double>(x, dims, strides);
  };
  std::vector<int64_t> a_dims, b_dims;
  std::vector<double> left = transposed(a, n.flag("transA"), a_dims);
  const std::vector<double> right = transposed(b, n.flag("transB"), b_dims);
  if (a_dims[1] != b_dims[0] || !is_worth_product(1, a_dims[0], a_dims[1], b_dims[1])) return {};
  const std::vector<int64_t> dims{a_dims[0], b_dims[1]};
  const double alpha = float_attribute(n, "alpha"), beta = float_attribute(n, "beta");
  std::vector<double> sums(static_cast<size_t>(count_of(dims)));
  add_product(left.data(), right.data(), sums.data(), a_dims[0], a_dims[1], b_dims[1]);
  if (alpha != 1) {
    for (double& each : sums) each *= alpha;
  }
  if (n.has("C") && beta != 0) {
    const Tensor& c = *n.find_constant("C");
    if (broadcast_dims(c.dims, dims) != dims || c.dtype != a.dtype) return {};
    const std::vector<double> added = elements_of<double>(c, dims, broadcast_strides(c.dims, dims));
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += beta * added[i];
  }
  return tensor_of(a.dtype, dims, sums);
}

namespace {

/// By elimination, with the largest pivot of each column.
double determinant(std::vector<double> m, size_t size) {
  double result = 1;
  for (size_t column = 0; column < size; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < size; ++row) {
      if (std::fabs(m[row * size + column]) > std::fabs(m[pivot * size + column])) pivot = row;
    }
    const double head = m[pivot * size + column];
    if (head == 0) return 0;
    if (pivot != column) {
      std::swap_ranges(&m[pivot * size], &m[pivot * size] + size, &m[column * size]);
      result = -result;
    }
    result *= head;
    for (size_t row = column + 1; row < size; ++row) {
      const double factor = m[row * size + column] / head;
      for (size_t k = column; k < size; ++k) m[row * size + k] -= factor * m[column * size + k];
    }
  }
  return result;
}

}  // namespace

Results eval_det(const NodeView& n) {
  constexpr int64_t kLargest = 256;
  const Tensor& x = *n.node().input(0)->constant;
  const size_t rank = x.dims.size();
  if (!is_float(x.dtype) || rank < 2 || x.dims[rank - 1] != x.dims[rank - 2] || x.dims[rank - 1] > kLargest) return {};
  if (x.count() > kMostNumbers || x.count() * x.dims[rank - 1] > kMostProducts ||
      !budget().try_take(Resource::Steps, x.count() * x.dims[rank - 1]))
    return {};
  NewTensor result(x.dtype, {x.dims.begin(), x.dims.end() - 2});
  const int64_t count = x.dims[rank - 1] * x.dims[rank - 1];
  for (int64_t i = 0; i < result.count(); ++i) {
    std::vector<double> matrix(static_cast<size_t>(count));
    load_numbers(x, i * count, 1, count, matrix.data());
    result.set(i, determinant(std::move(matrix), static_cast<size_t>(x.dims[rank - 1])));
  }
  return result.done();
}

}  // namespace tonnx
