// rope.cpp - encodes protobuf fields.
#include "formats/onnx/rope.h"

#include <algorithm>
#include <cstring>

#include "base/computed.h"

namespace tonnx::onnx {
namespace {

constexpr size_t kShort = 256;  // shorter runs are copied, longer ones referred to
constexpr uint32_t kVarint = 0, kLengthDelimited = 2, kFixed32 = 5;

}  // namespace

std::string& Rope::tail() {
  if (pieces_.empty() || pieces_.back().bytes.data() != nullptr) pieces_.emplace_back();
  return pieces_.back().own;
}

void Rope::add_plain_varint(uint64_t value) {
  std::string& text = tail();
  do {
    text.push_back(static_cast<char>((value & 0x7F) | (value > 0x7F ? 0x80 : 0)));
    ++size_;
    value >>= 7;
  } while (value != 0);
}

void Rope::add_tag(uint32_t field, uint32_t wire_type) { add_plain_varint((uint64_t{field} << 3) | wire_type); }

void Rope::add_varint(uint32_t field, uint64_t value) {
  add_tag(field, kVarint);
  add_plain_varint(value);
}

void Rope::add_float(uint32_t field, float value) {
  add_tag(field, kFixed32);
  char bytes[4];
  std::memcpy(bytes, &value, 4);
  tail().append(bytes, 4);
  size_ += 4;
}

void Rope::add_text(uint32_t field, std::string_view text) {
  add_tag(field, kLengthDelimited);
  add_plain_varint(text.size());
  tail().append(text);
  size_ += text.size();
}

void Rope::add_optional_text(uint32_t field, std::string_view text) {
  if (!text.empty()) add_text(field, text);
}

void Rope::append_bytes(const Bytes& bytes) {
  size_ += bytes.size();
  if (bytes.size() < kShort) {
    tail().append(bytes.view());
  } else if (!pieces_.empty() && pieces_.back().bytes.data() != nullptr &&
             pieces_.back().bytes.owner() == bytes.owner() &&
             pieces_.back().bytes.data() + pieces_.back().bytes.size() == bytes.data()) {
    Bytes& last = pieces_.back().bytes;
    last = Bytes(last.owner(), last.data(), last.size() + bytes.size());
  } else {
    pieces_.push_back({{}, bytes});
  }
}

void Rope::add_bytes(uint32_t field, const Bytes& bytes) {
  add_tag(field, kLengthDelimited);
  add_plain_varint(bytes.size());
  append_bytes(bytes);
}

void Rope::add_encoded(const Bytes& fields) { append_bytes(fields); }

void Rope::add_message(uint32_t field, Rope&& message) {
  add_tag(field, kLengthDelimited);
  add_plain_varint(message.size_);
  for (Piece& piece : message.pieces_) {
    if (piece.bytes.data() != nullptr) {
      pieces_.push_back(std::move(piece));
    } else {
      tail().append(piece.own);
    }
  }
  size_ += message.size_;
}

void Rope::add_packed(uint32_t field, const std::vector<int64_t>& values) {
  Rope content;
  for (const int64_t value : values) content.add_plain_varint(static_cast<uint64_t>(value));
  add_message(field, std::move(content));
}

void Rope::write_to(OutputFile& file, const std::function<void(uint64_t, uint64_t)>& progress) const {
  constexpr size_t kStep = size_t{16} << 20;  // whoever looks on hears of long runs more than once
  const size_t step = progress ? kStep : SIZE_MAX;
  const uint64_t start = file.position();
  std::vector<Bytes> runs;
  size_t size = 0;
  const auto write = [&] {
    file.write(runs);
    runs.clear();
    size = 0;
    if (progress) progress(file.position() - start, size_);
  };
  for (const Piece& piece : pieces_) {
    const Bytes& bytes = piece.bytes;
    if (bytes.data() == nullptr) {
      runs.emplace_back(nullptr, reinterpret_cast<const uint8_t*>(piece.own.data()), piece.own.size());
      continue;
    }
    for (size_t done = 0; done < bytes.size();) {  // in whole elements: they may have to be made
      runs.push_back(bytes.slice(done, std::min(step, bytes.size() - done)));
      done += runs.back().size();
      size += runs.back().size();
      if (size >= step) write();
    }
  }
  write();
}

void Rope::append_to(std::string& text) const {
  text.reserve(text.size() + size_);
  for (const Piece& piece : pieces_) {
    if (piece.bytes.data() != nullptr) {
      for_each_piece(piece.bytes, [&](std::string_view part) { text += part; });
    } else {
      text += piece.own;
    }
  }
}

}  // namespace tonnx::onnx
