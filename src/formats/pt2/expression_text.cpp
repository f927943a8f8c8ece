// expression_text.cpp - a parser of the forms of sympy's srepr that prints what it reads.
#include "formats/pt2/expression_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/quote.h"

namespace tonnx::pt2 {
namespace {

constexpr int kMaxTextDepth = 100;
constexpr size_t kMaxTextSize = 1 << 14;
constexpr size_t kMaxGuard = 1 << 12;
constexpr size_t kMaxBranches = 16;  // sympy compares each with each
constexpr double kMaxTerms = 10'000;
constexpr double kMaxBits = 4'096;
constexpr int64_t kMaxTextPower = 64;

constexpr std::string_view kConstants[] = {"true", "false", "oo"};
constexpr std::string_view kNumbers[] = {"Symbol", "Integer", "Rational", "Float"};
constexpr std::string_view kFunctions[] = {"Add",
                                           "Mul",
                                           "Mod",
                                           "PythonMod",
                                           "Max",
                                           "Min",
                                           "Abs",
                                           "floor",
                                           "ceiling",
                                           "FloorDiv",
                                           "CleanDiv",
                                           "CeilDiv",
                                           "IntTrueDiv",
                                           "FloatTrueDiv",
                                           "CeilToInt",
                                           "FloorToInt",
                                           "TruncToInt",
                                           "RoundToInt",
                                           "TruncToFloat",
                                           "RoundDecimal",
                                           "ToFloat",
                                           "Identity",
                                           "RShift",
                                           "ModularIndexing",
                                           "IsNonOverlappingAndDenseIndicator",
                                           "Where",
                                           "Piecewise",
                                           "ExprCondPair",
                                           "And",
                                           "Or",
                                           "Not",
                                           "Eq",
                                           "Equality",
                                           "Ne",
                                           "Unequality",
                                           "Lt",
                                           "StrictLessThan",
                                           "Le",
                                           "LessThan",
                                           "Gt",
                                           "StrictGreaterThan",
                                           "Ge",
                                           "GreaterThan"};
constexpr std::string_view kPowers[] = {"Pow", "PowByNatural", "FloatPow", "LShift"};
constexpr std::string_view kBranching[] = {"Max", "Min", "And", "Or", "Piecewise", "Where"};

bool contains(const auto& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// How much work evaluating takes: the terms of the expanded form, and the bits of the largest number in it.
struct Cost {
  double terms = 1;
  double bits = 1;
};

class Printer {
 public:
  explicit Printer(std::string_view text) : text_(text) {}

  std::string print() {
    expression(0);
    skip_spaces();
    require(at_ == text_.size(), "the expression '{}' goes on after its end", text_);
    return std::move(result_);
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  char next() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    require(accept(c), "the expression '{}' has no '{}' where one is needed", text_, std::string_view(&c, 1));
  }
  std::string_view word() {
    skip_spaces();
    const size_t start = at_;
    while (at_ < text_.size() && (is_word_char(text_[at_]) || text_[at_] == '.')) ++at_;
    return text_.substr(start, at_ - start);
  }
  std::string_view quoted() {
    const char quote = next();
    require(quote == '\'' || quote == '"', "the expression '{}' has no name where one is needed", text_);
    const size_t start = ++at_, end = text_.find(quote, start);
    require(end != std::string_view::npos, "the expression '{}' ends inside a name", text_);
    at_ = end + 1;
    return text_.substr(start, end - start);
  }
  int64_t integer() {
    skip_spaces();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    require(error == std::errc(), "the expression '{}' has no number where one is needed", text_);
    at_ = static_cast<size_t>(end - text_.data());
    result_ += std::to_string(value);
    return value;
  }
  static double bits_of(int64_t value) { return std::log2(std::abs(static_cast<double>(value)) + 1) + 1; }

  Cost expression(int depth) {
    require(depth < kMaxTextDepth, "an expression is nested more than {} deep", kMaxTextDepth);
    if (is_digit(next()) || next() == '-') return {1, bits_of(integer())};
    std::string_view name = word();
    if (const size_t dot = name.rfind('.'); dot != std::string_view::npos) name = name.substr(dot + 1);
    if (next() != '(') {
      // s0, u1: a word that ends otherwise may mean something to sympy
      const bool is_symbol = is_symbol_name(name) && is_digit(name.back()) && name[0] >= 'a' && name[0] <= 'z';
      require(contains(kConstants, name) || is_symbol, "'{}' in an expression is no name of a symbol", name);
      result_ += name;
      return {};
    }
    result_ += name;
    result_ += '(';
    expect('(');
    const Cost cost = call(name, depth);
    result_ += ')';
    expect(')');
    if (cost.terms > kMaxTerms || cost.bits > kMaxBits)
      fail_unsupported("the expression '{}' takes too much work to evaluate", text_);
    return cost;
  }

  Cost call(std::string_view name, int depth) {
    if (name == "Symbol") return symbol();
    if (name == "Float") return number();
    if (name == "Integer") return {1, bits_of(integer())};
    if (name == "Rational") {
      const double above = bits_of(integer());
      expect(',');
      result_ += ", ";
      return {1, above + bits_of(integer())};
    }
    if (contains(kPowers, name)) return power(name, depth);
    if (!contains(kFunctions, name)) fail_unsupported("'{}' in an expression is no function of sizes", name);
    return combined(name, depth);
  }

  Cost symbol() {
    const std::string_view name = quoted();
    require(is_symbol_name(name), "'{}' in an expression is no name of a symbol", name);
    result_ += '\'';
    result_ += name;
    result_ += '\'';
    while (accept(',')) {  // what is assumed of it
      const std::string_view key = word();
      require(!key.empty() && key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == key.npos && !key.starts_with('_'),
              "the symbol '{}' has an assumption '{}'", name, key);
      expect('=');
      const std::string_view value = word();
      require(value == "True" || value == "False", "the symbol '{}' has an assumption of '{}'", name, value);
      result_ += fmt::format(", {}={}", key, value);
    }
    return {};
  }

  /// `Float('0.5', precision=53)`.
  Cost number() {
    const std::string_view digits = quoted();
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    require(error == std::errc() && end == digits.data() + digits.size() && std::isfinite(value),
            "'{}' in an expression is no number", digits);
    result_ += fmt::format("'{}'", value);
    if (accept(',')) {
      require(word() == "precision" && accept('=') && word() == "53", "a number in an expression is no float");
      result_ += ", precision=53";
    }
    return {1, 64};
  }

  Cost power(std::string_view name, int depth) {
    const Cost base = expression(depth + 1);
    expect(',');
    result_ += ", ";
    const size_t begin = result_.size();
    expression(depth + 1);
    std::string_view exponent = std::string_view(result_).substr(begin);
    if (exponent.starts_with("Integer(")) exponent = exponent.substr(8, exponent.size() - 9);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(exponent.data(), exponent.data() + exponent.size(), value);
    const bool is_small =
        error == std::errc() && end == exponent.data() + exponent.size() && std::abs(value) <= kMaxTextPower;
    if (!is_small) fail_unsupported("the expression '{}' has a power that is no small number", text_);
    if (name == "LShift") return {base.terms, base.bits + static_cast<double>(std::abs(value))};
    const auto times = static_cast<double>(std::abs(value));
    return {std::pow(base.terms, times), base.bits * std::max(times, 1.0)};
  }

  Cost combined(std::string_view name, int depth) {
    Cost total{name == "Mul" ? 1.0 : 0.0, 1};
    size_t count = 0;
    do {
      if (count++ > 0) result_ += ", ";
      Cost one;
      if (name == "Piecewise" && accept('(')) {  // a value and its condition
        result_ += '(';
        one = combined("ExprCondPair", depth + 1);
        result_ += ')';
        expect(')');
      } else {
        one = expression(depth + 1);
      }
      total.terms = name == "Mul" ? total.terms * one.terms : total.terms + one.terms;
      total.bits += one.bits;
    } while (accept(','));
    if (contains(kBranching, name) && count > kMaxBranches)
      fail_unsupported("an expression has {} branches, and {} are evaluated", count, kMaxBranches);
    return total;
  }

  std::string_view text_;
  std::string result_;
  size_t at_ = 0;
};

}  // namespace

bool is_symbol_name(std::string_view name) {
  // PyTorch counts up to the number of those that it calls u0 or zuf0
  const int64_t most = name.starts_with('u') || name.starts_with('z') ? 6 : 18;
  const int64_t digits = std::count_if(name.begin(), name.end(), is_digit);
  const bool is_name = is_word(name) && name.find('.') == name.npos && !name.starts_with('_') && name.size() <= 64;
  const bool is_taken = contains(kFunctions, name) || contains(kPowers, name) || contains(kNumbers, name);
  return is_name && !is_taken && digits <= most && name.find("__") == name.npos;
}

std::optional<std::string> vetted_guard(std::string_view text) {
  constexpr std::string_view kWords[] = {"and", "or", "not"};
  constexpr std::string_view kNames[] = {"L",          "size",         "stride",        "Max",     "Min",
                                         "Mod",        "PythonMod",    "FloorDiv",      "CeilDiv", "CleanDiv",
                                         "IntTrueDiv", "FloatTrueDiv", "storage_offset"};
  if (text.size() > kMaxGuard) return std::nullopt;
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    size_t end = at + 1;
    if (is_word_char(c)) {
      while (end < text.size() && is_word_char(text[end])) ++end;
      const std::string_view word = text.substr(at, end - at);
      const bool is_number = std::all_of(word.begin(), word.end(), is_digit) && word.size() <= 18;
      const bool joins = contains(kWords, word);
      if (!is_number && !joins && !contains(kNames, word)) return std::nullopt;
      result += joins ? fmt::format(" {} ", word) : std::string(word);
    } else if (c == '\'') {  // the name of an input, or a key of a dict
      end = text.find('\'', at + 1);
      if (end == text.npos || !is_word(text.substr(at + 1, end - at - 1))) return std::nullopt;
      result += text.substr(at, ++end - at);
    } else if (c != ' ') {
      const bool is_power = c == '*' && (result.ends_with('*') || result.ends_with("* "));
      if (std::string_view("+-*/%()[].,<>=!").find(c) == std::string_view::npos || is_power) return std::nullopt;
      result += c;
    }
    at = end;
  }
  return result;
}

std::string vetted_expression(std::string_view text) {
  require(text.size() <= kMaxTextSize, "an expression has {} characters", text.size());
  return Printer(text).print();
}

}  // namespace tonnx::pt2
