// batch.h - many conversions, as one YAML file lists them.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "convert/pipeline.h"
#include "convert/simplify.h"

namespace tonnx {

/// How a result is compared with its source.
struct VerifyOptions {
  int64_t times = 1;  // random inputs
  double relative = 1e-4, absolute = 1e-5;
  std::string data;                                          // a file with the inputs
  std::map<std::string, std::vector<int64_t>> input_shapes;  // of the random ones
};

/// One source and one target.
struct BatchJob {
  std::string source, target;
  ConvertOptions convert;
  std::optional<SimplifyOptions> simplify;  // an ONNX source is simplified first
  std::optional<VerifyOptions> verify;
};

struct BatchConfig {
  std::string path;
  std::vector<BatchJob> jobs;
};

enum class Verifying { Asked, Never, Impossible };

/// Throws InvalidModel with all mistakes of the file, each with its line. Impossible: asking for it is a mistake.
/// `here` is the folder that the command is run in, where that is not the current one.
BatchConfig read_batch(const std::string& path, Verifying verifying = Verifying::Asked, const std::string& here = "");
/// The same for a text, as if it were a file of that path.
BatchConfig parse_batch_config(std::string_view source, const std::string& path, Verifying verifying = Verifying::Asked,
                               const std::string& here = "");

struct JobResult {
  enum class Status { Waiting, Done, Failed, Unchanged };
  Status status = Status::Waiting;
  double seconds = 0;
  uint64_t bytes = 0;                                // of the target, with what lies beside it
  std::optional<std::pair<int64_t, int64_t>> nodes;  // before and after simplification
  bool verified = false;
  std::string not_judged;  // why it was not compared, though that was asked for
  std::string error;
  std::optional<ErrorKind> kind;  // of the error; none where the outputs differ
};

/// Compares what the source of a job became with it, on inputs of these shapes, where -1 is open. `result` is not in
/// its place yet. Empty where they agree, otherwise what differs, or why that is not judged (`kNotJudged`).
using JobJudge = std::function<std::string(const BatchJob& job, const std::string& result,
                                           const std::map<std::string, std::vector<int64_t>>& shapes)>;

struct BatchOptions {
  unsigned threads = 0;  // 0: one for each core
  bool resumes = false;  // what is done and unchanged is left alone
  bool is_dry = false;   // nothing is done
  Limits limits;         // of each conversion, where the file does not say
  JobJudge judge;
  /// Called by one thread at a time.
  std::function<void(const BatchJob&)> on_start;
  std::function<void(const BatchJob&, const JobResult&)> on_end;
  /// Asked every now and then by the thread that called, while no conversion begins; after yes none does any more.
  std::function<bool()> should_stop;
};

struct BatchReport {
  std::vector<JobResult> results;  // one for each job
  double seconds = 0;

  size_t count(JobResult::Status status) const;
};

/// Failures of conversions are in the report.
BatchReport run_batch(const BatchConfig& config, const BatchOptions& options);

class BatchState;

/// Runs the jobs of a batch one by one, in any order and in any number of processes: each notes what it has done for
/// later runs, and none rewrites what others note.
class SingleJobs {
 public:
  explicit SingleJobs(const BatchConfig& config);
  ~SingleJobs();
  SingleJobs(const SingleJobs&) = delete;
  SingleJobs& operator=(const SingleJobs&) = delete;

  JobResult run(size_t index, const BatchOptions& options);

 private:
  const BatchConfig& config_;
  std::unique_ptr<BatchState> state_;
};

/// What is there to be done for a job: `simplify, opset 17, verify`.
std::string steps_of(const BatchJob& job);
std::string_view name_of(JobResult::Status status);
/// One line for each job.
std::string table_of(const BatchConfig& config, const BatchReport& report);
std::string json_of(const BatchConfig& config, const BatchReport& report);

}  // namespace tonnx
