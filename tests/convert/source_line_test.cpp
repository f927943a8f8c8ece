// source_line_test.cpp - lines of code without the folders of the machine that they were on.
#include "convert/source_line.h"

#include <filesystem>

#include "checks.h"

namespace tonnx {
namespace {

std::string frame(const std::string& path, int line) {
  return "  File \"" + path + "\", line " + std::to_string(line) + ", in forward\n    return x\n";
}

TEST(SourceLine, IsBehindThePackages) {
  EXPECT_EQ(source_line(frame("/home/me/.venv/lib/python3.11/site-packages/torchvision/models/resnet.py", 12)),
            "torchvision/models/resnet.py:12");
  EXPECT_EQ(source_line(frame("/usr/lib/python3/dist-packages/net/layers.py", 3)), "net/layers.py:3");
  EXPECT_EQ(source_line(frame(R"(C:\Users\me\venv\Lib\site-packages\net\layers.py)", 3)), "net/layers.py:3");
}

TEST(SourceLine, IsBehindTheCurrentFolder) {
  const std::string here = std::filesystem::current_path().generic_string();
  EXPECT_EQ(source_line(frame(here + "/models/net.py", 7)), "models/net.py:7");
}

TEST(SourceLine, IsNeverAbsolute) {
  EXPECT_EQ(source_line(frame("/home/somebody/net.py", 7)), "net.py:7");
  EXPECT_EQ(source_line(frame(R"(D:\work\net.py)", 7)), "net.py:7");
  EXPECT_EQ(source_line(frame("../../home/somebody/net.py", 7)), "net.py:7");
  EXPECT_EQ(source_line(frame("package/net.py", 7)), "package/net.py:7");
  EXPECT_EQ(source_line("no trace"), "");
  EXPECT_EQ(source_line("File \"/home/somebody/net.py"), "");
}

TEST(SourceLine, IsTheInnermostThatIsNotOfPyTorch) {
  const std::string torch = "/opt/lib/python3.12/site-packages/torch/nn/modules/linear.py";
  EXPECT_EQ(source_line(frame("/a/main.py", 1) + frame("/a/net.py", 2) + frame(torch, 134)), "net.py:2");
  EXPECT_EQ(source_line(frame(torch, 134)), "torch/nn/modules/linear.py:134");
  EXPECT_EQ(source_line(frame("/a/net.py", 2) + frame("/src/pytorch/torch/nn/functional.py", 9)), "net.py:2");
  EXPECT_EQ(source_line(frame("/a/net.py", 2) + frame("<string>", 9)), "net.py:2");
}

}  // namespace
}  // namespace tonnx
