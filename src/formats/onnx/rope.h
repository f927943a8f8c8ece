// rope.h - a protobuf message in the making: short runs of our own bytes between long ones that stay where they are.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/output_file.h"

namespace tonnx::onnx {

class Rope {
 public:
  void add_varint(uint32_t field, uint64_t value);
  void add_integer(uint32_t field, int64_t value) { add_varint(field, static_cast<uint64_t>(value)); }
  void add_float(uint32_t field, float value);
  void add_text(uint32_t field, std::string_view text);
  /// Nothing where the text is empty.
  void add_optional_text(uint32_t field, std::string_view text);
  void add_bytes(uint32_t field, const Bytes& bytes);
  void add_message(uint32_t field, Rope&& message);
  void add_packed(uint32_t field, const std::vector<int64_t>& values);
  /// Fields that are already encoded.
  void add_encoded(const Bytes& fields);

  uint64_t size() const { return size_; }
  /// `progress`, where given, is told the bytes written and their total.
  void write_to(OutputFile& file, const std::function<void(uint64_t, uint64_t)>& progress = nullptr) const;
  void append_to(std::string& text) const;

 private:
  struct Piece {
    std::string own;  // used where `bytes` has no data
    Bytes bytes;
  };
  std::string& tail();
  void add_tag(uint32_t field, uint32_t wire_type);
  void add_plain_varint(uint64_t value);
  void append_bytes(const Bytes& bytes);

  std::vector<Piece> pieces_;
  uint64_t size_ = 0;
};

}  // namespace tonnx::onnx
