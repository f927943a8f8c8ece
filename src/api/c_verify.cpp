// c_verify.cpp - the interface in C: comparisons by runners of the caller's own, and batches.
#include <cstring>

#include "api/c_internal.h"

struct tonnx_runner : tonnx::v1::Runner {
  tonnx_run run_outputs = nullptr;
  tonnx_run_inner run_values = nullptr;
  void* context = nullptr;
  std::vector<Value> input_list;
  std::vector<std::string> output_list, inner_list;

  std::vector<Value> inputs() const override { return input_list; }
  std::vector<std::string> outputs() const override { return output_list; }
  std::vector<Step> inner() const override { return {inner_list.begin(), inner_list.end()}; }
  std::vector<tonnx::v1::Tensor> run(const std::vector<tonnx::v1::Tensor>& inputs) override;
  std::vector<tonnx::v1::Tensor> run_inner(const std::vector<tonnx::v1::Tensor>& inputs,
                                           const std::vector<size_t>& places) override;
};

struct tonnx_verify_options {
  tonnx::v1::VerifyOptions verify;
};

struct tonnx_batch_options {
  tonnx::v1::BatchOptions batch;
};

namespace tonnx::c_interface {
namespace {

/// Inputs as a function in C takes them.
class TensorPointers {
 public:
  explicit TensorPointers(const std::vector<v1::Tensor>& tensors) {
    for (const v1::Tensor& tensor : tensors) kept_.push_back(std::make_unique<tonnx_tensor>(tonnx_tensor{tensor}));
    for (const auto& each : kept_) pointers_.push_back(each.get());
  }
  const tonnx_tensor* const* data() const { return pointers_.data(); }
  size_t size() const { return pointers_.size(); }

 private:
  std::vector<std::unique_ptr<tonnx_tensor>> kept_;
  std::vector<const tonnx_tensor*> pointers_;
};

/// Calls a function that fills a list with tensors, and takes them, also where it fails.
template <class Call>
std::vector<v1::Tensor> tensors_by(size_t count, Call&& call) {
  std::vector<tonnx_tensor*> filled(count);
  const int failure = call(filled.data());
  std::vector<std::unique_ptr<tonnx_tensor>> kept;
  for (tonnx_tensor* tensor : filled) kept.emplace_back(tensor);
  if (failure != 0)
    throw v1::Error(v1::Error::Kind::Unsupported, "the caller's runner returned " + std::to_string(failure));
  std::vector<v1::Tensor> result;
  for (const auto& tensor : kept) {
    if (!tensor) throw v1::Error(v1::Error::Kind::InvalidModel, "the caller's runner left out a tensor");
    result.push_back(tensor->tensor);
  }
  return result;
}

constexpr size_t kRoomForDifference = 4096;

}  // namespace
}  // namespace tonnx::c_interface

using namespace tonnx::c_interface;

std::vector<tonnx::v1::Tensor> tonnx_runner::run(const std::vector<tonnx::v1::Tensor>& inputs) {
  const TensorPointers given(inputs);
  return tensors_by(output_list.size(), [&](tonnx_tensor** outputs) {
    return run_outputs(context, given.data(), given.size(), outputs, output_list.size());
  });
}
std::vector<tonnx::v1::Tensor> tonnx_runner::run_inner(const std::vector<tonnx::v1::Tensor>& inputs,
                                                       const std::vector<size_t>& places) {
  const TensorPointers given(inputs);
  std::vector<const char*> texts;
  for (const size_t place : places) texts.push_back(inner_list.at(place).c_str());
  return tensors_by(places.size(), [&](tonnx_tensor** values) {
    return run_values(context, given.data(), given.size(), texts.data(), values, texts.size());
  });
}

tonnx_runner* tonnx_runner_new(tonnx_run run, void* context) {
  auto* runner = run == nullptr ? nullptr : new (std::nothrow) tonnx_runner;
  if (runner == nullptr) return nullptr;
  runner->run_outputs = run;
  runner->context = context;
  return runner;
}
void tonnx_runner_free(tonnx_runner* runner) { delete runner; }
tonnx_status tonnx_runner_add_input(tonnx_runner* runner, const char* name, const char* type, const int64_t* sizes,
                                    size_t rank) {
  return guarded(nullptr, [&] {
    required(runner, "runner").input_list.push_back({text_of(name, "name"), type_of(type, sizes, rank)});
  });
}
tonnx_status tonnx_runner_add_output(tonnx_runner* runner, const char* name) {
  return guarded(nullptr, [&] { required(runner, "runner").output_list.push_back(text_of(name, "name")); });
}
tonnx_status tonnx_runner_set_inner(tonnx_runner* runner, tonnx_run_inner run, const char* const* names, size_t count) {
  return guarded(nullptr, [&] {
    tonnx_runner& open = required(runner, "runner");
    std::vector<std::string> list = names_of(names, count, "names");
    open.run_values = &required(run, "run");
    open.inner_list = std::move(list);
  });
}

tonnx_verify_options* tonnx_verify_options_new(void) { return new (std::nothrow) tonnx_verify_options; }
void tonnx_verify_options_free(tonnx_verify_options* options) { delete options; }
tonnx_status tonnx_verify_options_set_input(tonnx_verify_options* options, const char* name,
                                            const tonnx_tensor* tensor) {
  return set(options, [&](tonnx_verify_options& open) {
    set_named(open.verify.inputs, text_of(name, "name"), required(tensor, "tensor").tensor);
  });
}
tonnx_status tonnx_verify_options_set_input_shape(tonnx_verify_options* options, const char* input,
                                                  const int64_t* sizes, size_t count) {
  return set(options, [&](tonnx_verify_options& open) { set_shape(open.verify.shapes, input, sizes, count); });
}
tonnx_status tonnx_verify_options_set_draws(tonnx_verify_options* options, int draws, uint64_t seed) {
  return set(options, [&](tonnx_verify_options& open) {
    open.verify.draws = draws;
    open.verify.seed = seed;
  });
}
tonnx_status tonnx_verify_options_set_tolerance(tonnx_verify_options* options, double rtol, double atol) {
  return set(options, [&](tonnx_verify_options& open) {
    open.verify.rtol = rtol;
    open.verify.atol = atol;
  });
}
tonnx_status tonnx_verify_options_set_layers(tonnx_verify_options* options, int has_layers) {
  return set(options, [&](tonnx_verify_options& open) { open.verify.layers = has_layers != 0; });
}

tonnx_status tonnx_verify(tonnx_runner* reference, tonnx_runner* other, const tonnx_model* model,
                          const tonnx_verify_options* options, int* is_same, tonnx_buffer** report,
                          tonnx_error** error) {
  return guarded(error, [&] {
    if (report != nullptr) *report = nullptr;
    required(is_same, "is_same") = 0;
    const tonnx::v1::VerifyResult result =
        tonnx::v1::verify(required(reference, "reference"), required(other, "other"), required(model, "model").model,
                          options == nullptr ? tonnx::v1::VerifyOptions() : options->verify);
    if (report != nullptr) *report = buffer_of(result.text);
    *is_same = result ? 1 : 0;
  });
}

tonnx_batch_options* tonnx_batch_options_new(void) { return new (std::nothrow) tonnx_batch_options; }
void tonnx_batch_options_free(tonnx_batch_options* options) { delete options; }
tonnx_status tonnx_batch_options_set_threads(tonnx_batch_options* options, unsigned threads) {
  return set(options, [&](tonnx_batch_options& open) { open.batch.threads = threads; });
}
tonnx_status tonnx_batch_options_set_resume(tonnx_batch_options* options, int resumes) {
  return set(options, [&](tonnx_batch_options& open) { open.batch.resumes = resumes != 0; });
}
tonnx_status tonnx_batch_options_set_dry(tonnx_batch_options* options, int is_dry) {
  return set(options, [&](tonnx_batch_options& open) { open.batch.is_dry = is_dry != 0; });
}
tonnx_status tonnx_batch_options_set_verify(tonnx_batch_options* options, int verifies) {
  return set(options, [&](tonnx_batch_options& open) { open.batch.verifies = verifies != 0; });
}
tonnx_status tonnx_batch_options_set_compare(tonnx_batch_options* options,
                                             int (*compare)(void* context, const char* source, const char* result,
                                                            char* text, size_t room),
                                             void* context) {
  return set(options, [&](tonnx_batch_options& open) {
    open.batch.compare = nullptr;
    if (compare == nullptr) return;
    open.batch.compare = [compare, context](const tonnx::v1::BatchComparison& asked) -> std::string {
      std::vector<char> text(kRoomForDifference);
      const int found = compare(context, asked.source.c_str(), asked.result.c_str(), text.data(), text.size());
      if (found == 0) return {};
      text.back() = 0;
      const std::string why = text[0] != 0 ? text.data() : "the caller's function says so";
      return found == 2 ? "not judged: " + why : why;
    };
  });
}
tonnx_status tonnx_batch_options_set_on_end(tonnx_batch_options* options,
                                            void (*on_end)(void* context, const char* source, const char* target,
                                                           const char* status),
                                            void* context) {
  return set(options, [&](tonnx_batch_options& open) {
    open.batch.on_end = nullptr;
    if (on_end == nullptr) return;
    open.batch.on_end = [on_end, context](const tonnx::v1::BatchJob& job) {
      const std::string status(tonnx::v1::name_of(job.status));
      on_end(context, job.source.c_str(), job.target.c_str(), status.c_str());
    };
  });
}

tonnx_status tonnx_batch(const char* config, const tonnx_batch_options* options, size_t* failed, tonnx_buffer** report,
                         tonnx_error** error) {
  return guarded(error, [&] {
    if (report != nullptr) *report = nullptr;
    const tonnx::v1::BatchReport found =
        tonnx::v1::run(text_of(config, "config"), options == nullptr ? tonnx::v1::BatchOptions() : options->batch);
    if (report != nullptr) *report = buffer_of(found.json);
    if (failed != nullptr) *failed = found.count(tonnx::v1::BatchJob::Status::Failed);
  });
}
