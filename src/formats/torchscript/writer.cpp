// writer.cpp - a TorchScript archive: the pickled modules, their code, and the bytes of the weights.
#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "base/error.h"
#include "base/json.h"
#include "base/pickle_writer.h"
#include "base/zip_writer.h"
#include "formats/torchscript/code/code_writer.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/torchscript.h"
#include "formats/weight_files.h"

namespace tonnx {
namespace {

/// An object of a class, up to its attributes.
void begin_object(PickleWriter& pickle, std::string_view class_name) {
  pickle.global("__torch__", class_name);
  pickle.empty_tuple();
  pickle.new_object();
  pickle.empty_dict();
  pickle.mark();
  pickle.text("training");
  pickle.flag(false);
}

void end_object(PickleWriter& pickle) {
  pickle.set_items();
  pickle.build();
}

void write_tensors(PickleWriter& pickle, WeightFiles& storages, const std::vector<StateEntry>& tensors) {
  for (const StateEntry& each : tensors) {
    const Tensor& tensor = *each.value->constant;
    pickle.text(each.name);
    pickle.tensor(torchscript::storage_of(tensor.dtype), std::to_string(storages.add(*each.value, each.transposed)),
                  tensor.count(), tensor.dims, each.trainable);
  }
}

std::string pickled_model(const ModuleTree& tree, const torchscript::Code& code, WeightFiles& storages) {
  PickleWriter pickle;
  begin_object(pickle, "Model");
  write_tensors(pickle, storages, tree.tensors);
  for (size_t i = 0; i < tree.submodules.size(); ++i) {
    pickle.text(tree.submodules[i].name);
    begin_object(pickle, code.classes[i]);
    write_tensors(pickle, storages, tree.submodules[i].state);
    end_object(pickle);
  }
  end_object(pickle);
  return std::move(pickle).done();
}

/// What inputs and outputs are called in the model, and the arguments of forward.
std::string names_text(const Graph& graph, const std::vector<std::string>& output_names,
                       const torchscript::Code& code) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> json(buffer);
  const auto text = [&](const std::string& value) { write_json_text(json, value); };
  json.StartObject();
  json.Key("input_names");
  json.StartArray();
  for (const Value* input : graph.inputs()) text(input->name);
  json.EndArray();
  json.Key("arguments");
  json.StartArray();
  for (const std::string& name : code.arguments) text(name);
  json.EndArray();
  json.Key("output_names");
  json.StartArray();
  for (const std::string& name : output_names) text(name);
  json.EndArray();
  json.EndObject();
  return buffer.GetString();
}

}  // namespace

void write_torchscript(const Graph& graph, const ModuleTree& tree, const std::vector<std::string>& output_names,
                       const std::string& path, const std::function<void(uint64_t, uint64_t)>& progress,
                       std::vector<std::byte>* memory) {
  const torchscript::Code code = torchscript::write_code(graph, tree);
  WeightFiles storages;
  const std::string model = pickled_model(tree, code, storages);
  PickleWriter no_constants;
  no_constants.empty_tuple();

  OutputFile file = memory != nullptr ? OutputFile(*memory) : OutputFile(path);
  ZipWriter zip(file);
  zip.add("model/data.pkl", model);
  zip.add("model/code/__torch__.py", code.source);
  zip.add("model/constants.pkl", std::move(no_constants).done());
  zip.add("model/.data/version", "10\n");
  zip.add("model/byteorder", "little");
  zip.add("model/extra/tonnx.json", names_text(graph, output_names, code));
  storages.write(zip, "model/data/", progress);
  zip.finish();
  file.commit();
}

}  // namespace tonnx
