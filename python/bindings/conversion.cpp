// conversion.cpp - the binding of models of ONNX that become modules, with converters of the user's own.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "bindings.h"
#include "node_objects.h"
#include "tensors.h"

namespace nb = nanobind;

namespace tonnx::python_binding {
namespace {

/// Domain, operator and version of each node that a converter of the user's own takes.
using ExternalKeys = std::vector<std::tuple<std::string, std::string, int64_t>>;

std::vector<ExternalOp> external_of(const ExternalKeys& keys) {
  std::vector<ExternalOp> external;
  for (const auto& [domain, op, version] : keys) external.push_back({domain, op, version});
  return external;
}

nb::list unsupported(const ModuleConversion& self, const ExternalKeys& external) {
  nb::list result;
  for (const UnsupportedOp& op : self.unsupported(external_of(external))) {
    result.append(nb::make_tuple(text_object(op.domain), text_object(op.op), op.version, text_list(op.places),
                                 text_object(op.why)));
  }
  return result;
}

/// What a module takes and gives in the place of a node.
using Mappings = std::vector<std::pair<Names, Names>>;

void lower(ModuleConversion& self, const Mappings& mappings) {
  std::vector<ExternalCall> calls;
  for (const auto& [inputs, outputs] : mappings) calls.push_back({inputs, outputs});
  self.lower(calls);
}

nb::list external_nodes(const ModuleConversion& self) {
  nb::list result;
  for (const NodeView node : self.external_nodes()) result.append(node_object(node));
  return result;
}

nb::tuple source_and_state(ModuleConversion& self, const std::string& title, const std::vector<StoredTensors>& external,
                           bool mapped, bool flat) {
  std::vector<std::vector<ModuleWeight>> states;
  for (const StoredTensors& entries : external) states.push_back(weights_of(entries));
  return source_and_state_of(self.code({.title = title, .mapped = mapped, .flat = flat}, states));
}

std::vector<ExternalModule> modules_of(const Names& imports, const Names& constructors) {
  std::vector<ExternalModule> modules;
  for (size_t i = 0; i < constructors.size(); ++i) modules.push_back({imports.at(i), constructors[i], {}});
  return modules;
}

void write_python(ModuleConversion& self, const std::string& path, const Names& imports, const Names& constructors,
                  const std::vector<StoredTensors>& states, bool flat) {
  std::vector<ExternalModule> external = modules_of(imports, constructors);
  for (size_t i = 0; i < external.size(); ++i) external[i].state = weights_of(states.at(i));
  self.write(path, external, flat);
}

/// Input, axis, name, least and largest size.
using DynamicRows = std::vector<std::tuple<std::string, int64_t, std::string, int64_t, std::optional<int64_t>>>;

void write_model(const ModuleConversion& self, const std::string& path, std::optional<int64_t> opset,
                 std::optional<bool> external_data, const DynamicRows& dynamic, const nb::object& compare,
                 const nb::object& warn) {
  WriteOptions options;
  options.opset = opset;
  options.external_data = external_data;
  for (const auto& [input, axis, name, low, high] : dynamic) options.dynamic.push_back({input, axis, name, low, high});
  if (!compare.is_none()) {
    options.compare = [&compare](const std::string& a, const std::string& b) {
      return nb::cast<std::string>(compare(a, b));
    };
  }
  if (!warn.is_none()) options.on_warning = [&warn](const std::string& text) { warn(text_object(text)); };
  self.model().write(path, options);
}

}  // namespace

void bind_conversion(nb::module_& m) {
  nb::class_<ModuleConversion>(m, "Conversion")
      .def_static("read_file",
                  [](const std::string& path) { return ModuleConversion(Model::read(path, Format::Onnx)); })
      .def_static("read_bytes",
                  [](nb::bytes data, const std::string& folder, bool is_own) {
                    const Tensor bytes = tensor_of(std::move(data), is_own);
                    return ModuleConversion(Model::read(bytes, Format::Onnx, {.folder = folder}));
                  })
      .def(
          "replace_weights",
          [](ModuleConversion& self, const std::string& weights, const std::optional<std::string>& part) {
            self.model().replace_weights(weights, part);
          },
          nb::arg("weights"), nb::arg("part").none())
      .def("set_input_shapes",
           [](ModuleConversion& self, const Shapes& shapes) { self.model().set_input_shapes(shapes_of(shapes)); })
      .def("unsupported", unsupported)
      .def("copy_weights", &ModuleConversion::begin_copies)
      .def("has_external", [](const ModuleConversion& self,
                              const ExternalKeys& external) { return self.has_external(external_of(external)); })
      .def("prepare", [](ModuleConversion& self, const ExternalKeys& external) { self.prepare(external_of(external)); })
      .def("lower", lower)
      .def("external_nodes", external_nodes)
      .def("graph", [](const ModuleConversion& self) { return graph_object(self.model().graph()); })
      .def("source_and_state", source_and_state)
      .def("write_python", write_python)
      .def("write", write_model, nb::arg("path"), nb::arg("opset").none() = nb::none(),
           nb::arg("external_data").none() = nb::none(), nb::arg("dynamic") = nb::list(),
           nb::arg("compare").none() = nb::none(), nb::arg("warn").none() = nb::none())
      .def("text", [](const ModuleConversion& self) { return self.model().text(); });
  m.def(
      "write_module",
      [](const std::string& path, const std::string& source, const Names& imports, const Names& constructors,
         const StoredTensors& state) {
        write_module(path, source, modules_of(imports, constructors), weights_of(state));
      },
      nb::arg("path"), nb::arg("source"), nb::arg("imports"), nb::arg("constructors"), nb::arg("state"));
}

}  // namespace tonnx::python_binding
