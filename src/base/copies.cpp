// copies.cpp - one region of memory for many copies, filled in the background and given back part by part.
#include "base/copies.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <system_error>

#include "base/computed.h"
#include "base/parallel.h"

namespace tonnx {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{1} << 21;
constexpr size_t kPiece = size_t{1} << 22;      // that a thread copies at a time
constexpr size_t kPerThread = size_t{1} << 28;  // less is not worth another thread

size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

/// Memory in huge pages, where the system has some: otherwise a copy takes three times as long, one page at a time.
class Region {
 public:
  explicit Region(size_t size) : size_(round_up(size, kHugePage) + kHugePage) {
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    begin_ = reinterpret_cast<uint8_t*>(round_up(reinterpret_cast<uintptr_t>(memory_), kHugePage));  // NOLINT
    if (size >= kHugePage) madvise(begin_, round_up(size, kHugePage), MADV_HUGEPAGE);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { munmap(memory_, size_); }
  uint8_t* begin() const { return begin_; }

 private:
  size_t size_;
  void* memory_;
  uint8_t* begin_;
};

/// A part of a region, whose huge pages go back to the system when it is released, whatever else of the region is in
/// use. What shares one with its neighbours stays: to take it apart costs more than a copy.
class RegionPart : public ByteOwner {
 public:
  RegionPart(std::shared_ptr<const Region> region, uint8_t* begin, size_t size)
      : region_(std::move(region)), begin_(begin), size_(size) {}
  RegionPart(const RegionPart&) = delete;
  RegionPart& operator=(const RegionPart&) = delete;
  ~RegionPart() override {
    const auto at = reinterpret_cast<uintptr_t>(begin_);
    const size_t first = round_up(at, kHugePage) - at;
    const size_t whole = size_ < first ? 0 : (size_ - first) / kHugePage * kHugePage;
    if (whole > 0) madvise(begin_ + first, whole, MADV_DONTNEED);
  }
  bool is_own() const override { return true; }
  const uint8_t* begin() const override { return begin_; }
  size_t size() const override { return size_; }

 private:
  std::shared_ptr<const Region> region_;
  uint8_t* begin_;
  size_t size_;
};

}  // namespace

Copies::Copies(std::vector<Bytes> sources) : sources_(std::move(sources)) {
  size_t total = 0;
  for (const Bytes& source : sources_) total += round_up(source.size(), kAlignment);
  places_.resize(sources_.size());
  if (total == 0) return;
  const auto region = std::make_shared<const Region>(total);
  uint8_t* at = region->begin();
  for (size_t i = 0; i < sources_.size(); ++i) {
    const size_t size = sources_[i].size();
    const auto part = std::make_shared<const RegionPart>(region, at, size);
    places_[i] = Bytes(part, part->begin(), size);
    index_.emplace(sources_[i].data(), i);
    for (size_t offset = 0; offset < size; offset += kPiece)
      pieces_.push_back({i, offset, std::min(kPiece, size - offset)});
    at += round_up(size, kAlignment);
  }
  const size_t count = std::min(total / kPerThread + 1, thread_count());
  try {
    while (threads_.size() < count) threads_.emplace_back([this] { copy_pieces(); });
  } catch (const std::system_error&) {
    // no more threads are to be had: who waits copies the rest
  }
}

Copies::~Copies() { wait(); }

std::optional<Bytes> Copies::place_of(const Bytes& source) const {
  const auto at = index_.find(source.data());
  if (at == index_.end() || places_[at->second].size() != source.size()) return std::nullopt;
  return places_[at->second];
}

void Copies::copy_pieces() {
  for (size_t i = next_++; i < pieces_.size(); i = next_++) {
    const auto& [source, offset, size] = pieces_[i];
    compute_into(sources_[source].slice(offset, size), const_cast<uint8_t*>(places_[source].data()) + offset);
  }
}

void Copies::wait() {
  copy_pieces();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  sources_.clear();
}

}  // namespace tonnx
