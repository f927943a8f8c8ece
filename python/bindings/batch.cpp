// batch.cpp - the binding of many conversions at a time.
#include "batch/batch.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "bindings.h"

namespace nb = nanobind;

namespace tonnx::python_binding {
namespace {

/// `compare` is called as the command line calls it.
JobJudge judge_of(nb::handle function) {
  return [function](const BatchJob& job, const std::string& result,
                    const std::map<std::string, std::vector<int64_t>>& shapes) {
    const VerifyOptions& verify = *job.verify;
    return call_for_text(function, job.source, result, verify.times, texts_of(shapes), verify.data, verify.relative,
                         verify.absolute, job.convert.allow_ops.names());
  };
}

BatchOptions options_of(const std::map<std::string, int64_t>& limits, const nb::object& compare) {
  BatchOptions options;
  for (const auto& [name, value] : limits) options.limits.set(name, value);
  options.judge = judge_of(compare);
  return options;
}

/// A batch whose jobs are done elsewhere: what there is to do, each of them by itself, and the report of all.
class Plan {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  Plan(const std::string& path, bool verifies, bool resumes, const std::string& here)
      : config_(read_batch(path, verifies ? Verifying::Asked : Verifying::Never, here)), jobs_(config_) {
    BatchOptions options;
    options.is_dry = true;
    options.resumes = resumes;
    report_ = run_batch(config_, options);
  }

  /// Sources and targets that are no files here: the plan can only report of them.
  Plan(const std::string& path, const Pairs& pairs) : config_{path, {}}, jobs_(config_) {
    for (const auto& [source, target] : pairs) {
      config_.jobs.emplace_back();
      config_.jobs.back().source = source;
      config_.jobs.back().target = target;
    }
    report_.results.resize(pairs.size());
  }

  std::vector<size_t> waiting() const {
    std::vector<size_t> result;
    for (size_t i = 0; i < report_.results.size(); ++i) {
      if (report_.results[i].status == JobResult::Status::Waiting) result.push_back(i);
    }
    return result;
  }

  /// The report of one job, as JSON of a batch that has no other.
  std::string run(size_t index, const std::map<std::string, int64_t>& limits, const nb::object& compare) {
    const BatchOptions options = options_of(limits, compare);
    const nb::gil_scoped_release no_gil;
    BatchReport one;
    one.results.push_back(jobs_.run(index, options));
    return json_of(BatchConfig{config_.path, {config_.jobs.at(index)}}, one);
  }

  void note(size_t index, bool is_done, double seconds, uint64_t bytes, bool verified, const std::string& not_judged,
            std::optional<std::pair<int64_t, int64_t>> nodes, const std::string& kind, const std::string& error) {
    JobResult& result = report_.results.at(index);
    result = {is_done ? JobResult::Status::Done : JobResult::Status::Failed,
              seconds,
              bytes,
              nodes,
              verified,
              not_judged,
              error};
    for (const ErrorKind each :
         {ErrorKind::BadFile, ErrorKind::InvalidModel, ErrorKind::Unsupported, ErrorKind::Internal}) {
      if (kind == name_of(each)) result.kind = each;
    }
  }

  std::pair<std::string, std::string> report(double seconds) {
    report_.seconds = seconds;
    return {json_of(config_, report_), table_of(config_, report_)};
  }

 private:
  BatchConfig config_;
  SingleJobs jobs_;
  BatchReport report_;
};

/// The report as JSON and as a table. `compare` is called as the command line calls it.
std::pair<std::string, std::string> run(const std::string& path, unsigned threads, bool resumes, bool is_dry,
                                        bool verifies, const std::map<std::string, int64_t>& limits,
                                        const nb::object& compare) {
  BatchOptions options = options_of(limits, compare);
  options.threads = threads;
  options.resumes = resumes;
  options.is_dry = is_dry;
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
  nb::class_<Plan>(m, "BatchPlan")
      .def(nb::init<const std::string&, bool, bool, const std::string&>())
      .def(nb::init<const std::string&, const Plan::Pairs&>())
      .def("waiting", &Plan::waiting)
      .def("run", &Plan::run)
      .def("note", &Plan::note, nb::arg("index"), nb::arg("is_done"), nb::arg("seconds"), nb::arg("bytes"),
           nb::arg("verified"), nb::arg("not_judged"), nb::arg("nodes").none(), nb::arg("kind"), nb::arg("error"))
      .def("report", &Plan::report);
}

}  // namespace tonnx::python_binding
