// one_node.cpp - writes the text of one-node models.
#include "ops/one_node.h"

#include <fmt/format.h>

#include "ir/text.h"

namespace tonnx {
namespace {

/// A value of the attribute's type; the variants are plausible, extreme and empty ones.
std::string attribute_text(const Param& param, int variant) {
  constexpr const char* kInts[] = {"1", "0", "-1", "9223372036854775807", "-9223372036854775808", "2", "7", "1000000"};
  constexpr const char* kFloats[] = {"1.0", "0.0", "-1.0", "inf", "nan", "1e-30", "3e+38", "0.5"};
  constexpr const char* kIntLists[] = {
      "[1, 1]",       "[]",           "[-1]",        "[9223372036854775807, 1]", "[-9223372036854775808]",
      "[0, 0, 0, 0]", "[2, 2, 2, 2]", "[1, 0, 3, 2]"};
  constexpr const char* kFloatLists[] = {"[1.0]", "[0.0, 2.0]",           "[-1.0]", "[inf]",
                                         "[nan]", "[1.0, 1.0, 2.0, 2.0]", "[0.5]",  "[1.0]"};
  constexpr const char* kStrings[] = {"", "NOTSET", "SAME_UPPER", "VALID", "linear", "nonsense", "constant", "\\xff"};
  constexpr const char* kTensors[] = {"float32[1]{1.0}",  "int64[]{3}",
                                      "int64[0]{}",       "string[1]{\"a\"}",
                                      "int4[3]{1, 2, 3}", "complex64[1]{(1.0, 2.0)}",
                                      "bool[]{True}",     "float8_e8m0fnu[1]{1.0}"};
  const std::string& t = param.type;
  if (t == "int") return kInts[variant];
  if (t == "float") return kFloats[variant];
  if (t == "ints") return kIntLists[variant];
  if (t == "floats") return kFloatLists[variant];
  if (t == "str") return fmt::format("\"{}\"", kStrings[variant]);
  if (t == "strs") return fmt::format("[\"{}\"]", kStrings[variant]);
  if (t == "tensor") return kTensors[variant];
  if (t == "tensors") return fmt::format("[{}]", kTensors[variant]);
  if (t == "sparse") return "sparse[4](float32[1]{1.0}, int64[1]{2})";
  if (t == "graph") return variant % 2 == 0 ? "graph b { %inner = Relu(%i0) output %inner }" : "graph b { }";
  if (t == "graphs") return "[graph b { }]";
  return "type(float32[2])";
}

}  // namespace

std::vector<const OnnxOpEntry*> all_onnx_ops() {
  std::vector<const OnnxOpEntry*> result;
  for (const OpFamily* family : op_families()) {
    for (const OnnxOp& op : family->onnx) {
      const ParsedSignature signature = parse_onnx_signature(op.sig.text());
      result.push_back(find_onnx_op(signature.domain, signature.name));
    }
  }
  return result;
}

Model one_node(const OnnxOpEntry& entry, std::string_view type, std::string_view constant, const OneNode& options) {
  const ParsedSignature& signature = entry.signature;
  const int opset = entry.op->until != 0 ? entry.op->until - 1 : kNewestOpset;
  std::string text = fmt::format("opset {}\nopset {} 1\ngraph g {{\n", signature.domain.empty() ? opset : kNewestOpset,
                                 signature.domain.empty() ? "other" : signature.domain);
  const std::string suffix = type.empty() ? "" : fmt::format(": {}", type);
  text += fmt::format("  input %i0{}\n", suffix);  // so that there is always one
  std::string inputs;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const bool wanted = options.all_inputs || !signature.inputs[i].optional;
    if (wanted && i > 0) {
      text += constant.empty() ? fmt::format("  input %i{}{}\n", i, suffix)
                               : fmt::format("  const %i{}: {}\n", i, constant);
    }
    inputs += fmt::format("{}{}", i > 0 ? ", " : "", wanted ? fmt::format("%i{}", i) : "_");
  }
  std::string outputs;
  for (size_t i = 0; i < signature.outputs.size(); ++i) outputs += fmt::format("{}%o{}", i > 0 ? ", " : "", i);
  std::string attributes;
  for (const Param& param : signature.attributes) {
    const bool required = !param.optional && !param.has_default;
    if (options.attribute_variant < 0 && !required) continue;
    const int variant = options.attribute_variant < 0 ? 0 : options.attribute_variant;
    const std::string kind = param.type == "floats" ? ": floats = " : "=";
    attributes +=
        fmt::format("{}{}{}{}", attributes.empty() ? "" : ", ", param.name, kind, attribute_text(param, variant));
  }
  const std::string op = signature.domain.empty() ? signature.name : signature.domain + "." + signature.name;
  text += fmt::format("  {} = {}({}) {{{}}} \"node\"\n  output %o0\n}}\n", outputs, op, inputs, attributes);
  return parse_model(text);
}

}  // namespace tonnx
