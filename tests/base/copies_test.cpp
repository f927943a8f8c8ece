// copies_test.cpp - copies that threads make, and their memory.
#include "base/copies.h"

#include <sys/mman.h>

#include <numeric>

#include "base/computed.h"
#include "checks.h"

namespace tonnx {
namespace {

Bytes numbered(size_t size, uint8_t first) {
  std::vector<uint8_t> data(size);
  std::iota(data.begin(), data.end(), first);
  return Bytes::own(std::move(data));
}

/// How many of the pages around these bytes have memory.
size_t pages_in_memory(const uint8_t* begin, size_t size) {
  constexpr size_t kPage = 4096;
  auto* first = reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(begin) / kPage * kPage);  // NOLINT
  std::vector<unsigned char> pages((begin + size - first + kPage - 1) / kPage);
  EXPECT_EQ(mincore(first, pages.size() * kPage, pages.data()), 0);
  size_t count = 0;
  for (const unsigned char page : pages) count += page & 1;
  return count;
}

TEST(Copies, HoldWhatTheSourcesHeld) {
  const std::vector<Bytes> sources = {numbered(3, 1), numbered(0, 0), numbered(65, 7), numbered(40'000'000, 9)};
  std::vector<Bytes> places;
  {
    Copies copies(sources);
    places = copies.places();
    copies.wait();
  }
  ASSERT_EQ(places.size(), sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_EQ(places[i].view(), sources[i].view());
    EXPECT_NE(places[i].data(), sources[i].data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(places[i].data()) % 64, 0U);
    EXPECT_TRUE(places[i].owner()->is_own());
  }
}

TEST(Copies, AreThereWhenTheyGoOutOfScope) {
  const Bytes source = numbered(5'000'000, 3);
  std::vector<Bytes> places;
  { places = Copies({source}).places(); }
  EXPECT_EQ(places[0].view(), source.view());
}

TEST(Copies, AreFoundByTheirSources) {
  const Bytes first = numbered(100, 1), second = numbered(100, 1);
  Copies copies({first, second});
  copies.wait();
  ASSERT_TRUE(copies.place_of(second));
  EXPECT_EQ(copies.place_of(second)->data(), copies.places()[1].data());
  EXPECT_FALSE(copies.place_of(second.slice(0, 50)));
  EXPECT_FALSE(copies.place_of(second.slice(50, 50)));
  EXPECT_FALSE(copies.place_of(numbered(100, 1)));
}

TEST(Copies, OfNothing) {
  EXPECT_TRUE(Copies({}).places().empty());
  EXPECT_EQ(Copies({Bytes(), Bytes()}).places().size(), 2U);
}

TEST(Copies, LetGoOfTheirSources) {
  auto source = std::make_unique<Bytes>(numbered(100, 1));
  const std::weak_ptr<const ByteOwner> owner = source->owner();
  Copies copies({*source});
  source.reset();
  copies.wait();
  EXPECT_TRUE(owner.expired());
}

TEST(Copies, GiveTheirMemoryBackOneByOne) {
  std::vector<Bytes> places;
  { places = Copies({numbered(8'000'000, 1), numbered(8'000'000, 2)}).places(); }
  const uint8_t* first = places[0].data();
  EXPECT_GT(pages_in_memory(first, 8'000'000), 1900U);
  places[0] = Bytes();
  EXPECT_LE(pages_in_memory(first, 8'000'000), 1024U);  // the huge ones at its ends are those of its neighbours too
  EXPECT_EQ(places[1].view(), numbered(8'000'000, 2).view());
}

class Doubles : public ComputedBytes {
 public:
  explicit Doubles(Bytes source) : source_(std::move(source)) {}
  const uint8_t* begin() const override { return source_.data(); }
  size_t size() const override { return source_.size(); }
  void compute(size_t offset, uint8_t* into, size_t size) const override {
    for (size_t i = 0; i < size; ++i) into[i] = static_cast<uint8_t>(2 * source_.data()[offset + i]);
  }

 private:
  Bytes source_;
};

TEST(Copies, ComputeWhatIsToBeComputed) {
  const Bytes source = numbered(20'000'000, 0);
  const auto owner = std::make_shared<const Doubles>(source);
  Copies copies({Bytes(owner, owner->begin(), owner->size())});
  copies.wait();
  for (const size_t at : {0UL, 1UL, 16'777'215UL, 16'777'216UL, 19'999'999UL})
    EXPECT_EQ(copies.places()[0].data()[at], static_cast<uint8_t>(2 * source.data()[at])) << at;
}

}  // namespace
}  // namespace tonnx
