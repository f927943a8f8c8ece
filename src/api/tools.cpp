// tools.cpp - lists, texts and files for command lines and bindings.
#include "api/internal.h"

// behind it, as it says which names the sources of the library use
#include <tonnx/tools.h>

#include <algorithm>

#include "base/join.h"
#include "base/nearest.h"
#include "base/output_file.h"
#include "base/temporary.h"
#include "base/utf8.h"
#include "convert/file_kind.h"
#include "convert/option_text.h"
#include "convert/weights.h"
#include "formats/pt2/vetted_copy.h"
#include "ops/frame/op_def.h"
#include "passes/pass_table.h"

namespace tonnx::v1 {

struct LimitScope::Content {
  explicit Content(const core::Limits& limits) : scope(limits) {}
  core::BudgetScope scope;
};
LimitScope::LimitScope(const Limits& limits) : content_(translated([&] { return new Content(core_of(limits)); })) {}
LimitScope::~LimitScope() { delete content_; }

std::vector<std::string> limit_names() {
  std::vector<std::string> names;
  for (const core::ResourceLimit& limit : core::resource_limits()) names.emplace_back(limit.name);
  return names;
}

std::optional<Format> find_format(std::string_view path) {
  const auto format = path.empty() ? std::nullopt : core::find_format(path);
  return format ? std::optional(public_of(*format)) : std::nullopt;
}
void require_content(const std::string& path, Format format) {
  translated([&] { core::require_content(path, core_of(format)); });
}
Format require_route(const std::string& source, const std::string& target, const ConvertOptions& options) {
  return translated([&] { return public_of(core::route(source, target, core_of(options)).source); });
}
void require_options(const std::string& source, const std::string& target, const std::vector<std::string>& names) {
  static constexpr std::pair<std::string_view, core::RouteOption> kOptions[] = {
      {"opset", core::RouteOption::Opset},
      {"external_data", core::RouteOption::ExternalData},
      {"input_shapes", core::RouteOption::InputShapes},
      {"input_types", core::RouteOption::InputTypes},
      {"dynamic", core::RouteOption::Dynamic},
      {"allow_ops", core::RouteOption::AllowOps},
      {"mmap", core::RouteOption::Mapped},
      {"source_lines", core::RouteOption::SourceLines},
      {"flat", core::RouteOption::Flat},
      {"weights", core::RouteOption::Weights},
      {"part", core::RouteOption::Part}};
  translated([&] {
    std::vector<core::RouteOption> options;
    for (const std::string& name : names) {
      const auto* at =
          std::find_if(std::begin(kOptions), std::end(kOptions), [&](const auto& each) { return each.first == name; });
      core::require(at != std::end(kOptions), "there is no option '{}'", name);
      options.push_back(at->second);
    }
    core::route(source, target, options);
  });
}
std::string advice_on(const std::string& source, const std::string& target) { return core::advice_on(source, target); }
void require_operator_names(const std::vector<std::string>& names) {
  translated([&] { const core::AllowedOps allowed(names); });
}
std::string print_weights(const std::string& path) {
  return translated([&] { return core::print_weights(path); });
}
void write_vetted_copy(const std::string& source, const std::string& target,
                       const std::vector<std::string>& allow_ops) {
  translated([&] { core::write_vetted_copy(source, target, core::AllowedOps(allow_ops)); });
}
std::string read_text(const std::string& path) {
  return translated([&] { return std::string(core::map_file(path).view()); });
}
void write_text(const std::string& path, std::string_view text) {
  translated([&] {
    core::OutputFile file(path);
    file.write(text);
    file.commit();
  });
}
void remove_temporaries() noexcept { core::remove_temporaries(); }

std::vector<PassInfo> simplify_passes() {
  std::vector<PassInfo> result;
  for (const core::Pass& pass : core::simplify_passes())
    result.push_back({std::string(pass.name), std::string(pass.sentence), pass.when == core::When::Always});
  return result;
}

std::vector<OnnxOperatorInfo> onnx_operators() {
  std::vector<OnnxOperatorInfo> result;
  for (const core::OpFamily* family : core::op_families()) {
    for (const core::OnnxOp& op : family->onnx) {
      const core::ParsedSignature signature = core::parse_onnx_signature(op.sig.text());
      if (signature.domain == "tonnx") continue;  // made while converting, in no file
      std::vector<int> versions{op.since};
      for (const core::OpsetStep& step : op.history) versions.push_back(step.to);
      result.push_back({signature.domain, signature.name, std::string(family->name), std::move(versions),
                        op.is_supported() || op.until != 0, std::string(op.note)});
    }
  }
  return result;
}

std::vector<AtenOperatorInfo> aten_operators() {
  std::vector<AtenOperatorInfo> result;
  for (const core::OpFamily* family : core::op_families()) {
    for (const core::AtenOp& op : family->aten) {
      if (op.sig.name().starts_with("tonnx::")) continue;
      result.push_back({std::string(op.sig.name()), std::string(op.python), op.raise != nullptr, op.module != nullptr,
                        std::string(op.note)});
    }
  }
  return result;
}

std::vector<int> standard_versions(std::string_view op) {
  const auto versions = core::standard_versions(op);
  return {versions.begin(), versions.end()};
}
int schema_version(std::string_view op, int64_t opset) { return core::schema_version(op, opset); }
int64_t default_opset() { return core::RaiseOptions().opset; }

Tensor widened(const TensorView& tensor) {
  return translated(
      [&] { return Access::tensor(core::widened(std::make_shared<core::Tensor>(open(tensor.handle())))); });
}
Tensor dense_value(ValueView initializer) {
  return translated([&] {
    core::require(initializer && initializer.is_initializer(), "a value that is no initializer has no tensor");
    const core::Value& value = open(initializer.handle());
    return Access::tensor(value.constant ? value.constant : core::densified(*value.sparse));
  });
}

std::vector<std::string> texts_of(const InputShapes& shapes) {
  std::vector<std::string> texts;
  for (const auto& [name, shape] : shapes) {
    std::vector<std::string> sizes;
    for (const int64_t size : shape) sizes.push_back(size < 0 ? "?" : std::to_string(size));
    texts.push_back(name + ":" + core::joined(sizes, ","));
  }
  return texts;
}

std::vector<DynamicDim> parse_dynamic(const std::string& text) {
  return translated([&] {
    std::vector<DynamicDim> result;
    for (const core::DynamicDim& dim : core::parse_dynamic(text))
      result.push_back({dim.input, dim.axis, dim.name, dim.low, dim.high});
    return result;
  });
}
int64_t parse_bytes(const std::string& text) {
  return translated([&] { return core::parse_bytes(text); });
}
std::pair<std::string, int64_t> parse_limit(const std::string& text) {
  return translated([&] {
    core::Limits limits;
    core::parse_limit(text, limits);
    for (const core::ResourceLimit& limit : core::resource_limits()) {
      if (const auto value = limits.find(limit.resource)) return std::pair(std::string(limit.name), *value);
    }
    core::fail_invalid("'{}' is no limit", text);
  });
}

std::string shown(std::string_view text) { return core::shown(text); }
std::string visible_text(std::string_view text, bool keep_lines) { return core::visible_text(text, keep_lines); }
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  return core::did_you_mean(name, core::Names(known.begin(), known.end()));
}
std::string nearest_list(std::string_view name, const std::vector<std::string>& known) {
  return core::nearest_list(name, core::Names(known.begin(), known.end()));
}

}  // namespace tonnx::v1
