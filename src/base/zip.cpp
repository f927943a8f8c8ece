// zip.cpp - reads zip directories, 64-bit forms included, and refuses what is ambiguous in them.
#include "base/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "base/error.h"
#include "base/zip_format.h"

namespace tonnx {
namespace {

constexpr uint64_t kMaxComment = 0xFFFF;
constexpr uint16_t kExtra64 = 1;

constexpr uint16_t kEncrypted = 1 << 0 | 1 << 6 | 1 << 13;
constexpr uint16_t kSizesFollow = 1 << 3;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;

constexpr uint64_t kMaxEntries = 1'000'000;
constexpr uint64_t kMaxDeflateRatio = 1032;           // the format has no way to go beyond
constexpr uint64_t kFreeInflate = uint64_t{1} << 23;  // that much, however small the file is,
constexpr uint64_t kInflatePerByte = 30;              // and that many times the size of the file
constexpr uint64_t kFreeDocument = uint64_t{3} << 20;
constexpr uint64_t kDocumentPerByte = 2;

template <class... Args>
[[noreturn]] void fail_zip(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::BadFile, "bad zip file: " + format_error(text, fmt::make_format_args(args...)));
}

/// Numbers at positions that are checked.
class Reader {
 public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}
  uint64_t size() const { return bytes_.size(); }
  uint16_t u16(uint64_t at) const { return number<uint16_t>(at); }
  uint32_t u32(uint64_t at) const { return number<uint32_t>(at); }
  uint64_t u64(uint64_t at) const { return number<uint64_t>(at); }
  std::string_view text(uint64_t at, uint64_t size) const {
    need(at, size);
    return bytes_.view().substr(at, size);
  }
  void need(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) fail_zip("it ends in the middle of its directory");
  }

 private:
  template <class T>
  T number(uint64_t at) const {
    need(at, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }

  const Bytes& bytes_;
};

struct Directory {
  uint64_t count = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t end() const { return offset + size; }
};

/// The position of the end record: the last one whose comment ends where the file ends.
uint64_t find_end_record(const Reader& file) {
  if (file.size() >= kEndRecordSize) {
    const uint64_t last = file.size() - kEndRecordSize;
    const uint64_t first = last > kMaxComment ? last - kMaxComment : 0;
    for (uint64_t at = last + 1; at-- > first;) {
      if (file.u32(at) == kEndRecord && at + kEndRecordSize + file.u16(at + 20) == file.size()) return at;
    }
  }
  fail_zip("it has no end record, so it is truncated or not a zip file");
}

Directory find_directory(const Reader& file) {
  const uint64_t end = find_end_record(file);
  const uint16_t disk = file.u16(end + 4);
  Directory directory{file.u16(end + 10), file.u32(end + 16), file.u32(end + 12)};
  uint64_t limit = end;
  if (end >= kEndLocator64Size && file.u32(end - kEndLocator64Size) == kEndLocator64) {
    const uint64_t at = file.u64(end - kEndLocator64Size + 8);
    limit = end - kEndLocator64Size;
    if (at > limit || limit - at < kEndRecord64Size || file.u32(at) != kEndRecord64) {
      fail_zip("its 64-bit end record is not where it should be");
    }
    limit = at;
    const Directory wide{file.u64(at + 32), file.u64(at + 48), file.u64(at + 40)};
    const auto agree = [](uint64_t narrow, uint64_t sentinel, uint64_t value) {
      return narrow == sentinel || narrow == value;
    };
    if (!agree(directory.count, kIn64Short, wide.count) || !agree(directory.offset, kIn64, wide.offset) ||
        !agree(directory.size, kIn64, wide.size) || file.u32(at + 16) != 0 || file.u32(at + 20) != 0 ||
        file.u64(at + 24) != wide.count) {
      fail_zip("its two end records contradict each other");
    }
    directory = wide;
  } else if (disk != 0 || file.u16(end + 6) != 0 || file.u16(end + 8) != directory.count) {
    fail_zip("it is one part of several");
  }
  if (directory.offset > limit || directory.size > limit - directory.offset) {
    fail_zip("its directory lies outside the file");
  }
  if (directory.count > kMaxEntries || directory.count > directory.size / kCentralHeaderSize) {
    fail_zip("{} entries cannot be in a directory of {} bytes", directory.count, directory.size);
  }
  return directory;
}

/// The values of the 64-bit extra field, in its order, for those that are all ones in the header.
void widen(std::string_view extra, std::initializer_list<uint64_t*> values, std::string_view name) {
  const bool any = std::any_of(values.begin(), values.end(), [](const uint64_t* value) { return *value == kIn64; });
  if (!any) return;
  while (extra.size() >= 4) {
    uint16_t id = 0;
    uint16_t size = 0;
    std::memcpy(&id, extra.data(), 2);
    std::memcpy(&size, extra.data() + 2, 2);
    extra.remove_prefix(4);
    if (size > extra.size()) break;
    std::string_view field = extra.substr(0, size);
    extra.remove_prefix(size);
    if (id != kExtra64) continue;
    for (uint64_t* value : values) {
      if (*value != kIn64) continue;
      if (field.size() < 8) fail_zip("entry '{}' lacks its 64-bit size", name);
      std::memcpy(value, field.data(), 8);
      field.remove_prefix(8);
    }
    return;
  }
  fail_zip("entry '{}' lacks its 64-bit size", name);
}

void check_name(std::string_view name) {
  if (name.empty() || name.find('\0') != std::string_view::npos) fail_zip("an entry has no proper name");
  const auto is_separator = [](char c) { return c == '/' || c == '\\'; };
  if (is_separator(name.front()) || (name.size() > 2 && name[1] == ':' && is_separator(name[2]))) {
    fail_zip("entry '{}' has an absolute name", name);
  }
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = begin;
    while (end < name.size() && !is_separator(name[end])) ++end;
    if (name.substr(begin, end - begin) == "..") fail_zip("entry '{}' points outside the archive", name);
    begin = end + 1;
  }
}

struct Place {
  uint64_t begin;
  uint64_t end;
  size_t entry;
};

/// Checks the local header of the entry, and gives the place of header and data together.
Place check_local_header(const Bytes& bytes, uint64_t at, uint64_t limit, uint16_t method, uint64_t packed_size,
                         ZipEntry& entry) {
  const Reader file(bytes);
  if (at > limit || limit - at < kLocalHeaderSize || file.u32(at) != kLocalHeader) {
    fail_zip("entry '{}' is not where the directory says", entry.name);
  }
  const uint16_t flags = file.u16(at + 6);
  const uint64_t name_size = file.u16(at + 26);
  const uint64_t extra_size = file.u16(at + 28);
  const uint64_t data = at + kLocalHeaderSize + name_size + extra_size;
  if (data > limit || packed_size > limit - data) fail_zip("entry '{}' reaches past the end of the file", entry.name);
  if (file.text(at + kLocalHeaderSize, name_size) != entry.name || file.u16(at + 8) != method) {
    fail_zip("entry '{}' is another one in its own header", entry.name);
  }
  if (flags & kEncrypted) fail_unsupported("entry '{}' of the zip file is encrypted", entry.name);
  uint64_t size = file.u32(at + 22);
  uint64_t packed = file.u32(at + 18);
  // sizes that follow the data are zero here, or, in 64-bit form, zero in the extra field
  const bool absent = (flags & kSizesFollow) && (size == 0 || size == kIn64) && (packed == 0 || packed == kIn64);
  if (!absent) {
    widen(file.text(at + kLocalHeaderSize + name_size, extra_size), {&size, &packed}, entry.name);
    if (size != entry.size || packed != packed_size) fail_zip("entry '{}' has two different sizes", entry.name);
  }
  entry.packed = bytes.slice(data, packed_size);
  return {at, data + packed_size, 0};
}

/// One entry of the directory; `at` moves on to the next.
Place read_entry(const Bytes& bytes, const Directory& directory, uint64_t& at, ZipEntry& entry) {
  const Reader file(bytes);
  if (directory.end() - at < kCentralHeaderSize || file.u32(at) != kCentralHeader) fail_zip("its directory is damaged");
  const uint16_t flags = file.u16(at + 8);
  const uint16_t method = file.u16(at + 10);
  const uint64_t name_size = file.u16(at + 28);
  const uint64_t extra_size = file.u16(at + 30);
  const uint64_t next = at + kCentralHeaderSize + name_size + extra_size + file.u16(at + 32);
  if (next > directory.end()) fail_zip("its directory is damaged");
  entry.name = file.text(at + kCentralHeaderSize, name_size);
  check_name(entry.name);
  entry.crc = file.u32(at + 16);
  entry.size = file.u32(at + 24);
  entry.deflated = method == kDeflated;
  uint64_t packed_size = file.u32(at + 20);
  uint64_t offset = file.u32(at + 42);
  widen(file.text(at + kCentralHeaderSize + name_size, extra_size), {&entry.size, &packed_size, &offset}, entry.name);
  if (flags & kEncrypted) fail_unsupported("entry '{}' of the zip file is encrypted", entry.name);
  if (method != kStored && method != kDeflated) {
    fail_unsupported("entry '{}' of the zip file is compressed with method {}", entry.name, method);
  }
  const bool fits = entry.deflated ? entry.size / kMaxDeflateRatio <= packed_size : entry.size == packed_size;
  if (!fits) fail_zip("entry '{}' cannot have {} bytes in {}", entry.name, entry.size, packed_size);
  at = next;
  return check_local_header(bytes, offset, directory.offset, method, packed_size, entry);
}

/// Memory that is not touched before something is written to it.
class InflatedBytes : public ByteOwner {
 public:
  explicit InflatedBytes(size_t size) : data_(new(std::nothrow) uint8_t[size]), size_(size) {}
  uint8_t* data() { return data_.get(); }
  bool is_own() const override { return true; }
  const uint8_t* begin() const override { return data_.get(); }
  size_t size() const override { return size_; }

 private:
  std::unique_ptr<uint8_t[]> data_;
  size_t size_;
};

struct Inflater {
  z_stream stream{};
  Inflater() {
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

Bytes inflated(const ZipEntry& entry) {
  const auto result = std::make_shared<InflatedBytes>(entry.size);
  if (result->data() == nullptr) fail_zip("entry '{}' of {} bytes does not fit in memory", entry.name, entry.size);
  Inflater inflater;
  z_stream& stream = inflater.stream;
  const uint8_t* in = entry.packed.data();
  uint64_t in_left = entry.packed.size();
  uint64_t out_left = entry.size;
  uint8_t* out = result->data();
  int status = Z_OK;
  while (status == Z_OK) {  // zlib counts in 32 bits
    const auto in_part = static_cast<uInt>(std::min<uint64_t>(in_left, 1U << 30));
    const auto out_part = static_cast<uInt>(std::min<uint64_t>(out_left, 1U << 30));
    stream.next_in = const_cast<Bytef*>(in);
    stream.avail_in = in_part;
    stream.next_out = out;
    stream.avail_out = out_part;
    status = inflate(&stream, Z_NO_FLUSH);
    in += in_part - stream.avail_in;
    in_left -= in_part - stream.avail_in;
    out += out_part - stream.avail_out;
    out_left -= out_part - stream.avail_out;
  }
  if (status != Z_STREAM_END || in_left != 0 || out_left != 0) fail_zip("entry '{}' does not inflate", entry.name);
  uLong crc = crc32(0, nullptr, 0);
  crc = crc32_z(crc, result->data(), entry.size);
  if (crc != entry.crc) fail_zip("the checksum of entry '{}' is wrong", entry.name);
  return Bytes(result, result->begin(), entry.size);
}

}  // namespace

bool ZipFile::looks_like_zip(std::string_view bytes) {
  return bytes.starts_with("PK\3\4") || bytes.starts_with("PK\5\6");
}

ZipFile::ZipFile(Bytes bytes) {
  const Reader file(bytes);
  const Directory directory = find_directory(file);
  inflate_budget_ = kFreeInflate + kInflatePerByte * bytes.size();
  document_budget_ = kFreeDocument + kDocumentPerByte * bytes.size();
  entries_.reserve(directory.count);
  std::vector<Place> places;
  places.reserve(directory.count);
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.count; ++i) {
    ZipEntry entry;
    Place place = read_entry(bytes, directory, at, entry);
    if (entry.name.back() == '/') {
      if (entry.size != 0) fail_zip("folder '{}' has content", entry.name);
      continue;
    }
    place.entry = entries_.size();
    places.push_back(place);
    entries_.push_back(std::move(entry));
  }
  if (at != directory.end()) fail_zip("its directory has more entries than it says");

  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i].begin < places[i - 1].end) {
      fail_zip("entries '{}' and '{}' overlap", entries_[places[i - 1].entry].name, entries_[places[i].entry].name);
    }
  }
  by_name_.resize(entries_.size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(by_name_.begin(), by_name_.end(), [&](size_t a, size_t b) { return entries_[a].name < entries_[b].name; });
  for (size_t i = 1; i < by_name_.size(); ++i) {
    const std::string& name = entries_[by_name_[i]].name;
    if (name == entries_[by_name_[i - 1]].name) fail_zip("there are two entries '{}'", name);
  }
}

ZipFile::ZipFile(Bytes bytes, const ZipFile& outer) : ZipFile(std::move(bytes)) {
  inflate_budget_ = std::min(inflate_budget_, outer.inflate_budget_);
  document_budget_ = std::min(document_budget_, outer.document_budget_);
}

const ZipEntry* ZipFile::find(std::string_view name) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                      [&](size_t i, std::string_view wanted) { return entries_[i].name < wanted; });
  return found == by_name_.end() || entries_[*found].name != name ? nullptr : &entries_[*found];
}

Bytes ZipFile::read_document(const ZipEntry& entry) {
  if (entry.deflated) {
    if (entry.size > document_budget_)
      fail_zip("entry '{}' inflates to {} bytes to be parsed, which is absurd", entry.name, entry.size);
    document_budget_ -= entry.size;
  }
  return read(entry);
}

Bytes ZipFile::read(const ZipEntry& entry) {
  if (!entry.deflated) return entry.packed;
  if (entry.size > inflate_budget_)
    fail_zip("entry '{}' inflates to {} bytes, which is absurd", entry.name, entry.size);
  inflate_budget_ -= entry.size;
  return inflated(entry);
}

}  // namespace tonnx
