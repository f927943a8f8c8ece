// bytes.h - a run of bytes that keeps its owner alive: a mapped file, memory of the caller, or a buffer of our own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tonnx {

/// Owns bytes that Bytes point into.
class ByteOwner {
 public:
  virtual ~ByteOwner() = default;
  /// The file that they are mapped from, or -1.
  virtual int fd() const { return -1; }
  /// Whether they are in memory of our own: nobody else changes them, and nobody minds who writes to them.
  virtual bool is_own() const { return false; }
  virtual const uint8_t* begin() const = 0;
  virtual size_t size() const = 0;
};

class Bytes {
 public:
  Bytes() = default;
  Bytes(std::shared_ptr<const ByteOwner> owner, const uint8_t* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}

  /// Bytes of a buffer that the result owns.
  static Bytes own(std::vector<uint8_t> data);
  static Bytes own(std::string data);

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string_view view() const { return {reinterpret_cast<const char*>(data_), size_}; }
  Bytes slice(size_t offset, size_t size) const { return {owner_, data_ + offset, size}; }
  /// The part of these bytes that `part`, a view into them, denotes.
  Bytes slice(std::string_view part) const {
    return {owner_, reinterpret_cast<const uint8_t*>(part.data()), part.size()};
  }
  const std::shared_ptr<const ByteOwner>& owner() const { return owner_; }

 private:
  std::shared_ptr<const ByteOwner> owner_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

/// Copies bytes as they are in their file, where they have one: its pages are not mapped by that, and hold no memory.
void copy_bytes(const Bytes& from, uint8_t* into);

/// Maps a whole file, privately: the pages may be written to, and are copied only then. Throws BadFile.
Bytes map_file(const std::string& path);

}  // namespace tonnx
