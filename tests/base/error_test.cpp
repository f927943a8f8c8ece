// error_test.cpp - the one exception and its frames.
#include "checks.h"

namespace tonnx {
namespace {

TEST(Error, FramesAreAddedFromTheInsideOut) {
  const Error e = error_of([] {
    in_context([] { return std::string("converting m.onnx"); },
               [] {
                 in_context([] { return std::string("lowering node 'a'"); },
                            [] { fail_invalid("axis {} is out of range", 5); });
               });
  });
  EXPECT_EQ(e.text(), "axis 5 is out of range");
  ASSERT_EQ(e.frames().size(), 2U);
  EXPECT_STREQ(e.what(), "axis 5 is out of range\n  while lowering node 'a'\n  while converting m.onnx");
}

TEST(Error, AFrameIsOnlyMadeWhenItIsNeeded) {
  int made = 0;
  const int result = in_context([&] { return std::to_string(++made); }, [] { return 7; });
  EXPECT_EQ(result, 7);
  EXPECT_EQ(made, 0);
}

TEST(Error, KindsSayWhoMustAct) {
  EXPECT_ERROR(InvalidModel, "no", require(false, "no"));
  EXPECT_ERROR(Unsupported, "not yet", fail_unsupported("not yet"));
  EXPECT_ERROR(Internal, "our mistake", ensure(false, "our mistake"));
  EXPECT_NO_THROW(require(true, "yes"));
  EXPECT_NO_THROW(ensure(true, "yes"));
}

TEST(Error, OtherExceptionsPassThroughAContext) {
  EXPECT_THROW(in_context([] { return std::string("x"); }, [] { throw std::bad_alloc(); }), std::bad_alloc);
}

}  // namespace
}  // namespace tonnx
