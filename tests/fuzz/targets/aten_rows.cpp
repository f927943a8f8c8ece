// aten_rows.cpp - every operator of aten's tables, in programs whose arguments and results lie.
#include "convert/compilation.h"
#include "formats/onnx/onnx.h"
#include "formats/pt2/check_program.h"
#include "fuzz/targets/draw.h"
#include "fuzz/targets/rows.h"
#include "fuzz/targets/targets.h"
#include "ops/frame/op_def.h"

namespace tonnx::fuzz {
namespace {

/// A program of one node, as the reader would give it.
class OneCall {
 public:
  OneCall(const ParsedSignature& signature, uint32_t seed) : draw_(seed, Types::OfPyTorch) {
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
    AttrValue value = draw_.one_in(25)                    ? anything()
                      : param.optional && draw_.one_in(3) ? AttrValue()
                      : param.is_list                     ? list(param)
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

/// A program of one operator that takes graphs, which take and give what the node does, but for lies.
class OneGraphCall {
 public:
  OneGraphCall(std::string_view op, uint32_t seed) : draw_(seed, Types::OfPyTorch) {
    program_.model.graph = std::make_shared<Graph>();
    node_ = graph().add_node("higher_order", op);
    const std::vector<Type> carried = types(), parts = types(), more = types();
    if (op == "cond") {
      const std::vector<uint32_t> picks = picks_of(more);
      add("pred", operand(Type::tensor(DType::Bool, Shape{})));
      for (const char* branch : {"true_graph", "false_graph"}) add(branch, made_graph(more, picks));
      add("operands", operands(more));
      add_results(more, picks, false);
    } else if (op == "while_loop") {
      std::vector<uint32_t> all(carried.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i);
      add("cond_fn", condition(joined(carried, more)));
      add("body_fn", made_graph(joined(carried, more), all));
      add("carried_inputs", operands(carried));
      add("additional_inputs", operands(more));
      add_results(carried, all, false);
    } else if (op == "scan" || op == "map_impl") {
      const bool is_scan = op == "scan";
      const std::vector<Type> state = is_scan ? carried : std::vector<Type>(),
                              inner = joined(joined(state, parts), more);
      std::vector<uint32_t> all(state.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i);
      const std::vector<uint32_t> stacked = picks_of(inner);
      std::vector<uint32_t> both = all;
      both.insert(both.end(), stacked.begin(), stacked.end());
      add(is_scan ? "combine_fn" : "f", made_graph(inner, both));
      if (is_scan) add("init", operands(state));
      add(is_scan ? "xs" : "mapped_args", operands(parts, true));
      add(is_scan ? "additional_inputs" : "operands", operands(more));
      add_results(inner, all, false);
      add_results(inner, stacked, true);
    } else {
      const std::vector<uint32_t> picks = picks_of(more);
      const bool is_autocast = op == "wrap_with_autocast";
      if (is_autocast) add("device", std::string("cpu"));
      if (is_autocast) add("dtype", draw_.one_in(3) ? AttrValue(draw_.dtype()) : AttrValue(DType::BFloat16));
      add("enabled", draw_.one_in(2));
      if (is_autocast) add("cache_enabled", true);
      add(is_autocast ? "arg4" : "graph", made_graph(more, picks));
      for (size_t i = 0; i < more.size(); ++i) add(fmt::format("arg{}", i + 5), operand(lie(more[i])));
      add_results(more, picks, false);
    }
    for (Value* output : node_->outputs()) {
      graph().add_output(output);
      program_.output_names.push_back(output->name);
    }
  }

  Program take() { return std::move(program_); }
  Draw& draw() { return draw_; }

 private:
  Graph& graph() { return *program_.model.graph; }
  void add(std::string name, AttrValue value) {
    if (draw_.one_in(60)) value = draw_.integer();
    const bool is_absent = draw_.one_in(60);
    if (is_absent || value.get<int64_t>() != nullptr) node_->resize_inputs(arguments_end_);  // no reader adds others
    arguments_end_ = node_->inputs().size();
    if (!is_absent) node_->attributes.push_back({std::move(name), std::move(value), AttrType::None, {}, {}});
  }
  Type lie(const Type& type) { return draw_.one_in(40) ? draw_.tensor_type() : type; }

  std::vector<Type> types() {
    std::vector<Type> result;
    for (uint32_t count = draw_.below(3); count > 0; --count)
      result.push_back(draw_.one_in(6) ? Type::number(Type::Kind::Int) : draw_.tensor_type());
    return result;
  }
  static std::vector<Type> joined(std::vector<Type> a, const std::vector<Type>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  std::vector<uint32_t> picks_of(const std::vector<Type>& from) {
    std::vector<uint32_t> result;
    for (uint32_t count = draw_.below(3); count > 0 && !from.empty(); --count)
      result.push_back(draw_.below(static_cast<uint32_t>(from.size())));
    return result;
  }

  AttrValue operand(const Type& type) {
    Value* made = graph().add_input(graph().unique_name("x"), type);
    if (type.kind == Type::Kind::Int) made->known_ints = {draw_.size()};
    node_->add_input(made);
    return Operand{static_cast<uint32_t>(node_->inputs().size() - 1)};
  }
  AttrValue operands(const std::vector<Type>& all, bool is_stacked = false) {
    AttrList list;
    for (Type type : all) {
      if (is_stacked && type.shape) type.shape->insert_at(0, Dim(3));
      list.push_back(draw_.one_in(40) ? AttrValue(draw_.integer()) : operand(lie(type)));
    }
    return list;
  }

  std::shared_ptr<Graph> with_inputs(const std::vector<Type>& inputs) {
    auto made = std::make_shared<Graph>();
    made->owner = node_;
    for (const Type& type : inputs) made->add_input(made->unique_name("a"), lie(type));
    return made;
  }
  static Value* called(Graph& inner, const char* op, Value* on, Type type) {
    Node* call = inner.add_node("aten", op);
    call->add_input(on);
    call->set_attribute("self", Operand{0});
    return inner.add_output_to(call, inner.unique_name("b"), std::move(type));
  }
  AttrValue made_graph(const std::vector<Type>& inputs, const std::vector<uint32_t>& picks) {
    const auto made = with_inputs(inputs);
    for (const uint32_t pick : picks) {
      Value* value = made->inputs()[pick];
      const bool is_computed = value->type.is_tensor() && draw_.one_in(2);
      made->add_output(is_computed ? called(*made, draw_.one_in(5) ? "relu_" : "neg", value, lie(value->type)) : value);
    }
    return GraphPtr(made);
  }
  AttrValue condition(const std::vector<Type>& inputs) {
    const auto made = with_inputs(inputs);
    for (Value* input : made->inputs()) {
      if (!input->type.is_tensor()) continue;
      made->add_output(called(*made, "any", input, Type::tensor(DType::Bool, Shape{})));
      break;
    }
    return GraphPtr(made);
  }

  void add_results(const std::vector<Type>& from, const std::vector<uint32_t>& picks, bool is_stacked) {
    for (const uint32_t pick : picks) {
      Type type = lie(from[pick]);
      if (is_stacked && type.shape) type.shape->insert_at(0, Dim(3));
      graph().add_output_to(node_, graph().unique_name("y"), type);
    }
  }

  Draw draw_;
  Program program_;
  Node* node_;
  size_t arguments_end_ = 0;  // of the inputs that stand among the arguments
};

/// `make` gives the same call each time. False where it was refused on all ways.
template <class Make>
bool convert_all_ways(const Make& make) {
  bool is_accepted = tried([&] {
    constexpr int64_t kOpsets[] = {11, 17, 20, kNewestOpset};
    auto call = make();
    ExportOptions options;
    options.raising.opset = call.draw().of(kOpsets);
    options.raising.training = call.draw().one_in(5);
    Program program = call.take();
    pt2::check_program(*program.model.graph);
    ConvertOptions asked;
    asked.opset = options.raising.opset;
    asked.exporting = options;
    Compilation compilation(program, Dialect::Script, asked);
    compilation.bring_to(Dialect::Exported);
    check_invariants(*program.model.graph);
    compilation.bring_to(Dialect::Stored);
    write_onnx_bytes(compilation.model());
  });
  for (const bool is_script : {false, true}) {
    is_accepted |= tried([&] {
      Program program = make().take();
      pt2::check_program(*program.model.graph);
      Compilation compilation(program, Dialect::Script);
      compilation.bring_to(Dialect::Code);
      check_invariants(*compilation.graph());
      if (is_script)
        compilation.write(scratch_file("rows.pt"));
      else
        compilation.python({});
    });
  }
  return is_accepted;
}

}  // namespace

std::vector<Row> aten_rows() {
  std::vector<Row> rows;
  for (const OpFamily* family : op_families()) {
    for (const AtenOp& op : family->aten) {
      const AtenOpEntry* entry = find_aten_op(op.sig.name());
      if (entry->signature.domain == "tonnx") continue;  // our own, which no file has
      rows.push_back({std::string(op.sig.name()), [entry](uint32_t seed) {
                        return convert_all_ways([&] { return OneCall(entry->signature, seed); });
                      }});
    }
  }
  return rows;
}

std::vector<Row> graph_rows() {
  std::vector<Row> rows;
  for (const char* const op :
       {"cond", "while_loop", "scan", "map_impl", "wrap_with_set_grad_enabled", "wrap_with_autocast"})
    rows.push_back({op, [op](uint32_t seed) { return convert_all_ways([&] { return OneGraphCall(op, seed); }); }});
  return rows;
}

}  // namespace tonnx::fuzz
