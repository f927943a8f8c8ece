// archive.cpp - finds the parts of a torch.export archive, in each of the layouts that PyTorch has written.
#include "formats/pt2/archive.h"

#include <algorithm>
#include <optional>

#include "base/budget.h"
#include "base/error.h"
#include "base/zip.h"
#include "formats/pt2/payload.h"
#include "formats/pth/pth.h"

namespace tonnx {
namespace {

constexpr std::string_view kOldProgram = "serialized_exported_program.json";
constexpr uint64_t kFreeGather = uint64_t{1} << 28;  // beyond what the files hold: expanded tensors

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// How many bytes all entries have; a sum that is too large to be true stops at the end of the type.
uint64_t total_size(const ZipFile& zip) {
  uint64_t total = 0;
  for (const ZipEntry& entry : zip.entries()) {
    if (__builtin_add_overflow(total, entry.size, &total)) return UINT64_MAX;
  }
  return total;
}

/// The folder that everything lies in, with its slash: the one that holds the format's name, else that of the first.
std::string root_of(const ZipFile& zip) {
  std::string first;
  for (const ZipEntry& entry : zip.entries()) {
    const size_t slash = entry.name.find('/');
    if (slash == std::string::npos) continue;
    if (std::string_view(entry.name).substr(slash) == "/archive_format") return entry.name.substr(0, slash + 1);
    if (first.empty()) first = entry.name.substr(0, slash + 1);
  }
  return first;
}

class ArchiveReader {
 public:
  explicit ArchiveReader(const Bytes& bytes)
      : zip_(bytes), root_(root_of(zip_)), tensors_(kFreeGather + std::min(total_size(zip_), UINT64_MAX / 2)) {}

  Pt2Archive read() { return zip_.find(kOldProgram) != nullptr ? read_old() : read_new(); }

 private:
  std::optional<std::string> find_text(std::string_view name) {
    const ZipEntry* const entry = zip_.find(root_ + std::string(name));
    if (entry == nullptr) return std::nullopt;
    return std::string(trimmed(zip_.read(*entry).view()));
  }

  Pt2Archive read_new() {
    check_marks();
    Pt2Archive archive;
    const std::string model = read_program(archive);
    archive.weights = read_tensors("data/weights/", model, "_weights_config.json", Payloads::Weights);
    archive.constants = read_tensors("data/constants/", model, "_constants_config.json", Payloads::Constants);
    read_extra(root_ + "extra/", archive);
    return archive;
  }

  /// The layout before PyTorch 2.8: no root folder, and tensors as torch.save writes them.
  Pt2Archive read_old() {
    root_.clear();
    const std::string version = find_text("version").value_or("");
    if (version.empty()) fail(ErrorKind::BadFile, "the archive does not tell its version");
    if (!version.starts_with("8.")) {
      fail_unsupported("the archive has version {} of the schema; version 8 is read", version);
    }
    Pt2Archive archive;
    archive.program = zip_.read(*zip_.find(kOldProgram));
    const auto read_blob = [&](std::string_view stem) -> std::map<std::string, Pt2Tensor> {
      for (const char* const suffix : {".pt", ".json"}) {
        const ZipEntry* const entry = zip_.find(std::string(stem) + suffix);
        if (entry != nullptr) return read_saved(*entry);
      }
      fail(ErrorKind::BadFile, "the archive has no {}.pt", stem);
    };
    archive.weights = read_blob("serialized_state_dict");
    archive.constants = read_blob("serialized_constants");
    read_extra("extra_files/", archive);
    return archive;
  }

  /// Tells files of other kinds by what is in them.
  void check_marks() {
    const auto format = find_text("archive_format");
    if (!format) {
      const auto has = [&](std::string_view name) { return zip_.find(root_ + std::string(name)) != nullptr; };
      if (has("data.pkl") && has("constants.pkl")) {
        fail(ErrorKind::BadFile, "this is a TorchScript file, of torch.jit.save, and no .pt2 of torch.export.save");
      }
      if (has("data.pkl")) {
        fail(
            ErrorKind::BadFile,
            "this is a file of torch.save (.pth), which holds values but no program, and no .pt2 of torch.export.save");
      }
      fail(ErrorKind::BadFile, "this zip file is no .pt2 of torch.export.save: it has no archive_format");
    }
    if (*format != "pt2") fail(ErrorKind::BadFile, "the archive is of format '{}', not 'pt2'", *format);
    const std::string version = find_text("archive_version").value_or("0");
    if (version != "0") fail_unsupported("the archive is of version '{}'; version 0 is read", version);
    const std::string order = find_text("byteorder").value_or("little");
    if (order == "big") fail_unsupported("the archive is in big-endian byte order; little-endian is read");
    if (order != "little") fail(ErrorKind::BadFile, "the archive has the byte order '{}'", order);
  }

  /// Gives the name of the program: 'model', or another if it is the only one.
  std::string read_program(Pt2Archive& archive) {
    const std::string folder = root_ + "models/";
    constexpr std::string_view kSuffix = ".json";
    std::vector<const ZipEntry*> found;
    bool is_compiled = false;
    for (const ZipEntry& entry : zip_.entries()) {
      is_compiled |= entry.name.starts_with(root_ + "data/aotinductor/");
      if (!entry.name.starts_with(folder) || !entry.name.ends_with(kSuffix)) continue;
      if (entry.name.size() <= folder.size() + kSuffix.size()) continue;
      found.push_back(&entry);
      if (std::string_view(entry.name).substr(folder.size()) == "model.json") {
        found = {&entry};
        break;
      }
    }
    if (found.empty() && is_compiled) {
      fail_unsupported("the archive holds what AOTInductor compiled, but no program: save it with torch.export.save");
    }
    if (found.empty()) fail(ErrorKind::BadFile, "the archive has no program: models/model.json is missing");
    if (found.size() > 1) {
      fail_unsupported("the archive has {} programs ('{}', '{}'), none of which is models/model.json", found.size(),
                       found[0]->name, found[1]->name);
    }
    archive.program = zip_.read(*found.front());
    const std::string& name = found.front()->name;
    return name.substr(folder.size(), name.size() - folder.size() - kSuffix.size());
  }

  std::map<std::string, Pt2Tensor> read_tensors(const std::string& folder, const std::string& model,
                                                const std::string& config_suffix, Payloads kind) {
    if (const ZipEntry* const saved = zip_.find(root_ + folder + model + ".pt")) return read_saved(*saved);
    const std::string name = folder + model + config_suffix;
    const ZipEntry* const config = zip_.find(root_ + name);
    if (config == nullptr) fail(ErrorKind::BadFile, "the archive has no {}", name);
    return read_payloads(zip_, zip_.read(*config).view(), {root_ + folder, name, kind}, tensors_);
  }

  std::map<std::string, Pt2Tensor> read_saved(const ZipEntry& entry) {
    std::map<std::string, Pt2Tensor> result;
    if (entry.size == 0) return result;
    const Bytes bytes = zip_.read(entry);
    if (!ZipFile::looks_like_zip(bytes.view())) {
      fail_unsupported("'{}' is not in the zip form that torch.save writes today", entry.name);
    }
    ZipFile inner =
        in_context([&] { return error_text("reading '{}'", entry.name); }, [&] { return ZipFile(bytes, zip_); });
    for (auto& [name, tensor] : read_pth(inner, tensors_, entry.name)) {
      result.emplace(name, Pt2Tensor{tensor.tensor, tensor.is_param, tensor.requires_grad});
    }
    return result;
  }

  void read_extra(const std::string& folder, Pt2Archive& archive) {
    for (const ZipEntry& entry : zip_.entries()) {
      if (!entry.name.starts_with(folder)) continue;
      archive.extra.emplace(entry.name.substr(folder.size()), zip_.read(entry));
    }
  }

  ZipFile zip_;
  std::string root_;
  StridedTensors tensors_;
};

}  // namespace

Pt2Archive read_pt2_archive(Bytes bytes) {
  if (!ZipFile::looks_like_zip(bytes.view())) {
    if (bytes.view().starts_with("\x80\x02")) {
      fail(ErrorKind::BadFile,
           "this is a file of torch.save in its old form, which holds values but no program, and no .pt2 of "
           "torch.export.save");
    }
    fail(ErrorKind::BadFile, "this is no .pt2 of torch.export.save: it does not begin as a zip file");
  }
  budget().add_input(bytes.size());
  return ArchiveReader(bytes).read();
}

Pt2Archive read_pt2_archive(const std::string& path) { return read_pt2_archive(map_file(path)); }

}  // namespace tonnx
