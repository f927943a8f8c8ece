// eval.cpp - evaluation of RNN, GRU and LSTM, step by step.
#include <algorithm>
#include <cmath>

#include "ops/frame/eval_elements.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/rows.h"

namespace tonnx {
namespace {

double applied(const CellActivation& f, double x) {
  if (f.name == "Tanh") return std::tanh(x);
  if (f.name == "Sigmoid") return 1 / (1 + std::exp(-x));
  if (f.name == "Relu") return x < 0 ? 0 : x;
  if (f.name == "Affine") return f.alpha * x + f.beta;
  if (f.name == "LeakyRelu") return x < 0 ? f.alpha * x : x;
  if (f.name == "ThresholdedRelu") return x > f.alpha ? x : 0;
  if (f.name == "ScaledTanh") return f.alpha * std::tanh(f.beta * x);
  if (f.name == "HardSigmoid") return std::clamp(f.alpha * x + f.beta, 0.0, 1.0);
  if (f.name == "Elu") return x < 0 ? f.alpha * std::expm1(x) : x;
  if (f.name == "Softsign") return x / (1 + std::fabs(x));
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

/// The numbers of one direction.
class DirectionOfCell {
 public:
  DirectionOfCell(const NodeView& n, const Cell& cell, int64_t direction)
      : cell_(cell), hidden_(cell.hidden), activations_(cell.activations_of(direction)) {
    const auto part = [&](const char* name) {
      const TensorPtr all = n.find_constant(name);
      if (!all) return std::vector<double>();
      const std::vector<double> numbers = numbers_of(*all);
      const auto size = static_cast<std::ptrdiff_t>(numbers.size()) / cell.directions;
      return std::vector<double>(numbers.begin() + direction * size, numbers.begin() + (direction + 1) * size);
    };
    weight_ = part("W");
    recurrent_ = part("R");
    bias_ = part("B");
    if (bias_.empty()) bias_.resize(static_cast<size_t>(2 * cell.gates() * hidden_));
    if (cell.kind == CellKind::Lstm) peepholes_ = part("P");
    inputs_ = static_cast<int64_t>(weight_.size()) / (cell.gates() * hidden_);
  }

  /// The next h and c, in place.
  void step(const double* x, std::vector<double>& h, std::vector<double>& c) const {
    if (cell_.kind == CellKind::Lstm) return lstm(x, h, c);
    if (cell_.kind == CellKind::Gru) return gru(x, h);
    std::vector<double> next(h.size());
    for (int64_t i = 0; i < hidden_; ++i)
      next[static_cast<size_t>(i)] = active(0, from_x(0, i, x) + from_h(0, i, h) + bias(1, 0, i));
    h = std::move(next);
  }

 private:
  double active(size_t number, double x) const {
    if (cell_.clip) x = std::clamp(x, -*cell_.clip, *cell_.clip);
    return applied(activations_[number], x);
  }
  double bias(int64_t side, int64_t gate, int64_t i) const {
    return bias_[static_cast<size_t>((side * cell_.gates() + gate) * hidden_ + i)];
  }
  double from_x(int64_t gate, int64_t i, const double* x) const {
    const double* row = weight_.data() + (gate * hidden_ + i) * inputs_;
    double sum = bias(0, gate, i);
    for (int64_t k = 0; k < inputs_; ++k) sum += row[k] * x[k];
    return sum;
  }
  double from_h(int64_t gate, int64_t i, const std::vector<double>& h) const {
    const double* row = recurrent_.data() + (gate * hidden_ + i) * hidden_;
    double sum = 0;
    for (int64_t k = 0; k < hidden_; ++k) sum += row[k] * h[static_cast<size_t>(k)];
    return sum;
  }
  double peephole(int64_t gate, int64_t i) const {
    return peepholes_.empty() ? 0 : peepholes_[static_cast<size_t>(gate * hidden_ + i)];
  }

  void gru(const double* x, std::vector<double>& h) const {
    std::vector<double> z(h.size()), reset(h.size()), gated(h.size());
    for (int64_t i = 0; i < hidden_; ++i) {
      const auto at = static_cast<size_t>(i);
      z[at] = active(0, from_x(0, i, x) + from_h(0, i, h) + bias(1, 0, i));
      reset[at] = active(0, from_x(1, i, x) + from_h(1, i, h) + bias(1, 1, i));
      gated[at] = reset[at] * h[at];
    }
    std::vector<double> next(h.size());
    for (int64_t i = 0; i < hidden_; ++i) {
      const auto at = static_cast<size_t>(i);
      const double recurrent = cell_.linear_before_reset ? reset[at] * (from_h(2, i, h) + bias(1, 2, i))
                                                         : from_h(2, i, gated) + bias(1, 2, i);
      next[at] = (1 - z[at]) * active(1, from_x(2, i, x) + recurrent) + z[at] * h[at];
    }
    h = std::move(next);
  }

  void lstm(const double* x, std::vector<double>& h, std::vector<double>& c) const {
    std::vector<double> next(h.size());
    for (int64_t i = 0; i < hidden_; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto gate = [&](int64_t number) {
        return from_x(number, i, x) + from_h(number, i, h) + bias(1, number, i);
      };
      // the gates are i, o, f and c, the peepholes those of i, o and f
      const double in = active(0, gate(0) + peephole(0, i) * c[at]);
      const double forget = cell_.input_forget ? 1 - in : active(0, gate(2) + peephole(2, i) * c[at]);
      c[at] = forget * c[at] + in * active(1, gate(3));
      const double out = active(0, gate(1) + peephole(1, i) * c[at]);
      next[at] = out * applied(activations_[2], c[at]);
    }
    h = std::move(next);
  }

  const Cell& cell_;
  int64_t hidden_, inputs_ = 0;
  std::vector<CellActivation> activations_;
  std::vector<double> weight_, recurrent_, bias_, peepholes_;
};

}  // namespace

Results eval_recurrent(const NodeView& n) {
  if (!has_plain_inputs(n)) return {};
  const TensorPtr x = n.find_constant("X"), lengths = n.find_constant("sequence_lens");
  if (!is_float(x->dtype) || !is_plain_number(x->dtype) || x->dims.size() != 3) return {};
  const Cell cell = cell_of(n);
  const bool is_batch_first = cell.is_batch_first;
  const int64_t steps = x->dims[is_batch_first ? 1 : 0], batch = x->dims[is_batch_first ? 0 : 1], inputs = x->dims[2];
  const int64_t hidden = cell.hidden, directions = cell.directions;
  if (steps == 0 || !is_feasible({steps, batch, directions, cell.gates(), hidden, inputs + hidden})) return {};
  const std::vector<double> numbers = numbers_of(*x);
  const auto states = [&](const char* name) {
    const TensorPtr given =
        cell.kind == CellKind::Lstm || std::string_view(name) == "initial_h" ? n.find_constant(name) : nullptr;
    return given ? numbers_of(*given) : std::vector<double>(static_cast<size_t>(directions * batch * hidden));
  };
  std::vector<double> h = states("initial_h"), c = states("initial_c");
  std::vector<double> y(static_cast<size_t>(steps * directions * batch * hidden));
  for (int64_t d = 0; d < directions; ++d) {
    const DirectionOfCell direction(n, cell, d);
    const bool is_backwards = cell.is_reverse || d == 1;
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t length = lengths ? element_as_int(*lengths, b) : steps;
      if (length < 1 || length > steps) return {};
      const auto place = static_cast<std::ptrdiff_t>((is_batch_first ? b * directions + d : d * batch + b) * hidden);
      std::vector<double> now(h.begin() + place, h.begin() + place + hidden),
          memory(c.begin() + place, c.begin() + place + hidden);
      for (int64_t i = 0; i < length; ++i) {
        const int64_t t = is_backwards ? length - 1 - i : i;
        direction.step(numbers.data() + (is_batch_first ? b * steps + t : t * batch + b) * inputs, now, memory);
        const int64_t to = is_batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
        std::copy(now.begin(), now.end(), y.begin() + to * hidden);
      }
      std::copy(now.begin(), now.end(), h.begin() + place);
      std::copy(memory.begin(), memory.end(), c.begin() + place);
    }
  }
  const std::vector<int64_t> last =
      is_batch_first ? std::vector{batch, directions, hidden} : std::vector{directions, batch, hidden};
  Results results(tensor_of(
      x->dtype,
      is_batch_first ? std::vector{batch, steps, directions, hidden} : std::vector{steps, directions, batch, hidden},
      y));
  results.push_back(tensor_of(x->dtype, last, h));
  if (cell.kind == CellKind::Lstm) results.push_back(tensor_of(x->dtype, last, c));
  return results;
}

}  // namespace tonnx
