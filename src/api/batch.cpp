// batch.cpp - batches of conversions for the interface.
#include "batch/batch.h"

#include <filesystem>

#include "api/internal.h"

namespace tonnx::v1 {
namespace {

BatchJob job_of(const core::BatchJob& job) {
  BatchJob result;
  result.source = job.source;
  result.target = job.target;
  result.steps = core::steps_of(job);
  return result;
}

BatchJob job_of(const core::BatchJob& job, const core::JobResult& from) {
  BatchJob result = job_of(job);
  result.status = static_cast<BatchJob::Status>(from.status);
  result.seconds = from.seconds;
  result.bytes = from.bytes;
  result.nodes = from.nodes;
  result.verified = from.verified;
  result.not_judged = from.not_judged;
  result.error = from.error;
  if (from.status == core::JobResult::Status::Failed)
    result.kind = from.kind ? static_cast<Error::Kind>(*from.kind) : Error::Kind::Differs;
  return result;
}
static_assert(static_cast<int>(BatchJob::Status::Unchanged) == static_cast<int>(core::JobResult::Status::Unchanged));

core::JobJudge judge_of(const BatchOptions& options) {
  if (!options.compare || !options.verifies) return {};
  return [&options](const core::BatchJob& job, const std::string& result,
                    const std::map<std::string, std::vector<int64_t>>& shapes) {
    BatchComparison comparison;
    comparison.source = job.source;
    comparison.result = result;
    comparison.times = job.verify->times;
    comparison.relative = job.verify->relative;
    comparison.absolute = job.verify->absolute;
    comparison.data = job.verify->data;
    comparison.shapes.assign(shapes.begin(), shapes.end());
    comparison.allow_ops = job.convert.allow_ops.names();
    try {
      return options.compare(comparison);
    } catch (const Error& e) {
      throw core::Error(core_of(e.kind()), e.what());  // of this one job
    }
  };
}

core::Verifying verifying_of(const BatchOptions& options) {
  if (!options.verifies) return core::Verifying::Never;
  return options.compare ? core::Verifying::Asked : core::Verifying::Impossible;
}

BatchReport report_of(const core::BatchConfig& config, const core::BatchReport& found) {
  BatchReport report;
  for (size_t i = 0; i < config.jobs.size(); ++i) report.jobs.push_back(job_of(config.jobs[i], found.results[i]));
  report.seconds = found.seconds;
  report.table = core::table_of(config, found);
  report.json = core::json_of(config, found);
  return report;
}

BatchReport run_config(const core::BatchConfig& config, const BatchOptions& options) {
  core::BatchOptions inner;
  inner.threads = options.threads;
  inner.resumes = options.resumes;
  inner.is_dry = options.is_dry;
  inner.limits = core_of(options.limits);
  inner.judge = judge_of(options);
  // What the caller's functions throw comes out at the end: here other threads are at work.
  std::exception_ptr thrown;
  const auto guarded = [&](auto&& body) {
    if (thrown) return;
    try {
      body();
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  if (options.on_start) {
    inner.on_start = [&](const core::BatchJob& job) { guarded([&] { options.on_start(job_of(job)); }); };
  }
  if (options.on_end) {
    inner.on_end = [&](const core::BatchJob& job, const core::JobResult& result) {
      guarded([&] { options.on_end(job_of(job, result)); });
    };
  }
  if (options.should_stop) inner.should_stop = [&] { return options.should_stop(); };
  const core::BatchReport found = core::run_batch(config, inner);
  if (thrown) throw CallersException{thrown};
  return report_of(config, found);
}

}  // namespace

struct BatchPlan::Content {
  explicit Content(core::BatchConfig given) : config(std::move(given)), jobs(config) {}

  void require_job(size_t index) const {
    core::require(index < config.jobs.size(), "the plan has {} jobs, and none of the place {}", config.jobs.size(),
                  index);
  }

  core::BatchConfig config;
  core::SingleJobs jobs;
  core::BatchReport report;
};

BatchPlan::BatchPlan(const std::string& config_path, const BatchOptions& options, const std::string& here)
    : content_(translated([&] {
        const auto verifying = options.verifies ? core::Verifying::Asked : core::Verifying::Never;
        auto content = std::make_unique<Content>(core::read_batch(config_path, verifying, here));
        core::BatchOptions inner;
        inner.is_dry = true;
        inner.resumes = options.resumes;
        content->report = core::run_batch(content->config, inner);
        return content.release();
      })) {}

BatchPlan BatchPlan::elsewhere(const std::string& config_path,
                               const std::vector<std::pair<std::string, std::string>>& jobs) {
  return translated([&] {
    core::BatchConfig config{config_path, {}};
    for (const auto& [source, target] : jobs) {
      config.jobs.emplace_back();
      config.jobs.back().source = source;
      config.jobs.back().target = target;
    }
    auto content = std::make_unique<Content>(std::move(config));
    content->report.results.resize(jobs.size());
    return BatchPlan(content.release());
  });
}

BatchPlan::BatchPlan(BatchPlan&& other) noexcept : content_(std::exchange(other.content_, nullptr)) {}
BatchPlan& BatchPlan::operator=(BatchPlan&& other) noexcept {
  std::swap(content_, other.content_);
  return *this;
}
BatchPlan::~BatchPlan() { delete content_; }

std::vector<size_t> BatchPlan::waiting() const {
  std::vector<size_t> result;
  for (size_t i = 0; i < content_->report.results.size(); ++i) {
    if (content_->report.results[i].status == core::JobResult::Status::Waiting) result.push_back(i);
  }
  return result;
}

BatchReport BatchPlan::run(size_t index, const BatchOptions& options) const {
  return translated([&] {
    content_->require_job(index);
    const core::BatchJob& job = content_->config.jobs[index];
    core::require(!job.verify || options.compare, "the job is to be verified, and nothing is given that compares");
    core::BatchOptions inner;
    inner.limits = core_of(options.limits);
    inner.judge = judge_of(options);
    core::BatchReport one;
    one.results.push_back(content_->jobs.run(index, inner));
    return report_of({content_->config.path, {job}}, one);
  });
}

void BatchPlan::note(size_t index, const BatchJob& result) {
  translated([&] {
    content_->require_job(index);
    core::JobResult& noted = content_->report.results[index];
    noted = {static_cast<core::JobResult::Status>(result.status),
             result.seconds,
             result.bytes,
             result.nodes,
             result.verified,
             result.not_judged,
             result.error,
             std::nullopt};
    if (result.kind && *result.kind <= Error::Kind::Internal) noted.kind = core_of(*result.kind);
  });
}

BatchReport BatchPlan::report(double seconds) const {
  return translated([&] {
    core::BatchReport report = content_->report;
    report.seconds = seconds;
    return report_of(content_->config, report);
  });
}

size_t BatchReport::count(BatchJob::Status status) const {
  size_t count = 0;
  for (const BatchJob& job : jobs) count += job.status == status ? 1 : 0;
  return count;
}

BatchReport run(const std::string& config_path, const BatchOptions& options) {
  return translated([&] { return run_config(core::read_batch(config_path, verifying_of(options)), options); });
}

BatchReport run_text(std::string_view config, const std::string& folder, const BatchOptions& options) {
  return translated([&] {
    const std::string path = (std::filesystem::path(folder) / "batch.yml").string();
    return run_config(core::parse_batch_config(config, path, verifying_of(options)), options);
  });
}

std::string_view name_of(BatchJob::Status status) {
  return core::name_of(static_cast<core::JobResult::Status>(status));
}

}  // namespace tonnx::v1
