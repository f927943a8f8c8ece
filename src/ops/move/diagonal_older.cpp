// diagonal_older.cpp - Trilu in operators that older opsets have.
#include "base/error.h"
#include "ops/frame/expansion.h"
#include "ops/move/rows.h"

namespace tonnx {

/// Keeps what lies on one side of a diagonal: the numbers of rows and columns are compared.
bool trilu_in_older(const NodeView& n, OnnxEdit& edit) {
  Expansion make(edit);
  Value *x = edit.node().input(0), *k = edit.node().input(1);
  const int64_t rank = n.rank("input");
  require(rank >= 2, "a matrix has {} dimensions", rank);
  const DType dtype = n.dtype("input");
  Value* rows = make.unsqueeze(make.range(make.size(x, rank - 2)), {1});
  Value* columns = make.range(make.size(x, rank - 1));
  Value* diagonal = k ? make("Add", {rows, k}) : rows;
  Value* outside = n.flag("upper") ? make("Greater", {diagonal, columns}) : make("Greater", {columns, diagonal});
  if (dtype == DType::Bool) return edit.replace_with({make("And", {x, make("Not", {outside})})});
  return edit.replace_with({make("Where", {outside, make.number(dtype, 0), x})});
}

}  // namespace tonnx
