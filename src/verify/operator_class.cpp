// operator_class.cpp - names of operators, without what vocabularies add to them.
#include "verify/operator_class.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

namespace tonnx::judge {
namespace {

bool contains_one_of(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return text.find(part) != text.npos; });
}

/// `conv2d`, `maxpool2dwithindices`: the number of dimensions.
void drop_dimensions(std::string& name) {
  constexpr std::string_view kIndices = "withindices";
  if (name.ends_with(kIndices)) name.resize(name.size() - kIndices.size());
  const size_t size = name.size();
  if (size > 2 && name.back() == 'd' && name[size - 2] >= '1' && name[size - 2] <= '3') name.resize(size - 2);
}

}  // namespace

std::string operator_class(std::string_view op) {
  static const auto& same = *new std::unordered_map<std::string_view, std::string_view>{
      {"gemm", "matmul"},
      {"linear", "matmul"},
      {"addmm", "matmul"},
      {"mm", "matmul"},
      {"bmm", "matmul"},
      {"baddbmm", "matmul"},
      {"batchnormalization", "batchnorm"},
      {"nativebatchnorm", "batchnorm"},
      {"layernormalization", "layernorm"},
      {"nativelayernorm", "layernorm"},
      {"convolution", "conv"},
      {"sum", "add"},
      {"iadd", "add"},
      {"radd", "add"},
      {"truediv", "div"},
      {"averagepool", "avgpool"},
      {"globalaveragepool", "avgpool"},
      {"adaptiveavgpool", "avgpool"},
      {"view", "reshape"},
      {"flatten", "reshape"},
      {"squeeze", "reshape"},
      {"unsqueeze", "reshape"},
      {"permute", "transpose"},
      {"t", "transpose"},
      {"clamp", "clip"},
      {"relu6", "clip"},
      {"hardtanh", "clip"},
      {"concat", "cat"},
      {"getitem", "slice"},
      {"interpolate", "resize"},
  };
  std::string name;
  for (const char c : op.substr(0, op.find('.'))) {
    if (c != '_') name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  drop_dimensions(name);
  const auto at = same.find(name);
  return at == same.end() ? name : std::string(at->second);
}

bool accumulates(std::string_view operator_class) {
  return contains_one_of(operator_class, {"conv", "matmul", "norm", "softmax", "pool", "reduce", "mean", "attention",
                                          "lstm", "gru", "rnn", "einsum", "resize", "upsample", "cumsum"});
}

bool quantises(std::string_view op) {
  for (const std::string_view each :
       {"DequantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger"}) {
    if (op == each) return true;
  }
  return op.starts_with("dequantize_per_") || op.starts_with("fake_quantize_per_");
}

bool rounds_to_steps(std::string_view op) {
  return op.starts_with("Quantize") || op.starts_with("DynamicQuantize") || op.starts_with("quantize") ||
         op.starts_with("round") || contains_one_of(op, {"QLinear", "Integer", "Round"});
}

}  // namespace tonnx::judge
