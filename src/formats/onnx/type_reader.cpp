// type_reader.cpp - reads the declared types of values.
#include "formats/onnx/type_reader.h"

#include "base/error.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/message.h"

namespace tonnx::onnx {
namespace {

/// A dimension that is not said gets a symbol of its own later, in inference; here it is the empty symbol.
Dim read_dim(const Bytes& bytes) {
  Dim dim = Dim::symbol("");
  Message message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case dimension::dim_value: {
        const int64_t value = message.integer();
        if (value >= 0) dim = Dim(value);  // some exporters write -1 for what is not known
        break;
      }
      case dimension::dim_param: {
        const std::string_view name = message.view();
        if (!name.empty()) dim = Dim::symbol(name);
        break;
      }
      default: message.skip();
    }
  }
  return dim;
}

Shape read_shape(const Bytes& bytes) {
  Shape result;
  Message message(bytes);
  while (message.next()) {
    if (message.field() == shape::dim && message.is_bytes()) {
      result.push_back(read_dim(message.bytes()));
    } else {
      message.skip();
    }
  }
  return result;
}

DType dtype_of(int64_t number) {
  const auto dtype = find_dtype(number);
  require(dtype.has_value() || number == 0, "{} is not the number of an element type", number);
  return dtype.value_or(DType::Undefined);
}

Type read_tensor_type(const Bytes& bytes, Type::Kind kind) {
  Type type;
  type.kind = kind;
  Message message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case tensor_type::elem_type: type.dtype = dtype_of(message.integer()); break;
      case tensor_type::shape: type.shape = read_shape(message.bytes()); break;
      default: message.skip();
    }
  }
  return type;
}

/// Sequence and optional have their element in field 1, a map its key there and its value in field 2.
Type read_container_type(const Bytes& bytes, Type::Kind kind, int depth) {
  Type type;
  type.kind = kind;
  Message message(bytes);
  while (message.next()) {
    const bool is_key = kind == Type::Kind::Map && message.field() == map_type::key_type;
    if (is_key) {
      type.dtype = dtype_of(message.integer());
    } else if (message.field() == (kind == Type::Kind::Map ? map_type::value_type : 1U)) {
      type.elements = {read_type(message.bytes(), depth + 1)};
    } else {
      message.skip();
    }
  }
  return type;
}

}  // namespace

Type read_type(const Bytes& bytes, int depth) {
  require(depth < kMaxNesting, "types are nested more than {} deep", kMaxNesting);
  Type result;
  Message message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case type::tensor: result = read_tensor_type(message.bytes(), Type::Kind::Tensor); break;
      case type::sparse_tensor: result = read_tensor_type(message.bytes(), Type::Kind::SparseTensor); break;
      case type::sequence: result = read_container_type(message.bytes(), Type::Kind::Sequence, depth); break;
      case type::optional: result = read_container_type(message.bytes(), Type::Kind::Optional, depth); break;
      case type::map: result = read_container_type(message.bytes(), Type::Kind::Map, depth); break;
      case type::opaque:
        message.skip();
        result.kind = Type::Kind::Opaque;
        break;
      default: message.skip();
    }
  }
  return result;
}

std::pair<std::string, Type> read_value_info(const Bytes& bytes) {
  std::pair<std::string, Type> result;
  Bytes type_bytes;
  Message message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case value_info::name: result.first = message.text(); break;
      case value_info::type: type_bytes = message.bytes(); break;
      default: message.skip();
    }
  }
  in_context([&] { return fmt::format("reading the type of '{}'", result.first); },
             [&] { result.second = read_type(type_bytes); });
  return result;
}

}  // namespace tonnx::onnx
