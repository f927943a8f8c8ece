// core.cpp - the binding: what the Python package needs of the core, and nothing more.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "base/utf8.h"
#include "bindings.h"
#include "cli/commands.h"
#include "cli/signals.h"
#include "convert/file_kind.h"
#include "convert/pipeline.h"
#include "convert/raising.h"
#include "convert/weights.h"
#include "files.h"
#include "formats/onnx/onnx.h"
#include "formats/pt2/pt2.h"
#include "ir/text.h"
#include "node_objects.h"
#include "ops/frame/op_def.h"
#include "passes/passes.h"
#include "script_call.h"
#include "tensors.h"

namespace nb = nanobind;
using namespace tonnx;
using namespace tonnx::python_binding;

namespace {

/// Domain, operator and version of each node that a converter of the user's own takes.
using ExternalKeys = std::vector<std::tuple<std::string, std::string, int64_t>>;
std::vector<ExternalNode> external_of(const ExternalKeys& keys) {
  std::vector<ExternalNode> nodes;
  for (const auto& [domain, op, version] : keys) nodes.push_back({domain, op, version});
  return nodes;
}

nb::tuple source_and_state_of(const PythonModule& module, bool mapped, std::unique_ptr<Copies> begun) {
  const PythonState state = state_of(module.state, mapped, std::move(begun));
  return nb::make_tuple(module.source, state.entries, state.copies);
}

/// A model that was read, and what it was lowered to.
class Conversion {
 public:
  explicit Conversion(Model model) : model_(std::move(model)) {}

  Model& model() { return model_; }

  /// For a module whose weights are its own: they are copied while the model is converted.
  void copy_weights() { copies_ = begin_copies(*model_.graph); }

  bool has_external(std::vector<ExternalNode> external) const {
    LoweringOptions options = options_;
    options.external = std::move(external);
    return !tonnx::external_nodes(model_, options).empty();
  }

  void prepare(std::vector<ExternalNode> external) {
    options_.external = std::move(external);
    tonnx::prepare(model_, options_);
  }

  void lower(std::vector<ExternalMapping> mappings) {
    options_.mappings = std::move(mappings);
    lowered_ = lower_for_python(model_, options_);
  }

  nb::list external_nodes() {
    nb::list result;
    for (const Node* node : tonnx::external_nodes(model_, options_)) result.append(node_object(*node, buffers_));
    return result;
  }

  nb::dict graph() {
    nb::dict result;
    nb::list inputs, outputs, nodes;
    nb::dict types;
    for (const Value* value : model_.graph->inputs()) {
      if (value->constant || value->sparse) continue;
      inputs.append(text_object(value->name));
      if (value->type.is_tensor() && value->type.shape)
        types[text_object(value->name)] =
            nb::make_tuple(text_object(name_of(value->type.dtype)), sizes_object(*value->type.shape));
    }
    for (const Value* value : model_.graph->outputs()) outputs.append(text_object(value->name));
    for (const Node& node : *model_.graph) nodes.append(node_object(node, buffers_));
    nb::dict initializers;
    for (const Value* value : model_.graph->initializers()) {
      const TensorPtr tensor = value->constant ? value->constant : densified(*value->sparse);
      if (tensor->dtype != DType::String)
        initializers[text_object(value->name)] = describe_tensor(*widened(tensor), buffers_);
    }
    result["name"] = text_object(model_.graph->name);
    result["inputs"] = nb::tuple(inputs);
    result["input_types"] = types;
    result["outputs"] = nb::tuple(outputs);
    result["nodes"] = nodes;
    result["initializers"] = initializers;
    return result;
  }

  PythonModule write(const PythonOptions& options) { return python_of(*lowered_, model_, options); }

  /// The modules that converters gave have their weights: those are told to the code, and not given back.
  nb::tuple source_and_state(const std::string& title, const std::vector<std::vector<nb::tuple>>& external, bool mapped,
                             bool flat) {
    std::vector<std::vector<StateTensor>> states;
    states.reserve(external.size());
    for (const std::vector<nb::tuple>& entries : external) states.push_back(state_tensors(entries));
    PythonOptions options = memory_options(title, std::move(states));
    options.flat = flat;
    PythonModule module = write(options);
    for (const ExternalModule& each : options.external) module.state.resize(module.state.size() - each.state.size());
    return source_and_state_of(module, mapped, std::move(copies_));
  }

 private:
  Model model_;
  LoweringOptions options_;
  GraphPtr lowered_;
  BufferTable buffers_;
  std::unique_ptr<Copies> copies_;
};

using Shapes = std::map<std::string, std::vector<int64_t>>;
using TypeNames = std::map<std::string, std::string>;

std::map<std::string, DType> types_of(const TypeNames& names) {
  std::map<std::string, DType> types;
  for (const auto& [input, name] : names) {
    const auto dtype = find_dtype(name);
    require(dtype.has_value(), "the input '{}' is of the type '{}', which is none", input, name);
    types[input] = *dtype;
  }
  return types;
}

/// A program of PyTorch's that is to become ONNX, any number of times.
class LiveProgram {
 public:
  LiveProgram(nb::bytes json, const std::map<std::string, std::tuple<uintptr_t, size_t, nb::object>>& storages,
              bool rolls_loops) {
    const Bytes text = bytes_of(std::move(json));
    std::map<std::string, Bytes> bytes;
    for (const auto& [name, storage] : storages) bytes.emplace(name, bytes_of(storage));
    input_bytes_ = text.size();
    for (const auto& [name, storage] : bytes) input_bytes_ += storage.size();
    const BudgetScope scope;
    program_ = read_live_program(text, bytes);
    make_functional(program_, rolls_loops);
  }

  /// A .pt2 file, or a TorchScript archive with the shapes and types of its inputs.
  LiveProgram(const std::string& path, const ConvertOptions& options) : input_bytes_(std::filesystem::file_size(path)) {
    const BudgetScope scope;
    program_ = find_format(path) == Format::TorchScript ? read_script(path, options) : read_pt2(path);
    const std::string& weights = options.weights;
    if (!weights.empty()) replace_weights(*program_.model.graph, read_weights(weights, options.part), weights);
    make_functional(program_);
  }

  /// A TorchScript archive for one call.
  LiveProgram(const std::string& path, const ScriptCall& call) : input_bytes_(std::filesystem::file_size(path)) {
    const BudgetScope scope;
    program_ = read_script(path, call);
    make_functional(program_);
  }

  const std::vector<std::string>& output_names() const { return program_.output_names; }
  void set_output_names(const std::vector<std::string>& names) { program_.output_names = names; }

  nb::list unsupported() const {
    nb::list result;
    for (const UnsupportedAten& op : find_unsupported_aten(*program_.model.graph)) {
      result.append(
          nb::make_tuple(text_object(op.target), op.paths.size(), text_list(op.paths), text_object(op.reason)));
    }
    return result;
  }

  Model onnx(const ExportOptions& options) {
    const BudgetScope scope({}, input_bytes_);
    return onnx_of(program_, options);
  }
  std::string text() const { return print(program_.model); }

  /// The module's code, and its weights; the program is of no other use afterwards.
  nb::tuple source_and_state(const std::string& title, const std::vector<std::string>& allow_ops, bool mapped,
                             bool flat) {
    const BudgetScope scope({}, input_bytes_);
    auto copies = mapped ? nullptr : begin_copies(*program_.model.graph);
    ready_for_python(program_, AllowedOps(allow_ops));
    PythonOptions options = memory_options(title);
    options.flat = flat;
    const PythonModule module = write_python(*program_.model.graph, program_.model, options);
    return source_and_state_of(module, mapped, std::move(copies));
  }

 private:
  uint64_t input_bytes_ = 0;
  Program program_;
};

/// `with BudgetScope({"memory": 1 << 30}):`, the budget of one conversion in Python.
class PythonBudget {
 public:
  explicit PythonBudget(const Limits& limits) : limits_(limits) {}
  void enter() { scope_.emplace(limits_); }
  void exit() { scope_.reset(); }

 private:
  Limits limits_;
  std::optional<BudgetScope> scope_;
};

Limits limits_of(const std::map<std::string, int64_t>& given) {
  Limits limits;
  for (const auto& [name, value] : given) limits.set(name, value);
  return limits;
}

ExportOptions export_options(std::optional<int64_t> opset, bool export_params, bool keep_initializers_as_inputs,
                             const std::map<std::string, int64_t>& custom_opsets, bool training, bool fold) {
  ExportOptions options;
  if (opset) options.raising.opset = *opset;
  options.raising.training = training;
  options.raising.keeps_weights = !fold;
  options.export_params = export_params;
  options.keep_initializers_as_inputs = keep_initializers_as_inputs;
  options.custom_opsets = custom_opsets;
  return options;
}

ConvertOptions options_of(std::optional<int64_t> opset, const std::map<std::string, std::vector<int64_t>>& input_shapes,
                          std::optional<bool> external_data) {
  ConvertOptions options;
  options.opset = opset;
  options.input_shapes = input_shapes;
  options.external_data = external_data;
  return options;
}

/// What is no ONNX is told what it is.
Model read_onnx_file(const std::string& path) {
  require_content(path, Format::Onnx);
  return read_onnx(path);
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // a module that lives until Python ends keeps the memory of its weights
  m.attr("__version__") = TONNX_VERSION;
  m.attr("newest_opset") = kNewestOpset;

  static nb::object error_type = nb::steal(PyErr_NewException("tonnx._core.CoreError", PyExc_RuntimeError, nullptr));
  m.attr("CoreError") = error_type;
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      nb::object value = error_type(nb::str(visible_text(e.what(), true).c_str()), nb::str(name_of(e.kind())));
      PyErr_SetObject(error_type.ptr(), value.ptr());
    }
  });

  m.def(
      "run_cli",
      [](const std::vector<std::string>& arguments, const nb::object& compare) {
        std::vector<const char*> argv;
        for (const std::string& argument : arguments) argv.push_back(argument.c_str());
        cli::JudgeMaker make_judge;
        if (!compare.is_none()) {
          make_judge = [function = nb::handle(compare)](const cli::JudgeOptions& options) -> cli::CompareFiles {
            return [function, options](const std::string& source, const std::string& result) {
              return python_binding::call_for_text(function, source, result, options.times, options.shapes,
                                                   options.data, options.relative, options.absolute, options.allow_ops,
                                                   options.library);
            };
          };
        }
        const nb::gil_scoped_release no_gil;
        return cli::run(static_cast<int>(argv.size()), argv.data(), make_judge);
      },
      nb::arg("arguments"), nb::arg("compare").none() = nb::none());

  m.def("guard_signals", cli::guard_signals);
  python_binding::bind_files(m);
  python_binding::bind_batch(m);

  python_binding::bind_tensors(m);
  nb::class_<PythonBudget>(m, "Budget")
      .def("__init__", [](PythonBudget* self,
                          const std::map<std::string, int64_t>& limits) { new (self) PythonBudget(limits_of(limits)); })
      .def("__enter__", &PythonBudget::enter)
      .def("__exit__", [](PythonBudget& self, const nb::args&) { self.exit(); });
  m.def("standard_versions", [](const std::string& op) {
    const auto versions = standard_versions(op);
    return std::vector<int>(versions.begin(), versions.end());
  });
  m.def("advice_on", &advice_on);
  m.def(
      "check_route",
      [](const std::string& source, const std::string& target, const std::vector<std::string>& given) {
        static const std::map<std::string, RouteOption> names = {{"opset", RouteOption::Opset},
                                                                 {"external_data", RouteOption::ExternalData},
                                                                 {"input_shapes", RouteOption::InputShapes},
                                                                 {"dynamic", RouteOption::Dynamic},
                                                                 {"allow_ops", RouteOption::AllowOps},
                                                                 {"mmap", RouteOption::Mapped},
                                                                 {"source_lines", RouteOption::SourceLines},
                                                                 {"flat", RouteOption::Flat},
                                                                 {"weights", RouteOption::Weights},
                                                                 {"part", RouteOption::Part},
                                                                 {"input_types", RouteOption::InputTypes}};
        std::vector<RouteOption> options;
        for (const std::string& name : given) options.push_back(names.at(name));
        route(source, target, options);
      },
      nb::arg("source"), nb::arg("target"), nb::arg("given"));
  m.def(
      "write_module",
      [](const std::string& path, const std::string& source, const std::vector<std::string>& imports,
         const std::vector<std::string>& constructors, const std::vector<nb::tuple>& state) {
        PythonOptions options = file_options(path, /*flat=*/false);
        for (size_t i = 0; i < constructors.size(); ++i) options.external.push_back({imports[i], constructors[i], {}});
        PythonModule module;
        module.state = state_tensors(state);
        module.source = source_for_file(source, options, module.state);
        write_python_files(module, path);
      },
      nb::arg("path"), nb::arg("source"), nb::arg("imports"), nb::arg("constructors"), nb::arg("state"));
  m.attr("default_opset") = RaiseOptions().opset;
  nb::class_<LiveProgram>(m, "Program")
      .def_static("read",
                  [](nb::bytes json, const std::map<std::string, std::tuple<uintptr_t, size_t, nb::object>>& storages,
                     bool rolls_loops) { return LiveProgram(std::move(json), storages, rolls_loops); })
      .def_static(
          "read_file",
          [](const std::string& path, const std::string& weights, const std::optional<std::string>& part,
             const Shapes& input_shapes, const TypeNames& input_types) {
            ConvertOptions options;
            options.weights = weights;
            options.part = part;
            options.input_shapes = input_shapes;
            options.input_types = types_of(input_types);
            return LiveProgram(path, options);
          },
          nb::arg("path"), nb::arg("weights") = "", nb::arg("part").none() = nb::none(),
          nb::arg("input_shapes") = Shapes(), nb::arg("input_types") = TypeNames())
      .def_static("read_script",
                  [](const std::string& path, const ScriptInputRows& inputs, const ScriptArgumentRows& arguments) {
                    return LiveProgram(path, script_call_of(inputs, arguments));
                  })
      .def("output_names", &LiveProgram::output_names)
      .def("set_output_names", &LiveProgram::set_output_names)
      .def("source_and_state", &LiveProgram::source_and_state)
      .def("unsupported", [](LiveProgram& self, int64_t) { return self.unsupported(); })
      .def("text", &LiveProgram::text)
      .def(
          "write_onnx",
          [](LiveProgram& self, const std::string& path, std::optional<int64_t> opset,
             std::optional<bool> external_data, bool export_params, bool keep_initializers_as_inputs,
             const std::map<std::string, int64_t>& custom_opsets, bool training, bool fold) {
            write_onnx(self.onnx(export_options(opset, export_params, keep_initializers_as_inputs, custom_opsets,
                                                training, fold)),
                       path, {.external_data = external_data});
          },
          nb::arg("path"), nb::arg("opset").none() = nb::none(), nb::arg("external_data").none() = nb::none(),
          nb::arg("export_params") = true, nb::arg("keep_initializers_as_inputs") = false,
          nb::arg("custom_opsets") = std::map<std::string, int64_t>(), nb::arg("training") = false,
          nb::arg("fold") = true)
      .def(
          "onnx_bytes",
          [](LiveProgram& self, std::optional<int64_t> opset, std::optional<bool>, bool export_params,
             bool keep_initializers_as_inputs, const std::map<std::string, int64_t>& custom_opsets, bool training,
             bool fold) {
            const std::string bytes = write_onnx_bytes(self.onnx(
                export_options(opset, export_params, keep_initializers_as_inputs, custom_opsets, training, fold)));
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("opset").none() = nb::none(), nb::arg("external_data").none() = nb::none(),
          nb::arg("export_params") = true, nb::arg("keep_initializers_as_inputs") = false,
          nb::arg("custom_opsets") = std::map<std::string, int64_t>(), nb::arg("training") = false,
          nb::arg("fold") = true)
      .def(
          "onnx_text",
          [](LiveProgram& self, std::optional<int64_t> opset, std::optional<bool>, bool export_params,
             bool keep_initializers_as_inputs, const std::map<std::string, int64_t>& custom_opsets, bool training,
             bool fold) {
            return print(self.onnx(
                export_options(opset, export_params, keep_initializers_as_inputs, custom_opsets, training, fold)));
          },
          nb::arg("opset").none() = nb::none(), nb::arg("external_data").none() = nb::none(),
          nb::arg("export_params") = true, nb::arg("keep_initializers_as_inputs") = false,
          nb::arg("custom_opsets") = std::map<std::string, int64_t>(), nb::arg("training") = false,
          nb::arg("fold") = true);

  nb::class_<Conversion>(m, "Conversion")
      .def_static("read_file", [](const std::string& path) { return Conversion(read_onnx_file(path)); })
      .def_static("read_bytes",
                  [](nb::bytes data, const std::string& folder, bool is_own) {
                    return Conversion(read_onnx(bytes_of(std::move(data), is_own), folder));
                  })
      .def(
          "replace_weights",
          [](Conversion& self, const std::string& weights, const std::optional<std::string>& part) {
            replace_weights(*self.model().graph, read_weights(weights, part), weights);
          },
          nb::arg("weights"), nb::arg("part").none())
      .def("set_input_shapes",
           [](Conversion& self, const std::map<std::string, std::vector<int64_t>>& shapes) {
             set_input_shapes(self.model(), shapes);
           })
      .def("unsupported",
           [](Conversion& self, const std::vector<std::tuple<std::string, std::string, int64_t>>& external) {
             LoweringOptions options;
             for (const auto& [domain, op, version] : external) options.external.push_back({domain, op, version});
             nb::list result;
             for (const UnsupportedOp& op : find_unsupported(self.model(), options)) {
               result.append(nb::make_tuple(text_object(op.domain), text_object(op.op), op.version, text_list(op.nodes),
                                            text_object(op.reason)));
             }
             return result;
           })
      .def("copy_weights", &Conversion::copy_weights)
      .def("has_external",
           [](Conversion& self, const ExternalKeys& external) { return self.has_external(external_of(external)); })
      .def("prepare", [](Conversion& self, const ExternalKeys& external) { self.prepare(external_of(external)); })
      .def("lower",
           [](Conversion& self,
              const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>& mappings) {
             std::vector<ExternalMapping> all;
             for (const auto& [inputs, outputs] : mappings) all.push_back({inputs, outputs});
             self.lower(std::move(all));
           })
      .def("external_nodes", &Conversion::external_nodes)
      .def("graph", &Conversion::graph)
      .def("source_and_state", &Conversion::source_and_state)
      .def("write_python",
           [](Conversion& self, const std::string& path, const std::vector<std::string>& imports,
              const std::vector<std::string>& constructors, const std::vector<std::vector<nb::tuple>>& states,
              bool flat) {
             PythonOptions options = file_options(path, flat);
             for (size_t i = 0; i < constructors.size(); ++i)
               options.external.push_back({imports[i], constructors[i], state_tensors(states[i])});
             write_python_files(self.write(options), path);
           })
      .def(
          "write",
          [](Conversion& self, const std::string& path, std::optional<int64_t> opset, std::optional<bool> external_data,
             const std::vector<std::tuple<std::string, int64_t, std::string, int64_t, std::optional<int64_t>>>&
                 dynamic) {
            ConvertOptions options = options_of(opset, {}, external_data);
            for (const auto& [input, axis, name, low, high] : dynamic)
              options.dynamic.push_back({input, axis, name, low, high});
            convert_model(self.model(), path, options);
          },
          nb::arg("path"), nb::arg("opset").none() = nb::none(), nb::arg("external_data").none() = nb::none(),
          nb::arg("dynamic") = nb::list())
      .def("text", [](Conversion& self) { return print(self.model()); });
}
