// tree_names.cpp - walks PyTorch's tree specs, JSON texts inside the program, and joins their keys.
#include "formats/pt2/tree_names.h"

#include "base/error.h"
#include "base/json.h"

namespace tonnx::pt2 {
namespace {

using Json = rapidjson::Value;

/// The keys of a node's children where it has any: those of a dict, or the fields of a class.
std::vector<std::string> keys_of(const Json& node, size_t count) {
  const auto context = node.FindMember("context");
  if (context == node.MemberEnd()) return {};
  const auto strings = [&](const Json& list) {
    std::vector<std::string> result;
    if (!list.IsArray() || list.Size() != count) return result;
    for (const Json& item : list.GetArray()) {
      if (!item.IsString() && !item.IsInt64()) return std::vector<std::string>();
      result.push_back(item.IsString() ? std::string(item.GetString(), item.GetStringLength())
                                       : std::to_string(item.GetInt64()));
    }
    return result;
  };
  if (context->value.IsArray()) return strings(context->value);
  if (!context->value.IsString()) return {};
  const std::string_view text(context->value.GetString(), context->value.GetStringLength());
  if (!text.starts_with('[')) return {};
  try {
    return strings(parse_json(text, "a tree spec"));
  } catch (const Error& e) {  // some other text of the class
    if (e.kind() == ErrorKind::Internal) throw;
    return {};
  }
}

const Json* children_of(const Json& node) {
  if (!node.IsObject()) return nullptr;
  const auto children = node.FindMember("children_spec");
  return children != node.MemberEnd() && children->value.IsArray() ? &children->value : nullptr;
}

bool is_leaf(const Json& node) {
  const auto type = node.FindMember("type");
  return type == node.MemberEnd() || type->value.IsNull();
}

bool add_leaves(const Json& node, const std::string& path, std::vector<std::string>& names) {
  const Json* children = children_of(node);
  if (children == nullptr) return false;
  if (is_leaf(node)) {
    names.push_back(path);
    return true;
  }
  const std::vector<std::string> keys = keys_of(node, children->Size());
  for (rapidjson::SizeType i = 0; i < children->Size(); ++i) {
    const std::string key = keys.empty() ? std::to_string(i) : keys[i];
    if (!add_leaves((*children)[i], path.empty() ? key : path + "." + key, names)) return false;
  }
  return true;
}

/// `[1, node]`: the version of the form, and the tree.
template <class Body>
std::optional<std::vector<std::string>> with_tree(std::string_view text, Body body) {
  std::optional<rapidjson::Document> spec;
  try {
    spec = parse_json(text, "a tree spec");
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
    return std::nullopt;
  }
  if (!spec->IsArray() || spec->Size() != 2 || children_of((*spec)[1]) == nullptr) return std::nullopt;
  std::vector<std::string> names;
  if (!body((*spec)[1], names)) return std::nullopt;
  return names;
}

}  // namespace

std::optional<std::vector<std::string>> input_leaf_names(std::string_view in_spec,
                                                         const std::vector<std::string>& argument_names) {
  return with_tree(in_spec, [&](const Json& root, std::vector<std::string>& names) {
    const Json& parts = *children_of(root);
    if (parts.Size() != 2) return false;
    const Json *positional = children_of(parts[0]), *keyword = children_of(parts[1]);
    if (positional == nullptr || keyword == nullptr) return false;
    for (rapidjson::SizeType i = 0; i < positional->Size(); ++i) {
      const std::string name = i < argument_names.size() ? argument_names[i] : "input." + std::to_string(i);
      if (!add_leaves((*positional)[i], name, names)) return false;
    }
    const std::vector<std::string> keys = keys_of(parts[1], keyword->Size());
    for (rapidjson::SizeType i = 0; i < keyword->Size(); ++i) {
      if (keys.empty() || !add_leaves((*keyword)[i], keys[i], names)) return false;
    }
    return true;
  });
}

std::optional<std::vector<std::string>> output_leaf_names(std::string_view out_spec) {
  return with_tree(out_spec, [](const Json& root, std::vector<std::string>& names) {
    const bool has_keys = !is_leaf(root) && !keys_of(root, children_of(root)->Size()).empty();
    return add_leaves(root, has_keys ? "" : "output", names);
  });
}

}  // namespace tonnx::pt2
