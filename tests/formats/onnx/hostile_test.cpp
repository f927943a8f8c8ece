// hostile_test.cpp - pieces of files that no exporter writes: each gives one error, and none an internal one.
#include "checks.h"
#include "formats/onnx/messages.h"

namespace tonnx::onnx {
namespace {

using namespace std::string_literals;

Fields with_node(const Fields& made) {
  return model_of(
      Fields().message(graph::node, made).message(graph::input, value_of("x")).message(graph::output, value_of("y")));
}

Fields with_attribute(const Fields& attribute) {
  return with_node(node_of("Foo", {"x"}, {"y"}).message(node::attribute, attribute));
}

TEST(Hostile, FilesThatAreNoModels) {
  EXPECT_ERROR(BadFile, "empty", read_onnx(Bytes()));
  EXPECT_ERROR(BadFile, "no graph", read_onnx(Bytes::own(Fields().integer(1, 8).bytes())));
  EXPECT_ERROR(BadFile, "no graph", read_onnx(Bytes::own(Fields().integer(model::graph, 8).bytes())));
  EXPECT_ERROR(BadFile, "not an ONNX model", read_onnx(Bytes::own(std::string(4096, '\0'))));
  EXPECT_ERROR(BadFile, "not an ONNX model", read_onnx(Bytes::own(std::string(4096, '\xff'))));
  EXPECT_ERROR(BadFile, "cut off", read_onnx(Bytes::own(std::string("\x3a\xff\xff\xff\xff\x0f"))));
  EXPECT_ERROR(BadFile, "", read_onnx(Bytes::own(std::string("This is no model, it is a sentence."))));
}

TEST(Hostile, ATruncatedFileIsNeverRead) {
  const std::string bytes = model_of(relu_graph()).bytes();
  for (size_t size = 1; size + 5 < bytes.size(); ++size) {  // the opset import at the end may be missing
    const Error e = error_of([&] { read_onnx(Bytes::own(bytes.substr(0, size))); });
    EXPECT_NE(e.kind(), ErrorKind::Internal) << size << e.what();
  }
}

TEST(Hostile, Names) {
  const auto graph_of = [](const std::vector<Fields>& nodes) {
    Fields result = relu_graph();
    for (const Fields& each : nodes) result.message(graph::node, each);
    return read(model_of(result));
  };
  EXPECT_ERROR(InvalidModel, "nothing makes it", graph_of({node_of("A", {"missing"}, {"a"})}));
  EXPECT_ERROR(InvalidModel, "two values have the name 'y'", graph_of({node_of("A", {"x"}, {"y"})}));
  EXPECT_ERROR(InvalidModel, "two values have the name 'x'", graph_of({node_of("A", {"x"}, {"x"})}));
  EXPECT_NO_THROW(graph_of({node_of("A", {"b"}, {"a"}), node_of("A", {"x"}, {"b"})}));
  EXPECT_ERROR(InvalidModel, "cycle", graph_of({node_of("A", {"b"}, {"a"}), node_of("A", {"a"}, {"b"})}));
  EXPECT_ERROR(InvalidModel, "cycle", graph_of({node_of("A", {"a"}, {"a"})}));
  EXPECT_ERROR(InvalidModel, "no operator", graph_of({node_of("", {"x"}, {"a"})}));
  EXPECT_ERROR(InvalidModel, "never made", read(model_of(relu_graph().message(graph::output, value_of("z")))));
  EXPECT_ERROR(InvalidModel, "an input has no name", read(model_of(relu_graph().message(graph::input, value_of("")))));
}

TEST(Hostile, Initializers) {
  const auto tensor = [](std::string_view name, int64_t dtype, int64_t size) {
    return Fields()
        .integer(tensor::dims, size)
        .integer(tensor::data_type, dtype)
        .text(tensor::name, name)
        .text(tensor::raw_data, std::string(static_cast<size_t>(size) * 4, '\0'));
  };
  const auto with = [](const std::vector<Fields>& initializers) {
    Fields result = relu_graph();
    for (const Fields& each : initializers) result.message(graph::initializer, each);
    return read(model_of(result));
  };
  EXPECT_NO_THROW(with({tensor("x", 1, 2)}));
  EXPECT_ERROR(InvalidModel, "two initializers", with({tensor("x", 1, 2), tensor("x", 1, 2)}));
  EXPECT_ERROR(InvalidModel, "two initializers", with({tensor("w", 1, 2), tensor("w", 1, 2)}));
  EXPECT_ERROR(InvalidModel, "two values", with({tensor("y", 1, 2)}));
  EXPECT_ERROR(InvalidModel, "no name", with({tensor("", 1, 2)}));
  EXPECT_ERROR(InvalidModel, "its default of float32[3]", with({tensor("x", 1, 3)}));
  EXPECT_ERROR(InvalidModel, "its default of int32[2]", with({tensor("x", 6, 2)}));
}

TEST(Hostile, SparseTensors) {
  const auto sparse = [](const Fields& content) {
    return read(model_of(relu_graph().message(graph::sparse_initializer, content)));
  };
  const Fields values = Fields()
                            .integer(tensor::dims, 1)
                            .integer(tensor::data_type, 1)
                            .text(tensor::name, "s")
                            .text(tensor::raw_data, "\0\0\0\0"s);
  const Fields floats =
      Fields().integer(tensor::dims, 1).integer(tensor::data_type, 1).text(tensor::raw_data, "\0\0\0\0"s);
  EXPECT_ERROR(InvalidModel, "lacks", sparse(Fields().message(sparse::values, values)));
  EXPECT_ERROR(InvalidModel, "indices",
               sparse(Fields().message(sparse::values, values).message(sparse::indices, floats)));
}

TEST(Hostile, Attributes) {
  EXPECT_ERROR(InvalidModel, "unknown type 15",
               read(with_attribute(Fields().text(attribute::name, "a").integer(attribute::type, 15))));
  EXPECT_ERROR(InvalidModel, "unknown type -1",
               read(with_attribute(Fields().text(attribute::name, "a").integer(attribute::type, -1))));
  EXPECT_ERROR(
      InvalidModel, "has another",
      read(with_attribute(Fields().text(attribute::name, "a").integer(attribute::type, 2).real(attribute::f, 1))));
  EXPECT_ERROR(InvalidModel, "has another",
               read(with_attribute(Fields().text(attribute::name, "a").integer(attribute::type, 4))));
  EXPECT_ERROR(
      InvalidModel, "has another",
      read(with_attribute(
          Fields().text(attribute::name, "a").integer(attribute::type, 9).message(attribute::type_protos, Fields()))));
  EXPECT_ERROR(InvalidModel, "broken list",
               read(with_attribute(Fields().text(attribute::name, "a").text(attribute::floats, "abc"))));
  EXPECT_ERROR(
      InvalidModel, "stands in no function",
      read(with_attribute(
          Fields().text(attribute::name, "a").text(attribute::ref_attr_name, "b").integer(attribute::type, 2))));
  const Fields twice = Fields().text(attribute::name, "a").integer(attribute::i, 1);
  EXPECT_ERROR(
      InvalidModel, "given twice",
      read(with_node(node_of("Foo", {"x"}, {"y"}).message(node::attribute, twice).message(node::attribute, twice))));
}

TEST(Hostile, AttributesOfOldFiles) {
  // IR version 1 wrote no type, and proto3 leaves zeros out
  const auto attribute = [](const Fields& fields) {
    return read(with_attribute(fields)).graph->first()->attributes.at(0);
  };
  EXPECT_EQ(attribute(Fields().text(attribute::name, "a").integer(attribute::ints, 3)).type, AttrType::Ints);
  EXPECT_EQ(attribute(Fields().text(attribute::name, "a").real(attribute::f, 2)).type, AttrType::Float);
  EXPECT_EQ(*attribute(Fields().text(attribute::name, "a").integer(attribute::type, 2)).value.get<int64_t>(), 0);
  EXPECT_EQ(*attribute(Fields().text(attribute::name, "a").integer(attribute::type, 1)).value.get<double>(), 0.0);
  EXPECT_EQ(*attribute(Fields().text(attribute::name, "a").integer(attribute::type, 3)).value.get<std::string>(), "");
  EXPECT_TRUE(attribute(Fields().text(attribute::name, "a").integer(attribute::type, 7))
                  .value.get<std::vector<int64_t>>()
                  ->empty());
}

TEST(Hostile, NestingHasAnEnd) {
  Fields inner = relu_graph();
  for (int i = 0; i < 10000; ++i) {
    const Fields attribute =
        Fields().text(attribute::name, "b").message(attribute::g, inner).integer(attribute::type, 5);
    inner = Fields().message(graph::node, node_of("If", {}, {"o"}).message(node::attribute, attribute));
    if (inner.bytes().size() > 4000000) break;
  }
  EXPECT_ERROR(InvalidModel, "nested more than 64 deep", read(model_of(inner)));
  Fields type = Fields().message(type::tensor, Fields().integer(tensor_type::elem_type, 1));
  for (int i = 0; i < 5000; ++i) type = Fields().message(type::sequence, Fields().message(1, type));
  const Fields input = Fields().text(value_info::name, "s").message(value_info::type, type);
  EXPECT_ERROR(InvalidModel, "nested more than 64 deep", read(model_of(relu_graph().message(graph::input, input))));
}

TEST(Hostile, TypesAndOpsets) {
  EXPECT_ERROR(InvalidModel, "not the number of an element type",
               read(model_of(relu_graph().message(graph::input, value_of("z", 99)))));
  const Model model = read(model_of(relu_graph().message(graph::input, value_of("z", 1, {-1, 5}))));
  EXPECT_EQ(text_of(model.graph->inputs()[1]->type), "float32[?, 5]");  // -1 is how some say that they do not know
  Fields many = model_of(relu_graph());
  for (int i = 0; i < 2000; ++i) many.message(model::opset_import, Fields().text(opset::domain, std::to_string(i)));
  EXPECT_ERROR(InvalidModel, "more than 1024 opsets", read(many));
}

TEST(Hostile, ManyOfEverythingTakesLittleTime) {
  Fields wide = node_of("Foo", {"x"}, {"y"});
  for (int i = 0; i < 20000; ++i)
    wide.message(node::attribute, Fields().text(attribute::name, std::to_string(i)).integer(attribute::i, 1));
  EXPECT_EQ(read(with_node(wide)).graph->first()->attributes.size(), 20000U);
  Fields fan = relu_graph();
  for (int i = 0; i < 20000; ++i) fan.message(graph::node, node_of("Foo", {"x", "x"}, {std::to_string(i)}));
  EXPECT_EQ(read(model_of(fan)).graph->node_count(), 20001U);
}

TEST(Hostile, ABrokenLengthInsideIsAnError) {
  const std::string bytes = model_of(relu_graph()).bytes();
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string changed = bytes;
      changed[at] = value;
      try {
        write_onnx_bytes(read_onnx(Bytes::own(changed)));
      } catch (const Error& e) {
        EXPECT_NE(e.kind(), ErrorKind::Internal) << at << " " << e.what();
      }
    }
  }
}

}  // namespace
}  // namespace tonnx::onnx
