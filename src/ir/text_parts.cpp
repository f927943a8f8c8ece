// text_parts.cpp - numbers, types, sizes and constants of the text form; docs/ir.md has the grammar.
#include "ir/text_parts.h"

#include <charconv>
#include <limits>

namespace tonnx::text {

bool PartParser::take_mark(std::string_view mark) {
  if (!at_mark(mark)) return false;
  lexer_.advance();
  return true;
}

bool PartParser::take_word(std::string_view word) {
  if (!at_word(word)) return false;
  lexer_.advance();
  return true;
}

void PartParser::fail_expected(std::string_view what) const {
  constexpr size_t kShown = 40;
  const std::string_view found = token().source;
  if (found.empty()) lexer_.fail(fmt::format("the text ends where {} is expected", what));
  lexer_.fail(
      fmt::format("{} is expected, not {}{}", what, found.substr(0, kShown), found.size() > kShown ? "..." : ""));
}

void PartParser::expect_mark(std::string_view mark) {
  if (!take_mark(mark)) fail_expected(fmt::format("'{}'", mark));
}

std::string PartParser::take(Kind kind, std::string_view what) {
  if (token().kind != kind) fail_expected(what);
  std::string text = token().text;
  lexer_.advance();
  return text;
}

std::string PartParser::take_word_or_string(std::string_view what) {
  return take(token().kind == Kind::String ? Kind::String : Kind::Word, what);
}

uint64_t PartParser::take_magnitude() {
  if (token().kind != Kind::Number) fail_expected("a number");
  const std::string_view digits = token().source;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size()) fail_expected("an integer");
  if (error != std::errc()) lexer_.fail(fmt::format("{} does not fit into 64 bits", digits));
  lexer_.advance();
  return value;
}

bool PartParser::at_integer() const {
  return token().kind == Kind::Number && token().source.find_first_of(".ef") == std::string_view::npos;
}

int64_t PartParser::take_integer(bool negative) {
  const Token at = token();
  const uint64_t magnitude = take_magnitude();
  if (magnitude > uint64_t{INT64_MAX} + negative)
    lexer_.fail(at, fmt::format("{} does not fit into 64 bits", at.source));
  return static_cast<int64_t>(negative ? uint64_t{0} - magnitude : magnitude);
}

/// Without its sign, which is a token of its own.
template <class Float>
Float PartParser::take_float() {
  if (take_word("inf")) return std::numeric_limits<Float>::infinity();
  if (take_word("nan")) return std::numeric_limits<Float>::quiet_NaN();
  if (token().kind != Kind::Number) fail_expected("a number");
  std::string_view digits = token().source;
  if (digits.ends_with('f')) digits.remove_suffix(1);
  Float value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size()) fail_expected("a number");
  if (error != std::errc()) lexer_.fail(fmt::format("{} is out of range", digits));
  lexer_.advance();
  return value;
}

template float PartParser::take_float<float>();
template double PartParser::take_float<double>();

uint64_t PartParser::parse_element_bits(DType dtype) {
  const int bits = info(dtype).bits;
  const Token at = token();
  if (token().kind == Kind::Number && token().source.starts_with("0x")) {
    const std::string_view digits = token().source.substr(2);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || end != digits.data() + digits.size() || (bits < 64 && value >> bits != 0)) {
      lexer_.fail(fmt::format("{} is no element of {}", token().source, name_of(dtype)));
    }
    lexer_.advance();
    return value;
  }
  if (dtype == DType::Bool) {
    if (take_word("True")) return 1;
    if (take_word("False")) return 0;
    fail_expected("True or False");
  }
  if (dtype == DType::UInt64) return take_magnitude();
  if (is_integer(dtype)) {
    const int64_t value = parse_integer();
    const int64_t largest = static_cast<int64_t>(UINT64_MAX >> 1 >> (is_signed_int(dtype) ? 64 - bits : 63 - bits));
    if (value > largest || value < (is_signed_int(dtype) ? -largest - 1 : 0)) {
      lexer_.fail(at, fmt::format("{} is no element of {}", value, name_of(dtype)));
    }
    return static_cast<uint64_t>(value);
  }
  const bool negative = take_mark("-");
  if (dtype == DType::Float32) {
    const auto value = take_float<float>();
    return bits_of(dtype, negative ? -value : value);
  }
  const auto value = take_float<double>();
  return bits_of(dtype, negative ? -value : value);
}

DType PartParser::parse_dtype() {
  if (token().kind != Kind::Word) fail_expected("an element type");
  const auto dtype = find_dtype(token().source);
  if (!dtype && !at_word("undefined")) fail_expected("an element type");
  lexer_.advance();
  return dtype.value_or(DType::Undefined);
}

/// The types of aten's plain numbers.
Type PartParser::parse_number_type(const std::string& name) {
  if (name == "float") return Type::number(Type::Kind::Float);
  if (name == "bool_") return Type::number(Type::Kind::Bool);
  if (!take_mark("[")) return Type::number(Type::Kind::Int);
  expect_mark("]");
  return Type::number(Type::Kind::IntList);
}

Type PartParser::parse_type() {
  return nested(kMaxNesting, [&]() -> Type {
    if (take_mark("?")) return {};
    const std::string name = token().kind == Kind::Word ? token().text : "";
    if (name == "opaque") {
      lexer_.advance();
      return Type::number(Type::Kind::Opaque);
    }
    if (name == "int" || name == "float" || name == "bool_") {
      lexer_.advance();
      return parse_number_type(name);
    }
    const bool is_container = name == "seq" || name == "optional" || name == "map";
    if (!is_container && name != "sparse") {
      Type type = Type::tensor(parse_dtype());
      if (at_mark("[")) type.shape = parse_shape();
      return type;
    }
    lexer_.advance();
    expect_mark("(");
    Type type;
    if (name == "map") {
      type.dtype = parse_dtype();
      expect_mark(",");
    }
    Type element = parse_type();
    if (name == "sparse") {
      if (!element.is_tensor()) lexer_.fail("a sparse tensor is of an element type");
      type = std::move(element);
      type.kind = Type::Kind::SparseTensor;
    } else {
      type.kind = name == "seq" ? Type::Kind::Sequence : name == "map" ? Type::Kind::Map : Type::Kind::Optional;
      if (element.kind != Type::Kind::Unknown) type.elements = {std::move(element)};
    }
    expect_mark(")");
    return type;
  });
}

Shape PartParser::parse_shape() {
  expect_mark("[");
  Shape shape;
  parse_items("]", [&] { shape.push_back(parse_dim()); });
  return shape;
}

Dim PartParser::parse_dim() {
  return nested(kMaxDimNesting, [&] {
    Dim sum = parse_dim_product();
    while (at_mark("+") || at_mark("-")) {
      const Token at = token();
      lexer_.advance();
      const Dim next = parse_dim_product();
      sum = located(at, [&] { return at.source == "-" ? sum - next : sum + next; });
    }
    return sum;
  });
}

Dim PartParser::parse_dim_product() {
  const Token start = token();
  const bool negative = take_mark("-");
  const bool is_number = negative && token().kind == Kind::Number;  // the least integer has no positive counterpart
  Dim product = is_number ? Dim(take_integer(true)) : parse_dim_factor();
  while (at_mark("*")) {
    const Token at = token();
    lexer_.advance();
    const Dim factor = parse_dim_factor();
    product = located(at, [&] { return product * factor; });
  }
  return negative && !is_number ? located(start, [&] { return product * Dim(-1); }) : product;
}

Dim PartParser::parse_dim_factor() {
  if (token().kind == Kind::Number) return take_integer(false);
  if (take_mark("?")) return Dim::symbol("");
  if (token().kind == Kind::String) return Dim::symbol(take_string());
  if (take_mark("(")) {
    Dim inner = parse_dim();
    expect_mark(")");
    return inner;
  }
  const Token at = token();
  const std::string name = take(Kind::Word, "a size");
  return take_mark("(") ? parse_dim_function(at, name) : Dim::symbol(name);
}

Dim PartParser::parse_dim_function(const Token& at, const std::string& name) {
  const bool is_floor = name == "floor";
  if (!is_floor && name != "max" && name != "min" && name != "mod") lexer_.fail(at, "none of floor, max, min, mod");
  return nested(kMaxDimNesting, [&] {
    const Dim a = is_floor ? parse_dim_product() : parse_dim();
    expect_mark(is_floor ? "/" : ",");
    const Dim b = is_floor ? parse_dim_factor() : parse_dim();
    expect_mark(")");
    return located(at, [&] {
      return is_floor ? floor_div(a, b) : name == "max" ? max(a, b) : name == "min" ? min(a, b) : mod(a, b);
    });
  });
}

std::vector<int64_t> PartParser::parse_sizes() {
  expect_mark("[");
  std::vector<int64_t> sizes;
  parse_items("]", [&] { sizes.push_back(parse_integer()); });
  return sizes;
}

void PartParser::parse_elements(Tensor& tensor, int64_t count) {
  const Token start = token();
  expect_mark("{");
  if (count > static_cast<int64_t>(lexer_.left())) {
    lexer_.fail(start, fmt::format("the tensor has {} elements, and the text ends before that many", count));
  }
  const bool is_complex = info(tensor.dtype).kind == 'c';
  const DType part = !is_complex ? tensor.dtype : tensor.dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
  std::vector<uint8_t> data(static_cast<size_t>(byte_size(tensor.dtype, count)));
  int64_t found = 0;
  const auto add_part = [&](int64_t index) {
    const uint64_t bits = parse_element_bits(part);
    if (found < count) set_element_bits(part, data.data(), index, bits);
  };
  parse_items("}", [&] {
    if (tensor.dtype == DType::String) {
      tensor.strings.push_back(take_string());
    } else if (is_complex) {
      expect_mark("(");
      add_part(2 * found);
      expect_mark(",");
      add_part(2 * found + 1);
      expect_mark(")");
    } else {
      add_part(found);
    }
    ++found;
  });
  if (found != count) lexer_.fail(start, fmt::format("{} values for a tensor of {} elements", found, count));
  if (tensor.dtype != DType::String) tensor.data = Bytes::own(std::move(data));
}

std::shared_ptr<Tensor> PartParser::parse_tensor(DType dtype) {
  auto tensor = std::make_shared<Tensor>();
  tensor->dtype = dtype;
  const Token start = token();
  if (dtype == DType::Undefined) lexer_.fail("a tensor of no element type");
  tensor->dims = parse_sizes();
  const int64_t count = located(start, [&] {
    byte_size(dtype, count_of(tensor->dims));
    return count_of(tensor->dims);
  });
  if (at_mark("<")) lexer_.fail("the values are left out here; print the model with more elements to have them");
  parse_elements(*tensor, count);
  if (take_mark("(")) {
    if (token().kind == Kind::String) tensor->source_name = take_string();
    while (parse_note(tensor->doc, tensor->metadata)) {
    }
    expect_mark(")");
  }
  return tensor;
}

SparseTensorPtr PartParser::parse_sparse() {
  auto sparse = std::make_shared<SparseTensor>();
  const Token start = token();
  sparse->dims = parse_sizes();
  expect_mark("(");
  sparse->values = parse_tensor(parse_dtype());
  expect_mark(",");
  sparse->indices = parse_tensor(parse_dtype());
  expect_mark(")");
  if (!is_integer(sparse->indices->dtype)) lexer_.fail(start, "the indices of a sparse tensor are no integers");
  located(start, [&] { return count_of(sparse->dims); });
  return sparse;
}

bool PartParser::parse_note(std::string& doc, Metadata& metadata) {
  if (take_word("doc")) {
    doc = take_string();
    return true;
  }
  if (!take_word("metadata")) return false;
  std::string key = take_string();
  expect_mark("=");
  metadata.emplace_back(std::move(key), take_string());
  return true;
}

}  // namespace tonnx::text
