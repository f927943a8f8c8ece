// qdq.cpp - an operator between DequantizeLinear and QuantizeLinear: one on integers, as ONNX Runtime computes it.
#include <algorithm>
#include <cmath>

#include "ops/frame/opset_step.h"
#include "ops/frame/quantized.h"
#include "ops/quantize/quantize.h"

namespace tonnx {
namespace {

bool is_node(const Node* node, std::string_view op) {
  return node != nullptr && node->domain.empty() && node->op.view() == op;
}

bool is_byte(DType dtype) { return is_integer(dtype) && info(dtype).bits == 8; }

bool is_one_number(const Value* value) { return value != nullptr && value->constant && value->constant->count() == 1; }

class QdqRule {
 public:
  explicit QdqRule(OnnxEdit& edit) : edit_(edit) {}

  bool run() {
    Value* x = edit_.node().input(0);
    y_ = {.x = edit_.node().output(0), .scale = edit_.node().input(1), .zero_point = edit_.node().input(2)};
    if (x == nullptr || x->uses.size() != 1 || !is_one_number(y_.scale) || !is_one_number(y_.zero_point)) return false;
    if (y_.scale->constant->dtype != DType::Float32 || !is_byte(y_.zero_point->constant->dtype)) return false;
    node_ = x->producer;
    // what a Relu cuts off, the range of the result cuts off too
    if (is_node(node_, "Relu") && node_->input(0) != nullptr && node_->input(0)->uses.size() == 1 &&
        element_as_int(*y_.zero_point->constant, 0) == range_of(result_type()).low) {
      node_ = node_->input(0)->producer;
    }
    if (node_ == nullptr || !node_->domain.empty() || node_->graph != edit_.node().graph) return false;
    const std::string_view op = node_->op.view();
    if (op == "Conv") return conv();
    if (op == "MatMul") return mat_mul();
    if (op == "Gemm") return gemm();
    if (op == "Add") return binary("com.microsoft.QLinearAdd");
    if (op == "Mul") return binary("com.microsoft.QLinearMul");
    if (op == "Softmax") return unary("com.microsoft.QLinearSoftmax", {"axis"}, {{"opset", int64_t{13}}});
    if (op == "GlobalAveragePool") return unary("com.microsoft.QLinearGlobalAveragePool", {});
    if (op == "AveragePool") return average_pool();
    return moves(op) && same_numbers();
  }

 private:
  /// Operators that only choose among numbers, or move them.
  static bool moves(std::string_view op) {
    constexpr std::string_view kMoves[] = {"MaxPool",   "Reshape", "Transpose", "Squeeze",
                                           "Unsqueeze", "Flatten", "Slice"};
    return std::find(std::begin(kMoves), std::end(kMoves), op) != std::end(kMoves);
  }

  /// The numbers are the same before and behind: the operator works on them as they are.
  bool same_numbers() {
    const Quantized x = dequantized_from(node_->input(0));
    if (!fits(x) || node_->outputs().size() != 1) return false;
    const auto zero = x.zero_point ? element_as_int(*x.zero_point->constant, 0) : 0;
    const bool is_same = element_as_double(*x.scale->constant, 0) == element_as_double(*y_.scale->constant, 0) &&
                         zero == element_as_int(*y_.zero_point->constant, 0);
    if (!is_same) return false;
    std::vector<Value*> inputs = node_->inputs();
    inputs[0] = x.x;
    return done(node_->op.view(), std::move(inputs), node_->attributes);
  }

  DType result_type() const { return y_.zero_point->constant->dtype; }
  /// An input of bytes with one scale, and of the type of the result.
  bool fits(const Quantized& q) const { return q && q.dtype() == result_type() && q.is_per_tensor(); }

  /// A weight of bytes; its scales, where there are more than one, go along that axis.
  bool fits_weight(const Quantized& q, int64_t axis) const {
    if (!q || !q.x->constant || !is_byte(q.dtype())) return false;
    if (result_type() == DType::Int8 && q.dtype() != DType::Int8) return false;
    const auto rank = static_cast<int64_t>(q.x->constant->dims.size());
    return q.is_per_tensor() || q.axis == axis || q.axis + rank == axis;
  }

  /// A bias of 32 bits in the scale of the sums that it is added to.
  bool fits_bias(const Quantized& bias, const Quantized& x, const Quantized& w) const {
    if (!bias || !bias.x->constant || bias.dtype() != DType::Int32) return false;
    if (bias.zero_point != nullptr) {
      const auto zeros = floats_of(*bias.zero_point->constant);
      if (!zeros || std::any_of(zeros->begin(), zeros->end(), [](double zero) { return zero != 0; })) return false;
    }
    const auto own = floats_of(*bias.scale->constant, 1 << 20), left = floats_of(*x.scale->constant),
               right = floats_of(*w.scale->constant, 1 << 20);
    if (!own || !left || !right || (own->size() != right->size() && own->size() != 1)) return false;
    for (size_t i = 0; i < right->size(); ++i) {
      const double want = (*left)[0] * (*right)[i], found = own->size() == 1 ? (*own)[0] : (*own)[i];
      if (std::abs(found - want) > 1e-4 * std::abs(want)) return false;
    }
    return true;
  }

  Value* zero_point_of(const Quantized& q) {
    if (q.zero_point != nullptr) return q.zero_point;
    const std::vector<int64_t>& dims = q.scale->constant->dims;
    const std::vector<double> zeros(static_cast<size_t>(count_of(dims)), 0.0);
    return edit_.constant(make_floats(q.dtype(), dims, zeros), "zero_point");
  }

  std::vector<Attribute> copied(std::initializer_list<std::string_view> names) const {
    std::vector<Attribute> result;
    for (const std::string_view name : names) {
      if (const Attribute* found = node_->find_attribute(name)) result.push_back(*found);
    }
    return result;
  }

  bool conv() {
    const Quantized x = dequantized_from(node_->input(0)), w = dequantized_from(node_->input(1));
    if (!fits(x) || !fits_weight(w, 0)) return false;
    std::vector<Value*> inputs{x.x, x.scale, zero_point_of(x), w.x, w.scale, zero_point_of(w), y_.scale, y_.zero_point};
    if (node_->input(2) != nullptr) {
      const Quantized bias = dequantized_from(node_->input(2));
      if (!fits_bias(bias, x, w)) return false;
      inputs.push_back(bias.x);
    }
    return done("QLinearConv", std::move(inputs),
                copied({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  }

  bool mat_mul() {
    const Quantized a = dequantized_from(node_->input(0)), b = dequantized_from(node_->input(1));
    const bool is_weight = b && b.x->constant && fits_weight(b, static_cast<int64_t>(b.x->constant->dims.size()) - 1);
    if (!fits(a) || (!is_weight && !fits(b))) return false;
    return done("QLinearMatMul",
                {a.x, a.scale, zero_point_of(a), b.x, b.scale, zero_point_of(b), y_.scale, y_.zero_point});
  }

  bool gemm() {
    const auto flag = [&](const char* name, double otherwise) {
      const Attribute* found = node_->find_attribute(name);
      if (found == nullptr) return otherwise;
      if (const auto* i = found->value.get<int64_t>()) return static_cast<double>(*i);
      const auto* f = found->value.get<double>();
      return f ? *f : otherwise;
    };
    const Quantized a = dequantized_from(node_->input(0)), b = dequantized_from(node_->input(1));
    if (!fits(a) || !fits_weight(b, flag("transB", 0) != 0 ? 0 : 1) || flag("alpha", 1) != 1 || flag("beta", 1) != 1) {
      return false;
    }
    Value* c = nullptr;
    if (node_->input(2) != nullptr) {
      const Quantized bias = dequantized_from(node_->input(2));
      if (!fits_bias(bias, a, b)) return false;
      c = bias.x;
    }
    return done("com.microsoft.QGemm",
                {a.x, a.scale, zero_point_of(a), b.x, b.scale, zero_point_of(b), c, y_.scale, y_.zero_point},
                copied({"transA", "transB"}));
  }

  bool binary(std::string_view op) {
    const Quantized a = dequantized_from(node_->input(0)), b = dequantized_from(node_->input(1));
    if (!fits(a) || !fits(b)) return false;
    return done(op, {a.x, a.scale, a.zero_point, b.x, b.scale, b.zero_point, y_.scale, y_.zero_point});
  }

  bool unary(std::string_view op, std::initializer_list<std::string_view> attributes,
             std::vector<Attribute> more = {}) {
    const Quantized x = dequantized_from(node_->input(0));
    if (!fits(x)) return false;
    std::vector<Attribute> all = copied(attributes);
    all.insert(all.end(), more.begin(), more.end());
    return done(op, {x.x, x.scale, zero_point_of(x), y_.scale, y_.zero_point}, std::move(all));
  }

  bool average_pool() {
    const Attribute* dilations = node_->find_attribute("dilations");
    const auto* numbers = dilations ? dilations->value.get<std::vector<int64_t>>() : nullptr;
    if (numbers && std::any_of(numbers->begin(), numbers->end(), [](int64_t d) { return d != 1; })) return false;
    return unary("com.microsoft.QLinearAveragePool",
                 {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"});
  }

  bool done(std::string_view op, std::vector<Value*> inputs, std::vector<Attribute> attributes = {}) {
    return edit_.replace_with({edit_.before(op, std::move(inputs), std::move(attributes))});
  }

  OnnxEdit& edit_;
  Node* node_ = nullptr;
  Quantized y_;
};

}  // namespace

bool expand_quantize(const NodeView&, OnnxEdit& edit) { return QdqRule(edit).run(); }

}  // namespace tonnx
