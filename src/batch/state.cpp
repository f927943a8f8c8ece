// state.cpp - the state file of a batch.
#include "batch/state.h"

#include <fcntl.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/join.h"
#include "base/json.h"
#include "base/output_file.h"

namespace tonnx {
namespace fs = std::filesystem;
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

std::optional<FileStamp> find_stamp(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileStamp{path, info.st_size, info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec};
}

std::string absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

/// FNV-1a: the same in every run.
std::string hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

std::string text_of(const std::map<std::string, std::vector<int64_t>>& shapes) {
  std::string text;
  for (const auto& [name, dims] : shapes) text += fmt::format("{}:{};", name, joined(dims, ","));
  return text;
}

/// Everything that the target depends on, but the files.
std::string options_of(const BatchJob& job) {
  std::string text = fmt::format("tonnx {}\n{}\n", TONNX_VERSION, absolute(job.source));
  const ConvertOptions& convert = job.convert;
  text +=
      fmt::format("opset {} external {} shapes {}\n", convert.opset.value_or(0),
                  convert.external_data ? (*convert.external_data ? "yes" : "no") : "-", text_of(convert.input_shapes));
  for (const auto& [name, dtype] : convert.input_types) text += fmt::format("type {}:{}\n", name, name_of(dtype));
  if (convert.flat) text += "flat\n";
  if (convert.source_lines) text += fmt::format("source lines {}\n", *convert.source_lines);
  for (const DynamicDim& dim : convert.dynamic)
    text += fmt::format("dynamic {}:{}={}:{}..{}\n", dim.input, dim.axis, dim.name, dim.low, dim.high.value_or(-1));
  if (const auto& simplify = job.simplify) {
    text += fmt::format("simplify skip {} only {} enable {} unused {} fold {} infers {}\n", joined(simplify->skip, ","),
                        joined(simplify->only, ","), joined(simplify->enable, ","),
                        joined(simplify->unused_outputs, ","), simplify->fold_limit, simplify->infers_shapes);
  }
  if (const auto& verify = job.verify) {
    text += fmt::format("verify {} {} {} {} {}\n", verify->times, verify->relative, verify->absolute, verify->data,
                        text_of(verify->input_shapes));
  }
  return hash_of(text);
}

void collect_external(const Graph& graph, std::set<std::string>& paths) {
  const auto add = [&](const TensorPtr& tensor) {
    if (!tensor || !tensor->external || !tensor->data.owner() || tensor->data.owner()->fd() < 0) return;
    std::error_code error;
    const fs::path path = fs::read_symlink(fmt::format("/proc/self/fd/{}", tensor->data.owner()->fd()), error);
    if (!error) paths.insert(path.string());
  };
  for (const Value* value : graph.initializers()) add(value->constant);
  for (const Node& node : graph) {
    for (const Attribute& attribute : node.attributes) {
      if (const auto* tensor = attribute.value.get<TensorPtr>()) add(*tensor);
    }
    for (const GraphPtr& subgraph : subgraphs_of(node)) collect_external(*subgraph, paths);
  }
}

}  // namespace

FileStamp stamp_of(const std::string& path) {
  const auto stamp = find_stamp(absolute(path));
  if (!stamp) fail(ErrorKind::BadFile, "cannot read '{}'", path);
  return *stamp;
}

std::vector<FileStamp> external_files(const Model& model) {
  std::set<std::string> paths;
  collect_external(*model.graph, paths);
  std::vector<FileStamp> files;
  for (const std::string& path : paths) {
    if (const auto stamp = find_stamp(path)) files.push_back(*stamp);
  }
  return files;
}

BatchState::BatchState(const BatchConfig& config) : path_(config.path + ".state") {
  Bytes bytes;
  try {
    bytes = map_file(path_);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
    return;
  }
  for (std::string_view rest = bytes.view(); !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++lines_;
    rapidjson::Document json;
    json.Parse<rapidjson::kParseIterativeFlag>(line.data(), line.size());
    if (json.HasParseError() || !json.IsObject() || !json.HasMember("target") || !json["target"].IsString()) continue;
    const std::string target = json["target"].GetString();
    entries_.erase(target);
    if (!json.HasMember("options") || !json["options"].IsString()) continue;
    if (!json.HasMember("files") || !json["files"].IsArray()) continue;
    Entry entry{json["options"].GetString(), {}};
    for (const auto& file : json["files"].GetArray()) {
      const bool is_right =
          file.IsArray() && file.Size() == 3 && file[0].IsString() && file[1].IsInt64() && file[2].IsInt64();
      if (is_right) entry.files.push_back({file[0].GetString(), file[1].GetInt64(), file[2].GetInt64()});
    }
    if (!entry.files.empty()) entries_[target] = std::move(entry);
  }
}

bool BatchState::is_unchanged(const BatchJob& job) const {
  const auto at = entries_.find(absolute(job.target));
  if (at == entries_.end() || !find_stamp(job.target) || at->second.options != options_of(job)) return false;
  return std::all_of(at->second.files.begin(), at->second.files.end(),
                     [](const FileStamp& file) { return find_stamp(file.path) == file; });
}

std::string BatchState::line_of(const std::string& target, const Entry& entry) {
  rapidjson::StringBuffer buffer;
  Writer json(buffer);
  json.StartObject();
  json.Key("target");
  write_json_text(json, target);
  json.Key("options");
  write_json_text(json, entry.options);
  json.Key("files");
  json.StartArray();
  for (const FileStamp& file : entry.files) {
    json.StartArray();
    write_json_text(json, file.path);
    json.Int64(file.size);
    json.Int64(file.changed);
    json.EndArray();
  }
  json.EndArray();
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

void BatchState::note_begun(const BatchJob& job) {
  if (const std::string target = absolute(job.target); entries_.contains(target)) append(line_of(target, {}));
}

void BatchState::note_done(const BatchJob& job, const std::vector<FileStamp>& files) {
  append(line_of(absolute(job.target), {options_of(job), files}));
}

void BatchState::compact() {
  if (lines_ == entries_.size()) return;
  try {
    OutputFile file(path_);
    for (const auto& [target, entry] : entries_) file.write(std::string_view(line_of(target, entry)));
    file.commit();
  } catch (const Error& e) {  // then it stays as it is
    if (e.kind() == ErrorKind::Internal) throw;
  }
}

void BatchState::append(const std::string& line) {
  const std::lock_guard lock(mutex_);
  // a link would lead to a file that is none of ours
  const int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (fd < 0) return;
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1) {
    [[maybe_unused]] const ssize_t written = write(fd, line.data(), line.size());
  }
  close(fd);
}

}  // namespace tonnx
