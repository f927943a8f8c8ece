// draws.cpp - draws inputs, and makes other inputs of them.
#include "verify/draws.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "verify/numbers.h"

namespace tonnx::judge {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"in [0, 1)",        "normal", "waves",
                                                    "pixels up to 255", "sparse", "small"};

int64_t between(std::mt19937_64& engine, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
}

/// A few sines along the longest dimension, each with its own phase elsewhere, as sound and images have them.
class Waves {
 public:
  Waves(std::mt19937_64& engine, const std::vector<int64_t>& dims) {
    const auto longest = std::max_element(dims.begin(), dims.end());
    for (auto at = dims.end(); at != longest && at != dims.begin();) {
      if (--at == longest) break;
      inner_ *= std::max<int64_t>(*at, 1);
    }
    if (longest != dims.end()) length_ = std::max<int64_t>(*longest, 1);
    std::uniform_real_distribution<double> paces(0.01, 1), phases(0, 2 * std::acos(-1.0));
    for (double& pace : pace_) pace = paces(engine);
    const int64_t count = std::max<int64_t>(count_of(dims), 1);
    phase_.resize(static_cast<size_t>(std::max<int64_t>(count / length_, 1)));
    for (double& phase : phase_) phase = phases(engine);
  }

  double at(int64_t place) const {
    const int64_t time = place / inner_ % length_;
    const double phase = phase_[static_cast<size_t>(place / (inner_ * length_) * inner_ + place % inner_)];
    double sum = 0;
    for (size_t k = 0; k < pace_.size(); ++k) {
      const double angle = static_cast<double>(time) * pace_[k] + static_cast<double>(k) * phase;
      sum += std::sin(angle) / static_cast<double>(k + 1);
    }
    return sum;
  }

 private:
  int64_t inner_ = 1, length_ = 1;
  std::array<double, 4> pace_{};
  std::vector<double> phase_;
};

void fill_floats(std::vector<double>& numbers, const std::vector<int64_t>& dims, int draw, std::mt19937_64& engine) {
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<double> normal;
  const size_t kind = static_cast<size_t>(draw) % kKinds.size();
  if (kind == 2) {
    const Waves waves(engine, dims);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = waves.at(static_cast<int64_t>(i)) + 0.01 * normal(engine);
    return;
  }
  for (double& number : numbers) {
    switch (kind) {
      case 0: number = uniform(engine); break;
      case 1: number = normal(engine); break;
      case 3: number = 255 * uniform(engine); break;
      case 4: number = uniform(engine) < 0.1 ? 4 * normal(engine) : 0; break;
      default: number = 0.05 * normal(engine);
    }
  }
}

/// All of it, then the beginning of each row.
void fill_mask(std::vector<double>& numbers, const std::vector<int64_t>& dims, int draw, std::mt19937_64& engine) {
  const auto row = static_cast<size_t>(dims.empty() ? 1 : std::max<int64_t>(dims.back(), 1));
  const auto size = static_cast<int64_t>(row);
  for (size_t start = 0; start < numbers.size(); start += row) {
    const auto end = static_cast<size_t>(draw == 0 ? size : between(engine, std::max<int64_t>(size / 2, 1), size));
    for (size_t i = 0; i < row && start + i < numbers.size(); ++i) numbers[start + i] = i < end ? 1 : 0;
  }
}

void fill_plainly(std::vector<double>& numbers, Fill fill) {
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = fill == Fill::Arange ? static_cast<double>(i) : fill == Fill::Ones ? 1 : 0;
}

void fill_randomly(std::vector<double>& numbers, DType dtype, const std::vector<int64_t>& dims, const InputHint& hint,
                   const Draw& draw) {
  constexpr int64_t kUsualLimit = 10;  // of integers of which nothing is known
  const char kind = info(dtype).kind;
  std::mt19937_64 engine(draw.seed);
  const bool is_small = dims.size() <= 1;
  if (draw.is_cautious && (kind == 'i' || kind == 'u')) {
    std::fill(numbers.begin(), numbers.end(), 1);
  } else if (!hint.choices.empty() && is_small) {
    std::fill(numbers.begin(), numbers.end(), hint.choices[static_cast<size_t>(draw.number) % hint.choices.size()]);
  } else if (kind == 'b' && is_small) {
    std::fill(numbers.begin(), numbers.end(), draw.number % 2 == 0 ? 1 : 0);
  } else if (hint.is_length) {
    const int64_t low = draw.number == 0 ? draw.length : std::max<int64_t>(draw.length / 2, 1);
    for (double& number : numbers) number = static_cast<double>(between(engine, low, draw.length));
  } else if (hint.is_mask) {
    fill_mask(numbers, dims, draw.number, engine);
  } else if (kind == 'f' && !hint.limit) {
    fill_floats(numbers, dims, draw.number, engine);
  } else {
    const int64_t limit = kind == 'b' ? 2 : std::max<int64_t>(hint.limit.value_or(kUsualLimit), 1);
    for (double& number : numbers) number = static_cast<double>(between(engine, 0, limit - 1));
  }
}

/// A tensor of these elements of another, by their numbers.
template <class From>
TensorPtr gathered(const Tensor& tensor, std::vector<int64_t> dims, From&& from) {
  const int64_t count = count_of(dims);
  const size_t size = info(tensor.dtype).bits / 8;
  ensure(size > 0, "elements smaller than a byte are gathered");
  std::vector<uint8_t> bytes(static_cast<size_t>(count) * size);
  for (int64_t i = 0; i < count; ++i) {
    const auto to = static_cast<size_t>(i) * size;
    std::memcpy(bytes.data() + to, tensor.data.data() + static_cast<size_t>(from(i)) * size, size);
  }
  auto result = std::make_shared<Tensor>();
  result->dtype = tensor.dtype;
  result->dims.assign(dims.begin(), dims.end());
  result->data = Bytes::own(std::move(bytes));
  return result;
}

}  // namespace

std::string_view title_of_draw(int number) { return kKinds[static_cast<size_t>(number) % kKinds.size()]; }

TensorPtr random_tensor(DType dtype, const std::vector<int64_t>& dims, const InputHint& hint, const Draw& draw) {
  require(is_number(dtype), "input '{}' is of {}: such an input cannot be random", hint.name, name_of(dtype));
  std::vector<double> numbers(static_cast<size_t>(count_of(dims)));
  if (draw.fill == Fill::Random) {
    fill_randomly(numbers, dtype, dims, hint, draw);
  } else {
    fill_plainly(numbers, draw.fill);
  }
  return tensor_of(dtype, dims, numbers);
}

TensorPtr spread(const TensorPtr& tensor, const std::vector<int64_t>& dims) {
  if (std::equal(dims.begin(), dims.end(), tensor->dims.begin(), tensor->dims.end())) return tensor;
  return gathered(*tensor, dims, [&](int64_t place) {
    int64_t from = 0, stride = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      from += place % dims[i] % std::max<int64_t>(tensor->dims[i], 1) * stride;
      place /= dims[i];
      stride *= tensor->dims[i];
    }
    return from;
  });
}

TensorPtr rolled(const TensorPtr& tensor, int64_t by) {
  const int64_t count = tensor->count();
  if (count == 0 || by == 0) return tensor;
  return gathered(*tensor, {tensor->dims.begin(), tensor->dims.end()},
                  [&](int64_t place) { return ((place - by) % count + count) % count; });
}

TensorPtr joined_along(const Tensors& parts, size_t axis) {
  std::vector<int64_t> dims(parts.front()->dims.begin(), parts.front()->dims.end());
  int64_t inner = 1, whole = 0;
  for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
  for (const TensorPtr& part : parts) whole += part->dims.at(axis);
  dims.at(axis) = whole;
  const size_t size = info(parts.front()->dtype).bits / 8;
  std::vector<uint8_t> bytes(static_cast<size_t>(count_of(dims)) * size);
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= dims[i];
  size_t at = 0;
  for (int64_t row = 0; row < outer; ++row) {
    for (const TensorPtr& part : parts) {
      const size_t length = static_cast<size_t>(part->dims[axis] * inner) * size;
      std::memcpy(bytes.data() + at, part->data.data() + static_cast<size_t>(row) * length, length);
      at += length;
    }
  }
  auto result = std::make_shared<Tensor>();
  result->dtype = parts.front()->dtype;
  result->dims.assign(dims.begin(), dims.end());
  result->data = Bytes::own(std::move(bytes));
  return result;
}

}  // namespace tonnx::judge
