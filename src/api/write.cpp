// write.cpp - models of the interface as files, as bytes, as code, and as one another.
#include "api/internal.h"
#include "base/budget.h"
#include "convert/opset.h"
#include "convert/weights.h"
#include "formats/onnx/onnx.h"
#include "ir/clone.h"
#include "ir/transposed.h"

namespace tonnx::v1 {

core::ConvertOptions core_of(const WriteOptions& options) {
  core::ConvertOptions result;
  result.opset = options.opset;
  result.external_data = options.external_data;
  result.source_lines = options.source_lines;
  for (const DynamicDim& dim : options.dynamic)
    result.dynamic.push_back({dim.input, dim.axis, dim.name, dim.low, dim.high});
  result.allow_ops = core::AllowedOps(options.allow_ops);
  result.flat = options.flat;
  const ExportOptions& exporting = options.exporting;
  result.exporting.export_params = exporting.has_weights;
  result.exporting.keep_initializers_as_inputs = exporting.weights_are_inputs;
  result.exporting.raising.training = exporting.is_training;
  result.exporting.raising.keeps_weights = !exporting.folds;
  result.exporting.custom_opsets.insert(exporting.custom_opsets.begin(), exporting.custom_opsets.end());
  if (options.registry != nullptr) result.custom = custom_of(*options.registry);
  if (options.compare) {
    result.compare = [compare = options.compare](const std::string& source, const std::string& target) {
      return callers([&] { return compare(source, target); });
    };
  }
  if (options.on_warning)
    result.warn = [warn = options.on_warning](const std::string& text) { callers([&] { warn(text); }); };
  return result;
}

core::ConvertOptions core_of(const ConvertOptions& options) {
  core::ConvertOptions result = core_of(options.write);
  result.input_shapes = map_of(options.read.input_shapes);
  for (const auto& [name, dtype] : options.read.input_types)
    core::require(result.input_types.emplace(name, core_of(dtype)).second, "input '{}' is given two types", name);
  result.weights = options.read.weights;
  result.part = options.read.part;
  result.limits = core_of(options.read.limits);
  return result;
}

core::Program copy_of(const Model::Content& content) {
  check_edited(content);
  core::Program copy{core::clone(content.model()), content.program.output_names};
  copy.model.graph->input_declarations.resize(copy.model.graph->inputs().size());
  copy.model.graph->output_declarations.resize(copy.model.graph->outputs().size());
  return copy;
}

namespace {

/// Tells the caller how far it is; asked before any work too.
void set_progress(core::ConvertOptions& inner, const WriteOptions& options) {
  if (options.on_bytes) {
    inner.progress = [&options](uint64_t done, uint64_t total) {
      callers([&] { return options.on_bytes(done, total), true; });
    };
  }
  if (!options.on_progress) return;
  const auto tell = [&options](double done) {
    if (!callers([&] { return options.on_progress(done); })) throw Cancellation();
  };
  tell(0);
  inner.progress = [tell, bytes = std::move(inner.progress)](uint64_t done, uint64_t total) {
    if (bytes) bytes(done, total);
    if (total > 0) tell(static_cast<double>(done) / static_cast<double>(total));
  };
}

/// A model without weights has no progress between none and all.
void tell_end(const WriteOptions& options) {
  if (options.on_progress) callers([&] { return options.on_progress(1); });
}

/// What takes the bytes in place of a file is in the options.
void write_to(const Model::Content& content, const std::string& target, std::optional<Format> format,
              const core::ConvertOptions& options) {
  const ModelBudget budget(content);
  const core::Format source = core_of(content.format);
  const core::Route way = core::route(source, format ? name_for(*format) : target, options);
  const bool is_as_it_is = content.is_onnx() && way.target == core::Format::Onnx && options.dynamic.empty() &&
                           (!options.opset || *options.opset == content.model().opset(""));
  if (is_as_it_is) {
    check_edited(content);
    core::OnnxWriteOptions onnx = core::onnx_options(options);
    onnx.declares_values = content.declares_values;
    return core::write_onnx(content.model(), target, onnx);
  }
  if (format && core::find_format(target) != core_of(*format))
    core::fail_unsupported("'{}' does not end as files of its format do", target);
  Conversion(content, options).compilation.write(target);
}

Tensor tensor_of(const core::StateTensor& entry) {
  if (!entry.transposed) return Access::tensor(entry.tensor);
  auto turned = std::make_shared<core::Tensor>(*entry.tensor);
  std::swap(turned->dims[0], turned->dims[1]);
  std::string bytes;
  core::for_each_piece(core::bytes_to_write(*entry.tensor, true), [&](std::string_view piece) { bytes += piece; });
  turned->data = core::Bytes::own(std::move(bytes));
  return Access::tensor(std::move(turned));
}

std::vector<StateEntry> state_of(const std::vector<core::StateTensor>& state) {
  std::vector<StateEntry> result;
  for (const core::StateTensor& entry : state) result.push_back({entry.name, tensor_of(entry), entry.trainable});
  return result;
}

}  // namespace

void Model::write(const std::string& path, const WriteOptions& options) const {
  translated([&] {
    core::ConvertOptions inner = core_of(options);
    core::route(core_of(content_->format), options.format ? name_for(*options.format) : path, inner);
    set_progress(inner, options);
    write_to(*content_, path, options.format, inner);
    tell_end(options);
  });
}

std::vector<std::byte> Model::to_bytes(Format format, const WriteOptions& options) const {
  return translated([&] {
    if (format == Format::Python) core::fail_unsupported("code has its weights beside it: to_python_code() gives both");
    core::ConvertOptions inner = core_of(options);
    std::vector<std::byte> bytes;
    inner.memory = &bytes;
    core::route(core_of(content_->format), name_for(format), inner);
    set_progress(inner, options);
    write_to(*content_, name_for(format), {}, inner);
    tell_end(options);
    return bytes;
  });
}

std::string Model::to_python(const WriteOptions& options) const { return to_python_code(options).source; }

PythonCode Model::to_python_code(const WriteOptions& options) const {
  return translated([&] {
    const core::ConvertOptions inner = core_of(options);
    const std::string name = name_for(Format::Python);
    core::route(core_of(content_->format), name, inner);
    const ModelBudget budget(*content_);
    const core::PythonModule module =
        Conversion(*content_, inner).compilation.python(core::file_options(name, options.flat));
    return PythonCode{module.source, state_of(module.state)};
  });
}

Model Model::to_onnx(const WriteOptions& options) const {
  return translated([&] {
    const core::ConvertOptions inner = core_of(options);
    core::route(core_of(content_->format), name_for(Format::Onnx), inner);
    const ModelBudget budget(*content_);
    auto result = std::make_unique<Content>();
    result->limits = content_->limits;
    result->input_bytes = content_->input_bytes;
    result->declares_values = content_->declares_values;
    Conversion conversion(*content_, inner);
    conversion.compilation.apply_options();
    if (content_->is_onnx() && inner.opset) core::change_opset(conversion.program.model, *inner.opset);
    conversion.compilation.bring_to(core::Dialect::Stored);
    result->model() = std::move(conversion.compilation.model());
    return Access::model(std::move(result));
  });
}

void convert(const std::string& source, const std::string& target, const ConvertOptions& options) {
  translated([&] {
    core::ConvertOptions inner = core_of(options);
    set_progress(inner, options.write);
    core::convert_file(source, target, inner);
    tell_end(options.write);
  });
}

std::vector<StateEntry> read_weights(const std::string& path, const std::optional<std::string>& part) {
  return translated([&] {
    const core::BudgetScope scope;
    return state_of(core::read_weights(path, part));
  });
}

}  // namespace tonnx::v1
