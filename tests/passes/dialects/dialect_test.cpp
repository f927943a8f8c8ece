// dialect_test.cpp - graphs are held against the dialect that they are said to be in, at each step of a conversion.
#include "passes/dialects/dialect.h"

#include "checks.h"
#include "convert/compilation.h"
#include "passes/dialects/to_code.h"
#include "passes/dialects/to_exported.h"
#include "passes/pass_table.h"

namespace tonnx {
namespace {

void check(const std::string& body, Dialect dialect) {
  const Model model = parse_model("graph g { input %x: float32[n, 4] input %c: bool[]\n" + body + "}");
  check_dialect(*model.graph, dialect);
}

constexpr const char* kOnnxRelu = "%y: float32[n, 4] = Relu(%x) output %y";
constexpr const char* kAtenRelu = "%y: float32[n, 4] = aten::relu(self=%x) output %y";

TEST(Dialect, OperatorsOfOnnx) {
  EXPECT_NO_THROW(check(kOnnxRelu, Dialect::Onnx));
  EXPECT_ERROR(Internal, "aten::relu is none of ONNX", check(kAtenRelu, Dialect::Onnx));
  EXPECT_ERROR(Internal, "dialect 'onnx'", check(kAtenRelu, Dialect::Onnx));
}

TEST(Dialect, ProgramsOfTorchExport) {
  EXPECT_NO_THROW(check(kAtenRelu, Dialect::Exported));
  EXPECT_ERROR(Internal, "writes to a tensor",
               check("%y: float32[n, 4] = aten::relu_(self=%x) output %y", Dialect::Exported));
  EXPECT_ERROR(Internal, "is for code only",
               check("%y: float32[n, 4] = tonnx::int_tensor(self=%x) output %y", Dialect::Exported));
  EXPECT_ERROR(Internal, "has an input that is no argument", check(kOnnxRelu, Dialect::Exported));
}

TEST(Dialect, Code) {
  EXPECT_NO_THROW(check(kAtenRelu, Dialect::Code));
  EXPECT_ERROR(Internal, "has no place in code",
               check("%y: float32[n, 4] = higher_order::cond(pred=%c) output %y", Dialect::Code));
  EXPECT_ERROR(Unsupported, "is not supported",
               check("%y: float32[n, 4] = aten::no_such_operator(self=%x) output %y", Dialect::Code));
}

TEST(Dialect, ProgramsAsTheyWereWritten) {
  EXPECT_NO_THROW(check(kAtenRelu, Dialect::Script));
  EXPECT_NO_THROW(check("%y: float32[n, 4] = aten::relu_(self=%x) output %y", Dialect::Script));
  EXPECT_ERROR(Internal, "is one of ONNX", check(kOnnxRelu, Dialect::Script));
}

TEST(Dialect, WhatOnlyPythonHas) {
  constexpr const char* kLeast = "%y = tonnx::finfo_min(self=%x) output %y";
  EXPECT_NO_THROW(check(kLeast, Dialect::Python));
  EXPECT_ERROR(Internal, "is for Python only", check(kLeast, Dialect::Code));
}

/// A branch, a loop, a sequence and sizes: what the dialects say differently.
constexpr const char* kModel = R"(ir_version 8
opset 17

graph g {
  input %x: float32[n, 4]
  %shape: int64[2] = Shape(%x)
  %flat: float32 = Reshape(%x, %shape)
  %mean: float32 = ReduceMean(%flat) {axes=[0, 1], keepdims=0}
  %above: bool = Greater(%mean, %mean)
  %y: float32[n, 4] = If(%above) {
    then_branch=graph then {
      %a: float32[n, 4] = Relu(%x)
      output %a
    },
    else_branch=graph else {
      %b: float32[n, 4] = Neg(%x)
      output %b
    }
  }
  %z: float32[n, 4] = Abs(%y)
  output %z
}
)";

TEST(Dialect, HoldsAtEachStepOfAConversion) {
  Model model = parse_model(kModel);
  Compilation compilation(model, Dialect::Stored);
  for (const Dialect dialect : {Dialect::Onnx, Dialect::Code}) {
    compilation.bring_to(dialect);
    EXPECT_EQ(compilation.dialect(), dialect);
    check_dialect(*compilation.graph(), dialect);
  }
  const GraphPtr graph = compilation.graph();
  EXPECT_ERROR(Internal, "no edges lead", compilation.bring_to(Dialect::Script));
  to_exported(*graph);
  check_dialect(*graph, Dialect::Exported);
  EXPECT_ERROR(Internal, "has no place in code", check_dialect(*graph, Dialect::Code));
  to_code(*graph, {});
  check_dialect(*graph, Dialect::Code);
}

TEST(PassTable, NamesAndFunctionsAreThere) {
  std::set<std::pair<Phase, std::string_view>> names;
  Phase last = Phase::Simplify;
  for (const Pass& pass : pass_table()) {
    SCOPED_TRACE(std::string(pass.name));
    EXPECT_TRUE(names.emplace(pass.phase, pass.name).second);
    EXPECT_FALSE(pass.sentence.empty());
    EXPECT_GE(pass.phase, last) << "passes of a phase stand together";
    last = pass.phase;
    const int functions =
        (pass.on_node != nullptr) + (pass.on_graph != nullptr) + (pass.on_model != nullptr) + (pass.on_aten != nullptr);
    EXPECT_EQ(functions, 1);
    EXPECT_EQ(pass.on_aten != nullptr, pass.phase != Phase::Simplify);
    EXPECT_EQ(pass.dialect == Dialect::Onnx, pass.phase == Phase::Simplify);
    EXPECT_FALSE(pass.before_lowering && pass.when == When::OnRequest);
  }
  EXPECT_EQ(pass_name(fuse_scales), "fuse_bn");
  EXPECT_EQ(pass_name(share_equal_nodes), "share_nodes");
}

}  // namespace
}  // namespace tonnx
