// batch.cpp - tonnx run: many conversions, as a YAML file lists them.
#include "batch/batch.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/join.h"
#include "base/output_file.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/parse.h"

namespace tonnx::cli {
namespace {

struct BatchArguments {
  std::string config, report, cluster;
  std::vector<std::string> limits;
  unsigned threads = 0;
  bool resumes = false, is_dry = false, never_verifies = false, is_quiet = false;
};

/// On a terminal a bar that stays in the last line, elsewhere a line for each conversion.
class Progress {
 public:
  Progress(size_t total, bool is_quiet)
      : total_(total), is_quiet_(is_quiet), has_bar_(!is_quiet && isatty(STDERR_FILENO) != 0) {}

  void on_start(const BatchJob& job) {
    current_ = shown(job.source);
    if (has_bar_) draw();
  }

  void on_end(const BatchJob& job, const JobResult& result) {
    ++done_;
    const bool is_failed = result.status == JobResult::Status::Failed;
    if (has_bar_) {
      if (is_failed)
        print(fmt::format("\r\033[Kfailed: {}: {}\n", shown(job.source), visible_text(result.error, true)));
      return draw();
    }
    if (is_quiet_ && !is_failed) return;
    print(fmt::format("[{}/{}] {} -> {}: {} ({:.2f} s)\n", done_, total_, shown(job.source), shown(job.target),
                      is_failed ? "failed: " + visible_text(result.error, true) : std::string(name_of(result.status)),
                      result.seconds));
  }

  void end() const {
    if (has_bar_) print("\r\033[K");
  }

 private:
  static void print(const std::string& text) { std::fputs(text.c_str(), stderr); }

  void draw() const {
    constexpr size_t kWidth = 30;
    winsize window{};
    const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
    const size_t columns = is_known ? window.ws_col : 80;
    const size_t filled = total_ == 0 ? kWidth : done_ * kWidth / total_;
    std::string line =
        fmt::format("[{}{}] {}/{} ", std::string(filled, '#'), std::string(kWidth - filled, ' '), done_, total_);
    const size_t room = columns > line.size() + 1 ? columns - line.size() - 1 : 0;
    size_t from = current_.size() - std::min(current_.size(), room);
    while (from < current_.size() && utf8_length(std::string_view(current_).substr(from)) == 0) ++from;
    line += current_.substr(from);
    print("\r\033[K" + line);
    std::fflush(stderr);
  }

  size_t total_, done_ = 0;
  bool is_quiet_, has_bar_;
  std::string current_;
};

JobJudge judge_of(const JudgeMaker& make_judge) {
  if (!make_judge) return {};
  return [make_judge](const BatchJob& job, const std::string& result,
                      const std::map<std::string, std::vector<int64_t>>& shapes) {
    JudgeOptions options;
    options.times = job.verify->times;
    options.relative = job.verify->relative;
    options.absolute = job.verify->absolute;
    options.data = job.verify->data;
    options.allow_ops = job.convert.allow_ops.names();
    options.shapes = texts_of(shapes);
    return make_judge(options)(job.source, result);
  };
}

void list_jobs(const BatchConfig& config, const BatchReport& report) {
  for (size_t i = 0; i < config.jobs.size(); ++i) {
    const BatchJob& job = config.jobs[i];
    const std::string steps = steps_of(job);
    const bool is_done = report.results[i].status == JobResult::Status::Unchanged;
    fmt::print("{} -> {}{}{}\n", shown(job.source), shown(job.target),
               steps.empty() ? "" : fmt::format("  ({})", steps), is_done ? "  unchanged" : "");
  }
  const size_t unchanged = report.count(JobResult::Status::Unchanged);
  fmt::print("{} to be done, {} unchanged\n", config.jobs.size() - unchanged, unchanged);
}

int severity(const JobResult& result) {
  if (!result.kind) return 2;
  return *result.kind == ErrorKind::Internal ? 3 : *result.kind == ErrorKind::Unsupported ? 1 : 0;
}

/// The worst of the failures is what the program ends with.
void throw_failures(const BatchReport& report) {
  const JobResult* worst = nullptr;
  for (const JobResult& result : report.results) {
    if (result.status != JobResult::Status::Failed) continue;
    if (worst == nullptr || severity(result) > severity(*worst)) worst = &result;
  }
  if (worst == nullptr) return;
  const std::string text =
      fmt::format("{} of {} conversions failed", report.count(JobResult::Status::Failed), report.results.size());
  if (!worst->kind) throw Differs(text);
  throw Error(*worst->kind, text);
}

void run_all(const BatchArguments& a, const JudgeMaker& make_judge) {
  require(!a.config.empty(), "run needs a file that lists the models: tonnx run models.yml");
  if (!a.cluster.empty())  // the package reads the arguments itself, before they come here
    fail_unsupported("--on {} needs the Python package: pip install tonnx[dask], then python -m tonnx run", a.cluster);
  const Verifying verifying = a.never_verifies ? Verifying::Never
                              : make_judge     ? Verifying::Asked
                                               : Verifying::Impossible;
  const BatchConfig config = read_batch(a.config, verifying);
  BatchOptions options;
  options.threads = a.threads;
  options.resumes = a.resumes;
  options.is_dry = true;
  options.limits = parse_limits(a.limits);
  options.judge = judge_of(make_judge);
  const BatchReport plan = run_batch(config, options);
  if (a.is_dry) return list_jobs(config, plan);
  Progress progress(config.jobs.size() - plan.count(JobResult::Status::Unchanged), a.is_quiet);
  options.is_dry = false;
  options.on_start = [&](const BatchJob& job) { progress.on_start(job); };
  options.on_end = [&](const BatchJob& job, const JobResult& result) { progress.on_end(job, result); };
  const BatchReport report = run_batch(config, options);
  progress.end();
  if (!a.report.empty()) {
    OutputFile file(a.report);
    file.write(std::string_view(json_of(config, report)));
    file.commit();
  }
  if (!a.is_quiet) std::fputs(table_of(config, report).c_str(), stdout);
  std::fflush(stdout);
  throw_failures(report);
}

}  // namespace

void add_batch(CLI::App& app, Run& run, const JudgeMaker& make_judge) {
  CLI::App* command = app.add_subcommand("run", "Convert the models that a YAML file lists, some at a time");
  auto a = std::make_shared<BatchArguments>();
  command->add_option("config,--cfg", a->config, "config.yml: defaults and models");
  command->add_option("-j,--jobs", a->threads, "how many at a time; one for each core where it is not given")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--resume", a->resumes, "leave alone what is done and unchanged");
  command->add_flag("--dry-run", a->is_dry, "check the file, list what would be done, and do nothing");
  command->add_option("--report", a->report, "report.json: what was done, for programs");
  command->add_flag("--no-verify", a->never_verifies, "compare nothing, whatever the file says");
  command->add_flag("-q,--quiet", a->is_quiet, "print failures only");
  command->add_option("--on", a->cluster, "dask, or the address of a scheduler: do it on a cluster (Python package)");
  add_limit_option(command, a->limits);
  command->callback([a, &run, make_judge] { run = [a, make_judge] { run_all(*a, make_judge); }; });
}

}  // namespace tonnx::cli
