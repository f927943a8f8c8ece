// api.cpp - the public C++ interface over the internals.
#include <tonnx/tonnx.h>

#include "base/error.h"
#include "convert/pipeline.h"
#include "formats/onnx/onnx.h"
#include "ir/text.h"

namespace tonnx {
namespace {

template <class Body>
auto translated(Body&& body) {
  try {
    return body();
  } catch (const Error& e) {
    throw ConversionError(static_cast<ConversionError::Kind>(e.kind()), e.what());
  }
}

std::vector<std::string> names_of(const std::vector<Value*>& values) {
  std::vector<std::string> names;
  for (const Value* value : values) names.push_back(value->name);
  return names;
}

}  // namespace

struct OnnxModel::Content {
  Model model;
};

OnnxModel::OnnxModel(std::unique_ptr<Content> content) : content_(std::move(content)) {}
OnnxModel::OnnxModel(OnnxModel&&) noexcept = default;
OnnxModel& OnnxModel::operator=(OnnxModel&&) noexcept = default;
OnnxModel::~OnnxModel() = default;

const char* version() { return TONNX_VERSION; }

OnnxModel OnnxModel::read(const std::string& path) {
  return translated([&] { return OnnxModel(std::make_unique<Content>(Content{read_onnx(path)})); });
}

size_t OnnxModel::node_count() const { return content_->model.graph->node_count(); }
int64_t OnnxModel::opset() const { return content_->model.opset(""); }
std::vector<std::string> OnnxModel::input_names() const {
  return names_of(inputs_without_values(*content_->model.graph));
}
std::vector<std::string> OnnxModel::output_names() const { return names_of(content_->model.graph->outputs()); }
std::string OnnxModel::text() const { return print(content_->model); }

void convert(const std::string& source, const std::string& target, const Options& options) {
  translated([&] {
    convert_file(source, target,
                 {.opset = options.opset,
                  .input_shapes = options.input_shapes,
                  .external_data = options.external_data,
                  .flat = options.flat,
                  .source_lines = options.source_lines,
                  .allow_ops = AllowedOps(options.allow_ops),
                  .weights = options.weights,
                  .part = options.part,
                  .progress = nullptr});
  });
}

}  // namespace tonnx
