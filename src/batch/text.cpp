// text.cpp - keys and values of the YAML file of a batch.
#include "batch/text.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/nearest.h"
#include "convert/opset.h"
#include "convert/option_text.h"

namespace tonnx {
namespace {

int line_of(const YAML::Node& node) { return std::max(node.Mark().line + 1, 1); }

std::string_view kind_of(const YAML::Node& node) {
  if (node.IsMap()) return "a map";
  if (node.IsSequence()) return node.size() == 0 ? "an empty list" : "a list";
  return node.IsScalar() ? "a single value" : "nothing";
}

constexpr std::string_view kBraces = "; braces begin a map in YAML: put quotes around a name that has some";

/// Of a line that cannot be parsed: `target: {stem}.py` is a map to YAML, and not the name that was meant.
std::string_view about_braces(std::string_view yaml, int line) {
  for (; line > 0 && !yaml.empty(); --line) yaml.remove_prefix(std::min(yaml.find('\n'), yaml.size() - 1) + 1);
  const std::string_view text = yaml.substr(0, yaml.find('\n'));
  for (const std::string_view word : {"{stem}", "{name}", "{dir}"}) {
    if (text.find(word) != std::string_view::npos) return kBraces;
  }
  return {};
}

class Parser {
 public:
  Parser(Mistakes& mistakes, size_t bytes) : mistakes_(mistakes), values_left_(kFreeValues + bytes) {}

  BatchText parse(const YAML::Node& root) {
    BatchText text;
    if (!root.IsMap()) {
      mistakes_.add(line_of(root), fmt::format("a map with 'models' is expected, not {}", kind_of(root)));
      return text;
    }
    bool has_models = false;
    const Names known{"defaults", "models", "input_shapes"};
    each_key(root, known, "at the top", [&](std::string_view key, const YAML::Node& value) {
      if (key == "defaults") {
        text.defaults = entry(value, "defaults");
        return;
      }
      if (key == "input_shapes") {
        if (!value.IsMap()) return wrong(value, key, "a map of models and the shapes of their inputs");
        each_key(value, {}, "", [&](std::string_view path, const YAML::Node& of_model) {
          text.shapes[std::string(path)] = {shapes(of_model, path), line_of(of_model)};
        });
        return;
      }
      has_models = true;
      if (!value.IsSequence() || value.size() == 0) return wrong(value, "models", "a list of models");
      for (const auto& model : value) {
        look_at(model);
        text.models.push_back(entry(model, "a model"));
      }
    });
    if (!has_models) mistakes_.add(line_of(root), "there is no list 'models'");
    return text;
  }

 private:
  /// Each value of the file is looked at once, but for those that aliases repeat: a short file can repeat them without
  /// end.
  void look_at(const YAML::Node& node) {
    if (values_left_-- == 0) throw YAML::ParserException(node.Mark(), "aliases repeat too many values");
  }

  void wrong(const YAML::Node& node, std::string_view what, std::string_view wanted, std::string_view more = "") {
    const std::string found = node.IsScalar() ? fmt::format("'{}'", shown(node.Scalar())) : std::string(kind_of(node));
    mistakes_.add(line_of(node), fmt::format("'{}' must be {}, not {}{}", shown(what), wanted, found, more));
  }

  /// Calls the body with each key of a map; those that are not known, or come twice, are mistakes.
  template <class Body>
  void each_key(const YAML::Node& map, const Names& known, std::string_view where, Body&& body) {
    std::set<std::string> seen;
    for (const auto& pair : map) {
      look_at(pair.first);
      if (!pair.first.IsScalar()) {
        mistakes_.add(line_of(pair.first), "a key must be a name");
        continue;
      }
      const std::string key = pair.first.Scalar();
      const int line = line_of(pair.first);
      if (!seen.insert(key).second) {
        mistakes_.add(line, fmt::format("the key '{}' is there twice", shown(key)));
      } else if (!known.empty() && std::find(known.begin(), known.end(), key) == known.end()) {
        mistakes_.add(line, fmt::format("unknown key '{}' {}{}", shown(key), where, did_you_mean(key, known)));
      } else if (pair.second.IsNull()) {
        mistakes_.add(line, fmt::format("'{}' has no value", shown(key)));
      } else {
        body(std::string_view(key), pair.second);
      }
    }
  }

  BatchEntry entry(const YAML::Node& node, const std::string& what) {
    BatchEntry result;
    result.line = line_of(node);
    if (!node.IsMap()) {
      wrong(node, what, "a map");
      result.has_targets = true;  // nobody knows: one mistake is enough
      return result;
    }
    const bool is_model = what != "defaults";
    Names known{"target", "targets",       "input_shapes", "dynamic",   "opset",        "simplify",
                "verify", "external_data", "limits",       "allow_ops", "source_lines", "flat"};
    if (is_model) known.insert(known.begin(), {"source", "input_types"});
    bool has_source = false, has_target = false, has_targets = false;
    each_key(node, known, is_model ? "of a model" : "of the defaults",
             [&](std::string_view key, const YAML::Node& value) {
               has_source |= key == "source";
               has_target |= key == "target";
               has_targets |= key == "targets";
               option(key, value, result);
             });
    if (is_model && !has_source) mistakes_.add(result.line, "the model has no 'source'");
    result.has_targets = has_target || has_targets;
    if (has_target && has_targets) mistakes_.add(result.line, "'target' and 'targets' exclude each other");
    return result;
  }

  void option(std::string_view key, const YAML::Node& value, BatchEntry& result) {
    if (key == "source") {
      result.sources = texts(value, key);
    } else if (key == "target" || key == "targets") {
      result.targets = texts(value, key);
    } else if (key == "input_shapes") {
      result.input_shapes = shapes(value, key);
    } else if (key == "input_types") {
      result.input_types = types(value, key);
    } else if (key == "dynamic") {
      result.dynamic = dynamic(value);
    } else if (key == "opset") {
      result.opset = number(value, key, 1, kNewestOpset, fmt::format("a number from 1 to {}", kNewestOpset));
    } else if (key == "external_data") {
      result.external_data = flag(value, key);
    } else if (key == "source_lines") {
      result.source_lines = flag(value, key);
    } else if (key == "flat") {
      result.flat = flag(value, key);
    } else if (key == "limits") {
      result.limits = limits(value);
    } else if (key == "allow_ops") {
      result.allow_ops = allowed(value);
    } else if (key == "simplify") {
      if (value.IsMap()) result.simplify = simplify(value);
      result.simplifies = value.IsMap() ? true : flag(value, key, "true, false or a map");
    } else if (key == "verify") {
      if (value.IsMap()) result.verify = verify(value);
      const auto verifies = value.IsMap() ? std::optional(true) : flag(value, key, "true, false or a map");
      if (verifies) result.verifies = {*verifies, line_of(value)};
    }
  }

  std::optional<bool> flag(const YAML::Node& node, std::string_view what, std::string_view wanted = "true or false") {
    bool value = false;
    if (node.IsScalar() && YAML::convert<bool>::decode(node, value)) return value;
    wrong(node, what, wanted);
    return std::nullopt;
  }

  std::optional<int64_t> number(const YAML::Node& node, std::string_view what, int64_t low, int64_t high,
                                std::string_view wanted) {
    if (const auto value = integer(node); value && *value >= low && *value <= high) return value;
    wrong(node, what, wanted);
    return std::nullopt;
  }

  static std::optional<int64_t> integer(const YAML::Node& node) {
    if (!node.IsScalar()) return std::nullopt;
    const std::string& text = node.Scalar();
    int64_t value = 0;
    const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || last != text.data() + text.size()) return std::nullopt;
    return value;
  }

  /// A text, or a list of them.
  std::vector<Located<std::string>> texts(const YAML::Node& node, std::string_view what) {
    std::vector<Located<std::string>> result;
    const auto add = [&](const YAML::Node& item) {
      look_at(item);
      if (item.IsScalar() && !item.Scalar().empty()) {
        result.push_back({item.Scalar(), line_of(item)});
      } else {
        wrong(item, what, "a text", item.IsMap() ? kBraces : "");
      }
    };
    if (node.IsSequence() && node.size() > 0) {
      for (const auto& item : node) add(item);
    } else if (node.IsScalar()) {
      add(node);
    } else {
      wrong(node, what, "a text, or a list of texts", node.IsMap() ? kBraces : "");
    }
    return result;
  }

  std::vector<std::string> names(const YAML::Node& node, std::string_view what) {
    std::vector<std::string> result;
    for (Located<std::string>& text : texts(node, what)) result.push_back(std::move(text.value));
    return result;
  }

  std::map<std::string, Located<std::vector<int64_t>>> shapes(const YAML::Node& node, std::string_view what) {
    std::map<std::string, Located<std::vector<int64_t>>> result;
    if (!node.IsMap()) {
      wrong(node, what, "a map from inputs to shapes such as [1, 3, 224, 224]");
      return result;
    }
    each_key(node, {}, "", [&](std::string_view key, const YAML::Node& value) {
      std::vector<int64_t> dims;
      if (!value.IsSequence()) return wrong(value, key, "a shape such as [1, 3, 224, 224]");
      for (const auto& item : value) {
        look_at(item);
        const bool is_open = item.IsNull() || (item.IsScalar() && item.Scalar() == "?");
        const auto size = is_open ? std::optional<int64_t>(-1) : integer(item);
        if (!size || *size < -1) return wrong(item, key, "a shape of sizes, where ? leaves one as it is");
        dims.push_back(*size);
      }
      result[std::string(key)] = {std::move(dims), line_of(value)};
    });
    return result;
  }

  std::map<std::string, DType> types(const YAML::Node& node, std::string_view what) {
    std::map<std::string, DType> result;
    if (!node.IsMap()) {
      wrong(node, what, "a map from inputs to types such as int64");
      return result;
    }
    each_key(node, {}, "", [&](std::string_view key, const YAML::Node& value) {
      const auto dtype = value.IsScalar() ? find_dtype(value.Scalar()) : std::nullopt;
      if (!dtype) return wrong(value, key, "a type such as int64");
      result[std::string(key)] = *dtype;
    });
    return result;
  }

  /// {x: {0: batch, 1: "length:1..512"}}, or ["x:0=batch:1..64"].
  std::vector<Located<DynamicDim>> dynamic(const YAML::Node& node) {
    std::vector<Located<DynamicDim>> result;
    const auto add = [&](const YAML::Node& at, auto&& parse) {
      try {
        result.push_back({parse(), line_of(at)});
      } catch (const Error& e) {
        mistakes_.add(line_of(at), e.text());
      }
    };
    if (!node.IsMap()) {
      if (!node.IsSequence() && !node.IsScalar()) {
        wrong(node, "dynamic", "a map from inputs to axes, or texts such as x:0=batch:1..64");
        return result;
      }
      for (const Located<std::string>& text : texts(node, "dynamic")) {
        try {
          for (DynamicDim& dim : parse_dynamic(text.value)) result.push_back({std::move(dim), text.line});
        } catch (const Error& e) {
          mistakes_.add(text.line, e.text());
        }
      }
      return result;
    }
    each_key(node, {}, "", [&](std::string_view input, const YAML::Node& axes) {
      if (!axes.IsMap()) return wrong(axes, input, "a map from axes to names of sizes, such as {0: batch}");
      for (const auto& pair : axes) {
        look_at(pair.first);
        const auto axis = integer(pair.first);
        if (!axis || !pair.second.IsScalar()) {
          wrong(axis ? pair.second : pair.first, input, "a map from axes to names of sizes, such as {0: batch}");
          continue;
        }
        add(pair.second, [&] {
          DynamicDim dim{std::string(input), *axis, "", 0, std::nullopt};
          parse_dynamic_size(pair.second.Scalar(), dim);
          return dim;
        });
      }
    });
    return result;
  }

  /// {memory: 1G, nodes: 5000000}
  Limits limits(const YAML::Node& node) {
    Limits result;
    if (!node.IsMap()) {
      wrong(node, "limits", "a map such as {memory: 1G}");
      return result;
    }
    each_key(node, {}, "", [&](std::string_view key, const YAML::Node& value) {
      if (!value.IsScalar()) return wrong(value, key, "a size such as 1G");
      try {
        result.set(key, parse_bytes(value.Scalar()));
      } catch (const Error& e) {
        mistakes_.add(line_of(value), e.text());
      }
    });
    return result;
  }

  AllowedOps allowed(const YAML::Node& node) {
    try {
      return AllowedOps(names(node, "allow_ops"));
    } catch (const Error& e) {
      mistakes_.add(line_of(node), e.text());
      return {};
    }
  }

  SimplifyOptions simplify(const YAML::Node& node) {
    SimplifyOptions result;
    each_key(node, {"skip", "only", "enable", "fold_limit", "unused_outputs", "infer_shapes"}, "of 'simplify'",
             [&](std::string_view key, const YAML::Node& value) {
               if (key == "unused_outputs") {
                 result.unused_outputs = names(value, key);
               } else if (key == "infer_shapes") {
                 result.infers_shapes = flag(value, key).value_or(true);
               } else if (key == "fold_limit") {
                 fold_limit(value, result);
               } else {
                 passes(key, value, result);
               }
             });
    return result;
  }

  void passes(std::string_view key, const YAML::Node& value, SimplifyOptions& result) {
    const std::vector<std::string> all = names(value, key);
    SimplifyOptions asked;
    (key == "skip" ? asked.skip : key == "only" ? asked.only : asked.enable) = all;
    try {
      require_known_passes(asked);
      (key == "skip" ? result.skip : key == "only" ? result.only : result.enable) = all;
    } catch (const Error& e) {
      mistakes_.add(line_of(value), e.text());
    }
  }

  void fold_limit(const YAML::Node& value, SimplifyOptions& result) {
    try {
      if (!value.IsScalar()) return wrong(value, "fold_limit", "a size such as 1MB");
      result.fold_limit = parse_bytes(value.Scalar());
    } catch (const Error& e) {
      mistakes_.add(line_of(value), e.text());
    }
  }

  VerifyOptions verify(const YAML::Node& node) {
    VerifyOptions result;
    each_key(node, {"times", "rtol", "atol", "inputs", "input_shapes"}, "of 'verify'",
             [&](std::string_view key, const YAML::Node& value) {
               if (key == "times") {
                 result.times = number(value, key, 1, 1'000'000, "a number from 1 on").value_or(1);
               } else if (key == "inputs") {
                 if (!value.IsScalar()) return wrong(value, key, "a file such as data.npz");
                 result.data = value.Scalar();
               } else if (key == "input_shapes") {
                 for (auto& [name, shape] : shapes(value, key)) result.input_shapes[name] = std::move(shape.value);
               } else {
                 double tolerance = 0;
                 if (!value.IsScalar() || !YAML::convert<double>::decode(value, tolerance) || !(tolerance >= 0))
                   return wrong(value, key, "a number from 0 on");
                 (key == "rtol" ? result.relative : result.absolute) = tolerance;
               }
             });
    return result;
  }

  static constexpr size_t kFreeValues = 100'000;

  Mistakes& mistakes_;
  size_t values_left_;
};

}  // namespace

void Mistakes::report(const std::string& path) {
  if (all_.empty()) return;
  std::stable_sort(all_.begin(), all_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text = fmt::format("{} mistake{} in {}:", all_.size(), all_.size() == 1 ? "" : "s", shown(path));
  for (const auto& [line, what] : all_) text += fmt::format("\n  line {}: {}", line, what);
  throw Error(ErrorKind::InvalidModel, std::move(text));
}

BatchText parse_batch(std::string_view yaml, Mistakes& mistakes) {
  try {
    return Parser(mistakes, yaml.size()).parse(YAML::Load(std::string(yaml)));
  } catch (const YAML::DeepRecursion& e) {
    mistakes.add(e.mark.line + 1, "lists and maps are nested too deeply");
  } catch (const YAML::Exception& e) {
    mistakes.add(e.mark.line + 1, fmt::format("{}{}", shown(e.msg), about_braces(yaml, e.mark.line)));
  }
  return {};
}

}  // namespace tonnx
