// batch_test.cpp - many conversions through the public interface.
#include <algorithm>
#include <stdexcept>

#include "models.h"

namespace {

using namespace api_test;  // NOLINT
using Status = tonnx::BatchJob::Status;

TEST(ApiBatch, RunsWhatATextLists) {
  const Folder folder;
  two_layers().write(folder / "a.onnx");
  two_layers().write(folder / "b.onnx");
  std::filesystem::resize_file(folder / "b.onnx", 50);
  const std::string config =
      "models:\n  - source: a.onnx\n    targets: [a.pt2, a.py]\n  - source: b.onnx\n    target: b.pt\n";
  std::vector<std::string> started, ended;
  tonnx::BatchOptions options;
  options.on_start = [&](const tonnx::BatchJob& job) { started.push_back(job.source); };
  options.on_end = [&](const tonnx::BatchJob& job) { ended.emplace_back(tonnx::name_of(job.status)); };
  const tonnx::BatchReport report = tonnx::run_text(config, folder / "", options);
  ASSERT_EQ(report.jobs.size(), 3U);
  EXPECT_EQ(started.size(), 3U);
  EXPECT_EQ(std::count(ended.begin(), ended.end(), "failed"), 1);
  EXPECT_EQ(report.count(Status::Done), 2U);
  EXPECT_EQ(report.jobs[2].status, Status::Failed);
  EXPECT_EQ(report.jobs[2].kind, tonnx::Error::Kind::BadFile);
  EXPECT_EQ(bytes_of_file(folder / "a.pt2"), two_layers().to_bytes(tonnx::Format::TorchExport));
  EXPECT_NE(report.json.find("a.pt2"), std::string::npos);
  options.on_end = [](const tonnx::BatchJob&) { throw std::out_of_range("mine"); };
  EXPECT_THROW(tonnx::run_text(config, folder / "", options), std::out_of_range);
  options.on_end = nullptr;
  tonnx::run_text(config, folder / "", options);
  options.resumes = true;
  EXPECT_EQ(tonnx::run_text(config, folder / "", options).count(Status::Unchanged), 2U);
}

TEST(ApiBatch, JobsOfAPlanAreDoneOneByOne) {
  const Folder folder;
  two_layers().write(folder / "a.onnx");
  std::ofstream(folder / "c.yml") << "models:\n  - source: a.onnx\n    targets: [a.pt2, a.py]\n    verify: true\n";
  tonnx::BatchPlan plan(folder / "c.yml");
  EXPECT_EQ(plan.waiting(), (std::vector<size_t>{0, 1}));
  EXPECT_THROW(plan.run(0), tonnx::Error);  // it is to be verified
  tonnx::BatchOptions options;
  options.compare = [](const tonnx::BatchComparison& asked) -> std::string {
    if (asked.result.ends_with(".py")) throw tonnx::Error(tonnx::Error::Kind::Unsupported, "not such code");
    return {};
  };
  const tonnx::BatchReport first = plan.run(0, options), second = plan.run(1, options);
  ASSERT_EQ(first.jobs.size(), 1U);
  EXPECT_EQ(first.jobs[0].status, Status::Done) << first.jobs[0].error;
  EXPECT_TRUE(first.jobs[0].verified);
  EXPECT_EQ(bytes_of_file(folder / "a.pt2"), two_layers().to_bytes(tonnx::Format::TorchExport));
  EXPECT_EQ(second.jobs[0].status, Status::Failed);
  EXPECT_EQ(second.jobs[0].kind, tonnx::Error::Kind::Unsupported);
  EXPECT_THROW(plan.run(2, options), tonnx::Error);
  plan.note(0, first.jobs[0]);
  plan.note(1, second.jobs[0]);
  EXPECT_TRUE(plan.waiting().empty());
  const tonnx::BatchReport report = plan.report(1.5);
  EXPECT_EQ(report.count(Status::Done), 1U);
  EXPECT_EQ(report.jobs[1].error, second.jobs[0].error);
  EXPECT_EQ(report.seconds, 1.5);
  EXPECT_EQ(tonnx::BatchPlan(folder / "c.yml", {.resumes = true}).waiting(), std::vector<size_t>{1});
  tonnx::BatchPlan elsewhere = tonnx::BatchPlan::elsewhere("far away", {{"s3://a.onnx", "s3://a.py"}});
  elsewhere.note(0, {.status = Status::Failed, .error = "no such bucket", .kind = tonnx::Error::Kind::BadFile});
  EXPECT_NE(elsewhere.report(1).json.find("no such bucket"), std::string::npos);
}

TEST(ApiBatch, MistakesAreOneError) {
  const Folder folder;
  try {
    tonnx::run_text("models:\n  - sourc: a.onnx\n    to: a.py\n", folder / "");
    FAIL();
  } catch (const tonnx::Error& e) {
    EXPECT_EQ(e.kind(), tonnx::Error::Kind::InvalidModel);
    EXPECT_NE(e.text().find("sourc"), std::string::npos);
  }
  EXPECT_THROW(tonnx::run(folder / "none.yml"), tonnx::Error);
}

}  // namespace
