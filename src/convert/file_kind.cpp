// file_kind.cpp - tells files by their first bytes and, where they are zip files, by what is in them.
#include "convert/file_kind.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "base/zip.h"
#include "formats/pth/saved.h"

namespace tonnx {
namespace {

namespace fs = std::filesystem;

enum class Kind {
  Unknown,
  Missing,
  Onnx,
  Pt2,
  TorchScript,
  Safetensors,
  Saved,       // torch.save, of one of these three:
  Weights,     // a dict of tensors
  Checkpoint,  // more than that
  Module,      // a module
  OldSave,     // torch.save from before PyTorch 1.6
  Keras,
  TfLite,
  SavedModel,
};

struct Found {
  Kind kind = Kind::Unknown;
  std::string detail;  // of a module, its class; of a checkpoint, a part that has weights
};

constexpr size_t kHead = 16;

std::string head_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kHead, '\0');
  file.read(head.data(), kHead);
  head.resize(static_cast<size_t>(file.gcount()));
  return head;
}

/// What torch.save was given: that takes a look at the whole pickle, and is asked only where an error says it.
Found saved_kind(const std::string& path) {
  const SavedContent content = read_saved(map_file(path), "the file");
  for (const SavedContent::Named& foreign : content.foreign) {
    if (foreign.name.empty()) return {Kind::Module, foreign.text};
  }
  const bool is_plain = content.values.empty() && content.foreign.empty();
  const bool is_whole = std::find(content.parts.begin(), content.parts.end(), "") != content.parts.end();
  if (is_plain && (is_whole || content.parts.empty())) return {Kind::Weights, {}};
  const auto part = std::find_if(content.parts.begin(), content.parts.end(), [](const auto& p) { return !p.empty(); });
  return {Kind::Checkpoint, part == content.parts.end() ? "model" : *part};
}

Found zip_kind(const Bytes& bytes) {
  const ZipFile zip(bytes);
  const auto has = [&](std::string_view ending) {
    return std::any_of(zip.entries().begin(), zip.entries().end(), [&](const ZipEntry& entry) {
      return entry.name == ending || entry.name.ends_with("/" + std::string(ending));
    });
  };
  if (has("constants.pkl")) return {Kind::TorchScript, {}};
  if (has("archive_format") || has("serialized_exported_program.json")) return {Kind::Pt2, {}};
  if (has("data.pkl")) return {Kind::Saved, {}};
  if (has("config.json") && has("metadata.json")) return {Kind::Keras, {}};
  return {};
}

bool begins_as_safetensors(std::string_view head, uint64_t size) {
  if (head.size() < 9 || head[8] != '{') return false;
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<uint8_t>(head[i]);
  return length >= 2 && length <= size - 8;
}

Found kind_of(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const bool is_model = fs::exists(fs::path(path) / "saved_model.pb", error);
    return {is_model ? Kind::SavedModel : Kind::Unknown, {}};
  }
  const uint64_t size = fs::file_size(path, error);
  if (error) return {Kind::Missing, {}};
  const std::string head = head_of(path);
  const std::string_view text = head;
  try {
    if (ZipFile::looks_like_zip(text)) return zip_kind(map_file(path));
  } catch (const Error&) {  // damaged: whoever reads it says how
    return {};
  }
  if (text.starts_with("\x89HDF\r\n\x1a\n")) return {Kind::Keras, {}};
  if (text.size() >= 8 && text.substr(4, 4) == "TFL3") return {Kind::TfLite, {}};
  if (begins_as_safetensors(text, size)) return {Kind::Safetensors, {}};
  if (text.starts_with("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19")) return {Kind::OldSave, {}};
  // the version of the format comes first in what exporters write, and a producer or a graph follows
  const bool begins_as_onnx = text.size() > 3 && text[0] == '\x08' && text[1] > 0 && text[1] < 32;
  return {begins_as_onnx && (text[2] == '\x12' || text[2] == '\x3a' || text[2] == '\x42') ? Kind::Onnx : Kind::Unknown,
          {}};
}

std::optional<Format> format_of(Kind kind) {
  switch (kind) {
    case Kind::Onnx: return Format::Onnx;
    case Kind::Pt2: return Format::Pt2;
    case Kind::TorchScript: return Format::TorchScript;
    case Kind::Safetensors: return Format::Safetensors;
    case Kind::Saved:
    case Kind::Weights:
    case Kind::Checkpoint:
    case Kind::Module:
    case Kind::OldSave: return Format::Pth;
    default: return std::nullopt;
  }
}

std::string renamed(const std::string& path, std::string_view what, std::string_view ending) {
  const std::string other = fs::path(path).replace_extension(ending).string();
  return fmt::format("'{0}' is {1}, and its name does not say so: mv {0} {2}", path, what, other);
}

std::string by_tf2onnx(const std::string& path, std::string_view what, std::string_view option) {
  const fs::path plain = path.ends_with('/') ? fs::path(path).parent_path() : fs::path(path);
  return fmt::format(
      "'{0}' is {1}, which another program makes ONNX of: python -m tf2onnx.convert {2} {0} --output {3}", path, what,
      option, fs::path(plain).replace_extension(".onnx").string());
}

std::string with_class(const std::string& path, std::string_view what, const std::string& target,
                       std::string_view part) {
  const std::string more = part.empty() ? "" : fmt::format(" --part {}", shown(part));
  const std::string result = find_format(target) == Format::Onnx ? target : "model.onnx";
  return fmt::format(
      "'{0}' {1}, and no program: tonnx export my_net.py:Net --weights {0}{2} --input 1,3,224,224 {3} takes it from "
      "its "
      "class, and tonnx convert old.onnx {3} --weights {0}{2} from a model",
      path, what, more, result);
}

/// What the file is, and the command for it; empty where nobody knows.
std::string advice(const std::string& path, const std::string& target, Found found) {
  if (found.kind == Kind::Saved) {
    try {
      found = saved_kind(path);
    } catch (const Error&) {  // damaged: whoever reads it says how
      found.kind = Kind::Weights;
    }
  }
  switch (found.kind) {
    case Kind::Saved:
    case Kind::Unknown: return {};
    case Kind::Missing: return fmt::format("cannot open '{}': there is no such file", path);
    case Kind::Onnx: return renamed(path, "an ONNX model", ".onnx");
    case Kind::Pt2: return renamed(path, "a program of torch.export", ".pt2");
    case Kind::TorchScript: return renamed(path, "a TorchScript archive", ".pt");
    case Kind::Safetensors:
      return find_format(path) == Format::Safetensors ? with_class(path, "holds weights", target, "")
                                                      : renamed(path, "a file of weights", ".safetensors");
    case Kind::Weights:
      return find_format(path) == Format::Pth ? with_class(path, "holds weights", target, "")
                                              : renamed(path, "a file of weights", ".pth");
    case Kind::Checkpoint:
      return find_format(path) == Format::Pth ? with_class(path, "is a checkpoint with weights", target, found.detail)
                                              : renamed(path, "a checkpoint with weights", ".pth");
    case Kind::Module:
      return fmt::format(
          "'{0}' is a pickled module of {1}, whose code is not in it; in Python, where you trust it: "
          "tonnx.export(torch.load(\"{0}\", weights_only=False), args, \"{2}\")",
          path, shown(found.detail), find_format(target) == Format::Onnx ? target : "model.onnx");
    case Kind::OldSave:
      return fmt::format(
          "'{0}' is of torch.save from before PyTorch 1.6; in Python: torch.save(torch.load(\"{0}\"), \"{1}\")", path,
          fs::path(path).replace_extension(".new.pth").string());
    case Kind::Keras: return by_tf2onnx(path, "a model of Keras", "--keras");
    case Kind::TfLite: return by_tf2onnx(path, "a model of TensorFlow Lite", "--tflite");
    case Kind::SavedModel: return by_tf2onnx(path, "a SavedModel of TensorFlow", "--saved-model");
  }
  return {};
}

}  // namespace

void require_content(const std::string& path, Format format) {
  const Found found = kind_of(path);
  if (found.kind == Kind::Unknown || found.kind == Kind::Missing || format_of(found.kind) == format) return;
  throw Error(ErrorKind::BadFile, advice(path, "", found));  // whole: the command is at its end
}

std::string advice_on(const std::string& path, const std::string& target) {
  return advice(path, target, kind_of(path));
}

}  // namespace tonnx
