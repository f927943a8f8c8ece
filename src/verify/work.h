// work.h - how much a comparison may compute. No clock is asked: a slow or a busy machine comes to the same verdict.
#pragma once
#include <algorithm>
#include <limits>

namespace tonnx::judge {

// Seconds of a usual processor: one core of a computer of today.
constexpr double kElementWork = 1e-8;   // made, and written
constexpr double kValueWork = 2e-3;     // one value inside a model, fetched and sketched
constexpr double kComparedWork = 1e-7;  // for each element of two values that are compared

class Work {
 public:
  explicit Work(double seconds = std::numeric_limits<double>::infinity()) : most_(seconds) {}

  void take(double seconds) { taken_ += seconds; }
  double taken() const { return taken_; }
  double left() const { return std::max(most_ - taken_, 0.0); }
  bool is_spent() const { return taken_ >= most_; }

 private:
  double most_, taken_ = 0;
};

}  // namespace tonnx::judge
