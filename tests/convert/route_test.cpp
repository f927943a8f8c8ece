// route_test.cpp - each option is taken where it means something, and refused elsewhere.
#include "convert/route.h"

#include <gtest/gtest.h>

#include "checks.h"
#include "convert/pipeline.h"

namespace tonnx {
namespace {

using Given = std::vector<RouteOption>;

TEST(Route, EndingsSayTheFormat) {
  EXPECT_EQ(find_format("a/b.onnx"), Format::Onnx);
  EXPECT_EQ(find_format("b.pt2"), Format::Pt2);
  EXPECT_EQ(find_format(""), Format::Module);
  EXPECT_EQ(find_format("a.onnx/b"), std::nullopt);
  EXPECT_EQ(find_format(".onnx"), std::nullopt);
  EXPECT_EQ(find_format("dir/.py"), std::nullopt);
  EXPECT_EQ(find_format("model.ONNX"), Format::Onnx);
}

TEST(Route, FilesThatAreNotReadOrWritten) {
  EXPECT_ERROR(Unsupported, "cannot open 'a.pb': there is no such file", route("a.pb", "a.onnx", Given{}));
  EXPECT_ERROR(Unsupported, "cannot open 'a.pth': there is no such file", route("a.pth", "a.onnx", Given{}));
  EXPECT_ERROR(Unsupported, "cannot write 'a.txt': tonnx writes .py, .pt2, .pt, .onnx, .safetensors and .pth",
               route("a.onnx", "a.txt", Given{}));
  EXPECT_ERROR(Unsupported, "cannot write 'b.pt2': tonnx writes .py, .pt, .onnx, .safetensors and .pth from .pt2",
               route("a.pt2", "b.pt2", Given{}));
}

TEST(Route, OptionsThatMeanNothingAreRefused) {
  struct Case {
    const char *source, *target;
    RouteOption option;
    const char* error;  // empty: it is taken
  };
  const Case cases[] = {
      {"a.onnx", "b.onnx", RouteOption::Opset, ""},
      {"a.pt2", "b.onnx", RouteOption::Opset, ""},
      {"a.onnx", "b.py", RouteOption::Opset, "an opset is given"},
      {"a.onnx", "", RouteOption::Opset, "an opset is given"},
      {"a.onnx", "b.pt2", RouteOption::ExternalData, "external data is for a target in ONNX"},
      {"a.pt2", "b.onnx", RouteOption::ExternalData, ""},
      {"a.onnx", "b.py", RouteOption::InputShapes, ""},
      {"a.onnx", "", RouteOption::InputShapes, ""},
      {"a.pt2", "b.onnx", RouteOption::InputShapes, "fixed when it is exported"},
      {"a.onnx", "b.pt2", RouteOption::Dynamic, ""},
      {"a.onnx", "b.pt", RouteOption::Dynamic, ""},
      {"a.onnx", "b.onnx", RouteOption::Dynamic, ""},
      {"a.onnx", "b.py", RouteOption::Dynamic, "convert to .onnx with them first"},
      {"a.onnx", "", RouteOption::Dynamic, "convert to .onnx with them first"},
      {"a.pt2", "b.onnx", RouteOption::Dynamic, "fixed when it is exported"},
      {"a.pt2", "b.py", RouteOption::AllowOps, ""},
      {"a.pt2", "", RouteOption::AllowOps, ""},
      {"a.pt2", "b.onnx", RouteOption::AllowOps, "ONNX cannot call it"},
      {"a.onnx", "b.py", RouteOption::AllowOps, "for a .pt2 source"},
      {"a.onnx", "b.onnx", RouteOption::Weights, ""},
      {"a.pt2", "", RouteOption::Weights, ""},
      {"a.pth", "b.safetensors", RouteOption::Weights, "the source is no model"},
      {"a.pth", "b.safetensors", RouteOption::Part, ""},
      {"a.onnx", "b.onnx", RouteOption::Part, "and none is given"},
      {"a.safetensors", "b.pth", RouteOption::InputShapes, "has no inputs"},
      {"a.safetensors", "b.pth", RouteOption::Flat, "asked of code"},
      {"a.pt", "b.onnx", RouteOption::InputShapes, ""},
      {"a.pt", "b.onnx", RouteOption::InputTypes, ""},
      {"a.onnx", "b.py", RouteOption::InputTypes, "a TorchScript file alone lacks them"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.source) + " to " + c.target);
    if (*c.error == 0) {
      EXPECT_NO_THROW(route(c.source, c.target, Given{c.option}));
    } else {
      EXPECT_ERROR(InvalidModel, c.error, route(c.source, c.target, Given{c.option}));
    }
  }
}

TEST(Route, OptionsOfAConversionAreSeen) {
  ConvertOptions options;
  EXPECT_NO_THROW(route("a.onnx", "b.py", options));
  options.opset = 13;
  EXPECT_ERROR(InvalidModel, "an opset is given", route("a.onnx", "b.py", options));
  EXPECT_ERROR(InvalidModel, "an opset is given", route(Format::Pt2, "b.pt", options));
}

}  // namespace
}  // namespace tonnx
