// writer.cpp - header and data of a safetensors file.
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "formats/safetensors/safetensors.h"
#include "ir/transposed.h"

namespace tonnx {
namespace {

std::string header_of(const std::vector<StateTensor>& state) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> json(buffer);
  json.StartObject();
  json.Key("__metadata__");
  json.StartObject();
  json.Key("format");
  json.String("pt");
  json.EndObject();
  uint64_t offset = 0;
  for (const StateTensor& entry : state) {
    const std::string_view type = info(entry.tensor->dtype).safetensors;
    if (type.empty())
      fail_unsupported("safetensors has no type for {} ('{}'); .pth has", name_of(entry.tensor->dtype), entry.name);
    write_json_text(json, entry.name);
    json.StartObject();
    json.Key("dtype");
    json.String(type.data(), static_cast<rapidjson::SizeType>(type.size()));
    json.Key("shape");
    json.StartArray();
    std::vector<int64_t> dims = entry.tensor->dims;
    if (entry.transposed) std::swap(dims[0], dims[1]);
    for (const int64_t dim : dims) json.Int64(dim);
    json.EndArray();
    json.Key("data_offsets");
    json.StartArray();
    json.Uint64(offset);
    offset += entry.tensor->data.size();
    json.Uint64(offset);
    json.EndArray();
    json.EndObject();
  }
  json.EndObject();
  std::string header(buffer.GetString(), buffer.GetSize());
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

}  // namespace

void write_safetensors(OutputFile& file, const std::vector<StateTensor>& state,
                       const std::function<void(uint64_t, uint64_t)>& progress) {
  const std::string header = header_of(state);
  const uint64_t size = header.size();
  char length[8];
  std::memcpy(length, &size, 8);
  file.write(std::string_view(length, 8));
  file.write(std::string_view(header));
  uint64_t total = 0, done = 0;
  for (const StateTensor& entry : state) total += entry.tensor->data.size();
  for (const StateTensor& entry : state) {
    file.write(bytes_to_write(*entry.tensor, entry.transposed));
    done += entry.tensor->data.size();
    if (progress) progress(done, total);
  }
}

}  // namespace tonnx
