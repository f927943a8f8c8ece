// report.cpp - what a batch did, as a table for people and as JSON for programs.
#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include <algorithm>
#include <array>

#include "base/join.h"
#include "base/json.h"
#include "batch/batch.h"

namespace tonnx {
namespace {

std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
  return unit == 0 ? fmt::format("{}B", bytes) : fmt::format("{:.1f}{}", size, kUnits[unit]);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

using Row = std::array<std::string, 6>;

Row row_of(const BatchJob& job, const JobResult& result) {
  Row row{shown(job.source), shown(job.target), std::string(name_of(result.status)), "", "", ""};
  if (result.nodes) row[3] = fmt::format("{} -> {}", result.nodes->first, result.nodes->second);
  if (result.status == JobResult::Status::Done) {
    row[4] = size_text(result.bytes);
    if (result.verified) row[2] += ", verified";
    if (!result.not_judged.empty()) row[2] += ", not judged";
  }
  if (result.status == JobResult::Status::Done || result.status == JobResult::Status::Failed)
    row[5] = fmt::format("{:.2f} s", result.seconds);
  return row;
}

}  // namespace

std::string_view name_of(JobResult::Status status) {
  switch (status) {
    case JobResult::Status::Waiting: return "waiting";
    case JobResult::Status::Done: return "done";
    case JobResult::Status::Failed: return "failed";
    case JobResult::Status::Unchanged: return "unchanged";
  }
  return "";
}

std::string steps_of(const BatchJob& job) {
  std::vector<std::string> steps;
  if (job.simplify) steps.emplace_back("simplify");
  if (job.convert.opset) steps.push_back(fmt::format("opset {}", *job.convert.opset));
  for (const auto& [name, dims] : job.convert.input_shapes)
    steps.push_back(fmt::format("{}: [{}]", name, joined(dims, ", ")));
  for (const DynamicDim& dim : job.convert.dynamic)
    steps.push_back(fmt::format("{}:{} = {}", dim.input.empty() ? "all" : dim.input, dim.axis, dim.name));
  if (job.verify) steps.emplace_back("verify");
  return joined(steps, ", ");
}

std::string table_of(const BatchConfig& config, const BatchReport& report) {
  std::vector<Row> rows{{"source", "target", "result", "nodes", "size", "time"}};
  for (size_t i = 0; i < config.jobs.size(); ++i) rows.push_back(row_of(config.jobs[i], report.results[i]));
  std::array<size_t, 6> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string line;
    for (size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] > 0) line += fmt::format("{:<{}}  ", rows[i][c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
    if (i > 0 && !report.results[i - 1].error.empty())
      table += "  " + visible_text(first_line(report.results[i - 1].error)) + "\n";
    if (i > 0 && !report.results[i - 1].not_judged.empty())
      table += fmt::format("  {}{}\n", kNotJudged, visible_text(first_line(report.results[i - 1].not_judged)));
  }
  table +=
      fmt::format("{} done, {} unchanged, {} failed, in {:.1f} s\n", report.count(JobResult::Status::Done),
                  report.count(JobResult::Status::Unchanged), report.count(JobResult::Status::Failed), report.seconds);
  return table;
}

std::string json_of(const BatchConfig& config, const BatchReport& report) {
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter json(buffer);
  json.SetIndent(' ', 2);
  const auto text = [&](const char* key, std::string_view value) {
    json.Key(key);
    write_json_text(json, value);
  };
  json.StartObject();
  text("config", config.path);
  text("version", TONNX_VERSION);
  json.Key("seconds");
  json.Double(report.seconds);
  for (const auto status :
       {JobResult::Status::Done, JobResult::Status::Unchanged, JobResult::Status::Failed, JobResult::Status::Waiting}) {
    json.Key(std::string(name_of(status)).c_str());
    json.Uint64(report.count(status));
  }
  json.Key("models");
  json.StartArray();
  for (size_t i = 0; i < config.jobs.size(); ++i) {
    const JobResult& result = report.results[i];
    json.StartObject();
    text("source", config.jobs[i].source);
    text("target", config.jobs[i].target);
    text("status", name_of(result.status));
    text("steps", steps_of(config.jobs[i]));
    json.Key("seconds");
    json.Double(result.seconds);
    json.Key("bytes");
    json.Uint64(result.bytes);
    json.Key("verified");
    json.Bool(result.verified);
    if (!result.not_judged.empty()) text("not_judged", result.not_judged);
    if (result.nodes) {
      json.Key("nodes");
      json.StartObject();
      json.Key("before");
      json.Int64(result.nodes->first);
      json.Key("after");
      json.Int64(result.nodes->second);
      json.EndObject();
    }
    if (result.status == JobResult::Status::Failed) {
      text("kind", result.kind ? name_of(*result.kind) : "verification");
      text("error", result.error);
    }
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

}  // namespace tonnx
