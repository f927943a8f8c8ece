// dialect.cpp - holds graphs against what their dialect allows.
#include "passes/dialects/dialect.h"

#include <algorithm>

#include "base/error.h"
#include "ops/frame/op_def.h"

namespace tonnx {
namespace {

class Check {
 public:
  explicit Check(Dialect dialect) : dialect_(dialect) {}

  void run(const Graph& graph) const {
    check_invariants(graph);
    for (const Node& node : graph) check(node);
  }

 private:
  void check(const Node& node) const {
    switch (dialect_) {
      case Dialect::Stored:
      case Dialect::Onnx: check_onnx(node); break;
      case Dialect::Script: check_script(node); break;
      case Dialect::Exported: check_exported(node); break;
      case Dialect::Code:
        if (is_for_python(node)) fail(node, "is for Python only");
        [[fallthrough]];
      case Dialect::Python: check_code(node); break;
    }
    for (const GraphPtr& subgraph : subgraphs_of(node)) {
      for (const Node& inner : *subgraph) check(inner);
    }
  }

  [[noreturn]] void fail(const Node& node, const char* why) const {
    tonnx::fail(ErrorKind::Internal, "the node {}::{} {}", node.domain.view(), node.op.view(), why);
  }

  static bool is_of(const Node& node, std::initializer_list<std::string_view> libraries) {
    return std::find(libraries.begin(), libraries.end(), node.domain.view()) != libraries.end();
  }

  static bool has_operand(const AttrValue& value) {
    if (value.get<Operand>() != nullptr) return true;
    const auto* list = value.get<AttrList>();
    return list != nullptr && std::any_of(list->begin(), list->end(), has_operand);
  }

  /// Inputs are in place, and not among the attributes; numbers are tensors.
  void check_onnx(const Node& node) const {
    if (is_of(node, {"aten", "higher_order", "_operator", "torchvision"})) fail(node, "is none of ONNX");
    for (const Attribute& attribute : node.attributes) {
      if (has_operand(attribute.value)) fail(node, "has an operand among its attributes");
    }
    for (const Value* output : node.outputs()) {
      if (output == nullptr) continue;
      const Type::Kind kind = output->type.kind;
      if (kind == Type::Kind::Int || kind == Type::Kind::Float || kind == Type::Kind::Bool ||
          kind == Type::Kind::IntList)
        fail(node, "gives a plain number");
    }
  }

  /// Each input stands among the arguments.
  void check_operands(const Node& node) const {
    std::vector<bool> seen(node.inputs().size());
    for (const Attribute& attribute : node.attributes) mark(node, attribute.value, seen);
    for (size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i] && node.input(i) != nullptr) fail(node, "has an input that is no argument");
    }
  }

  void mark(const Node& node, const AttrValue& value, std::vector<bool>& seen) const {
    if (const auto* at = value.get<Operand>()) {
      if (at->index >= seen.size()) fail(node, "has an argument beyond its inputs");
      seen[at->index] = true;
    } else if (const auto* list = value.get<AttrList>()) {
      for (const AttrValue& item : *list) mark(node, item, seen);
    }
  }

  /// Inputs are arguments, but for those of branches and loops that only the run decides.
  void check_script(const Node& node) const {
    if (node.domain.empty()) fail(node, "is one of ONNX");
    if (subgraphs_of(node).empty()) check_operands(node);
  }

  /// Modules whose classes the file defines, or that compute the same as many nodes, and types of tensors as numbers.
  static bool is_for_python(const Node& node) {
    constexpr std::string_view kOps[] = {"quant_linear", "quant_conv2d", "multihead_attention", "dtype_of",
                                         "finfo_min"};
    return is_of(node, {"tonnx"}) && std::find(std::begin(kOps), std::end(kOps), node.op.view()) != std::end(kOps);
  }

  /// No operator writes, and what graphs inside a node use comes in through their inputs. Of our own library there are
  /// only lists among the outputs, and nodes of ONNX that symbolics ask for.
  void check_exported(const Node& node) const {
    const std::string_view op = node.op.view();
    if (is_of(node, {"tonnx"}) && op != "list" && op != "unbind_list" && op != "onnx_op")
      fail(node, "is for code only");
    if (is_of(node, {"aten"}) && op.ends_with('_') && !op.ends_with("__")) fail(node, "writes to a tensor");
    check_operands(node);
    if (!is_of(node, {"higher_order"})) return;
    for (const GraphPtr& subgraph : subgraphs_of(node)) {
      for (const Node& inner : *subgraph) {
        for (const Value* input : inner.inputs()) {
          if (input != nullptr && input->graph != subgraph.get() && !input->constant)
            fail(inner, "uses a value around its graph");
        }
      }
    }
  }

  /// Each operator has a row that says how it is written.
  void check_code(const Node& node) const {
    if (is_of(node, {"higher_order"})) fail(node, "has no place in code");
    if (is_of(node, {"tonnx"}) && node.op == "call_module")
      return;  // of the caller's own, whose inputs are its arguments
    check_operands(node);
    const AtenOpEntry& entry = get_aten_op(node);
    const bool is_module = dialect_ == Dialect::Python && entry.op->module != nullptr;
    if (entry.op->python.empty() && entry.op->emit == nullptr && !is_module && subgraphs_of(node).empty() &&
        node.op != "list")
      fail(node, "has no form in Python");
  }

  Dialect dialect_;
};

}  // namespace

const char* name_of(Dialect dialect) {
  switch (dialect) {
    case Dialect::Stored: return "stored";
    case Dialect::Onnx: return "onnx";
    case Dialect::Script: return "script";
    case Dialect::Exported: return "exported";
    case Dialect::Code: return "code";
    case Dialect::Python: return "python";
  }
  return "";
}

void check_dialect(const Graph& graph, Dialect dialect) {
  in_context([&] { return fmt::format("checking a graph of the dialect '{}'", name_of(dialect)); },
             [&] { Check(dialect).run(graph); });
}

}  // namespace tonnx
