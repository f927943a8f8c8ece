// script_operators.cpp - operators of an archive's code: questions to tensors, new tensors, what older files meant.
#include <algorithm>
#include <cmath>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/dtype.h"
#include "formats/torchscript/interpreter.h"
#include "formats/torchscript/item_facts.h"

namespace tonnx::torchscript {
namespace {

/// What the interpreter computes itself, and the tables of operators do not have.
constexpr std::string_view kComputed =
    " Bool Delete Float FloatImplicit Int IntImplicit ListUnpack NumToTensor RaiseException ScalarImplicit"
    " TupleUnpack __and__ __contains__ __derive_index __getitem__ __is__ __isnot__ __lshift__ __not__"
    " __or__ __range_length __rshift__ __xor__ _assert _convolution _convolution_mode _native_multi_head_attention "
    "_set_item"
    " _transformer_encoder_layer_fwd _weight_norm append as_tensor clear copy_ cpu cuda data detach detach_ device "
    "dict dim"
    " dtype element_size endswith extend floordiv format get insert is_autocast_cpu_enabled"
    " is_autocast_enabled is_complex is_floating_point is_grad_enabled is_scripting item items keys layout"
    " len list manual_seed ndim ndimension numel pin_memory pop requires_grad requires_grad_ reverse shape"
    " size startswith str tensor tolist type unchecked_unwrap_optional update values view_copy wait warn zero_ ";

bool is_computed(std::string_view library, std::string_view op) {
  if (library == "prim") return true;
  if (library != "aten") return false;
  return op.starts_with("is_") || kComputed.find(fmt::format(" {} ", op)) != std::string_view::npos;
}

using IKind = Item::Kind;

constexpr int64_t kMostListed = 1024;  // elements of a tensor that becomes a list

std::string formatted(const std::vector<Item>& args) {
  if (args.empty()) return {};
  std::string result;
  size_t next = 1;
  const std::string& pattern = args[0].text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.compare(i, 2, "{}") == 0 && next < args.size()) {
      result += text_of(args[next++]);
      ++i;
    } else {
      result += pattern[i];
    }
  }
  return result;
}

}  // namespace

std::optional<Item> Interpreter::of_prim(std::string_view op, const Arguments& arguments) {
  const auto& args = arguments.positional;
  if (op == "RaiseException") {
    if (branches_ == 0)
      fail_invalid("the model raises an exception for such inputs: {}", args.empty() ? std::string() : args[0].text);
    Item raised = Item::of(IKind::Unset);
    raised.text = "raised";
    return raised;
  }
  if (args.empty()) return std::nullopt;
  const Item& of = args[0];
  if (op == "NumToTensor") {
    Item tensor = Item::tensor(nullptr);
    tensor.number = std::make_shared<Item>(of);
    return tensor;
  }
  if (op == "unchecked_unwrap_optional" || op == "data") return of;
  if (is_one_of(op, {"min", "max", "abs"})) return operate("aten", op, arguments);
  if (op == "TupleUnpack" || op == "ListUnpack") return of;
  if (op == "type") return Item::of_text("cpu");  // of a device
  if (!of.is(IKind::Tensor)) return std::nullopt;
  if (op == "dtype") return Item::of_int(number_of(of.value ? of.value->type.dtype : DType::Int64));
  if (op == "device") {
    Item device = Item::of(IKind::Device);
    device.text = "cpu";
    return device;
  }
  if (op == "layout") return Item::of_int(0);
  if (op == "requires_grad") return Item::of_bool(of.value != nullptr && of.value->trainable);
  if (is_one_of(op, {"is_cuda", "is_nested", "is_sparse", "is_quantized", "is_mkldnn", "is_xla", "is_mps", "is_meta",
                     "is_vulkan"}))
    return Item::of_bool(false);
  if (is_one_of(op, {"T", "mT", "H", "mH"})) return operate("aten", op == "T" ? "numpy_T" : op, arguments);
  if (op == "shape") return operate("aten", "size", arguments);
  if (op == "ndim") return operate("aten", "dim", arguments);
  return std::nullopt;
}

/// aten::_convolution, as traces have it, by the name of the layer.
Item Interpreter::convolution(const Arguments& arguments) {
  const auto& args = arguments.positional;
  require(args.size() >= 9 && args[0].is(IKind::Tensor) && args[6].is(IKind::Bool), "a convolution lacks arguments");
  const size_t spatial = args[3].items ? args[3].items->size() : 0;
  require(spatial >= 1 && spatial <= 3, "a convolution has {} strides", spatial);
  const bool is_transposed = args[6].integer != 0;
  std::vector<std::pair<std::string, Item>> named = {{"input", args[0]},  {"weight", args[1]},  {"bias", args[2]},
                                                     {"stride", args[3]}, {"padding", args[4]}, {"dilation", args[5]},
                                                     {"groups", args[8]}};
  if (is_transposed) named.emplace_back("output_padding", args[7]);
  const std::string name = is_transposed
                               ? fmt::format("aten::conv_transpose{}d{}", spatial, spatial == 1 ? "" : ".input")
                               : fmt::format("aten::conv{}d", spatial);
  return calls_.call_row(name, std::move(named));
}

/// aten::_convolution_mode, whose padding is a word.
Item Interpreter::convolution_mode(const Arguments& arguments) {
  const auto& args = arguments.positional;
  require(args.size() == 7 && args[3].items, "a convolution lacks arguments");
  return calls_.call_row(fmt::format("aten::conv{}d.padding", args[3].items->size()), {{"input", args[0]},
                                                                                       {"weight", args[1]},
                                                                                       {"bias", args[2]},
                                                                                       {"stride", args[3]},
                                                                                       {"padding", args[4]},
                                                                                       {"dilation", args[5]},
                                                                                       {"groups", args[6]}});
}

/// torch.tensor of numbers, and lists of them.
Item Interpreter::make_tensor(const Arguments& arguments) {
  require(!arguments.positional.empty(), "a tensor is made of nothing");
  const Item& data = arguments.positional[0];
  const Item* dtype = find_argument(arguments, 1, "dtype");
  const bool has_type = dtype != nullptr && dtype->is(IKind::Int);
  if (data.is(IKind::Tensor)) return data;
  std::vector<int64_t> dims;
  Item::Items leaves;
  const std::function<void(const Item&, size_t)> collect = [&](const Item& item, size_t depth) {
    budget().take(Resource::Memory, sizeof(Item));
    if (!item.items) return leaves.push_back(item);
    if (dims.size() <= depth) dims.push_back(static_cast<int64_t>(item.items->size()));
    require(dims[depth] == static_cast<int64_t>(item.items->size()), "the lists of a tensor differ in length");
    for (const Item& each : *item.items) collect(each, depth + 1);
  };
  collect(data, 0);
  const bool has_float = std::any_of(leaves.begin(), leaves.end(), [](const Item& i) { return i.is(IKind::Float); });
  const bool has_int = std::any_of(leaves.begin(), leaves.end(), [](const Item& i) { return i.is(IKind::Int); });
  const DType own = has_float ? DType::Float32 : has_int ? DType::Int64 : leaves.empty() ? DType::Float32 : DType::Bool;
  const DType wanted = has_type ? dtype_of(dtype->integer) : own;
  if (std::all_of(leaves.begin(), leaves.end(), [](const Item& i) { return i.is_number() && i.is_constant(); })) {
    if (leaves.size() == 1 && dims.empty() && wanted == DType::Int64) {
      Item tensor = Item::tensor(calls_.constant(make_scalar(wanted, real_of(leaves[0])), kLiteral));
      tensor.number = std::make_shared<Item>(leaves[0]);
      return tensor;
    }
    std::vector<double> numbers;
    for (const Item& leaf : leaves) numbers.push_back(real_of(leaf));
    return Item::tensor(calls_.constant(make_floats(wanted, dims, numbers), "constant"));
  }
  Item::Items scalars;
  for (const Item& leaf : leaves) {
    require(leaf.is_number(), "a tensor is made of {}", name_of(leaf.kind));
    Item scalar = Item::tensor(calls_.as_tensor(leaf));
    if (scalar.value->type.dtype != wanted)
      scalar = calls_.call("aten", "to", {{scalar, Item::of_int(number_of(wanted))}, {}});
    scalars.push_back(scalar);
  }
  if (dims.empty()) return scalars[0];
  const Item row = calls_.call("aten", "stack", {{Item::of_items(IKind::List, scalars)}, {}});
  if (dims.size() == 1) return row;
  Item::Items sizes;
  for (const int64_t dim : dims) sizes.push_back(Item::of_int(dim));
  return calls_.call("aten", "reshape", {{row, Item::of_items(IKind::List, sizes)}, {}});
}

/// What operators of older files meant.
std::optional<Item> Interpreter::of_older(std::string_view op, const Arguments& arguments) {
  const auto& args = arguments.positional;
  const int64_t version = archive_.version();
  if ((op == "div" || op == "div_") && version < 4 && args.size() == 2 && arguments.keywords.empty()) {
    const auto is_whole = [](const Item& item) {
      return item.is(IKind::Tensor) ? item.number || !is_float(item.value->type.dtype) : !item.is(IKind::Float);
    };
    if (!args[0].is(IKind::Tensor) || !is_whole(args[0]) || !is_whole(args[1])) return std::nullopt;
    return calls_.call("aten", op, {args, {{"rounding_mode", Item::of_text("trunc")}}});
  }
  if (op == "full" && version < 5 && args.size() >= 2 && args[1].is_number() && args[1].is_constant()) {
    const Item* dtype = find_argument(arguments, 2, "dtype");
    if (dtype != nullptr && !dtype->is(IKind::None)) return std::nullopt;
    Arguments given = arguments;
    given.positional[1] = Item::of_float(real_of(args[1]));
    return calls_.call("aten", op, given);
  }
  if ((op == "linspace" && version < 8) || (op == "logspace" && version < 9)) {
    if (args.size() < 3 || !args[2].is(IKind::None)) return std::nullopt;
    Arguments given = arguments;
    given.positional[2] = Item::of_int(100);
    return calls_.call("aten", op, given);
  }
  return std::nullopt;
}

std::optional<Item> Interpreter::of_tensor(std::string_view op, const Arguments& arguments) {
  const auto& args = arguments.positional;
  if (op == "tensor" || op == "as_tensor") return make_tensor(arguments);
  if (op == "_convolution") return convolution(arguments);
  if (op == "_convolution_mode") return convolution_mode(arguments);
  if (op == "device") {
    Item device = Item::of(IKind::Device);
    device.text = "cpu";
    return device;
  }
  if (op == "format") return Item::of_text(formatted(args));
  if (op == "str") return Item::of_text(args.empty() ? "" : text_of(args[0]));
  if (op == "_native_multi_head_attention") return attention(arguments);
  if (op == "_transformer_encoder_layer_fwd") return encoder_layer(arguments);
  if (op == "wait" && args.size() == 1) return args[0];  // for what was forked, and is there
  if (op == "_weight_norm") return normalised_weight(arguments);
  if (op == "warn" || op == "manual_seed" || op == "_assert") return Item::none();
  // with gradients: fused forms of layers are for running without them
  if (is_one_of(op, {"is_autocast_enabled", "is_grad_enabled", "is_autocast_cpu_enabled", "is_scripting"}))
    return Item::of_bool(op == "is_scripting" || op == "is_grad_enabled");
  if (op == "__is__" || op == "__isnot__") {
    require(args.size() == 2, "{} compares two things", op);
    const Item &a = args[0], &b = args[1];
    const bool same = a.kind == b.kind && (a.is(IKind::Tensor)   ? a.value == b.value && a.number == b.number
                                           : a.is(IKind::Object) ? a.object == b.object
                                           : a.items || b.items  ? a.items == b.items
                                                                 : equal_items(a, b).value_or(false));
    return Item::of_bool(same == (op == "__is__"));
  }
  if (args.empty() || !args[0].is(IKind::Tensor)) return std::nullopt;
  const Item& self = args[0];
  if (op == "nonzero_numpy" || (op == "where" && args.size() == 1)) {  // the places, dimension by dimension
    const Item places = calls_.call("aten", "nonzero", {{self}, {}});
    Item::Items list;
    for (int64_t i = 0; i < self.value->type.rank(); ++i)
      list.push_back(calls_.call("aten", "select", {{places, Item::of_int(1), Item::of_int(i)}, {}}));
    return Item::of_items(IKind::List, std::move(list));
  }
  if (op == "view_copy") {
    const Item* const dtype = find_argument(arguments, 1, "dtype");
    if (dtype != nullptr && dtype->is(IKind::Int))
      return calls_.call_row("aten::view.dtype", {{"self", self}, {"dtype", *dtype}});
  }
  const bool is_dropout = op.find("dropout") != std::string_view::npos && args.size() == 3 && args[2].is(IKind::Bool);
  if (is_dropout && args[2].is_constant() && args[2].integer == 0) return self;
  if (self.number && is_one_of(op, {"add", "sub", "mul", "floor_divide", "div", "remainder", "rsub", "neg"})) {
    // traces compute with sizes as tensors
    Arguments numbers;
    for (const Item& each : args) {
      if (each.is(IKind::Tensor) && !each.number) {
        const Tensor* constant = each.value->producer == nullptr ? each.value->constant.get() : nullptr;
        if (constant == nullptr || constant->count() != 1 || !constant->dims.empty()) break;
        numbers.positional.push_back(is_float(constant->dtype) ? Item::of_float(element_as_double(*constant, 0))
                                                               : Item::of_int(element_as_int(*constant, 0)));
      } else {
        numbers.positional.push_back(each.number ? *each.number : each);
      }
    }
    const Item* rounding = find_argument(arguments, 3, "rounding_mode");
    const bool is_whole = op != "div" || (rounding != nullptr && rounding->is(IKind::Text));
    const bool has_alpha = (op == "add" || op == "sub" || op == "rsub") && numbers.positional.size() > 2;
    if (numbers.positional.size() == args.size() && is_whole &&
        (!has_alpha || (numbers.positional[2].is_constant() && real_of(numbers.positional[2]) == 1))) {
      if (has_alpha) numbers.positional.resize(2);
      std::string_view name = op == "floor_divide" || op == "div" ? "floordiv" : op;
      if (op == "rsub") {
        std::swap(numbers.positional[0], numbers.positional[1]);
        name = "sub";
      }
      if (auto made = of_numbers(name, numbers)) {
        Item tensor = Item::tensor(nullptr);
        tensor.number = std::make_shared<Item>(std::move(*made));
        return tensor;
      }
    }
  }
  if (self.number && is_one_of(op, {"detach", "clone", "contiguous"})) return self;
  if (op == "to" && args.size() >= 2 && args[1].is(IKind::Device)) {  // all is on one device
    const Item* dtype = find_argument(arguments, 2, "dtype");
    if (dtype == nullptr || !dtype->is(IKind::Int)) return self;
    return operate("aten", "to", {{self, *dtype}, {}});
  }
  if (self.number && op == "to" && args.size() > 1 && args[1].is(IKind::Int) && self.number->is(IKind::Int) &&
      dtype_of(args[1].integer) == DType::Int64)
    return self;
  if (is_one_of(op, {"Int", "IntImplicit"})) return converted(self, IKind::Int);
  if (is_one_of(op, {"Float", "FloatImplicit"})) return converted(self, IKind::Float);
  if (op == "Bool") return converted(self, IKind::Bool);
  if (op == "item" || op == "ScalarImplicit") {
    if (self.number) return *self.number;
    const DType dtype = self.value->type.dtype;
    return converted(self, dtype == DType::Bool ? IKind::Bool : is_float(dtype) ? IKind::Float : IKind::Int);
  }
  const Shape& shape = self.number && self.value == nullptr ? Shape() : *self.value->type.shape;
  if (op == "dim" || op == "ndimension") return Item::of_int(static_cast<int64_t>(shape.size()));
  if (op == "len") return calls_.size(self, 0);
  if (op == "size") {
    if (args.size() > 1) return calls_.size(self, args[1].integer);
    Item::Items sizes;
    for (size_t i = 0; i < shape.size(); ++i) sizes.push_back(calls_.size(self, static_cast<int64_t>(i)));
    return Item::of_items(IKind::List, std::move(sizes));
  }
  if (op == "numel") {
    Item count = Item::of_int(1);
    for (size_t i = 0; i < shape.size(); ++i)
      count = arithmetic("mul", count, calls_.size(self, static_cast<int64_t>(i)));
    return count;
  }
  const DType dtype = self.value ? self.value->type.dtype : DType::Int64;
  if (op == "tolist") {
    const IKind kind = dtype == DType::Bool ? IKind::Bool : is_float(dtype) ? IKind::Float : IKind::Int;
    if (shape.empty()) return converted(self, kind);
    const auto count = shape[0].constant();
    if (shape.size() != 1 || !count || *count > kMostListed)
      fail_unsupported("a list of a tensor of shape {}", tonnx::text_of(shape));
    Item::Items list;
    for (int64_t i = 0; i < *count; ++i) {
      if (is_known_tensor(self)) {
        const Tensor& tensor = *self.value->constant;
        list.push_back(kind == IKind::Float  ? Item::of_float(element_as_double(tensor, i))
                       : kind == IKind::Bool ? Item::of_bool(element_as_int(tensor, i) != 0)
                                             : Item::of_int(element_as_int(tensor, i)));
      } else {
        list.push_back(converted(calls_.call("aten", "select", {{self, Item::of_int(0), Item::of_int(i)}, {}}), kind));
      }
    }
    return Item::of_items(IKind::List, std::move(list));
  }
  if (op == "is_floating_point") return Item::of_bool(is_float(dtype));
  if (op == "is_complex") return Item::of_bool(is_complex(dtype));
  if (op == "element_size") return Item::of_int(info(dtype).bits / 8);
  if (is_one_of(op, {"cpu", "cuda", "requires_grad_", "pin_memory", "detach", "detach_", "alias", "lift_fresh"}))
    return self;
  if (op == "zero_") return calls_.call("aten", "fill_", {{self, Item::of_int(0)}, {}});
  return std::nullopt;
}

Item Interpreter::operate(std::string_view library, std::string_view op, const Arguments& arguments) {
  if (is_refused(arguments)) {
    if (!is_computed(library, op) && !ScriptCalls::is_known(library, op) && file_ != nullptr)
      refusals_.add(no_operator(library, op), *file_, line_);
    // a list or a dict that something is put into is not known any more
    const bool fills = is_one_of(op, {"append", "extend", "insert", "_set_item", "pop", "update"});
    if (fills && !arguments.positional.empty() && arguments.positional[0].items)
      arguments.positional[0].items->push_back(Item::refused());
    return Item::refused();
  }
  if (library == "prim") {
    if (auto made = of_prim(op, arguments)) return *made;
    throw Error(ErrorKind::Unsupported, no_operator("prim", op));
  }
  if (library == "aten") {
    if (auto made = of_older(op, arguments)) return *made;
    if (auto made = of_tensor(op, arguments)) return *made;
    if (auto made = of_literals(op, arguments)) return *made;
    if (auto made = of_numbers(op, arguments)) return *made;
    if (auto made = of_container(op, arguments)) return *made;
  }
  if (!arguments.positional.empty() && arguments.positional[0].is(IKind::List) && !arguments.positional[0].items) {
    const Item all = Item::tensor(arguments.positional[0].value);
    const Item* dim = find_argument(arguments, 1, "dim");
    const bool is_first = dim == nullptr || (dim->is(IKind::Int) && dim->integer == 0);
    if (op == "stack" && is_first) return all;
    if (op == "cat" && is_first) return calls_.call("aten", "flatten", {{all, Item::of_int(0), Item::of_int(1)}, {}});
    if (op == "stack") return calls_.call("aten", "movedim", {{all, Item::of_int(0), *dim}, {}});
    if (op == "cat") {
      const Item moved = calls_.call("aten", "movedim", {{all, Item::of_int(0), *dim}, {}});
      require(dim->integer >= 0, "tensors of a loop are joined along dimension {}", dim->integer);
      return calls_.call("aten", "flatten", {{moved, *dim, Item::of_int(dim->integer + 1)}, {}});
    }
  }
  return calls_.call(library, op, arguments);
}

}  // namespace tonnx::torchscript
