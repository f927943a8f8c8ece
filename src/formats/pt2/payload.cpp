// payload.cpp - reads the table of the tensors, and the tensors as it says.
#include "formats/pt2/payload.h"

#include "base/error.h"
#include "base/json.h"
#include "formats/pt2/dtype.h"

namespace tonnx {
namespace {

using Json = rapidjson::Value;

constexpr int64_t kStridedLayout = 7;
constexpr int64_t kUnknownLayout = 0;

std::string_view text_of(const Json& value) { return {value.GetString(), value.GetStringLength()}; }

const Json& member(const Json& object, const char* name) {
  require(object.IsObject() && object.HasMember(name), "'{}' is missing in its description", std::string_view(name));
  return object[name];
}
bool bool_member(const Json& object, const char* name) {
  const Json& value = member(object, name);
  require(value.IsBool(), "'{}' in its description is neither true nor false", std::string_view(name));
  return value.GetBool();
}
int64_t int_of(const Json& value, const char* name) {
  require(value.IsInt64(), "'{}' in its description is no integer", std::string_view(name));
  return value.GetInt64();
}
/// A number as the schema has it: an object with one key, for it could be symbolic elsewhere.
int64_t size_of(const Json& value, const char* name) {
  if (!value.IsObject()) return int_of(value, name);
  require(value.HasMember("as_int"), "'{}' in its description is no known number", std::string_view(name));
  return int_of(value["as_int"], name);
}
std::vector<int64_t> sizes_member(const Json& object, const char* name) {
  const Json& value = member(object, name);
  require(value.IsArray(), "'{}' in its description is no list", std::string_view(name));
  std::vector<int64_t> result;
  result.reserve(value.Size());
  for (const Json& item : value.GetArray()) result.push_back(size_of(item, name));
  return result;
}

/// A pickle can be anything once it is loaded, and loading it would run it.
void refuse_pickles(const Json& payload, std::string_view file, const PayloadFolder& folder) {
  if (payload.HasMember("use_pickle") && bool_member(payload, "use_pickle")) {
    fail_unsupported("it is pickled ('{}'), and pickles are never executed", file);
  }
  if (folder.kind == Payloads::Weights || file.starts_with("tensor_")) return;
  if (file.starts_with("custom_obj_")) fail_unsupported("it is a TorchBind object ('{}'), and no tensor", file);
  if (file.starts_with("opaque_obj_")) fail_unsupported("it is a pickled object ('{}'), and no tensor", file);
  fail_unsupported("'{}' is no known kind of constant", file);
}

/// The files of a folder, each read once.
class FolderFiles {
 public:
  FolderFiles(ZipFile& zip, const PayloadFolder& folder) : zip_(zip), folder_(folder) {}

  const Bytes& read(std::string_view file) {
    const std::string name = folder_.path + std::string(file);
    const ZipEntry* const entry = zip_.find(name);
    require(entry != nullptr, "its file '{}' is missing", name);
    const auto [found, is_new] = storages_.try_emplace(entry);
    if (is_new) found->second = zip_.read(*entry);
    return found->second;
  }

 private:
  ZipFile& zip_;
  const PayloadFolder& folder_;
  std::map<const ZipEntry*, Bytes> storages_;
};

}  // namespace

Pt2Tensor read_payload(const Json& payload, const StorageOf& storage_of, StridedTensors& tensors) {
  const Json& path = member(payload, "path_name");
  require(path.IsString(), "'path_name' in its description is no text");
  const Json& meta = member(payload, "tensor_meta");
  require(meta.IsObject(), "'tensor_meta' in its description is missing");
  const int64_t layout = int_of(member(meta, "layout"), "layout");
  if (layout != kStridedLayout && layout != kUnknownLayout) {
    fail_unsupported("it is sparse, or of another layout that is not strided (number {})", layout);
  }
  Strided strided;
  strided.dtype = dtype_of_pt2(int_of(member(meta, "dtype"), "dtype"));
  strided.sizes = sizes_member(meta, "sizes");
  strided.strides = sizes_member(meta, "strides");
  strided.offset = size_of(member(meta, "storage_offset"), "storage_offset");
  return {tensors.get(storage_of(text_of(path)), std::move(strided)), bool_member(payload, "is_param"),
          bool_member(meta, "requires_grad")};
}

std::map<std::string, Pt2Tensor> read_payloads(ZipFile& zip, std::string_view config, const PayloadFolder& folder,
                                               StridedTensors& tensors) {
  const rapidjson::Document document = parse_json(config, folder.config);
  const bool is_table = document.IsObject() && document.HasMember("config") && document["config"].IsObject();
  require(is_table, "{} has no table 'config'", folder.config);
  FolderFiles files(zip, folder);
  std::map<std::string, Pt2Tensor> result;
  for (const auto& [key, payload] : document["config"].GetObject()) {
    const std::string_view name = text_of(key);
    const Pt2Tensor tensor = in_context([&] { return error_text("reading tensor '{}' of {}", name, folder.config); },
                                        [&] {
                                          return read_payload(
                                              payload,
                                              [&](std::string_view file) {
                                                refuse_pickles(payload, file, folder);
                                                return files.read(file);
                                              },
                                              tensors);
                                        });
    require(result.emplace(name, tensor).second, "{} has two tensors '{}'", folder.config, name);
  }
  return result;
}

}  // namespace tonnx
