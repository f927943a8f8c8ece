// custom_ops.cpp - signatures of the user's own operators are read as those of the tables, and checked before.
#include "convert/custom_ops.h"

#include "base/error.h"

namespace tonnx {
namespace {

constexpr OnnxOp kOnnxRow{.sig = "Custom() -> T y", .since = 1};
constexpr AtenOp kAtenRow{.sig = "custom::custom() -> Tensor"};

/// What the compiler checks of the signatures in the tables.
void check_signature(const std::string& text) {
  const size_t open = text.find('('), arrow = text.rfind(" -> ");
  int depth = 0;
  bool is_quoted = false, is_balanced = true;
  for (const char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    depth += c == '(' || c == '[';
    depth -= c == ')' || c == ']';
    is_balanced = is_balanced && depth >= 0;
  }
  const bool is_one = is_balanced && depth == 0 && !is_quoted && open != std::string::npos && open > 0 &&
                      arrow != std::string::npos && text[arrow - 1] == ')' && arrow + 4 < text.size() &&
                      text.find(' ') > open;
  require(is_one, "'{}' is not a signature of the form library::name(Tensor x, float beta) -> Tensor", text);
}

}  // namespace

void CustomOps::add_onnx(const std::string& signature, std::string like,
                         std::function<Values(const OnnxNode&, AtenBuilder&)> lower) {
  check_signature(signature);
  CustomOnnxOp op{{&kOnnxRow, nullptr, parse_onnx_signature(signature)}, std::move(lower), std::move(like)};
  const ParsedSignature& parsed = op.entry.signature;
  require(op.like.empty() || parsed.find_input(op.like) >= 0, "'{}' has no input '{}'", signature, op.like);
  std::pair key{parsed.domain, parsed.name};
  require(onnx_.emplace(std::move(key), std::move(op)).second, "the operator of '{}' is there already", signature);
}

void CustomOps::add_aten(const std::string& signature, std::function<Values(const AtenNode&, OnnxBuilder&)> raise) {
  check_signature(signature);
  require(signature.find("::") < signature.find('('), "'{}' does not say the library of the operator", signature);
  CustomAtenOp op{{&kAtenRow, nullptr, parse_aten_signature(signature)}, std::move(raise)};
  const std::string name = signature.substr(0, signature.find('('));
  require(aten_.emplace(name, std::move(op)).second, "the operator of '{}' is there already", signature);
}

const CustomOnnxOp* CustomOps::find_onnx(const Node& node) const {
  const auto at = onnx_.find({node.domain.str(), node.op.str()});
  return at == onnx_.end() ? nullptr : &at->second;
}

const CustomAtenOp* CustomOps::find_aten(std::string_view full_name) const {
  const auto at = aten_.find(full_name);
  return at == aten_.end() ? nullptr : &at->second;
}

}  // namespace tonnx
