// live.cpp - the program of a model in memory: JSON as a .pt2 has it, and the tensors at their addresses.
#include <limits>

#include "base/budget.h"
#include "base/error.h"
#include "base/json.h"
#include "formats/pt2/payload.h"
#include "formats/pt2/program.h"
#include "formats/pt2/pt2.h"

namespace tonnx {
namespace {

const rapidjson::Value* find_table(const rapidjson::Value& json, const char* name) {
  if (!json.IsObject()) return nullptr;
  const auto at = json.FindMember(name);
  return at == json.MemberEnd() || !at->value.IsObject() ? nullptr : &at->value;
}

}  // namespace

Program read_live_program(const Bytes& json, const std::map<std::string, Bytes>& storages) {
  budget().add_input(json.size());
  for (const auto& [name, storage] : storages) budget().add_input(storage.size());
  const rapidjson::Document document = parse_json(json.view(), "the program");
  StridedTensors tensors(std::numeric_limits<uint64_t>::max());
  const auto storage_of = [&](std::string_view file) {
    const auto at = storages.find(std::string(file));
    require(at != storages.end(), "its storage '{}' is missing", file);
    return at->second;
  };
  Pt2Archive archive;
  for (auto* into : {&archive.weights, &archive.constants}) {
    const rapidjson::Value* table = find_table(document, into == &archive.weights ? "weights" : "constants");
    if (table == nullptr) continue;
    for (const auto& [key, payload] : table->GetObject()) {
      const std::string name(key.GetString(), key.GetStringLength());
      into->emplace(name, in_context([&] { return fmt::format("reading tensor '{}'", shown(name)); },
                                     [&] { return read_payload(payload, storage_of, tensors); }));
    }
  }
  return pt2::read_json(document, archive);
}

}  // namespace tonnx
