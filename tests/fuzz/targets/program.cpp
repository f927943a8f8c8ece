// program.cpp - programs of PyTorch: the archive, and its program along every route.
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "convert/compilation.h"
#include "formats/onnx/onnx.h"
#include "formats/pt2/dtype.h"
#include "fuzz/mutate.h"
#include "fuzz/targets/targets.h"
#include "ir/clone.h"

namespace tonnx::fuzz {
namespace {

using Json = rapidjson::Value;

const Json* find(const Json* json, const char* key) {
  if (json == nullptr || !json->IsObject()) return nullptr;
  const auto at = json->FindMember(key);
  return at == json->MemberEnd() ? nullptr : &at->value;
}

/// The tensor that the program declares, all zeros; null where it would be large, or is none.
TensorPtr zeros_of(const Json* meta) {
  const Json *dtype = find(meta, "dtype"), *sizes = find(meta, "sizes");
  if (dtype == nullptr || !dtype->IsInt64() || sizes == nullptr || !sizes->IsArray()) return nullptr;
  auto tensor = std::make_shared<Tensor>();
  tensor->dtype = dtype_of_pt2(dtype->GetInt64());
  double count = 1;
  for (const auto& size : sizes->GetArray()) {
    const Json* number = find(&size, "as_int");
    if (number == nullptr || !number->IsInt64() || number->GetInt64() < 0) return nullptr;
    tensor->dims.push_back(number->GetInt64());
    count *= static_cast<double>(number->GetInt64());
  }
  if (count > 1 << 20) return nullptr;
  tensor->data = Bytes::own(std::vector<uint8_t>(static_cast<size_t>(byte_size(tensor->dtype, tensor->count()))));
  return tensor;
}

/// The weights that a program names: only the program itself is damaged.
void add_weights(const Json& program, Pt2Archive& archive) {
  const Json* module = find(&program, "graph_module");
  const Json* tensors = find(find(module, "graph"), "tensor_values");
  const Json* specs = find(find(module, "signature"), "input_specs");
  if (specs == nullptr || !specs->IsArray()) return;
  for (const auto& spec : specs->GetArray()) {
    if (!spec.IsObject() || spec.MemberCount() != 1) continue;
    const Json* kind = &spec.MemberBegin()->value;
    for (const char* key : {"parameter_name", "buffer_name", "tensor_constant_name"}) {
      const Json *weight = find(kind, key), *name = find(find(kind, "arg"), "name");
      if (weight == nullptr || !weight->IsString() || name == nullptr || !name->IsString()) continue;
      const TensorPtr tensor = zeros_of(find(tensors, name->GetString()));
      if (tensor == nullptr) continue;
      archive.weights[weight->GetString()] = {tensor, true, false};
      archive.constants[weight->GetString()] = {tensor, false, false};
    }
  }
}

/// How many of the two ways, to ONNX and to code, went through.
int convert_archive(const Pt2Archive& archive) {
  int done = tried([&] {
    Program program = read_program(archive);
    Compilation compilation(program, Dialect::Script);
    compilation.bring_to(Dialect::Stored);
    write_onnx_bytes(compilation.model());
  });
  done += tried([&] {
    Program program = read_program(archive);
    Program other{clone(program.model), program.output_names};
    Compilation(program, Dialect::Script).python({});
    Compilation(other, Dialect::Script).write(scratch_file("program.pt"));
  });
  return done;
}

}  // namespace

void read_archive(std::string_view bytes) {
  tried([&] {
    const Pt2Archive archive = read_pt2_archive(Bytes::own(std::string(bytes)));
    for (const auto* tensors : {&archive.weights, &archive.constants}) {
      for (const auto& [name, tensor] : *tensors) {
        const auto expected = static_cast<size_t>(byte_size(tensor.tensor->dtype, tensor.tensor->count()));
        ensure(tensor.tensor->data.size() == expected, "a tensor has another size than it says");
        choice_of(tensor.tensor->data.view());  // touches every byte
      }
    }
    for (const auto& [name, content] : archive.extra) choice_of(content.view());
    convert_archive(archive);
  });
}

int convert_program_all_ways(const std::string& json) {
  int done = 0;
  tried([&] {
    Pt2Archive archive;
    archive.program = Bytes::own(json);
    add_weights(parse_json(json, "a program"), archive);
    done = convert_archive(archive);
  });
  return done;
}

void route_program(std::string_view json) { convert_program_all_ways(std::string(json)); }

/// Texts and numbers of the JSON: one of them takes the place of another, or becomes something odd.
std::string damaged_program(const std::string& json, const std::string& donor, unsigned seed) {
  Random random(seed);
  if (random() % 20 == 0) return mutated(json, {donor}, random);
  std::vector<std::pair<size_t, size_t>> texts, numbers;
  for (size_t i = 0; i < json.size(); ++i) {
    size_t end = i;
    if (json[i] == '"') {
      for (end = i + 1; end < json.size() && json[end] != '"'; ++end) end += json[end] == '\\';
      texts.emplace_back(i, std::min(++end, json.size()) - i);
    } else if ((json[i] >= '0' && json[i] <= '9') || json[i] == '-') {
      while (end < json.size() && json.find_first_of("0123456789-.e", end) == end) ++end;
      numbers.emplace_back(i, end - i);
    } else {
      continue;
    }
    i = end - 1;
  }
  constexpr const char* kNumbers[] = {
      "0", "1", "2", "3", "-1", "-2", "7", "12", "99", "1e30", "9223372036854775807", "-9223372036854775808"};
  std::string result = json;
  for (unsigned count = 1 + random() % 2; count > 0; --count) {
    const bool is_text = random() % 2 == 0;
    const auto& places = is_text ? texts : numbers;
    if (places.empty()) continue;
    const auto [at, size] = places[random() % places.size()];
    const auto [from, length] = places[random() % places.size()];
    if (at + size > result.size()) continue;
    const bool is_odd = !is_text && random() % 2 == 0;
    result.replace(at, size, is_odd ? kNumbers[random() % std::size(kNumbers)] : json.substr(from, length));
  }
  return result;
}

}  // namespace tonnx::fuzz
