// complex_parts.cpp - an operator is raised once for each choice of parts, as if it had been called with these.
#include "ops/frame/complex_parts.h"

#include <algorithm>

#include "ops/frame/conversion.h"

namespace tonnx {
namespace {

/// What says which elements are meant, and is no number that is moved.
bool is_about_places(std::string_view argument) {
  constexpr std::string_view kPlaces[] = {"condition", "index", "indices", "mask", "repeats"};
  return std::find(std::begin(kPlaces), std::end(kPlaces), argument) != std::end(kPlaces);
}

/// Numbers that become elements of the result.
constexpr std::string_view kElements[] = {"fill_value", "other", "self", "value"};

class Parts {
 public:
  Parts(const AtenNode& n, OnnxBuilder& onnx)
      : node_(n.node()), entry_(get_aten_op(n.node())), onnx_(onnx), places_(n.node().inputs().size(), false) {
    for (const Param& param : entry_.signature.inputs) n.ignore({param.name});
    for (const Attribute& argument : node_.attributes) {
      if (!is_about_places(argument.name)) continue;
      if (const auto* operand = argument.value.get<Operand>()) places_.at(operand->index) = true;
      if (const auto* list = argument.value.get<AttrList>()) {
        for (const AttrValue& item : *list) {
          if (const auto* operand = item.get<Operand>()) places_.at(operand->index) = true;
        }
      }
    }
  }

  size_t count() const { return node_.inputs().size(); }
  bool is_complex_input(size_t i) const {
    const Value* input = node_.input(i);
    return input != nullptr && input->type.is_tensor() && is_complex(input->type.dtype);
  }

  /// The first result of the operator on a part of each complex operand.
  Value* product(const std::vector<int64_t>& parts) {
    return raised([&](size_t i) { return is_complex_input(i) ? part_of(onnx_, value(i), parts[i]) : value(i); },
                  std::nullopt);
  }
  /// The same, where an operand is complex, on whether it is not zero.
  Value* of_flags() {
    const auto choose = [&](size_t i) {
      if (!is_complex_input(i)) return value(i);
      Value* zero = onnx_.number(part_dtype(node_.input(i)->type.dtype), 0);
      const auto is_set = [&](int64_t which) {
        return onnx_("Not", {onnx_("Equal", {part_of(onnx_, value(i), which), zero})});
      };
      return onnx_("Or", {is_set(0), is_set(1)});
    };
    return raised(choose, std::nullopt, DType::Bool);
  }
  /// The same, on this part of all operands; a real one has no imaginary part.
  Value* part(int64_t which) {
    return raised(
        [&](size_t i) {
          const Value* input = node_.input(i);
          if (is_complex_input(i)) return part_of(onnx_, value(i), which);
          if (which == 0 || places_[i] || !input->type.is_tensor()) return value(i);
          require(input->type.shape.has_value(), "the shape of '{}' is not known", input->name);
          return onnx_.expand(onnx_.number(part_dtype(input->type.dtype), 0), *input->type.shape);
        },
        which);
  }
  /// Whether a part can differ from zero: complex operands or numbers are given.
  bool has_imaginary() const {
    for (size_t i = 0; i < count(); ++i) {
      if (is_complex_input(i)) return true;
    }
    return std::any_of(node_.attributes.begin(), node_.attributes.end(),
                       [](const Attribute& argument) { return argument.value.get<std::vector<double>>() != nullptr; });
  }

 private:
  Value* value(size_t i) { return onnx_.raising().value_of(node_.input(i)); }

  /// A node like this one whose operands are the given values, raised. What it gives is real.
  template <class Choose>
  Value* raised(const Choose& choose, std::optional<int64_t> numbers, std::optional<DType> operands = {}) {
    Raising& raising = onnx_.raising();
    Graph& graph = raising.stand_ins();
    Node* node = graph.add_node(node_.domain, node_.op);
    node->overload = node_.overload;
    node->name = node_.name;
    node->metadata = node_.metadata;
    node->attributes = node_.attributes;
    for (Attribute& argument : node->attributes) argument.value = real_argument(argument, numbers);
    std::erase_if(node->attributes, [&](const Attribute& argument) { return argument.name == "bias"; });
    for (size_t i = 0; i < count(); ++i) {
      const Value* input = node_.input(i);
      if (input == nullptr) continue;
      Value* operand = graph.new_value(graph.unique_name(input->name), real_type(input->type));
      if (operands && is_complex_input(i)) operand->type.dtype = *operands;
      operand->known_ints = input->known_ints;
      if (input->type.is_tensor()) {
        raising.define(operand, choose(i));
      } else if (!input->known_ints) {
        raising.define_list(operand, value(i));
      }
      node->set_input(i, operand);
    }
    for (const Value* output : node_.outputs()) {
      graph.add_output_to(node, graph.unique_name(output ? output->name : "unused"),
                          output ? real_type(output->type) : Type{});
    }
    const AtenNode view(*node, entry_, raising);
    const Values results = entry_.op->raise(view, onnx_);
    view.require_all_used();
    return results[0];
  }

  /// Complex types as real ones, and of numbers that become elements the part; a real one has no imaginary part.
  AttrValue real_argument(const Attribute& argument, std::optional<int64_t> numbers) const {
    if (const auto* dtype = argument.value.get<DType>())
      return is_complex(*dtype) ? AttrValue(part_dtype(*dtype)) : argument.value;
    const bool is_element = std::find(std::begin(kElements), std::end(kElements), argument.name) != std::end(kElements);
    if (!numbers || !is_element || argument.value.is_none() || argument.value.get<Operand>()) return argument.value;
    if (const auto* pair = argument.value.get<std::vector<double>>())
      return AttrValue(pair->at(static_cast<size_t>(*numbers)));
    return *numbers == 0 ? argument.value : AttrValue(0.0);
  }

  static Type real_type(const Type& type) {
    Type result = type;
    if (type.is_tensor() && is_complex(type.dtype)) result.dtype = part_dtype(type.dtype);
    return result;
  }

  const Node& node_;
  const AtenOpEntry& entry_;
  OnnxBuilder& onnx_;
  std::vector<bool> places_;  // by input
};

/// Over all but the last dimension of a weight, which is that of pairs: the channels are the second dimension of what a
/// convolution gives, and the last of what a product of matrices does.
Value* spread_bias(const AtenNode& n, OnnxBuilder& onnx, Value* bias, const Value* y) {
  if (n.node().op == "linear") return bias;
  const bool is_batched = n.rank("input") == n.rank("weight");
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis + (is_batched ? 2 : 1) < onnx.rank(y); ++axis) axes.push_back(axis);
  return onnx.unsqueeze(bias, std::move(axes));
}

}  // namespace

Value* part_of(OnnxBuilder& onnx, Value* pairs, int64_t which) {
  return onnx.gather(pairs, onnx.integer(DType::Int64, which), onnx.rank(pairs) - 1);
}

Value* pair_of_parts(OnnxBuilder& onnx, Value* real, Value* imaginary) {
  const int64_t last = onnx.rank(real);
  return onnx.concat({onnx.unsqueeze(real, {last}), onnx.unsqueeze(imaginary, {last})}, last);
}

DType part_dtype(DType dtype) {
  return dtype == DType::Complex128 || dtype == DType::Float64 ? DType::Float64 : DType::Float32;
}

Values raise_each_part(const AtenNode& n, OnnxBuilder& onnx) {
  Parts parts(n, onnx);
  if (!parts.has_imaginary()) return raise_real_part(n, onnx);
  Value *real = parts.part(0), *imaginary = parts.part(1);
  const DType dtype = part_dtype(n.output_dtype());
  return pair_of_parts(onnx, onnx.cast(real, dtype), onnx.cast(imaginary, dtype));
}

Values raise_real_part(const AtenNode& n, OnnxBuilder& onnx) {
  Value* real = Parts(n, onnx).part(0);
  return pair_of_parts(onnx, real, onnx.expand(onnx.number(OnnxBuilder::dtype(real), 0), n.output_shape()));
}

Values raise_with_flags(const AtenNode& n, OnnxBuilder& onnx) { return Parts(n, onnx).of_flags(); }

Values raise_any_part(const AtenNode& n, OnnxBuilder& onnx) {
  Parts parts(n, onnx);
  return onnx("Or", {parts.part(0), parts.part(1)});
}

Values raise_both_parts(const AtenNode& n, OnnxBuilder& onnx) {
  Parts parts(n, onnx);
  return onnx("And", {parts.part(0), parts.part(1)});
}

Values raise_sum_of_parts(const AtenNode& n, OnnxBuilder& onnx) {
  if (n.output_count() > 1) n.cannot("complex numbers");
  Parts parts(n, onnx);
  return onnx("Add", {parts.part(0), parts.part(1)});
}

Values raise_length_of_parts(const AtenNode& n, OnnxBuilder& onnx) {
  if (n.output_count() > 1) n.cannot("complex numbers");
  Parts parts(n, onnx);
  const auto square = [&](Value* x) { return onnx("Mul", {x, x}); };
  return onnx("Sqrt", {onnx("Add", {square(parts.part(0)), square(parts.part(1))})});
}

Values raise_no_complex(const AtenNode& n, OnnxBuilder&) { n.cannot("complex numbers"); }

Values raise_products_of_parts(const AtenNode& n, OnnxBuilder& onnx) {
  constexpr size_t kMostFactors = 4;
  Parts parts(n, onnx);
  const Attribute* given = n.node().find_attribute("bias");
  const auto* bias = given ? given->value.get<Operand>() : nullptr;
  std::vector<size_t> factors;
  for (size_t i = 0; i < parts.count(); ++i) {
    if (parts.is_complex_input(i) && !(bias && bias->index == i)) factors.push_back(i);
  }
  if (factors.size() > kMostFactors) n.cannot("a product of {} complex tensors", factors.size());
  Value* sums[2] = {nullptr, nullptr};
  std::vector<int64_t> which(parts.count(), 0);
  for (size_t choice = 0; choice < size_t{1} << factors.size(); ++choice) {
    size_t imaginary = 0;
    for (size_t k = 0; k < factors.size(); ++k) {
      which[factors[k]] = static_cast<int64_t>(choice >> k & 1);
      imaginary += choice >> k & 1;
    }
    // i, -1, -i, 1 ...
    Value* product = parts.product(which);
    Value*& sum = sums[imaginary % 2];
    const bool is_minus = imaginary % 4 >= 2;
    if (sum == nullptr) {
      sum = is_minus ? onnx("Neg", {product}) : product;
    } else {
      sum = onnx(is_minus ? "Sub" : "Add", {sum, product});
    }
  }
  if (sums[1] == nullptr) n.cannot("real factors");
  Value* y = pair_of_parts(onnx, sums[0], sums[1]);
  if (bias == nullptr) return y;
  return onnx("Add", {y, spread_bias(n, onnx, n.input("bias"), y)});
}

}  // namespace tonnx
