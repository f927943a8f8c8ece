// attribute.h - the constant arguments of a node: attributes in ONNX, every argument in aten.
#pragma once
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "ir/tensor.h"
#include "ir/type.h"

namespace tonnx {

class Graph;
using GraphPtr = std::shared_ptr<Graph>;
using SparseTensorPtr = std::shared_ptr<const SparseTensor>;

/// Stands in an aten argument for the node's input of that index, so that all uses of values are inputs.
struct Operand {
  uint32_t index;
  bool operator==(const Operand&) const = default;
};

struct AttrValue;
using AttrList = std::vector<AttrValue>;

struct AttrValue
    : std::variant<std::monostate, bool, int64_t, double, std::string, DType, Operand, Type, TensorPtr, SparseTensorPtr,
                   GraphPtr, std::vector<int64_t>, std::vector<double>, std::vector<std::string>, AttrList> {
  using variant::variant;
  // Out of line, as those of the types below: they are many, and are needed everywhere.
  AttrValue() noexcept;
  AttrValue(const AttrValue& other);
  AttrValue(AttrValue&& other) noexcept;
  AttrValue& operator=(const AttrValue& other);
  AttrValue& operator=(AttrValue&& other) noexcept;
  ~AttrValue();

  template <class T>
  const T* get() const {
    return std::get_if<T>(static_cast<const variant*>(this));
  }
  template <class T>
  T* get() {
    return std::get_if<T>(static_cast<variant*>(this));
  }
  bool is_none() const { return index() == 0; }
};

/// What ONNX calls the type of an attribute; its own numbers.
enum class AttrType : uint8_t {
  None = 0,
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  Type = 13,
  Types = 14,
};

struct Attribute {
  std::string name;
  AttrValue value;
  AttrType type = AttrType::None;  // None: follows from the value
  std::string reference;           // in a function: the attribute of the caller that gives the value
  std::string doc;

  Attribute();
  Attribute(std::string_view name, AttrValue value, AttrType type = AttrType::None, std::string_view reference = {},
            std::string_view doc = {});
  Attribute(const Attribute& other);
  Attribute(Attribute&& other) noexcept;
  Attribute& operator=(const Attribute& other);
  Attribute& operator=(Attribute&& other) noexcept;
  ~Attribute();
};

/// The type that ONNX gives such a value; None for what only aten has, and for an empty list.
AttrType attr_type_of(const AttrValue& value);

}  // namespace tonnx

extern template class std::vector<tonnx::AttrValue>;
extern template class std::vector<tonnx::Attribute>;
