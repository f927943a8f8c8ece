// strided_test.cpp - dense, gathered and shared tensors out of storages, and the memory that gathering may take.
#include "ir/strided.h"

#include "checks.h"

namespace tonnx {
namespace {

const Bytes kStorage = Bytes::own(std::string("abcdef"));

std::string text_of(StridedTensors& tensors, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset) {
  const TensorPtr tensor = tensors.get(kStorage, {DType::UInt8, std::move(sizes), std::move(strides), offset});
  return std::string(tensor->data.view());
}

TEST(Strided, OrderIsRowMajor) {
  StridedTensors tensors(1000);
  EXPECT_EQ(text_of(tensors, {2, 3}, {3, 1}, 0), "abcdef");
  EXPECT_EQ(text_of(tensors, {3, 2}, {1, 3}, 0), "adbecf");
  EXPECT_EQ(text_of(tensors, {2, 2}, {3, 1}, 1), "bcef");
  EXPECT_EQ(text_of(tensors, {2, 1, 2}, {1, 9, 2}, 0), "acbd");
  EXPECT_EQ(text_of(tensors, {3}, {0}, 5), "fff");
  EXPECT_EQ(text_of(tensors, {}, {}, 2), "c");
  EXPECT_EQ(text_of(tensors, {2, 0}, {100, 100}, 100), "");
}

TEST(Strided, TheSameIsMadeOnce) {
  StridedTensors tensors(6);
  const Strided transposed{DType::UInt8, {3, 2}, {1, 3}, 0};
  const TensorPtr first = tensors.get(kStorage, transposed);
  EXPECT_EQ(first, tensors.get(kStorage, transposed));
  EXPECT_NE(first, tensors.get(kStorage, {DType::UInt8, {2, 3}, {3, 1}, 0}));
  EXPECT_NE(first, tensors.get(Bytes::own(std::string("abcdef")), {DType::UInt8, {2, 3}, {3, 1}, 0}));
}

TEST(Strided, GatheringHasOneBudget) {
  StridedTensors tensors(10);
  EXPECT_EQ(text_of(tensors, {3, 2}, {1, 3}, 0), "adbecf");
  EXPECT_EQ(text_of(tensors, {4}, {0}, 0), "aaaa");
  EXPECT_EQ(text_of(tensors, {6}, {1}, 0), "abcdef") << "what is dense costs nothing";
  EXPECT_ERROR(Unsupported, "too many to be gathered", text_of(tensors, {2}, {0}, 0));
}

}  // namespace
}  // namespace tonnx
