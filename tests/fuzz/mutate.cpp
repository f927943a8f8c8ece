// mutate.cpp - bit flips, cuts and splices, and changes of single fields with all lengths around them kept right.
#include "fuzz/mutate.h"

#include <cstdint>
#include <optional>

namespace tonnx::fuzz {
namespace {

struct Field {
  uint64_t number = 0;
  int wire_type = 0;
  uint64_t integer = 0;  // varints
  std::string bytes;     // all others
};

std::optional<uint64_t> take_varint(std::string_view& text) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<std::vector<Field>> fields_of(std::string_view text) {
  std::vector<Field> fields;
  while (!text.empty()) {
    const auto tag = take_varint(text);
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    Field field{*tag >> 3, static_cast<int>(*tag & 7), 0, {}};
    size_t size = 0;
    if (field.wire_type == 0 || field.wire_type == 2) {
      const auto value = take_varint(text);
      if (!value) return std::nullopt;
      field.integer = *value;
      if (field.wire_type == 2) size = *value;
    } else if (field.wire_type == 1 || field.wire_type == 5) {
      size = field.wire_type == 1 ? 8 : 4;
    } else {
      return std::nullopt;
    }
    if (size > text.size()) return std::nullopt;
    field.bytes = text.substr(0, size);
    text.remove_prefix(size);
    fields.push_back(std::move(field));
  }
  return fields;
}

void add_varint(std::string& text, uint64_t value) {
  do {
    text += static_cast<char>((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
    value >>= 7;
  } while (value != 0);
}

std::string text_of(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    add_varint(text, field.number << 3 | static_cast<uint64_t>(field.wire_type));
    if (field.wire_type == 0) add_varint(text, field.integer);
    if (field.wire_type == 2) add_varint(text, field.bytes.size());
    text += field.bytes;
  }
  return text;
}

uint64_t odd_integer(uint64_t old_value, Random& random) {
  const uint64_t kOdd[] = {0,
                           1,
                           2,
                           static_cast<uint64_t>(-1),
                           static_cast<uint64_t>(INT64_MIN),
                           INT64_MAX,
                           1U << 31,
                           UINT32_MAX,
                           old_value + 1,
                           old_value - 1,
                           old_value * 2,
                           random() % 64,
                           random()};
  return kOdd[random() % std::size(kOdd)];
}

void damage_bytes(std::string& text, const std::vector<std::string>& donors, Random& random) {
  if (text.empty()) {
    text += static_cast<char>(random());
    return;
  }
  const size_t at = random() % text.size();
  switch (random() % 6) {
    case 0: text[at] = static_cast<char>(text[at] ^ (1 << random() % 8)); break;
    case 1: text[at] = static_cast<char>(random()); break;
    case 2: text.resize(at); break;
    case 3: text.erase(at, random() % 16 + 1); break;
    case 4: text.insert(at, text.substr(random() % text.size(), random() % 32)); break;
    default: {
      const std::string& donor = donors[random() % donors.size()];
      text.replace(at, random() % 8, donor.substr(random() % donor.size(), random() % 64));
    }
  }
}

/// Changes one field somewhere inside the message.
void damage_fields(std::string& text, const std::vector<std::string>& donors, Random& random, int depth) {
  auto fields = fields_of(text);
  if (!fields || fields->empty() || depth > 12) return damage_bytes(text, donors, random);
  Field& field = (*fields)[random() % fields->size()];
  const bool is_nested = field.wire_type == 2 && !field.bytes.empty();
  if (is_nested && random() % 8 != 0) {
    damage_fields(field.bytes, donors, random, depth + 1);
  } else {
    switch (random() % 6) {
      case 0: fields->erase(fields->begin() + (&field - fields->data())); break;
      case 1: fields->push_back(field); break;
      case 2: field.number = random() % 30 + 1; break;
      case 3: std::swap(field, (*fields)[random() % fields->size()]); break;
      case 4: {  // a field of another message in its place
        const auto others = fields_of(donors[random() % donors.size()]);
        if (others && !others->empty()) field = (*others)[random() % others->size()];
        break;
      }
      default:
        if (field.wire_type == 0)
          field.integer = odd_integer(field.integer, random);
        else
          damage_bytes(field.bytes, donors, random);
    }
  }
  text = text_of(*fields);
}

}  // namespace

std::string mutated(const std::string& message, const std::vector<std::string>& donors, Random& random) {
  std::string result = message;
  for (unsigned count = random() % 3 + 1; count > 0; --count) {
    if (random() % 5 == 0)
      damage_bytes(result, donors, random);
    else
      damage_fields(result, donors, random, 0);
  }
  return result;
}

}  // namespace tonnx::fuzz
