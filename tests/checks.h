// checks.h - what the unit tests share: errors as values, folders that vanish, models written as text.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "base/error.h"
#include "ir/text.h"

namespace tonnx {

/// Runs the body, which must throw, and gives back what it threw.
template <class Body>
Error error_of(Body&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::Internal, "nothing was thrown");
}

#define EXPECT_ERROR(kind_, part, ...)                                                                    \
  do {                                                                                                    \
    const ::tonnx::Error error_ = ::tonnx::error_of([&] { __VA_ARGS__; });                                \
    EXPECT_EQ(::tonnx::name_of(error_.kind()), std::string(::tonnx::name_of(::tonnx::ErrorKind::kind_))); \
    EXPECT_NE(std::string(error_.what()).find(part), std::string::npos) << error_.what();                 \
  } while (false)

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tonnx-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  size_t file_count() const {
    const std::filesystem::directory_iterator begin(path_);
    return static_cast<size_t>(std::distance(begin, std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

inline std::string print_all(const Model& model) {
  return print(model, {.max_elements = std::numeric_limits<int64_t>::max()});
}

inline Node* find_node(const Graph& graph, std::string_view op) {
  for (Node& node : graph) {
    if (node.op.view() == op) return &node;
  }
  return nullptr;
}

}  // namespace tonnx
