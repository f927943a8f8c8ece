// tensors.cpp - makes tensors of the calls that stand for them in pickles of PyTorch.
#include "formats/pth/tensors.h"

#include "base/error.h"

namespace tonnx {
namespace {

using Kind = PickleValue::Kind;

struct StorageClass {
  std::string_view name;
  DType dtype;
};
constexpr StorageClass kStorageClasses[] = {
    {"FloatStorage", DType::Float32},
    {"DoubleStorage", DType::Float64},
    {"HalfStorage", DType::Float16},
    {"BFloat16Storage", DType::BFloat16},
    {"ByteStorage", DType::UInt8},
    {"CharStorage", DType::Int8},
    {"ShortStorage", DType::Int16},
    {"IntStorage", DType::Int32},
    {"LongStorage", DType::Int64},
    {"BoolStorage", DType::Bool},
    {"ComplexFloatStorage", DType::Complex64},
    {"ComplexDoubleStorage", DType::Complex128},
    {"UInt16Storage", DType::UInt16},  // the others as TorchScript writes them
    {"UInt32Storage", DType::UInt32},
    {"UInt64Storage", DType::UInt64},
    {"Float8_e5m2Storage", DType::Float8E5M2},
    {"Float8_e4m3fnStorage", DType::Float8E4M3FN},
    {"Float8_e5m2fnuzStorage", DType::Float8E5M2FNUZ},
    {"Float8_e4m3fnuzStorage", DType::Float8E4M3FNUZ},
    {"Float8_e8m0fnuStorage", DType::Float8E8M0},
};

DType dtype_of_global(const PickleValue& value) {
  if (value.is(Kind::Global) && value.module == "torch") {
    const auto dtype = find_dtype(value.text);
    if (dtype && info(*dtype).torch == value.text) return *dtype;
  }
  if (value.is(Kind::Global)) fail_unsupported("tensors of type {} are not supported", global_name(value));
  fail_invalid("its type is not given");
}

int64_t int_of(const PickleValue& value) {
  require(value.is(Kind::Int), "a size, stride or offset of it is no integer");
  return value.integer;
}

bool bool_of(const PickleValue& value) {
  require(value.is(Kind::Bool), "requires_grad of it is neither True nor False");
  return value.integer != 0;
}

std::vector<int64_t> ints_of(const PickleValue& value) {
  // torch.Size is written as a call with one tuple
  if (value.is_call_of("torch", "Size") && value.arguments->items.size() == 1) {
    return ints_of(*value.arguments->items.front());
  }
  require(value.is(Kind::Tuple) || value.is(Kind::List), "its sizes or strides are no list");
  std::vector<int64_t> result;
  result.reserve(value.items.size());
  for (const PickleValue* item : value.items) result.push_back(int_of(*item));
  return result;
}

}  // namespace

std::string global_name(const PickleValue& value) { return std::string(value.module) + "." + std::string(value.text); }

bool PickledTensors::is_tensor(const PickleValue& value) {
  if (!value.is(Kind::Object) || !value.callee->is(Kind::Global)) return false;
  const PickleValue& callee = *value.callee;
  return callee.is_global("torch._tensor", "_rebuild_from_type_v2") ||
         (callee.module == "torch._utils" &&
          (callee.text == "_rebuild_tensor_v2" || callee.text == "_rebuild_tensor_v3" ||
           callee.text == "_rebuild_parameter" || callee.text == "_rebuild_parameter_with_state"));
}

std::pair<DType, std::vector<int64_t>> PickledTensors::type_of(const PickleValue& value) {
  const std::vector<PickleValue::Item>& args = value.arguments->items;
  const bool is_plain = value.callee->is_global("torch._utils", "_rebuild_tensor_v2") && args.size() >= 6 &&
                        args[0]->is(Kind::Persistent) && args[0]->callee->is(Kind::Tuple) &&
                        args[0]->callee->items.size() >= 5 && args[0]->callee->items[1]->is(Kind::Global);
  if (!is_plain) fail_unsupported("it is made by {}, and no plain tensor", global_name(*value.callee));
  const PickleValue& type = *args[0]->callee->items[1];
  for (const StorageClass& known : kStorageClasses) {
    if (type.is_global("torch", known.name)) return {known.dtype, ints_of(*args[2])};
  }
  fail_unsupported("its storage is a {}", global_name(type));
}

PthTensor PickledTensors::tensor_of(const PickleValue& value) {
  if (!value.is(Kind::Object)) fail_unsupported("it is no tensor");
  return rebuilt(*value.callee, *value.arguments);
}

PthTensor PickledTensors::rebuilt(const PickleValue& callee, const PickleValue& arguments) {
  require(callee.is(Kind::Global) && arguments.is(Kind::Tuple), "it is described in no known way");
  const std::vector<PickleValue::Item>& args = arguments.items;
  const auto need = [&](size_t count) {
    require(args.size() >= count, "{} got {} arguments", global_name(callee), args.size());
  };
  if (callee.is_global("torch._utils", "_rebuild_tensor_v2")) {
    need(6);
    return plain(args, nullptr, args.size() > 6 ? args[6] : nullptr);
  }
  if (callee.is_global("torch._utils", "_rebuild_tensor_v3")) {
    need(7);
    return plain(args, args[6], args.size() > 7 ? args[7] : nullptr);
  }
  if (callee.is_global("torch._utils", "_rebuild_parameter") ||
      callee.is_global("torch._utils", "_rebuild_parameter_with_state")) {
    need(2);
    PthTensor result = tensor_of(*args[0]);
    result.is_param = true;
    result.requires_grad = bool_of(*args[1]);
    return result;
  }
  if (callee.is_global("torch._tensor", "_rebuild_from_type_v2")) {  // a tensor that was given attributes
    need(3);
    const bool is_param = args[1]->is_global("torch.nn.parameter", "Parameter");
    if (is_param || args[1]->is_global("torch", "Tensor") || args[1]->is_global("torch.nn.parameter", "Buffer")) {
      PthTensor result = rebuilt(*args[0], *args[2]);
      result.is_param |= is_param;
      return result;
    }
    if (args[1]->is(Kind::Global)) fail_unsupported("it is a {}", global_name(*args[1]));
  }
  fail_unsupported("it is made by {}, and no plain tensor", global_name(callee));
}

PthTensor PickledTensors::plain(const std::vector<PickleValue::Item>& args, const PickleValue* dtype,
                                const PickleValue* bits) {
  if (bits != nullptr && (!bits->is(Kind::None)) && !(bits->is(Kind::Dict) && bits->entries.empty())) {
    fail_unsupported("it is stored conjugated or negated");
  }
  Strided strided;
  std::optional<DType> stored;
  const Bytes storage = storage_of(*args[0], stored);
  require(dtype != nullptr || stored.has_value(), "its type is not given");
  strided.dtype = dtype != nullptr ? dtype_of_global(*dtype) : *stored;
  strided.offset = int_of(*args[1]);
  strided.sizes = ints_of(*args[2]);
  strided.strides = ints_of(*args[3]);
  return {tensors_.get(storage, std::move(strided)), false, bool_of(*args[4])};
}

/// The persistent id is ('storage', class, key, device, count).
Bytes PickledTensors::storage_of(const PickleValue& value, std::optional<DType>& dtype) {
  const bool is_known = value.is(Kind::Persistent) && value.callee->is(Kind::Tuple) &&
                        value.callee->items.size() >= 5 && value.callee->items[0]->is(Kind::String) &&
                        value.callee->items[0]->text == "storage" && value.callee->items[1]->is(Kind::Global) &&
                        value.callee->items[2]->is(Kind::String) && value.callee->items[4]->is(Kind::Int);
  require(is_known, "its storage is described in no known way");
  const PickleValue& type = *value.callee->items[1];
  for (const StorageClass& known : kStorageClasses) {
    if (type.is_global("torch", known.name)) dtype = known.dtype;
  }
  if (!dtype && type.text != "UntypedStorage") fail_unsupported("its storage is a {}", global_name(type));
  const std::string name = folder_ + std::string(value.callee->items[2]->text);
  const ZipEntry* const entry = zip_.find(name);
  require(entry != nullptr, "its storage '{}' is missing", name);
  const int64_t size = byte_size(dtype.value_or(DType::UInt8), value.callee->items[4]->integer);
  require(size >= 0 && static_cast<uint64_t>(size) <= entry->size, "its storage '{}' has {} of {} bytes", name,
          entry->size, size);
  const auto [found, is_new] = storages_.try_emplace(entry);
  if (is_new) found->second = zip_.read(*entry);
  return found->second;
}

}  // namespace tonnx
