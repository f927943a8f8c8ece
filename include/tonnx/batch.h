// batch.h - many conversions, as one YAML file lists them (docs/batch.md).
#pragma once
#include <tonnx/model.h>

TONNX_BEGIN

/// One source and one target, and what came of it.
struct BatchJob {
  enum class Status { Waiting, Done, Failed, Unchanged };
  std::string source, target;
  std::string steps;  ///< `simplify, opset 17, verify`
  Status status = Status::Waiting;
  double seconds = 0;
  uint64_t bytes = 0;                                ///< of the target, with what lies beside it
  std::optional<std::pair<int64_t, int64_t>> nodes;  ///< before and after simplification
  bool verified = false;
  std::string not_judged;  ///< why it was not compared, though that was asked for
  std::string error;
  std::optional<Error::Kind> kind;  ///< of the error; Differs where the outputs do
};

/// How a job's result is to be compared with its source.
struct BatchComparison {
  std::string source, result;  ///< files; the result is not in its place yet
  int64_t times = 1;           ///< random inputs
  double relative = 1e-4, absolute = 1e-5;
  std::string data;    ///< a file with the inputs
  InputShapes shapes;  ///< of the random ones; -1 is open
  std::vector<std::string> allow_ops;
};

struct BatchOptions {
  unsigned threads = 0;  ///< 0: one for each core
  bool resumes = false;  ///< what is done and unchanged is left alone
  bool is_dry = false;   ///< nothing is done: the jobs are listed
  bool verifies = true;  ///< false: nothing is compared, whatever the file says
  Limits limits = {};    ///< of each conversion, where the file does not say
  /// Empty where the models agree, otherwise what differs, or "not judged: " and why. Without it a file that asks for
  /// comparisons is refused. May be called by several threads at once.
  Callback<std::string(const BatchComparison&)> compare = {};
  // Called by one thread at a time.
  Callback<void(const BatchJob&)> on_start = {};
  Callback<void(const BatchJob&)> on_end = {};
  /// Asked every now and then; after yes no conversion begins any more.
  Callback<bool()> should_stop = {};
};

struct BatchReport {
  std::vector<BatchJob> jobs;
  double seconds = 0;
  std::string table;  ///< one line for each job
  std::string json;

  TONNX_API size_t count(BatchJob::Status status) const;
};

/// Runs the batch that a file describes. Mistakes in the file are one Error, with all of them; conversions that fail
/// are in the report.
TONNX_API BatchReport run(const std::string& config_path, const BatchOptions& options = {});
/// The same for the text of such a file; `folder` is what its paths are relative to. What was done is noted there, in
/// batch.yml.state, for later runs that resume.
TONNX_API BatchReport run_text(std::string_view config, const std::string& folder, const BatchOptions& options = {});

/// A batch whose jobs are done one by one, in any order, elsewhere or by any number of processes: each notes what it
/// has done for later runs, and none rewrites what others note.
class TONNX_API BatchPlan {
 public:
  /// Of `options` count `resumes` and `verifies`. `here` is the folder that the command would be run in, where that is
  /// not the current one.
  explicit BatchPlan(const std::string& config_path, const BatchOptions& options = {}, const std::string& here = {});
  /// Sources and targets that are no files here: of such a plan there is nothing but the report.
  static BatchPlan elsewhere(const std::string& config_path,
                             const std::vector<std::pair<std::string, std::string>>& jobs);
  BatchPlan(BatchPlan&& other) noexcept;
  BatchPlan& operator=(BatchPlan&& other) noexcept;
  ~BatchPlan();

  /// The places of the jobs that are to be done.
  std::vector<size_t> waiting() const;
  /// Does one job, and reports of it alone; the plan stays as it is. Of `options` count `limits`, and `compare`, which
  /// a job that is to be verified needs.
  BatchReport run(size_t index, const BatchOptions& options = {}) const;
  /// What came of a job; its source, target and steps are those of the plan.
  void note(size_t index, const BatchJob& result);
  /// All of them, as far as they were noted.
  BatchReport report(double seconds) const;

 private:
  struct Content;
  explicit BatchPlan(Content* content) : content_(content) {}
  Content* content_;
};

/// `done`
TONNX_API std::string_view name_of(BatchJob::Status status);

TONNX_END
