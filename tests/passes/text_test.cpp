// text_test.cpp - each pass on graphs that are written as text: tests/passes/text/PASS.txt has them before and after.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "checks.h"
#include "convert/one_pass.h"
#include "convert/simplify.h"

namespace tonnx {
namespace {

constexpr const char* kFolder = TONNX_TEST_FILES "/passes/text/";
constexpr std::string_view kCase = "== ", kLine = "----\n", kUnchanged = "unchanged\n";

/// `== name`, the graph before, `----`, and the graph after, or `unchanged`.
struct Case {
  std::string name, before, after;
};
struct File {
  std::string head;  // what is above the first case
  std::vector<Case> cases;
};

std::string trimmed(std::string text) {
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

File parse_file(const std::string& text) {
  File file;
  size_t at = text.starts_with(kCase) ? 0 : text.find("\n== ") + 1;
  file.head = text.substr(0, at);
  while (at < text.size()) {
    const size_t next = std::min(text.find("\n== ", at), text.size() - 1) + 1;
    const std::string body = text.substr(at, next - at);
    const size_t end_of_name = body.find('\n'), line = body.find("\n" + std::string(kLine));
    Case one{body.substr(kCase.size(), end_of_name - kCase.size()), {}, {}};
    if (line == std::string::npos) {
      one.before = trimmed(body.substr(end_of_name + 1));
    } else {
      one.before = body.substr(end_of_name + 1, line - end_of_name);
      one.after = trimmed(body.substr(line + 1 + kLine.size()));
    }
    file.cases.push_back(std::move(one));
    at = next;
  }
  return file;
}

std::string print_file(const File& file) {
  std::string text = file.head;
  for (const Case& one : file.cases) {
    text += std::string(kCase) + one.name + "\n" + one.before + std::string(kLine) + one.after;
    text += &one == &file.cases.back() ? "" : "\n";
  }
  return text;
}

/// Without the version of the format, which no pass is about.
std::string print_after(const Model& model) {
  const std::string text = print_all(model);
  return trimmed(text.substr(text.find_first_not_of('\n', text.find('\n'))));
}

std::string run(const Pass& pass, const std::string& before) {
  Model model = parse_model(before);
  EXPECT_EQ(is_aten(*model.graph), pass.phase != Phase::Simplify);
  bool is_changed = false;
  if (pass.phase == Phase::Simplify) {
    is_changed = run_simplify_pass(model, pass);
    for (const Function& function : model.functions) check_dialect(*function.body, pass.dialect);
  } else {
    check_written_code(*model.graph);
    is_changed = run_aten_pass(*model.graph, pass);
    check_written_code(*model.graph);
  }
  check_dialect(*model.graph, pass.dialect);
  const std::string after = print_after(model);
  EXPECT_EQ(print_after(parse_model(after)), after);
  return is_changed ? after : std::string(kUnchanged);
}

std::string path_of(std::string_view pass) { return kFolder + std::string(pass) + ".txt"; }

class PassText : public testing::TestWithParam<const Pass*> {};

TEST_P(PassText, GivesWhatIsWritten) {
  const Pass& pass = *GetParam();
  const std::string path = path_of(pass.name);
  const std::string text = content_of(path);
  ASSERT_FALSE(text.empty()) << "the pass has no cases: " << path;
  File file = parse_file(text);
  const bool updates = std::getenv("TONNX_UPDATE_TEXTS") != nullptr;
  size_t fired = 0, refused = 0;
  std::set<std::string> names;
  for (Case& one : file.cases) {
    SCOPED_TRACE(path + ": " + one.name);
    EXPECT_TRUE(names.insert(one.name).second) << "two cases have the name";
    std::string after;
    try {
      after = run(pass, one.before);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    ++(after == kUnchanged ? refused : fired);
    if (!updates) EXPECT_EQ(one.after, after);
    one.after = after;
  }
  EXPECT_GT(fired, 0U) << "the pass changes nothing in any case";
  EXPECT_GT(refused, 0U) << "the pass lets no case be";
  if (updates && !HasFailure()) write_file(path, print_file(file));
}

std::vector<const Pass*> all_passes() {
  std::vector<const Pass*> result;
  for (const Pass& pass : pass_table()) result.push_back(&pass);
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, PassText, testing::ValuesIn(all_passes()),
                         [](const auto& param) { return std::string(param.param->name); });

TEST(PassTexts, AreOfPasses) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    ++files;
    EXPECT_NO_THROW(find_pass(entry.path().stem().string())) << entry.path();
    EXPECT_EQ(entry.path().extension(), ".txt");
  }
  EXPECT_GT(files, 0U);
}

}  // namespace
}  // namespace tonnx
