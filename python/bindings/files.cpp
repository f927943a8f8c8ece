// files.cpp - the binding of what is done with files and bytes of models, and of what there is.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <tonnx/tonnx.h>
#include <tonnx/tools.h>

#include <filesystem>
#include <map>

#include "bindings.h"

namespace nb = nanobind;

namespace tonnx::python_binding {
namespace {

/// A path, or the bytes of a model, which must stay there as long as the model does.
Model read_onnx(const nb::object& source, const std::string& folder) {
  if (!nb::isinstance<nb::bytes>(source)) return Model::read(nb::cast<std::string>(source), Format::Onnx);
  const auto bytes = nb::cast<nb::bytes>(source);
  const auto* first = reinterpret_cast<const std::byte*>(bytes.c_str());
  return Model::read(std::span(first, bytes.size()), Format::Onnx, {.folder = folder});
}

nb::bytes bytes_of(const Model& model) {
  const std::vector<std::byte> bytes = model.to_bytes(Format::Onnx);
  return nb::bytes(bytes.data(), bytes.size());
}

uint64_t size_of_files(const std::string& target) {
  uint64_t size = 0;
  for (const std::string& path : {target, target + ".data"}) {
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(path, missing);
    size += missing ? 0 : bytes;
  }
  return size;
}

nb::tuple simplify(const nb::object& source, const std::string& folder, const std::optional<std::string>& target,
                   const Shapes& input_shapes, const Names& skip, const Names& only, const Names& enable,
                   const Names& unused_outputs, int64_t fold_limit, std::optional<int64_t> opset, bool infers_shapes,
                   std::optional<bool> external_data, bool verifies_passes, const nb::object& compare) {
  SimplifyOptions options;
  options.input_shapes = shapes_of(input_shapes);
  options.skip = skip;
  options.only = only;
  options.enable = enable;
  options.unused_outputs = unused_outputs;
  options.fold_limit = fold_limit;
  options.opset = opset;
  options.infers_shapes = infers_shapes;
  options.verifies_passes = verifies_passes;
  if (!compare.is_none()) {
    options.compare = [&compare](const std::string& a, const std::string& b) {
      return nb::cast<std::string>(compare(a, b));
    };
  }
  Model model = read_onnx(source, folder);
  const Report report = model.simplify(options);
  nb::object result = nb::none();
  uint64_t size = 0;
  if (target) {
    model.write(*target, {.format = Format::Onnx, .external_data = external_data});
    size = size_of_files(*target);
  } else {
    const nb::bytes bytes = bytes_of(model);
    size = bytes.size();
    result = bytes;
  }
  return nb::make_tuple(result, report.json(size), report.table(size));
}

nb::object infer(const nb::object& source, const std::string& folder, const std::optional<std::string>& target,
                 const Shapes& input_shapes) {
  Model model = read_onnx(source, folder);
  model.infer_shapes(shapes_of(input_shapes));
  if (!target) return bytes_of(model);
  model.write(*target, {.format = Format::Onnx});
  return nb::none();
}

void convert_file(const std::string& source, const std::string& target, std::optional<int64_t> opset,
                  std::optional<bool> external_data, const Names& allow_ops, std::optional<bool> source_lines,
                  bool flat, const std::string& weights, const std::optional<std::string>& part,
                  const Shapes& input_shapes, const TypeNames& input_types) {
  ConvertOptions options;
  options.read.input_shapes = shapes_of(input_shapes);
  options.read.input_types = types_of(input_types);
  options.read.weights = weights;
  options.read.part = part;
  options.write.opset = opset;
  options.write.external_data = external_data;
  options.write.source_lines = source_lines;
  options.write.flat = flat;
  options.write.allow_ops = allow_ops;
  convert(source, target, options);
}

}  // namespace

void bind_files(nb::module_& m) {
  m.def("simplify", simplify, nb::arg("source"), nb::arg("folder"), nb::arg("target").none(), nb::arg("input_shapes"),
        nb::arg("skip"), nb::arg("only"), nb::arg("enable"), nb::arg("unused_outputs"), nb::arg("fold_limit"),
        nb::arg("opset").none(), nb::arg("infers_shapes"), nb::arg("external_data").none(), nb::arg("verifies_passes"),
        nb::arg("compare").none());
  m.def("simplify_passes", [] {
    std::vector<std::tuple<std::string, std::string, bool>> result;
    for (const PassInfo& pass : simplify_passes()) result.emplace_back(pass.name, pass.sentence, pass.is_default);
    return result;
  });
  m.def("infer", infer, nb::arg("source"), nb::arg("folder"), nb::arg("target").none(), nb::arg("input_shapes"));
  m.def("convert_file", convert_file, nb::arg("source"), nb::arg("target"), nb::arg("opset").none(),
        nb::arg("external_data").none(), nb::arg("allow_ops"), nb::arg("source_lines").none(), nb::arg("flat"),
        nb::arg("weights"), nb::arg("part").none(), nb::arg("input_shapes") = Shapes(),
        nb::arg("input_types") = TypeNames());
  m.def("write_vetted_copy", write_vetted_copy, nb::arg("source"), nb::arg("target"), nb::arg("allow_ops") = Names());
  m.def(
      "write_text", [](const std::string& path, const std::string& text) { write_text(path, text); }, nb::arg("path"),
      nb::arg("text"));
  m.def("parse_bytes", &parse_bytes);
  m.def("standard_versions", [](const std::string& op) { return standard_versions(op); });
  m.def("advice_on", &advice_on);
  m.def("check_route", &require_options, nb::arg("source"), nb::arg("target"), nb::arg("given"));
  m.def("nearest_list", [](const std::string& name, const Names& known) { return nearest_list(name, known); });
  m.def("did_you_mean_text", [](const std::string& name, const Names& known) { return did_you_mean(name, known); });
}

}  // namespace tonnx::python_binding
