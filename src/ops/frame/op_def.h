// op_def.h - what one operator is, in either vocabulary: a row in the constant table of its family.
#pragma once
#include <optional>
#include <span>
#include <string>
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
class SizeNode;     // a node some of whose sizes are equal at every run (size_node.h)
class OpenNode;     // a node that follows sizes that become open (open_node.h)
class OnnxEdit;     // a node that takes one opset step, or is written in other operators (opset_step.h)
class Results;      // what an evaluation gives (eval.h)
class AtenBuilder;  // appends aten nodes (lowering.h)
class AtenNode;     // an aten node that is raised, seen through its schema (raising.h)
class OnnxBuilder;  // appends ONNX nodes (raising.h)
class TypeNode;     // an aten node whose results are typed (aten_types.h)
class ScriptNode;   // an aten node that becomes TorchScript's code (script_node.h)
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
using SameFn = Value* (*)(const Node&);
using StepFn = void (*)(OnnxEdit&);
using SizesFn = void (*)(SizeNode&);
using OpenFn = void (*)(OpenNode&);
using ExpandFn = bool (*)(const NodeView&, OnnxEdit&);
using RaiseFn = Values (*)(const AtenNode&, OnnxBuilder&);
using TypeFn = void (*)(TypeNode&);
using ScriptFn = std::string (*)(ScriptNode&);
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

/// What holds of an operator of ONNX, whatever its arguments are.
enum OnnxTrait : uint16_t {
  kElementwise = 1,    // an element of the output comes from those at the same place of the inputs, which are broadcast
  kReduces = 2,        // along the axes that `axes` names
  kMoves = 4,          // the output has elements of the first input, and no others
  kBounded = 8,        // the output is at most a few times as large as the inputs, whatever these hold
  kTakesStrings = 16,  // it moves, compares or reads strings too, and its evaluation looks at the types of its inputs
  kRandom = 32,        // two nodes with the same inputs give different values
  kQuantizes = 64,     // it says how numbers are to be stored and computed with
  kNotNegative = 128,  // no element of the output is below 0
  kWhole = 256,        // every element of the output is a whole number
  kSumsProducts = 512,                  // an element of the output is a sum of many products, by weights most of all
  kForwardsWeight = 1024,               // nothing but its evaluation looks at the elements of its second input
  kWeightOrderDiffersFromTorch = 2048,  // the layer of PyTorch's has its weights in another order
  kOutsideStandard = 4096,              // ONNX Runtime takes it in ai.onnx, and the standard does not have it
};

/// The integers, and bool, that the CPU kernels of ONNX Runtime take; empty: all that the standard has. Where it is not
/// empty there is no kernel for bfloat16.
struct RuntimeTypes {
  DTypeSet types = 0;
  uint8_t first_input = 0;  // inputs before it are of other types
  bool gives_same = true;   // whether output 0 is of the type of the inputs
};
inline constexpr DTypeSet kClippedInts = kByteInts | dtype_set(DType::UInt32, DType::UInt64);

/// Optional inputs that may as well be zeros, as bits: the first input is 1.
struct ZeroInputs {
  uint16_t inputs = 0;
  int since = 1;  // the opset that made them optional
};

struct OnnxOp {
  Signature sig;                            // at the newest opset
  int since;                                // first opset that has the operator
  uint16_t traits = 0;                      // OnnxTrait
  RuntimeTypes runtime = {};                // where ONNX Runtime has not all that the standard has
  ZeroInputs zeros = {};                    // inputs that are zeros where they are absent
  std::span<const OpsetStep> history = {};  // every later version of it
  InferFn infer = nullptr;                  // null: nothing is known of the outputs
  SizesFn sizes = nullptr;                  // which of its sizes are equal at every run; null: none, but for broadcasts
  OpenFn open = nullptr;                    // how its constant sizes follow one that becomes open; null: it has none
  EvalFn eval = nullptr;                    // the outputs where all inputs are constants; null: left to the run
  SameFn same = nullptr;                    // the value that output 0 is, where the node changes nothing, at any opset
  LowerFn lower = nullptr;                  // null: only what `expand` rewrites is supported
  std::string_view note = {};               // limits, shown in docs/operators.md
  int until = 0;                            // the opset that took the operator away; 0: it is still there
  /// Writes the node in terms of other operators (OnnxEdit::replace_with) on the way to PyTorch, and says whether it
  /// did.
  ExpandFn expand = nullptr;
  /// Writes the node in terms of older operators, for an opset before `since`, and says whether it did.
  ExpandFn in_older = nullptr;

  bool is_supported() const { return lower != nullptr || expand != nullptr; }
  bool has(OnnxTrait trait) const { return (traits & trait) != 0; }
};

struct OnnxFacts {
  int traits = 0;
  SizesFn sizes = nullptr;
  RuntimeTypes runtime = {};
  SameFn same = nullptr;
};
/// A row that a function made, and what else is known of the operator.
constexpr OnnxOp with(OnnxOp op, const OnnxFacts& facts) {
  op.traits = static_cast<uint16_t>(op.traits | facts.traits);
  op.sizes = facts.sizes;
  op.runtime = facts.runtime;
  op.same = facts.same;
  return op;
}

/// The element type that an operator gives each of whose elements comes from one of each input.
enum class Elementwise : uint8_t {
  No,        // the operator is none
  Kept,      // that of the first tensor, or the argument `dtype`
  Promoted,  // that of all inputs together
  Floats,    // the same, and float32 for integers
  Quotient,  // the same, but for a division that rounds, which stays with integers
  Doubles,   // float64, or complex
  Flags,     // bool
};

/// How what an operator gives lies in the memory of its first tensor.
enum class ViewRule : uint8_t {
  None,        // it has memory of its own
  Select,      // the scatter of the same arguments puts it back
  Diagonal,    // the same
  Slice,       // the same, but for one that takes everything
  Narrow,      // a slice by its length
  AsStrided,   // of whole memory
  View,        // never copies
  Reshape,     // a view where the strides allow one
  Contiguous,  // the same tensor where it lies row by row
  Permute,     // permute
  Transpose,   // transpose.int
  Transposed,  // t, mT ...: the last two dimensions
  Reversed,    // numpy_T: all dimensions
  Movedim,     // movedim
  Squeeze,     // squeeze
  Unsqueeze,   // unsqueeze
  Expand,      // the same tensor where nothing is expanded
  Same,        // the same tensor, for sure
  Real,        // the same tensor unless it is complex
  Convert,     // the same tensor where the type stays
  Dropout,     // the same tensor in eval mode
  Split,       // parts along the dimension `dim`
  HSplit,      // along dimension 1, or that of a vector
  VSplit,      // along dimension 0
  DSplit,      // along dimension 2
  Unbind,      // elements along a dimension
  Unfold,      // windows, which are not written through
  Opaque,      // any other view that is not written through
};

/// How what an operator gives, that is no view, lies in memory.
enum class Layout {
  Rows,      // row by row
  Inputs,    // row by row where all its inputs do; or, where it is elementwise, as they do
  Channels,  // row by row, but where an input has its channels innermost
  Own,       // nobody knows
};

struct AtenOp {
  Signature sig;  // exactly PyTorch's own schema string
  /// Types of its results, by those of its arguments (aten_types.h); null: by `elementwise`, or nothing is known.
  TypeFn types = nullptr;
  Elementwise elementwise = Elementwise::No;  // its results lie in memory as its inputs do
  ViewRule view = ViewRule::None;
  Layout layout = Layout::Rows;
  bool low_precision = false;  // torch.autocast has it compute in the smaller type: all that sums products
  bool out_dtype = false;      // its out= variant computes in the type of the result
  /// How generated code spells it: `torch.cumsum` a function, `.view` a method, `+` an infix or prefix operator, `r-`
  /// an infix operator with its sides swapped.
  std::string_view python = {};
  EmitFn emit = nullptr;      // where neither fits
  ModuleFn module = nullptr;  // which nn.Module it is, where its weights are constants
  bool subscript = false;     // x[...]: one on top of another is written as one
  ScriptFn script = nullptr;  // its text in TorchScript's code, where it is no call by its name and schema
  RaiseFn raise = nullptr;    // its meaning as ONNX nodes of the newest opset; null: not supported
  /// The same where an argument or a result is complex (complex_parts.h); null: `raise` takes complex numbers as the
  /// pairs that they are, or refuses them.
  RaiseFn raise_complex = nullptr;
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
/// Whether the node is of an operator of ai.onnx with that trait.
bool has_trait(const Node& node, OnnxTrait trait);
/// Whether an element of what the node gives, in either vocabulary, is a sum of many products.
bool sums_products(const Node& node);
/// `name` is `aten::add.Tensor`.
const AtenOpEntry* find_aten_op(std::string_view name);
const AtenOpEntry* find_aten_op(const Node& node);
/// Throws Unsupported where the tables do not have it.
const AtenOpEntry& get_aten_op(const Node& node);
/// `aten::add.Tensor`: the library, the name and the overload of the node's operator.
std::string full_name(const Node& node);

/// The versions of the operator in ai.onnx, ascending, as the standard has them; empty for an operator it does not
/// have.
std::span<const int> standard_versions(std::string_view name);
/// The version of the schema that an opset of ai.onnx has for the operator; 0 where it has none.
int schema_version(std::string_view name, int64_t opset);

}  // namespace tonnx
