// calls.h - calls of an archive's code as nodes: overloads found by the arguments, results typed at once.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/torchscript/run/item.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/op_def.h"

namespace tonnx::torchscript {

struct Arguments {
  std::vector<Item> positional;
  std::vector<std::pair<std::string, Item>> keywords;

  size_t size() const { return positional.size() + keywords.size(); }
};

/// Where new nodes go, and what is written on them.
struct Place {
  Graph* graph = nullptr;
  std::string stack;  // nn_module_stack
  std::string path;   // of the module
  std::string trace;  // file and line of the code
};

/// The next step for whoever has a model that PyTorch has quantised.
inline constexpr const char* kInFloats =
    "tonnx.export takes the live model; or save the model as it was before torch.ao.quantization.convert, and quantise "
    "the .onnx";

/// That an operator is not known.
std::string no_operator(std::string_view library, std::string_view op);

/// What numbers that a trace wrote down as tensors are called, as torch.export has it.
inline constexpr std::string_view kLiteral = "lifted_tensor";

class ScriptCalls {
 public:
  explicit ScriptCalls(Graph& main) : main_(main), sizes_("s") { place.graph = &main; }

  Place place;

  /// Whether the tables have an operator of that name, and can tell the types of what it gives.
  static bool is_known(std::string_view library, std::string_view op);

  /// An operator of a library: aten, torchvision, quantized. Throws Unsupported where no row takes such arguments.
  Item call(std::string_view library, std::string_view op, const Arguments& arguments);
  /// The same, of one row: `aten::conv2d`, its arguments by name.
  Item call_row(std::string_view full_name, std::vector<std::pair<std::string, Item>> arguments);

  /// An operation on plain numbers, at least one of which is of the graph; `op` as _operator calls it.
  Item number(std::string_view op, const std::vector<Item>& operands, Item::Kind kind);
  /// The size of a tensor along a dimension.
  Item size(const Item& tensor, int64_t dim);

  /// The number as a value of a node, as a plain number of the graph, or as a tensor of no dimensions.
  Item plain(const Item& number);
  Value* as_tensor(const Item& number);
  /// The tensor itself, which may have been made of a number.
  Value* tensor(const Item& item) { return item.value ? item.value : as_tensor(*item.number); }
  /// A number of a tensor of one element.
  Item number_of(const Item& tensor, Item::Kind kind);

  Value* constant(TensorPtr tensor, std::string_view name);
  Dim fresh_size() { return sizes_.next(); }
  /// The size that an integer is.
  static Dim dim_of(const Item& number);

 private:
  /// `loosely`: a tensor of one element stands for a number.
  static bool fits(const Param& param, const Item& item, bool loosely);
  static bool bind(const AtenOpEntry& entry, const Arguments& arguments, bool loosely, std::vector<const Item*>& bound);
  using Operands = std::vector<Value*>;
  AttrValue argument(Operands& operands, const Param& param, const Item& item);
  AttrValue element(Operands& operands, const std::string& type, const Item& item);
  Item copy(const Item& self, const Item& source);
  Item results(Node& node, const AtenOpEntry& entry, size_t list_count);
  std::optional<Item> open_parts(const AtenOpEntry& entry, const std::vector<const Item*>& bound);
  size_t list_count(const AtenOpEntry& entry, const std::vector<const Item*>& bound);
  Item build(const AtenOpEntry& entry, const std::vector<const Item*>& bound, bool writes);
  Node& add_node(Symbol domain, Symbol op);

  Graph& main_;
  NewSizes sizes_;
};

}  // namespace tonnx::torchscript
