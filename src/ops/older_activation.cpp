// older_activation.cpp - Gelu, Mish, HardSwish and Trilu in operators that older opsets have.
#include <cmath>

#include "ops/expansion.h"
#include "ops/older_forms.h"

namespace tonnx {

/// x * 0.5 * (1 + erf(x / sqrt(2))), or with tanh in its place.
bool gelu_in_older(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  const DType dtype = n.dtype("X");
  Value* x = edit.node().input(0);
  Value* curve = nullptr;
  if (n.s("approximate") == "tanh") {
    Value* cube = make("Pow", {x, make.number(dtype, 3)});
    Value* sum = make("Add", {x, make("Mul", {cube, make.number(dtype, 0.044715)})});
    curve = make("Tanh", {make("Mul", {sum, make.number(dtype, std::sqrt(2 / M_PI))})});
  } else {
    curve = make("Erf", {make("Div", {x, make.number(dtype, M_SQRT2)})});
  }
  Value* share = make("Mul", {make("Add", {curve, make.number(dtype, 1)}), make.number(dtype, 0.5)});
  return edit.replace_with({make("Mul", {x, share})});
}

bool mish_in_older(const NodeView&, OnnxEdit& edit) {
  Expansion make(edit);
  Value* x = edit.node().input(0);
  return edit.replace_with({make("Mul", {x, make("Tanh", {make("Softplus", {x})})})});
}

bool hard_swish_in_older(const NodeView&, OnnxEdit& edit) {
  Expansion make(edit);
  Value* x = edit.node().input(0);
  Value* share = make("HardSigmoid", {x}, {{"alpha", 1.0 / 6.0}, {"beta", 0.5}});
  return edit.replace_with({make("Mul", {x, share})});
}

/// Keeps what lies on one side of a diagonal: the numbers of rows and columns are compared.
bool trilu_in_older(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  Value *x = edit.node().input(0), *k = edit.node().input(1);
  const int64_t rank = n.rank("input");
  const DType dtype = n.dtype("input");
  Value* rows = make.unsqueeze(make.range(make.size(x, rank - 2)), {1});
  Value* columns = make.range(make.size(x, rank - 1));
  Value* diagonal = k ? make("Add", {rows, k}) : rows;
  Value* outside = n.flag("upper") ? make("Greater", {diagonal, columns}) : make("Greater", {columns, diagonal});
  if (dtype == DType::Bool) return edit.replace_with({make("And", {x, make("Not", {outside})})});
  return edit.replace_with({make("Where", {outside, make.number(dtype, 0), x})});
}

}  // namespace tonnx
