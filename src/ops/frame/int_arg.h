// int_arg.h - integers among the arguments of operators: numbers, or values of the graph that is being made.
#pragma once
#include <cstdint>

#include "base/checked_list.h"

namespace tonnx {

struct Value;

/// A number, or a value that is an integer: in aten one of Type::Kind::Int, in ONNX a list of one int64.
struct IntArg {
  IntArg(int64_t number) : number(number) {}  // NOLINT
  IntArg(int number) : number(number) {}      // NOLINT
  IntArg(Value* value) : value(value) {}      // NOLINT
  int64_t number = 0;
  Value* value = nullptr;

  bool is(int64_t n) const { return value == nullptr && number == n; }
};
using IntArgs = CheckedList<IntArg>;

}  // namespace tonnx
