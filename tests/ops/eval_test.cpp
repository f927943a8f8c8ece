// eval_test.cpp - evaluations of constants of every kind: none crashes, and none is an internal error.
#include <gtest/gtest.h>

#include "base/error.h"
#include "convert/inference.h"
#include "ir/text.h"
#include "ops/one_node.h"

namespace tonnx {
namespace {

constexpr const char* kTensors[] = {
    "float32[2, 2]{1.0, nan, -inf, 0.0}",
    "float32[]{3e+38}",
    "float32[0, 3]{}",
    "float32[1, 2, 1, 2]{-1.5, 0.5, 2.5, 1.0}",
    "float64[2]{1e+300, -0.0}",
    "float16[3]{1.0, 65504.0, nan}",
    "bfloat16[2]{1.0, inf}",
    "float8_e4m3fn[2]{1.0, 448.0}",
    "float8_e8m0fnu[1]{1.0}",
    "float4_e2m1fn[3]{0.5, 6.0, -1.0}",
    "int4[3]{-8, 7, 0}",
    "uint2[2, 2]{0, 1, 2, 3}",
    "int8[2, 2]{-128, 127, 0, 1}",
    "uint8[4]{0, 1, 2, 255}",
    "int32[2]{-2147483648, -1}",
    "int64[]{-1}",
    "int64[1]{9223372036854775807}",
    "int64[2]{-9223372036854775808, 0}",
    "int64[4]{1, 1, 1, 1}",
    "int64[0]{}",
    "uint64[2]{18446744073709551615, 0}",
    "bool[2]{True, False}",
    "complex64[2]{(1.0, 2.0), (0.0, 0.0)}",
    "string[2]{\"a b\", \"\"}",
};

std::vector<TensorPtr> tensors() {
  std::vector<TensorPtr> result;
  for (const char* const text : kTensors) {
    const Model model = parse_model(fmt::format("graph g {{ const %c: {} output %c }}", text));
    result.push_back(model.graph->outputs()[0]->constant);
  }
  return result;
}

/// Makes an input a constant.
void fix(Value* input, const TensorPtr& tensor) {
  input->constant = tensor;
  input->type = Type::tensor(tensor->dtype, Shape(tensor->dims.begin(), tensor->dims.end()));
  input->graph->add_initializer(input);
}

void evaluate(const OnnxOpEntry& entry, const TensorPtr& first, const TensorPtr& others, const OneNode& options) {
  Model model = one_node(entry, "", "", options);
  const std::vector<Value*> inputs = model.graph->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) fix(inputs[i], i == 0 ? first : others);
  const auto text = [&] { return print(model); };
  try {
    upgrade_and_infer(*model.graph);
    for (const Value* output : model.graph->outputs()) {
      if (output->constant) {
        EXPECT_EQ(output->constant->dtype, output->type.dtype) << text();
      }
    }
  } catch (const Error& e) {
    EXPECT_NE(e.kind(), ErrorKind::Internal) << e.what() << "\n" << text();
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what() << "\n" << text();
  }
}

TEST(Eval, TakesConstantsOfEveryKind) {
  const std::vector<TensorPtr> all = tensors();
  for (const OnnxOpEntry* entry : all_onnx_ops()) {
    if (entry->op->eval == nullptr) continue;
    for (const TensorPtr& first : all) {
      for (const TensorPtr& others : all) {
        evaluate(*entry, first, others, {});
        if (entry->signature.inputs.size() < 2) break;
      }
      evaluate(*entry, first, first, {.all_inputs = false});
    }
  }
}

TEST(Eval, TakesAttributesOfEveryValue) {
  const std::vector<TensorPtr> all = tensors();
  for (const OnnxOpEntry* entry : all_onnx_ops()) {
    if (entry->op->eval == nullptr || entry->signature.attributes.empty()) continue;
    for (int variant = 0; variant < kAttributeVariants; ++variant) {
      for (const TensorPtr& tensor : all) {
        evaluate(*entry, tensor, tensor, {.attribute_variant = variant});
        evaluate(*entry, tensor, all.at(18), {.attribute_variant = variant});
        evaluate(*entry, tensor, tensor, {.all_inputs = false, .attribute_variant = variant});
      }
    }
  }
}

}  // namespace
}  // namespace tonnx
