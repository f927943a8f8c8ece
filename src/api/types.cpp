// types.cpp - element types, types and formats of the interface as those inside, and back.
#include <algorithm>

#include "api/internal.h"

namespace tonnx::v1 {

static_assert(static_cast<int>(DType::Float6E3M2) + 1 == core::kDTypeCount);

std::string_view name_of(DType dtype) { return core::name_of(core_of(dtype)); }
int bits_of(DType dtype) { return core::info(core_of(dtype)).bits; }
std::optional<DType> find_dtype(std::string_view name) {
  const auto found = core::find_dtype(name);
  return found ? std::optional(public_of(*found)) : std::nullopt;
}

std::string_view torch_name_of(DType dtype) { return core::info(core_of(dtype)).torch; }
std::optional<DType> find_torch_dtype(std::string_view name) {
  for (int i = 1; i < core::kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!name.empty() && torch_name_of(dtype) == name) return dtype;
  }
  return std::nullopt;
}

core::Type core_of(const Type& type) {
  core::Type result;
  result.kind = static_cast<core::Type::Kind>(type.kind);
  result.dtype = core_of(type.dtype);
  if (type.shape) {
    result.shape.emplace();
    for (const Dim& dim : *type.shape)
      result.shape->push_back(dim.is_number() ? core::Dim(dim.number) : core::Dim::symbol(dim.text));
  }
  for (const Type& element : type.elements) result.elements.push_back(core_of(element));
  return result;
}
static_assert(static_cast<int>(Type::Kind::IntList) == static_cast<int>(core::Type::Kind::IntList));

Type public_of(const core::Type& type) {
  Type result;
  result.kind = static_cast<Type::Kind>(type.kind);
  result.dtype = public_of(type.dtype);
  if (type.shape) {
    result.shape.emplace();
    for (const core::Dim& dim : *type.shape) {
      const auto number = dim.constant();
      result.shape->push_back(number ? Dim(*number) : Dim(dim.text()));
    }
  }
  for (const core::Type& element : type.elements) result.elements.push_back(public_of(element));
  return result;
}

bool Dim::operator==(const Dim& other) const { return number == other.number && text == other.text; }
Type Type::tensor(DType dtype, std::vector<Dim> shape) { return {Kind::Tensor, dtype, std::move(shape), {}}; }
bool Type::operator==(const Type& other) const {
  return kind == other.kind && dtype == other.dtype && shape == other.shape && elements == other.elements;
}

std::string text_of(const Type& type) { return core::text_of(core_of(type)); }

std::map<std::string, std::vector<int64_t>> map_of(const InputShapes& shapes) {
  std::map<std::string, std::vector<int64_t>> result;
  for (const auto& shape : shapes)
    core::require(result.insert(shape).second, "input '{}' is given two shapes", shape.first);
  return result;
}

core::Limits core_of(const Limits& limits) {
  core::Limits result;
  for (const auto& [name, value] : limits) result.set(name, value);
  return result;
}

namespace {

constexpr std::pair<Format, core::Format> kFormats[] = {
    {Format::Onnx, core::Format::Onnx},
    {Format::TorchExport, core::Format::Pt2},
    {Format::TorchScript, core::Format::TorchScript},
    {Format::Python, core::Format::Python},
    {Format::SafeTensors, core::Format::Safetensors},
    {Format::Pth, core::Format::Pth},
};

}  // namespace

core::Format core_of(Format format) {
  for (const auto& [outer, inner] : kFormats) {
    if (outer == format) return inner;
  }
  core::fail_invalid("there is no format {}", static_cast<int>(format));
}

Format public_of(core::Format format) {
  for (const auto& [outer, inner] : kFormats) {
    if (inner == format) return outer;
  }
  core::fail_invalid("a module in memory is no file");
}

std::string name_for(Format format) { return "model" + std::string(core::ending_of(core_of(format))); }

}  // namespace tonnx::v1
