// onnx_op.cpp - attributes of ONNX nodes from JSON.
#include "formats/pt2/onnx_op.h"

#include "base/error.h"
#include "base/json.h"

namespace tonnx::pt2 {
namespace {

using Json = rapidjson::Value;

Attribute read_attribute(const std::string& name, std::string_view kind, const Json& value, const Pt2Archive& archive) {
  const auto fail = [&] { fail_invalid("attribute '{}' is not of the kind '{}'", name, kind); };
  const auto text = [&](const Json& item) {
    if (!item.IsString()) fail();
    return std::string(item.GetString(), item.GetStringLength());
  };
  const auto list = [&]<class T>(std::vector<T> result, auto&& each) {
    if (!value.IsArray()) fail();
    for (const Json& item : value.GetArray()) result.push_back(each(item));
    return AttrValue(std::move(result));
  };
  const auto integer = [&](const Json& item) {
    if (!item.IsInt64()) fail();
    return item.GetInt64();
  };
  const auto real = [&](const Json& item) {
    if (!item.IsNumber()) fail();
    return item.GetDouble();
  };
  if (kind == "f") return {name, real(value), AttrType::Float, {}, {}};
  if (kind == "i") return {name, integer(value), AttrType::Int, {}, {}};
  if (kind == "s") return {name, text(value), AttrType::String, {}, {}};
  if (kind == "fs") return {name, list(std::vector<double>(), real), AttrType::Floats, {}, {}};
  if (kind == "is") return {name, list(std::vector<int64_t>(), integer), AttrType::Ints, {}, {}};
  if (kind == "ss") return {name, list(std::vector<std::string>(), text), AttrType::Strings, {}, {}};
  if (kind == "t") {
    const auto at = archive.constants.find(text(value));
    require(at != archive.constants.end(), "the tensor of attribute '{}' is missing", name);
    return {name, at->second.tensor, AttrType::Tensor, {}, {}};
  }
  fail_unsupported("attribute '{}' is of the kind '{}'", name, kind);
}

}  // namespace

void read_onnx_op(Node& node, const Pt2Archive& archive) {
  const Attribute* inputs = node.find_attribute("inputs");
  require(inputs != nullptr && inputs->value.get<AttrList>() != nullptr, "the inputs of an ONNX node are missing");
  const Attribute* op = node.find_attribute("op");
  require(op != nullptr && op->value.get<std::string>() != nullptr, "the operator of an ONNX node is missing");
  const AttrValue given = node.take_attribute("attributes");
  const auto* text = given.get<std::string>();
  if (text == nullptr) return;
  const rapidjson::Document json = parse_json(*text, "the attributes of an ONNX node");
  require(json.IsObject(), "the attributes of an ONNX node are not an object");
  for (const auto& [key, entry] : json.GetObject()) {
    const std::string name(key.GetString(), key.GetStringLength());
    require(entry.IsObject() && entry.HasMember("kind") && entry["kind"].IsString() && entry.HasMember("value"),
            "attribute '{}' has no kind and value", name);
    Attribute attribute = read_attribute(name, entry["kind"].GetString(), entry["value"], archive);
    attribute.name = "attr." + name;
    node.attributes.push_back(std::move(attribute));
  }
}

}  // namespace tonnx::pt2
