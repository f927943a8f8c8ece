// solve_raise.cpp - inverses, solutions and determinants, which ONNX has no operators for: elimination in a Loop.
#include <cmath>

#include "base/checked_int.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/complex_parts.h"
#include "ops/linalg/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

constexpr DType kWide = DType::Float64;  // what is lost on the way does not show in 32 bits

Value* as_wide(const AtenNode& n, OnnxBuilder& onnx, Value* x) {
  if (!is_float(onnx.dtype(x))) n.cannot("matrices of {}", name_of(onnx.dtype(x)));
  return onnx.cast(x, kWide);
}

/// Appends the body of a Loop that runs `count` times over one state of that type.
struct LoopResult {
  Value* state;
  std::vector<Value*> collected;  // what each turn gave, one after the other
};
LoopResult repeat(OnnxBuilder& onnx, const IntArg& count, Value* state, const std::vector<Type>& collected,
                  const std::function<std::vector<Value*>(Value* turn, Value* state)>& turn) {
  Node* loop = onnx.node("Loop", {onnx.scalar(count), nullptr, state});
  const Type type = state->type;
  onnx.add_body(*loop, "body", [&](Graph& graph) {
    Value* at = graph.add_input(graph.unique_name("turn"), Type::tensor(DType::Int64, Shape{}));
    Value* goes_on = graph.add_input(graph.unique_name("goes_on"), Type::tensor(DType::Bool, Shape{}));
    Value* now = graph.add_input(graph.unique_name("state"), type);
    std::vector<Value*> results = turn(at, now);
    results.insert(results.begin(), onnx("Identity", {goes_on}));
    return results;
  });
  LoopResult result;
  result.state = onnx.add_output_to(*loop, "state", type);
  for (const Type& each : collected) result.collected.push_back(onnx.add_output_to(*loop, "collected", each));
  return result;
}

/// Rows of a matrix [..., n, m] by numbers [..., n].
Value* picked_rows(OnnxBuilder& onnx, Value* x, Value* rows) {
  const int64_t rank = onnx.rank(x);
  Value* all = onnx("Expand", {onnx.unsqueeze(rows, {rank - 1}), onnx("Shape", {x})});
  return onnx("GatherElements", {x, all}, {attr("axis", rank - 2)});
}

struct Eliminated {
  Value* matrix;             // [..., n, m]: the first n columns are those of the identity
  Value* pivots = nullptr;   // [n, ...], where they are wanted
  Value* swapped = nullptr;  // [n, ...] of bool: whether the turn swapped two rows
};

/// Gauss and Jordan's elimination with the largest pivot of each column. `for_pivots`: they are all that is wanted, and
/// one of zero divides nothing.
Eliminated eliminated(OnnxBuilder& onnx, Value* x, const IntArg& size, bool for_pivots) {
  const int64_t rank = onnx.rank(x);
  const Shape shape = onnx.shape(x);
  const Shape batch = shape.without_last(2);
  Shape stacked{shape[static_cast<size_t>(rank - 2)]};
  stacked.append(batch);
  Value* rows = onnx.range(size);
  Value* zero = onnx.number(kWide, 0);
  std::vector<Type> collected;
  if (for_pivots) collected = {Type::tensor(kWide, stacked), Type::tensor(DType::Bool, stacked)};
  const LoopResult done = repeat(onnx, size, x, collected, [&](Value* turn, Value* m) {
    Value* column = onnx.gather(m, turn, rank - 1);  // [..., n]
    Value* open = onnx.where(onnx("Less", {rows, turn}), onnx.number(kWide, -1), onnx("Abs", {column}));
    Value* best = onnx("ArgMax", {open}, {attr("axis", rank - 2)});  // [..., 1]
    Value* order = onnx.where(onnx("Equal", {rows, turn}), best, onnx.where(onnx("Equal", {rows, best}), turn, rows));
    m = picked_rows(onnx, m, order);
    column = onnx.gather(m, turn, rank - 1);
    Value* list = onnx.unsqueeze(turn, {0});
    Value* row = onnx("Gather", {m, list}, {attr("axis", rank - 2)});         // [..., 1, m]
    Value* pivot = onnx("Gather", {column, list}, {attr("axis", rank - 2)});  // [..., 1]
    Value* divisor = for_pivots ? onnx.where(onnx("Equal", {pivot, zero}), onnx.number(kWide, 1), pivot) : pivot;
    row = onnx("Div", {row, onnx.unsqueeze(divisor, {rank - 1})});
    Value* factors = onnx.unsqueeze(column, {rank - 1});
    Value* is_own = onnx.unsqueeze(onnx("Equal", {rows, turn}), {1});
    Value* next = onnx.where(is_own, row, onnx("Sub", {m, onnx("Mul", {factors, row})}));
    if (!for_pivots) return std::vector<Value*>{next};
    Value* is_swapped = onnx("Not", {onnx("Equal", {best, turn})});
    return std::vector<Value*>{next, onnx.squeeze(pivot, {rank - 2}), onnx.squeeze(is_swapped, {rank - 2})};
  });
  if (!for_pivots) return {done.state};
  return {done.state, done.collected[0], done.collected[1]};
}

/// The identity, broadcast beside the matrices.
Value* identity_beside(OnnxBuilder& onnx, Value* x) {
  const Shape& shape = onnx.shape(x);
  Value* rows = onnx.range(onnx.size(x, onnx.rank(x) - 1));
  Value* one = onnx.cast(onnx("Equal", {onnx.unsqueeze(rows, {1}), rows}), onnx.dtype(x));
  return onnx.expand(one, shape);
}

/// The x of A x = b, for matrices b.
Value* solved(OnnxBuilder& onnx, Value* a, Value* b) {
  const int64_t last = onnx.rank(a) - 1;
  const IntArg size = onnx.size(a, last);
  Value* both = onnx.concat({a, b}, last);
  return onnx.slice(eliminated(onnx, both, size, false).matrix, last, size, kEnd);
}

Value* inverse(OnnxBuilder& onnx, Value* a) { return solved(onnx, a, identity_beside(onnx, a)); }

/// Both broadcast to the same sizes in front of the matrices.
Value* with_batch(OnnxBuilder& onnx, Value* x, const Shape& batch) {
  const Shape& own = onnx.shape(x);
  Shape shape = batch;
  shape.append(own.last(2));
  return onnx.expand(x, shape);
}

Value* no_errors(const AtenNode& n, OnnxBuilder& onnx, size_t i) {
  if (!n.wants_output(i)) return nullptr;
  return onnx.expand(onnx.integer(n.output_dtype(i), 0), n.output_shape(i));
}

Values raise_inverse(const AtenNode& n, OnnxBuilder& onnx) {
  const bool is_ex = n.node().op == "linalg_inv_ex";
  if (is_ex) n.ignore({"check_errors"});
  Value* y = onnx.cast(inverse(onnx, as_wide(n, onnx, n.input("A"))), n.output_dtype());
  return {y, is_ex ? no_errors(n, onnx, 1) : nullptr};
}

Value* swapped_last(OnnxBuilder& onnx, Value* x) { return onnx.swap_axes(x, onnx.rank(x) - 2, onnx.rank(x) - 1); }

/// A X = B, or, not from the left, X A = B. B may be a vector.
Value* solution(const AtenNode& n, OnnxBuilder& onnx, Value* a, Value* b, bool is_left, bool is_vector) {
  if (is_vector) b = onnx.unsqueeze(b, {onnx.rank(b)});
  if (!is_left) {
    a = swapped_last(onnx, a);
    b = swapped_last(onnx, b);
  }
  const Shape& result = n.output_shape();
  const Shape batch = result.without_last(is_vector ? 1 : 2);
  Value* y = solved(onnx, with_batch(onnx, a, batch), with_batch(onnx, b, batch));
  if (!is_left) y = swapped_last(onnx, y);
  if (is_vector) y = onnx.squeeze(y, {onnx.rank(y) - 1});
  return onnx.cast(y, n.output_dtype());
}

Values raise_solve(const AtenNode& n, OnnxBuilder& onnx) {
  const bool is_ex = n.node().op != "linalg_solve";
  if (is_ex) n.ignore({"check_errors"});
  // a B with one dimension less, whose sizes fit, is a batch of vectors
  const int64_t rank_a = n.rank("A"), rank_b = n.rank("B");
  const Shape &a = n.shape("A"), &b = n.shape("B");
  const bool is_vector = rank_b == 1 || (rank_b + 1 == rank_a && b == a.without_last(1));
  Value* y =
      solution(n, onnx, as_wide(n, onnx, n.input("A")), as_wide(n, onnx, n.input("B")), n.flag("left"), is_vector);
  Values results{y};
  for (size_t i = 1; i < n.output_count(); ++i)
    results.push_back(i + 1 == n.output_count() ? no_errors(n, onnx, i) : nullptr);
  return results;
}

/// What is on the other side of the diagonal does not count, nor does the diagonal where it is said to be ones.
Value* triangle(const AtenNode& n, OnnxBuilder& onnx, Value* x, bool upper) {
  x = onnx("Trilu", {x}, {attr("upper", int64_t{upper})});
  if (!n.flag("unitriangular")) return x;
  Value* rows = onnx.range(onnx.size(x, onnx.rank(x) - 1));
  Value* is_diagonal = onnx("Equal", {onnx.unsqueeze(rows, {1}), rows});
  return onnx.where(is_diagonal, onnx.number(onnx.dtype(x), 1), x);
}

}  // namespace

Values raise_solve_triangular(const AtenNode& n, OnnxBuilder& onnx) {
  Value* a = triangle(n, onnx, as_wide(n, onnx, n.input("self")), n.flag("upper"));
  return solution(n, onnx, a, as_wide(n, onnx, n.input("B")), n.flag("left"), false);
}

namespace {

Values raise_triangular_solve(const AtenNode& n, OnnxBuilder& onnx) {
  Value* a = triangle(n, onnx, as_wide(n, onnx, n.input("A")), n.flag("upper"));
  if (n.flag("transpose")) a = swapped_last(onnx, a);
  Value* y = solution(n, onnx, a, as_wide(n, onnx, n.input("self")), true, false);
  return {y, n.wants_output(1) ? onnx.expand(n.input("A"), n.output_shape(1)) : nullptr};
}

struct Determinant {
  Value *sign, *logarithm;
};
/// The sign of the determinant and the logarithm of its absolute value, which does not leave the range of the type.
Determinant determinant(OnnxBuilder& onnx, Value* a) {
  const Eliminated done = eliminated(onnx, a, onnx.size(a, onnx.rank(a) - 1), true);
  Value* turned = onnx.where(done.swapped, onnx.number(kWide, -1), onnx.number(kWide, 1));
  Value* signs = onnx("Mul", {onnx("Sign", {done.pivots}), turned});
  return {onnx.reduce("ReduceProd", signs, {0}, false),
          onnx.reduce("ReduceSum", onnx("Log", {onnx("Abs", {done.pivots})}), {0}, false)};
}

}  // namespace

Values raise_det(const AtenNode& n, OnnxBuilder& onnx) {
  Value* a = n.input("A");
  Values results{onnx.dtype(a) == DType::Float32 ? onnx("Det", {a}) : nullptr};
  if (!results[0]) {
    const Determinant det = determinant(onnx, as_wide(n, onnx, a));
    results[0] = onnx.cast(onnx("Mul", {det.sign, onnx("Exp", {det.logarithm})}), n.output_dtype());
  }
  results.resize(n.output_count(), nullptr);
  return results;
}

namespace {

Values raise_slogdet(const AtenNode& n, OnnxBuilder& onnx) {
  const Determinant det = determinant(onnx, as_wide(n, onnx, n.input("A")));
  Values results{onnx.cast(det.sign, n.output_dtype(0)), onnx.cast(det.logarithm, n.output_dtype(1))};
  results.resize(n.output_count(), nullptr);
  return results;
}

/// NaN where the determinant is negative.
Values raise_logdet(const AtenNode& n, OnnxBuilder& onnx) {
  const Determinant det = determinant(onnx, as_wide(n, onnx, n.input("self")));
  Value* negative = onnx("Less", {det.sign, onnx.number(kWide, 0)});
  return onnx.cast(onnx.where(negative, onnx.number(kWide, std::nan("")), det.logarithm), n.output_dtype());
}

Values raise_tensorinv(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t split = n.i("ind");
  const Shape& shape = n.shape("self");
  Dim rows(1), columns(1);
  for (size_t i = 0; i < shape.size(); ++i) {
    Dim& side = static_cast<int64_t>(i) < split ? rows : columns;
    side = side * shape[i];
  }
  Value* flat = onnx.reshape(as_wide(n, onnx, n.input("self")), Shape{rows, columns});
  return onnx.cast(onnx.reshape(inverse(onnx, flat), n.output_shape()), n.output_dtype());
}

/// Column by column: the rest of the column under the root of its first element.
Value* cholesky(OnnxBuilder& onnx, Value* a) {
  const int64_t rank = onnx.rank(a);
  Value* rows = onnx.range(onnx.size(a, rank - 1));
  Value* zero = onnx.number(kWide, 0);
  Value* start = onnx("Mul", {a, zero});
  return repeat(onnx, onnx.size(a, rank - 1), start, {},
                [&](Value* turn, Value* l) {
                  Value* list = onnx.unsqueeze(turn, {0});
                  Value* row = onnx("Gather", {l, list}, {attr("axis", rank - 2)});  // [..., 1, n]
                  Value* known = onnx("MatMul", {l, swapped_last(onnx, row)});       // [..., n, 1]
                  Value* rest = onnx("Sub", {onnx("Gather", {a, list}, {attr("axis", rank - 1)}), known});
                  Value* first = onnx("Gather", {rest, list}, {attr("axis", rank - 2)});
                  Value* column = onnx("Div", {rest, onnx("Sqrt", {first})});
                  column = onnx.where(onnx.unsqueeze(onnx("Less", {rows, turn}), {1}), zero, column);
                  return std::vector<Value*>{onnx.where(onnx("Equal", {rows, turn}), column, l)};
                })
      .state;
}

Values raise_cholesky(const AtenNode& n, OnnxBuilder& onnx) {
  const bool is_ex = n.node().op == "linalg_cholesky_ex";
  if (is_ex) n.ignore({"check_errors"});
  Value* a = as_wide(n, onnx, n.input("self"));
  const bool upper = n.flag("upper");
  if (upper) a = swapped_last(onnx, a);  // of a symmetric matrix only the half that is asked for is read
  Value* l = cholesky(onnx, a);
  return {onnx.cast(upper ? swapped_last(onnx, l) : l, n.output_dtype()), is_ex ? no_errors(n, onnx, 1) : nullptr};
}

/// The symmetric matrix that such a factor is of.
Value* of_factor(const AtenNode& n, OnnxBuilder& onnx, Value* factor) {
  const bool upper = n.flag("upper");
  Value* half = onnx("Trilu", {factor}, {attr("upper", int64_t{upper})});
  Value* other = swapped_last(onnx, half);
  return upper ? onnx("MatMul", {other, half}) : onnx("MatMul", {half, other});
}

Values raise_cholesky_solve(const AtenNode& n, OnnxBuilder& onnx) {
  Value* a = of_factor(n, onnx, as_wide(n, onnx, n.input("input2")));
  return solution(n, onnx, a, as_wide(n, onnx, n.input("self")), true, false);
}

Values raise_cholesky_inverse(const AtenNode& n, OnnxBuilder& onnx) {
  return onnx.cast(inverse(onnx, of_factor(n, onnx, as_wide(n, onnx, n.input("self")))), n.output_dtype());
}

Value* power(OnnxBuilder& onnx, Value* x, int64_t exponent) {
  Value* result = nullptr;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = result ? onnx("MatMul", {result, x}) : x;
    if (exponent > 1) x = onnx("MatMul", {x, x});
  }
  return result;
}

Values raise_matrix_power(const AtenNode& n, OnnxBuilder& onnx) {
  const int64_t exponent = n.i("n");
  Value* x = n.input("self");
  const DType dtype = onnx.dtype(x);
  if (exponent == 0) return identity_beside(onnx, x);
  if (exponent > 0) {
    const DType kernel = !is_float(dtype) ? DType::Int64 : dtype;
    return onnx.cast(power(onnx, onnx.cast(x, kernel), exponent), dtype);
  }
  return onnx.cast(power(onnx, inverse(onnx, as_wide(n, onnx, x)), checked_sub(0, exponent)), dtype);
}

/// Halved until it is small, the series of exp, and squared as often as it was halved.
Values raise_matrix_exp(const AtenNode& n, OnnxBuilder& onnx) {
  Value* x = as_wide(n, onnx, n.input("self"));
  const auto size = onnx.shape(x).back().constant();
  if (size && *size == 0) return n.input("self");
  const int64_t rank = onnx.rank(x);
  Value* sums = onnx.reduce("ReduceSum", onnx("Abs", {x}), {rank - 2}, false);
  Value* norm = onnx.reduce("ReduceMax", sums, {}, false);
  // halved k times, the norm is at most a half
  Value* two = onnx.number(kWide, 2);
  Value* bits =
      onnx("Div", {onnx("Log", {onnx("Max", {norm, onnx.number(kWide, 0.25)})}), onnx.number(kWide, std::log(2.0))});
  Value* times = onnx("Max", {onnx("Add", {onnx("Ceil", {bits}), onnx.number(kWide, 1)}), onnx.number(kWide, 0)});
  x = onnx("Div", {x, onnx("Pow", {two, times})});
  Value* one = identity_beside(onnx, x);
  Value* y = one;
  constexpr int kTerms = 14;
  for (int k = kTerms; k > 0; --k) {  // 1 + x / 1 * (1 + x / 2 * (1 + ...))
    Value* factor = k == 1 ? x : onnx("Mul", {x, onnx.number(kWide, 1.0 / k)});
    y = onnx("Add", {one, k == kTerms ? factor : onnx("MatMul", {factor, y})});
  }
  Value* count = onnx.unsqueeze(onnx.cast(times, DType::Int64), {0});
  y = repeat(onnx, count, y, {}, [&](Value*, Value* now) {
        return std::vector<Value*>{onnx("MatMul", {now, now})};
      }).state;
  return onnx.cast(y, n.output_dtype());
}

constexpr AtenOp kAtenLinalgAten[] = {
    {.sig = "aten::linalg_inv(Tensor A) -> Tensor",
     .types = types_as_first,
     .layout = Layout::Own,
     .python = "torch.linalg.inv",
     .raise = raise_inverse},
    {.sig = "aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
     .types = types_with_info,
     .layout = Layout::Own,
     .python = "torch.linalg.inv_ex",
     .raise = raise_inverse},
    {.sig = "aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
     .types = types_solve,
     .layout = Layout::Own,
     .python = "torch.linalg.solve",
     .raise = raise_solve},
    {.sig = "aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, "
            "Tensor info)",
     .layout = Layout::Own,
     .python = "torch.linalg.solve_ex",
     .raise = raise_solve},
    {.sig = "aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, "
            "Tensor LU, Tensor pivots, Tensor info)",
     .layout = Layout::Own,
     .python = "torch.ops.aten._linalg_solve_ex",
     .raise = raise_solve},
    {.sig = "aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
            "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
     .layout = Layout::Own,
     .python = "torch.triangular_solve",
     .raise = raise_triangular_solve},
    {.sig = "aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
     .layout = Layout::Own,
     .python = "torch.ops.aten._linalg_det",
     .raise = raise_det},
    {.sig = "aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
     .types = types_slogdet,
     .python = "torch.linalg.slogdet",
     .raise = raise_slogdet},
    {.sig = "aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
     .layout = Layout::Own,
     .python = "torch.ops.aten._linalg_slogdet",
     .raise = raise_slogdet},
    {.sig = "aten::logdet(Tensor self) -> Tensor", .types = types_det, .python = "torch.logdet", .raise = raise_logdet},
    {.sig = "aten::linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
     .types = types_tensorinv,
     .layout = Layout::Own,
     .python = "torch.linalg.tensorinv",
     .raise = raise_tensorinv},
    {.sig = "aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Own,
     .python = "torch.linalg.cholesky",
     .raise = raise_cholesky},
    {.sig = "aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor "
            "info)",
     .types = types_with_info,
     .layout = Layout::Own,
     .python = "torch.linalg.cholesky_ex",
     .raise = raise_cholesky},
    {.sig = "aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
     .layout = Layout::Own,
     .python = "torch.cholesky_solve",
     .raise = raise_cholesky_solve},
    {.sig = "aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Own,
     .python = "torch.cholesky_inverse",
     .raise = raise_cholesky_inverse},
    {.sig = "aten::linalg_matrix_power(Tensor self, int n) -> Tensor",
     .types = types_as_self,
     .layout = Layout::Own,
     .python = "torch.linalg.matrix_power",
     .raise = raise_matrix_power,
     .raise_complex = raise_no_complex},
    {.sig = "aten::linalg_matrix_exp(Tensor self) -> Tensor",
     .types = types_as_self,
     .python = "torch.linalg.matrix_exp",
     .raise = raise_matrix_exp},
    {.sig = "aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor "
            "Vh)",
     .layout = Layout::Own,
     .python = "torch.linalg.svd",
     .note = kNoOperator},
    {.sig = "aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
     .python = "torch.linalg.svdvals",
     .note = kNoOperator},
    {.sig = "aten::linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)",
     .layout = Layout::Own,
     .python = "torch.linalg.eigh",
     .note = kNoOperator},
    {.sig = "aten::linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor",
     .python = "torch.linalg.eigvalsh",
     .note = kNoOperator},
    {.sig = "aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
     .layout = Layout::Own,
     .python = "torch.linalg.eig",
     .note = kNoOperator},
    {.sig = "aten::linalg_eigvals(Tensor self) -> Tensor", .python = "torch.linalg.eigvals", .note = kNoOperator},
    {.sig = "aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
     .layout = Layout::Own,
     .python = "torch.svd",
     .note = kNoOperator},
};

}  // namespace

extern const OpFamily kAtenLinalgOps;
constinit const OpFamily kAtenLinalgOps{"aten_linalg", {}, kAtenLinalgAten};

}  // namespace tonnx
