// simplify_report.cpp - what was simplified, as a table for people and as JSON for programs.
#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include <algorithm>
#include <set>

#include "base/json.h"
#include "convert/simplify.h"

namespace tonnx {
namespace {

std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  while (size >= 1024 && unit + 1 < std::size(kUnits)) {
    size /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{}B", bytes) : fmt::format("{:.1f}{}", size, kUnits[unit]);
}

int64_t count_in(const std::map<std::string, int64_t>& counts, const std::string& op) {
  const auto at = counts.find(op);
  return at == counts.end() ? 0 : at->second;
}

int64_t total_of(const std::map<std::string, int64_t>& counts) {
  int64_t total = 0;
  for (const auto& [op, count] : counts) total += count;
  return total;
}

std::set<std::string> ops_of(const SimplifyReport& report) {
  std::set<std::string> ops;
  for (const auto* counts : {&report.ops_before, &report.ops_after}) {
    for (const auto& [op, count] : *counts) ops.insert(op);
  }
  return ops;
}

std::string repeated(std::string_view text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace

std::string table_of(const SimplifyReport& report, uint64_t bytes_after) {
  using Row = std::array<std::string, 3>;
  std::vector<Row> rows{{"", "Original Model", "Simplified Model"}};
  for (const std::string& op : ops_of(report)) {
    rows.push_back(
        {shown(op), std::to_string(count_in(report.ops_before, op)), std::to_string(count_in(report.ops_after, op))});
  }
  rows.push_back(
      {"All nodes", std::to_string(total_of(report.ops_before)), std::to_string(total_of(report.ops_after))});
  rows.push_back({"Model Size", size_text(report.bytes_before), size_text(bytes_after)});
  std::array<size_t, 3> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto line = [&](std::string_view left, std::string_view bar, std::string_view middle, std::string_view right) {
    std::string text(left);
    for (size_t i = 0; i < widths.size(); ++i) {
      text += repeated(bar, widths[i] + 2);
      text += i + 1 < widths.size() ? middle : right;
    }
    return text + "\n";
  };
  const auto cells = [&](const Row& row, std::string_view bar) {
    std::string text(bar);
    for (size_t i = 0; i < row.size(); ++i) text += fmt::format(" {:<{}} {}", row[i], widths[i], bar);
    return text + "\n";
  };
  std::string table = line("┏", "━", "┳", "┓") + cells(rows[0], "┃") + line("┡", "━", "╇", "┩");
  for (size_t i = 1; i + 2 < rows.size(); ++i) table += cells(rows[i], "│");
  table += line("├", "─", "┼", "┤");
  for (size_t i = rows.size() - 2; i < rows.size(); ++i) table += cells(rows[i], "│");
  return table + line("└", "─", "┴", "┘");
}

std::string json_of(const SimplifyReport& report, uint64_t bytes_after) {
  rapidjson::StringBuffer buffer;
  rapidjson::PrettyWriter json(buffer);
  json.SetIndent(' ', 2);
  const auto text = [&](const std::string& value) { write_json_text(json, value); };
  json.StartObject();
  json.Key("nodes");
  json.StartObject();
  json.Key("before");
  json.Int64(total_of(report.ops_before));
  json.Key("after");
  json.Int64(total_of(report.ops_after));
  json.EndObject();
  json.Key("bytes");
  json.StartObject();
  json.Key("before");
  json.Uint64(report.bytes_before);
  json.Key("after");
  json.Uint64(bytes_after);
  json.EndObject();
  json.Key("rounds");
  json.Int(report.rounds);
  json.Key("ops");
  json.StartObject();
  for (const std::string& op : ops_of(report)) {
    text(op);
    json.StartObject();
    json.Key("before");
    json.Int64(count_in(report.ops_before, op));
    json.Key("after");
    json.Int64(count_in(report.ops_after, op));
    json.EndObject();
  }
  json.EndObject();
  json.Key("passes");
  json.StartArray();
  for (const SimplifyReport::Pass& pass : report.passes) {
    json.StartObject();
    json.Key("name");
    text(pass.name);
    json.Key("changes");
    json.Int64(pass.changes);
    json.Key("seconds");
    json.Double(pass.seconds);
    json.EndObject();
  }
  json.EndArray();
  json.Key("taken_back");
  json.StartArray();
  for (const std::string& pass : report.taken_back) text(pass);
  json.EndArray();
  json.Key("checks");
  json.Int64(report.checks);
  json.Key("is_right");
  json.Bool(report.is_right);
  json.Key("not_judged");
  text(report.not_judged);
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

}  // namespace tonnx
