// model.cpp - the versions that a model imports.
#include "ir/model.h"

namespace tonnx {

Model::Model() = default;
Model::Model(Model&& other) noexcept = default;
Model& Model::operator=(Model&& other) noexcept = default;
Model::~Model() = default;

int64_t imported_version(const Opsets& opsets, std::string_view domain) {
  for (const auto& [name, version] : opsets) {
    if (name == domain) return version;
  }
  return 1;
}

int64_t Model::opset(std::string_view wanted) const {
  for (const auto& [name, version] : opsets) {
    if (name == wanted || (wanted.empty() && name == "ai.onnx")) return version;
  }
  return 0;
}

}  // namespace tonnx
