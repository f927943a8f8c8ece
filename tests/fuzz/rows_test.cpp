// rows_test.cpp - every row of the tables, in files that lie: errors are fine, crashes and our own are not.
#include "fuzz/targets/rows.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace tonnx::fuzz {
namespace {

int number_from(const char* variable, int otherwise) {
  const char* const given = std::getenv(variable);
  return given != nullptr ? std::atoi(given) : otherwise;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLimitsMemory = false;  // the sanitizer's own bookkeeping takes terabytes of addresses
constexpr int kSeconds = 100;          // and it makes everything slower
#else
constexpr bool kLimitsMemory = true;
constexpr int kSeconds = 10;
#endif

void limit(decltype(RLIMIT_AS) what, rlim_t value) {
  const rlimit both{value, value};
  setrlimit(what, &both);
}

/// What the child tells while it runs, in memory that both processes see.
struct Progress {
  volatile uint32_t seed;
  volatile size_t accepted;
};

/// In the child: what came out of the cases that is worse than an error, as text.
std::string run_cases(const Row& row, uint32_t first, int rounds, Progress& progress) {
  std::string found;
  for (int i = 0; i < rounds; ++i) {
    const uint32_t seed = first + static_cast<uint32_t>(i);
    progress.seed = seed;
    try {
      progress.accepted = progress.accepted + (row.run(seed) ? 1 : 0);
    } catch (const std::bad_alloc&) {
      // how much a conversion may take is the business of its budget, which has tests of its own
    } catch (const std::exception& e) {
      found += fmt::format("TONNX_FUZZ_SEED={}: {}\n", seed, e.what());
    }
  }
  return found;
}

/// What went wrong in a process of its own; nothing where all is well.
std::string failures_of(const Row& row, uint32_t first, int rounds, Progress& progress) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, static_cast<rlim_t>(kSeconds + rounds));
    if (kLimitsMemory) limit(RLIMIT_AS, rlim_t{1} << 30);
    const std::string found = run_cases(row, first, rounds, progress);
    for (size_t at = 0; at < found.size();) {
      const ssize_t written = write(ends[1], found.data() + at, found.size() - at);
      if (written <= 0) break;
      at += static_cast<size_t>(written);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string found;
  char buffer[4096];
  for (ssize_t count = 0; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
    found.append(buffer, static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    found += fmt::format("TONNX_FUZZ_SEED={}: {}\n", uint32_t{progress.seed}, strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status) != 0)
    found += fmt::format("TONNX_FUZZ_SEED={}: exit {}\n", uint32_t{progress.seed}, WEXITSTATUS(status));
  return found;
}

/// Runs cases of each row in a process of its own, so that a crash is a failure that has a name. `rounds` cases for
/// each, or TONNX_FUZZ_ROUNDS; from seed TONNX_FUZZ_SEED on; only rows that TONNX_FUZZ_ROW is a part of. How many cases
/// were not refused.
size_t run_rows(const std::vector<Row>& rows, int rounds) {
  rounds = number_from("TONNX_FUZZ_ROUNDS", rounds);
  const auto first = static_cast<uint32_t>(number_from("TONNX_FUZZ_SEED", 1));
  const char* const only = std::getenv("TONNX_FUZZ_ROW");
  void* const shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    ADD_FAILURE() << "no memory to share";
    return 0;
  }
  Progress& progress = *new (shared) Progress{};
  for (const Row& row : rows) {
    if (only != nullptr && row.name.find(only) == std::string::npos) continue;
    const std::string found = failures_of(row, first, rounds, progress);
    EXPECT_EQ(found, "") << "TONNX_FUZZ_ROW='" << row.name << "' TONNX_FUZZ_ROUNDS=1";
  }
  const size_t accepted = progress.accepted;
  munmap(shared, sizeof(Progress));
  return accepted;
}

/// Nothing is tested where everything is refused.
bool takes_all_rows() {
  return std::getenv("TONNX_FUZZ_ROW") == nullptr && std::getenv("TONNX_FUZZ_ROUNDS") == nullptr;
}

TEST(Fuzz, ProgramsThatLieGiveErrorsAndNothingWorse) {
  const std::vector<Row> rows = aten_rows();
  EXPECT_GT(rows.size(), 700U);
  const size_t accepted = run_rows(rows, 10);
  if (takes_all_rows()) EXPECT_GT(accepted, rows.size() / 4) << accepted;
}

TEST(Fuzz, GraphsThatLieGiveErrorsAndNothingWorse) {
  const std::vector<Row> rows = graph_rows();
  const size_t accepted = run_rows(rows, 200);
  if (takes_all_rows()) EXPECT_GT(accepted, rows.size() * 10);
}

TEST(Fuzz, ModelsThatLieGiveErrorsAndNothingWorse) {
  const std::vector<Row> rows = onnx_rows();
  const size_t accepted = run_rows(rows, 20);
  if (takes_all_rows()) EXPECT_GT(accepted, rows.size());
}

}  // namespace
}  // namespace tonnx::fuzz
