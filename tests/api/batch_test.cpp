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
