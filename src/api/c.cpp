// c.cpp - the interface in C over that in C++: models, and what is done with them.
#include "api/c_internal.h"

namespace tonnx::c_interface {
namespace {

tonnx_model* read_memory(const void* data, size_t size, v1::Format format, const tonnx_options* options,
                         std::shared_ptr<const LentBytes> lent) {
  if (size > 0) required(static_cast<const char*>(data), "data");
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(data), size);
  if (format > v1::Format::TorchScript) throw BadArgument{"a model is read from .onnx, .pt2 or .pt"};
  const v1::ReadOptions asked = read_options_of(options);
  if (lent) return handle_of(v1::Model::read(bytes, format, asked), std::move(lent));
  return handle_of(v1::Model::read(std::vector<std::byte>(bytes.begin(), bytes.end()), format, asked));
}

/// Changes a copy, which takes the model's place where all went well.
template <class Change>
void change_model(tonnx_model& model, Change&& change) {
  v1::Model copy = model.model.clone();
  change(copy);
  const std::unique_ptr<tonnx_model> changed(handle_of(std::move(copy), model.lent));
  std::swap(model, *changed);
}

/// `com.example::Swish-1: 2 nodes, 'a', 'b'`
std::string line_of(const v1::UnsupportedOp& op) {
  std::string line = op.domain.empty() ? op.op : op.domain + "::" + op.op;
  if (op.version > 0) line += "-" + std::to_string(op.version);
  if (!op.places.empty())
    line += ": " + std::to_string(op.places.size()) + (op.places.size() == 1 ? " place" : " places");
  for (const std::string& place : op.places) line += ", '" + place + "'";
  if (!op.why.empty()) line += (line.empty() ? "" : ": ") + op.why;
  return line + "\n";
}

const char* name_at(const std::vector<std::string>& names, size_t index) {
  return index < names.size() ? names[index].c_str() : nullptr;
}

}  // namespace
}  // namespace tonnx::c_interface

using namespace tonnx::c_interface;

const char* tonnx_version(void) { return tonnx::v1::version(); }

const char* tonnx_status_name(tonnx_status status) {
  const auto number = static_cast<size_t>(status);
  return number < kStatusNames.size() ? kStatusNames[number] : "unknown";
}

tonnx_status tonnx_error_status(const tonnx_error* error) { return error == nullptr ? TONNX_OK : error->status; }
const char* tonnx_error_message(const tonnx_error* error) { return error == nullptr ? "" : error->message.c_str(); }
const char* tonnx_error_text(const tonnx_error* error) { return error == nullptr ? "" : error->text.c_str(); }
size_t tonnx_error_while_count(const tonnx_error* error) { return error == nullptr ? 0 : error->whiles.size(); }
const char* tonnx_error_while(const tonnx_error* error, size_t index) {
  return error == nullptr ? nullptr : name_at(error->whiles, index);
}
void tonnx_error_free(tonnx_error* error) { delete error; }

const void* tonnx_buffer_data(const tonnx_buffer* buffer) { return buffer == nullptr ? nullptr : buffer->bytes.data(); }
size_t tonnx_buffer_size(const tonnx_buffer* buffer) { return buffer == nullptr ? 0 : buffer->size; }
void tonnx_buffer_free(tonnx_buffer* buffer) { delete buffer; }

tonnx_options* tonnx_options_new(void) { return new (std::nothrow) tonnx_options; }
void tonnx_options_free(tonnx_options* options) { delete options; }

tonnx_status tonnx_options_set_input_shape(tonnx_options* options, const char* input, const int64_t* sizes,
                                           size_t count) {
  return set(options, [&](tonnx_options& o) { set_shape(o.read.input_shapes, input, sizes, count); });
}
tonnx_status tonnx_options_set_input_type(tonnx_options* options, const char* input, const char* type) {
  return set(options,
             [&](tonnx_options& o) { set_named(o.type_names, text_of(input, "input"), text_of(type, "type")); });
}
tonnx_status tonnx_options_set_weights(tonnx_options* options, const char* path, const char* part) {
  return set(options, [&](tonnx_options& o) {
    o.read.weights = text_of(path, "path");
    o.read.part = part == nullptr ? std::nullopt : std::optional<std::string>(part);
  });
}
tonnx_status tonnx_options_set_folder(tonnx_options* options, const char* folder) {
  return set(options, [&](tonnx_options& o) { o.read.folder = text_of(folder, "folder"); });
}
tonnx_status tonnx_options_set_opset(tonnx_options* options, int64_t opset) {
  return set(options, [&](tonnx_options& o) { o.write.opset = opset; });
}
tonnx_status tonnx_options_set_external_data(tonnx_options* options, int is_external) {
  return set(options, [&](tonnx_options& o) { o.write.external_data = is_external != 0; });
}
tonnx_status tonnx_options_set_source_lines(tonnx_options* options, int has_source_lines) {
  return set(options, [&](tonnx_options& o) { o.write.source_lines = has_source_lines != 0; });
}
tonnx_status tonnx_options_set_flat(tonnx_options* options, int is_flat) {
  return set(options, [&](tonnx_options& o) { o.write.flat = is_flat != 0; });
}
tonnx_status tonnx_options_add_dynamic(tonnx_options* options, const char* input, int64_t axis, const char* name,
                                       int64_t low, int64_t high) {
  return set(options, [&](tonnx_options& o) {
    o.write.dynamic.push_back({text_of(input, "input"), axis, text_of(name, "name"), low,
                               high < 0 ? std::nullopt : std::optional<int64_t>(high)});
  });
}
tonnx_status tonnx_options_allow_op(tonnx_options* options, const char* name) {
  return set(options, [&](tonnx_options& o) { o.write.allow_ops.push_back(text_of(name, "name")); });
}
tonnx_status tonnx_options_set_limit(tonnx_options* options, const char* name, int64_t value) {
  return set(options, [&](tonnx_options& o) { set_named(o.read.limits, text_of(name, "name"), value); });
}
tonnx_status tonnx_options_set_progress(tonnx_options* options, int (*progress)(void*, double), void* context) {
  return set(options, [&](tonnx_options& o) {
    o.write.on_progress = nullptr;
    if (progress != nullptr) o.write.on_progress = [=](double done) { return progress(context, done) == 0; };
  });
}

tonnx_status tonnx_convert(const char* source, const char* target, const tonnx_options* options, tonnx_error** error) {
  return guarded(error, [&] {
    const tonnx::v1::ConvertOptions asked{read_options_of(options), write_options_of(options)};
    tonnx::v1::convert(text_of(source, "source"), text_of(target, "target"), asked);
  });
}

tonnx_status tonnx_model_read(const char* path, const tonnx_options* options, tonnx_model** model,
                              tonnx_error** error) {
  return guarded(error, [&] {
    required(model, "model") = nullptr;
    *model = handle_of(tonnx::v1::Model::read(text_of(path, "path"), read_options_of(options)));
  });
}

tonnx_status tonnx_model_read_bytes(const void* data, size_t size, tonnx_format format, const tonnx_options* options,
                                    void (*release)(void*), void* context, tonnx_model** model, tonnx_error** error) {
  return guarded(error, [&] {
    std::shared_ptr<const LentBytes> lent;
    if (release != nullptr) {
      try {
        lent = std::make_shared<const LentBytes>(release, context);
      } catch (const std::bad_alloc&) {
        release(context);
        throw;
      }
    }
    required(model, "model") = nullptr;
    *model = read_memory(data, size, format_of(format), options, std::move(lent));
  });
}

tonnx_status tonnx_model_clone(const tonnx_model* model, tonnx_model** copy, tonnx_error** error) {
  return guarded(error, [&] {
    required(copy, "copy") = nullptr;
    const tonnx_model& from = required(model, "model");
    *copy = handle_of(from.model.clone(), from.lent);
  });
}
void tonnx_model_free(tonnx_model* model) { delete model; }

tonnx_format tonnx_model_format(const tonnx_model* model) {
  return model == nullptr ? TONNX_FORMAT_ONNX : static_cast<tonnx_format>(model->model.format());
}
int64_t tonnx_model_opset(const tonnx_model* model) {
  const bool is_onnx = model != nullptr && model->model.format() == tonnx::v1::Format::Onnx;
  return is_onnx ? model->model.opset() : 0;
}
size_t tonnx_model_node_count(const tonnx_model* model) { return model == nullptr ? 0 : model->model.node_count(); }
size_t tonnx_model_input_count(const tonnx_model* model) { return model == nullptr ? 0 : model->inputs.size(); }
size_t tonnx_model_output_count(const tonnx_model* model) { return model == nullptr ? 0 : model->outputs.size(); }
const char* tonnx_model_input_name(const tonnx_model* model, size_t index) {
  return model == nullptr ? nullptr : name_at(model->inputs, index);
}
const char* tonnx_model_output_name(const tonnx_model* model, size_t index) {
  return model == nullptr ? nullptr : name_at(model->outputs, index);
}
const char* tonnx_model_input_type(const tonnx_model* model, size_t index) {
  return model == nullptr ? nullptr : name_at(model->input_types, index);
}
const char* tonnx_model_output_type(const tonnx_model* model, size_t index) {
  return model == nullptr ? nullptr : name_at(model->output_types, index);
}

tonnx_status tonnx_model_text(const tonnx_model* model, tonnx_buffer** text, tonnx_error** error) {
  return guarded(error, [&] {
    required(text, "text") = nullptr;
    *text = buffer_of(required(model, "model").model.text());
  });
}

tonnx_simplify_options* tonnx_simplify_options_new(void) { return new (std::nothrow) tonnx_simplify_options; }
void tonnx_simplify_options_free(tonnx_simplify_options* options) { delete options; }

tonnx_status tonnx_simplify_options_set_input_shape(tonnx_simplify_options* options, const char* input,
                                                    const int64_t* sizes, size_t count) {
  return set(options, [&](auto& o) { set_shape(o.simplify.input_shapes, input, sizes, count); });
}
tonnx_status tonnx_simplify_options_skip(tonnx_simplify_options* options, const char* pass) {
  return set(options, [&](auto& o) { o.simplify.skip.push_back(text_of(pass, "pass")); });
}
tonnx_status tonnx_simplify_options_only(tonnx_simplify_options* options, const char* pass) {
  return set(options, [&](auto& o) { o.simplify.only.push_back(text_of(pass, "pass")); });
}
tonnx_status tonnx_simplify_options_enable(tonnx_simplify_options* options, const char* pass) {
  return set(options, [&](auto& o) { o.simplify.enable.push_back(text_of(pass, "pass")); });
}
tonnx_status tonnx_simplify_options_drop_output(tonnx_simplify_options* options, const char* output) {
  return set(options, [&](auto& o) { o.simplify.unused_outputs.push_back(text_of(output, "output")); });
}
tonnx_status tonnx_simplify_options_set_fold_limit(tonnx_simplify_options* options, int64_t bytes) {
  return set(options, [&](auto& o) { o.simplify.fold_limit = bytes; });
}
tonnx_status tonnx_simplify_options_set_opset(tonnx_simplify_options* options, int64_t opset) {
  return set(options, [&](auto& o) { o.simplify.opset = opset; });
}

tonnx_status tonnx_model_simplify(tonnx_model* model, const tonnx_simplify_options* options, tonnx_buffer** report,
                                  tonnx_error** error) {
  return guarded(error, [&] {
    if (report != nullptr) *report = nullptr;
    std::unique_ptr<tonnx_buffer> said;
    change_model(required(model, "model"), [&](tonnx::v1::Model& copy) {
      const tonnx::v1::Report done =
          copy.simplify(options == nullptr ? tonnx::v1::SimplifyOptions() : options->simplify);
      if (report != nullptr) said.reset(buffer_of(done.json(0)));
    });
    if (report != nullptr) *report = said.release();
  });
}

tonnx_status tonnx_model_infer_shapes(tonnx_model* model, tonnx_error** error) {
  return guarded(error,
                 [&] { change_model(required(model, "model"), [](tonnx::v1::Model& copy) { copy.infer_shapes(); }); });
}

tonnx_status tonnx_model_unsupported(const tonnx_model* model, tonnx_format target, tonnx_buffer** text,
                                     tonnx_error** error) {
  return guarded(error, [&] {
    required(text, "text") = nullptr;
    std::string lines;
    for (const auto& op : required(model, "model").model.unsupported(format_of(target))) lines += line_of(op);
    *text = buffer_of(lines);
  });
}

tonnx_status tonnx_model_write(const tonnx_model* model, const char* path, const tonnx_options* options,
                               tonnx_error** error) {
  return guarded(error,
                 [&] { required(model, "model").model.write(text_of(path, "path"), write_options_of(options)); });
}

tonnx_status tonnx_model_to_bytes(const tonnx_model* model, tonnx_format format, const tonnx_options* options,
                                  tonnx_buffer** bytes, tonnx_error** error) {
  return guarded(error, [&] {
    required(bytes, "bytes") = nullptr;
    const tonnx::v1::Model& from = required(model, "model").model;
    const tonnx::v1::WriteOptions asked = write_options_of(options);
    *bytes = format == TONNX_FORMAT_PYTHON ? buffer_of(from.to_python(asked))
                                           : buffer_of(from.to_bytes(format_of(format), asked));
  });
}
