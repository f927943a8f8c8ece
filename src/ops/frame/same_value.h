// same_value.h - rules of rows that say which of a node's inputs its first output is. Null: none of them.
#pragma once
#include "ops/frame/node_facts.h"
#include "ops/frame/op_def.h"

namespace tonnx {

/// Whether output 0 is of the type and shape that input 0 is of, and both are known.
bool keeps_type(const Node& node);

/// The first input, whatever else there is.
Value* same_as_first(const Node& node);
/// The first input where it has the shape of the output: for moves that keep the order of the elements, and reductions,
/// which are over axes of size 1 then.
Value* same_where_shape_stays(const Node& node);
/// Of one input: Concat, Sum, Max ...
Value* same_of_one(const Node& node);
/// Beside 0: Add, Or; on the right only: Sub
Value* same_beside_0(const Node& node);
Value* same_before_0(const Node& node);
/// Beside 1: Mul, And; on the right only: Div
Value* same_beside_1(const Node& node);
Value* same_before_1(const Node& node);
/// The operator twice: Not, Neg
Value* same_of_twice(const Node& node);
/// Relu and Abs of what is never negative
Value* same_of_positive(const Node& node);

}  // namespace tonnx
