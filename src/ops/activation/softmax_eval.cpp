// softmax_eval.cpp - evaluation of Softmax, LogSoftmax and Hardmax.
#include <cmath>

#include "ops/activation/rows.h"
#include "ops/frame/eval_lines.h"

namespace tonnx {
namespace {

double largest_of(const Line<double>& line) {
  double largest = line[0];
  for (int64_t i = 1; i < line.size; ++i) {
    if (line[i] > largest || std::isnan(line[i])) largest = line[i];
  }
  return largest;
}

/// After which steps floats of 16 bits are rounded is left to each engine, and the results differ.
bool is_short(const NodeView& n) {
  const DType dtype = n.node().input(0)->constant->dtype;
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

}  // namespace

Results eval_softmax(const NodeView& n) {
  if (is_short(n)) return {};
  return along_axis(n, [](const Line<double>& line) {
    const double largest = largest_of(line);
    double sum = 0;
    for (int64_t i = 0; i < line.size; ++i) sum += line[i] = std::exp(line[i] - largest);
    for (int64_t i = 0; i < line.size; ++i) line[i] /= sum;
  });
}

Results eval_log_softmax(const NodeView& n) {
  if (is_short(n)) return {};
  return along_axis(n, [](const Line<double>& line) {
    const double largest = largest_of(line);
    double sum = 0;
    for (int64_t i = 0; i < line.size; ++i) sum += std::exp(line[i] - largest);
    for (int64_t i = 0; i < line.size; ++i) line[i] = line[i] - largest - std::log(sum);
  });
}

Results eval_hardmax(const NodeView& n) {
  return along_axis(n, [](const Line<double>& line) {
    int64_t best = 0;
    for (int64_t i = 1; i < line.size; ++i) {
      if (line[i] > line[best] || (std::isnan(line[i]) && !std::isnan(line[best]))) best = i;
    }
    for (int64_t i = 0; i < line.size; ++i) line[i] = i == best ? 1 : 0;
  });
}

}  // namespace tonnx
