// computed_test.cpp - bytes that are made on several threads arrive whole and in order, and errors end it.
#include "base/computed.h"

#include <atomic>
#include <stdexcept>

#include "checks.h"

namespace tonnx {
namespace {

/// Bytes that say where they are.
class Places : public ComputedBytes {
 public:
  Places(size_t size, size_t piece) : bytes_(size), piece_(piece) {}
  const uint8_t* begin() const override { return bytes_.data(); }
  size_t size() const override { return bytes_.size(); }
  size_t best_piece() const override { return piece_; }
  void compute(size_t offset, uint8_t* into, size_t size) const override {
    ++calls;
    if (fails_at != 0 && offset >= fails_at) throw std::runtime_error("no more");
    for (size_t i = 0; i < size; ++i) into[i] = byte_at(offset + i);
  }
  static uint8_t byte_at(size_t at) { return static_cast<uint8_t>(at * 2654435761U >> 24U); }

  size_t fails_at = 0;
  mutable std::atomic<size_t> calls = 0;

 private:
  std::vector<uint8_t> bytes_;  // nobody looks at them
  size_t piece_;
};

std::string gathered(const Bytes& bytes) {
  std::string result;
  for_each_piece(bytes, [&](std::string_view piece) { result += piece; });
  return result;
}

TEST(Computed, PiecesArriveInOrder) {
  for (const size_t size : {0UL, 1UL, 4096UL, 4097UL, 1'000'003UL}) {
    const auto places = std::make_shared<const Places>(size, 4096);
    const std::string got = gathered(Bytes(places, places->begin(), size));
    ASSERT_EQ(got.size(), size);
    for (size_t i = 0; i < size; ++i)
      ASSERT_EQ(static_cast<uint8_t>(got[i]), Places::byte_at(i)) << i << " of " << size;
    EXPECT_EQ(places->calls, (size + 4095) / 4096);
  }
}

TEST(Computed, APartIsThatPart) {
  const auto places = std::make_shared<const Places>(100'000, 4096);
  const std::string got = gathered(Bytes(places, places->begin() + 1600, 50'000));
  ASSERT_EQ(got.size(), 50'000U);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(static_cast<uint8_t>(got[i]), Places::byte_at(1600 + i)) << i;
}

TEST(Computed, WhatExistsIsHandedOverAsItIs) {
  const Bytes bytes = Bytes::own(std::string("as it is"));
  for_each_piece(bytes, [&](std::string_view piece) { EXPECT_EQ(piece.data(), bytes.view().data()); });
  EXPECT_EQ(gathered(bytes), "as it is");
}

TEST(Computed, RunsArriveOneBehindTheOther) {
  const auto small = std::make_shared<const Places>(100, 4096), large = std::make_shared<const Places>(3'000'003, 4096),
             other = std::make_shared<const Places>(50'000, 16384);
  const Bytes text = Bytes::own(std::string("in memory"));
  const auto all = [](const std::shared_ptr<const Places>& places) {
    return Bytes(places, places->begin(), places->size());
  };
  const std::vector<Bytes> runs = {text, all(small), Bytes(), all(large), text, text, all(other), all(small), text};
  std::string want, got;
  for (const Bytes& run : runs) {
    if (!is_computed(run)) {
      want += run.view();
      continue;
    }
    for (size_t i = 0; i < run.size(); ++i) want += static_cast<char>(Places::byte_at(i));
  }
  for_each_piece(runs, [&](std::string_view piece) { got += piece; });
  EXPECT_TRUE(got == want);
  EXPECT_EQ(large->calls, (3'000'003U + 4095) / 4096);
}

TEST(Computed, ASinkThatFailsEndsIt) {
  const auto places = std::make_shared<const Places>(10'000'000, 4096);
  int count = 0;
  const auto sink = [&](std::string_view) {
    if (++count == 3) throw std::runtime_error("the disk is full");
  };
  EXPECT_THROW(for_each_piece(Bytes(places, places->begin(), places->size()), sink), std::runtime_error);
  EXPECT_EQ(count, 3);
  EXPECT_LT(places->calls, 100U);
}

TEST(Computed, WhatCannotBeMadeEndsIt) {
  auto places = std::make_shared<Places>(10'000'000, 4096);
  places->fails_at = 40'000;
  size_t got = 0;
  const auto sink = [&](std::string_view piece) { got += piece.size(); };
  EXPECT_THROW(for_each_piece(Bytes(places, places->begin(), places->size()), sink), std::runtime_error);
  EXPECT_LE(got, 40'960U);
}

}  // namespace
}  // namespace tonnx
