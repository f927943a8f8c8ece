// batch.cpp - tonnx run: many conversions, as a YAML file lists them.

#include <sys/ioctl.h>
#include <tonnx/batch.h>
#include <tonnx/tools.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/error.h"
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

  void on_end(const BatchJob& job) {
    ++done_;
    const bool is_failed = job.status == BatchJob::Status::Failed;
    if (has_bar_) {
      if (is_failed) print(fmt::format("\r\033[Kfailed: {}: {}\n", shown(job.source), visible_text(job.error, true)));
      return draw();
    }
    if (is_quiet_ && !is_failed) return;
    print(fmt::format("[{}/{}] {} -> {}: {} ({:.2f} s)\n", done_, total_, shown(job.source), shown(job.target),
                      is_failed ? "failed: " + visible_text(job.error, true) : std::string(name_of(job.status)),
                      job.seconds));
  }

  void end() const {
    if (has_bar_) print("\r\033[K");
  }

 private:
  static bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }
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
    while (from < current_.size() && is_inside_character(current_[from])) ++from;
    line += current_.substr(from);
    print("\r\033[K" + line);
    std::fflush(stderr);
  }

  size_t total_, done_ = 0;
  bool is_quiet_, has_bar_;
  std::string current_;
};

std::string compare(const JudgeMaker& make_judge, const BatchComparison& comparison) {
  JudgeOptions options;
  options.times = comparison.times;
  options.relative = comparison.relative;
  options.absolute = comparison.absolute;
  options.data = comparison.data;
  options.allow_ops = comparison.allow_ops;
  options.shapes = texts_of(comparison.shapes);
  return make_judge(options)(comparison.source, comparison.result);
}

void list_jobs(const BatchReport& report) {
  for (const BatchJob& job : report.jobs) {
    const bool is_done = job.status == BatchJob::Status::Unchanged;
    fmt::print("{} -> {}{}{}\n", shown(job.source), shown(job.target),
               job.steps.empty() ? "" : fmt::format("  ({})", job.steps), is_done ? "  unchanged" : "");
  }
  const size_t unchanged = report.count(BatchJob::Status::Unchanged);
  fmt::print("{} to be done, {} unchanged\n", report.jobs.size() - unchanged, unchanged);
}

int severity(const BatchJob& job) {
  if (job.kind == Error::Kind::Differs) return 2;
  return job.kind == Error::Kind::Internal ? 3 : job.kind == Error::Kind::Unsupported ? 1 : 0;
}

/// The worst of the failures is what the program ends with.
void throw_failures(const BatchReport& report) {
  const BatchJob* worst = nullptr;
  for (const BatchJob& job : report.jobs) {
    if (job.status != BatchJob::Status::Failed) continue;
    if (worst == nullptr || severity(job) > severity(*worst)) worst = &job;
  }
  if (worst == nullptr) return;
  const std::string text =
      fmt::format("{} of {} conversions failed", report.count(BatchJob::Status::Failed), report.jobs.size());
  if (worst->kind == Error::Kind::Differs) throw Differs(text);
  throw Error(*worst->kind, text);
}

void run_all(const BatchArguments& a, const JudgeMaker& make_judge) {
  require(!a.config.empty(), "run needs a file that lists the models: tonnx run models.yml");
  if (!a.cluster.empty())  // the package reads the arguments itself, before they come here
    fail_unsupported("--on {} needs the Python package: pip install tonnx[dask], then python -m tonnx run", a.cluster);
  BatchOptions options;
  options.threads = a.threads;
  options.resumes = a.resumes;
  options.verifies = !a.never_verifies;
  options.is_dry = true;
  options.limits = parse_limits(a.limits);
  if (make_judge) options.compare = [&](const BatchComparison& comparison) { return compare(make_judge, comparison); };
  const BatchReport plan = tonnx::run(a.config, options);
  if (a.is_dry) return list_jobs(plan);
  Progress progress(plan.jobs.size() - plan.count(BatchJob::Status::Unchanged), a.is_quiet);
  options.is_dry = false;
  options.on_start = [&](const BatchJob& job) { progress.on_start(job); };
  options.on_end = [&](const BatchJob& job) { progress.on_end(job); };
  const BatchReport report = tonnx::run(a.config, options);
  progress.end();
  if (!a.report.empty()) write_text(a.report, report.json);
  if (!a.is_quiet) fmt::print("{}", report.table);
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
