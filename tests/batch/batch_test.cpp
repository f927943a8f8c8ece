// batch_test.cpp - the YAML file of a batch: what it asks for, and every mistake with its line.
#include "batch/batch.h"

#include <future>

#include "base/glob.h"
#include "checks.h"
#include "formats/onnx/onnx.h"

namespace tonnx {
namespace {

namespace fs = std::filesystem;

class BatchTest : public testing::Test {
 protected:
  BatchTest() {
    fs::create_directories(folder_ / "models/deep");
    fs::create_directories(folder_ / "o");
    model("models/a.onnx", "float32[N, 3]");
    model("models/b.onnx", "float32[2, 3]");
    model("models/deep/c.onnx", "float32[2, 3]");
    model("open.onnx", "float32");
  }

  void model(const std::string& name, const std::string& type) {
    const Model m = parse_model(
        fmt::format("ir_version 8 opset 17 graph g {{ input %x: {0} %y: {0} = Relu(%x) output %y }}", type));
    write_onnx(m, folder_ / name);
  }

  BatchConfig read(std::string_view yaml, Verifying verifying = Verifying::Asked) {
    write_file(folder_ / "config.yml", yaml);
    return read_batch(folder_ / "config.yml", verifying);
  }

  /// The mistakes, a line each, without the head.
  std::string mistakes(std::string_view yaml, Verifying verifying = Verifying::Asked) {
    const Error error = error_of([&] { read(yaml, verifying); });
    EXPECT_EQ(error.kind(), ErrorKind::InvalidModel);
    std::string text = error.text();
    const std::string prefix = (folder_ / "");
    for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix)) text.erase(at, prefix.size());
    return text.substr(text.find('\n') + 1);
  }

  std::vector<std::string> pairs(const BatchConfig& config) {
    std::vector<std::string> result;
    for (const BatchJob& job : config.jobs) {
      result.push_back(fs::path(job.source).lexically_relative(folder_ / "").string() + " " +
                       fs::path(job.target).lexically_relative(folder_ / "").string());
    }
    return result;
  }

  TempFolder folder_;
};

using Texts = std::vector<std::string>;

TEST_F(BatchTest, PatternsAndPlaceholders) {
  EXPECT_EQ(pairs(read("models: [{source: models/*.onnx, target: 'out/{stem}.pt2'}]")),
            (Texts{"models/a.onnx out/a.pt2", "models/b.onnx out/b.pt2"}));
  EXPECT_EQ(pairs(read("models: [{source: 'models/**/[bc].onnx', targets: ['{dir}/o/{name}', 'x/{stem}.pth']}]")),
            (Texts{"models/b.onnx models/o/b.onnx", "models/b.onnx x/b.pth", "models/deep/c.onnx models/deep/o/c.onnx",
                   "models/deep/c.onnx x/c.pth"}));
  EXPECT_EQ(pairs(read("defaults: {target: 'o/{stem}.py'}\nmodels:\n- source: [models/a.onnx, open.onnx]\n")),
            (Texts{"models/a.onnx o/a.py", "open.onnx o/open.py"}));
}

TEST_F(BatchTest, DefaultsAndWhatOverridesThem) {
  const BatchConfig config = read(R"(
defaults:
  opset: 15
  simplify: {skip: [fuse_bn], fold_limit: 2KB}
  input_shapes: {x: ['?', 3]}
  verify: {times: 3, rtol: 1e-3}
models:
  - {source: models/a.onnx, targets: [1.onnx, 1.pt2]}
  - {source: models/b.onnx, target: 2.onnx, opset: 18, simplify: false, verify: false}
  - {source: models/b.onnx, target: 3.onnx, simplify: true, verify: true, external_data: yes}
  - source: models/a.onnx
    target: 4.pt2
    input_shapes: {x: [-1, ~]}
    dynamic: {x: {0: "batch:1..64"}}
    simplify: {only: fold_constants, infer_shapes: no}
)");
  ASSERT_EQ(config.jobs.size(), 5U);
  const BatchJob& first = config.jobs[0];
  EXPECT_EQ(first.convert.opset, 15);
  EXPECT_FALSE(config.jobs[1].convert.opset);
  EXPECT_EQ(first.simplify->skip, Texts{"fuse_bn"});
  EXPECT_EQ(first.simplify->fold_limit, 2048);
  EXPECT_EQ(first.verify->times, 3);
  EXPECT_EQ(first.verify->relative, 1e-3);
  EXPECT_EQ(first.convert.input_shapes, (std::map<std::string, std::vector<int64_t>>{{"x", {-1, 3}}}));
  EXPECT_EQ(config.jobs[2].convert.opset, 18);
  EXPECT_FALSE(config.jobs[2].simplify || config.jobs[2].verify);
  EXPECT_EQ(config.jobs[3].simplify->skip, Texts{"fuse_bn"});
  EXPECT_EQ(config.jobs[3].verify->times, 3);
  EXPECT_EQ(config.jobs[3].convert.external_data, true);
  const BatchJob& last = config.jobs[4];
  EXPECT_EQ(last.convert.input_shapes.at("x"), (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(last.simplify->only, Texts{"fold_constants"});
  EXPECT_FALSE(last.simplify->infers_shapes);
  ASSERT_EQ(last.convert.dynamic.size(), 1U);
  EXPECT_EQ(last.convert.dynamic[0].name, "batch");
  EXPECT_EQ(last.convert.dynamic[0].high, 64);
}

struct Wrong {
  std::string yaml, mistakes;

  friend void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.yaml; }
};

class BatchMistakes : public BatchTest, public testing::WithParamInterface<Wrong> {};

TEST_P(BatchMistakes, AreToldWithTheirLines) { EXPECT_EQ(mistakes(GetParam().yaml), GetParam().mistakes); }

INSTANTIATE_TEST_SUITE_P(
    All, BatchMistakes,
    testing::Values(
        Wrong{"a: [", "  line 1: end of sequence flow not found"},
        Wrong{"", "  line 1: a map with 'models' is expected, not nothing"},
        Wrong{std::string(10000, '['), "  line 1: lists and maps are nested too deeply"},
        Wrong{"models: &a [*a]", "  line 1: 'a model' must be a map, not a list"},
        Wrong{"text", "  line 1: a map with 'models' is expected, not a single value"},
        Wrong{"defaults: {}", "  line 1: there is no list 'models'"},
        Wrong{"models: []", "  line 1: 'models' must be a list of models, not an empty list"},
        Wrong{"models:\n- 7", "  line 2: 'a model' must be a map, not '7'"},
        Wrong{"model: 1\nmodels:\n- source: open.onnx\n  traget: o.py",
              "  line 1: unknown key 'model' at the top; did you mean 'models'?\n"
              "  line 3: the model has no 'target' or 'targets'\n"
              "  line 4: unknown key 'traget' of a model; did you mean 'target'?"},
        Wrong{"models:\n- target: o.py", "  line 2: the model has no 'source'"},
        Wrong{"models:\n- {source: no.onnx, target: o.py}\n- {source: no/*.onnx, target: o.py}",
              "  line 2: there is no file 'no.onnx'\n  line 3: no file matches 'no/*.onnx'"},
        Wrong{"models:\n- {source: config.yml, target: o.py}",
              "  line 2: cannot read 'config.yml': tonnx reads .onnx, .pt2, .pt, .pth and .safetensors"},
        Wrong{"models:\n- source: open.onnx\n  target: o.bin",
              "  line 3: cannot write 'o.bin' from 'open.onnx': tonnx writes .py, .pt2, .pt, .onnx, .safetensors, .pth "
              "from "
              "it"},
        Wrong{"models:\n- source: models/*.onnx\n  target: o.pt2",
              "  line 3: 'o.pt2' is written from 'models/b.onnx', and from 'models/a.onnx' as line 3 says"},
        Wrong{"models:\n- source: open.onnx\n  targets: [o.py, ./o.safetensors]",
              "  line 3: 'o.safetensors' is written from 'open.onnx', and from 'open.onnx' as line 3 says"},
        Wrong{"models:\n- source: models/a.onnx\n  target: models/../models/a.onnx",
              "  line 3: the target 'models/a.onnx' is a source too"},
        Wrong{"models:\n- source: open.onnx\n  target: '{steem}.py'",
              "  line 3: '{steem}' in a target: there are {stem}, {name} and {dir}"},
        Wrong{"models:\n- source: open.onnx\n  target: o.py\n  opset: 0\n  simplify: perhaps\n  verify: [1]\n  "
              "dynamic: 3\n"
              "  input_shapes: 3\n  external_data: 3\n  target: p.py",
              "  line 4: 'opset' must be a number from 1 to 28, not '0'\n"
              "  line 5: 'simplify' must be true, false or a map, not 'perhaps'\n"
              "  line 6: 'verify' must be true, false or a map, not a list\n"
              "  line 7: '3' is not of the form name:0=batch, name:0=batch:1..64 or name:0=batch,2=height\n"
              "  line 8: 'input_shapes' must be a map from inputs to shapes such as [1, 3, 224, 224], not '3'\n"
              "  line 9: 'external_data' must be true or false, not '3'\n"
              "  line 10: the key 'target' is there twice"},
        Wrong{"models:\n- source: models/a.onnx\n  target: o.py\n  input_shapes:\n    x: [1, 2, 3]\n    q: [1]\n  "
              "dynamic:\n"
              "    x: {5: n}",
              "  line 5: input 'x' of 'models/a.onnx' has 2 dimensions, and 3 are given\n"
              "  line 6: no model has an input 'q'; there are: x\n"
              "  line 8: input 'x' of 'models/a.onnx' has 2 dimensions, and none of number 5"},
        Wrong{"defaults:\n  input_shapes: {data: [1, 3], x: [1, 3]}\n  dynamic: {y: {0: n}}\nmodels:\n- source: "
              "models/a.onnx\n  target: o.pt2",
              "  line 2: no model has an input 'data'; there are: x\n"
              "  line 3: no model has an input 'y'; there are: x"},
        Wrong{"models:\n- source: models/a.onnx\n  target: o.py\n  input_shapes: {x: [a, 3]}\n  dynamic: {x: {0: "
              "'n:4..2'}}",
              "  line 4: 'x' must be a shape of sizes, where ? leaves one as it is, not 'a'\n"
              "  line 5: the sizes from 4 to 2 are none"},
        Wrong{
            "defaults: {simplify: true}\nmodels:\n- source: models/a.onnx\n  target: a.py\n- source: open.onnx\n  "
            "target: o.py",
            "  line 5: input 'x' of 'open.onnx' has no shape, and simplification needs one: give it in 'input_shapes'"},
        Wrong{"defaults:\n  source: 3\n  simplify: {fold_limit: big, skipp: x}\n  verify: {times: 0, rtol: -1, inputs: "
              "[]}\n"
              "models:\n- {source: open.onnx, target: o.py, simplify: false}",
              "  line 2: unknown key 'source' of the defaults; there are: source_lines, target, input_shapes, opset, "
              "targets, "
              "simplify, "
              "allow_ops, external_data, dynamic, verify, limits, flat\n"
              "  line 3: 'big' is not a size such as 1MB\n"
              "  line 3: unknown key 'skipp' of 'simplify'; did you mean 'skip'?\n"
              "  line 4: 'times' must be a number from 1 on, not '0'\n"
              "  line 4: 'rtol' must be a number from 0 on, not '-1'\n"
              "  line 4: 'inputs' must be a file such as data.npz, not an empty list"}));

TEST_F(BatchTest, PassesAreChecked) {
  const std::string text =
      mistakes("models:\n- source: open.onnx\n  target: o.py\n  simplify:\n    skip: [fuse_everything]");
  EXPECT_TRUE(text.starts_with("  line 3") || text.starts_with("  line 2")) << text;
  EXPECT_NE(text.find("  line 5: there is no pass 'fuse_everything'"), std::string::npos) << text;
}

TEST_F(BatchTest, VerificationWhereItIsImpossible) {
  const std::string_view yaml = "defaults:\n  verify: true\nmodels:\n- {source: open.onnx, target: o.py}\n";
  EXPECT_TRUE(mistakes(yaml, Verifying::Impossible).starts_with("  line 2: 'verify' needs ONNX Runtime"));
  EXPECT_FALSE(read(yaml, Verifying::Never).jobs[0].verify);
  EXPECT_TRUE(read(yaml).jobs[0].verify);
}

TEST_F(BatchTest, ShapesThatAreGivenAreEnough) {
  const BatchConfig config =
      read("models: [{source: open.onnx, target: o.py, simplify: true, input_shapes: {x: [2, 3]}}]");
  EXPECT_EQ(config.jobs[0].convert.input_shapes.at("x"), (std::vector<int64_t>{2, 3}));
}

TEST_F(BatchTest, FailuresDoNotStopTheOthersAndUnchangedTargetsAreSkipped) {
  write_file(folder_ / "broken.onnx", "\x08\x0a\x3a\xff\xff");
  write_file(folder_ / "o/broken.py", "somebody's own");
  const std::string_view yaml =
      "models:\n- {source: '*.onnx', target: 'o/{stem}.py'}\n- {source: models/*.onnx, target: 'o/{stem}.pt2'}\n";
  const BatchConfig config = read(yaml);
  BatchReport report = run_batch(config, {.threads = 3});
  ASSERT_EQ(report.results.size(), 4U);
  EXPECT_EQ(report.results[0].status, JobResult::Status::Failed);
  EXPECT_EQ(report.results[0].kind, ErrorKind::BadFile);
  EXPECT_NE(report.results[0].error.find("while converting"), std::string::npos);
  EXPECT_EQ(content_of(folder_ / "o/broken.py"), "somebody's own");
  EXPECT_EQ(report.count(JobResult::Status::Done), 3U);

  report = run_batch(config, {.resumes = true});
  EXPECT_EQ(report.count(JobResult::Status::Unchanged), 3U);
  EXPECT_EQ(report.count(JobResult::Status::Failed), 1U);

  fs::remove(folder_ / "o/open.py");
  fs::last_write_time(folder_ / "models/a.onnx", fs::file_time_type::clock::now() + std::chrono::seconds(5));
  report = run_batch(config, {.resumes = true, .is_dry = true});
  EXPECT_EQ(report.results[1].status, JobResult::Status::Waiting);
  EXPECT_EQ(report.results[2].status, JobResult::Status::Waiting);
  EXPECT_EQ(report.results[3].status, JobResult::Status::Unchanged);
  EXPECT_FALSE(fs::exists(folder_ / "o/open.py"));

  const BatchConfig other = read("models: [{source: models/b.onnx, target: o/b.pt2, simplify: true}]");
  EXPECT_EQ(run_batch(other, {.resumes = true, .is_dry = true}).count(JobResult::Status::Waiting), 1U);
  write_file(folder_ / "config.yml.state",
             "not json\n{\"target\": 3}\n[]\n{\"target\":\"x\",\"options\":\"\",\"files\":[3]}\n");
  EXPECT_EQ(run_batch(config, {.resumes = true, .is_dry = true}).count(JobResult::Status::Waiting), 4U);
}

TEST_F(BatchTest, AResultThatDiffersIsNoResult) {
  const BatchConfig config = read(
      "defaults: {verify: true}\nmodels: [{source: models/*.onnx, target: 'o/{stem}.py', dynamic: {x: {0: "
      "'n:3..9'}}}]");
  std::map<std::string, std::vector<int64_t>> seen;
  BatchOptions options{.threads = 1};
  options.judge = [&](const BatchJob& job, const std::string& result, const auto& shapes) {
    EXPECT_TRUE(fs::exists(result));
    EXPECT_EQ(fs::path(result).filename(), fs::path(job.target).filename());
    EXPECT_FALSE(fs::exists(folder_ / "o/b.py"));  // not before it is found to be right
    seen = shapes;
    return std::string(job.source.ends_with("a.onnx") ? "a lot" : "");
  };
  const BatchReport report = run_batch(config, options);
  EXPECT_EQ(report.results[0].error, "the outputs differ: a lot");
  EXPECT_FALSE(report.results[0].kind);
  EXPECT_TRUE(report.results[1].verified);
  EXPECT_FALSE(fs::exists(folder_ / "o/a.py"));
  EXPECT_TRUE(fs::exists(folder_ / "o/b.py"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "o"), fs::directory_iterator()), 1);
  EXPECT_EQ(seen.at("x"), (std::vector<int64_t>{3, 3}));
  EXPECT_NE(json_of(config, report).find("\"kind\": \"verification\""), std::string::npos);
  EXPECT_NE(table_of(config, report).find("1 done, 0 unchanged, 1 failed"), std::string::npos);
}

TEST_F(BatchTest, StopsWhenAsked) {
  const BatchConfig config = read("models: [{source: models/*.onnx, target: 'o/{stem}.py', verify: true}]");
  BatchOptions options{.threads = 1};
  std::promise<void> asked;
  const std::shared_future<void> is_asked = asked.get_future();
  options.should_stop = [&] {
    asked.set_value();
    return true;
  };
  options.judge = [&](const BatchJob&, const std::string&, const auto&) {
    is_asked.wait();  // so the first is under way when the others are called off
    return std::string();
  };
  const BatchReport report = run_batch(config, options);
  EXPECT_EQ(report.count(JobResult::Status::Done), 1U);
  EXPECT_EQ(report.count(JobResult::Status::Waiting), 1U);
}

TEST_F(BatchTest, WhatWasThereBeforeStaysUnlessItIsReplaced) {
  const BatchConfig config = read("models: [{source: models/*.onnx, target: 'o/{stem}.py', verify: true}]");
  for (const char* const name : {"o/a.py", "o/a.safetensors", "o/b.py"}) write_file(folder_ / name, "somebody's own");
  BatchOptions options{.threads = 1};
  options.judge = [&](const BatchJob& job, const std::string&, const auto&) {
    return std::string(job.source.ends_with("a.onnx") ? "a lot" : "");
  };
  EXPECT_EQ(run_batch(config, options).count(JobResult::Status::Failed), 1U);
  EXPECT_EQ(content_of(folder_ / "o/a.py"), "somebody's own");
  EXPECT_EQ(content_of(folder_ / "o/a.safetensors"), "somebody's own");
  EXPECT_TRUE(content_of(folder_ / "o/b.py").starts_with("\"\"\""));
}

TEST_F(BatchTest, TheStateIsWrittenToNoOtherFile) {
  const BatchConfig config = read("models: [{source: models/a.onnx, target: o/a.py}]");
  fs::create_symlink(folder_ / "elsewhere", folder_ / "config.yml.state");
  EXPECT_EQ(run_batch(config, {}).count(JobResult::Status::Done), 1U);
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere"));
  fs::remove(folder_ / "config.yml.state");
  write_file(folder_ / "precious", "");
  fs::create_hard_link(folder_ / "precious", folder_ / "config.yml.state");
  EXPECT_EQ(run_batch(config, {}).count(JobResult::Status::Done), 1U);
  EXPECT_EQ(content_of(folder_ / "precious"), "");
}

}  // namespace
}  // namespace tonnx
