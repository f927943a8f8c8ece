// emission.h - an aten node on its way to Python text, and the nn.Module that it may be.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/join.h"
#include "ir/graph.h"
#include "ops/frame/op_def.h"

namespace tonnx {

/// How tightly Python binds an expression; parentheses go around what binds less than its place asks for.
namespace precedence {
enum : int {
  kTernary = 1,
  kOr = 2,
  kAnd = 3,
  kNot = 4,
  kCompare = 5,
  kBitOr = 6,
  kBitXor = 7,
  kBitAnd = 8,
  kShift = 9,
  kSum = 10,
  kProduct = 11,
  kUnary = 12,
  kPower = 13,
  kAtom = 14
};
}

/// An nn.Module that does what a node does, with the node's constants as its weights.
struct ModuleSpec {
  struct Weight {
    std::string attribute;    // weight, bias, running_mean ...
    Value* value;             // a constant of the graph
    bool transposed = false;  // the module has it with its two dimensions swapped
  };
  std::string type;       // nn.Conv2d
  std::string arguments;  // 3, 64, 7, stride=2
  std::vector<Weight> weights;
  std::vector<std::string> inputs;  // the arguments of the node that forward takes
  std::string short_name;           // conv: what to call it where no name is known
  bool nests_results = false;       // forward gives its results but the first as a tuple: y, (h, c)
  std::string_view source = {};     // the definition of its class, where PyTorch has none
};

}  // namespace tonnx

extern template class std::vector<tonnx::ModuleSpec::Weight>;
extern template class std::vector<std::string>;

namespace tonnx {

/// Whether an aten node gives a matrix with its two dimensions swapped.
bool swaps_dims(const Node& node);

/// An aten node, seen through its schema.
class Emission {
 public:
  /// Gives the text of a value, with parentheses where it binds less than `place`.
  using TextOf = std::function<std::string(const Value*, int place)>;

  /// Whether the text of a value is that of the node that makes it, and not the name of a variable.
  using IsInside = std::function<bool(const Value*)>;

  Emission(const Node& node, const AtenOpEntry& entry, TextOf text_of, std::string device = "", IsInside is_inside = {})
      : node_(&node),
        entry_(&entry),
        text_of_(std::move(text_of)),
        device_(std::move(device)),
        is_inside_(std::move(is_inside)) {}

  const Node& node() const { return *node_; }
  const ParsedSignature& signature() const { return entry_->signature; }
  /// Where new tensors are to be made: `x.device` of some tensor at hand; empty where there is none.
  const std::string& device() const { return device_; }

  /// Whether the argument is given and not None.
  bool has(std::string_view argument) const;
  /// The value that the argument is; null where it is none.
  Value* value(std::string_view argument) const;
  /// The constant that the argument is; null where it is none.
  const AttrValue* constant(std::string_view argument) const;  // the default of the schema where it is not given
  std::optional<int64_t> find_int(std::string_view argument) const;
  std::optional<double> find_float(std::string_view argument) const;
  std::optional<Ints> find_ints(std::string_view argument) const;
  bool flag(std::string_view argument) const;
  std::string string(std::string_view argument) const;

  /// The node that makes the argument, where its text stands inside the text of this one; nothing elsewhere.
  std::optional<Emission> inside(std::string_view argument) const;

  /// The argument as Python text.
  std::string text(std::string_view argument, int place = 0) const;
  std::string text(const Value* value, int place = 0) const { return text_of_(value, place); }
  /// The elements of a list argument, each as text.
  CheckedList<std::string> items(std::string_view argument) const;

 private:
  const AttrValue* find(std::string_view argument) const;
  std::string text_of_attr(const AttrValue& value, int place) const;

  const Node* node_;
  const AtenOpEntry* entry_;
  TextOf text_of_;
  std::string device_;
  IsInside is_inside_;
};

/// A number as Python writes it: the shortest text that gives the same float32, or else the same float64.
std::string python_float(double value);
std::string python_string(std::string_view text);
std::string python_dtype(DType dtype);
/// `3` where all are equal and the module takes one number for all, `(3, 5)` otherwise.
std::string python_pair(const std::vector<int64_t>& values);
std::string python_tuple(const std::vector<std::string>& items);

/// The spelling of a node by the rules of AtenOp::python, and how tightly it binds.
std::pair<std::string, int> spell(const Emission& emission, const AtenOp& op);

}  // namespace tonnx
