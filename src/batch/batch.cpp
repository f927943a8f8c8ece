// batch.cpp - runs the conversions of a batch, some at a time.
#include "batch/batch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "base/output_file.h"
#include "base/temporary.h"
#include "batch/state.h"
#include "convert/compilation.h"
#include "convert/weights.h"
#include "formats/onnx/onnx.h"

namespace tonnx {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;
using Shapes = std::map<std::string, std::vector<int64_t>>;

constexpr int64_t kUsualSize = 2;  // of a size that varies: 1 often has a meaning of its own

/// The target, and what may lie beside it.
std::vector<std::string> files_of(const std::string& target) {
  const fs::path path(target);
  if (find_format(target) == Format::Python) return {target, fs::path(path).replace_extension(".safetensors").string()};
  if (find_format(target) == Format::Onnx) return {target, target + ".data"};
  return {target};
}

/// Shapes of inputs to compare results with: sizes that vary in a range are chosen here, others that are open (-1) by
/// the judge.
Shapes test_shapes(const Model& model, const BatchJob& job) {
  std::map<std::string, int64_t> sizes;
  for (const DynamicDim& dim : job.convert.dynamic) {
    const int64_t wanted = std::max(dim.low, kUsualSize);
    sizes[dim.name] = dim.high ? std::min(wanted, *dim.high) : wanted;
  }
  Shapes shapes;
  for (const Value* input : model.graph->inputs()) {
    if (input->constant || input->sparse || !input->type.is_tensor() || !input->type.shape) continue;
    std::vector<int64_t> dims;
    for (const Dim& dim : *input->type.shape) {
      const auto known = dim.symbol_name() ? sizes.find(*dim.symbol_name()) : sizes.end();
      dims.push_back(dim.constant().value_or(known == sizes.end() ? -1 : known->second));
    }
    shapes[input->name] = std::move(dims);
  }
  for (const auto& [name, dims] : job.verify->input_shapes) shapes[name] = dims;
  return shapes;
}

int64_t total_of(const std::map<std::string, int64_t>& counts) {
  int64_t total = 0;
  for (const auto& [op, count] : counts) total += count;
  return total;
}

class Job {
 public:
  Job(const BatchJob& job, const BatchOptions& options) : job_(job), options_(options) {}

  JobResult run(BatchState& state) {
    const auto start = Clock::now();
    const BudgetScope scope(job_.convert.limits.or_else(options_.limits));
    JobResult result;
    state.note_begun(job_);
    const auto note_failure = [&](std::optional<ErrorKind> kind, std::string text) {
      result.status = JobResult::Status::Failed;
      result.kind = kind;
      result.error = std::move(text);
    };
    try {
      const std::string difference = convert_and_verify(result);
      if (difference.empty()) {
        result.status = JobResult::Status::Done;
        state.note_done(job_, sources_);
      } else {
        note_failure(std::nullopt, "the outputs differ: " + difference);
      }
    } catch (const Error& e) {
      note_failure(e.kind(), e.what());
    } catch (const std::bad_alloc&) {
      note_failure(ErrorKind::BadFile, "out of memory");
    } catch (const std::exception& e) {
      note_failure(ErrorKind::Internal, e.what());
    }
    for (const std::string& path : files_of(job_.target)) {
      std::error_code missing;
      const uint64_t size = fs::file_size(path, missing);
      if (result.status == JobResult::Status::Done && !missing) result.bytes += size;
    }
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return result;
  }

 private:
  /// What is compared lies in a folder of its own until it is found to be right, under the names that it will have: a
  /// .py and an .onnx say what the file of their weights is called.
  std::string convert_and_verify(JobResult& result) {
    const fs::path folder = fs::path(job_.target).parent_path();
    make_folder(folder);
    const auto convert_to = [&](const std::string& target) {
      in_context([&] { return "converting " + job_.source; }, [&] { convert(target, result); });
    };
    if (!is_verified()) {
      convert_to(job_.target);
      return "";
    }
    const TemporaryFolder apart(folder.string());
    const std::string target = apart.file(fs::path(job_.target).filename().string());
    convert_to(target);
    std::string difference = verify(target, result);
    if (difference.empty()) put_in_place(target);
    return difference;
  }

  static void make_folder(const fs::path& folder) {
    if (folder.empty()) return;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) fail(ErrorKind::BadFile, "cannot make the folder '{}': {}", folder.string(), error.message());
  }

  void put_in_place(const std::string& target) const {
    const std::vector<std::string> from = files_of(target), to = files_of(job_.target);
    std::vector<OutputFile> files;
    files.reserve(from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      if (fs::exists(from[i])) files.emplace_back(to[i], from[i]);
    }
    commit_all(files);
  }

  bool is_verified() const { return job_.verify && options_.judge && !is_weights_file(job_.target); }

  void convert(const std::string& target, JobResult& result) {
    sources_.push_back(stamp_of(job_.source));
    if (find_format(job_.source) != Format::Onnx) return convert_file(job_.source, target, job_.convert);
    Model model = read_onnx(job_.source);
    for (FileStamp& file : external_files(model)) sources_.push_back(std::move(file));
    set_input_shapes(model, job_.convert.input_shapes);
    set_dynamic_dims(model, job_.convert);
    if (job_.verify) shapes_ = test_shapes(model, job_);
    ConvertOptions rest = job_.convert;
    rest.input_shapes.clear();
    if (!Route{Format::Onnx, *find_format(target)}.takes(RouteOption::Dynamic)) rest.dynamic.clear();
    const auto write = [&] { Compilation(model, Dialect::Stored, rest).write(target); };
    if (!job_.simplify) return write();

    const bool stays_onnx = find_format(target) == Format::Onnx;
    SimplifyFileOptions simplifying{.simplify = *job_.simplify, .external_data = job_.convert.external_data};
    if (stays_onnx) simplifying.simplify.opset = job_.convert.opset;
    const SimplifyReport report = simplify(model, simplifying.simplify);
    result.nodes = {total_of(report.ops_before), total_of(report.ops_after)};
    if (stays_onnx) return write_simplified(model, target, report, simplifying);
    std::erase_if(rest.dynamic, [&](const DynamicDim& dim) {  // an input that nobody used may be gone
      return !dim.input.empty() && std::none_of(model.graph->inputs().begin(), model.graph->inputs().end(),
                                                [&](const Value* input) { return input->name == dim.input; });
    });
    write();
  }

  std::string verify(const std::string& target, JobResult& result) const {
    const Shapes& shapes = shapes_.empty() ? job_.verify->input_shapes : shapes_;
    std::string difference = in_context([&] { return "comparing " + job_.target + " with " + job_.source; },
                                        [&] { return options_.judge(job_, target, shapes); });
    if (difference.starts_with(kNotJudged)) {
      result.not_judged = difference.substr(kNotJudged.size());
      return "";
    }
    result.verified = difference.empty();
    return difference;
  }

  const BatchJob& job_;
  const BatchOptions& options_;
  std::vector<FileStamp> sources_;
  Shapes shapes_;
};

/// The threads take one job after the other.
class Workers {
 public:
  Workers(const BatchConfig& config, const BatchOptions& options, BatchState& state, BatchReport& report)
      : config_(config), options_(options), state_(state), report_(report) {}

  void run(const std::vector<size_t>& jobs) {
    const size_t wanted = options_.threads != 0 ? options_.threads : std::max(1U, std::thread::hardware_concurrency());
    const size_t count = std::min(wanted, jobs.size());
    running_ = count;
    std::vector<std::thread> threads;
    threads.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      try {
        threads.emplace_back([&] { work(jobs); });
      } catch (const std::system_error&) {  // there are as many as the system allows
        const std::lock_guard lock(mutex_);
        running_ -= count - i;
        if (i == 0) fail(ErrorKind::BadFile, "the system allows no thread");
        break;
      }
    }
    {
      std::unique_lock lock(mutex_);
      while (!all_ended_.wait_for(lock, std::chrono::milliseconds(100), [&] { return running_ == 0; })) {
        if (!options_.should_stop || next_ >= jobs.size()) continue;
        if (options_.should_stop()) next_ = jobs.size();  // nobody takes a job meanwhile: that needs the lock
      }
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  void work(const std::vector<size_t>& jobs) {
    while (true) {
      size_t at = 0;
      {
        const std::lock_guard lock(mutex_);
        if (next_ >= jobs.size()) break;
        at = next_++;
        if (options_.on_start) options_.on_start(config_.jobs[jobs[at]]);
      }
      const BatchJob& job = config_.jobs[jobs[at]];
      JobResult result = Job(job, options_).run(state_);
      const std::lock_guard lock(mutex_);
      if (options_.on_end) options_.on_end(job, result);
      report_.results[jobs[at]] = std::move(result);
    }
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) all_ended_.notify_all();
  }

  const BatchConfig& config_;
  const BatchOptions& options_;
  BatchState& state_;
  BatchReport& report_;
  std::mutex mutex_;
  std::condition_variable all_ended_;
  size_t next_ = 0;
  size_t running_ = 0;
};

}  // namespace

size_t BatchReport::count(JobResult::Status status) const {
  return static_cast<size_t>(
      std::count_if(results.begin(), results.end(), [&](const JobResult& result) { return result.status == status; }));
}

BatchReport run_batch(const BatchConfig& config, const BatchOptions& options) {
  const auto start = Clock::now();
  BatchReport report;
  report.results.resize(config.jobs.size());
  BatchState state(config);
  std::vector<size_t> jobs;
  for (size_t i = 0; i < config.jobs.size(); ++i) {
    if (options.resumes && state.is_unchanged(config.jobs[i])) {
      report.results[i].status = JobResult::Status::Unchanged;
    } else {
      jobs.push_back(i);
    }
  }
  if (!options.is_dry && !jobs.empty()) {
    state.compact();
    Workers(config, options, state, report).run(jobs);
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

SingleJobs::SingleJobs(const BatchConfig& config) : config_(config), state_(std::make_unique<BatchState>(config)) {}

SingleJobs::~SingleJobs() = default;

JobResult SingleJobs::run(size_t index, const BatchOptions& options) {
  return Job(config_.jobs.at(index), options).run(*state_);
}

}  // namespace tonnx
