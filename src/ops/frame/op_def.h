// op_def.h - what one operator is, in either vocabulary: a row in the constant table of its family.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/checked_list.h"
#include "ir/dtype.h"
#include "ops/frame/signature.h"

namespace tonnx {

struct Node;
struct Value;
class OnnxNode;     // a node that is lowered, seen through its signature (lowering.h)
class InferNode;    // a node whose outputs are inferred (infer.h)
class NodeView;     // a node seen through its signature (node_view.h)
class OnnxEdit;     // a node that takes one opset step, or is written in other operators (opset_step.h)
class Results;      // what an evaluation gives (eval.h)
class AtenBuilder;  // appends aten nodes (lowering.h)
class AtenNode;     // an aten node that is raised, seen through its schema (raising.h)
class OnnxBuilder;  // appends ONNX nodes (raising.h)
class Emission;     // an aten node that becomes Python text (emission.h)
struct ModuleSpec;  // an nn.Module in the making (emission.h)
struct Call;        // an aten node as generated code spells it (emission.h)

inline constexpr int kNewestOpset = 28;

/// The outputs that a lowering gives, in order; a null one is an output that it cannot give and nobody uses.
class Values : public CheckedList<Value*> {
 public:
  Values(Value* one) : CheckedList<Value*>{one} {}  // NOLINT: one output is the rule
  Values(std::initializer_list<Value*> all) : CheckedList<Value*>(all) {}
  explicit Values(std::vector<Value*> all) : CheckedList<Value*>(std::move(all)) {}
};

using InferFn = void (*)(InferNode&);
using LowerFn = Values (*)(const OnnxNode&, AtenBuilder&);
using EvalFn = Results (*)(const NodeView&);
using StepFn = void (*)(OnnxEdit&);
using ExpandFn = bool (*)(const NodeView&, OnnxEdit&);
using RaiseFn = Values (*)(const AtenNode&, OnnxBuilder&);
using EmitFn = std::string (*)(const Emission&);
using ModuleFn = std::optional<ModuleSpec> (*)(const Emission&);

/// One step in an operator's history. Going up is always possible. Where `down` is null going down changes nothing, but
/// for a node whose tensors are of a type that the step added, which cannot go down.
struct OpsetStep {
  int to;               // the opset that brought the change
  StepFn up = nullptr;  // null: nothing to do
  StepFn down = nullptr;
  DTypeSet adds = 0;  // element types that the older version does not take
};

struct OnnxOp {
  Signature sig;                            // at the newest opset
  int since;                                // first opset that has the operator
  std::span<const OpsetStep> history = {};  // every later version of it
  InferFn infer = nullptr;                  // null: nothing is known of the outputs
  EvalFn eval = nullptr;                    // the outputs where all inputs are constants; null: left to the run
  LowerFn lower = nullptr;                  // null: only what `expand` rewrites is supported
  std::string_view note = {};               // limits, shown in docs/operators.md
  int until = 0;                            // the opset that took the operator away; 0: it is still there
  /// Writes the node in terms of other operators (OnnxEdit::replace_with) on the way to PyTorch, and says whether it
  /// did.
  ExpandFn expand = nullptr;
  /// Writes the node in terms of older operators, for an opset before `since`, and says whether it did.
  ExpandFn in_older = nullptr;

  bool is_supported() const { return lower != nullptr || expand != nullptr; }
};

struct AtenOp {
  Signature sig;  // exactly PyTorch's own schema string
  /// How generated code spells it: `torch.cumsum` a function, `.view` a method, `+` an infix or prefix operator, `r-`
  /// an infix operator with its sides swapped.
  std::string_view python = {};
  EmitFn emit = nullptr;       // where neither fits
  ModuleFn module = nullptr;   // which nn.Module it is, where its weights are constants
  bool subscript = false;      // x[...]: one on top of another is written as one
  RaiseFn raise = nullptr;     // its meaning as ONNX nodes of the newest opset; null: not supported
  std::string_view note = {};  // limits, and why it cannot be raised
};

struct OpFamily {
  std::string_view name;
  std::span<const OnnxOp> onnx;
  std::span<const AtenOp> aten;
};

/// All families, in the order of ops.cpp.
std::span<const OpFamily* const> op_families();

/// An operator with its parsed signature.
struct OnnxOpEntry {
  const OnnxOp* op;
  const OpFamily* family;
  ParsedSignature signature;
};
struct AtenOpEntry {
  const AtenOp* op;
  const OpFamily* family;
  ParsedSignature signature;
};

/// Null where the tables do not have it. `domain` is empty for ai.onnx.
const OnnxOpEntry* find_onnx_op(std::string_view domain, std::string_view name);
/// `name` is `aten::add.Tensor`.
const AtenOpEntry* find_aten_op(std::string_view name);
const AtenOpEntry& get_aten_op(const Node& node);

/// The versions of the operator in ai.onnx, ascending, as the standard has them; empty for an operator it does not
/// have.
std::span<const int> standard_versions(std::string_view name);
/// The version of the schema that an opset of ai.onnx has for the operator; 0 where it has none.
int schema_version(std::string_view name, int64_t opset);

}  // namespace tonnx
