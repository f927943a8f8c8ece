// c.cpp - the interface in C: handles around models and options, and errors by value.
#include <tonnx/c.h>

#include <array>
#include <filesystem>
#include <new>

#include "base/budget.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/temporary.h"
#include "convert/file_kind.h"
#include "convert/pipeline.h"
#include "convert/simplify.h"
#include "convert/weights.h"
#include "formats/onnx/onnx.h"
#include "ir/clone.h"
#include "ir/text.h"

struct tonnx_error {
  tonnx_status status = TONNX_OK;
  std::string message, text;
  std::vector<std::string> whiles;
};

struct tonnx_buffer {
  tonnx::Bytes bytes;
};

struct tonnx_options {
  tonnx::ConvertOptions convert;
  std::map<std::string, std::string> type_names;
  std::vector<std::string> allowed;
  std::vector<std::pair<std::string, int64_t>> limits;
  std::string folder;
  int (*progress)(void* context, double done) = nullptr;
  void* context = nullptr;
};

struct tonnx_simplify_options {
  tonnx::SimplifyOptions simplify;
};

struct tonnx_model {
  tonnx::Format format = tonnx::Format::Onnx;
  tonnx::Program program;  // of a model of ONNX the model alone
  tonnx::Limits limits;    // of all that is done with the model
  uint64_t input_bytes = 0;
  size_t node_count = 0;
  std::vector<std::string> inputs, outputs, input_types, output_types;
};

namespace tonnx::c_interface {
namespace {

struct BadArgument {
  std::string text;
};
struct Cancelled {};

constexpr std::array kEndings = {".onnx", ".pt2", ".pt", ".py", ".safetensors", ".pth"};
static_assert(static_cast<int>(Format::Onnx) == TONNX_FORMAT_ONNX && static_cast<int>(Format::Pth) == TONNX_FORMAT_PTH);

constexpr std::string_view kWhile = "while ";

constexpr std::array kStatusNames = {"ok",       "bad_file",  "invalid_model", "unsupported",
                                     "internal", "cancelled", "bad_argument",  "out_of_memory"};

tonnx_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::BadFile: return TONNX_BAD_FILE;
    case ErrorKind::InvalidModel: return TONNX_INVALID_MODEL;
    case ErrorKind::Unsupported: return TONNX_UNSUPPORTED;
    case ErrorKind::Internal: return TONNX_INTERNAL_ERROR;
  }
  return TONNX_INTERNAL_ERROR;
}

/// Gives the caller an error, as far as there is memory for it.
tonnx_status report(tonnx_error** error, tonnx_status status, const char* message, const char* text,
                    const std::vector<std::string>& whiles = {}) noexcept {
  if (error == nullptr) return status;
  try {
    *error = new tonnx_error{status, message, text, whiles};
    for (std::string& line : (*error)->whiles) {
      if (line.starts_with(kWhile)) line.erase(0, kWhile.size());
    }
  } catch (const std::bad_alloc&) {
    *error = nullptr;
  }
  return status;
}

/// Runs `body`; whatever it throws becomes a status.
template <class Body>
tonnx_status guarded(tonnx_error** error, Body&& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    body();
    return TONNX_OK;
  } catch (const BadArgument& e) {
    return report(error, TONNX_BAD_ARGUMENT, e.text.c_str(), e.text.c_str());
  } catch (const Cancelled&) {
    constexpr const char* kText = "the caller asked to stop";
    return report(error, TONNX_CANCELLED, kText, kText);
  } catch (const Error& e) {
    return report(error, status_of(e.kind()), e.what(), e.text().c_str(), e.frames());
  } catch (const std::bad_alloc&) {
    constexpr const char* kText = "there is not enough memory";
    return report(error, TONNX_OUT_OF_MEMORY, kText, kText);
  } catch (const std::exception& e) {
    return report(error, TONNX_INTERNAL_ERROR, e.what(), e.what());
  } catch (...) {
    constexpr const char* kText = "an exception that is none of the library's";
    return report(error, TONNX_INTERNAL_ERROR, kText, kText);
  }
}

template <class T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw BadArgument{fmt::format("{} is NULL", name)};
  return *pointer;
}

std::string text_of(const char* text, const char* name) { return &required(text, name); }

Format format_of(tonnx_format format) {
  const auto number = static_cast<size_t>(format);
  if (number >= kEndings.size()) throw BadArgument{fmt::format("{} is no format", number)};
  return static_cast<Format>(number);
}

std::vector<int64_t> sizes_of(const int64_t* sizes, size_t count) {
  if (count > 0) required(sizes, "sizes");
  return {sizes, sizes + count};
}

/// Sets one option; only a pointer can be wrong, or memory be missing.
template <class Options, class Set>
tonnx_status set(Options* options, Set&& change) noexcept {
  return guarded(nullptr, [&] { change(required(options, "options")); });
}

tonnx_buffer* buffer_of(Bytes bytes) { return new tonnx_buffer{std::move(bytes)}; }

Limits limits_of(const tonnx_options& options) {
  Limits limits;
  for (const auto& [name, value] : options.limits) limits.set(name, value);
  return limits;
}

/// The caller's function in the place of progress in bytes.
std::function<void(uint64_t, uint64_t)> progress_of(const tonnx_options& options) {
  if (options.progress == nullptr) return nullptr;
  return [progress = options.progress, context = options.context](uint64_t done, uint64_t total) {
    const double part = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
    if (progress(context, part) != 0) throw Cancelled();
  };
}

std::map<std::string, DType> types_of(const tonnx_options& options) {
  std::map<std::string, DType> types;
  for (const auto& [input, name] : options.type_names) {
    const auto type = find_dtype(name);
    if (!type) fail_invalid("'{}', for the input '{}', is no element type", name, input);
    types[input] = *type;
  }
  return types;
}

ConvertOptions convert_options_of(const tonnx_options* given) {
  if (given == nullptr) return {};
  ConvertOptions options = given->convert;
  options.input_types = types_of(*given);
  options.allow_ops = AllowedOps(given->allowed);
  options.limits = limits_of(*given);
  options.progress = progress_of(*given);
  return options;
}

/// What is left to ask of writing a model that was read with the others.
ConvertOptions write_options_of(const tonnx_options* given) {
  ConvertOptions options = convert_options_of(given);
  options.input_shapes.clear();
  options.input_types.clear();
  options.weights.clear();
  options.part.reset();
  return options;
}

/// Memory of the caller, which is told when nobody needs it any more.
class LentBytes : public ByteOwner {
 public:
  LentBytes(const void* data, size_t size, void (*release)(void*), void* context)
      : data_(static_cast<const uint8_t*>(data)), size_(size), release_(release), context_(context) {}
  LentBytes(const LentBytes&) = delete;
  LentBytes& operator=(const LentBytes&) = delete;
  ~LentBytes() override { release_(context_); }
  const uint8_t* begin() const override { return data_; }
  size_t size() const override { return size_; }

 private:
  const uint8_t* data_;
  size_t size_;
  void (*release_)(void*);
  void* context_;
};

Bytes input_bytes(const void* data, size_t size, void (*release)(void*), void* context) {
  if (release == nullptr) {
    if (size > 0) required(static_cast<const char*>(data), "data");
    return Bytes::own(std::string(static_cast<const char*>(data), size));
  }
  std::shared_ptr<const LentBytes> owner;
  try {
    owner = std::make_shared<const LentBytes>(data, size, release, context);
  } catch (const std::bad_alloc&) {
    release(context);
    throw;
  }
  if (size > 0) required(static_cast<const char*>(data), "data");
  return {owner, owner->begin(), size};
}

size_t count_nodes(const Graph& graph) {
  size_t count = graph.node_count();
  for (const Node& node : graph) {
    for (const GraphPtr& inner : subgraphs_of(node)) count += count_nodes(*inner);
  }
  return count;
}

/// Notes what is asked of a model by pointers that outlive the call.
void note_facts(tonnx_model& model) {
  const Graph& graph = *model.program.model.graph;
  model.node_count = count_nodes(graph);
  model.inputs.clear();
  model.outputs.clear();
  model.input_types.clear();
  model.output_types.clear();
  for (const Value* input : inputs_without_values(graph)) {
    model.inputs.push_back(input->name);
    model.input_types.push_back(tonnx::text_of(input->type));
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const bool is_named = i < model.program.output_names.size();
    model.outputs.push_back(is_named ? model.program.output_names[i] : graph.outputs()[i]->name);
    model.output_types.push_back(tonnx::text_of(graph.outputs()[i]->type));
  }
}

/// What is asked of reading is done here, so that a model is as if its file had been so.
tonnx_model* finish_reading(tonnx_model model, const ConvertOptions& options) {
  if (model.format == Format::Onnx) set_input_shapes(model.program.model, options.input_shapes);
  if (!options.weights.empty())
    replace_weights(*model.program.model.graph, read_weights(options.weights, options.part), options.weights);
  model.limits = options.limits;
  note_facts(model);
  return new tonnx_model(std::move(model));
}

tonnx_model* read_path(const std::string& path, const tonnx_options* given) {
  const ConvertOptions options = convert_options_of(given);
  const BudgetScope scope(options.limits);
  const auto format = find_format(path);
  if (!format || *format > Format::TorchScript)
    fail_unsupported("'{}' is no model; .onnx, .pt2 and .pt are read", path);
  require_content(path, *format);
  tonnx_model model;
  model.format = *format;
  if (*format == Format::Onnx)
    model.program.model = read_onnx(path);
  else
    model.program = *format == Format::Pt2 ? read_pt2(path) : read_script(path, options);
  model.input_bytes = std::filesystem::file_size(path);
  return finish_reading(std::move(model), options);
}

/// A TorchScript archive in memory is read from a file, which is gone again when it is mapped.
Program read_script_bytes(const Bytes& bytes, const ConvertOptions& options) {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.pt");
  OutputFile file(path);
  file.write(bytes);
  file.commit();
  return read_script(path, options);
}

tonnx_model* read_memory(Bytes bytes, Format format, const tonnx_options* given) {
  const ConvertOptions options = convert_options_of(given);
  const BudgetScope scope(options.limits);
  return in_context([] { return "reading a model in memory"; },
                    [&] {
                      tonnx_model model;
                      model.format = format;
                      model.input_bytes = bytes.size();
                      if (format == Format::Onnx)
                        model.program.model = read_onnx(std::move(bytes), given == nullptr ? "" : given->folder);
                      else if (format == Format::Pt2)
                        model.program = read_program(read_pt2_archive(std::move(bytes)));
                      else if (format == Format::TorchScript)
                        model.program = read_script_bytes(bytes, options);
                      else
                        throw BadArgument{fmt::format("{} is no model", kEndings[static_cast<size_t>(format)])};
                      return finish_reading(std::move(model), options);
                    });
}

Program clone_program(const tonnx_model& model) { return {clone(model.program.model), model.program.output_names}; }

/// Leaves the model as it is: what is converted is a copy.
void write_model(const tonnx_model& model, const std::string& path, const ConvertOptions& options) {
  const BudgetScope scope(options.limits.or_else(model.limits), model.input_bytes);
  Program copy = clone_program(model);
  if (model.format == Format::Onnx)
    convert_model(copy.model, path, options);
  else
    convert_program(copy, path, options, model.format);
}

Bytes bytes_of(const tonnx_model& model, Format format, ConvertOptions options) {
  const TemporaryFolder folder;
  const std::string path = folder.file(std::string("model") + kEndings[static_cast<size_t>(format)]);
  if (format == Format::Onnx) options.external_data = false;
  write_model(model, path, options);
  Bytes bytes = map_file(path);
  return format == Format::Python ? Bytes::own(std::string(bytes.view())) : bytes;
}

void require_onnx(const tonnx_model& model) {
  if (model.format != Format::Onnx)
    fail_unsupported("the model is a program of PyTorch; write it as .onnx, and read that, for this");
}

/// Changes a copy, which takes the model's place where all went well.
template <class Change>
void change_model(tonnx_model& model, Change&& change) {
  require_onnx(model);
  const BudgetScope scope(model.limits, model.input_bytes);
  Program copy = clone_program(model);
  change(copy.model);
  tonnx_model changed{.format = model.format,
                      .program = std::move(copy),
                      .limits = model.limits,
                      .input_bytes = model.input_bytes,
                      .node_count = 0,
                      .inputs = {},
                      .outputs = {},
                      .input_types = {},
                      .output_types = {}};
  note_facts(changed);
  std::swap(model, changed);
}

/// Lists that stand behind a sentence begin with a new line, and each line with spaces.
std::string without_indentation(std::string_view list) {
  std::string lines;
  while (!list.empty()) {
    const size_t end = std::min(list.find('\n'), list.size());
    std::string_view line = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (!line.empty()) lines.append(line).append("\n");
  }
  return lines;
}

std::string unsupported_text(const tonnx_model& model, Format target) {
  const BudgetScope scope(model.limits, model.input_bytes);
  Program copy = clone_program(model);
  constexpr size_t kAll = size_t{1} << 20;
  if (model.format == Format::Onnx)
    return target == Format::Onnx ? "" : without_indentation(describe(find_unsupported(copy.model), kAll));
  make_functional(copy);
  if (target == Format::Onnx) return without_indentation(describe(find_unsupported_aten(*copy.model.graph)));
  try {
    ready_for_python(copy);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Unsupported) throw;
    return e.text() + "\n";
  }
  return "";
}

const char* name_at(const std::vector<std::string>& names, size_t index) {
  return index < names.size() ? names[index].c_str() : nullptr;
}

}  // namespace
}  // namespace tonnx::c_interface

using namespace tonnx::c_interface;

const char* tonnx_version(void) { return TONNX_VERSION; }

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
size_t tonnx_buffer_size(const tonnx_buffer* buffer) { return buffer == nullptr ? 0 : buffer->bytes.size(); }
void tonnx_buffer_free(tonnx_buffer* buffer) { delete buffer; }

tonnx_options* tonnx_options_new(void) { return new (std::nothrow) tonnx_options; }
void tonnx_options_free(tonnx_options* options) { delete options; }

tonnx_status tonnx_options_set_input_shape(tonnx_options* options, const char* input, const int64_t* sizes,
                                           size_t count) {
  return set(options,
             [&](tonnx_options& o) { o.convert.input_shapes[text_of(input, "input")] = sizes_of(sizes, count); });
}
tonnx_status tonnx_options_set_input_type(tonnx_options* options, const char* input, const char* type) {
  return set(options, [&](tonnx_options& o) { o.type_names[text_of(input, "input")] = text_of(type, "type"); });
}
tonnx_status tonnx_options_set_weights(tonnx_options* options, const char* path, const char* part) {
  return set(options, [&](tonnx_options& o) {
    o.convert.weights = text_of(path, "path");
    o.convert.part = part == nullptr ? std::nullopt : std::optional<std::string>(part);
  });
}
tonnx_status tonnx_options_set_folder(tonnx_options* options, const char* folder) {
  return set(options, [&](tonnx_options& o) { o.folder = text_of(folder, "folder"); });
}
tonnx_status tonnx_options_set_opset(tonnx_options* options, int64_t opset) {
  return set(options, [&](tonnx_options& o) { o.convert.opset = opset; });
}
tonnx_status tonnx_options_set_external_data(tonnx_options* options, int is_external) {
  return set(options, [&](tonnx_options& o) { o.convert.external_data = is_external != 0; });
}
tonnx_status tonnx_options_set_source_lines(tonnx_options* options, int has_source_lines) {
  return set(options, [&](tonnx_options& o) { o.convert.source_lines = has_source_lines != 0; });
}
tonnx_status tonnx_options_set_flat(tonnx_options* options, int is_flat) {
  return set(options, [&](tonnx_options& o) { o.convert.flat = is_flat != 0; });
}
tonnx_status tonnx_options_add_dynamic(tonnx_options* options, const char* input, int64_t axis, const char* name,
                                       int64_t low, int64_t high) {
  return set(options, [&](tonnx_options& o) {
    o.convert.dynamic.push_back({text_of(input, "input"), axis, text_of(name, "name"), low,
                                 high < 0 ? std::nullopt : std::optional<int64_t>(high)});
  });
}
tonnx_status tonnx_options_allow_op(tonnx_options* options, const char* name) {
  return set(options, [&](tonnx_options& o) { o.allowed.push_back(text_of(name, "name")); });
}
tonnx_status tonnx_options_set_limit(tonnx_options* options, const char* name, int64_t value) {
  return set(options, [&](tonnx_options& o) { o.limits.emplace_back(text_of(name, "name"), value); });
}
tonnx_status tonnx_options_set_progress(tonnx_options* options, int (*progress)(void*, double), void* context) {
  return set(options, [&](tonnx_options& o) {
    o.progress = progress;
    o.context = context;
  });
}

tonnx_status tonnx_convert(const char* source, const char* target, const tonnx_options* options, tonnx_error** error) {
  return guarded(error, [&] {
    tonnx::convert_file(text_of(source, "source"), text_of(target, "target"), convert_options_of(options));
  });
}

tonnx_status tonnx_model_read(const char* path, const tonnx_options* options, tonnx_model** model,
                              tonnx_error** error) {
  return guarded(error, [&] {
    required(model, "model") = nullptr;
    *model = read_path(text_of(path, "path"), options);
  });
}

tonnx_status tonnx_model_read_bytes(const void* data, size_t size, tonnx_format format, const tonnx_options* options,
                                    void (*release)(void*), void* context, tonnx_model** model, tonnx_error** error) {
  return guarded(error, [&] {
    tonnx::Bytes bytes = input_bytes(data, size, release, context);
    required(model, "model") = nullptr;
    *model = read_memory(std::move(bytes), format_of(format), options);
  });
}

tonnx_status tonnx_model_clone(const tonnx_model* model, tonnx_model** copy, tonnx_error** error) {
  return guarded(error, [&] {
    required(copy, "copy") = nullptr;
    const tonnx_model& from = required(model, "model");
    *copy = new tonnx_model{from.format, clone_program(from), from.limits,      from.input_bytes, from.node_count,
                            from.inputs, from.outputs,        from.input_types, from.output_types};
  });
}
void tonnx_model_free(tonnx_model* model) { delete model; }

tonnx_format tonnx_model_format(const tonnx_model* model) {
  return static_cast<tonnx_format>(model == nullptr ? tonnx::Format::Onnx : model->format);
}
int64_t tonnx_model_opset(const tonnx_model* model) {
  return model == nullptr || model->format != tonnx::Format::Onnx ? 0 : model->program.model.opset("");
}
size_t tonnx_model_node_count(const tonnx_model* model) { return model == nullptr ? 0 : model->node_count; }
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
    *text = buffer_of(tonnx::Bytes::own(tonnx::print(required(model, "model").program.model)));
  });
}

tonnx_simplify_options* tonnx_simplify_options_new(void) { return new (std::nothrow) tonnx_simplify_options; }
void tonnx_simplify_options_free(tonnx_simplify_options* options) { delete options; }

tonnx_status tonnx_simplify_options_set_input_shape(tonnx_simplify_options* options, const char* input,
                                                    const int64_t* sizes, size_t count) {
  return set(options, [&](auto& o) { o.simplify.input_shapes[text_of(input, "input")] = sizes_of(sizes, count); });
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
    const tonnx::SimplifyOptions asked = options == nullptr ? tonnx::SimplifyOptions() : options->simplify;
    std::unique_ptr<tonnx_buffer> said;
    change_model(required(model, "model"), [&](tonnx::Model& copy) {
      const tonnx::SimplifyReport done = tonnx::simplify(copy, asked);
      if (report != nullptr) said.reset(buffer_of(tonnx::Bytes::own(tonnx::json_of(done, 0))));
    });
    if (report != nullptr) *report = said.release();
  });
}

tonnx_status tonnx_model_infer_shapes(tonnx_model* model, tonnx_error** error) {
  return guarded(error, [&] {
    change_model(required(model, "model"), [](tonnx::Model& copy) { tonnx::infer_and_declare(copy); });
  });
}

tonnx_status tonnx_model_unsupported(const tonnx_model* model, tonnx_format target, tonnx_buffer** text,
                                     tonnx_error** error) {
  return guarded(error, [&] {
    required(text, "text") = nullptr;
    *text = buffer_of(tonnx::Bytes::own(unsupported_text(required(model, "model"), format_of(target))));
  });
}

tonnx_status tonnx_model_write(const tonnx_model* model, const char* path, const tonnx_options* options,
                               tonnx_error** error) {
  return guarded(error,
                 [&] { write_model(required(model, "model"), text_of(path, "path"), write_options_of(options)); });
}

tonnx_status tonnx_model_to_bytes(const tonnx_model* model, tonnx_format format, const tonnx_options* options,
                                  tonnx_buffer** bytes, tonnx_error** error) {
  return guarded(error, [&] {
    required(bytes, "bytes") = nullptr;
    *bytes = buffer_of(bytes_of(required(model, "model"), format_of(format), write_options_of(options)));
  });
}
