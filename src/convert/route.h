// route.h - which conversions there are, and which options mean something for each.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tonnx {

struct ConvertOptions;

enum class Format : uint8_t {
  Onnx,
  Pt2,          // a program of torch.export
  TorchScript,  // .pt
  Python,       // .py, with its weights in .safetensors beside it
  Safetensors,  // weights alone; of a model, under the names that the .py has
  Pth,          // the same
  Module,       // an nn.Module in memory
};

/// Options that not every conversion takes.
enum class RouteOption : uint8_t {
  Opset,
  ExternalData,
  InputShapes,
  Dynamic,
  AllowOps,
  Mapped,
  SourceLines,
  Flat,
  Weights,
  Part,
  InputTypes
};

struct Route {
  Format source;
  Format target;

  bool takes(RouteOption option) const;
};

/// The format that a path's ending says; an empty path stands for a module in memory.
std::optional<Format> find_format(std::string_view path);

/// `.pt2`: the ending of files of that format; empty for a module in memory.
std::string_view ending_of(Format format);

/// `.onnx, .pt2, .pt, .pth and .safetensors`: what is read, for errors.
std::string readable_endings();

/// The endings of what a file can become; none for one that is not read.
std::vector<std::string> target_endings(std::string_view source_path);

/// The way from one file to another. Throws Unsupported where there is none, and InvalidModel where an option is given
/// that means nothing on it.
Route route(std::string_view source, std::string_view target, const std::vector<RouteOption>& given);
Route route(std::string_view source, std::string_view target, const ConvertOptions& options);
/// The same for a source that has been read.
Route route(Format source, std::string_view target, const ConvertOptions& options);

}  // namespace tonnx
