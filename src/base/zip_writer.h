// zip_writer.h - writes zip files whose entries are stored, each at a multiple of 64 bytes, so that they can be mapped.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/output_file.h"

namespace tonnx {

/// As PyTorch writes its archives: sizes and checksum follow the data, so that weights go from file to file in one
/// pass. Entries, and archives, past 4 GB have the 64-bit forms.
class ZipWriter {
 public:
  /// Into a file that is still empty, or to a text.
  explicit ZipWriter(OutputFile& file) : file_(&file) {}
  explicit ZipWriter(std::string& text) : text_(&text) {}

  /// Begins an entry; what is written next belongs to it.
  void begin(std::string name);
  void write(std::string_view data);
  void write(const Bytes& data);
  void end();

  /// A whole entry.
  void add(std::string name, std::string_view data);

  /// Writes the directory. The file itself is to be committed by the caller.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t offset = 0;
    uint64_t size = 0;
    uint32_t crc = 0;
  };
  void write_directory_entry(const Entry& entry);
  void put(std::string_view data);
  uint64_t position() const { return file_ ? file_->position() : text_->size(); }

  OutputFile* file_ = nullptr;
  std::string* text_ = nullptr;
  std::vector<Entry> entries_;
  uint64_t data_begin_ = 0;
};

}  // namespace tonnx
