// check_program_test.cpp - programs that no PyTorch made: calls that their schemas do not allow, shapes that cannot be,
// graphs that do not fit the nodes that they are in.
#include "formats/pt2/check_program.h"

#include "checks.h"
#include "convert/compilation.h"
#include "formats/onnx/onnx.h"

namespace tonnx {
namespace {

constexpr const char* kInputs =
    "graph g { input %x: float32[2, 3, 8, 8] input %m: float32[4, 4] input %v: float32[4] input %s: float32[] "
    "input %c: bool[] input %i: int64[2]\n";

GraphPtr graph_of(const std::string& body) { return parse_model(kInputs + body + " output %y }").graph; }

void check(const std::string& body) { pt2::check_program(*graph_of(body)); }

void to_onnx(const std::string& body) {
  Program program;
  program.model.graph = graph_of(body);
  program.output_names = {"y"};
  pt2::check_program(*program.model.graph);
  Compilation compilation(program, Dialect::Script);
  compilation.bring_to(Dialect::Stored);
  write_onnx_bytes(compilation.model());
}

void to_python(const std::string& body) {
  Program program;
  program.model.graph = graph_of(body);
  program.output_names = {"y"};
  pt2::check_program(*program.model.graph);
  Compilation(program, Dialect::Script).python({});
}

TEST(CheckProgram, TakesWhatPyTorchGives) {
  check("%y: float32[4, 4] = aten::add.Tensor(self=%m, other=2)");
  check("%y: float32[4] = aten::sum.dim_IntList(self=%m, dim=[0])");
  check("%y: float32[] = aten::sum.dim_IntList(self=%m, dim=[0, 1])");
  check("%y: float32[2, 3, 4, 4] = aten::max_pool2d(self=%x, kernel_size=[2, 2], stride=[2], padding=[0])");
  check("%y: float32[2, 3, 4, 4] = aten::max_pool2d(self=%x, kernel_size=[2, 2])");
  check("%y: float32[4, 4] = aten::relu_(self=%m)");
  check("%y: float32[4, 4] = aten::absolute(self=%m)");
  to_onnx("%y: float32[4, 4] = aten::slice.Tensor(self=%m, dim=0, start=0, end=9223372036854775807)");
}

TEST(CheckProgram, ArgumentsAreOfTheKindsThatTheSchemaSays) {
  EXPECT_ERROR(InvalidModel, "argument 'self' is missing", check("%y: float32[4] = aten::relu()"));
  EXPECT_ERROR(InvalidModel, "argument 'self' is missing", check("%y: float32[4] = aten::relu(self=None)"));
  EXPECT_ERROR(InvalidModel, "argument 'self' is not of the type Tensor", check("%y: float32[4] = aten::relu(self=2)"));
  EXPECT_ERROR(InvalidModel, "argument 'self' is not of the type Tensor",
               check("%y: float32[4] = aten::relu_(self=2)"));
  EXPECT_ERROR(InvalidModel, "argument 'dim' is not of the type int",
               check("%y: float32[4] = aten::softmax.int(self=%v, dim=0.5)"));
  EXPECT_ERROR(InvalidModel, "argument 'kernel_size' has 3 items, and 2 are due",
               check("%y: float32[2, 3, 4, 4] = aten::max_pool2d(self=%x, kernel_size=[2, 2, 2])"));
  EXPECT_ERROR(InvalidModel, "argument 'kernel_size' has 0 items, and 2 are due",
               check("%y: float32[2, 3, 4, 4] = aten::max_pool2d(self=%x, kernel_size=[])"));
  EXPECT_ERROR(InvalidModel, "argument 'tensors' is not a list", check("%y: float32[4] = aten::cat(tensors=%v)"));
  EXPECT_ERROR(InvalidModel, "argument 'tensors' holds something",
               check("%y: float32[4] = aten::cat(tensors=[%v, None])"));
  EXPECT_ERROR(InvalidModel, "argument 'dtype' is not of the type ScalarType",
               check("%y: float32[4] = aten::to.dtype(self=%v, dtype=\"float\")"));
}

TEST(CheckProgram, ResultsAreThoseOfTheSchema) {
  EXPECT_ERROR(InvalidModel, "gives 2 results, and 1 are due",
               check("%y: float32[4], %z: float32[4] = aten::relu(self=%v)"));
  EXPECT_ERROR(InvalidModel, "gives 1 results, and 2 are due", check("%y: float32[4] = aten::max.dim(self=%m, dim=0)"));
  EXPECT_ERROR(InvalidModel, "result 0 is not a tensor", check("%y: int = aten::relu(self=%v)"));
  EXPECT_ERROR(InvalidModel, "sizes of 'y' are not known", check("%y: float32 = aten::relu(self=%v)"));
}

TEST(CheckProgram, ShapesCanBe) {
  std::string many = "1";
  for (int i = 0; i < 64; ++i) many += ", 1";
  EXPECT_ERROR(InvalidModel, "has 65 dimensions", check("%y: float32[" + many + "] = aten::relu(self=%v)"));
  EXPECT_ERROR(InvalidModel, "64 bits",
               check("%y: float32[9223372036854775807, 9223372036854775807] = aten::relu(self=%v)"));
}

TEST(CheckProgram, GraphsFitTheNodesThatTheyAreIn) {
  const auto cond = [](const std::string& first, const std::string& second, const std::string& operands) {
    return "%y: float32[4] = higher_order::cond(pred=%c, true_graph=" + first + ", false_graph=" + second +
           ", operands=" + operands + ")";
  };
  const std::string one = "graph t { input %a: float32[4] %b: float32[4] = aten::relu(self=%a) output %b }";
  const std::string two = "graph t { input %a: float32[4] input %e: float32[4] output %a }";
  const std::string wide = "graph t { input %a: float32[4, 4] output %a }";
  const std::string none = "graph t { input %a: float32[4] }";
  check(cond(one, one, "[%v]"));
  EXPECT_ERROR(InvalidModel, "the graph 'false_graph' has 2 inputs, and 1 are due", check(cond(one, two, "[%v]")));
  EXPECT_ERROR(InvalidModel, "the graph 'true_graph' has 1 inputs, and 0 are due", check(cond(one, one, "[]")));
  EXPECT_ERROR(InvalidModel, "the graph 'false_graph' has 0 results, and 1 are due", check(cond(one, none, "[%v]")));
  EXPECT_ERROR(InvalidModel, "float32[4, 4], and float32[4] is due", check(cond(wide, wide, "[%v]")));
  EXPECT_ERROR(InvalidModel, "argument 'true_graph' is not of the type Graph", check(cond("1", one, "[%v]")));
  EXPECT_ERROR(InvalidModel, "argument 'operands' is not a list", check(cond(one, one, "%v")));
  EXPECT_ERROR(InvalidModel, "condition of a loop gives 0 values",
               check("%y: float32[4] = higher_order::while_loop(cond_fn=" + none + ", body_fn=" + one +
                     ", carried_inputs=[%v])"));
  EXPECT_ERROR(InvalidModel, "has 1 inputs, and 2 are due",
               check("%y: float32[4] = higher_order::scan(combine_fn=" + one + ", init=[%v], xs=[%m])"));
  EXPECT_ERROR(InvalidModel, "argument 'mapped_args' is not a list",
               check("%y: float32[4] = higher_order::map_impl(f=" + one + ", mapped_args=[1])"));
  EXPECT_ERROR(InvalidModel, "an item of argument 'mapped_args' is not a tensor",
               check("%y: float32[4] = higher_order::map_impl(f=" + one + ", mapped_args=[%v, 1])"));
  EXPECT_ERROR(InvalidModel, "argument 'graph' is not a graph",
               check("%y: float32[4] = higher_order::wrap_with_set_grad_enabled(enabled=True, graph=1, operands=%v)"));
  EXPECT_ERROR(
      InvalidModel, "the graph 'graph' has 2 inputs",
      check("%y: float32[4] = higher_order::wrap_with_set_grad_enabled(enabled=True, graph=" + two + ", operands=%v)"));
}

/// Each of them once ended the process, or was our own error.
constexpr const char* kLies[] = {
    "%y: float32[4] = aten::layer_norm(input=%v, normalized_shape=[4, 4, 4])",
    "%y: float32[] = aten::rms_norm(input=%s, normalized_shape=[4])",
    "%y: float32[] = aten::eye(n=3)",
    "%y: float32[] = aten::linspace(start=0, end=1, steps=3)",
    "%y: float32[4] = aten::addmm(self=%v, mat1=%s, mat2=%s)",
    "%y: float32[4] = aten::_cdist_forward(x1=%s, x2=%s, p=2.0, compute_mode=None)",
    "%y: float32[4] = aten::scaled_dot_product_attention(query=%x, key=%s, value=%v)",
    "%y: float32[4] = aten::pixel_shuffle(self=%v, upscale_factor=2)",
    "%y: float32[2, 3, 16, 16] = aten::pixel_shuffle(self=%x, upscale_factor=0)",
    "%y: float32[4] = aten::adaptive_avg_pool2d(self=%s, output_size=[1, 1])",
    "%y: float32[2, 3, 8] = aten::_pad_circular(self=%s, pad=[1, 1])",
    "%y: float32[2, 12, 9] = aten::im2col(self=%x, kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[0, 0])",
    "%y: float32[4, 4] = aten::linalg_matrix_power(self=%m, n=-9223372036854775808)",
    "%y: float32[2, 3, 8, 8] = aten::max_pool2d(self=%x, kernel_size=[2, 2], stride=[0, 0], ceil_mode=True)",
    "%y: float32[2, 3, 8, 8] = aten::conv2d(input=%x, weight=%s)",
    "%y: float32[4] = aten::prelu(self=%v, weight=0.5)",
    "%y: float32[4] = aten::stft.center(self=%s, n_fft=4, pad_mode=\"reflect\", normalized=False)",
    "%y: float32[2, 3, 3, 9223372036854775807] = aten::adaptive_avg_pool2d(self=%x, output_size=[3, "
    "9223372036854775807])",
};

TEST(CheckProgram, LiesAboutRanksAndNumbersAreErrors) {
  for (const char* const lie : kLies) {
    SCOPED_TRACE(lie);
    EXPECT_NE(error_of([&] { to_onnx(lie); }).kind(), ErrorKind::Internal);
  }
}

/// PyTorch gives this too: rows without columns have no elements, however many they are.
TEST(CheckProgram, ManyRowsWithoutColumnsAreEmpty) {
  EXPECT_NO_THROW(to_onnx("%y: int64[2, 0] = aten::tril_indices(row=9223372036854775807, col=0)"));
}

TEST(CheckProgram, NumbersForTensorsDoNotReachTheWriters) {
  EXPECT_ERROR(InvalidModel, "argument 'weight'", to_python("%y: float32[4] = aten::prelu(self=%v, weight=0.5)"));
  EXPECT_ERROR(InvalidModel, "argument 'self'", to_python("%y: float32[] = aten::to.dtype(self=2, dtype=float32)"));
  EXPECT_ERROR(InvalidModel, "argument 'scale_factors'",
               to_python("%y: float32[2, 3, 16, 16] = aten::upsample_nearest2d.vec(input=%x, output_size=None, "
                         "scale_factors=[None, 2.0])"));
}

}  // namespace
}  // namespace tonnx
