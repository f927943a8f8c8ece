// types_layer.cpp - types of what layers give: products, convolutions, pools, resizing, recurrent layers.
#include <algorithm>
#include <map>

#include "passes/aten/types.h"

namespace tonnx {
namespace {

using MaybeShape = std::optional<Shape>;

void rule_input(TypeNode& n) {
  const Type* input = n.tensor("input");
  if (input == nullptr) input = n.first();
  if (input != nullptr) n.set(input->dtype, input->shape);
}

MaybeShape product(Shape a, Shape b) {
  if (a.empty() || b.empty()) return std::nullopt;
  const bool is_row = a.size() == 1, is_column = b.size() == 1;
  if (is_row) a.insert(a.begin(), Dim(1));
  if (is_column) b.push_back(Dim(1));
  auto result = broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!result) return std::nullopt;
  if (!is_row) result->push_back(a[a.size() - 2]);
  if (!is_column) result->push_back(b.back());
  return result;
}

void rule_matmul(TypeNode& n) {
  const bool adds = n.op() == "addmm" || n.op() == "baddbmm";
  const char* left = n.op() == "addmm" ? "mat1" : n.op() == "baddbmm" ? "batch1" : "self";
  const char* right = n.op() == "matmul" ? "other" : n.op() == "baddbmm" ? "batch2" : "mat2";
  const Shape *a = n.shape(left), *b = n.shape(right);
  n.set(n.dtype(adds ? "self" : left), a && b ? product(*a, *b) : std::nullopt);
}

void rule_linear(TypeNode& n) {
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
void rule_einsum(TypeNode& n) {
  const auto all = n.tensors("tensors");
  const std::string equation = n.args().string("equation");
  if (all.empty() || all[0] == nullptr) return;
  const DType dtype = all[0]->dtype;
  std::map<char, Dim> sizes;
  Shape dots;
  size_t at = 0;
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos) return n.set(dtype, std::nullopt);
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
        dots = broadcast(dots, own).value_or(own);
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

/// One number for each dimension, or one for all.
Dim item(const Shape& list, size_t i, const Dim& otherwise) {
  return list.empty() ? otherwise : list[list.size() == 1 ? 0 : std::min(i, list.size() - 1)];
}

Shape list_of(const TypeNode& n, std::string_view argument) {
  return n.args().signature().find_input(argument) >= 0 ? n.sizes(argument).value_or(Shape()) : Shape();
}

void rule_conv(TypeNode& n) {
  const Type* input = n.tensor("input");
  const Shape* weight = n.shape("weight");
  if (input == nullptr) return;
  if (!input->shape || weight == nullptr || weight->size() < 3) return n.set(input->dtype, std::nullopt);
  const bool turns = n.op().starts_with("conv_transpose");
  const size_t spatial = weight->size() - 2, first = input->shape->size() - spatial;
  if (input->shape->size() < spatial + 1) return n.set(input->dtype, std::nullopt);
  Shape shape = *input->shape;
  const Shape stride = list_of(n, "stride"), padding = list_of(n, "padding"), dilation = list_of(n, "dilation"),
              extra = turns ? list_of(n, "output_padding") : Shape();
  const std::string mode = turns ? "" : n.args().string("padding");
  shape[first - 1] = turns ? (*weight)[1] * Dim(n.args().find_int("groups").value_or(1)) : (*weight)[0];
  for (size_t i = 0; i < spatial; ++i) {
    Dim& size = shape[first + i];
    const Dim reach = (item(dilation, i, 1) * ((*weight)[i + 2] - Dim(1)));
    const Dim s = item(stride, i, 1), p = item(padding, i, 0);
    if (turns) {
      size = (size - Dim(1)) * s - p * Dim(2) + reach + item(extra, i, 0) + Dim(1);
    } else if (mode != "same") {
      size = floor_div(size + (mode == "valid" ? Dim(0) : p * Dim(2)) - reach - Dim(1), s) + Dim(1);
    }
  }
  n.set(input->dtype, shape);
}

void rule_pool(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const Shape kernel = list_of(n, "kernel_size"), padding = list_of(n, "padding"), dilation = list_of(n, "dilation");
  Shape stride = list_of(n, "stride");
  if (stride.empty()) stride = kernel;
  const size_t at_digit = n.op().find_first_of("123");
  const size_t spatial = at_digit == std::string_view::npos ? 2 : static_cast<size_t>(n.op()[at_digit] - '0');
  MaybeShape shape = self->shape;
  if (shape && shape->size() > spatial && !kernel.empty()) {
    const bool ceils = n.args().flag("ceil_mode");
    for (size_t i = 0; i < spatial; ++i) {
      Dim& size = (*shape)[shape->size() - spatial + i];
      const Dim s = item(stride, i, 1), p = item(padding, i, 0);
      const Dim span = size + p * Dim(2) - item(dilation, i, 1) * (item(kernel, i, 1) - Dim(1)) - Dim(1);
      Dim count = (ceils ? ceil_div(span, s) : floor_div(span, s)) + Dim(1);
      // the last window must begin inside the input or its left padding
      if (ceils && count.is_constant() && size.is_constant() && s.is_constant() && p.is_constant() &&
          *((count - Dim(1)) * s).constant() >= *(size + p).constant())
        count = count - Dim(1);
      size = count;
    }
  } else {
    shape = std::nullopt;
  }
  n.set(0, self->dtype, shape);
  n.set(1, DType::Int64, shape);
}

void rule_adaptive_pool(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  MaybeShape shape = self->shape;
  const auto sizes = n.sizes("output_size");
  if (shape && sizes && sizes->size() <= shape->size()) {
    for (size_t i = 0; i < sizes->size(); ++i) (*shape)[shape->size() - sizes->size() + i] = (*sizes)[i];
  } else {
    shape = std::nullopt;
  }
  n.set(0, self->dtype, shape);
  n.set(1, DType::Int64, shape);
}

void rule_upsample(TypeNode& n) {
  const Type* input = n.first();
  if (input == nullptr) return;
  MaybeShape shape = input->shape;
  const auto sizes = n.args().signature().find_input("output_size") >= 0 && n.args().has("output_size")
                         ? n.sizes("output_size")
                         : std::nullopt;
  if (shape && sizes && sizes->size() <= shape->size()) {
    for (size_t i = 0; i < sizes->size(); ++i) (*shape)[shape->size() - sizes->size() + i] = (*sizes)[i];
  } else if (shape) {
    const Attribute* given = n.node().find_attribute("scale_factors");
    const auto* scales = given ? given->value.get<std::vector<double>>() : nullptr;
    for (size_t i = 2; i < shape->size(); ++i) {
      constexpr double kMost = 1e6;  // beyond it no size is one
      const double given_scale = scales && i - 2 < scales->size() ? (*scales)[i - 2] : 0;
      const double scale = given_scale <= kMost ? given_scale : 0;
      Dim& size = (*shape)[i];
      if (scale > 0 && size.is_constant()) {
        size = static_cast<int64_t>(static_cast<double>(*size.constant()) * scale);
      } else if (scale > 0 && scale == static_cast<double>(static_cast<int64_t>(scale))) {
        size = size * Dim(static_cast<int64_t>(scale));
      } else {
        size = n.fresh();
      }
    }
  }
  n.set(input->dtype, shape);
}

void rule_grid_sampler(TypeNode& n) {
  const Shape *input = n.shape("input"), *grid = n.shape("grid");
  MaybeShape shape;
  if (input && grid && input->size() == grid->size() && input->size() > 2) {
    shape = Shape{(*input)[0], (*input)[1]};
    shape->insert(shape->end(), grid->begin() + 1, grid->end() - 1);
  }
  n.set(n.dtype("input"), shape);
}

void rule_affine_grid(TypeNode& n) {
  const auto size = n.sizes("size");
  MaybeShape shape;
  if (size && size->size() > 2) {
    shape = Shape{(*size)[0]};
    shape->insert(shape->end(), size->begin() + 2, size->end());
    shape->push_back(Dim(static_cast<int64_t>(size->size()) - 2));
  }
  n.set(n.dtype("theta"), shape);
}

void rule_attention(TypeNode& n) {
  const Type* query = n.tensor("query");
  const Shape* value = n.shape("value");
  if (query == nullptr) return;
  MaybeShape shape = query->shape;
  if (shape && value && !shape->empty() && !value->empty()) shape->back() = value->back();
  n.set(query->dtype, shape);
}

/// lstm, gru, rnn: the outputs of all steps, then the last states, which are of the shape of the first ones.
void rule_recurrent(TypeNode& n) {
  const Type* input = n.tensor("input");
  if (input == nullptr) return;
  std::vector<const Type*> states = n.op() == "lstm" ? n.tensors("hx") : std::vector{n.tensor("hx")};
  const bool both = n.args().flag("bidirectional");
  const Type* state = states.empty() ? nullptr : states[0];
  MaybeShape shape = input->shape;
  if (shape && state && state->shape && !shape->empty() && !state->shape->empty()) {
    shape->back() = state->shape->back() * Dim(both ? 2 : 1);
  } else {
    shape = std::nullopt;
  }
  n.set(0, input->dtype, shape);
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i] != nullptr) n.set(i + 1, states[i]->dtype, states[i]->shape);
  }
}

void rule_loss(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const Shape* target = n.shape("target");
  if (n.args().find_int("reduction").value_or(1) != 0) return n.set(self->dtype, Shape());
  n.set(self->dtype, target ? MaybeShape(*target) : std::nullopt);
}

void rule_fft(TypeNode& n) {
  const Type* self = n.tensor("self");
  if (self == nullptr) return;
  const bool is_double = self->dtype == DType::Float64 || self->dtype == DType::Complex128;
  const bool to_real = n.op() == "fft_irfft" || n.op() == "fft_hfft";
  MaybeShape shape = self->shape;
  const auto dim = shape ? n.dim("dim", shape->size()) : std::nullopt;
  if (dim) {
    Dim& size = (*shape)[*dim];
    const auto length = n.args().has("n") ? n.size("n") : to_real ? std::optional((size - Dim(1)) * Dim(2)) : size;
    size = !length ? n.fresh() : n.op() == "fft_rfft" ? floor_div(*length, Dim(2)) + Dim(1) : *length;
  }
  const DType complex = is_double ? DType::Complex128 : DType::Complex64;
  if (shape && !dim) {  // only the run tells which
    for (Dim& size : *shape) size = n.fresh();
  }
  n.set(to_real ? (is_double ? DType::Float64 : DType::Float32) : complex, shape);
}

void rule_det(TypeNode& n) {
  const Type* a = n.first();
  if (a == nullptr) return;
  MaybeShape shape = a->shape;
  if (shape && shape->size() >= 2) shape->resize(shape->size() - 2);
  n.set(a->dtype, shape);
}

void rule_solve(TypeNode& n) {
  const Type* b = n.tensor("B");
  if (b != nullptr) n.set(b->dtype, b->shape);
}

void rule_nms(TypeNode& n) { n.set(DType::Int64, Shape{n.fresh()}); }

constexpr TypeRow kRows[] = {
    {"matmul", rule_matmul},
    {"mm", rule_matmul},
    {"bmm", rule_matmul},
    {"addmm", rule_matmul},
    {"baddbmm", rule_matmul},
    {"linear", rule_linear},
    {"einsum", rule_einsum},
    {"conv1d", rule_conv},
    {"conv2d", rule_conv},
    {"conv3d", rule_conv},
    {"conv_transpose1d", rule_conv},
    {"conv_transpose2d", rule_conv},
    {"conv_transpose3d", rule_conv},
    {"max_pool1d", rule_pool},
    {"max_pool2d", rule_pool},
    {"max_pool3d", rule_pool},
    {"max_pool1d_with_indices", rule_pool},
    {"max_pool2d_with_indices", rule_pool},
    {"max_pool3d_with_indices", rule_pool},
    {"avg_pool1d", rule_pool},
    {"avg_pool2d", rule_pool},
    {"avg_pool3d", rule_pool},
    {"adaptive_avg_pool1d", rule_adaptive_pool},
    {"adaptive_avg_pool2d", rule_adaptive_pool},
    {"adaptive_avg_pool3d", rule_adaptive_pool},
    {"adaptive_max_pool1d", rule_adaptive_pool},
    {"adaptive_max_pool2d", rule_adaptive_pool},
    {"adaptive_max_pool3d", rule_adaptive_pool},
    {"upsample_nearest1d", rule_upsample},
    {"upsample_nearest2d", rule_upsample},
    {"upsample_nearest3d", rule_upsample},
    {"upsample_linear1d", rule_upsample},
    {"upsample_bilinear2d", rule_upsample},
    {"upsample_trilinear3d", rule_upsample},
    {"upsample_bicubic2d", rule_upsample},
    {"grid_sampler", rule_grid_sampler},
    {"affine_grid_generator", rule_affine_grid},
    {"scaled_dot_product_attention", rule_attention},
    {"lstm", rule_recurrent},
    {"gru", rule_recurrent},
    {"rnn_tanh", rule_recurrent},
    {"rnn_relu", rule_recurrent},
    {"nll_loss_nd", rule_loss},
    {"cross_entropy_loss", rule_loss},
    {"fft_fft", rule_fft},
    {"fft_ifft", rule_fft},
    {"fft_rfft", rule_fft},
    {"fft_irfft", rule_fft},
    {"linalg_det", rule_det},
    {"linalg_solve_triangular", rule_solve},
    {"batch_norm", rule_input},
    {"layer_norm", rule_input},
    {"group_norm", rule_input},
    {"instance_norm", rule_input},
    {"rms_norm", rule_input},
    {"dropout", rule_input},
    {"nms", rule_nms},
};

}  // namespace

std::span<const TypeRow> layer_type_rules() { return kRows; }

}  // namespace tonnx
