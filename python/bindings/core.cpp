// core.cpp - the binding: what the Python package needs of the library and of the command line, and nothing more.
#include <nanobind/nanobind.h>
#include <tonnx/tools.h>

#include <optional>

#include "bindings.h"
#include "cli/commands.h"
#include "cli/process.h"

namespace nb = nanobind;
using namespace tonnx::python_binding;  // NOLINT

namespace {

/// `with Budget({"memory": 1 << 30}):`, the budget of one conversion in Python.
class Budget {
 public:
  explicit Budget(const std::map<std::string, int64_t>& limits) : limits_(limits_of(limits)) {}
  void enter() { scope_.emplace(limits_); }
  void exit() { scope_.reset(); }

 private:
  tonnx::Limits limits_;
  std::optional<tonnx::LimitScope> scope_;
};

int run_cli(const std::vector<std::string>& arguments, const nb::object& compare) {
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  tonnx::cli::JudgeMaker make_judge;
  if (!compare.is_none()) {
    make_judge = [function = nb::handle(compare)](const tonnx::cli::JudgeOptions& options) -> tonnx::cli::CompareFiles {
      return [function, options](const std::string& source, const std::string& result) {
        return call_for_text(function, source, result, options.times, options.shapes, options.data, options.relative,
                             options.absolute, options.allow_ops, options.library, options.outputs_only);
      };
    };
  }
  const nb::gil_scoped_release no_gil;
  return tonnx::cli::run(static_cast<int>(argv.size()), argv.data(), make_judge);
}

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // a module that lives until Python ends keeps the memory of its weights
  m.attr("__version__") = tonnx::version();
  m.attr("newest_opset") = tonnx::newest_opset();
  m.attr("default_opset") = tonnx::default_opset();
  bind_errors(m);
  m.def("run_cli", run_cli, nb::arg("arguments"), nb::arg("compare").none() = nb::none());
  m.def("guard_signals", tonnx::cli::guard_signals);
  nb::class_<Budget>(m, "Budget")
      .def(nb::init<const std::map<std::string, int64_t>&>())
      .def("__enter__", &Budget::enter)
      .def("__exit__", [](Budget& self, const nb::args&) { self.exit(); });
  bind_files(m);
  bind_batch(m);
  bind_tensors(m);
  bind_program(m);
  bind_conversion(m);
  bind_verify(m);
}
