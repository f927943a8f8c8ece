// aten_rows_test.cpp - every operator of aten's tables, in programs whose arguments and results lie: errors are fine,
// crashes and our own are not.
#include "checks.h"
#include "convert/pipeline.h"
#include "convert/to_program.h"
#include "formats/onnx/onnx.h"
#include "formats/pt2/check_program.h"
#include "fuzz/row_cases.h"
#include "ops/op_def.h"

namespace tonnx {
namespace {

using fuzz::Draw;

/// A program of one node, as the reader would give it.
class OneCall {
 public:
  OneCall(const ParsedSignature& signature, uint32_t seed) : draw_(seed, fuzz::Types::OfPyTorch) {
    program_.model.graph = std::make_shared<Graph>();
    node_ = graph().add_node(signature.domain, signature.name);
    node_->overload = signature.overload;
    for (const Param& param : signature.inputs) add_argument(param);
    for (const Param& param : signature.outputs) add_results(param);
    const bool is_method = !signature.inputs.empty() && signature.inputs[0].name == "self";
    if (is_method && signature.domain == "aten" && draw_.one_in(10)) node_->op = signature.name + "_";
    if (draw_.one_in(5)) add_write();
    for (Value* output : node_->outputs()) {
      if (output == nullptr) continue;
      graph().add_output(output);
      program_.output_names.push_back(output->name);
    }
  }

  Program take() { return std::move(program_); }
  Draw& draw() { return draw_; }

 private:
  Graph& graph() { return *program_.model.graph; }

  AttrValue operand(Value* value) {
    node_->add_input(value);
    return Operand{static_cast<uint32_t>(node_->inputs().size() - 1)};
  }

  Value* tensor() {
    const auto& known = graph().inputs();
    if (!known.empty() && draw_.one_in(6)) return known[draw_.below(static_cast<uint32_t>(known.size()))];
    const Type type = draw_.tensor_type();
    if (!draw_.one_in(3)) return graph().add_input(graph().unique_name("x"), type);
    const bool is_lifted = draw_.one_in(4);
    Value* made = graph().add_initializer(is_lifted ? "lifted_tensor" : "weight", draw_.constant(type));
    made->trainable = !is_lifted && draw_.one_in(2);
    return made;
  }

  Value* number(Type::Kind kind) {
    Value* made = graph().add_input(graph().unique_name("n"), Type::number(kind));
    if (kind == Type::Kind::Int) made->known_ints = {draw_.size()};
    return made;
  }

  AttrValue integer() { return draw_.one_in(8) ? operand(number(Type::Kind::Int)) : AttrValue(draw_.integer()); }

  AttrValue anything() {
    switch (draw_.below(12)) {
      case 0: return {};
      case 1: return draw_.integer();
      case 2: return draw_.real();
      case 3: return draw_.one_in(2);
      case 4: return draw_.text();
      case 5: return draw_.dtype();
      case 6: return draw_.integers(draw_.below(5));
      case 7: return std::vector<double>(draw_.below(4), draw_.real());
      case 8: return AttrList{operand(tensor()), AttrValue()};
      case 9: return operand(number(Type::Kind::Float));
      case 10: return AttrList{AttrValue(true), AttrValue(draw_.integer())};
      default: return operand(tensor());
    }
  }

  AttrValue graph_argument() {
    auto made = std::make_shared<Graph>();
    made->owner = node_;
    for (uint32_t count = draw_.below(4); count > 0; --count)
      made->add_input(made->unique_name("a"), draw_.one_in(6) ? Type::number(Type::Kind::Int) : draw_.tensor_type());
    std::vector<Value*> values = made->inputs();
    for (uint32_t count = draw_.below(3); count > 0 && !values.empty(); --count) {
      Node* inner = made->add_node("aten", draw_.one_in(4) ? "relu_" : "neg");
      inner->add_input(values[draw_.below(static_cast<uint32_t>(values.size()))]);
      inner->set_attribute("self", Operand{0});
      values.push_back(made->add_output_to(inner, made->unique_name("b"), draw_.tensor_type()));
    }
    for (uint32_t count = draw_.below(3); count > 0 && !values.empty(); --count)
      made->add_output(values[draw_.below(static_cast<uint32_t>(values.size()))]);
    return GraphPtr(std::move(made));
  }

  /// One item of the kind that the schema asks for.
  AttrValue one(const std::string& type) {
    if (type == "Tensor") return draw_.one_in(15) ? integer() : operand(tensor());
    if (type == "int" || type == "SymInt") return integer();
    if (type == "float") return draw_.one_in(6) ? AttrValue(draw_.integer()) : AttrValue(draw_.real());
    if (type == "Scalar" || type == "number") return draw_.one_in(2) ? integer() : AttrValue(draw_.real());
    if (type == "bool") return draw_.one_in(2);
    if (type == "ScalarType") return draw_.dtype();
    if (type == "Graph") return graph_argument();
    if (type == "str" || type == "Device" || type == "Layout" || type == "MemoryFormat") return draw_.text();
    return anything();
  }

  AttrValue list(const Param& param) {
    const bool is_ints = param.type == "int" || param.type == "SymInt";
    if (is_ints && draw_.one_in(12)) return draw_.integer();
    const auto usual = draw_.one_in(2) ? draw_.usual_rank() : size_t{2};
    if (is_ints && !draw_.one_in(6)) return draw_.integers(usual);
    if (param.type == "float") return std::vector<double>(draw_.one_in(5) ? draw_.below(9) : usual, draw_.real());
    AttrList items;
    for (size_t count = draw_.below(6); count > 0; --count)
      items.push_back(draw_.one_in(12) ? AttrValue() : one(param.type));
    return items;
  }

  void add_argument(const Param& param) {
    if (param.has_default && draw_.one_in(2)) return;
    if (draw_.one_in(60)) return;
    AttrValue value = draw_.one_in(25)                         ? anything()
                      : param.optional && draw_.one_in(3)      ? AttrValue()
                      : param.is_list                          ? list(param)
                                                               : one(param.type);
    node_->attributes.push_back({param.name, std::move(value), AttrType::None, {}, {}});
  }

  /// Symbols of their own agree with whatever the operator gives.
  Type result_type() {
    if (!draw_.one_in(3)) return draw_.tensor_type();
    Shape shape;
    for (size_t i = draw_.below(6); i > 0; --i) shape.push_back(Dim::symbol(fmt::format("o{}", i)));
    return Type::tensor(draw_.one_in(3) ? draw_.dtype() : draw_.usual_type().dtype, std::move(shape));
  }

  void add_results(const Param& param) {
    uint32_t count = param.is_list ? draw_.below(4) : 1;
    if (draw_.one_in(40)) count = draw_.below(3);
    for (; count > 0; --count) {
      if (draw_.one_in(40)) {
        node_->resize_outputs(node_->outputs().size() + 1);
        continue;
      }
      Type type = result_type();
      if (param.type == "int" || param.type == "SymInt") type = Type::number(Type::Kind::Int);
      if (param.type == "float" || param.type == "Scalar") type = Type::number(Type::Kind::Float);
      if (param.type == "bool") type = Type::number(Type::Kind::Bool);
      if (draw_.one_in(60)) type = Type::number(Type::Kind::Int);
      Value* made = graph().add_output_to(node_, graph().unique_name("y"), type);
      if (type.kind == Type::Kind::Int && !draw_.one_in(3)) made->known_ints = {draw_.size()};
    }
  }

  /// Something is written to the first result, which may be a view, and what it is of is read.
  void add_write() {
    Value* result = node_->output(0);
    if (result == nullptr || !result->type.is_tensor()) return;
    Node* write = graph().add_node("aten", draw_.one_in(2) ? "relu_" : "zero_");
    write->add_input(result);
    write->set_attribute("self", Operand{0});
    graph().add_output_to(write, graph().unique_name("w"), draw_.one_in(8) ? draw_.tensor_type() : result->type);
    const Value* source = node_->input(0);
    if (source == nullptr || !source->type.is_tensor()) return;
    Node* read = graph().add_node("aten", "neg");
    read->add_input(node_->input(0));
    read->set_attribute("self", Operand{0});
    graph().add_output(graph().add_output_to(read, graph().unique_name("r"), source->type));
    program_.output_names.push_back("r");
  }

  Draw draw_;
  Program program_;
  Node* node_;
};

/// Nothing where the program was refused.
template <class Body>
void tried(Body&& body) {
  try {
    body();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::Internal) throw;
  }
}

void convert_all_ways(const ParsedSignature& signature, uint32_t seed) {
  tried([&] {
    constexpr int64_t kOpsets[] = {11, 17, 20, kNewestOpset};
    OneCall call(signature, seed);
    ExportOptions options;
    options.raising.opset = call.draw().of(kOpsets);
    options.raising.training = call.draw().one_in(5);
    Program program = call.take();
    pt2::check_program(*program.model.graph);
    make_functional(program);
    check_invariants(*program.model.graph);
    write_onnx_bytes(onnx_of(program, options));
  });
  for (const bool is_script : {false, true}) {
    tried([&] {
      Program program = OneCall(signature, seed).take();
      pt2::check_program(*program.model.graph);
      make_functional(program);
      ready_for_python(program);
      check_invariants(*program.model.graph);
      if (is_script)
        write_torchscript_file(*program.model.graph, program.output_names, testing::TempDir() + "tonnx_rows.pt", {});
      else
        write_python(*program.model.graph, program.model, {});
    });
  }
}

TEST(Fuzz, ProgramsThatLieGiveErrorsAndNothingWorse) {
  std::vector<fuzz::Row> rows;
  for (const OpFamily* family : op_families()) {
    for (const AtenOp& op : family->aten) {
      const AtenOpEntry* entry = find_aten_op(op.sig.name());
      ASSERT_NE(entry, nullptr) << op.sig.name();
      if (entry->signature.domain == "tonnx") continue;  // our own, which no file has
      rows.push_back({std::string(op.sig.name()), [entry](uint32_t seed) { convert_all_ways(entry->signature, seed); }});
    }
  }
  fuzz::run_rows(rows, 10);
}

}  // namespace
}  // namespace tonnx
