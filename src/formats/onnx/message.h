// message.h - a protobuf message inside mapped bytes, read field by field without copies.
#pragma once
#include <protozero/pbf_reader.hpp>
#include <string>

#include "base/bytes.h"
#include "ir/tensor.h"

namespace tonnx::onnx {

/// Walks the fields of one message. A field whose wire type is not the one expected counts as unknown.
/// protozero's exceptions are turned into BadFile by the functions that open a file.
class Message {
 public:
  explicit Message(Bytes bytes) : bytes_(std::move(bytes)), reader_(bytes_.view().data(), bytes_.size()) {}

  bool next() {
    start_ = reader_.data().data();
    return reader_.next();
  }
  uint32_t field() const { return reader_.tag(); }
  bool is_varint() const { return reader_.wire_type() == protozero::pbf_wire_type::varint; }
  bool is_bytes() const { return reader_.wire_type() == protozero::pbf_wire_type::length_delimited; }
  bool is_fixed32() const { return reader_.wire_type() == protozero::pbf_wire_type::fixed32; }

  void skip() { reader_.skip(); }
  int64_t integer() {
    if (is_varint()) return reader_.get_int64();
    skip();
    return 0;
  }
  float real() {
    if (is_fixed32()) return reader_.get_float();
    skip();
    return 0;
  }
  std::string_view view() {
    if (!is_bytes()) {
      skip();
      return {};
    }
    const protozero::data_view data = reader_.get_view();
    return {data.data(), data.size()};
  }
  std::string text() { return std::string(view()); }
  Bytes bytes() { return bytes_.slice(view()); }

  /// The field that was just read or skipped, with its tag.
  std::string_view whole_field() const { return {start_, static_cast<size_t>(reader_.data().data() - start_)}; }
  const Bytes& all() const { return bytes_; }

 private:
  Bytes bytes_;
  protozero::pbf_reader reader_;
  const char* start_ = nullptr;
};

/// Appends the numbers of a repeated field, packed or not.
void read_integers(Message& message, std::vector<int64_t>& into);

/// One key and value of metadata_props, or of external_data.
std::pair<std::string, std::string> read_entry(Bytes bytes);

}  // namespace tonnx::onnx
