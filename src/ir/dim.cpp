// dim.cpp - arithmetic on symbolic dimensions.
#include "ir/dim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/quote.h"

namespace tonnx {

Dim::Dim(const Dim& other) noexcept = default;
Dim::Dim(Dim&& other) noexcept = default;
Dim& Dim::operator=(const Dim& other) noexcept = default;
Dim& Dim::operator=(Dim&& other) noexcept = default;
Dim::~Dim() = default;
namespace {

int64_t add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) fail_invalid("a dimension overflows 64 bits");
  return sum;
}
int64_t multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) fail_invalid("a dimension overflows 64 bits");
  return product;
}
int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return multiply(a, -1);
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

bool divides(int64_t divisor, int64_t value) { return divisor == -1 || (divisor != 0 && value % divisor == 0); }

uint64_t magnitude(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

// A few products and quotients of sums can grow without end, so that a small file could take all memory.
constexpr size_t kMaxTerms = 128;
constexpr size_t kMaxText = 2048;  // of one product

void require_short(const std::string& text) {
  if (text.size() > kMaxText) fail_unsupported("the expression of a size takes more than {} characters", kMaxText);
}

std::string text_of(const Dim::Product& product) {
  std::string text;
  for (const Dim::AtomPtr& atom : product) text += (text.empty() ? "" : "*") + atom->text;
  if (product.size() > 1) require_short(text);
  return text;
}

}  // namespace

Dim Dim::from(Terms terms, int64_t constant) {
  std::erase_if(terms, [](const auto& term) { return term.second.coefficient == 0; });
  if (terms.size() > kMaxTerms) fail_unsupported("the expression of a size has more than {} terms", kMaxTerms);
  Dim dim(constant);
  if (!terms.empty()) dim.terms_ = std::make_shared<const Terms>(std::move(terms));
  return dim;
}

Dim Dim::of_atom(AtomPtr atom) {
  Terms terms;
  std::string text = atom->text;
  terms.emplace(std::move(text), Term{{std::move(atom)}, 1});
  return from(std::move(terms), 0);
}

Dim Dim::symbol(std::string_view name) {
  // a few of the last ones: files say the same names all the time, and none at all even more often
  constexpr size_t kKept = 64, kLongest = 64;
  thread_local std::array<Dim, kKept> kept;
  Dim& last = kept[std::hash<std::string_view>{}(name) % kKept];
  if (last.terms_ && last.terms_->begin()->first == name) return last;
  Dim made = of_atom(std::make_shared<const Atom>(Atom{'s', std::string(name), {}, {}}));
  if (name.size() <= kLongest) last = made;
  return made;
}

Dim Dim::apply(char kind, const Dim& a, const Dim& b) {
  std::string text;
  switch (kind) {
    case '/': text = fmt::format("floor(({})/({}))", a.text(), b.text()); break;
    case '%': text = fmt::format("mod({}, {})", a.text(), b.text()); break;
    case '>': text = fmt::format("max({}, {})", a.text(), b.text()); break;
    default: text = fmt::format("min({}, {})", a.text(), b.text()); break;
  }
  require_short(text);
  return of_atom(std::make_shared<const Atom>(Atom{kind, std::move(text), a, b}));
}

std::optional<std::string> Dim::symbol_name() const {
  if (!terms_ || constant_ != 0 || terms_->size() != 1) return std::nullopt;
  const Term& term = terms_->begin()->second;
  if (term.coefficient != 1 || term.product.size() != 1 || term.product[0]->kind != 's') return std::nullopt;
  return term.product[0]->text;
}

bool Dim::is_non_negative() const { return is_at_least(*this, Dim(0)); }

bool Dim::is_non_negative(const Product& product) {
  return std::all_of(product.begin(), product.end(), [](const AtomPtr& atom) {
    switch (atom->kind) {
      case 's': return true;
      case '>': return atom->a.is_non_negative() || atom->b.is_non_negative();
      case '%': return atom->b.is_non_negative();
      default: return atom->a.is_non_negative() && atom->b.is_non_negative();
    }
  });
}

bool Dim::is_at_least(const Dim& a, const Dim& b) {
  if (a.constant_ < b.constant_) return false;  // compared, not subtracted: the difference may not fit
  static const Terms none;
  const Terms& left = a.terms_ ? *a.terms_ : none;
  const Terms& right = b.terms_ ? *b.terms_ : none;
  const auto covers = [](const Product& product, int64_t more, int64_t less) {
    return more == less || (more > less && is_non_negative(product));
  };
  return std::all_of(left.begin(), left.end(),
                     [&](const auto& entry) {
                       const auto at = right.find(entry.first);
                       return covers(entry.second.product, entry.second.coefficient,
                                     at == right.end() ? 0 : at->second.coefficient);
                     }) &&
         std::all_of(right.begin(), right.end(), [&](const auto& entry) {
           return left.contains(entry.first) || covers(entry.second.product, 0, entry.second.coefficient);
         });
}

std::vector<std::pair<Dim::Product, int64_t>> Dim::terms() const {
  std::vector<std::pair<Product, int64_t>> result;
  if (terms_) {
    for (const auto& [text, term] : *terms_) result.emplace_back(term.product, term.coefficient);
  }
  return result;
}

Dim operator+(const Dim& a, const Dim& b) {
  const int64_t constant = add(a.constant_, b.constant_);
  if (!b.terms_) {
    Dim sum = a;
    sum.constant_ = constant;
    return sum;
  }
  Dim::Terms terms = a.terms_ ? *a.terms_ : Dim::Terms{};
  for (const auto& [text, term] : *b.terms_) {
    auto [at, fresh] = terms.emplace(text, term);
    if (!fresh) at->second.coefficient = add(at->second.coefficient, term.coefficient);
  }
  return Dim::from(std::move(terms), constant);
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return multiply(a.constant_, b.constant_);
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  Dim::Terms terms;
  const auto accumulate = [&](Dim::Product product, int64_t coefficient) {
    std::string text = text_of(product);
    auto [at, fresh] = terms.emplace(std::move(text), Dim::Term{std::move(product), coefficient});
    if (!fresh) at->second.coefficient = add(at->second.coefficient, coefficient);
  };
  for (const auto& [product, coefficient] : a.terms()) accumulate(product, multiply(coefficient, b.constant_));
  for (const auto& [product, coefficient] : b.terms()) accumulate(product, multiply(coefficient, a.constant_));
  for (const auto& [left, left_coefficient] : a.terms()) {
    for (const auto& [right, right_coefficient] : b.terms()) {
      Dim::Product product = left;
      product.insert(product.end(), right.begin(), right.end());
      std::sort(product.begin(), product.end(), [](const auto& x, const auto& y) { return x->text < y->text; });
      accumulate(std::move(product), multiply(left_coefficient, right_coefficient));
    }
  }
  return Dim::from(std::move(terms), multiply(a.constant_, b.constant_));
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.constant_ != b.constant_ || a.is_constant() != b.is_constant()) return false;
  if (a.is_constant() || a.terms_ == b.terms_) return true;
  return std::equal(
      a.terms_->begin(), a.terms_->end(), b.terms_->begin(), b.terms_->end(),
      [](const auto& x, const auto& y) { return x.first == y.first && x.second.coefficient == y.second.coefficient; });
}

std::optional<Dim> exact_div(const Dim& a, const Dim& b) {
  if (a == b) return Dim(1);
  if (b.is_constant()) {
    const int64_t divisor = b.constant_;
    if (divisor == -1) return a * b;
    if (!divides(divisor, a.constant_)) return std::nullopt;
    Dim::Terms terms = a.terms_ ? *a.terms_ : Dim::Terms{};
    for (auto& [text, term] : terms) {
      if (!divides(divisor, term.coefficient)) return std::nullopt;
      term.coefficient /= divisor;
    }
    return Dim::from(std::move(terms), a.constant_ / divisor);
  }
  const auto divisors = b.terms();
  if (divisors.size() != 1 || b.constant_ != 0 || a.constant_ != 0) return std::nullopt;
  const auto& [divisor, by] = divisors[0];
  Dim quotient;
  for (auto [product, coefficient] : a.terms()) {
    if (!divides(by, coefficient)) return std::nullopt;
    for (const Dim::AtomPtr& atom : divisor) {
      const auto at =
          std::find_if(product.begin(), product.end(), [&](const auto& x) { return x->text == atom->text; });
      if (at == product.end()) return std::nullopt;
      product.erase(at);
    }
    Dim term(floor_divide(coefficient, by));
    for (const Dim::AtomPtr& atom : product) term = term * Dim::of_atom(atom);
    quotient = quotient + term;
  }
  return quotient;
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.is(0)) fail_invalid("a dimension is divided by zero");
  if (a.is_constant() && b.is_constant()) return floor_divide(a.constant_, b.constant_);
  if (const auto exact = exact_div(a, b)) return *exact;
  if (b.is_constant() && b.constant_ > 0) {  // floor((x + k*b + r)/b) = k + floor((x + r)/b)
    Dim whole(floor_divide(a.constant_, b.constant_));
    Dim rest(add(a.constant_, multiply(-whole.constant_, b.constant_)));
    for (const auto& [product, coefficient] : a.terms()) {
      const bool divisible = divides(b.constant_, coefficient);
      const int64_t share = divisible ? coefficient / b.constant_ : coefficient;
      Dim& part = divisible ? whole : rest;
      part = part + Dim::from({{text_of(product), {product, share}}}, 0);
    }
    if (!whole.is(0)) return whole + floor_div(rest, b);
  }
  return Dim::apply('/', a, b);
}

Dim ceil_div(const Dim& a, const Dim& b) {
  if (b.is_constant() && b.constant_ > 0) return floor_div(a + Dim(b.constant_ - 1), b);
  return Dim(0) - floor_div(Dim(0) - a, b);
}

Dim mod(const Dim& a, const Dim& b) {
  if (b.is(0)) fail_invalid("a dimension is divided by zero");
  if (b.is(-1)) return 0;
  if (a.is_constant() && b.is_constant()) {
    const int64_t rest = a.constant_ % b.constant_;
    return rest != 0 && (rest < 0) != (b.constant_ < 0) ? rest + b.constant_ : rest;
  }
  if (exact_div(a, b)) return 0;
  return Dim::apply('%', a, b);
}

Dim max(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant_, b.constant_);
  if (Dim::is_at_least(a, b)) return a;
  if (Dim::is_at_least(b, a)) return b;
  return a.text() < b.text() ? Dim::apply('>', a, b) : Dim::apply('>', b, a);
}

Dim min(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.constant_, b.constant_);
  if (Dim::is_at_least(a, b)) return b;
  if (Dim::is_at_least(b, a)) return a;
  return a.text() < b.text() ? Dim::apply('<', a, b) : Dim::apply('<', b, a);
}

std::string Dim::text() const {
  if (!terms_) return std::to_string(constant_);
  std::string text;
  for (const auto& [product, term] : *terms_) {
    const bool negative = term.coefficient < 0;
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    if (magnitude(term.coefficient) != 1) text += std::to_string(magnitude(term.coefficient)) + "*";
    text += product;
  }
  if (constant_ != 0) text += (constant_ < 0 ? " - " : " + ") + std::to_string(magnitude(constant_));
  return text;
}

Dim count_of(const Shape& shape) {
  Dim count(1);
  for (const Dim& dim : shape) count = count * dim;
  return count;
}

namespace {

std::string text_of(const Dim::Atom& atom) {
  const auto in_parentheses = [](const Dim& dim, bool needed) {
    return needed ? fmt::format("({})", tonnx::text_of(dim)) : tonnx::text_of(dim);
  };
  const auto part_count = [](const Dim& dim) { return dim.terms().size() + (dim.constant_term() != 0); };
  switch (atom.kind) {
    case 's': return atom.text.empty() ? "?" : word_or_quoted(atom.text);
    case '/': {
      const auto terms = atom.b.terms();
      const bool simple = terms.empty() ? atom.b.constant_term() >= 0
                                        : part_count(atom.b) == 1 && terms[0].first.size() == 1 && terms[0].second == 1;
      return fmt::format("floor({}/{})", in_parentheses(atom.a, part_count(atom.a) > 1),
                         in_parentheses(atom.b, !simple));
    }
    case '%': return fmt::format("mod({}, {})", tonnx::text_of(atom.a), tonnx::text_of(atom.b));
    case '>': return fmt::format("max({}, {})", tonnx::text_of(atom.a), tonnx::text_of(atom.b));
    default: return fmt::format("min({}, {})", tonnx::text_of(atom.a), tonnx::text_of(atom.b));
  }
}

}  // namespace

std::string text_of(const Dim& dim) {
  if (const auto number = dim.constant()) return std::to_string(*number);
  std::string text;
  for (const auto& [product, coefficient] : dim.terms()) {
    const bool negative = coefficient < 0;
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    std::string factors = magnitude(coefficient) == 1 ? "" : std::to_string(magnitude(coefficient));
    for (const Dim::AtomPtr& atom : product) factors += (factors.empty() ? "" : "*") + text_of(*atom);
    text += factors;
  }
  const int64_t constant = dim.constant_term();
  if (constant != 0) text += (constant < 0 ? " - " : " + ") + std::to_string(magnitude(constant));
  return text;
}

std::string text_of(const Shape& shape) {
  std::string text = "[";
  for (const Dim& dim : shape) text += (text.size() > 1 ? ", " : "") + text_of(dim);
  return text + "]";
}

}  // namespace tonnx

template class std::vector<tonnx::Dim>;
template class tonnx::CheckedList<tonnx::Dim>;
