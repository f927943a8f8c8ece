// zip.h - the directory of a zip file that lies in memory or in a mapping; stored entries stay where they are.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tonnx {

struct ZipEntry {
  std::string name;  // with '/' between its parts; never absolute, never with '..'
  uint64_t size = 0;
  uint32_t crc = 0;
  bool deflated = false;
  Bytes packed;  // as it lies in the file
};

class ZipFile {
 public:
  /// Reads the central directory and checks it against the local headers, so that what is wrong with the file is known
  /// at once: every entry lies in the file, overlaps no other, and has a name of its own. Throws BadFile, or
  /// Unsupported for encryption and rare methods. The checksum of stored entries is not looked at.
  explicit ZipFile(Bytes bytes);
  /// A zip file within another: the two together may not inflate to more than the outer one may.
  ZipFile(Bytes bytes, const ZipFile& outer);
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;

  /// Whether the bytes begin as a zip file does.
  static bool looks_like_zip(std::string_view bytes);

  /// In the order of the central directory, without folders.
  const std::vector<ZipEntry>& entries() const { return entries_; }
  const ZipEntry* find(std::string_view name) const;
  /// The content: a part of the file where it is stored, else inflated anew at each call. Throws BadFile where the
  /// content is damaged, or where all that was asked for so far is absurdly larger than the file.
  Bytes read(const ZipEntry& entry);
  /// The same for a text or a pickle, which takes many times its size when it is parsed: less of it may come out of
  /// little.
  Bytes read_document(const ZipEntry& entry);

 private:
  std::vector<ZipEntry> entries_;
  std::vector<size_t> by_name_;  // in the order of the names: no choice of names makes a search slow
  uint64_t inflate_budget_ = 0;
  uint64_t document_budget_ = 0;
};

}  // namespace tonnx
