// pads.cpp - aten: recognises a tensor that is joined with blocks of one number.
#include <cmath>
#include <optional>
#include <utility>

#include "base/computed.h"
#include "ops/frame/python_names.h"
#include "passes/frame/aten_match.h"
#include "passes/frame/aten_writer.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr int64_t kMostInBlock = 1 << 20;

/// The number that all elements of a constant are.
std::optional<double> number_of_all(const Tensor& tensor) {
  const DType dtype = tensor.dtype;
  if (!(is_float(dtype) || contains(kAllInts, dtype) || dtype == DType::Bool) || info(dtype).bits < 8 ||
      tensor.count() == 0 || tensor.count() > kMostInBlock || is_computed(tensor.data))
    return std::nullopt;
  const auto width = static_cast<size_t>(info(dtype).bits / 8);
  const std::string_view bytes = tensor.data.view();
  for (size_t at = width; at < bytes.size(); at += width) {
    if (bytes.compare(at, width, bytes, 0, width) != 0) return std::nullopt;
  }
  const double number = element_as_double(tensor, 0);
  const bool is_exact = is_float(dtype) || static_cast<int64_t>(number) == element_as_int(tensor, 0);
  return is_exact ? std::optional(number) : std::nullopt;
}

/// The number that all elements of a value are, whatever its sizes.
std::optional<double> number_of_block(const Value& value) {
  if (value.constant) {
    const bool is_weight = value.trainable || value.sparse || python::is_state_key(value.name);
    return is_weight ? std::nullopt : number_of_all(*value.constant);
  }
  if (is_aten(value.producer, "zeros")) return 0;
  if (is_aten(value.producer, "ones")) return 1;
  if (is_aten(value.producer, "full")) return number_of(*value.producer, "fill_value");
  if (!is_aten(value.producer, "expand")) return std::nullopt;
  const Value* one = operand(*value.producer, "self");
  return one && one->constant ? number_of_block(*one) : std::nullopt;
}

/// What is joined in front of one tensor and behind it, along a dimension.
struct Edges {
  Value* inner = nullptr;
  int64_t before = 0, after = 0;
  std::optional<double> number;

  /// False where a second tensor, or another number, is among them.
  bool add(Value* part, size_t dim) {
    const auto block = number_of_block(*part);
    const auto size =
        part->type.shape && dim < part->type.shape->size() ? (*part->type.shape)[dim].constant() : std::nullopt;
    if (!block || !size) return std::exchange(inner, part) == nullptr;
    if (number && (*number != *block || std::signbit(*number) != std::signbit(*block))) return false;
    number = block;
    (inner ? after : before) += *size;
    return true;
  }
};

AttrValue number_as(double number, DType dtype) {
  if (dtype == DType::Bool) return AttrValue(number != 0);
  return is_float(dtype) ? AttrValue(number) : AttrValue(static_cast<int64_t>(number));
}

/// cat([x, zeros(2, 3)], 1): pad(x, (0, 3))
void pad(Graph& graph, Node& node) {
  const Attribute* tensors = is_aten(node, "cat") ? node.find_attribute("tensors") : nullptr;
  const auto* list = tensors ? tensors->value.get<AttrList>() : nullptr;
  const Type& type = node.output(0)->type;
  if (list == nullptr || list->size() < 2 || list->size() != node.inputs().size() || !type.shape) return;
  const int64_t* given = find_int(node, "dim");
  if (node.find_attribute("dim") && !given) return;
  const auto rank = static_cast<int64_t>(type.shape->size());
  const int64_t dim = !given ? 0 : *given < 0 ? *given + rank : *given;
  Edges edges;
  for (Value* part : node.inputs()) {
    if (part == nullptr || part->type.dtype != type.dtype || part->type.rank() != type.shape->size() ||
        !edges.add(part, static_cast<size_t>(dim)))
      return;
  }
  if (edges.inner == nullptr || !edges.number || !std::isfinite(*edges.number) ||
      (*edges.number == 0 && std::signbit(*edges.number)))
    return;
  IntArgs pads(static_cast<size_t>(2 * (rank - 1 - dim)), 0);
  pads.push_back(edges.before);
  pads.push_back(edges.after);
  AtenCall call("constant_pad_nd", "", &node);
  call.with("self", edges.inner).with("pad", pads);
  if (*edges.number != 0) call.with("value", number_as(*edges.number, type.dtype));
  AtenWriter writer(graph);
  writer.write_before(&node);
  Value* result = node.output(0);
  const Value* made = writer.add(call, type, result->name);
  graph.move_output(result, made->producer, 0);  // which keeps its name
  node.resize_outputs(0);
  graph.erase(&node);
}

}  // namespace

void recognise_pads(Graph& graph) {
  for (Node *node = graph.first(), *next = nullptr; node != nullptr; node = next) {
    next = node->next;
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_pads(*subgraph);
    pad(graph, *node);
  }
}

}  // namespace tonnx
