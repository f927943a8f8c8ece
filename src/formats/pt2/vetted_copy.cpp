// vetted_copy.cpp - the archive around a program that was vetted: its tensors, and the names of its inputs and outputs.
#include "formats/pt2/vetted_copy.h"

#include <unordered_map>

#include "base/json.h"
#include "base/zip_writer.h"
#include "formats/pt2/graph_writer.h"
#include "formats/pt2/json_access.h"
#include "formats/pt2/pt2.h"
#include "formats/pt2/vetted_program.h"

namespace tonnx {
namespace pt2 {
namespace {

/// The tensors of one folder, and the table of them.
class TensorFolder {
 public:
  TensorFolder(std::string prefix, const std::map<std::string, Pt2Tensor>& tensors)
      : prefix_(std::move(prefix)), tensors_(tensors) {}

  std::string config() {
    JsonWriter json;
    SizeNames sizes;
    GraphWriter writer(json, sizes);
    json.begin_object();
    json.object("config", [&] {
      for (const auto& [name, each] : tensors_) {
        json.object(vetted_path(name), [&, &each = each] {
          json.entry("path_name", prefix_ + std::to_string(number_of(each.tensor)));
          json.key("is_param");
          json.flag(each.is_param);
          json.key("use_pickle");
          json.flag(false);
          json.key("tensor_meta");
          const std::vector<int64_t>& dims = each.tensor->dims;
          writer.write_tensor_meta(each.tensor->dtype, Shape(dims.begin(), dims.end()), each.requires_grad);
        });
      }
    });
    json.end_object();
    return std::string(json.result());
  }

  void write(ZipWriter& zip, const std::string& folder) const {
    for (size_t i = 0; i < files_.size(); ++i) {
      zip.begin(folder + prefix_ + std::to_string(i));
      zip.write(files_[i]->data);
      zip.end();
    }
  }

 private:
  /// Names of one tensor share its file, as they share its memory.
  size_t number_of(const TensorPtr& tensor) {
    const auto [at, is_new] = numbers_.try_emplace(tensor.get(), files_.size());
    if (is_new) files_.push_back(tensor);
    return at->second;
  }

  std::string prefix_;
  const std::map<std::string, Pt2Tensor>& tensors_;
  std::unordered_map<const Tensor*, size_t> numbers_;
  std::vector<TensorPtr> files_;
};

/// What the inputs and outputs are called in the model that tonnx made the program of; empty where it did not.
std::string kept_names(const Pt2Archive& archive) {
  const auto found = archive.extra.find("tonnx.json");
  if (found == archive.extra.end()) return "{}";
  const rapidjson::Document names = parse_json(found->second.view(), "tonnx.json");
  JsonWriter json;
  json.begin_object();
  for (const char* const key : {"input_names", "arguments", "output_names"}) {
    const Json* list = find(names, key);
    if (list == nullptr || !list->IsArray()) continue;
    json.list(key, [&] {
      for (const Json& name : list->GetArray()) json.text(text_of(name, "a name"));
    });
  }
  json.end_object();
  return std::string(json.result());
}

}  // namespace
}  // namespace pt2

void write_vetted_copy(const std::string& source, const std::string& target, const AllowedOps& allowed) {
  const Pt2Archive archive = read_pt2_archive(source);
  read_program(archive);  // refuses what tonnx would not take
  const rapidjson::Document program = parse_json(archive.program.view(), "the program");
  in_context([] { return std::string("copying the program"); },
             [&] {
               const std::string text = pt2::vetted_program(program, allowed);
               pt2::TensorFolder weights("weight_", archive.weights), constants("tensor_", archive.constants);
               const std::string weights_config = weights.config(), constants_config = constants.config();
               OutputFile file(target);
               ZipWriter zip(file);
               zip.add("model/archive_format", "pt2");
               zip.add("model/archive_version", "0");
               zip.add("model/.data/version", "6\n");
               zip.add("model/byteorder", "little");
               zip.add("model/models/model.json", text);
               zip.add("model/data/sample_inputs/model.pt", "");
               zip.add("model/data/constants/model_constants_config.json", constants_config);
               zip.add("model/data/weights/model_weights_config.json", weights_config);
               zip.add("model/extra/tonnx.json", pt2::kept_names(archive));
               weights.write(zip, "model/data/weights/");
               constants.write(zip, "model/data/constants/");
               zip.finish();
               file.commit();
             });
}

}  // namespace tonnx
