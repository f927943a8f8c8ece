// write_through_view.cpp - views made again, and what was written to a view put back into what it looks at.
#include <algorithm>

#include "base/error.h"
#include "passes/functionalize/views.h"

namespace tonnx {
namespace {

using Kind = View::Kind;

/// The sizes for reshape, where not more than one of them has to be found out.
std::optional<IntArgs> find_sizes(const Type& type) {
  if (!type.shape) return std::nullopt;
  IntArgs sizes;
  bool has_zero = false, has_unknown = false;
  for (const Dim& dim : *type.shape) {
    const auto number = dim.constant();
    if (!number && has_unknown) return std::nullopt;
    has_unknown = has_unknown || !number;
    has_zero = has_zero || number == 0;
    sizes.emplace_back(number.value_or(-1));
  }
  return has_zero && has_unknown ? std::nullopt : std::optional(std::move(sizes));
}

/// as_strided means memory that lies row by row.
Value* row_by_row(const View& view, Value* value, const Type& type, AtenWriter& writer) {
  if (view.rule != ViewRule::AsStrided) return value;
  AtenCall call("contiguous", "", view.call.like);
  call.with("self", value);
  return writer.add(call, type, "contiguous");
}

Value* reshaped(Value* value, const IntArgs& sizes, Type type, const Node* like, AtenWriter& writer) {
  AtenCall call("reshape", "", like);
  call.with("self", value).with("shape", sizes);
  return writer.add(call, std::move(type), "reshape");
}

/// Of elements that are there several times the first: all of them have got the same value.
Value* unexpanded(const View& view, Value* part, const Type& type, AtenWriter& writer) {
  const Node* like = view.call.like;
  Type now = view.type;
  while (now.shape->size() > type.shape->size()) {
    now.shape->erase(now.shape->begin());
    AtenCall call("select", "int", like);
    call.with("self", part).with("dim", IntArg(0)).with("index", IntArg(0));
    part = writer.add(call, now, "select");
  }
  for (size_t d = 0; d < now.shape->size(); ++d) {
    if (!(*type.shape)[d].is(1) || (*now.shape)[d].is(1)) continue;
    (*now.shape)[d] = Dim(1);
    AtenCall call("slice", "Tensor", like);
    call.with("self", part)
        .with("dim", IntArg(static_cast<int64_t>(d)))
        .with("start", IntArg(0))
        .with("end", IntArg(1));
    part = writer.add(call, now, "slice");
  }
  return part;
}

/// Counts the elements of the former tensor, looks at the numbers as the view does, and writes to these places.
Value* written_windows(const View& view, Value* part, Value* former, const Type& type, AtenWriter& writer) {
  const Node* like = view.call.like;
  const auto flat_type = [](DType dtype, const Type& of) {
    Dim count = 1;
    for (const Dim& dim : *of.shape) count = count * dim;
    return Type::tensor(dtype, Shape{count});
  };
  const IntArgs sizes = writer.sizes(former, type, like), all = IntArgs{-1};
  Value* flat = reshaped(former, all, flat_type(type.dtype, type), like, writer);
  const Type counted = flat_type(DType::Int64, type);
  AtenCall ones("ones_like", "", like), sum("cumsum", "", like), less("sub", "Scalar", like);
  ones.with("self", flat).with("dtype", AttrValue(DType::Int64));
  sum.with("self", writer.add(ones, counted, "ones")).with("dim", IntArg(0));
  less.with("self", writer.add(sum, counted, "count")).with("other", IntArg(1));
  Value* numbers =
      reshaped(writer.add(less, counted, "places"), sizes, Type::tensor(DType::Int64, *type.shape), like, writer);
  AtenCall look = view.call;
  look.inputs[view.viewed] = numbers;
  Value* places = writer.add(look, Type::tensor(DType::Int64, *view.type.shape), "windows");
  AtenCall scatter("scatter", "src", like);
  scatter.with("self", flat).with("dim", IntArg(0));
  scatter.with("index", reshaped(places, all, flat_type(DType::Int64, view.type), like, writer));
  scatter.with("src", reshaped(part, all, flat_type(type.dtype, view.type), like, writer));
  return reshaped(writer.add(scatter, flat->type, "scatter"), sizes, type, like, writer);
}

}  // namespace

std::string key_of(const AtenCall& call) {
  std::string key = fmt::format("{}.{}", call.op.view(), call.overload.view());
  const auto add = [&](const AttrValue& value, auto& self) -> bool {
    if (const auto* n = value.get<int64_t>()) {
      key += fmt::format(" {}", *n);
    } else if (const auto* at = value.get<Operand>()) {
      key += fmt::format(" {}", fmt::ptr(call.inputs[at->index]));
    } else if (const auto* list = value.get<std::vector<int64_t>>()) {
      for (const int64_t n : *list) key += fmt::format(" {}", n);
    } else if (const auto* mixed = value.get<AttrList>()) {
      return std::all_of(mixed->begin(), mixed->end(), [&](const AttrValue& item) { return self(item, self); });
    } else {
      return value.is_none();
    }
    return true;
  };
  for (const Attribute& attribute : call.attributes) {
    key += fmt::format(" {}", attribute.name);
    if (!add(attribute.value, add)) return {};
  }
  return key;
}

Value* make_view(const View& view, Value* of, AtenWriter& writer) {
  AtenCall call = view.call;
  call.inputs[view.viewed] = row_by_row(view, of, of->type, writer);
  return writer.add(call, view.type, call.op.view());
}

bool needs_former(const View& view, const Type& type) {
  return view.kind == Kind::Scatter || view.kind == Kind::Windows || (view.kind == Kind::Reshape && !find_sizes(type));
}

Value* scatter_view(const View& view, Value* part, Value* former, const Type& type, AtenWriter& writer) {
  const Node* like = view.call.like;
  AtenCall call("reshape", "", like);
  switch (view.kind) {
    case Kind::Merged:
    case Kind::Same: return part;
    case Kind::Scatter: {
      call = view.call;
      call.op = fmt::format("{}_scatter", view.call.op.view());
      call.overload = "";
      call.inputs[view.viewed] = row_by_row(view, former, type, writer);
      const auto self = std::find_if(call.attributes.begin(), call.attributes.end(),
                                     [](const Attribute& a) { return a.name == "self"; });
      ensure(self != call.attributes.end(), "a view looks at nothing");
      Attribute src{"src", Operand{static_cast<uint32_t>(call.inputs.size())}, AttrType::None, {}, {}};
      call.attributes.insert(self + 1, std::move(src));
      call.inputs.push_back(part);
      break;
    }
    case Kind::Reshape: {
      const auto sizes = find_sizes(type);
      call.with("self", part).with("shape", sizes ? *sizes : writer.sizes(former, type, like));
      break;
    }
    case Kind::Permute: {
      std::vector<int64_t> inverse(view.dims.size()), moves;
      for (size_t i = 0; i < inverse.size(); ++i) {
        inverse[static_cast<size_t>(view.dims[i])] = static_cast<int64_t>(i);
        if (view.dims[i] != static_cast<int64_t>(i)) moves.push_back(static_cast<int64_t>(i));
      }
      if (moves.empty()) return part;
      call.op = moves.size() == 2 ? "transpose" : "permute";
      call.with("self", part);
      if (moves.size() == 2) {
        call.overload = "int";
        call.with("dim0", IntArg(moves[0])).with("dim1", IntArg(moves[1]));
      } else {
        call.with("dims", AttrValue(std::move(inverse)));
      }
      break;
    }
    case Kind::Squeeze: {
      Type partial = view.type;
      for (const int64_t dim : view.dims) {
        AtenCall next("unsqueeze", "", like);
        next.with("self", part).with("dim", IntArg(dim));
        partial.shape->insert_at(dim, Dim(1));
        part = writer.add(next, partial, "unsqueeze");
      }
      return part;
    }
    case Kind::Expanded: return unexpanded(view, part, type, writer);
    case Kind::Windows: return written_windows(view, part, former, type, writer);
    case Kind::Unsqueeze:
      call.op = "squeeze";
      call.overload = "dim";
      call.with("self", part).with("dim", IntArg(view.dims[0]));
      break;
    default: fail_unsupported("a write through {} is not supported", view.call.op.view());
  }
  return writer.add(call, type, call.op.view());
}

}  // namespace tonnx
