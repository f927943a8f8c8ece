// batch.cpp - the binding of many conversions at a time.
#include "batch/batch.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>

#include "bindings.h"

namespace nb = nanobind;

namespace tonnx::python_binding {
namespace {

/// The report as JSON and as a table. `compare` is called as the command line calls it.
std::pair<std::string, std::string> run(const std::string& path, unsigned threads, bool resumes, bool is_dry,
                                        bool verifies, const std::map<std::string, int64_t>& limits,
                                        const nb::object& compare) {
  const nb::handle function = compare;
  BatchOptions options;
  options.threads = threads;
  options.resumes = resumes;
  options.is_dry = is_dry;
  for (const auto& [name, value] : limits) options.limits.set(name, value);
  options.judge = [function](const BatchJob& job, const std::string& result,
                             const std::map<std::string, std::vector<int64_t>>& shapes) {
    const VerifyOptions& verify = *job.verify;
    return call_for_text(function, job.source, result, verify.times, texts_of(shapes), verify.data, verify.relative,
                         verify.absolute, job.convert.allow_ops.names());
  };
  bool is_interrupted = false;
  options.should_stop = [&] {
    const nb::gil_scoped_acquire gil;
    is_interrupted = is_interrupted || PyErr_CheckSignals() != 0;
    return is_interrupted;
  };
  std::pair<std::string, std::string> result;
  {
    const nb::gil_scoped_release no_gil;
    const BatchConfig config = read_batch(path, verifies ? Verifying::Asked : Verifying::Never);
    const BatchReport report = run_batch(config, options);
    result = {json_of(config, report), table_of(config, report)};
  }
  if (is_interrupted) throw nb::python_error();
  return result;
}

}  // namespace

void bind_batch(nb::module_& m) {
  m.def("run_batch", run, nb::arg("path"), nb::arg("threads"), nb::arg("resumes"), nb::arg("is_dry"),
        nb::arg("verifies"), nb::arg("limits"), nb::arg("compare"));
}

}  // namespace tonnx::python_binding
