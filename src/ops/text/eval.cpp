// eval.cpp - evaluation of operators on strings: StringConcat, StringSplit, StringNormalizer.
#include <cctype>
#include <set>

#include "ops/frame/eval_map.h"
#include "ops/text/rows.h"

namespace tonnx {
namespace {

constexpr int64_t kMostText = int64_t{1} << 20;     // bytes of a result
constexpr int64_t kMostStrings = int64_t{1} << 16;  // of a result

TensorPtr text_tensor(std::vector<int64_t> dims, std::vector<std::string> strings) {
  auto result = std::make_shared<Tensor>();
  result->dtype = DType::String;
  result->dims = std::move(dims);
  result->strings = std::move(strings);
  return result;
}

std::vector<int64_t> places(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  std::vector<int64_t> all(static_cast<size_t>(count_of(to)));
  Walk(to, broadcast_strides(from, to)).for_each([&](int64_t i, int64_t at) { all[static_cast<size_t>(i)] = at; });
  return all;
}

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// At runs of blanks, none of which is in a part; what is left after the last split keeps its blanks inside.
std::vector<std::string> split_at_blanks(std::string_view text, int64_t splits) {
  std::vector<std::string> parts;
  while (true) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    if (text.empty()) return parts;
    if (static_cast<int64_t>(parts.size()) == splits) {
      while (is_blank(text.back())) text.remove_suffix(1);
      parts.emplace_back(text);
      return parts;
    }
    size_t end = 0;
    while (end < text.size() && !is_blank(text[end])) ++end;
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::string> split_at(std::string_view text, std::string_view delimiter, int64_t splits) {
  if (delimiter.empty()) return split_at_blanks(text, splits);
  std::vector<std::string> parts;
  while (true) {
    const size_t at = static_cast<int64_t>(parts.size()) == splits ? std::string_view::npos : text.find(delimiter);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + delimiter.size());
  }
}

/// What these functions know the letters of.
bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
}

std::string changed_case(std::string text, bool upper) {
  for (char& c : text) {
    const auto letter = static_cast<unsigned char>(c);
    c = static_cast<char>(upper ? std::toupper(letter) : std::tolower(letter));
  }
  return text;
}

}  // namespace

Results eval_string_concat(const NodeView& n) {
  const Tensor &x = *n.find_constant("X"), &y = *n.find_constant("Y");
  const auto dims = broadcast_dims(x.dims, y.dims);
  if (!dims || x.dtype != DType::String || y.dtype != DType::String || count_of(*dims) > kMostStrings) return {};
  const std::vector<int64_t> left = places(x.dims, *dims), right = places(y.dims, *dims);
  std::vector<std::string> strings;
  int64_t bytes = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    const std::string &a = x.strings[static_cast<size_t>(left[i])], &b = y.strings[static_cast<size_t>(right[i])];
    bytes += static_cast<int64_t>(a.size() + b.size());
    if (bytes > kMostText) return {};
    strings.push_back(a + b);
  }
  return text_tensor(*dims, std::move(strings));
}

Results eval_string_split(const NodeView& n) {
  const Tensor& x = *n.find_constant("X");
  if (x.dtype != DType::String || x.count() > kMostStrings) return {};
  const std::string delimiter = n.has("delimiter") ? n.s("delimiter") : "";
  const int64_t splits = n.find_i("maxsplit").value_or(-1);
  if (n.has("maxsplit") && splits < 0) return {};
  std::vector<std::vector<std::string>> all;
  std::vector<double> counts;
  size_t most = 0;
  for (const std::string& text : x.strings) {
    if (delimiter.empty() && !is_ascii(text)) return {};
    all.push_back(split_at(text, delimiter, splits));
    counts.push_back(static_cast<double>(all.back().size()));
    most = std::max(most, all.back().size());
  }
  if (most * all.size() > static_cast<size_t>(kMostStrings)) return {};
  std::vector<std::string> strings;
  for (std::vector<std::string>& parts : all) {
    parts.resize(most);
    strings.insert(strings.end(), parts.begin(), parts.end());
  }
  std::vector<int64_t> dims = x.dims;
  dims.push_back(static_cast<int64_t>(most));
  Results results(text_tensor(std::move(dims), std::move(strings)));
  results.push_back(tensor_of(DType::Int64, x.dims, counts));
  return results;
}

Results eval_string_normalizer(const NodeView& n) {
  const Tensor& x = *n.find_constant("X");
  const std::string change = n.s("case_change_action");
  const bool is_row = x.dims.size() == 2 && x.dims[0] == 1;
  if (x.dtype != DType::String || (x.dims.size() != 1 && !is_row) || x.count() > kMostStrings ||
      (change != "NONE" && change != "LOWER" && change != "UPPER"))
    return {};
  const bool as_written = n.flag("is_case_sensitive");
  std::set<std::string> stops;
  for (const std::string& word : n.find_strings("stopwords").value_or(std::vector<std::string>())) {
    if (!is_ascii(word)) return {};
    stops.insert(as_written ? word : changed_case(word, false));
  }
  std::vector<std::string> kept;
  for (const std::string& word : x.strings) {
    if (!is_ascii(word) || word.empty()) return {};
    if (stops.count(as_written ? word : changed_case(word, false)) != 0) continue;
    kept.push_back(change == "NONE" ? word : changed_case(word, change == "UPPER"));
  }
  if (kept.empty()) kept.emplace_back();
  const auto count = static_cast<int64_t>(kept.size());
  return text_tensor(is_row ? std::vector<int64_t>{1, count} : std::vector{count}, std::move(kept));
}

}  // namespace tonnx
