// zip_writer.cpp - local headers, descriptors and the directory of zip files.
#include "base/zip_writer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/computed.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/zip_format.h"

namespace tonnx {
namespace {

constexpr uint16_t kFlags = 1 << 3 | 1 << 11;  // sizes follow; names are UTF-8
constexpr uint16_t kVersion64 = 45;
constexpr uint16_t kPaddingId = 0x4246;  // FB, as PyTorch has it
constexpr uint64_t kAlignment = 64;
constexpr size_t kSmall = size_t{1} << 17;
constexpr uint64_t kWindow = uint64_t{1} << 20;

/// Little-endian numbers, one behind the other.
class Record {
 public:
  Record& u16(uint64_t value) { return number(value, 2); }
  Record& u32(uint64_t value) { return number(value, 4); }
  Record& u64(uint64_t value) { return number(value, 8); }
  Record& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& number(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }
  std::string bytes_;
};

struct Unmap {
  void* address;
  uint64_t size;
  ~Unmap() { munmap(address, size); }
};

/// Hands over bytes that lie in a file: mapped anew in pieces, so that the whole never takes memory. A piece that was
/// looked at for its checksum is still near when it is written: that is faster than a copy by the kernel, whose source
/// and target lie differently within their pages. Returns how much was handed over.
template <class Sink>
uint64_t for_each_window(const Bytes& data, Sink&& sink) {
  const int fd = data.owner() ? data.owner()->fd() : -1;
  if (fd < 0 || data.size() < kSmall) return 0;
  static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto first = static_cast<uint64_t>(data.data() - data.owner()->begin());
  uint64_t at = first;
  while (at < first + data.size()) {
    const uint64_t begin = at / page * page, end = std::min(begin + kWindow, first + data.size());
    void* window = mmap(nullptr, end - begin, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, static_cast<off_t>(begin));
    if (window == MAP_FAILED) break;
    const Unmap unmap{window, end - begin};
    sink(std::string_view(static_cast<const char*>(window) + (at - begin), end - at));
    at = end;
  }
  return at - first;
}

}  // namespace

void ZipWriter::put(std::string_view data) {
  if (file_ != nullptr) {
    file_->write(data);
  } else {
    text_->append(data);
  }
}

void ZipWriter::begin(std::string name) {
  ensure(name.size() < kIn64Short, "the name of an entry is too long");
  Entry entry{std::move(name), position(), 0, 0};
  const uint64_t unpadded = entry.offset + kLocalHeaderSize + entry.name.size() + 4;
  const uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  Record header;
  header.u32(kLocalHeader).u16(0).u16(kFlags).u16(0).u16(0).u16(0).u32(0).u32(0).u32(0);
  header.u16(entry.name.size()).u16(4 + padding).text(entry.name);
  header.u16(kPaddingId).u16(padding).text(std::string(padding, 'Z'));
  put(std::string_view(header.bytes()));
  data_begin_ = position();
  entries_.push_back(std::move(entry));
}

void ZipWriter::write(std::string_view data) {
  Entry& entry = entries_.back();
  entry.crc = crc32_of(data, entry.crc);
  put(data);
}

void ZipWriter::write(const Bytes& data) {
  const auto sink = [this](std::string_view piece) { write(piece); };
  const uint64_t done = for_each_window(data, sink);
  if (done < data.size()) for_each_piece(data.slice(done, data.size() - done), sink);
}

void ZipWriter::end() {
  Entry& entry = entries_.back();
  entry.size = position() - data_begin_;
  Record descriptor;
  descriptor.u32(kDescriptor).u32(entry.crc);
  if (entry.size >= kIn64) {
    descriptor.u64(entry.size).u64(entry.size);
  } else {
    descriptor.u32(entry.size).u32(entry.size);
  }
  put(std::string_view(descriptor.bytes()));
}

void ZipWriter::add(std::string name, std::string_view data) {
  begin(std::move(name));
  write(data);
  end();
}

void ZipWriter::write_directory_entry(const Entry& entry) {
  Record extra;
  const bool is_large = entry.size >= kIn64, is_far = entry.offset >= kIn64;
  if (is_large || is_far) {
    extra.u16(1).u16((is_large ? 16 : 0) + (is_far ? 8 : 0));
    if (is_large) extra.u64(entry.size).u64(entry.size);
    if (is_far) extra.u64(entry.offset);
  }
  Record header;
  header.u32(kCentralHeader).u16(0).u16(is_large || is_far ? kVersion64 : 0).u16(kFlags).u16(0).u16(0).u16(0);
  header.u32(entry.crc).u32(std::min(entry.size, kIn64)).u32(std::min(entry.size, kIn64));
  header.u16(entry.name.size()).u16(extra.bytes().size()).u16(0).u16(0).u16(0).u32(0);
  header.u32(std::min(entry.offset, kIn64)).text(entry.name).text(extra.bytes());
  put(std::string_view(header.bytes()));
}

void ZipWriter::finish() {
  const uint64_t begin = position();
  for (const Entry& entry : entries_) write_directory_entry(entry);
  const uint64_t end = position(), size = end - begin, count = entries_.size();
  Record record;
  if (begin >= kIn64 || size >= kIn64 || count >= kIn64Short) {
    record.u32(kEndRecord64).u64(44).u16(kVersion64).u16(kVersion64).u32(0).u32(0);
    record.u64(count).u64(count).u64(size).u64(begin);
    record.u32(kEndLocator64).u32(0).u64(end).u32(1);
  }
  record.u32(kEndRecord).u16(0).u16(0).u16(std::min(count, kIn64Short)).u16(std::min(count, kIn64Short));
  record.u32(std::min(size, kIn64)).u32(std::min(begin, kIn64)).u16(0);
  put(std::string_view(record.bytes()));
}

}  // namespace tonnx
