// onnx_fuzz_test.cpp - damaged models go the whole way to Python and to ONNX: errors are fine, crashes and our own are
// not.
#include <cstdlib>

#include "checks.h"
#include "convert/opset.h"
#include "convert/pipeline.h"
#include "formats/onnx/onnx.h"
#include "fuzz/mutate.h"
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
};

std::vector<std::string> seeds() {
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

/// Everything that is done with a file; false where it was refused.
bool convert_all_ways(const std::string& bytes, unsigned choice) {
  const auto tried = [](auto&& body) {
    try {
      body();
      return true;
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Internal) throw;
      return false;
    }
  };
  return tried([&] {
    Model model = read_onnx(Bytes::own(bytes));
    check_invariants(*model.graph);
    const std::string written = write_onnx_bytes(model);
    print(model);
    tried([&] {
      Model other = read_onnx(Bytes::own(written));
      change_opset(other, choice % 28 + 1);
      check_invariants(*other.graph);
      write_onnx_bytes(other);
    });
    tried([&] {
      prepare(model);
      check_invariants(*model.graph);
      const GraphPtr aten = lower_for_python(model);
      check_invariants(*aten);
      write_python(*aten, model, {.weights_file = "w.safetensors", .title = "m", .external = {}});
      print(*aten);
    });
  });
}

TEST(Fuzz, DamagedModelsGiveErrorsAndNothingWorse) {
  const char* const more = std::getenv("TONNX_FUZZ_ROUNDS");
  const char* const start = std::getenv("TONNX_FUZZ_SEED");
  const char* const keep = std::getenv("TONNX_FUZZ_KEEP");
  const int rounds = more != nullptr ? std::atoi(more) : 8000;
  const unsigned first = start != nullptr ? static_cast<unsigned>(std::atoi(start)) : 1;
  const std::vector<std::string> originals = seeds();
  for (const std::string& original : originals) ASSERT_TRUE(convert_all_ways(original, 17));
  int accepted = 0;
  for (int round = 0; round < rounds; ++round) {
    fuzz::Random random(first + static_cast<unsigned>(round));
    const size_t handwritten = random() % 3 == 0 ? std::size(kModels) : originals.size();
    const std::string damaged = fuzz::mutated(originals[random() % handwritten], originals, random);
    if (keep != nullptr) write_file(keep, damaged);  // so that a crash leaves its cause behind
    try {
      accepted += convert_all_ways(damaged, random());
    } catch (const std::exception& e) {
      ADD_FAILURE() << "TONNX_FUZZ_SEED=" << first + static_cast<unsigned>(round)
                    << " TONNX_FUZZ_ROUNDS=1: " << e.what();
    }
  }
  EXPECT_GT(accepted, rounds / 20) << "the damage is so great that nothing is tested";
}

}  // namespace
}  // namespace tonnx
