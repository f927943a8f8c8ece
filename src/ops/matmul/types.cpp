// types.cpp - types of what products of matrices give.
#include <cctype>
#include <map>

#include "ops/frame/result_dtype.h"
#include "ops/matmul/rows.h"
#include "ops/reduce/rows.h"

namespace tonnx {
namespace {

MaybeShape matrix_product(Shape a, Shape b) {
  if (a.empty() || b.empty()) return std::nullopt;
  const bool is_row = a.size() == 1, is_column = b.size() == 1;
  if (is_row) a.insert(a.begin(), Dim(1));
  if (is_column) b.push_back(Dim(1));
  auto result = joint_shape(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!result) return std::nullopt;
  if (!is_row) result->push_back(a[a.size() - 2]);
  if (!is_column) result->push_back(b.back());
  return result;
}

void multiply(TypeNode& n, std::string_view left, std::string_view right) {
  const Shape *a = n.shape(left), *b = n.shape(right);
  n.set(n.dtype("self"), a && b ? matrix_product(*a, *b) : std::nullopt);
}

/// `ij,jk` is `ij,jk->ik`: letters that stand once, in their order, behind what "..." stands for.
std::string with_result(std::string equation) {
  if (equation.find("->") != std::string::npos) return equation;
  std::map<char, int> letters;
  for (const char letter : equation) ++letters[letter];
  std::string result = letters.contains('.') ? "->..." : "->";
  for (const auto& [letter, count] : letters) {
    if (count == 1 && std::isalpha(static_cast<unsigned char>(letter)) != 0) result += letter;
  }
  return equation + result;
}

}  // namespace

void types_matmul(TypeNode& n) { multiply(n, "self", "other"); }
void types_mm(TypeNode& n) { multiply(n, "self", "mat2"); }
void types_addmm(TypeNode& n) { multiply(n, "mat1", "mat2"); }
void types_baddbmm(TypeNode& n) { multiply(n, "batch1", "batch2"); }

void types_linear(TypeNode& n) {
  const Type* input = n.tensor("input");
  const Shape* weight = n.shape("weight");
  if (input == nullptr) return;
  MaybeShape shape = input->shape;
  if (shape && weight && !shape->empty() && !weight->empty()) {
    shape->pop_back();
    if (weight->size() == 2) shape->push_back(weight->front());
    return n.set(input->dtype, shape);
  }
  n.set(input->dtype, std::nullopt);
}

/// `ij,jk->ik`, with "..." for what both have.
void types_einsum(TypeNode& n) {
  const auto all = n.tensors("tensors");
  const std::string equation = with_result(n.args().string("equation"));
  if (all.empty() || all[0] == nullptr) return;
  const DType dtype = all[0]->dtype;
  std::map<char, Dim> sizes;
  Shape dots;
  size_t at = 0;
  const size_t arrow = equation.find("->");
  for (const Type* type : all) {
    if (type == nullptr || !type->shape) return n.set(dtype, std::nullopt);
    std::string term;
    for (; at < arrow && equation[at] != ','; ++at) {
      if (equation[at] != ' ') term += equation[at];
    }
    ++at;
    const size_t ellipsis = term.find("...");
    const size_t letters = ellipsis == std::string::npos ? term.size() : term.size() - 3;
    if (letters > type->shape->size() || (ellipsis == std::string::npos && letters != type->shape->size()))
      return n.set(dtype, std::nullopt);
    const size_t extra = type->shape->size() - letters;
    size_t place = 0;
    for (size_t i = 0; i < term.size(); ++i) {
      if (i == ellipsis) {
        const Shape own(type->shape->begin() + static_cast<std::ptrdiff_t>(place),
                        type->shape->begin() + static_cast<std::ptrdiff_t>(place + extra));
        dots = joint_shape(dots, own).value_or(own);
        place += extra;
        i += 2;
        continue;
      }
      const Dim& size = (*type->shape)[place++];
      auto [known, fresh] = sizes.try_emplace(term[i], size);
      if (!fresh && known->second.is(1)) known->second = size;
    }
  }
  Shape result;
  for (size_t i = arrow + 2; i < equation.size(); ++i) {
    if (equation[i] == ' ') continue;
    if (equation[i] == '.') {
      result.insert(result.end(), dots.begin(), dots.end());
      i += 2;
    } else if (const auto size = sizes.find(equation[i]); size != sizes.end()) {
      result.push_back(size->second);
    } else {
      return n.set(dtype, std::nullopt);
    }
  }
  n.set(dtype, result);
}

void types_outer(TypeNode& n) {
  const Shape *a = n.shape("self"), *b = n.shape("vec2");
  const bool is_known = a && b && a->size() == 1 && b->size() == 1;
  n.set(n.joint_dtype({"self", "vec2"}), is_known ? MaybeShape(Shape{a->front(), b->front()}) : std::nullopt);
}

void types_mv(TypeNode& n) {
  const Shape* matrix = n.shape("self");
  n.set(n.dtype("self"), matrix && matrix->size() == 2 ? MaybeShape(Shape{matrix->front()}) : std::nullopt);
}

void types_dot(TypeNode& n) { n.set(n.dtype("self"), Shape()); }

/// What is left of both shapes without the dimensions that are multiplied.
void types_tensordot(TypeNode& n) {
  const Shape *a = n.shape("self"), *b = n.shape("other");
  if (a == nullptr || b == nullptr) return n.set(n.dtype("self"), std::nullopt);
  Shape result;
  for (const auto& [shape, name] : {std::pair(a, "dims_self"), std::pair(b, "dims_other")}) {
    const auto rank = static_cast<int64_t>(shape->size());
    std::vector<bool> is_gone(shape->size());
    for (const Dim& dim : n.list(name)) {
      const auto at = dim.constant();
      if (!at || *at < -rank || *at >= rank) return n.set(n.dtype("self"), std::nullopt);
      is_gone[static_cast<size_t>(*at < 0 ? *at + rank : *at)] = true;
    }
    for (size_t i = 0; i < shape->size(); ++i) {
      if (!is_gone[i]) result.push_back((*shape)[i]);
    }
  }
  n.set(n.dtype("self"), result);
}

void types_inner(TypeNode& n) {
  const Shape *a = n.shape("self"), *b = n.shape("other");
  MaybeShape shape;
  if (a && b && (a->empty() || b->empty())) shape = a->empty() ? *b : *a;
  if (a && b && !a->empty() && !b->empty()) {
    shape = Shape(a->begin(), a->end() - 1);
    shape->insert(shape->end(), b->begin(), b->end() - 1);
  }
  n.set(n.joint_dtype({"self", "other"}), shape);
}

void types_bilinear(TypeNode& n) {
  const Shape *input = n.shape("input1"), *weight = n.shape("weight");
  MaybeShape shape;
  if (input && weight && !input->empty() && !weight->empty()) {
    shape = *input;
    shape->back() = weight->front();
  }
  n.set(n.dtype("input1"), shape);
}

void types_addmv(TypeNode& n) {
  const Shape* matrix = n.shape("mat");
  n.set(n.dtype("self"), matrix && matrix->size() == 2 ? MaybeShape(Shape{matrix->front()}) : std::nullopt);
}

void types_addr(TypeNode& n) {
  const Shape *a = n.shape("vec1"), *b = n.shape("vec2");
  const bool is_known = a && b && a->size() == 1 && b->size() == 1;
  // `self` is expanded first, so that one of rank 0 counts as the others do
  const DType dtype = promoted(promoted(n.dtype("self"), n.dtype("vec1")), n.dtype("vec2"));
  n.set(dtype, is_known ? MaybeShape(Shape{a->front(), b->front()}) : std::nullopt);
}

void types_cross(TypeNode& n) {
  const Type *a = n.tensor("self"), *b = n.tensor("other");
  if (a == nullptr || b == nullptr) return;
  n.set(promoted(a->dtype, b->dtype), a->shape && b->shape ? joint_shape(*a->shape, *b->shape) : std::nullopt);
}

void types_vecdot(TypeNode& n) { types_joint_without_dim(n, "x", "y"); }

void types_addbmm(TypeNode& n) {
  const Shape *a = n.shape("batch1"), *b = n.shape("batch2");
  const bool fits = a && b && a->size() == 3 && b->size() == 3;
  n.set(n.dtype("self"), fits ? MaybeShape(Shape{(*a)[1], (*b)[2]}) : std::nullopt);
}

void types_kron(TypeNode& n) {
  const Type *a = n.tensor("self"), *b = n.tensor("other");
  if (a == nullptr || b == nullptr) return;
  MaybeShape shape;
  if (a->shape && b->shape) {
    const Shape &longer = a->shape->size() < b->shape->size() ? *b->shape : *a->shape,
                &shorter = a->shape->size() < b->shape->size() ? *a->shape : *b->shape;
    shape = longer;
    const size_t more = longer.size() - shorter.size();
    for (size_t i = 0; i < shorter.size(); ++i) (*shape)[more + i] = (*shape)[more + i] * shorter[i];
  }
  n.set(promoted(a->dtype, b->dtype), shape);  // brought to one rank first
}

void types_vander(TypeNode& n) {
  MaybeShape shape;
  if (const Shape* x = n.shape("x"); x != nullptr && !x->empty()) {
    shape = *x;
    const auto columns = n.size("N");
    shape->push_back(columns ? *columns : x->back());
  }
  n.set(summed_dtype(n.dtype("x")), shape);
}

}  // namespace tonnx
