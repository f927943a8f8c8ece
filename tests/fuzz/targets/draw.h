// row_cases.h - what a file may say of an operator, true or not: numbers, sizes, types and tensors that are drawn, and
// a runner that draws cases for every row of a table.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tonnx::fuzz {

enum class Types { All, OfPyTorch };  // of elements

/// One case, which its seed repeats. Most of what it gives fits together, so that some of it is believed.
class Draw {
 public:
  explicit Draw(uint32_t seed, Types types = Types::All);

  uint32_t below(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  bool one_in(uint32_t count) { return below(count) == 0; }
  template <class T, size_t kCount>
  const T& of(const T (&all)[kCount]) {
    return all[below(kCount)];
  }

  int64_t integer();
  double real();
  std::string text();
  DType dtype();
  Dim size();
  /// Mostly as many as `usual`.
  std::vector<int64_t> integers(size_t usual);
  /// Mostly of the type that the tensors of this case have.
  Type tensor_type();
  Type usual_type() const { return usual_; }
  size_t usual_rank() const { return usual_.shape->size(); }
  /// Of that type where its sizes are small numbers, and of another elsewhere.
  TensorPtr constant(const Type& type);

 private:
  Shape shape(size_t rank);

  std::mt19937 random_;
  Types types_;
  bool is_small_;  // sizes are small numbers
  Type usual_;
};

}  // namespace tonnx::fuzz
