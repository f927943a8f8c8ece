// archive.cpp - finds and parses the parts of a TorchScript archive.
#include "formats/torchscript/source/archive.h"

#include <algorithm>
#include <charconv>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/source/syntax.h"

namespace tonnx::torchscript {
namespace {

constexpr uint64_t kFreeGather = uint64_t{1} << 28;  // beyond what the file holds: expanded tensors
constexpr int64_t kNewestVersion = 10;

std::string find_root(const ZipFile& zip) {
  for (const ZipEntry& entry : zip.entries()) {
    const size_t slash = entry.name.find('/');
    if (slash != std::string::npos && std::string_view(entry.name).substr(slash) == "/constants.pkl")
      return entry.name.substr(0, slash + 1);
  }
  return {};
}

}  // namespace

bool is_script_archive(const ZipFile& zip) { return !find_root(zip).empty(); }

ScriptArchive::ScriptArchive(const Bytes& bytes) : zip_(bytes), strided_(kFreeGather + bytes.size()) {
  budget().add_input(bytes.size());
  root_ = find_root(zip_);
  const std::string& root = root_;
  const bool is_saved = std::any_of(zip_.entries().begin(), zip_.entries().end(),
                                    [](const ZipEntry& entry) { return entry.name.ends_with("/data.pkl"); });
  if (root.empty() && is_saved)
    fail(ErrorKind::BadFile,
         "this is a file of torch.save, which holds values but no program; with the ending .pth its weights are read");
  if (root.empty()) fail(ErrorKind::BadFile, "this is no TorchScript file of torch.jit.save: it has no constants.pkl");
  read_version(root);
  data_ = std::make_unique<Pickle>(read_pth_pickle(zip_, root, "data.pkl", "the archive"), "data.pkl");
  constants_ = std::make_unique<Pickle>(read_pth_pickle(zip_, root, "constants.pkl", "the archive"), "constants.pkl");
  require(constants_->root().is(PickleValue::Kind::Tuple), "constants.pkl holds no tuple");
  tensors_ = std::make_unique<PickledTensors>(zip_, strided_, root + "data/");
  constant_tensors_ = std::make_unique<PickledTensors>(zip_, strided_, root + "constants/");
  read_code(root);
}

const PickleValue* ScriptArchive::traced_inputs() {
  if (zip_.find(root_ + "traced_inputs.pkl") == nullptr) return nullptr;
  traced_ =
      std::make_unique<Pickle>(read_pth_pickle(zip_, root_, "traced_inputs.pkl", "the archive"), "traced_inputs.pkl");
  // both a dict by methods and the list in it are tagged with their types
  const auto untagged = [](const PickleValue* value) {
    const bool is_tagged =
        value->is_call_of("torch.jit._pickle", "restore_type_tag") && !value->arguments->items.empty();
    return is_tagged ? value->arguments->items[0] : value;
  };
  const PickleValue* const methods = untagged(&traced_->root());
  for (size_t i = 0; i + 1 < methods->entries.size(); i += 2) {
    const PickleValue* const inputs = untagged(methods->entries[i + 1]);
    if (methods->entries[i]->text == "forward" && inputs->is(PickleValue::Kind::List)) return inputs;
  }
  return nullptr;
}

void ScriptArchive::read_version(const std::string& root) {
  for (const char* const name : {"version", ".data/version"}) {
    const ZipEntry* const entry = zip_.find(root + name);
    if (entry == nullptr) continue;
    const Bytes text = zip_.read_document(*entry);
    std::from_chars(text.view().data(), text.view().data() + text.size(), version_);
  }
  if (version_ < 1) fail(ErrorKind::BadFile, "the archive does not tell its version");
  if (version_ > kNewestVersion)
    fail_unsupported("the archive is of version {}; versions 1 to {} are read", version_, kNewestVersion);
}

void ScriptArchive::read_code(const std::string& root) {
  const std::string folder = root + "code/";
  for (const ZipEntry& entry : zip_.entries()) {
    if (!entry.name.starts_with(folder) || !entry.name.ends_with(".py")) continue;
    const std::string file = entry.name.substr(folder.size());
    std::string scope = file.substr(0, file.size() - 3);
    std::replace(scope.begin(), scope.end(), '/', '.');
    units_.push_back(parse_unit(zip_.read_document(entry).view(), scope, "code/" + file));
    for (Function& function : units_.back().functions) function.name = scope + "." + function.name;
  }
  for (const Unit& unit : units_) {
    for (const Class& each : unit.classes) classes_.emplace(each.name, &each);
    for (const Function& each : unit.functions) functions_.emplace(each.name, &each);
  }
}

const Class* ScriptArchive::find_class(std::string_view name) const {
  const auto at = classes_.find(name);
  return at == classes_.end() ? nullptr : at->second;
}

const Function* ScriptArchive::find_function(std::string_view name) const {
  const auto at = functions_.find(name);
  return at == functions_.end() ? nullptr : at->second;
}

}  // namespace tonnx::torchscript
