// batch.cpp - the binding of many conversions at a time.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <tonnx/batch.h>
#include <tonnx/tools.h>

#include "bindings.h"

namespace nb = nanobind;

namespace tonnx::python_binding {
namespace {

/// `compare` is called as the command line calls it.
BatchOptions batch_options(const std::map<std::string, int64_t>& limits, const nb::object& compare) {
  BatchOptions options;
  options.limits = limits_of(limits);
  options.compare = [function = nb::handle(compare)](const BatchComparison& asked) {
    return call_for_text(function, asked.source, asked.result, asked.times, texts_of(asked.shapes), asked.data,
                         asked.relative, asked.absolute, asked.allow_ops);
  };
  return options;
}

/// The report as JSON and as a table.
using ReportTexts = std::pair<std::string, std::string>;

ReportTexts run_batch(const std::string& path, unsigned threads, bool resumes, bool is_dry, bool verifies,
                      const std::map<std::string, int64_t>& limits, const nb::object& compare) {
  BatchOptions options = batch_options(limits, compare);
  options.threads = threads;
  options.resumes = resumes;
  options.is_dry = is_dry;
  options.verifies = verifies;
  bool is_interrupted = false;
  options.should_stop = [&] {
    const nb::gil_scoped_acquire gil;
    is_interrupted = is_interrupted || PyErr_CheckSignals() != 0;
    return is_interrupted;
  };
  BatchReport report;
  {
    const nb::gil_scoped_release no_gil;
    report = run(path, options);
  }
  if (is_interrupted) throw nb::python_error();
  return {report.json, report.table};
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// The report of one job, as JSON of a batch that has no other.
std::string run_job(const BatchPlan& self, size_t index, const std::map<std::string, int64_t>& limits,
                    const nb::object& compare) {
  const BatchOptions options = batch_options(limits, compare);
  const nb::gil_scoped_release no_gil;
  return self.run(index, options).json;
}

void note(BatchPlan& self, size_t index, bool is_done, double seconds, uint64_t bytes, bool verified,
          const std::string& not_judged, std::optional<std::pair<int64_t, int64_t>> nodes, const std::string& kind,
          const std::string& error) {
  BatchJob job;
  job.status = is_done ? BatchJob::Status::Done : BatchJob::Status::Failed;
  job.seconds = seconds;
  job.bytes = bytes;
  job.verified = verified;
  job.not_judged = not_judged;
  job.nodes = nodes;
  job.error = error;
  job.kind = find_kind(kind);
  self.note(index, job);
}

ReportTexts report_of(const BatchPlan& self, double seconds) {
  const BatchReport report = self.report(seconds);
  return {report.json, report.table};
}

}  // namespace

void bind_batch(nb::module_& m) {
  m.def("run_batch", run_batch, nb::arg("path"), nb::arg("threads"), nb::arg("resumes"), nb::arg("is_dry"),
        nb::arg("verifies"), nb::arg("limits"), nb::arg("compare"));
  nb::class_<BatchPlan>(m, "BatchPlan")
      .def("__init__",
           [](BatchPlan* self, const std::string& path, bool verifies, bool resumes, const std::string& here) {
             BatchOptions options;
             options.verifies = verifies;
             options.resumes = resumes;
             new (self) BatchPlan(path, options, here);
           })
      .def("__init__", [](BatchPlan* self, const std::string& path,
                          const Pairs& pairs) { new (self) BatchPlan(BatchPlan::elsewhere(path, pairs)); })
      .def("waiting", &BatchPlan::waiting)
      .def("run", run_job)
      .def("note", note, nb::arg("index"), nb::arg("is_done"), nb::arg("seconds"), nb::arg("bytes"),
           nb::arg("verified"), nb::arg("not_judged"), nb::arg("nodes").none(), nb::arg("kind"), nb::arg("error"))
      .def("report", report_of);
}

}  // namespace tonnx::python_binding
