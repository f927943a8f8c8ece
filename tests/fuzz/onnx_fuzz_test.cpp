// onnx_fuzz_test.cpp - damaged models go the whole way to Python, .pt2, .pt and simpler ONNX: errors are fine, crashes
// and our own are not.
#include <cstdlib>

#include "checks.h"
#include "formats/onnx/onnx.h"
#include "fuzz/mutate.h"
#include "fuzz/targets/targets.h"
#include "ops/one_node.h"

namespace tonnx {
namespace {

constexpr const char* kModels[] = {
    // an image network in small
    R"(ir_version 8 opset 17 producer "p" "1" metadata "k" = "v" graph g {
      input %x: float32[batch, 3, 8, 8]
      const %w: float32[2, 3, 1, 1]{1.0, 2.0, 3.0, 4.0, 5.0, 6.0} const %b: float32[2]{0.5, -0.5}
      const %shape: int64[2]{0, -1} const %m: float32[32, 2]<>
      %c: float32[batch, 2, 8, 8] = Conv(%x, %w, %b) {strides=[1, 1], pads=[0, 0, 0, 0], kernel_shape=[1, 1]} "/conv/Conv"
      %n = BatchNormalization(%c, %b, %b, %b, %b) {epsilon=1e-05} "/bn/BatchNormalization"
      %r = Relu(%n) %p = MaxPool(%r) {kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1} %f = Reshape(%p, %shape)
      %d = MatMul(%f, %m) %s = Softmax(%d) {axis=-1} output %s })",
    // arithmetic on shapes
    R"(opset 13 graph g { input %x: float32[n, c, h, w] const %i: int64[1]{0} const %two: int64[1]{2} const %one: int64[1]{1}
      %s = Shape(%x) %n = Gather(%s, %i) {axis=0} %m = Mul(%n, %two) %t = Concat(%m, %one) {axis=0} %a = Slice(%s, %one, %two)
      %k = Div(%a, %two) %u = Concat(%n, %k) {axis=0} %v = Reshape(%x, %t) %e = Expand(%v, %u) %z = Unsqueeze(%e, %i)
      %cs = ConstantOfShape(%u) {value=float32[1]{1.0}} %rg = Range(%i, %two, %one) %y = Add(%z, %cs) output %y output %rg })",
    // old opsets: legacy broadcast, attributes that became inputs
    R"(opset 6 graph g { input %a: float32[2, 3, 4] input %b: float32[3] input %c: float32[1, 2]
      %s = Add(%a, %b) {broadcast=1, axis=1} %t = Reshape(%s, %c) %u = Squeeze(%c) {axes=[0]} %v = Dropout(%u) {is_test=1, ratio=0.5}
      %p = Pad(%a) {pads=[0, 0, 0, 1, 1, 1], mode="constant", value=0.5} %l = Slice(%p) {starts=[0], ends=[2], axes=[1]}
      %k, %q = TopK(%l) {k=1, axis=0} %z = Softmax(%k) {axis=1} %h = Hardmax(%z) %up = Upsample(%a) {scales=[1.0, 2.0, 2.0]} output %h })",
    // subgraphs that use values from around them, and functions
    R"(opset 17 opset local 1
      function local.F { opset 17 opset local 1 attribute a=1.5 input %x input %c %t = Relu(%x)
        %y = If(%c) { then_branch=graph t { output %t }, else_branch=graph e { %n = LeakyRelu(%t) {alpha: float = @a} output %n } }
        %z = local.G(%y) output %z }
      function local.G { opset 17 input %x %y = Neg(%x) output %y }
      graph g { input %c: bool[] input %x: float32[2] const %k: int64[]{3} const %sp: sparse[4](float32[1]{1.0}, int64[1]{2})
        %a = local.F(%x, %c) {a=0.5} "call" %b = If(%c) { then_branch=graph t { %i = Add(%a, %x) output %i }, else_branch=graph e { output %x } }
        %d = Loop(%k, %c, %b) { body=graph body { input %it: int64[] input %cond: bool[] input %v: float32[2] %w = Mul(%v, %x) output %cond output %w } }
        %o = Mul(%d, %d) %q = Add(%sp, %sp) output %o output %q })",
    // types and attributes of every kind
    R"(opset 21 opset ai.onnx.ml 3 graph g { doc "d" input %s: seq(float32[n]) input %o: optional(int64[2]) input %m: map(int64, string)
      const %t: int4[3]{1, 2, 3} const %st: string[2]{"a", "b"} const %f: float8_e4m3fn[2]{1.0, 2.0} const %cx: complex64[1]{(1.0, 2.0)}
      %e = SequenceAt(%s, %t) %c = Cast(%f) {to=1} %k = Constant() {value=float32[2]{1.0, 2.0}("n")} %l = Constant() {value_ints=[1, 2]}
      %d = DequantizeLinear(%t, %k) {axis=0} %z = com.x.Foo(%c) {i=1, f=0.5, s="x", t=int8[1]{1}, ts=[int8[1]{1}], ty=type(float32[n]),
        sp=sparse[4](float32[1]{1.0}, int64[1]{2}), g=graph q { output %c }, ss=["a"], fs=[0.5]} doc "z" metadata "a" = "b"
      %r = Resize(%k, _, %k) {mode="linear"} %ein = Einsum(%k, %k) {equation="i,i->"} output %z output %ein })",
    // branches and loops inside one another, conditions that are known and that are not, Scan of two opsets
    R"(opset 17 graph g { input %c: bool[] input %x: float32[n, 3] input %k: int64[] const %yes: bool[]{True} const %one: int64[]{1} const %w: float32[3]{1.0, 2.0, 3.0}
      %a = If(%yes) { then_branch=graph t { %p = Add(%x, %w) output %p }, else_branch=graph e { %p = Identity(%x) output %p } }
      %b, %s = Loop(%k, %c, %a) { body=graph body { input %i: int64[] input %go: bool[] input %v: float32[n, 3]
        %q = If(%c) { then_branch=graph t { %r = Mul(%v, %a) output %r }, else_branch=graph e {
          %r, %u = Loop(%k, _, %v, %x) { body=graph inner { input %j: int64[] input %on: bool[] input %v2: float32[n, 3] input %x2: float32[n, 3]
            %z = Add(%v2, %x2) %f = Identity(%x2) %d = Identity(%on) output %d output %z output %f } } output %r } }
        %m = Gather(%x, %i) {axis=0} %l = Less(%i, %k) output %l output %q output %m } }
      %h, %o = Scan(%w, %b) {num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[1], scan_output_axes=[1], body=graph sb {
        input %st: float32[3] input %e: float32[3] %t = Add(%st, %e) %t2 = Identity(%t) output %t output %t2 } }
      %sh = Shape(%x) %n = Gather(%sh, %one) %g = Greater(%n, %one)
      %y = If(%g) { then_branch=graph t { output %o }, else_branch=graph e { %tr = Transpose(%o) output %tr } } output %y output %s output %h })",
    R"(opset 8 graph g { input %x: float32[2, 4, 3] input %s: float32[2, 3]
      %h, %o = Scan(_, %s, %x) {num_scan_inputs=1, directions=[1], body=graph sb {
        input %st: float32[3] input %e: float32[3] %t = Add(%st, %e) %t2 = Identity(%t) output %t output %t2 } } output %h output %o })",
    // sequences and optionals
    R"(opset 18 graph g { input %s: seq(float32[n]) input %o: optional(seq(float32[n])) input %x: float32[4, n] const %at: int64[]{-1} const %sp: int64[2]{1, 3}
      %e = SequenceEmpty() {dtype=1} %t = SplitToSequence(%x, %sp) {axis=0} %i = SequenceInsert(%e, %x) %r = SequenceErase(%t, %at) %f = SequenceAt(%t, %at)
      %m = SequenceMap(%s, %x) { body=graph b { input %a: float32[n] input %c: float32[4, n] %d = Add(%a, %c) output %d } }
      %j = ConcatFromSequence(%m) {axis=1, new_axis=1} %l = SequenceLength(%r) %has = OptionalHasElement(%o)
      %q = If(%has) { then_branch=graph t { %g = OptionalGetElement(%o) output %g }, else_branch=graph e { %g = SequenceConstruct(%f, %x) output %g } }
      %z = Optional(%q) %none = Optional() {type=type(float32[n])} output %q output %j output %l output %z output %none output %i })",
    // constants that are computed
    R"(opset 17 graph g { input %x: float32[n, 2, 4, 4] const %w: float32[2, 2]{1.0, 2.0, 3.0, 4.0} const %s: int64[4]{2, 2, 1, 1} const %z: int64[1]{0}
      const %one: int64[1]{1} const %ones: int64[2]{1, 1} const %two: int64[1]{2} const %p: int64[4]{0, 0, 1, 1} const %big: int64[2]{4, 4}
      %t = Transpose(%w) {perm=[1, 0]} %h = Cast(%t) {to=10} %f = Cast(%h) {to=1} %r = Reshape(%f, %s) %c = Conv(%x, %r)
      %a = Slice(%w, %z, %one, %z, %one) %b, %d = Split(%w, %ones) {axis=0} %k = Concat(%a, %b) {axis=0} %m = Pad(%k, %p) %e = Expand(%a, %big)
      %g = Tile(%a, %big) %q = ConstantOfShape(%big) {value=float32[1]{0.5}} %u = Gather(%w, %z) {axis=-1} %v = ReduceSum(%w, %one) {keepdims=0}
      %mm = MatMul(%w, %t) %cl = Clip(%w) %gr = Greater(%w, %t) %wh = Where(%gr, %w, %t) %pw = Pow(%w, %t) output %c output %m output %g output %q output %mm })",
};

std::vector<std::string> model_seeds() {
  std::vector<std::string> result;
  for (const char* const text : kModels) {
    std::string source = text;
    if (const size_t at = source.find("<>"); at != std::string::npos) {  // 64 numbers
      std::string numbers = "{0.5";
      for (int i = 1; i < 64; ++i) numbers += ", 0.5";
      source.replace(at, 2, numbers + "}");
    }
    result.push_back(write_onnx_bytes(parse_model(source)));
  }
  for (const OnnxOpEntry* entry : all_onnx_ops()) {
    for (const char* const constant :
         {"", "int64[4]{1, 1, 1, 1}", "float32[3, 3, 1, 1]{1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}"}) {
      result.push_back(write_onnx_bytes(one_node(*entry, "float32[n, 3, 8, 8]", constant, {})));
    }
    result.push_back(write_onnx_bytes(one_node(*entry, "int64[3]", "int64[1]{1}", {.attribute_variant = 0})));
  }
  return result;
}

TEST(Fuzz, DamagedModelsGiveErrorsAndNothingWorse) {
  const char* const more = std::getenv("TONNX_FUZZ_ROUNDS");
  const char* const start = std::getenv("TONNX_FUZZ_SEED");
  const char* const keep = std::getenv("TONNX_FUZZ_KEEP");
  const int rounds = more != nullptr ? std::atoi(more) : 8000;
  const unsigned first = start != nullptr ? static_cast<unsigned>(std::atoi(start)) : 1;
  const std::vector<std::string> originals = model_seeds();
  for (const std::string& original : originals) ASSERT_TRUE(fuzz::convert_all_ways(original, 17));
  int accepted = 0;
  for (int round = 0; round < rounds; ++round) {
    fuzz::Random random(first + static_cast<unsigned>(round));
    const size_t handwritten = random() % 3 == 0 ? std::size(kModels) : originals.size();
    const std::string damaged = fuzz::mutated(originals[random() % handwritten], originals, random);
    if (keep != nullptr) write_file(keep, damaged);  // so that a crash leaves its cause behind
    try {
      accepted += fuzz::convert_all_ways(damaged, random());
    } catch (const std::exception& e) {
      ADD_FAILURE() << "TONNX_FUZZ_SEED=" << first + static_cast<unsigned>(round)
                    << " TONNX_FUZZ_ROUNDS=1: " << e.what();
    }
  }
  EXPECT_GT(accepted, rounds / 20) << "the damage is so great that nothing is tested";
}

}  // namespace
}  // namespace tonnx
