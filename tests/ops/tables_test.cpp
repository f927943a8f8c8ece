// tables_test.cpp - the operator tables against the standard's list of versions, and every hook on what it may be
// given.
#include <algorithm>
#include <set>
#include <thread>

#include "checks.h"
#include "convert/compilation.h"
#include "ops/frame/allowed_ops.h"
#include "ops/frame/aten_types.h"
#include "ops/frame/op_def.h"
#include "ops/one_node.h"
#include "ops/standard_versions.h"

namespace tonnx {
namespace {

TEST(Tables, SeveralThreadsLookAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (const OpFamily* family : op_families()) {
        for (const AtenOp& op : family->aten) {
          const AtenOpEntry* entry = find_aten_op(op.sig.name());
          ASSERT_NE(entry, nullptr) << op.sig.text();
          EXPECT_EQ(entry->op, &op);
          EXPECT_FALSE(entry->signature.name.empty());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// The parts of a name decide, and not how they look one behind the other.
TEST(Tables, AnOperatorIsFoundByItsParts) {
  Graph graph;
  Node* in_parts = graph.add_node("aten", "add");
  in_parts->overload = "Tensor";
  EXPECT_NE(find_aten_op(*in_parts), nullptr);
  EXPECT_EQ(find_aten_op(*graph.add_node("aten", "add.Tensor")), nullptr);
}

TEST(Tables, RowsHaveEveryVersionOfTheStandard) {
  std::set<std::string_view> names;
  for (const StandardOperator& each : kStandard) {
    SCOPED_TRACE(each.name);
    names.insert(each.name);
    std::vector<int> wanted(each.versions.begin(), std::find(each.versions.begin(), each.versions.end(), 0));
    const auto found = standard_versions(each.name);
    EXPECT_EQ(std::vector<int>(found.begin(), found.end()), wanted);
    const OnnxOpEntry* entry = find_onnx_op("", each.name);
    ASSERT_NE(entry, nullptr);
    if (entry->op->until != 0) EXPECT_EQ(entry->op->until, wanted.back());  // taken away by its last version
  }
  for (const OnnxOpEntry* entry : all_onnx_ops()) {
    const bool is_standard = entry->signature.domain.empty() && !standard_versions(entry->signature.name).empty();
    if (is_standard) EXPECT_TRUE(names.contains(entry->signature.name)) << entry->signature.name;
  }
}

TEST(Tables, SchemaVersionOfAnOpset) {  // from the operator list of the standard
  EXPECT_EQ(schema_version("Relu", 1), 1);
  EXPECT_EQ(schema_version("Relu", 5), 1);
  EXPECT_EQ(schema_version("Relu", 13), 13);
  EXPECT_EQ(schema_version("Relu", 28), 14);
  EXPECT_EQ(schema_version("LayerNormalization", 16), 0);
  EXPECT_EQ(schema_version("NoSuchOp", 17), 0);
}

TEST(Tables, AtenRowsSayWhatTheyAreAndHowTheyAreSpelled) {
  std::set<std::string_view> names;
  for (const OpFamily* family : op_families()) {
    for (const AtenOp& op : family->aten) {
      SCOPED_TRACE(op.sig.text());
      EXPECT_TRUE(names.insert(op.sig.name()).second) << "in two rows";
      const AtenOpEntry* entry = find_aten_op(op.sig.name());
      ASSERT_NE(entry, nullptr);
      EXPECT_FALSE(entry->signature.domain.empty());
      EXPECT_FALSE(entry->signature.name.empty());
      EXPECT_FALSE(entry->signature.outputs.empty());
      EXPECT_TRUE(!op.python.empty() || op.emit != nullptr || op.module != nullptr);
      std::set<std::string> arguments;
      for (const Param& param : entry->signature.inputs) {
        EXPECT_FALSE(param.type.empty());
        EXPECT_TRUE(arguments.insert(param.name).second) << param.name;
      }
    }
  }
}

/// Tensors that a lowering gives are those of an aten operator whose row says what they are.
void expect_typed(const Graph& graph, std::set<std::string>& without) {
  for (const Node& node : graph) {
    for (const GraphPtr& inner : subgraphs_of(node)) expect_typed(*inner, without);
    if (node.domain != Symbol("aten") && node.domain != Symbol("torchvision")) continue;
    const AtenOpEntry& entry = get_aten_op(node);
    const bool gives_tensors = entry.signature.outputs[0].type == "Tensor";
    if (gives_tensors && !types_of(*entry.op)) without.insert(full_name(node));
  }
}

TEST(Tables, EveryAtenOperatorThatIsLoweredToHasTypes) {
  std::set<std::string> without;
  size_t lowered = 0;
  const auto lower = [&](const Model& model) {
    try {
      Model copy = parse_model(print(model));
      Compilation compilation(copy, Dialect::Stored);
      compilation.bring_to(Dialect::Code);
      const GraphPtr aten = compilation.graph();
      ++lowered;
      expect_typed(*aten, without);
    } catch (const Error&) {  // what is no model, or not supported
    }
  };
  for (const OnnxOpEntry* entry : all_onnx_ops()) {
    for (const char* const type : kInputTypes) lower(one_node(*entry, type, "", {}));
    for (const char* const type : {"float32[n, 3, h, w]", "float32[2, 3, 4, 5]", "int64[4]"}) {
      for (const char* const constant : kConstants) lower(one_node(*entry, type, constant, {}));
      for (int variant = 0; variant < kAttributeVariants; ++variant) {
        lower(one_node(*entry, type, "", {.attribute_variant = variant}));
        lower(one_node(*entry, type, "int64[1]{1}", {.attribute_variant = variant}));
      }
    }
  }
  EXPECT_GT(lowered, 1000U);
  EXPECT_EQ(without, std::set<std::string>{});
}

TEST(Tables, ElementwiseRowsAndViewsTakeATensor) {
  for (const OpFamily* family : op_families()) {
    for (const AtenOp& op : family->aten) {
      const ParsedSignature& signature = find_aten_op(op.sig.name())->signature;
      if (op.elementwise == Elementwise::No && op.view == ViewRule::None) continue;
      const bool takes_tensor = std::any_of(signature.inputs.begin(), signature.inputs.end(),
                                            [](const Param& param) { return param.type == "Tensor"; });
      EXPECT_TRUE(takes_tensor) << op.sig.name();
      EXPECT_EQ(signature.outputs[0].type, "Tensor") << op.sig.name();
    }
  }
}

/// A node of that operator: every tensor of the schema is of that type, and nothing else is given.
void type_call(const AtenOpEntry& entry, const Type& type) {
  Graph graph;
  Node* node = graph.add_node(entry.signature.domain, entry.signature.name);
  for (const Param& param : entry.signature.inputs) {
    if (param.type != "Tensor") continue;
    const Operand at{static_cast<uint32_t>(node->inputs().size())};
    node->set_attribute(param.name, param.is_list ? AttrValue(AttrList{at}) : AttrValue(at));
    node->add_input(graph.add_input(param.name, type));
  }
  for (size_t i = 0; i < entry.signature.outputs.size(); ++i) graph.add_output_to(node, fmt::format("y{}", i), Type());
  NewSizes sizes("a");
  TypeNode view(*node, entry, sizes);
  find_types(view, *entry.op);
}

TEST(Tables, RulesAskForArgumentsOfTheirSchemasOnly) {
  for (const OpFamily* family : op_families()) {
    for (const AtenOp& op : family->aten) {
      for (const Type& type : {Type::tensor(DType::Float32, Shape{2, 3, 4, 4}), Type::tensor(DType::Int64, Shape()),
                               Type::tensor(DType::Bool), Type()})
        EXPECT_NO_THROW(type_call(*find_aten_op(op.sig.name()), type)) << op.sig.name();
    }
  }
}

TEST(Tables, ARuleThatIsWrongIsNotTakenForAnUnknownSize) {
  const Model model = parse_model("graph g { input %x: float32[2] %y = aten::relu(self=%x) output %y }");
  Node& node = *model.graph->first();
  NewSizes sizes("a");
  const auto find = [&](TypeFn rule) {
    TypeNode view(node, get_aten_op(node), sizes);
    find_types(view, {.sig = "aten::relu(Tensor self) -> Tensor", .types = rule});
  };
  EXPECT_NO_THROW(find([](TypeNode&) { fail_invalid("a size does not fit into 64 bits"); }));
  EXPECT_NO_THROW(find([](TypeNode&) { fail_unsupported("too long an expression"); }));
  EXPECT_ERROR(Internal, "a mistake of the rule", find([](TypeNode&) { ensure(false, "a mistake of the rule"); }));
}

TEST(Tables, OnnxRowsHaveTypesThatAttributesCanHave) {
  const std::set<std::string> kTypes{"int",    "float",   "str",    "ints",  "floats", "strs",
                                     "tensor", "tensors", "sparse", "graph", "graphs", "type"};
  for (const OnnxOpEntry* entry : all_onnx_ops()) {
    for (const Param& param : entry->signature.attributes) {
      EXPECT_TRUE(kTypes.contains(param.type)) << entry->signature.name << " " << param.name << " " << param.type;
    }
  }
}

/// Everything that is done with a model on its way to Python; an error must not be our own.
void expect_no_internal_error(const Model& model) {
  const std::string text = print(model);
  try {
    Model copy = parse_model(text);
    Compilation compilation(copy, Dialect::Stored);
    compilation.bring_to(Dialect::Onnx);
    check_invariants(*copy.graph);
    compilation.bring_to(Dialect::Code);
    check_invariants(*compilation.graph());
    compilation.python({.weights_file = "w.safetensors", .title = "m", .external = {}});
  } catch (const Error& e) {
    EXPECT_NE(e.kind(), ErrorKind::Internal) << e.what() << "\n" << text;
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what() << "\n" << text;
  }
}

TEST(Tables, HooksTakeInputsOfEveryKind) {
  for (const OnnxOpEntry* entry : all_onnx_ops()) {
    for (const char* const type : kInputTypes) {
      for (const bool all_inputs : {true, false})
        expect_no_internal_error(one_node(*entry, type, "", {.all_inputs = all_inputs}));
    }
  }
}

TEST(Tables, HooksTakeConstantsOfEveryKind) {
  for (const OnnxOpEntry* entry : all_onnx_ops()) {
    for (const char* const first : {"float32[n, 3, h, w]", "int64[4]", "float32[]", "float32"}) {
      for (const char* const constant : kConstants) expect_no_internal_error(one_node(*entry, first, constant, {}));
    }
  }
}

TEST(Tables, HooksTakeAttributesOfEveryValue) {
  for (const OnnxOpEntry* entry : all_onnx_ops()) {
    if (entry->signature.attributes.empty()) continue;
    for (const char* const type : {"float32[2, 3, 4, 5]", "float32[n, c, h, w]", "int64[]", "float32"}) {
      for (int variant = 0; variant < kAttributeVariants; ++variant) {
        expect_no_internal_error(one_node(*entry, type, "", {.attribute_variant = variant}));
        expect_no_internal_error(one_node(*entry, type, "int64[1]{1}", {.attribute_variant = variant}));
      }
    }
  }
}

TEST(Tables, NoRowReachesForFilesLibrariesOrTheProcess) {
  size_t count = 0;
  for (const OpFamily* family : op_families()) {
    for (const AtenOp& op : family->aten) {
      const ParsedSignature& signature = find_aten_op(op.sig.name())->signature;
      const std::string_view library = signature.domain;
      if (library != "aten" && library != "torchvision") continue;  // arithmetic on numbers, graphs, and our own
      ++count;
      EXPECT_FALSE(does_more_than_compute(library, signature.name)) << op.sig.name();
    }
  }
  EXPECT_GT(count, 700U);
}

}  // namespace
}  // namespace tonnx
