// dim.h - one dimension of a shape: a number, or an integer expression over named sizes, in one canonical form.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked_list.h"

namespace tonnx {

/// An integer polynomial over atoms, e.g. `2*batch + floor((h + 1)/2)`. Equal expressions compare equal as far as
/// the canonical form can tell. An atom is a symbol, or floor(a/b), max(a, b), min(a, b), mod(a, b) of two expressions.
/// Symbols stand for sizes, so they are never negative.
class Dim {
 public:
  struct Atom;
  using AtomPtr = std::shared_ptr<const Atom>;
  /// A product of atoms, sorted by their text. The empty product is the constant term.
  using Product = std::vector<AtomPtr>;

  Dim() noexcept {}                                  // NOLINT
  Dim(int64_t value) noexcept : constant_(value) {}  // NOLINT: a number is a dimension
  Dim(const Dim& other) noexcept;
  Dim(Dim&& other) noexcept;
  Dim& operator=(const Dim& other) noexcept;
  Dim& operator=(Dim&& other) noexcept;
  ~Dim();
  static Dim symbol(std::string_view name);

  bool is_constant() const { return !terms_; }
  std::optional<int64_t> constant() const { return is_constant() ? std::optional(constant_) : std::nullopt; }
  bool is(int64_t value) const { return is_constant() && constant_ == value; }
  /// The name, where the whole expression is one symbol.
  std::optional<std::string> symbol_name() const;
  /// True where the form shows that it cannot be negative.
  bool is_non_negative() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);  // of the sign of b, as in Python
  friend Dim max(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);

  /// a / b where b divides a term by term.
  friend std::optional<Dim> exact_div(const Dim& a, const Dim& b);

  /// The canonical text, with the names of symbols as they are: equal expressions have equal texts.
  std::string text() const;

  /// The terms: products and their coefficients, the constant term left out.
  std::vector<std::pair<Product, int64_t>> terms() const;
  int64_t constant_term() const { return constant_; }

 private:
  struct Term {
    Product product;
    int64_t coefficient;
  };
  using Terms = std::map<std::string, Term>;  // by the text of the product

  static Dim of_atom(AtomPtr atom);
  static Dim apply(char kind, const Dim& a, const Dim& b);
  static Dim from(Terms terms, int64_t constant);
  static bool is_non_negative(const Product& product);
  static bool is_at_least(const Dim& a, const Dim& b);  // as far as the form shows it

  int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;  // null where constant
};

struct Dim::Atom {
  char kind;         // s symbol, / floor division, % modulo, > max, < min
  std::string text;  // canonical
  Dim a, b;
};

Dim floor_div(const Dim& a, const Dim& b);
Dim ceil_div(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
std::optional<Dim> exact_div(const Dim& a, const Dim& b);

/// Checked: a file that lies about a rank is found where a dimension is asked for.
using Dims = CheckedList<Dim>;
using Shape = Dims;

}  // namespace tonnx

extern template class std::vector<tonnx::Dim>;
extern template class tonnx::CheckedList<tonnx::Dim>;

namespace tonnx {

/// The product of all dimensions.
Dim count_of(const Shape& shape);

// In the text form of graphs: names that are no words are quoted, a size that nothing is known of is `?`.
std::string text_of(const Dim& dim);
std::string text_of(const Shape& shape);

}  // namespace tonnx
