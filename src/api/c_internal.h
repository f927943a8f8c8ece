// c_internal.h - what the sources of the interface in C share: handles around objects, and errors by value.
#pragma once
#include "api/internal.h"

// behind it, as it says which names the sources of the library use
#include <tonnx/c.h>

#include <array>
#include <new>

struct tonnx_error {
  tonnx_status status = TONNX_OK;
  std::string message, text;
  std::vector<std::string> whiles;
};

struct tonnx_buffer {
  std::vector<std::byte> bytes;
  size_t size = 0;  // without the zero behind a text
};

/// A tensor of the caller's, or of the library's.
struct tonnx_tensor {
  tonnx::v1::Tensor tensor;
};

/// Attributes of a node.
struct tonnx_attributes {
  std::vector<std::pair<std::string, tonnx::v1::AttributeValue>> list;
};

struct tonnx_registry {
  tonnx::v1::Registry registry;
};

struct tonnx_options {
  tonnx::v1::ReadOptions read;
  tonnx::v1::WriteOptions write;
  std::vector<std::pair<std::string, std::string>> type_names;  // of inputs
  std::optional<tonnx::v1::Registry> registry;                  // that the options point to
};

struct tonnx_simplify_options {
  tonnx::v1::SimplifyOptions simplify;
};

namespace tonnx::c_interface {

/// Memory of the caller, which is told when no model needs it any more.
class LentBytes {
 public:
  LentBytes(void (*release)(void*), void* context) : release_(release), context_(context) {}
  LentBytes(const LentBytes&) = delete;
  LentBytes& operator=(const LentBytes&) = delete;
  ~LentBytes() { release_(context_); }

 private:
  void (*release_)(void*);
  void* context_;
};

}  // namespace tonnx::c_interface

struct tonnx_model {
  std::shared_ptr<const tonnx::c_interface::LentBytes> lent;  // goes away after the model that is in it
  tonnx::v1::Model model;
  std::vector<std::string> inputs, outputs, input_types, output_types;
  std::vector<tonnx::v1::ValueView> weights;
};

namespace tonnx::c_interface {

struct BadArgument {
  std::string text;
};

inline constexpr size_t kFormats = 6;
static_assert(static_cast<int>(v1::Format::Onnx) == TONNX_FORMAT_ONNX &&
              static_cast<int>(v1::Format::Pth) == TONNX_FORMAT_PTH);

inline constexpr std::array kStatusNames = {"ok",       "bad_file",  "invalid_model", "unsupported",
                                            "internal", "cancelled", "bad_argument",  "out_of_memory"};

inline tonnx_status status_of(v1::Error::Kind kind) {
  switch (kind) {
    case v1::Error::Kind::BadFile: return TONNX_BAD_FILE;
    case v1::Error::Kind::InvalidModel: return TONNX_INVALID_MODEL;
    case v1::Error::Kind::Unsupported: return TONNX_UNSUPPORTED;
    case v1::Error::Kind::Cancelled: return TONNX_CANCELLED;
    default: return TONNX_INTERNAL_ERROR;
  }
}

/// Gives the caller an error, as far as there is memory for it.
inline tonnx_status report(tonnx_error** error, tonnx_status status, const char* message, const char* text,
                           const std::vector<std::string>& whiles = {}) noexcept {
  if (error == nullptr) return status;
  try {
    *error = new tonnx_error{status, message, text, whiles};
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
  } catch (const v1::Error& e) {
    return report(error, status_of(e.kind()), e.what(), e.text().c_str(), e.whiles());
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
  if (pointer == nullptr) throw BadArgument{std::string(name) + " is NULL"};
  return *pointer;
}

inline std::string text_of(const char* text, const char* name) { return &required(text, name); }

inline v1::Format format_of(tonnx_format format) {
  const auto number = static_cast<size_t>(format);
  if (number >= kFormats) throw BadArgument{std::to_string(number) + " is no format"};
  return static_cast<v1::Format>(number);
}

/// Sets one option; only a pointer can be wrong, or memory be missing.
template <class Options, class Set>
tonnx_status set(Options* options, Set&& change) noexcept {
  return guarded(nullptr, [&] { change(required(options, "options")); });
}

/// The last value that is given for a name counts.
template <class Value>
void set_named(std::vector<std::pair<std::string, Value>>& list, const std::string& name, Value value) {
  std::erase_if(list, [&](const auto& each) { return each.first == name; });
  list.emplace_back(name, std::move(value));
}

inline void set_shape(v1::InputShapes& shapes, const char* input, const int64_t* sizes, size_t count) {
  if (count > 0) required(sizes, "sizes");
  set_named(shapes, text_of(input, "input"), std::vector<int64_t>(sizes, sizes + count));
}

inline tonnx_buffer* buffer_of(std::vector<std::byte> bytes) {
  const size_t size = bytes.size();
  return new tonnx_buffer{std::move(bytes), size};
}
inline tonnx_buffer* buffer_of(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.c_str());
  return new tonnx_buffer{{begin, begin + text.size() + 1}, text.size()};
}

inline v1::ReadOptions read_options_of(const tonnx_options* given) {
  if (given == nullptr) return {};
  v1::ReadOptions options = given->read;
  for (const auto& [input, name] : given->type_names) {
    const auto type = v1::find_dtype(name);
    if (!type)
      throw v1::Error(v1::Error::Kind::InvalidModel,
                      "'" + name + "', for the input '" + input + "', is no element type");
    options.input_types.emplace_back(input, *type);
  }
  return options;
}

inline v1::WriteOptions write_options_of(const tonnx_options* given) {
  return given == nullptr ? v1::WriteOptions() : given->write;
}

/// Around a model goes what is asked of it by pointers that outlive the call.
inline tonnx_model* handle_of(v1::Model model, std::shared_ptr<const LentBytes> lent = nullptr) {
  auto handle = std::make_unique<tonnx_model>(tonnx_model{std::move(lent), std::move(model), {}, {}, {}, {}, {}});
  const v1::GraphView graph = handle->model.graph();
  for (const v1::ValueView& input : graph.inputs()) {
    handle->inputs.emplace_back(input.name());
    handle->input_types.push_back(v1::text_of(input.type()));
  }
  for (const v1::ValueView& output : graph.outputs()) {
    handle->outputs.emplace_back(output.name());
    handle->output_types.push_back(v1::text_of(output.type()));
  }
  handle->weights = graph.initializers();
  return handle.release();
}

/// The element type of that name.
inline v1::DType dtype_of(const char* name) {
  const std::string text = text_of(name, "type");
  const auto dtype = v1::find_dtype(text);
  if (!dtype) throw BadArgument{"'" + text + "' is no element type"};
  return *dtype;
}

/// Names, of which a NULL is one that is left out where that is allowed.
inline std::vector<std::string> names_of(const char* const* names, size_t count, const char* what) {
  if (count > 0) required(names, what);
  std::vector<std::string> result;
  for (size_t i = 0; i < count; ++i) result.emplace_back(names[i] == nullptr ? "" : names[i]);
  return result;
}

/// The type of a tensor whose sizes are open where they are negative.
inline v1::Type type_of(const char* type, const int64_t* sizes, size_t rank) {
  if (rank > 0) required(sizes, "sizes");
  std::vector<v1::Dim> shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(sizes[i] < 0 ? v1::Dim("") : v1::Dim(sizes[i]));
  return v1::Type::tensor(dtype_of(type), std::move(shape));
}

}  // namespace tonnx::c_interface
