// route.cpp - the table of conversions and of the options that they take.
#include "convert/route.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/join.h"
#include "convert/file_kind.h"
#include "convert/pipeline.h"

namespace tonnx {
namespace {

using enum Format;

struct Ending {
  std::string_view text;
  Format format;
};
constexpr Ending kEndings[] = {
    {".py", Python}, {".pt2", Pt2}, {".pt", TorchScript}, {".onnx", Onnx}, {".safetensors", Safetensors}, {".pth", Pth},
};

constexpr Format kSources[] = {Onnx, Pt2, TorchScript, Pth, Safetensors};

bool is_weights(Format format) { return format == Pth || format == Safetensors; }

bool is_written(Format source, Format target) {
  if (is_weights(source)) return is_weights(target);
  return !((source == Pt2 || source == TorchScript) && target == source);
}

std::string_view ending_of(std::string_view path) {
  const size_t dot = path.rfind('.'), slash = path.rfind('/');
  const bool has_name = dot != 0 && (slash == std::string_view::npos || dot > slash + 1);
  return dot == std::string_view::npos || !has_name || (slash != std::string_view::npos && dot < slash)
             ? std::string_view()
             : path.substr(dot);
}

std::vector<std::string> source_endings() {
  std::vector<std::string> endings;
  for (const Format source : kSources) {
    endings.emplace_back(std::find_if(std::begin(kEndings), std::end(kEndings), [&](const Ending& ending) {
                           return ending.format == source;
                         })->text);
  }
  return endings;
}

std::string in_words(std::vector<std::string> items) {
  const std::string last = items.back();
  items.pop_back();
  return items.empty() ? last : joined(items) + " and " + last;
}

/// Why an option is refused, and what to do instead.
std::string_view refusal(RouteOption option, const Route& route) {
  switch (option) {
    case RouteOption::Opset: return "an opset is given, and only a target in ONNX has one";
    case RouteOption::ExternalData: return "external data is for a target in ONNX";
    case RouteOption::InputShapes:
      return is_weights(route.source) ? "a file of weights has no inputs"
                                      : "the sizes of a .pt2 file's inputs are fixed when it is exported";
    case RouteOption::Dynamic:
      return is_weights(route.source) ? "a file of weights has no inputs"
             : route.source == Pt2    ? "which sizes of a .pt2 file's inputs vary is fixed when it is exported"
                                   : "sizes that vary are declared in .onnx, .pt2 and .pt files, and code has no place "
                                     "for them; convert to .onnx with them first, and that file to code";
    case RouteOption::AllowOps:
      return route.source == Pt2 ? "an operator is allowed by name for code that calls it, and ONNX cannot call it"
                                 : "operators are allowed by name for a .pt2 source";
    case RouteOption::Mapped:
      return "a file that is written does not depend on its source: mmap is for a module in memory";
    case RouteOption::SourceLines: return "lines of the model's code are in ONNX that is made of a .pt2";
    case RouteOption::Flat: return "whether modules stand inside modules is asked of code, and of its weights";
    case RouteOption::Weights: return "weights take the place of a model's own, and the source is no model";
    case RouteOption::InputTypes: return "the types of inputs are in the file; a TorchScript file alone lacks them";
    case RouteOption::Part: return "a part is one of a file of weights, and none is given";
  }
  return {};
}

}  // namespace

bool Route::takes(RouteOption option) const {
  switch (option) {
    case RouteOption::Opset:
    case RouteOption::ExternalData: return target == Onnx;
    case RouteOption::InputShapes: return source == Onnx || source == TorchScript;
    case RouteOption::InputTypes: return source == TorchScript;
    case RouteOption::Dynamic: return source == Onnx && (target == Onnx || target == Pt2 || target == TorchScript);
    case RouteOption::AllowOps: return source == Pt2 && target != Onnx;
    case RouteOption::Mapped: return target == Module;
    case RouteOption::SourceLines: return source == Pt2 && target == Onnx;
    case RouteOption::Flat: return !is_weights(source) && (target == Python || is_weights(target) || target == Module);
    case RouteOption::Weights: return !is_weights(source);
    case RouteOption::Part: return true;  // of the source, or of the weights that are given
  }
  return false;
}

std::optional<Format> find_format(std::string_view path) {
  if (path.empty()) return Module;
  std::string ending(ending_of(path));  // `MODEL.ONNX` comes from systems that do not tell capitals apart
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const Ending& each : kEndings) {
    if (each.text == ending) return each.format;
  }
  return std::nullopt;
}

std::string_view ending_of(Format format) {
  for (const Ending& each : kEndings) {
    if (each.format == format) return each.text;
  }
  return {};
}

namespace {

std::vector<std::string> target_endings(Format source) {
  std::vector<std::string> endings;
  for (const Ending& each : kEndings) {
    if (is_written(source, each.format)) endings.emplace_back(each.text);
  }
  return endings;
}

Route route_from(Format source, std::string_view target, const std::vector<RouteOption>& given) {
  const auto to = find_format(target);
  if (!to || !is_written(source, *to)) {
    const std::vector<std::string> endings = target_endings(source);
    fail_unsupported("cannot write '{}': tonnx writes {}{}", target, in_words(endings),
                     source == Pt2           ? " from .pt2"
                     : source == TorchScript ? " from .pt"
                     : is_weights(source)    ? " from weights alone"
                                             : "");
  }
  const Route found{source, *to};
  const auto has = [&](RouteOption option) { return std::find(given.begin(), given.end(), option) != given.end(); };
  if (has(RouteOption::Part) && !is_weights(source) && !has(RouteOption::Weights))
    throw Error(ErrorKind::InvalidModel, std::string(refusal(RouteOption::Part, found)));
  for (const RouteOption option : given) {
    if (!found.takes(option)) throw Error(ErrorKind::InvalidModel, std::string(refusal(option, found)));
  }
  return found;
}

std::vector<RouteOption> given_in(const ConvertOptions& options) {
  std::vector<RouteOption> given;
  if (options.opset) given.push_back(RouteOption::Opset);
  if (options.external_data) given.push_back(RouteOption::ExternalData);
  if (!options.input_shapes.empty()) given.push_back(RouteOption::InputShapes);
  if (!options.dynamic.empty()) given.push_back(RouteOption::Dynamic);
  if (!options.allow_ops.names().empty()) given.push_back(RouteOption::AllowOps);
  if (options.source_lines) given.push_back(RouteOption::SourceLines);
  if (options.flat) given.push_back(RouteOption::Flat);
  if (!options.weights.empty()) given.push_back(RouteOption::Weights);
  if (!options.input_types.empty()) given.push_back(RouteOption::InputTypes);
  if (options.part) given.push_back(RouteOption::Part);
  return given;
}

std::optional<Format> find_source(std::string_view path) {
  const auto format = find_format(path);
  const bool is_read = format && std::find(std::begin(kSources), std::end(kSources), *format) != std::end(kSources);
  return is_read ? format : std::nullopt;
}

}  // namespace

std::string readable_endings() { return in_words(source_endings()); }

std::vector<std::string> target_endings(std::string_view source_path) {
  const auto source = find_source(source_path);
  return source ? target_endings(*source) : std::vector<std::string>();
}

Route route(std::string_view source, std::string_view target, const std::vector<RouteOption>& given) {
  const auto from = find_source(source);
  const auto to = find_format(target);
  const auto refuse_kind = [&] {
    const std::string text = advice_on(std::string(source), std::string(target));
    if (!text.empty()) throw Error(ErrorKind::Unsupported, text);
  };
  if (!from) {
    refuse_kind();
    if (find_format(source) == Python) {
      fail_unsupported(
          "'{0}' is code, which has to be run: tonnx export {0}:Model {1} does that, with the Python package", source,
          to ? std::string(target) : "model.onnx");
    }
    fail_unsupported("cannot read '{}': tonnx reads {}", source, readable_endings());
  }
  require_content(std::string(source), *from);
  if (is_weights(*from) && to && !is_written(*from, *to)) refuse_kind();
  return route_from(*from, target, given);
}

Route route(std::string_view source, std::string_view target, const ConvertOptions& options) {
  return route(source, target, given_in(options));
}

Route route(Format source, std::string_view target, const ConvertOptions& options) {
  return route_from(source, target, given_in(options));
}

}  // namespace tonnx
