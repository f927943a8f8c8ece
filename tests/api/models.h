// models.h - models that the tests of the interface are about, built through it.
#pragma once
#include <gtest/gtest.h>
#include <tonnx/tonnx.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace api_test {

/// A folder of its own for one test, which goes away with it.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("tonnx_api_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "_" +
               std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  size_t file_count() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::byte> bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

inline tonnx::Tensor floats(std::vector<int64_t> dims, float first = 0.5F) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(first + static_cast<float>(i % 7) / 8);
  return tonnx::Tensor::of(tonnx::DType::Float32, std::move(dims), values);
}

/// x [batch, 4] -> Gemm -> Relu -> Identity -> Gemm -> y [batch, 2]
inline tonnx::Model two_layers() {
  using tonnx::DType;
  tonnx::Model model = tonnx::Model::create(17);
  tonnx::GraphEditor edit = model.edit();
  const auto x = edit.add_input("x", tonnx::Type::tensor(DType::Float32, {"batch", 4}));
  const auto layer = [&](tonnx::ValueView input, const std::string& name, int64_t in, int64_t out) {
    const auto weight = edit.add_initializer(name + ".weight", floats({out, in}));
    const auto bias = edit.add_initializer(name + ".bias", floats({out}, -1));
    return edit.add_node("Gemm", {input, weight, bias},
                         {.name = "/" + name + "/Gemm", .outputs = {name + "_out"}, .attributes = {{"transB", 1}}});
  };
  const auto hidden = layer(x, "fc1", 4, 8);
  const auto relu = edit.add_node("Relu", {hidden.output()}, {.name = "/act/Relu", .outputs = {"hidden"}});
  const auto same = edit.add_node("Identity", {relu.output()}, {.name = "/drop/Identity", .outputs = {"kept"}});
  const auto last = layer(same.output(), "fc2", 8, 2);
  edit.rename(last.output(), "y");
  edit.set_type(last.output(), tonnx::Type::tensor(DType::Float32, {"batch", 2}));
  edit.add_output(last.output());
  return model;
}

}  // namespace api_test
