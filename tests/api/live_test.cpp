// live_test.cpp - programs of a process that has PyTorch, handed over in memory or read for one call.
#include <tonnx/live.h>

#include <cstring>

#include "models.h"

namespace {

using namespace api_test;  // NOLINT
using tonnx::DType;
using tonnx::Error;
using tonnx::Model;
using tonnx::Tensor;
using tonnx::Type;

/// What torch.export serializes of relu(x * scale), for x of [2, 3].
constexpr const char* kProgram = R"json({"graph_module": {"graph": {
  "inputs": [{"as_tensor": {"name": "p_scale"}}, {"as_tensor": {"name": "x"}}],
  "outputs": [{"as_tensor": {"name": "relu"}}],
  "nodes": [
    {"target": "torch.ops.aten.mul.Tensor", "inputs": [
       {"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
       {"name": "other", "arg": {"as_tensor": {"name": "p_scale"}}, "kind": 1}],
     "outputs": [{"as_tensor": {"name": "mul"}}], "metadata": {}, "is_hop_single_tensor_return": null, "name": "mul"},
    {"target": "torch.ops.aten.relu.default", "inputs": [
       {"name": "self", "arg": {"as_tensor": {"name": "mul"}}, "kind": 1}],
     "outputs": [{"as_tensor": {"name": "relu"}}], "metadata": {}, "is_hop_single_tensor_return": null,
     "name": "relu"}],
  "tensor_values": {
    "p_scale": {"dtype": 7, "sizes": [{"as_int": 3}], "requires_grad": true,
      "device": {"type": "cpu", "index": null}, "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7},
    "x": {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}], "requires_grad": false,
      "device": {"type": "cpu", "index": null}, "strides": [{"as_int": 3}, {"as_int": 1}],
      "storage_offset": {"as_int": 0}, "layout": 7},
    "mul": {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}], "requires_grad": false,
      "device": {"type": "cpu", "index": null}, "strides": [{"as_int": 3}, {"as_int": 1}],
      "storage_offset": {"as_int": 0}, "layout": 7},
    "relu": {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}], "requires_grad": false,
      "device": {"type": "cpu", "index": null}, "strides": [{"as_int": 3}, {"as_int": 1}],
      "storage_offset": {"as_int": 0}, "layout": 7}},
  "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": false, "custom_obj_values": {},
  "sym_float_values": {}},
 "signature": {
  "input_specs": [{"parameter": {"arg": {"name": "p_scale"}, "parameter_name": "scale"}},
                  {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
  "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "relu"}}}}]},
 "module_call_graph": [], "metadata": {}, "treespec_namedtuple_fields": {}},
 "opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 20},
 "verifiers": ["TRAINING"], "torch_version": "2.13.0", "guards_code": [],
 "weights": {"scale": {"path_name": "storage_0", "is_param": true, "use_pickle": false, "tensor_meta": {
   "dtype": 7, "sizes": [{"as_int": 3}], "requires_grad": true, "device": {"type": "cpu", "index": null},
   "strides": [{"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}}},
 "constants": {}, "tonnx": {"input_names": ["x"], "output_names": ["output"], "symbols": {}}})json";

Tensor bytes(const void* data, size_t size) {
  const auto* first = static_cast<const std::byte*>(data);
  return {DType::UInt8, {static_cast<int64_t>(size)}, {first, first + size}};
}

Model live() {
  const float scale[] = {1, 2, 4};
  return tonnx::read_live_program(bytes(kProgram, std::strlen(kProgram)), {{"storage_0", bytes(scale, sizeof(scale))}});
}

TEST(ApiLive, AProgramInMemoryBecomesOnnxAnyNumberOfTimes) {
  Model program = live();
  EXPECT_EQ(program.format(), tonnx::Format::TorchExport);
  EXPECT_TRUE(program.unsupported(tonnx::Format::Onnx).empty());
  EXPECT_EQ(program.output_names(), std::vector<std::string>{"output"});
  program.set_output_names({"positive"});
  EXPECT_THROW(program.set_output_names({"a", "b"}), Error);
  for (const int64_t opset : {17, 20}) {
    const Model onnx = program.to_onnx({.opset = opset});
    EXPECT_EQ(onnx.opset(), opset);
    std::vector<std::string> ops;
    for (const tonnx::NodeView& node : onnx.graph()) ops.emplace_back(node.op());
    EXPECT_EQ(ops, (std::vector<std::string>{"Mul", "Relu"}));
    EXPECT_EQ(onnx.output_names(), std::vector<std::string>{"positive"});
    ASSERT_EQ(onnx.graph().initializers().size(), 1U);
    EXPECT_EQ(onnx.graph().initializers()[0].name(), "scale");
    EXPECT_EQ(Tensor(onnx.graph().initializers()[0].tensor()).as<float>()[2], 4);
  }
  EXPECT_NE(program.to_python().find("F.relu(x * self.scale)"), std::string::npos) << program.to_python();
}

TEST(ApiLive, WhatDoesNotFitTogetherIsRefused) {
  const Tensor program = bytes(kProgram, std::strlen(kProgram));
  const float scale[] = {1, 2};
  EXPECT_THROW(tonnx::read_live_program(program, {}), Error);
  EXPECT_THROW(tonnx::read_live_program(program, {{"storage_0", bytes(scale, sizeof(scale))}}), Error);
  EXPECT_THROW(tonnx::read_live_program(program, {{"storage_0", floats({3})}}), Error);
  EXPECT_THROW(tonnx::read_live_program(bytes(kProgram, 100), {}), Error);
}

TEST(ApiLive, AScriptIsReadForOneCall) {
  const Folder folder;
  two_layers().write(folder / "m.pt");
  tonnx::ScriptCall call;
  call.inputs = {{"image", Type::tensor(DType::Float32, {"n", 4})}};
  call.arguments = {{"x", {.kind = tonnx::ScriptArgument::Kind::Input, .integer = 0}}};
  const Model program = tonnx::read_script(folder / "m.pt", call);
  EXPECT_EQ(program.format(), tonnx::Format::TorchScript);
  const Model onnx = program.to_onnx();
  EXPECT_EQ(onnx.graph().inputs().at(0).name(), "image");
  EXPECT_EQ(tonnx::text_of(onnx.graph().inputs().at(0).type()), "float32[n, 4]");
  EXPECT_EQ(onnx.graph().node_count(), 3U);
  call.arguments[0].second.integer = 1;
  EXPECT_THROW(tonnx::read_script(folder / "m.pt", call), Error);
  call.arguments = {{"nobody", {}}};
  EXPECT_THROW(tonnx::read_script(folder / "m.pt", call), Error);
  tonnx::ScriptArgument deep;
  for (int i = 0; i < 1000; ++i) {
    tonnx::ScriptArgument outer{.kind = tonnx::ScriptArgument::Kind::List};
    outer.items.push_back(std::move(deep));
    deep = std::move(outer);
  }
  call.arguments = {{"x", deep}};
  EXPECT_THROW(tonnx::read_script(folder / "m.pt", call), Error);
}

}  // namespace
