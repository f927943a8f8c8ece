// origins.h - notes of what constants were made of, for those who want to take new values the way back.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"

namespace tonnx {

using Tensors = std::vector<TensorPtr>;

/// Constants that were computed from others.
struct Origin {
  std::string op;  // of ONNX; empty where no operator says what was done
  Tensors inputs;  // null where an optional one is absent
  Tensors results;
  std::vector<size_t> moved;  // the inputs whose elements the results have, unchanged
  /// Does the same to other tensors of the same sizes; moved ones may be integers.
  std::function<Tensors(const Tensors&)> compute;
  std::string name;  // of the value that the first result was made for
};

/// A constant that stands for another one, which was equal; `transposed`: to the other one with its dimensions swapped.
struct Equal {
  TensorPtr kept, dropped;
  bool transposed = false;
};

/// A number that code has, out of a constant.
struct NotedNumber {
  std::string node;  // what the node that needs it is called
  double number;
  TensorPtr constant;
};

/// What was noted, in the order in which it was done.
struct Origins {
  std::vector<Origin> computed;
  std::vector<Equal> equal;
  std::vector<NotedNumber> numbers;
};

/// The notes of this thread; null where nobody asks for any.
Origins* origins();

/// Notes that `result` has elements of `from` in other places: `move` gives the result for any elements.
void note_move(const TensorPtr& result, const TensorPtr& from, const std::function<TensorPtr(const Tensor&)>& move);
/// Notes that `result` has the elements of `from` as those of another type.
void note_cast(const TensorPtr& result, const TensorPtr& from);
/// Notes that one constant stands for another one too.
void note_equal(const TensorPtr& kept, const TensorPtr& dropped, bool transposed = false);

/// Notes that a node needs the only element of a constant as a number.
void note_number(std::string_view node, double number, const TensorPtr& constant);
/// Notes that `result` is the number of a node of that name.
void note_made_of_number(const TensorPtr& result, std::string_view node, double number);

/// Takes notes in this thread while it lives.
class OriginsScope {
 public:
  explicit OriginsScope(Origins& notes);
  ~OriginsScope();
  OriginsScope(const OriginsScope&) = delete;
  OriginsScope& operator=(const OriginsScope&) = delete;

 private:
  Origins* outer_;
};

}  // namespace tonnx
