// onnx_rows_test.cpp - every operator of ONNX's tables, in models whose attributes, inputs and types lie: errors are
// fine, crashes and our own are not.
#include <cstdlib>

#include "checks.h"
#include "formats/onnx/onnx.h"
#include "fuzz/onnx_routes.h"
#include "fuzz/row_cases.h"
#include "ops/one_node.h"

namespace tonnx {
namespace {

using fuzz::Draw;

/// A model of one node, behind another that keeps it from being all constants.
class OneNodeCase {
 public:
  OneNodeCase(const OnnxOpEntry& entry, uint32_t seed) : draw_(seed) {
    const ParsedSignature& signature = entry.signature;
    model_.ir_version = 10;
    const int newest = entry.op->until != 0 ? entry.op->until - 1 : kNewestOpset;
    const int oldest = std::min(entry.op->since, newest);
    const bool is_standard = signature.domain.empty();
    const int opset =
        draw_.one_in(2) ? newest : oldest + static_cast<int>(draw_.below(static_cast<uint32_t>(newest - oldest) + 1));
    model_.opsets.emplace_back("", is_standard ? opset : kNewestOpset);
    if (!is_standard) model_.opsets.emplace_back(signature.domain, opset);
    model_.graph = std::make_shared<Graph>();
    graph().name = "g";
    node_ = graph().add_node(signature.domain, signature.name);
    all_constant_ = draw_.one_in(4);
    for (const Param& param : signature.inputs) add_input(param);
    for (const Param& param : signature.attributes) add_attribute(param);
    size_t count = signature.outputs.size();
    if (draw_.one_in(8)) count = 1 + draw_.below(4);
    for (size_t i = 0; i < count; ++i) {
      Value* made =
          graph().add_output_to(node_, graph().unique_name("y"), draw_.one_in(6) ? draw_.tensor_type() : Type{});
      if (i == 0 || !draw_.one_in(4)) graph().add_output(made);
    }
  }

  std::string bytes() { return write_onnx_bytes(model_); }
  unsigned choice() { return draw_.below(1000); }

 private:
  Graph& graph() { return *model_.graph; }

  Type any_type() {
    switch (draw_.below(24)) {
      case 0: return Type{};
      case 1: return Type::tensor(draw_.dtype());
      case 2: return Type::sequence(draw_.tensor_type());
      case 3: return Type::optional(draw_.tensor_type());
      default: return draw_.tensor_type();
    }
  }

  /// Numbers that say sizes, axes and the like.
  Type number_type(const Param& param) {
    const bool is_index = param.type == "I" || param.type == "int64" || param.type == "int";
    if (!is_index && !draw_.one_in(4)) return draw_.tensor_type();
    Shape shape;
    if (!draw_.one_in(5))
      shape.emplace_back(static_cast<int64_t>(draw_.one_in(3) ? draw_.below(7) : draw_.usual_rank()));
    return Type::tensor(draw_.one_in(6) ? draw_.dtype() : DType::Int64, std::move(shape));
  }

  void add_input(const Param& param) {
    for (uint32_t count = param.variadic ? draw_.below(4) : 1; count > 0; --count) {
      if (draw_.one_in(param.optional ? 3 : 40)) {
        node_->add_input(nullptr);
      } else if (all_constant_ || draw_.one_in(3)) {
        node_->add_input(graph().add_initializer("c", draw_.constant(number_type(param))));
      } else {
        node_->add_input(graph().add_input(graph().unique_name("x"), any_type()));
      }
    }
  }

  GraphPtr body() {
    auto made = std::make_shared<Graph>();
    made->owner = node_;
    made->name = "b";
    for (uint32_t count = draw_.below(4); count > 0; --count) made->add_input(graph().unique_name("i"), any_type());
    std::vector<Value*> values = made->inputs();
    for (uint32_t count = draw_.below(3); count > 0 && !values.empty(); --count) {
      Node* inner = made->add_node("", draw_.one_in(2) ? "Relu" : "Identity");
      inner->add_input(values[draw_.below(static_cast<uint32_t>(values.size()))]);
      values.push_back(made->add_output_to(inner, graph().unique_name("o")));
    }
    for (uint32_t count = draw_.below(4); count > 0 && !values.empty(); --count)
      made->add_output(values[draw_.below(static_cast<uint32_t>(values.size()))]);
    return made;
  }

  AttrValue of_type(const std::string& type) {
    if (type == "int")
      return draw_.one_in(8) ? AttrValue(static_cast<int64_t>(draw_.dtype())) : AttrValue(draw_.integer());
    if (type == "float") return draw_.real();
    if (type == "str") return draw_.text();
    if (type == "ints") return draw_.integers(draw_.one_in(2) ? draw_.usual_rank() : draw_.below(5));
    if (type == "floats") return std::vector<double>(draw_.below(5), draw_.real());
    if (type == "strs") return std::vector<std::string>(draw_.below(4), draw_.text());
    if (type == "tensor") return draw_.constant(draw_.tensor_type());
    if (type == "graph") return body();
    if (type == "type") return any_type();
    return draw_.integer();
  }

  void add_attribute(const Param& param) {
    const bool is_required = !param.has_default && !param.optional;
    if (draw_.one_in(is_required ? 40 : 3)) return;
    constexpr const char* kTypes[] = {"int", "float", "str", "ints", "floats", "strs", "tensor"};
    node_->set_attribute(param.name, of_type(draw_.one_in(30) ? draw_.of(kTypes) : param.type));
  }

  Draw draw_;
  Model model_;
  Node* node_;
  bool all_constant_;
};

TEST(Fuzz, ModelsThatLieGiveErrorsAndNothingWorse) {
  std::vector<fuzz::Row> rows;
  for (const OnnxOpEntry* entry : all_onnx_ops()) {
    rows.push_back({std::string(entry->op->sig.name()), [entry](uint32_t seed) {
                      OneNodeCase one(*entry, seed);
                      return fuzz::convert_all_ways(one.bytes(), one.choice());
                    }});
  }
  const size_t accepted = fuzz::run_rows(rows, 20);
  const bool is_all = std::getenv("TONNX_FUZZ_ROW") == nullptr && std::getenv("TONNX_FUZZ_ROUNDS") == nullptr;
  if (is_all) EXPECT_GT(accepted, rows.size());
}

}  // namespace
}  // namespace tonnx
