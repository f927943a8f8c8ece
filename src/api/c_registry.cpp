// c_registry.cpp - the interface in C: operators of the caller's own, as function pointers.
#include "api/c_internal.h"

struct tonnx_node {
  const tonnx::v1::OnnxNode* onnx = nullptr;  // one of the two
  const tonnx::v1::AtenNode* aten = nullptr;
};
struct tonnx_builder {
  tonnx::v1::AtenBuilder* aten = nullptr;  // one of the two
  tonnx::v1::OnnxBuilder* onnx = nullptr;
};
struct tonnx_arguments {
  std::vector<tonnx::v1::Argument> list;
};

namespace tonnx::c_interface {
namespace {

/// Values are handed out as pointers to what is inside.
const tonnx_value* pointer_of(v1::ValueView value) { return reinterpret_cast<const tonnx_value*>(value.handle()); }
v1::ValueView view_of(const tonnx_value* value) {
  return v1::ValueView(reinterpret_cast<const v1::detail::Value*>(value));
}

/// A function of the caller's, and what it is to be called with.
struct NodeFunction {
  tonnx_convert_node convert;
  void* context;

  std::vector<v1::ValueView> call(const tonnx_node& node, tonnx_builder& builder, size_t count) const {
    std::vector<const tonnx_value*> outputs(count);
    const int failure = convert(context, &node, &builder, outputs.data(), count);
    if (failure != 0)
      throw v1::Error(v1::Error::Kind::Unsupported,
                      "the caller's function for the operator returned " + std::to_string(failure));
    std::vector<v1::ValueView> views;
    for (const tonnx_value* output : outputs) {
      if (output == nullptr)
        throw v1::Error(v1::Error::Kind::InvalidModel, "the caller's function for the operator left out an output");
      views.push_back(view_of(output));
    }
    return views;
  }
};

template <class Value>
tonnx_status add_argument(tonnx_arguments* arguments, const char* name, Value value) noexcept {
  return guarded(nullptr, [&] {
    std::vector<v1::Argument>& list = required(arguments, "arguments").list;
    if (name == nullptr) {
      list.emplace_back(std::move(value));
    } else {
      list.emplace_back(name, std::move(value));
    }
  });
}

/// Asks a node of either kind.
template <class Ask>
void ask(const tonnx_node& node, Ask&& question) {
  if (node.onnx != nullptr) {
    question(*node.onnx);
  } else {
    question(*node.aten);
  }
}

}  // namespace
}  // namespace tonnx::c_interface

using namespace tonnx::c_interface;

tonnx_registry* tonnx_registry_new(void) {
  tonnx_registry* registry = nullptr;
  guarded(nullptr, [&] { registry = new tonnx_registry; });
  return registry;
}
void tonnx_registry_free(tonnx_registry* registry) { delete registry; }

tonnx_status tonnx_registry_add_onnx(tonnx_registry* registry, const char* signature, const char* like,
                                     tonnx_convert_node convert, void* context, tonnx_error** error) {
  return guarded(error, [&] {
    const NodeFunction function{&required(convert, "convert"), context};
    required(registry, "registry")
        .registry.add_onnx_many(
            text_of(signature, "signature"),
            [function](const tonnx::v1::OnnxNode& node, tonnx::v1::AtenBuilder& aten) {
              tonnx_builder builder{&aten, nullptr};
              return function.call(tonnx_node{&node, nullptr}, builder, node.node().output_count());
            },
            like == nullptr ? "" : like);
  });
}
tonnx_status tonnx_registry_add_aten(tonnx_registry* registry, const char* signature, tonnx_convert_node convert,
                                     void* context, tonnx_error** error) {
  return guarded(error, [&] {
    const NodeFunction function{&required(convert, "convert"), context};
    required(registry, "registry")
        .registry.add_aten(text_of(signature, "signature"),
                           [function](const tonnx::v1::AtenNode& node, tonnx::v1::OnnxBuilder& onnx) {
                             tonnx_builder builder{nullptr, &onnx};
                             return function.call(tonnx_node{nullptr, &node}, builder, 1).at(0);
                           });
  });
}
tonnx_status tonnx_options_set_registry(tonnx_options* options, const tonnx_registry* registry) {
  return set(options, [&](tonnx_options& open) {
    open.registry.reset();
    open.write.registry = nullptr;
    if (registry == nullptr) return;
    open.registry = registry->registry;
    open.write.registry = &*open.registry;
  });
}

const tonnx_value* tonnx_node_input(const tonnx_node* node, const char* name) {
  const tonnx_value* result = nullptr;
  guarded(nullptr, [&] {
    ask(required(node, "node"), [&](const auto& open) { result = pointer_of(open.find_input(text_of(name, "name"))); });
  });
  return result;
}
tonnx_status tonnx_node_int(const tonnx_node* node, const char* name, int64_t* value) {
  return guarded(nullptr, [&] {
    ask(required(node, "node"), [&](const auto& open) { required(value, "value") = open.i(text_of(name, "name")); });
  });
}
tonnx_status tonnx_node_float(const tonnx_node* node, const char* name, double* value) {
  return guarded(nullptr, [&] {
    ask(required(node, "node"), [&](const auto& open) { required(value, "value") = open.f(text_of(name, "name")); });
  });
}
tonnx_status tonnx_node_ints(const tonnx_node* node, const char* name, int64_t* values, size_t room, size_t* count) {
  return guarded(nullptr, [&] {
    if (room > 0) required(values, "values");
    ask(required(node, "node"), [&](const auto& open) {
      const std::vector<int64_t> found = open.ints(text_of(name, "name"));
      required(count, "count") = found.size();
      std::copy_n(found.begin(), std::min(room, found.size()), values);
    });
  });
}

tonnx_arguments* tonnx_arguments_new(void) { return new (std::nothrow) tonnx_arguments; }
void tonnx_arguments_free(tonnx_arguments* arguments) { delete arguments; }
tonnx_status tonnx_arguments_add_value(tonnx_arguments* arguments, const char* name, const tonnx_value* value) {
  return add_argument(arguments, name, view_of(value));
}
tonnx_status tonnx_arguments_add_int(tonnx_arguments* arguments, const char* name, int64_t value) {
  return add_argument(arguments, name, value);
}
tonnx_status tonnx_arguments_add_float(tonnx_arguments* arguments, const char* name, double value) {
  return add_argument(arguments, name, value);
}
tonnx_status tonnx_arguments_add_bool(tonnx_arguments* arguments, const char* name, int value) {
  return add_argument(arguments, name, value != 0);
}
tonnx_status tonnx_arguments_add_ints(tonnx_arguments* arguments, const char* name, const int64_t* values,
                                      size_t count) {
  if (count > 0 && values == nullptr) return TONNX_BAD_ARGUMENT;
  return add_argument(arguments, name, std::vector<int64_t>(values, values + count));
}

tonnx_status tonnx_builder_call(tonnx_builder* builder, const char* op, const tonnx_arguments* arguments,
                                const tonnx_value** result, tonnx_error** error) {
  return guarded(error, [&] {
    required(result, "result") = nullptr;
    tonnx::v1::AtenBuilder& aten = required(required(builder, "builder").aten, "the builder of a program");
    *result = pointer_of(aten(text_of(op, "op"), required(arguments, "arguments").list));
  });
}
tonnx_status tonnx_builder_node(tonnx_builder* builder, const char* op, const tonnx_value* const* inputs,
                                size_t input_count, const tonnx_attributes* attributes, const tonnx_value** result,
                                tonnx_error** error) {
  return guarded(error, [&] {
    required(result, "result") = nullptr;
    tonnx::v1::OnnxBuilder& onnx = required(required(builder, "builder").onnx, "the builder of ONNX");
    if (input_count > 0) required(inputs, "inputs");
    std::vector<tonnx::v1::ValueView> views;
    for (size_t i = 0; i < input_count; ++i) views.push_back(view_of(inputs[i]));
    const tonnx_attributes none;
    *result = pointer_of(onnx(text_of(op, "op"), views, (attributes == nullptr ? none : *attributes).list));
  });
}
tonnx_status tonnx_builder_constant(tonnx_builder* builder, const tonnx_tensor* tensor, const tonnx_value** result,
                                    tonnx_error** error) {
  return guarded(error, [&] {
    required(result, "result") = nullptr;
    tonnx_builder& open = required(builder, "builder");
    const tonnx::v1::Tensor& value = required(tensor, "tensor").tensor;
    *result = pointer_of(open.aten != nullptr ? open.aten->constant(value) : open.onnx->constant(value));
  });
}
