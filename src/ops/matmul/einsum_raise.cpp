// einsum_raise.cpp - PyTorch's sums of products by their letters, and cross products, as ONNX.
#include <map>
#include <set>

#include "ops/frame/complex_parts.h"
#include "ops/matmul/rows.h"
#include "ops/window/raise_window.h"

namespace tonnx {
namespace {

/// An equation with its dots written out as letters.
struct Letters {
  std::vector<std::string> terms;
  std::string result;
};

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == by) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Letters letters_of(const AtenNode& n, OnnxBuilder& onnx, std::string text, const std::vector<Value*>& inputs) {
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  Letters letters{split(text.substr(0, arrow), ','), ""};
  require(letters.terms.size() == inputs.size(), "the equation has {} terms for {} tensors", letters.terms.size(),
          inputs.size());
  std::string unused;
  for (const char c : std::string("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    if (text.find(c) == std::string::npos) unused += c;
  }
  size_t most = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string& term = letters.terms[i];
    const size_t dots = term.find("...");
    if (dots == std::string::npos) continue;
    const auto rank = static_cast<size_t>(onnx.rank(inputs[i]));
    require(rank + 3 >= term.size(), "a term has more letters than its tensor has dimensions");
    const size_t count = rank + 3 - term.size();
    if (count > unused.size()) n.cannot("so many dimensions");
    most = std::max(most, count);
    term.replace(dots, 3, unused.substr(unused.size() - count));  // they are aligned at the last
  }
  const std::string rest = unused.substr(unused.size() - most);
  if (arrow != std::string::npos) {
    letters.result = text.substr(arrow + 2);
    if (const size_t dots = letters.result.find("..."); dots != std::string::npos)
      letters.result.replace(dots, 3, rest);
    return letters;
  }
  std::map<char, int> counts;
  for (const std::string& term : letters.terms) {
    for (const char c : term) ++counts[c];
  }
  letters.result = rest;
  for (const auto& [c, count] : counts) {
    if (count == 1 && rest.find(c) == std::string::npos) letters.result += c;
  }
  return letters;
}

/// A size of 1 that broadcasts against others leaves its term: ONNX infers the size of a letter from where it finds it
/// first.
void drop_broadcast_ones(Letters& letters, CheckedList<Value*>& inputs, OnnxBuilder& onnx) {
  std::set<char> wide;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = onnx.shape(inputs[i]);
    for (size_t at = 0; at < shape.size(); ++at) {
      if (!shape[at].is(1)) wide.insert(letters.terms[i].at(at));
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape shape = onnx.shape(inputs[i]);
    std::string kept;
    std::vector<int64_t> ones;
    for (size_t at = 0; at < shape.size(); ++at) {
      const char letter = letters.terms[i].at(at);
      if (shape[at].is(1) && wide.contains(letter)) {
        ones.push_back(static_cast<int64_t>(at));
      } else {
        kept += letter;
      }
    }
    if (ones.empty()) continue;
    inputs[i] = onnx.squeeze(inputs[i], ones);
    letters.terms[i] = kept;
  }
}

}  // namespace

Values raise_einsum(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"path"});
  CheckedList<Value*> inputs = n.inputs("tensors");
  Letters letters = letters_of(n, onnx, n.s("equation"), inputs);
  drop_broadcast_ones(letters, inputs, onnx);
  const DType dtype = n.output_dtype(), kernel = is_float(dtype) ? dtype : DType::Int64;
  for (Value*& input : inputs) input = onnx.cast(input, kernel);
  std::string equation;
  for (const std::string& term : letters.terms)
    equation += (equation.empty() && &term == &letters.terms[0] ? "" : ",") + term;
  return onnx.cast(onnx("Einsum", inputs, {attr("equation", equation + "->" + letters.result)}), dtype);
}

namespace {

/// a x b: with their elements moved by one, a * b1 - a1 * b is the result moved by two.
Values raise_cross(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  Value *a = n.input_as("self", dtype), *b = n.input_as("other", dtype);
  const Shape& shape = n.output_shape();
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t dim = -1;
  if (n.has("dim")) {
    dim = AtenNode::normalized(n.i("dim"), rank);
  } else {
    for (int64_t i = rank; i-- > 0;) dim = shape[static_cast<size_t>(i)].is(3) ? i : dim;
    require(dim >= 0, "no dimension has the size 3");
  }
  Value* moved = onnx.ints({1, 2, 0});
  const auto next = [&](Value* x) { return onnx.gather(x, moved, dim - (rank - onnx.rank(x))); };
  return next(onnx("Sub", {onnx("Mul", {a, next(b)}), onnx("Mul", {next(a), b})}));
}

Values raise_vander(const AtenNode& n, OnnxBuilder& onnx) {
  n.ignore({"N"});
  const DType dtype = n.output_dtype();
  Value* x = n.input_as("x", dtype);
  Value* powers = onnx.cast(onnx.range(onnx.int_of(n.output_shape().back())), dtype);
  return onnx.reshape(onnx("Pow", {onnx.unsqueeze(x, {onnx.rank(x)}), powers}), n.output_shape());
}

constexpr AtenOp kAtenEinsumAten[] = {
    {.sig = "aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
     .types = types_cross,
     .python = "torch.linalg.cross",
     .raise = raise_cross,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
     .types = types_cross,
     .python = "torch.cross",
     .raise = raise_cross,
     .raise_complex = raise_products_of_parts},
    {.sig = "aten::linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor",
     .types = types_vander,
     .python = "torch.linalg.vander",
     .raise = raise_vander},
};

}  // namespace

extern const OpFamily kAtenEinsumOps;
constinit const OpFamily kAtenEinsumOps{"aten_einsum", {}, kAtenEinsumAten};

}  // namespace tonnx
