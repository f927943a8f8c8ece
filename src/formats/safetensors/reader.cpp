// reader.cpp - the header of a safetensors file, checked against the data behind it.
#include <algorithm>
#include <cstring>
#include <set>

#include "base/budget.h"
#include "base/error.h"
#include "base/json.h"
#include "formats/safetensors/safetensors.h"

namespace tonnx {
namespace {

constexpr uint64_t kMostHeader = 100'000'000;  // the format's own limit

struct Entry {
  StateTensor state;
  uint64_t begin, end;
};

DType dtype_named(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!info(dtype).safetensors.empty() && info(dtype).safetensors == name) return dtype;
  }
  fail_unsupported("tensors of type {} are not supported", name);
}

const rapidjson::Value& list_member(const rapidjson::Value& json, const char* name) {
  const auto at = json.FindMember(name);
  require(at != json.MemberEnd() && at->value.IsArray(), "its '{}' is no list", std::string_view(name));
  return at->value;
}

Entry entry_of(const std::string& name, const rapidjson::Value& json, const Bytes& data) {
  require(json.IsObject(), "it is described in no known way");
  const auto type = json.FindMember("dtype");
  require(type != json.MemberEnd() && type->value.IsString(), "its 'dtype' is no text");
  auto tensor = std::make_shared<Tensor>();
  tensor->dtype = dtype_named({type->value.GetString(), type->value.GetStringLength()});
  std::vector<int64_t> dims;
  for (const auto& size : list_member(json, "shape").GetArray()) {
    require(size.IsInt64() && size.GetInt64() >= 0, "a size of it is no number from 0 on");
    dims.push_back(size.GetInt64());
  }
  const auto& offsets = list_member(json, "data_offsets");
  require(offsets.Size() == 2 && offsets[0].IsUint64() && offsets[1].IsUint64(),
          "its 'data_offsets' are no two numbers");
  const uint64_t begin = offsets[0].GetUint64(), end = offsets[1].GetUint64();
  require(begin <= end && end <= data.size(), "its data, from {} to {}, lies outside of the {} bytes of data", begin,
          end, data.size());
  const int64_t size = byte_size(tensor->dtype, count_of(dims));
  require(static_cast<uint64_t>(size) == end - begin, "its sizes take {} bytes, and its data has {}", size,
          end - begin);
  tensor->dims = dims;
  tensor->data = data.slice(begin, static_cast<size_t>(size));
  return {{name, std::move(tensor), false, false}, begin, end};
}

}  // namespace

std::vector<StateTensor> read_safetensors(const Bytes& bytes, std::string_view what) {
  budget().add_input(bytes.size());
  uint64_t length = 0;
  if (bytes.size() < sizeof length) fail(ErrorKind::BadFile, "{} is no safetensors file: it ends too early", what);
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMostHeader || length > bytes.size() - sizeof length)
    fail(ErrorKind::BadFile, "{} is no safetensors file: its header has {} bytes", what, length);
  const size_t start = sizeof length + static_cast<size_t>(length);
  budget().take(Resource::Memory, static_cast<int64_t>(length) * 8);  // what a header becomes when it is parsed
  const rapidjson::Document header = parse_json(bytes.view().substr(sizeof length, length), what);
  if (!header.IsObject()) fail(ErrorKind::BadFile, "the header of {} is no table", what);
  const Bytes data = bytes.slice(start, bytes.size() - start);
  std::vector<Entry> entries;
  std::set<std::string_view> names;
  for (const auto& [key, json] : header.GetObject()) {
    const std::string_view name(key.GetString(), key.GetStringLength());
    if (name == "__metadata__") continue;
    require(names.insert(name).second, "{} has two tensors '{}'", what, name);
    entries.push_back(in_context([&] { return error_text("reading tensor '{}' of {}", name, what); },
                                 [&, &value = json] { return entry_of(std::string(name), value, data); }));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  std::vector<StateTensor> result;
  for (Entry& entry : entries) {
    require(entry.begin == at, "the data of '{}' in {} {}", entry.state.name, what,
            entry.begin < at ? "overlaps that of another tensor" : "does not follow that of the tensor before it");
    at = entry.end;
    result.push_back(std::move(entry.state));
  }
  require(at == data.size(), "{} has {} bytes that belong to no tensor", what, data.size() - at);
  return result;
}

}  // namespace tonnx
