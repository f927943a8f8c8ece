// tensor_reader_test.cpp - TensorProto in all its forms, with values from onnx.proto's own description.
#include "checks.h"
#include "formats/onnx/messages.h"

namespace tonnx::onnx {
namespace {

/// The tensor, read as the initializer of a model.
TensorPtr read_tensor(const Fields& tensor) {
  const Fields named = Fields(tensor).text(tensor::name, "w");
  const Model model = read(model_of(relu_graph().message(graph::initializer, named)));
  return model.graph->initializers().at(0)->constant;
}

Fields tensor_of(DType dtype, const std::vector<int64_t>& dims) {
  Fields result;
  for (const int64_t dim : dims) result.integer(tensor::dims, dim);
  return result.integer(tensor::data_type, static_cast<int64_t>(dtype));
}

TEST(TypedData, Int32DataHoldsTheSmallTypes) {
  const auto ints = [](DType dtype, const std::vector<int64_t>& values) {
    return *ints_of(
        *read_tensor(tensor_of(dtype, {static_cast<int64_t>(values.size())}).packed(tensor::int32_data, values)));
  };
  using Ints = std::vector<int64_t>;
  EXPECT_EQ(ints(DType::Int32, {1, -2}), (Ints{1, -2}));
  EXPECT_EQ(ints(DType::Int16, {300, -300}), (Ints{300, -300}));
  EXPECT_EQ(ints(DType::Int8, {127, -128}), (Ints{127, -128}));
  EXPECT_EQ(ints(DType::UInt16, {65535}), (Ints{65535}));
  EXPECT_EQ(ints(DType::UInt8, {255}), (Ints{255}));
  EXPECT_EQ(ints(DType::Bool, {1, 0}), (Ints{1, 0}));
}

TEST(TypedData, Int32DataHoldsBitsOfTheSmallFloats) {
  const auto floats = [](DType dtype, const std::vector<int64_t>& bits) {
    return *floats_of(
        *read_tensor(tensor_of(dtype, {static_cast<int64_t>(bits.size())}).packed(tensor::int32_data, bits)));
  };
  using Floats = std::vector<double>;
  EXPECT_EQ(floats(DType::Float16, {0x3C00, 0xC000, 0x7BFF}), (Floats{1, -2, 65504}));
  EXPECT_EQ(floats(DType::BFloat16, {0x3F80, 0xC000}), (Floats{1, -2}));
  EXPECT_EQ(floats(DType::Float8E4M3FN, {0x7E, 0x38}), (Floats{448, 1}));
  EXPECT_EQ(floats(DType::Float8E5M2, {0x3C}), (Floats{1}));
  EXPECT_EQ(floats(DType::Float8E8M0, {127, 128}), (Floats{1, 2}));
  EXPECT_EQ(floats(DType::Float6E2M3, {0x1F, 0x08, 0x28, 0x01, 0x3F}), (Floats{7.5, 1, -1, 0.125, -7.5}));
}

TEST(TypedData, SeveralElementsInOneEntry) {
  EXPECT_EQ(*ints_of(*read_tensor(tensor_of(DType::Int4, {3}).packed(tensor::int32_data, {0x7F, 0x08}))),
            (std::vector<int64_t>{-1, 7, -8}));
  EXPECT_EQ(*ints_of(*read_tensor(tensor_of(DType::UInt2, {5}).packed(tensor::int32_data, {0xE4, 0x02}))),
            (std::vector<int64_t>{0, 1, 2, 3, 2}));
  EXPECT_EQ(*floats_of(*read_tensor(tensor_of(DType::Float4E2M1, {2}).packed(tensor::int32_data, {0x7A}))),
            (std::vector<double>{-1, 6}));
}

TEST(TypedData, TheOtherFields) {
  EXPECT_EQ(*ints_of(*read_tensor(
                tensor_of(DType::Int64, {2}).integer(tensor::int64_data, -7).integer(tensor::int64_data, 8))),
            (std::vector<int64_t>{-7, 8}));  // not packed
  EXPECT_EQ(*ints_of(*read_tensor(tensor_of(DType::UInt32, {1}).packed(tensor::uint64_data, {4294967295}))),
            (std::vector<int64_t>{4294967295}));
  EXPECT_EQ(*floats_of(*read_tensor(
                tensor_of(DType::Float32, {2}).real(tensor::float_data, 1.5F).real(tensor::float_data, -2))),
            (std::vector<double>{1.5, -2}));
  const double number = 0.1;
  const std::string packed(reinterpret_cast<const char*>(&number), sizeof(number));
  EXPECT_EQ(*floats_of(*read_tensor(tensor_of(DType::Float64, {1}).text(tensor::double_data, packed))),
            std::vector<double>{0.1});
  EXPECT_EQ(
      read_tensor(tensor_of(DType::String, {2}).text(tensor::string_data, "a").text(tensor::string_data, ""))->strings,
      (std::vector<std::string>{"a", ""}));
  const TensorPtr complex =
      read_tensor(tensor_of(DType::Complex64, {1}).real(tensor::float_data, 1).real(tensor::float_data, 2));
  EXPECT_EQ(complex->data.size(), 8U);
}

TEST(TypedData, OnlyTheFieldOfItsTypeCounts) {
  EXPECT_ERROR(InvalidModel, "0 numbers for 1 elements",
               read_tensor(tensor_of(DType::Int64, {1}).packed(tensor::int32_data, {1})));
  EXPECT_ERROR(InvalidModel, "0 bytes",
               read_tensor(tensor_of(DType::Float32, {2}).text(tensor::double_data, "12345678")));
  EXPECT_ERROR(InvalidModel, "0 bytes", read_tensor(tensor_of(DType::Complex128, {1}).packed(tensor::int32_data, {1})));
  EXPECT_ERROR(InvalidModel, "string_data", read_tensor(tensor_of(DType::String, {1}).text(tensor::raw_data, "a")));
}

TEST(RawData, IsUsedAsItLies) {
  const TensorPtr tensor =
      read_tensor(tensor_of(DType::Int16, {2}).text(tensor::raw_data, std::string("\x01\x00\xff\xff", 4)));
  EXPECT_EQ(*ints_of(*tensor), (std::vector<int64_t>{1, -1}));
  EXPECT_EQ(read_tensor(tensor_of(DType::Float32, {0, 5}).text(tensor::raw_data, ""))->count(), 0);
  EXPECT_EQ(read_tensor(tensor_of(DType::Float32, {0}))->count(), 0);
}

TEST(RawData, SizesMustFit) {
  EXPECT_ERROR(InvalidModel, "3 bytes for 1 elements",
               read_tensor(tensor_of(DType::Float32, {1}).text(tensor::raw_data, "abc")));
  EXPECT_ERROR(InvalidModel, "negative", read_tensor(tensor_of(DType::Float32, {-1})));
  EXPECT_ERROR(InvalidModel, "overflow", read_tensor(tensor_of(DType::Float32, {int64_t{1} << 40, int64_t{1} << 40})));
  EXPECT_ERROR(InvalidModel, "overflow", read_tensor(tensor_of(DType::Float64, {INT64_MAX / 2})));
  EXPECT_ERROR(InvalidModel, "not the number of an element type", read_tensor(Fields().integer(tensor::data_type, 77)));
  EXPECT_ERROR(InvalidModel, "2 strings for 1", read_tensor(tensor_of(DType::String, {1}).text(6, "a").text(6, "b")));
}

}  // namespace
}  // namespace tonnx::onnx
