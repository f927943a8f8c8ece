// signature_test.cpp - one-line signatures of both vocabularies.
#include "ops/frame/signature.h"

#include "checks.h"

namespace tonnx {
namespace {

TEST(OnnxSignature, InputsAttributesOutputs) {
  const ParsedSignature s = parse_onnx_signature(
      "Conv(T X, T W, T? B, *, str auto_pad=\"NOTSET\", ints? pads, int group=1, float alpha=0.5, int to) -> T Y");
  EXPECT_EQ(s.name, "Conv");
  EXPECT_EQ(s.domain, "");
  ASSERT_EQ(s.inputs.size(), 3U);
  EXPECT_EQ(s.inputs[0].type, "T");
  EXPECT_EQ(s.inputs[0].name, "X");
  EXPECT_FALSE(s.inputs[1].optional);
  EXPECT_TRUE(s.inputs[2].optional);
  ASSERT_EQ(s.attributes.size(), 5U);
  EXPECT_EQ(*s.attributes[0].default_value.get<std::string>(), "NOTSET");
  EXPECT_TRUE(s.attributes[1].optional);
  EXPECT_FALSE(s.attributes[1].has_default);
  EXPECT_EQ(*s.attributes[2].default_value.get<int64_t>(), 1);
  EXPECT_EQ(*s.attributes[3].default_value.get<double>(), 0.5);
  EXPECT_FALSE(s.attributes[4].has_default || s.attributes[4].optional);
  EXPECT_EQ(s.find_input("W"), 1);
  EXPECT_EQ(s.find_attribute("group"), 2);
  EXPECT_EQ(s.find_input("group"), -1);
  EXPECT_EQ(s.find_attribute("X"), -1);
  ASSERT_EQ(s.outputs.size(), 1U);
}

TEST(OnnxSignature, VariadicAndSeveralOutputs) {
  const ParsedSignature s =
      parse_onnx_signature("com.x::Split(T input, T... more, *, ints l=[1, -2], floats f=[0.5]) -> (T a, T? b)");
  EXPECT_EQ(s.domain, "com.x");
  EXPECT_EQ(s.name, "Split");
  EXPECT_TRUE(s.inputs[1].variadic);
  EXPECT_EQ(*s.attributes[0].default_value.get<std::vector<int64_t>>(), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(*s.attributes[1].default_value.get<std::vector<double>>(), std::vector<double>{0.5});
  ASSERT_EQ(s.outputs.size(), 2U);
  EXPECT_TRUE(s.outputs[1].optional);
}

TEST(OnnxSignature, CommasInsideQuotesAndNoInputs) {
  const ParsedSignature s = parse_onnx_signature("Constant(*, str s=\"a, (b\") -> T y");
  EXPECT_TRUE(s.inputs.empty());
  EXPECT_EQ(*s.attributes[0].default_value.get<std::string>(), "a, (b");
}

TEST(AtenSignature, PyTorchsOwnText) {
  const ParsedSignature s = parse_aten_signature(
      "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], SymInt[1]? size=None, bool ceil_mode=False, "
      "*, "
      "ScalarType? dtype=None, float eps=1e-05, str pad=\"same\") -> Tensor");
  EXPECT_EQ(s.domain, "aten");
  EXPECT_EQ(s.name, "max_pool2d");
  EXPECT_EQ(s.overload, "");
  ASSERT_EQ(s.inputs.size(), 8U);
  EXPECT_TRUE(s.inputs[1].is_list);
  EXPECT_EQ(s.inputs[1].type, "int");
  EXPECT_FALSE(s.inputs[1].has_default);
  EXPECT_TRUE(s.inputs[2].has_default);
  EXPECT_TRUE(s.inputs[3].is_list && s.inputs[3].optional);
  EXPECT_TRUE(s.inputs[3].default_value.is_none());
  EXPECT_EQ(*s.inputs[4].default_value.get<bool>(), false);
  EXPECT_FALSE(s.inputs[4].keyword_only);
  EXPECT_TRUE(s.inputs[5].keyword_only);
  EXPECT_EQ(s.inputs[5].type, "ScalarType");
  EXPECT_EQ(*s.inputs[6].default_value.get<double>(), 1e-05);
}

TEST(AtenSignature, OverloadsAliasesAndTuples) {
  const ParsedSignature s = parse_aten_signature(
      "aten::max.dim(Tensor(a) self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)");
  EXPECT_EQ(s.overload, "dim");
  EXPECT_EQ(s.inputs[0].type, "Tensor");
  EXPECT_EQ(s.outputs.size(), 2U);
  EXPECT_EQ(s.outputs[1].name, "indices");
  const ParsedSignature list =
      parse_aten_signature("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]");
  ASSERT_EQ(list.outputs.size(), 1U);
  EXPECT_TRUE(list.outputs[0].is_list);
  EXPECT_EQ(list.outputs[0].type, "Tensor");
  EXPECT_EQ(list.inputs[0].type, "Tensor");
  const ParsedSignature none = parse_aten_signature("aten::f(Tensor?[] indices) -> Tensor");
  EXPECT_TRUE(none.inputs[0].is_list);
  EXPECT_EQ(none.inputs[0].type, "Tensor");
}

}  // namespace
}  // namespace tonnx
