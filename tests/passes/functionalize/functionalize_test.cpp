// functionalize_test.cpp - writes to tensors and their views become values, and each aten operator has one name.
#include "checks.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

std::string printed(const std::string& body, bool is_functional) {
  Model model =
      parse_model("graph g { input %x: float32[4, 6] input %i: int32[4] input %d: float32[n, m]\n" + body + "}");
  if (!is_functional) functionalize(*model.graph);
  check_invariants(*model.graph);
  remove_dead_code(*model.graph);
  return print(model);
}

/// The second graph is what the first one means without writes. Nodes that nobody uses do not count.
void expect_functional(const std::string& body, const std::string& wanted) {
  EXPECT_EQ(printed(body, false), printed(wanted, true));
}

std::vector<std::string> written(const std::string& body) {
  Model model = parse_model(
      "graph g { input %x: float32[4, 6] input %y: float32[4, 6] const %b: float32[2]{0.0, 1.0}\n" + body + "}");
  return functionalize(*model.graph);
}

TEST(Functionalize, AWriteThroughViewsIsPutBackOnce) {
  // y[1:3, ::2] += 1
  expect_functional(R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %a: float32[2, 6] = aten::slice.Tensor(self=%y, start=1, end=3)
      %b: float32[2, 3] = aten::slice.Tensor(self=%a, dim=1, start=0, end=9223372036854775807, step=2)
      %add_: float32[2, 3] = aten::add_.Tensor(self=%b, other=1)
      %c: float32[2, 6] = aten::slice.Tensor(self=%y, start=1, end=3)
      %e: float32[2, 3] = aten::slice.Tensor(self=%c, dim=1, start=0, end=9223372036854775807, step=2)
      %copy_: float32[2, 3] = aten::copy_(self=%e, src=%add_)
      output %y)",
                    R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %a: float32[2, 6] = aten::slice.Tensor(self=%y, start=1, end=3)
      %b: float32[2, 3] = aten::slice.Tensor(self=%a, dim=1, start=0, end=9223372036854775807, step=2)
      %add_: float32[2, 3] = aten::add.Tensor(self=%b, other=1)
      %slice_scatter: float32[2, 6] = aten::slice_scatter(self=%a, src=%add_, dim=1, start=0, end=9223372036854775807, step=2)
      %slice_scatter_2: float32[4, 6] = aten::slice_scatter(self=%y, src=%slice_scatter, start=1, end=3)
      output %slice_scatter_2)");
}

TEST(Functionalize, WhatWasReadBeforeStaysAndOtherViewsSeeTheWrite) {
  expect_functional(R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %row: float32[6] = aten::select.int(self=%y, dim=0, index=0)
      %column: float32[4] = aten::select.int(self=%y, dim=1, index=0)
      %before: float32[4] = aten::neg(self=%column)
      %zero_: float32[6] = aten::zero_(self=%row)
      %after: float32[4] = aten::neg(self=%column)
      output %before output %after)",
                    R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %column: float32[4] = aten::select.int(self=%y, dim=1, index=0)
      %before: float32[4] = aten::neg(self=%column)
      %full: float32[6] = aten::full(size=[6], fill_value=0, dtype=float32)
      %select_scatter: float32[4, 6] = aten::select_scatter(self=%y, src=%full, dim=0, index=0)
      %select: float32[4] = aten::select.int(self=%select_scatter, dim=1, index=0)
      %after: float32[4] = aten::neg(self=%select)
      output %before output %after)");
}

TEST(Functionalize, MovesOfDimensionsAreUndone) {
  expect_functional(R"(
      %u: float32[1, 4, 6] = aten::unsqueeze(self=%x, dim=0)
      %p: float32[6, 1, 4] = aten::permute(self=%u, dims=[2, 0, 1])
      %s: float32[6, 4] = aten::squeeze.dim(self=%p, dim=1)
      %t: float32[4, 6] = aten::t(self=%s)
      %v: float32[24] = aten::view(self=%x, size=[-1])
      %relu_: float32[4, 6] = aten::relu_(self=%t)
      output %v)",
                    R"(
      %u: float32[1, 4, 6] = aten::unsqueeze(self=%x, dim=0)
      %p: float32[6, 1, 4] = aten::permute(self=%u, dims=[2, 0, 1])
      %s: float32[6, 4] = aten::squeeze.dim(self=%p, dim=1)
      %t: float32[4, 6] = aten::t(self=%s)
      %relu_: float32[4, 6] = aten::relu(self=%t)
      %transpose: float32[6, 4] = aten::transpose.int(self=%relu_, dim0=0, dim1=1)
      %unsqueeze: float32[6, 1, 4] = aten::unsqueeze(self=%transpose, dim=1)
      %permute: float32[1, 4, 6] = aten::permute(self=%unsqueeze, dims=[1, 2, 0])
      %squeeze: float32[4, 6] = aten::squeeze.dim(self=%permute, dim=0)
      %reshape: float32[24] = aten::reshape(self=%squeeze, shape=[-1])
      output %reshape)");
}

TEST(Functionalize, PartsOfASplitAreSlices) {
  expect_functional(R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %a: float32[4, 4], %b: float32[4, 2] = aten::split.Tensor(self=%y, split_size=4, dim=1)
      %p: float32[6], %q: float32[6], %r: float32[6], %s: float32[6] = aten::unbind.int(self=%y)
      %neg_: float32[4, 2] = aten::neg_(self=%b)
      %abs_: float32[6] = aten::absolute_(self=%q)
      output %y)",
                    R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %a: float32[4, 4], %b: float32[4, 2] = aten::split.Tensor(self=%y, split_size=4, dim=1)
      %neg_: float32[4, 2] = aten::neg(self=%b)
      %slice_scatter: float32[4, 6] = aten::slice_scatter(self=%y, src=%neg_, dim=1, start=4, end=6)
      %select: float32[6] = aten::select.int(self=%slice_scatter, dim=0, index=1)
      %abs_: float32[6] = aten::abs(self=%select)
      %select_scatter: float32[4, 6] = aten::select_scatter(self=%slice_scatter, src=%abs_, dim=0, index=1)
      output %select_scatter)");
}

TEST(Functionalize, ReshapeSharesMemoryWhereStridesAllowIt) {
  const std::string rows = R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %a: float32[2, 6] = aten::slice.Tensor(self=%y, start=1, end=3)
      %r: float32[12] = aten::reshape(self=%a, shape=[-1])
      %add_: float32[12] = aten::add_.Tensor(self=%r, other=1)
      output %y)";
  EXPECT_NE(printed(rows, false).find("slice_scatter"), std::string::npos);
  for (const std::string view :
       {"%a: float32[6, 4] = aten::t(self=%y)", "%a: float32[4, 2] = aten::slice.Tensor(self=%y, dim=1, end=2)"}) {
    const std::string copied = "%y: float32[4, 6] = aten::clone(self=%x)\n" + view + R"(
      %r: float32[24] = aten::reshape(self=%a, shape=[-1])
      %add_: float32[24] = aten::add_.Tensor(self=%r, other=1)
      output %y)";
    EXPECT_EQ(printed(copied, false), printed("%y: float32[4, 6] = aten::clone(self=%x) output %y", true)) << view;
  }
}

TEST(Functionalize, ElementwiseResultsLieAsTheirInputDoes) {
  // PyTorch gives neg(x.t()) the strides of x.t(), so that reshape has to copy
  const std::string body = R"(
      %t: float32[6, 4] = aten::t(self=%x)
      %y: float32[6, 4] = aten::neg(self=%t)
      %r: float32[24] = aten::reshape(self=%y, shape=[-1])
      %add_: float32[24] = aten::add_.Tensor(self=%r, other=1)
      output %y)";
  EXPECT_EQ(printed(body, false), printed(R"(
      %t: float32[6, 4] = aten::t(self=%x)
      %y: float32[6, 4] = aten::neg(self=%t)
      output %y)",
                                          true));
}

TEST(Functionalize, SymbolicSizes) {
  expect_functional(R"(
      %v: float32[m*n] = aten::view(self=%d, size=[-1])
      %r: float32[2] = aten::slice.Tensor(self=%v, end=2)
      %one: float32[2] = aten::fill_.Scalar(self=%r, value=1)
      %row: float32[m] = aten::select.int(self=%d, dim=0, index=0)
      %copy_: float32[n, m] = aten::copy_(self=%d, src=%row)
      output %d)",
                    R"(
      %v: float32[m*n] = aten::reshape(self=%d, shape=[-1])
      %full: float32[2] = aten::full(size=[2], fill_value=1, dtype=float32)
      %slice_scatter: float32[m*n] = aten::slice_scatter(self=%v, src=%full, end=2)
      %size: int = aten::sym_size.int(self=%d, dim=0)
      %size_2: int = aten::sym_size.int(self=%d, dim=1)
      %reshape: float32[n, m] = aten::reshape(self=%slice_scatter, shape=[%size, %size_2])
      %select: float32[m] = aten::select.int(self=%reshape, dim=0, index=0)
      %size_3: int = aten::sym_size.int(self=%reshape, dim=0)
      %expand: float32[n, m] = aten::expand(self=%select, size=[%size_3, -1])
      output %expand)");
}

TEST(Functionalize, MemoryKeepsItsType) {
  expect_functional(R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %eq_: float32[4, 6] = aten::eq_.Scalar(self=%y, other=0)
      %big: int64[4] = aten::to.dtype(self=%i, dtype=int64)
      %add_: int32[4] = aten::add_.Tensor(self=%i, other=%big)
      %neg: int32[4] = aten::neg(self=%i)
      %scalar: int64[] = aten::sum(self=%i)
      %mul_: int32[4] = aten::mul_.Tensor(self=%i, other=%scalar)
      %copy_: int32[4] = aten::copy_(self=%i, src=%big)
      output %y output %neg output %mul_)",
                    R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %eq: bool[4, 6] = aten::eq.Scalar(self=%y, other=0)
      %eq_: float32[4, 6] = aten::to.dtype(self=%eq, dtype=float32)
      %big: int64[4] = aten::to.dtype(self=%i, dtype=int64)
      %add: int64[4] = aten::add.Tensor(self=%i, other=%big)
      %add_: int32[4] = aten::to.dtype(self=%add, dtype=int32)
      %neg: int32[4] = aten::neg(self=%add_)
      %to: int32[4] = aten::to.dtype(self=%big, dtype=int32)
      output %eq_ output %neg output %to)");
}

TEST(Functionalize, OutArguments) {
  expect_functional(R"(
      %e: float32[0] = aten::empty.memory_format(size=[0])
      %add: float32[4, 6] = aten::add.out(self=%x, other=%x, out=%e)
      %z: float32[4] = aten::zeros(size=[4])
      %k: int64[4] = aten::zeros(size=[4], dtype=int64)
      %v: float32[4], %w: int64[4] = aten::max.dim_max(self=%add, dim=1, max=%z, max_values=%k)
      %half: float64[4, 6] = aten::zeros(size=[4, 6], dtype=float64)
      %mul: float64[4, 6] = aten::multiply.out(self=%x, other=%x, out=%half)
      output %e output %z output %k output %half)",
                    R"(
      %add: float32[4, 6] = aten::add.Tensor(self=%x, other=%x)
      %v: float32[4], %w: int64[4] = aten::max.dim(self=%add, dim=1)
      %mul_2: float32[4, 6] = aten::mul.Tensor(self=%x, other=%x)
      %mul: float64[4, 6] = aten::to.dtype(self=%mul_2, dtype=float64)
      output %add output %v output %w output %mul)");
}

TEST(Functionalize, TensorsThatTurnInPlace) {
  expect_functional(R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %t_: float32[6, 4] = aten::t_(self=%y)
      %u: float32[6, 4] = aten::mul_.Tensor(self=%t_, other=2)
      output %y)",
                    R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %t_: float32[6, 4] = aten::t(self=%y)
      %u: float32[6, 4] = aten::mul.Tensor(self=%t_, other=2)
      output %u)");
}

TEST(Functionalize, CopiesDoNotShareMemory) {
  expect_functional(R"(
      %c: float32[4, 6] = aten::lift_fresh_copy(self=%x)
      %v: float32[24] = aten::view_copy(self=%x, size=[24])
      %s: float32[6] = aten::select_copy.int(self=%x, dim=0, index=1)
      %same: float32[4, 6] = aten::detach(self=%x)
      %add_: float32[4, 6] = aten::add_.Tensor(self=%same, other=1)
      %out: float32[4, 6] = aten::neg(self=%x)
      output %c output %v output %s output %out)",
                    R"(
      %v: float32[24] = aten::reshape(self=%x, shape=[24])
      %s: float32[6] = aten::select.int(self=%x, dim=0, index=1)
      %add_: float32[4, 6] = aten::add.Tensor(self=%x, other=1)
      %out: float32[4, 6] = aten::neg(self=%add_)
      output %x output %v output %s output %out)");
}

TEST(Functionalize, ChecksGoAwayWithTheNumbersOnlyTheyLookAt) {
  expect_functional(R"(
      %n: int = aten::sym_size.int(self=%d, dim=0)
      %ge: bool_ = _operator::ge(a=%n, b=2)
      () = aten::_assert_scalar(self=%ge, assert_msg="too small")
      () = aten::_assert_tensor_metadata(a=%x, dtype=float32)
      %m: int = aten::sym_size.int(self=%d, dim=1)
      %le: bool_ = _operator::le(a=%m, b=9)
      () = aten::_assert_scalar(self=%le, assert_msg="too large")
      %y: float32[m] = aten::full(size=[%m], fill_value=1)
      output %y)",
                    R"(
      %m: int = aten::sym_size.int(self=%d, dim=1)
      %y: float32[m] = aten::full(size=[%m], fill_value=1)
      output %y)");
  Model model = parse_model(R"(graph g { input %d: float32[n]
      %n: int = aten::sym_size.int(self=%d, dim=0) %ge: bool_ = _operator::ge(a=%n, b=2)
      () = aten::_assert_scalar(self=%ge, assert_msg="too small") %y: float32[n] = aten::neg(self=%d) output %y })");
  functionalize(*model.graph);
  EXPECT_EQ(model.graph->node_count(), 1u);
}

TEST(Functionalize, NamesOfOperators) {
  expect_functional(R"(
      %a: float32[4, 6] = aten::special_expit(self=%x)
      %b: float32[6, 4] = aten::swapaxes(self=%a, axis0=0, axis1=1)
      %c: float32[4, 4] = aten::linalg_matmul(self=%a, other=%b)
      %e: float32[] = aten::det(self=%c)
      %f: float32[4, 6] = aten::special_round(self=%x, decimals=2)
      %g: float32[4, 6] = aten::pow_.Scalar(self=%f, exponent=2)
      %h: float32[4, 6] = aten::max.other(self=%g, other=%x)
      %p: float32[4, 6] = aten::dropout_(self=%h, p=0.5, train=True)
      output %e output %p)",
                    R"(
      %a: float32[4, 6] = aten::sigmoid(self=%x)
      %b: float32[6, 4] = aten::transpose.int(self=%a, dim0=0, dim1=1)
      %c: float32[4, 4] = aten::matmul(self=%a, other=%b)
      %e: float32[] = aten::linalg_det(A=%c)
      %f: float32[4, 6] = aten::round.decimals(self=%x, decimals=2)
      %g: float32[4, 6] = aten::pow.Tensor_Scalar(self=%f, exponent=2)
      %h: float32[4, 6] = aten::maximum(self=%g, other=%x)
      %p: float32[4, 6] = aten::dropout(input=%h, p=0.5, train=True)
      output %e output %p)");
}

TEST(Functionalize, GraphsInsideNodes) {
  expect_functional(R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %row: float32[6] = aten::select.int(self=%y, dim=0, index=0)
      %one: float32[6] = aten::fill_.Scalar(self=%row, value=1)
      %r: float32[4, 6] = higher_order::wrap_with_set_grad_enabled(enabled=False, graph=graph body {
        input %a: float32[4, 6]
        %mul_: float32[4, 6] = aten::mul_.Tensor(self=%a, other=2)
        output %mul_
      }, operands=[%y])
      %s: float32[] = aten::sum(self=%y)
      %z: float32[4, 6] = higher_order::cond(pred=%s, true_graph=graph yes {
        input %a2: float32[4, 6]
        %b: float32[4, 6] = aten::clone(self=%a2)
        %neg_: float32[4, 6] = aten::neg_(self=%b)
        output %b
      }, operands=[%y])
      output %z)",
                    R"(
      %y: float32[4, 6] = aten::clone(self=%x)
      %full: float32[6] = aten::full(size=[6], fill_value=1, dtype=float32)
      %select_scatter: float32[4, 6] = aten::select_scatter(self=%y, src=%full, dim=0, index=0)
      %mul_: float32[4, 6] = aten::mul.Tensor(self=%select_scatter, other=2)
      %s: float32[] = aten::sum(self=%mul_)
      %z: float32[4, 6] = higher_order::cond(pred=%s, true_graph=graph yes {
        input %a2: float32[4, 6]
        %b: float32[4, 6] = aten::clone(self=%a2)
        %neg_: float32[4, 6] = aten::neg(self=%b)
        output %neg_
      }, operands=[%mul_])
      output %z)");
}

TEST(Functionalize, InputsAndBuffersThatAreWritten) {
  EXPECT_EQ(written(R"(%a: float32[6] = aten::select.int(self=%y, dim=0, index=0)
      %f: float32[6] = aten::zero_(self=%a) %c: float32[2] = aten::add_.Tensor(self=%b, other=1)
      %g: float32[6] = aten::zero_(self=%a) %z: float32[4, 6] = aten::clone(self=%x)
      %h: float32[4, 6] = aten::zero_(self=%z) output %y)"),
            (std::vector<std::string>{"y", "b"}));
  EXPECT_EQ(written("%a: float32[4, 6] = aten::detach_(self=%x) output %a"), std::vector<std::string>());
}

TEST(Functionalize, AFunctionalGraphStaysAsItIs) {
  const std::string text = R"(graph g { input %x: float32[4, 6]
      %t: float32[6, 4] = aten::t(self=%x) %v: float32[24] = aten::view(self=%x, size=[24])
      %s: float32[24] = aten::slice.Tensor(self=%v) %u: float32[24] = aten::dropout(input=%s, p=0.5, train=False)
      %unused: float32[24] = aten::neg(self=%u) output %t output %u })";
  Model model = parse_model(text);
  functionalize(*model.graph);
  EXPECT_EQ(print(model), print(parse_model(text)));
}

TEST(Functionalize, WhatCannotBeWritten) {
  const auto run = [](const std::string& body) { printed(body, false); };
  // the windows overlap: PyTorch refuses most of such writes too
  EXPECT_ERROR(Unsupported, "unfold", run(R"(%e: float32[3, 6, 2] = aten::unfold(self=%x, dimension=0, size=2, step=1)
      %z: float32[3, 6, 2] = aten::zero_(self=%e) output %x)"));
  EXPECT_ERROR(Unsupported, "resize_", run("%e: float32[2] = aten::resize_(self=%x, size=[2]) output %e"));
  EXPECT_ERROR(InvalidModel, "no tensor", run("%e: float32[2] = aten::add_.Tensor(other=2) output %e"));
  EXPECT_ERROR(InvalidModel, "dimension 7", run(R"(%e: float32[6, 4] = aten::transpose.int(self=%x, dim0=7, dim1=0)
      %z: float32[6, 4] = aten::zero_(self=%e) output %e)"));
  EXPECT_ERROR(InvalidModel, "permutation", run(R"(%e: float32[6, 4] = aten::permute(self=%x, dims=[1, 1])
      %z: float32[6, 4] = aten::zero_(self=%e) output %e)"));
}

/// As many nodes as there are writes, and not their square.
TEST(Functionalize, ManyWritesIntoOneTensor) {
  constexpr int kCount = 10000;
  std::string text = "graph g { input %x: float32[10000, 4] %y: float32[10000, 4] = aten::clone(self=%x)\n";
  for (int i = 0; i < kCount; ++i) {
    text += fmt::format("%v{}: float32[4] = aten::select.int(self=%y, dim=0, index={})\n", i, i);
    if (i % 2 == 0) text += fmt::format("%s{}: float32[4] = aten::detach(self=%v{})\n", i, i);
  }
  for (int i = 0; i < kCount; ++i)
    text += fmt::format("%w{}: float32[4] = aten::add_.Tensor(self=%{}{}, other=1)\n", i, i % 2 == 0 ? 's' : 'v', i);
  Model model = parse_model(text + "output %y }");
  functionalize(*model.graph);
  check_invariants(*model.graph);
  remove_dead_code(*model.graph);
  EXPECT_LE(model.graph->node_count(), 3u * kCount + 1);
}

TEST(Functionalize, LongChains) {
  std::string text = "graph g { input %x0: float32[4, 6]\n";
  constexpr int kCount = 50000;
  for (int i = 0; i < kCount; ++i)
    text += fmt::format("%x{}: float32[4, 6] = aten::{}(self=%x{})\n", i + 1, i % 2 ? "relu_" : "detach", i);
  Model model = parse_model(text + fmt::format("output %x0 output %x{} }}", kCount));
  functionalize(*model.graph);
  check_invariants(*model.graph);
  EXPECT_EQ(model.graph->node_count(), kCount / 2u);
  EXPECT_EQ(model.graph->outputs()[0], model.graph->outputs()[1]);
}

TEST(Functionalize, AutocastKnowsAnOperatorByEachOfItsNames) {
  // chain_matmul is another name of linalg_multi_dot, whose row says that it computes in the smaller type
  expect_functional(R"(
      %y: bfloat16[4, 4] = higher_order::wrap_with_autocast(device="cpu", dtype=bfloat16, enabled=True, graph=graph body {
        input %a: float32[4, 6]
        %b: float32[6, 4] = aten::t(self=%a)
        %c: bfloat16[4, 4] = aten::chain_matmul(matrices=[%a, %b])
        output %c
      }, operands=[%x])
      output %y)",
                    R"(
      %b: float32[6, 4] = aten::t(self=%x)
      %to_3: bfloat16[4, 6] = aten::to.dtype(self=%x, dtype=bfloat16)
      %to_2_2: bfloat16[6, 4] = aten::to.dtype(self=%b, dtype=bfloat16)
      %c: bfloat16[4, 4] = aten::linalg_multi_dot(tensors=[%to_3, %to_2_2])
      output %c)");
}

}  // namespace
}  // namespace tonnx
