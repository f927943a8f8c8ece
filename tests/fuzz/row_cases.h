// row_cases.h - what a file may say of an operator, true or not: numbers, sizes, types and tensors that are drawn, and
// a runner that draws cases for every row of a table.
#pragma once
#include <cstdint>
#include <functional>
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

/// One row of a table, and what is done with a case of it: false where it was refused, and nothing is thrown but for
/// what no file may cause.
struct Row {
  std::string name;
  std::function<bool(uint32_t seed)> run;
};

/// Runs cases of each row in a process of its own, so that a crash is a failure that has a name. `rounds` cases for
/// each, or TONNX_FUZZ_ROUNDS; from seed TONNX_FUZZ_SEED on; only rows that TONNX_FUZZ_ROW is a part of. How many cases
/// were not refused.
size_t run_rows(const std::vector<Row>& rows, int rounds);

}  // namespace tonnx::fuzz
