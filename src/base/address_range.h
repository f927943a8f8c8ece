// address_range.h - addresses that stand for bytes which nobody holds.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace tonnx {

/// Addresses that nothing else has, and no memory at them: bytes that are made when they are written can be told apart
/// by them, and who looks there all the same is stopped.
class AddressRange {
 public:
  explicit AddressRange(size_t size) : size_(size) {
    if (size == 0) return;
    begin_ = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin_ == MAP_FAILED) throw std::bad_alloc();
  }
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange() {
    if (size_ > 0) munmap(begin_, size_);
  }
  const uint8_t* begin() const { return static_cast<const uint8_t*>(begin_); }
  size_t size() const { return size_; }

 private:
  size_t size_;
  void* begin_ = nullptr;
};

}  // namespace tonnx
