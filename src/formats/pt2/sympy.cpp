// sympy.cpp - a parser of the few forms of sympy's srepr that sizes take.
#include "formats/pt2/sympy.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace tonnx::pt2 {
namespace {

constexpr int kMaxDepth = 200;
constexpr int64_t kMaxPower = 8;
constexpr int64_t kMaxFloatBelow = 1024;
constexpr size_t kMaxText = 1 << 16;

/// A size over a number that does not divide it yet: `Mul(Rational(1, 2), Symbol('s0'))` comes so.
struct Fraction {
  Dim above;
  int64_t below = 1;
};
using Term = std::optional<Fraction>;

class Parser {
 public:
  Parser(std::string_view text, const SymbolNames& names) : text_(text), names_(names) {}

  std::optional<Dim> parse() {
    const Term result = expression(0);
    skip_spaces();
    require(at_ == text_.size(), "the size '{}' goes on after its end", text_);
    return whole(result);
  }

 private:
  static std::optional<Dim> whole(const Term& term) {
    if (!term) return std::nullopt;
    return term->below == 1 ? term->above : exact_div(term->above, Dim(term->below));
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) { require(accept(c), "the size '{}' has no '{}' where one is needed", text_, std::string(1, c)); }

  std::string_view word() {
    skip_spaces();
    const size_t start = at_;
    const auto is_part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    };
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  std::string_view quoted() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    require(quote == '\'' || quote == '"', "the size '{}' has no name where one is needed", text_);
    const size_t start = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) ++at_;
    require(at_ < text_.size(), "the size '{}' ends inside a name", text_);
    return text_.substr(start, at_++ - start);
  }

  int64_t integer() {
    skip_spaces();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    require(error == std::errc(), "the size '{}' has no number where one is needed", text_);
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  bool is_number_next() {
    skip_spaces();
    return at_ < text_.size() && ((text_[at_] >= '0' && text_[at_] <= '9') || text_[at_] == '-');
  }

  Term expression(int depth) {
    require(depth < kMaxDepth, "a size is nested more than {} deep", kMaxDepth);
    if (is_number_next()) return Fraction{Dim(integer())};
    std::string_view name = word();
    require(!name.empty(), "the size '{}' is not an expression", text_);
    if (const size_t dot = name.rfind('.'); dot != std::string_view::npos) name = name.substr(dot + 1);
    if (!accept('(')) return std::nullopt;  // true, oo, pi ...
    if (name == "Symbol" || name == "Dummy") return symbol();
    if (name == "Integer") {
      const Dim value(integer());
      expect(')');
      return Fraction{value};
    }
    if (name == "Rational") {
      const int64_t above = integer();
      expect(',');
      const int64_t below = integer();
      expect(')');
      return below > 0 ? Term(Fraction{Dim(above), below}) : std::nullopt;
    }
    if (name == "Float") return floating();
    return apply(name, arguments(depth));
  }

  /// `Float('0.5', precision=53)`: a fraction, where its denominator is a small power of two.
  Term floating() {
    const std::string_view digits = quoted();
    while (accept(',')) {
      word();
      expect('=');
      word();
    }
    expect(')');
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    for (int64_t below = 1; below <= kMaxFloatBelow; below *= 2) {
      const double above = value * static_cast<double>(below);
      if (above == std::floor(above) && std::abs(above) < static_cast<double>(kLargest))
        return Fraction{Dim(static_cast<int64_t>(above)), below};
    }
    return std::nullopt;
  }

  Term symbol() {
    const std::string_view name = quoted();
    while (accept(',')) {  // what is assumed of it
      word();
      expect('=');
      word();
    }
    expect(')');
    if (const auto given = names_.find(name); given != names_.end()) return Fraction{Dim::symbol(given->second)};
    // ours are u0, u1 ...: sizes that only the run tells are told apart from them
    const bool is_unbacked = name.size() > 1 && name[0] == 'u' && name.find_first_not_of("0123456789", 1) == name.npos;
    return Fraction{Dim::symbol(is_unbacked ? "data" + std::string(name.substr(1)) : std::string(name))};
  }

  std::vector<Term> arguments(int depth) {
    std::vector<Term> result;
    if (accept(')')) return result;
    do {
      skip_spaces();
      if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
        quoted();
        result.emplace_back(std::nullopt);
        continue;
      }
      const size_t start = at_;
      word();
      if (accept('=')) {
        word();
        continue;
      }
      at_ = start;
      result.push_back(accept('(') ? tuple(depth) : expression(depth + 1));
    } while (accept(','));
    expect(')');
    return result;
  }

  /// The branches of a Piecewise: not a size.
  Term tuple(int depth) {
    require(depth < kMaxDepth, "a size is nested more than {} deep", kMaxDepth);
    arguments(depth + 1);
    return std::nullopt;
  }

  Term apply(std::string_view name, const std::vector<Term>& terms) const {
    for (const Term& term : terms) {
      if (!term) return std::nullopt;
    }
    if (terms.empty()) return std::nullopt;
    if (name == "Add" || name == "Mul") {
      Fraction result = *terms[0];
      for (size_t i = 1; i < terms.size(); ++i) {
        const Fraction& next = *terms[i];
        if (name == "Mul") {
          result.above = result.above * next.above;
        } else {
          result.above = result.above * Dim(next.below) + next.above * Dim(result.below);
        }
        if (result.below > kLargest / next.below) return std::nullopt;
        result.below *= next.below;
      }
      return result;
    }
    Dims sizes;
    for (const Term& term : terms) {
      const bool is_down =
          name == "FloorToInt" || name == "floor" || (name == "TruncToInt" && term->above.is_non_negative());
      if (is_down && terms.size() == 1) return Fraction{floor_div(term->above, Dim(term->below))};
      if ((name == "CeilToInt" || name == "ceiling") && terms.size() == 1)
        return Fraction{ceil_div(term->above, Dim(term->below))};
      if (name == "ToFloat" && terms.size() == 1) return term;
      if (name == "FloatTrueDiv" && terms.size() == 2) return divided(*terms[0], *terms[1]);
      const auto size = whole(term);
      if (!size) return std::nullopt;
      sizes.push_back(*size);
    }
    if (name == "Max" || name == "Min") {
      Dim result = sizes[0];
      for (size_t i = 1; i < sizes.size(); ++i) result = name == "Max" ? max(result, sizes[i]) : min(result, sizes[i]);
      return Fraction{result};
    }
    if (sizes.size() == 1 && name == "Identity") return Fraction{sizes[0]};
    return sizes.size() == 2 ? apply_two(name, sizes[0], sizes[1]) : std::nullopt;
  }

  static Term divided(const Fraction& a, const Fraction& b) {
    const auto number = b.above.constant();
    if (!number || *number <= 0 || a.below > kLargest / *number) return std::nullopt;
    return Fraction{a.above * Dim(b.below), a.below * *number};
  }

  static Term apply_two(std::string_view name, const Dim& a, const Dim& b) {
    if (name == "Pow") {
      const auto power = b.constant();
      if (!power || *power < 0 || *power > kMaxPower) return std::nullopt;
      Dim result(1);
      for (int64_t i = 0; i < *power; ++i) result = result * a;
      return Fraction{result};
    }
    if (b.is(0)) return std::nullopt;
    if (name == "FloorDiv" || name == "CleanDiv") return Fraction{floor_div(a, b)};
    if (name == "Mod" || name == "PythonMod") return Fraction{mod(a, b)};
    if (name == "CeilDiv") return Fraction{ceil_div(a, b)};
    if (name == "IntTrueDiv") {
      const auto below = b.constant();
      return below && *below > 0 ? Term(Fraction{a, *below}) : std::nullopt;
    }
    return std::nullopt;
  }

  static constexpr int64_t kLargest = int64_t{1} << 40;

  std::string_view text_;
  const SymbolNames& names_;
  size_t at_ = 0;
};

}  // namespace

std::optional<Dim> parse_size(std::string_view text, const SymbolNames& names) {
  require(text.size() <= kMaxText, "a size is an expression of {} characters", text.size());
  return Parser(text, names).parse();
}

}  // namespace tonnx::pt2
