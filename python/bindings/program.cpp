// program.cpp - the binding of programs of PyTorch: exported in memory, scripted for one call, or read from a file.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <tonnx/live.h>

#include "bindings.h"
#include "node_objects.h"
#include "script_call.h"
#include "tensors.h"

namespace nb = nanobind;

namespace tonnx::python_binding {
namespace {

Model read_program(nb::bytes json, const std::map<std::string, Memory>& memory, bool rolls_loops) {
  std::vector<std::pair<std::string, Tensor>> storages;
  for (const auto& [name, storage] : memory) storages.emplace_back(name, tensor_of(storage));
  return read_live_program(tensor_of(std::move(json)), storages, rolls_loops);
}

Model read_file(const std::string& path, const std::string& weights, const std::optional<std::string>& part,
                const Shapes& input_shapes, const TypeNames& input_types) {
  ReadOptions options;
  options.weights = weights;
  options.part = part;
  options.input_shapes = shapes_of(input_shapes);
  options.input_types = types_of(input_types);
  return Model::read(path, options);
}

nb::list unsupported_operators(const Model& self, int64_t opset) {
  WriteOptions options;
  options.opset = opset;
  nb::list result;
  for (const UnsupportedOp& op : self.unsupported(Format::Onnx, options)) {
    const std::string target = op.op.empty() ? std::string() : op.domain + "::" + op.op;
    result.append(nb::make_tuple(text_object(target), op.places.size(), text_list(op.places), text_object(op.why)));
  }
  return result;
}

Model onnx_of(const Model& self, std::optional<int64_t> opset, bool export_params, bool keep_initializers_as_inputs,
              const std::map<std::string, int64_t>& custom_opsets, bool training, bool fold) {
  WriteOptions options;
  options.opset = opset;
  options.exporting.has_weights = export_params;
  options.exporting.weights_are_inputs = keep_initializers_as_inputs;
  options.exporting.is_training = training;
  options.exporting.folds = fold;
  options.exporting.custom_opsets = limits_of(custom_opsets);
  return self.to_onnx(options);
}

/// The module's code, and its weights; the program is of no other use afterwards.
nb::tuple module_of(Model& self, const std::string& title, const Names& allow_ops, bool mapped, bool flat) {
  ModuleConversion conversion(std::move(self));
  if (!mapped) conversion.begin_copies();
  conversion.prepare();
  conversion.lower({}, allow_ops);
  ModuleCode code = conversion.code({.title = title, .mapped = mapped, .flat = flat});
  self = std::move(conversion.model());
  return source_and_state_of(std::move(code));
}

/// Defines a method that takes the options of an export; `use` has the model of ONNX.
template <class Use>
void def_export(nb::class_<Model>& type, const char* name, Use use) {
  type.def(
      name,
      [use](const Model& self, std::optional<int64_t> opset, std::optional<bool>, bool export_params,
            bool keep_initializers_as_inputs, const std::map<std::string, int64_t>& custom_opsets, bool training,
            bool fold) {
        return use(onnx_of(self, opset, export_params, keep_initializers_as_inputs, custom_opsets, training, fold));
      },
      nb::arg("opset").none() = nb::none(), nb::arg("external_data").none() = nb::none(),
      nb::arg("export_params") = true, nb::arg("keep_initializers_as_inputs") = false,
      nb::arg("custom_opsets") = std::map<std::string, int64_t>(), nb::arg("training") = false, nb::arg("fold") = true);
}

}  // namespace

void bind_program(nb::module_& m) {
  nb::class_<Model> type(m, "Program");
  type.def_static("read", read_program)
      .def_static("read_file", read_file, nb::arg("path"), nb::arg("weights") = "", nb::arg("part").none() = nb::none(),
                  nb::arg("input_shapes") = Shapes(), nb::arg("input_types") = TypeNames())
      .def_static("read_script",
                  [](const std::string& path, const ScriptInputRows& inputs, const ScriptArgumentRows& arguments) {
                    return read_script(path, script_call_of(inputs, arguments));
                  })
      .def("output_names", &Model::output_names)
      .def("set_output_names", &Model::set_output_names)
      .def("source_and_state", module_of)
      .def("unsupported", unsupported_operators)
      .def("text", [](const Model& self) { return self.text(); })
      .def(
          "write_onnx",
          [](const Model& self, const std::string& path, std::optional<int64_t> opset,
             std::optional<bool> external_data, bool export_params, bool keep_initializers_as_inputs,
             const std::map<std::string, int64_t>& custom_opsets, bool training, bool fold) {
            onnx_of(self, opset, export_params, keep_initializers_as_inputs, custom_opsets, training, fold)
                .write(path, {.format = Format::Onnx, .external_data = external_data});
          },
          nb::arg("path"), nb::arg("opset").none() = nb::none(), nb::arg("external_data").none() = nb::none(),
          nb::arg("export_params") = true, nb::arg("keep_initializers_as_inputs") = false,
          nb::arg("custom_opsets") = std::map<std::string, int64_t>(), nb::arg("training") = false,
          nb::arg("fold") = true);
  def_export(type, "onnx_bytes", [](const Model& onnx) {
    const std::vector<std::byte> bytes = onnx.to_bytes(Format::Onnx);
    return nb::bytes(bytes.data(), bytes.size());
  });
  def_export(type, "onnx_text", [](const Model& onnx) { return onnx.text(); });
}

}  // namespace tonnx::python_binding
