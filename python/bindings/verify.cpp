// verify.cpp - the binding of the judge: models that Python runs, and what was found of them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <tonnx/probe.h>
#include <tonnx/tools.h>

#include "bindings.h"
#include "node_objects.h"
#include "tensors.h"

namespace nb = nanobind;

namespace tonnx::python_binding {
namespace {

/// What Python raised that is no error of a model: it ends the comparison.
struct Raised {
  nb::python_error error;
};

/// Element type, sizes, and the elements: (address, size, object that keeps it alive), or texts.
using GivenTensor = std::tuple<std::string, std::vector<int64_t>, nb::object>;

Tensor tensor_from(const nb::handle& object) {
  if (object.is_none()) return {};
  const auto [name, dims, elements] = nb::cast<GivenTensor>(object);
  if (name == "string") return Tensor::strings(dims, nb::cast<std::vector<std::string>>(elements));
  const auto dtype = find_dtype(name);
  if (!dtype) throw Error(Error::Kind::Unsupported, "a value is of " + name + ", which ONNX does not have");
  return borrowed_tensor(*dtype, dims, nb::cast<Memory>(elements));
}

nb::object tensor_to(const Tensor& tensor) {
  if (tensor.dtype() == DType::Undefined) return nb::none();
  nb::list dims;
  for (const int64_t dim : tensor.dims()) dims.append(dim);
  const nb::str name(std::string(name_of(tensor.dtype())).c_str());
  if (tensor.dtype() == DType::String) {
    nb::list texts;
    for (const std::string& text : tensor.view().strings()) texts.append(text_object(text));
    return nb::make_tuple(name, dims, texts);
  }
  return nb::make_tuple(name, dims, nb::object(describe_tensor(tensor)[0]));
}

nb::list tensors_to(const std::vector<Tensor>& tensors) {
  nb::list result;
  for (const Tensor& tensor : tensors) result.append(tensor_to(tensor));
  return result;
}

std::vector<Tensor> tensors_from(const nb::handle& objects) {
  std::vector<Tensor> result;
  for (const nb::handle object : objects) result.push_back(tensor_from(object));
  return result;
}

nb::dict by_place_to(const ProbedRunner::ByPlace& values) {
  nb::dict result;
  for (const auto& [place, value] : values) result[nb::int_(place)] = tensor_to(value);
  return result;
}

Dim dim_from(const nb::handle& object) {
  if (object.is_none()) return int64_t{-1};
  if (nb::isinstance<nb::int_>(object)) return nb::cast<int64_t>(object);
  return nb::cast<std::string>(object);
}

Runner::Step step_from(const nb::handle& object) {
  Runner::Step step(nb::cast<std::string>(object.attr("name")));
  step.op = nb::cast<std::string>(object.attr("op"));
  for (const nb::handle parent : object.attr("parents")) step.parents.push_back(nb::cast<int64_t>(parent));
  step.layer = nb::cast<std::string>(object.attr("layer"));
  step.module = nb::cast<std::string>(object.attr("module"));
  for (const nb::handle name : object.attr("weights")) step.weights.push_back(nb::cast<std::string>(name));
  for (const nb::handle path : object.attr("paths")) step.paths.push_back(nb::cast<std::string>(path));
  return step;
}

std::vector<Runner::Step> steps_from(const nb::handle& objects) {
  std::vector<Runner::Step> result;
  for (const nb::handle object : objects) result.push_back(step_from(object));
  return result;
}

/// A model that an object of Python runs: _verify/bridge.py says what it has.
class PythonRunner : public ProbedRunner {
 public:
  explicit PythonRunner(nb::handle object) : object_(object) {
    const nb::object path = object.attr("model_path"), data = object.attr("model_data");
    if (path.is_none() && data.is_none()) return;
    try {
      model_ = path.is_none() ? Model::read(tensor_of(nb::cast<nb::bytes>(data)), Format::Onnx)
                              : Model::read(nb::cast<std::string>(path));
    } catch (const Error&) {
      // nothing is known of it then: whoever runs it says what is wrong
    }
  }

  std::string title() const override {
    return asked([&] { return nb::cast<std::string>(object_.attr("title")); });
  }
  const Model* model() const override { return model_ ? &*model_ : nullptr; }

  std::vector<Value> inputs() const override {
    return asked([&] {
      std::vector<Value> result;
      for (const nb::handle each : object_.attr("inputs")()) {
        const auto [name, dtype, shape, limit] =
            nb::cast<std::tuple<std::string, std::string, nb::object, std::optional<int64_t>>>(each);
        Value& value = result.emplace_back();
        value.name = name;
        value.limit = limit;
        value.type.kind = Type::Kind::Tensor;
        if (!dtype.empty()) value.type.dtype = dtype_named(dtype, name);
        if (shape.is_none()) continue;
        value.type.shape.emplace();
        for (const nb::handle size : shape) value.type.shape->push_back(dim_from(size));
      }
      return result;
    });
  }

  std::vector<Range> ranges() const override {
    return asked([&] {
      std::vector<Range> result;
      for (const nb::handle each : object_.attr("ranges")()) {
        const auto [name, low, high] = nb::cast<std::tuple<std::string, int64_t, std::optional<int64_t>>>(each);
        result.push_back({name, low, high.value_or(INT64_MAX)});
      }
      return result;
    });
  }

  Numerics numerics() const override {
    return asked([&] {
      const auto [precision, layers, numbers] =
          nb::cast<std::tuple<std::string, double, double>>(object_.attr("numerics")());
      return Numerics{find_dtype(precision).value_or(DType::Float32), precision == "int8", layers, numbers};
    });
  }

  std::vector<std::string> outputs() const override { return outputs_; }

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) override {
    return asked([&] {
      const nb::object found = object_.attr("run")(tensors_to(inputs));
      outputs_ = nb::cast<std::vector<std::string>>(found[0]);
      return tensors_from(found[1]);
    });
  }

  std::vector<Tensor> run_inner(const std::vector<Tensor>& inputs, const std::vector<size_t>& places) override {
    return asked([&] { return tensors_from(object_.attr("fetch")(tensors_to(inputs), places)); });
  }

  std::vector<Step> inner() const override { return steps_; }

  std::vector<Step> trace(const std::vector<Tensor>& inputs, const Visit& visit) override {
    const bool has_steps = asked([&] {
      const nb::object found = object_.attr("find_steps")(tensors_to(inputs));
      if (!found.is_none()) steps_ = steps_from(found);
      return !found.is_none();
    });
    if (has_steps) return ProbedRunner::trace(inputs, visit);
    return asked([&] {
      const nb::object see = called_back([&](size_t place, const nb::object& value) {
        visit(place, tensor_from(value));
        return nb::none();
      });
      return steps_from(object_.attr("trace")(tensors_to(inputs), see));
    });
  }

  std::vector<Tensor> run_with(const std::vector<Tensor>& inputs, const ByPlace& given) override {
    return asked([&] { return tensors_from(object_.attr("run_with")(tensors_to(inputs), by_place_to(given))); });
  }

  std::vector<Tensor> recompute(const std::vector<Tensor>& inputs, const ByPlace& given,
                                const std::vector<size_t>& wanted) override {
    return asked(
        [&] { return tensors_from(object_.attr("recompute")(tensors_to(inputs), by_place_to(given), wanted)); });
  }

  std::optional<Gradients> gradients(const std::vector<Tensor>& inputs, const Factors& factors,
                                     bool is_inside) override {
    return asked([&]() -> std::optional<Gradients> {
      const nb::object factor = called_back([&](size_t place, const nb::object& value) -> nb::object {
        return tensor_to(factors(place, tensor_from(value)));
      });
      const nb::object found = object_.attr("gradients")(tensors_to(inputs), factor, is_inside);
      if (found.is_none()) return std::nullopt;
      Gradients result;
      result.work = nb::cast<double>(found[1]);
      for (const nb::handle each : found[0]) {
        const nb::object gradient = each[2];
        result.weights.push_back({nb::cast<std::string>(each[0]), tensor_from(each[1]),
                                  gradient.is_none() ? std::nullopt : std::optional(tensor_from(gradient))});
      }
      return result;
    });
  }

 private:
  static DType dtype_named(const std::string& name, const std::string& input) {
    const auto dtype = find_dtype(name);
    if (!dtype) throw Error(Error::Kind::Unsupported, "input '" + input + "' is of " + name + ": give --inputs");
    return *dtype;
  }

  /// Calls Python. Errors of the package are those of a runner; all else ends the comparison, and so does what the
  /// judge throws out of a function that it gave to Python.
  template <class Body>
  auto asked(Body&& body) const -> decltype(body()) {
    const nb::gil_scoped_acquire gil;
    try {
      return body();
    } catch (nb::python_error& e) {
      if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
      if (nb::hasattr(e.value(), "kind")) throw error_of(e);
      throw Raised{std::move(e)};
    }
  }

  /// A function of the judge's as one of Python's. What it throws goes on once Python has returned.
  template <class Function>
  nb::object called_back(Function&& function) const {
    return nb::cpp_function(
        [this, function](size_t place, const nb::object& value) -> nb::object {
          try {
            return function(place, value);
          } catch (...) {
            thrown_ = std::current_exception();
          }
          throw nb::type_error("the comparison is over");
        },
        nb::arg("place"), nb::arg("value").none());
  }

  nb::handle object_;
  std::optional<Model> model_;
  std::vector<std::string> outputs_;
  std::vector<Step> steps_;  // whose values can be asked for
  mutable std::exception_ptr thrown_;
};

nb::dict dict_of(const OutputComparison& output) {
  nb::dict result;
  result["name"] = text_object(output.name);
  result["counterpart"] = text_object(output.counterpart);
  result["type"] = text_object(output.type);
  result["max_abs"] = output.max_abs;
  result["max_rel"] = output.max_rel;
  result["mse"] = output.mse;
  result["cosine"] = output.cosine;
  result["rtol"] = output.rtol;
  result["atol"] = output.atol;
  result["wrong"] = output.wrong;
  result["elements"] = output.elements;
  result["ok"] = output.is_same;
  result["why"] = text_object(output.why);
  result["is_rounding"] = output.is_rounding;
  return result;
}

nb::dict dict_of(const LayerComparison& layer) {
  constexpr const char* kHow[] = {"name", "value", "place"};
  nb::dict result = dict_of(static_cast<const OutputComparison&>(layer));
  result["index"] = layer.index;
  result["counterpart_index"] = layer.counterpart_index;
  result["layer"] = text_object(layer.layer);
  result["op"] = text_object(layer.op);
  result["module"] = text_object(layer.module);
  result["counterpart_layer"] = text_object(layer.counterpart_layer);
  result["counterpart_op"] = text_object(layer.counterpart_op);
  result["weights"] = nb::tuple(text_list(layer.weights));
  result["covers"] = nb::tuple(text_list(layer.covers));
  result["how"] = kHow[static_cast<size_t>(layer.how)];
  result["depth"] = static_cast<int64_t>(layer.depth);
  return result;
}

nb::dict dict_of(const SizeCheck& check) {
  nb::dict result;
  result["name"] = text_object(check.name);
  result["is_compared"] = check.is_compared;
  result["sizes"] = check.sizes;
  result["ok"] = check.is_same;
  result["why"] = text_object(check.why);
  result["note"] = text_object(check.note);
  return result;
}

nb::object dict_of(const std::optional<Coverage>& coverage) {
  if (!coverage) return nb::none();
  nb::dict result, hidden;
  for (const auto& [name, why] : coverage->hidden) hidden[text_object(name)] = text_object(why);
  result["weights"] = coverage->weights;
  result["outputs"] = coverage->outputs;
  result["inside"] = coverage->inside;
  result["hidden"] = hidden;
  return result;
}

template <class List>
nb::list dicts_of(const List& list) {
  nb::list result;
  for (const auto& each : list) result.append(dict_of(each));
  return result;
}

nb::dict dict_of(const VerifyResult& found) {
  nb::dict result, inputs;
  for (const auto& [name, type] : found.inputs) inputs[text_object(name)] = text_object(type);
  result["inputs"] = inputs;
  result["is_random"] = found.is_random;
  result["draws"] = text_list(found.draws);
  result["outputs"] = dicts_of(found.outputs);
  result["missing"] = text_list(found.missing);
  result["layers"] = dicts_of(found.layers);
  result["first_difference"] = found.first_difference ? nb::object(dict_of(*found.first_difference)) : nb::none();
  result["is_hidden_difference"] = found.is_hidden_difference;
  result["inside"] = found.inside;
  result["steps"] = found.steps ? nb::object(nb::make_tuple(found.steps->first, found.steps->second)) : nb::none();
  result["coverage"] = dict_of(found.coverage);
  result["sizes"] = dicts_of(found.sizes);
  result["left_out"] = text_list(found.left_out);
  result["verdict"] = text_object(found.verdict);
  result["difference"] = text_object(found.difference);
  result["text"] = text_object(found.text);
  return result;
}

struct JudgeArguments {
  nb::dict inputs;
  Shapes shapes;
  uint64_t seed;
  std::string fill;
  std::optional<double> rtol, atol;
  bool layers, outputs_only, may_drop_outputs;
  int draws;
  uint64_t memory;
  nb::object tell;
};

VerifyOptions options_of(const JudgeArguments& arguments) {
  VerifyOptions options;
  for (const auto& [name, value] : arguments.inputs)
    options.inputs.emplace_back(nb::cast<std::string>(name), tensor_from(value));
  options.shapes = shapes_of(arguments.shapes);
  options.seed = arguments.seed;
  const std::string& fill = arguments.fill;
  options.fill = fill == "ones"     ? Fill::Ones
                 : fill == "zeros"  ? Fill::Zeros
                 : fill == "arange" ? Fill::Arange
                                    : Fill::Random;
  options.rtol = arguments.rtol;
  options.atol = arguments.atol;
  options.layers = arguments.layers;
  options.outputs_only = arguments.outputs_only;
  options.may_drop_outputs = arguments.may_drop_outputs;
  options.draws = arguments.draws;
  options.memory = arguments.memory;
  options.on_progress = [tell = nb::handle(arguments.tell)](const char* what, size_t done, size_t all) {
    const nb::gil_scoped_acquire gil;
    try {
      tell(what, done, all);
    } catch (nb::python_error& e) {
      throw Raised{std::move(e)};
    }
  };
  return options;
}

nb::object judged(const nb::object& a, const nb::object& b, const nb::dict& inputs, const Shapes& shapes, uint64_t seed,
                  const std::string& fill, std::optional<double> rtol, std::optional<double> atol, bool layers,
                  bool outputs_only, bool may_drop_outputs, int draws, uint64_t memory, const nb::object& tell) {
  const VerifyOptions options =
      options_of({inputs, shapes, seed, fill, rtol, atol, layers, outputs_only, may_drop_outputs, draws, memory, tell});
  PythonRunner first(a), second(b);
  try {
    VerifyResult found;
    {
      const nb::gil_scoped_release no_gil;
      found = verify(first, second, options);
    }
    return dict_of(found);
  } catch (Raised& raised) {
    raised.error.restore();
  }
  throw nb::python_error();
}

OutputComparison output_from(const nb::dict& given) {
  OutputComparison output;
  output.name = nb::cast<std::string>(given["name"]);
  output.type = nb::cast<std::string>(given["type"]);
  output.max_abs = nb::cast<double>(given["max_abs"]);
  output.max_rel = nb::cast<double>(given["max_rel"]);
  output.mse = nb::cast<double>(given["mse"]);
  output.cosine = nb::cast<double>(given["cosine"]);
  output.rtol = nb::cast<double>(given["rtol"]);
  output.atol = nb::cast<double>(given["atol"]);
  output.wrong = nb::cast<int64_t>(given["wrong"]);
  output.elements = nb::cast<int64_t>(given["elements"]);
  output.is_same = nb::cast<bool>(given["ok"]);
  output.why = nb::cast<std::string>(given["why"]);
  output.is_rounding = nb::cast<bool>(given["is_rounding"]);
  return output;
}

std::string layer_title(const nb::dict& given) {
  LayerComparison layer;
  layer.name = nb::cast<std::string>(given["name"]);
  layer.counterpart = nb::cast<std::string>(given["counterpart"]);
  layer.layer = nb::cast<std::string>(given["layer"]);
  layer.op = nb::cast<std::string>(given["op"]);
  layer.module = nb::cast<std::string>(given["module"]);
  layer.counterpart_layer = nb::cast<std::string>(given["counterpart_layer"]);
  layer.counterpart_op = nb::cast<std::string>(given["counterpart_op"]);
  for (const nb::handle name : given["weights"]) layer.weights.push_back(nb::cast<std::string>(name));
  for (const nb::handle name : given["covers"]) layer.covers.push_back(nb::cast<std::string>(name));
  return layer.title();
}

std::string size_text(const nb::dict& given) {
  SizeCheck check;
  check.name = nb::cast<std::string>(given["name"]);
  check.is_compared = nb::cast<bool>(given["is_compared"]);
  check.sizes = nb::cast<std::vector<int64_t>>(given["sizes"]);
  check.is_same = nb::cast<bool>(given["ok"]);
  check.why = nb::cast<std::string>(given["why"]);
  check.note = nb::cast<std::string>(given["note"]);
  return check.text();
}

std::string coverage_text(size_t weights, size_t outputs, size_t inside,
                          const std::vector<std::pair<std::string, std::string>>& hidden) {
  return Coverage{weights, outputs, inside, hidden}.text();
}

}  // namespace

void bind_verify(nb::module_& m) {
  static nb::object cannot_run =
      nb::steal(PyErr_NewException("tonnx._core.CannotRun", m.attr("CoreError").ptr(), nullptr));
  static nb::object shape_unknown =
      nb::steal(PyErr_NewException("tonnx._core.ShapeUnknown", m.attr("CoreError").ptr(), nullptr));
  m.attr("CannotRun") = cannot_run;
  m.attr("ShapeUnknown") = shape_unknown;
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const CannotRun& e) {
      const nb::object value = cannot_run(text_object(e.what()), nb::str(kind_name(e.kind())));
      PyErr_SetObject(cannot_run.ptr(), value.ptr());
    } catch (const ShapeUnknown& e) {
      const nb::object value = shape_unknown(text_object(e.input()), nb::str(kind_name(e.kind())));
      PyErr_SetObject(shape_unknown.ptr(), value.ptr());
    }
  });
  m.def("judge", judged, nb::arg("a"), nb::arg("b"), nb::arg("inputs"), nb::arg("shapes"), nb::arg("seed"),
        nb::arg("fill"), nb::arg("rtol").none(), nb::arg("atol").none(), nb::arg("layers"), nb::arg("outputs_only"),
        nb::arg("may_drop_outputs"), nb::arg("draws"), nb::arg("memory"), nb::arg("tell"));
  m.def("output_text", [](const nb::dict& given) { return output_from(given).text(); });
  m.def("layer_title", layer_title);
  m.def("size_text", size_text);
  m.def("coverage_text", coverage_text);
}

}  // namespace tonnx::python_binding
