// tensor_reader.cpp - reads TensorProto in all its forms: raw, typed fields, external data, sparse.
#include "formats/onnx/tensor_reader.h"

#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/budget.h"
#include "base/error.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/message.h"

namespace tonnx::onnx {
namespace fs = std::filesystem;

void read_integers(Message& message, std::vector<int64_t>& into) {
  if (message.is_varint()) {
    into.push_back(message.integer());
    return;
  }
  const std::string_view packed = message.view();
  const char* at = packed.data();
  while (at != packed.data() + packed.size()) {
    into.push_back(static_cast<int64_t>(protozero::decode_varint(&at, packed.data() + packed.size())));
  }
}

std::pair<std::string, std::string> read_entry(Bytes bytes) {
  std::pair<std::string, std::string> result;
  Message message(std::move(bytes));
  while (message.next()) {
    switch (message.field()) {
      case entry::key: result.first = message.text(); break;
      case entry::value: result.second = message.text(); break;
      default: message.skip();
    }
  }
  return result;
}

namespace {

constexpr size_t kMaxRank = 128;

/// The typed fields of a TensorProto, before it is known which of them counts.
struct TypedData {
  std::vector<int64_t> int32s, int64s, uint64s;
  std::vector<Bytes> floats, doubles;  // little-endian runs
  std::vector<std::string> strings;
};

/// How many elements of the type one int32_data entry holds.
int elements_per_entry(DType dtype) {
  const int bits = info(dtype).bits;
  return bits == 4 ? 2 : bits == 2 ? 4 : 1;
}

Bytes join(const std::vector<Bytes>& runs) {
  if (runs.size() == 1) return runs[0];
  std::string all;
  for (const Bytes& run : runs) all += run.view();
  return Bytes::own(std::move(all));
}

/// Packs integers into the tensor's own layout.
Bytes from_integers(DType dtype, int64_t count, const std::vector<int64_t>& integers) {
  const int per_entry = elements_per_entry(dtype);
  const auto wanted = static_cast<size_t>((count + per_entry - 1) / per_entry);
  require(integers.size() == wanted, "{} numbers for {} elements of {}", integers.size(), count, name_of(dtype));
  std::vector<uint8_t> data(static_cast<size_t>(byte_size(dtype, count)));
  const int bits = info(dtype).bits;
  if (bits == 6) {
    for (size_t i = 0; i < integers.size(); ++i) {
      const uint32_t code = static_cast<uint32_t>(integers[i]) & 0x3FU;
      const size_t at = i * 6;
      data[at / 8] = static_cast<uint8_t>(data[at / 8] | (code << (at % 8)));
      if (at % 8 > 2) data[at / 8 + 1] = static_cast<uint8_t>(data[at / 8 + 1] | (code >> (8 - at % 8)));
    }
  } else {
    const size_t step = bits < 8 ? 1 : static_cast<size_t>(bits / 8);
    for (size_t i = 0; i < integers.size(); ++i) std::memcpy(data.data() + i * step, &integers[i], step);
  }
  return Bytes::own(std::move(data));
}

/// The field that the standard names for the element type; what stands in others does not count.
Bytes from_typed(DType dtype, int64_t count, const TypedData& typed) {
  switch (dtype) {
    case DType::Float32:
    case DType::Complex64: return join(typed.floats);
    case DType::Float64:
    case DType::Complex128: return join(typed.doubles);
    case DType::Int64: return from_integers(dtype, count, typed.int64s);
    case DType::UInt32:
    case DType::UInt64: return from_integers(dtype, count, typed.uint64s);
    default: return from_integers(dtype, count, typed.int32s);
  }
}

int64_t number_of(const std::string& text, const char* what) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && value >= 0, "external data has the {} '{}'", what,
          text);
  return value;
}

}  // namespace

const Bytes& TensorReader::mapped(const std::string& location) {
  const auto at = files_.find(location);
  if (at != files_.end()) return at->second;
  require(!location.empty() && location.find('\0') == std::string::npos, "external data has no location");
  if (folder_.empty()) {
    fail(ErrorKind::BadFile, "external data '{}' cannot be found: the model was not read from a file", location);
  }
  const fs::path relative(location);
  require(!relative.is_absolute(), "external data '{}' has an absolute path", location);
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  const fs::path file = fs::weakly_canonical(fs::path(folder_) / relative, error);
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  require(!error && end == folder.end(), "external data '{}' lies outside the folder of the model", location);
  const Bytes& mapped = files_.emplace(location, map_file(file.string())).first->second;
  budget().add_input(mapped.size());
  return mapped;
}

Bytes TensorReader::external(const std::vector<std::pair<std::string, std::string>>& entries, int64_t size) {
  std::string location;
  int64_t offset = 0;
  int64_t length = size;
  for (const auto& [key, value] : entries) {
    if (key == "location") location = value;
    if (key == "offset") offset = number_of(value, "offset");
    if (key == "length") length = number_of(value, "length");
  }
  require(length == size, "external data of {} bytes for a tensor that takes {}", length, size);
  const Bytes& file = mapped(location);
  const auto available = static_cast<int64_t>(file.size());
  if (offset > available || length > available - offset) {
    fail(ErrorKind::BadFile, "external data '{}' has {} bytes, and {} from byte {} on are asked for", location,
         available, length, offset);
  }
  return file.slice(static_cast<size_t>(offset), static_cast<size_t>(length));
}

TensorPtr TensorReader::read(const Bytes& bytes) {
  auto result = std::make_shared<Tensor>();
  result->source = bytes;
  int64_t type_number = 0;
  bool is_external = false;
  std::optional<Bytes> raw;
  TypedData typed;
  std::vector<std::pair<std::string, std::string>> external_entries;
  Message message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case tensor::dims: read_integers(message, result->dims); break;
      case tensor::data_type: type_number = message.integer(); break;
      case tensor::float_data:
      case tensor::double_data: {
        std::vector<Bytes>& runs = message.field() == tensor::float_data ? typed.floats : typed.doubles;
        if (message.is_bytes()) {
          runs.push_back(message.bytes());
        } else {
          message.skip();
          runs.push_back(bytes.slice(message.whole_field().substr(1)));  // both tags take one byte
        }
        break;
      }
      case tensor::int32_data: read_integers(message, typed.int32s); break;
      case tensor::int64_data: read_integers(message, typed.int64s); break;
      case tensor::uint64_data: read_integers(message, typed.uint64s); break;
      case tensor::string_data: typed.strings.push_back(message.text()); break;
      case tensor::name: result->source_name = message.text(); break;
      case tensor::doc_string: result->doc = message.text(); break;
      case tensor::raw_data: raw = message.bytes(); break;
      case tensor::external_data: external_entries.push_back(read_entry(message.bytes())); break;
      case tensor::data_location: is_external = message.integer() == 1; break;
      case tensor::metadata_props: result->metadata.push_back(read_entry(message.bytes())); break;
      default: message.skip();
    }
  }
  return in_context([&] { return fmt::format("reading tensor '{}'", result->source_name); },
                    [&]() -> TensorPtr {
                      const auto dtype = find_dtype(type_number);
                      require(dtype.has_value(), "{} is not the number of an element type", type_number);
                      result->dtype = *dtype;
                      require(result->dims.size() <= kMaxRank, "a tensor has {} dimensions, more than {}",
                              result->dims.size(), kMaxRank);
                      const int64_t count = result->count();
                      if (*dtype == DType::String) {
                        require(!is_external && !raw, "strings must be in string_data");
                        require(static_cast<int64_t>(typed.strings.size()) == count, "{} strings for {} elements",
                                typed.strings.size(), count);
                        result->strings = std::move(typed.strings);
                        return result;
                      }
                      const int64_t size = byte_size(*dtype, count);
                      if (is_external) {
                        result->data = external(external_entries, size);
                        result->external = true;
                      } else if (raw) {
                        result->data = *raw;
                      } else {
                        result->data = from_typed(*dtype, count, typed);
                      }
                      require(static_cast<int64_t>(result->data.size()) == size,
                              "{} bytes for {} elements of {}, which take {}", result->data.size(), count,
                              name_of(*dtype), size);
                      return result;
                    });
}

SparseTensorPtr TensorReader::read_sparse(const Bytes& bytes) {
  auto result = std::make_shared<SparseTensor>();
  result->source = bytes;
  Message message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case sparse::values: result->values = read(message.bytes()); break;
      case sparse::indices: result->indices = read(message.bytes()); break;
      case sparse::dims: read_integers(message, result->dims); break;
      default: message.skip();
    }
  }
  require(result->values && result->indices, "a sparse tensor lacks its values or its indices");
  require(is_integer(result->indices->dtype), "the indices of a sparse tensor are of {}",
          name_of(result->indices->dtype));
  return result;
}

}  // namespace tonnx::onnx
