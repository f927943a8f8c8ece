// trained_scalar.cpp - tells parameters of one element from constants, by the names that frameworks give to both.
#include "ops/frame/trained_scalar.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <unordered_set>

#include "ops/frame/op_def.h"

namespace tonnx {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

template <size_t N>
bool is_among(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// `w_0`, `b_12`: Paddle's weights.
bool is_paddle_weight(std::string_view last) {
  return last.size() > 2 && (last[0] == 'w' || last[0] == 'b') && last[1] == '_' &&
         std::all_of(last.begin() + 2, last.end(), is_digit);
}

/// Names that PyTorch and Paddle give to what is no parameter, in a module or out of it.
bool is_constant_name(std::string_view last) {
  constexpr std::array<std::string_view, 4> kNames{"eps", "epsilon", "momentum", "num_batches_tracked"};
  constexpr std::array<std::string_view, 6> kStarts{"tmp_", "const", "Const", "_tensor_const", "lifted_tensor", "val_"};
  constexpr std::array<std::string_view, 3> kEnds{"_zero_point", "weight_scale", "_quantized"};
  return is_digit(last[0]) || is_among(last, kNames) ||
         std::any_of(kStarts.begin(), kStarts.end(), [&](std::string_view start) { return last.starts_with(start); }) ||
         std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) { return last.ends_with(end); });
}

/// A parameter of the model itself has no module in front of its name, and must say more.
bool is_parameter_name(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNames{"gamma", "beta", "temperature"};
  constexpr std::array<std::string_view, 3> kEnds{"_gamma", "_beta", "_scale"};
  return is_among(name, kNames) ||
         std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) { return name.ends_with(end); });
}

/// `masked_fill` of `aten::masked_fill.Scalar`.
const std::unordered_set<std::string_view>& operator_words() {
  static const std::unordered_set<std::string_view> words = [] {
    std::unordered_set<std::string_view> result;
    for (const OpFamily* family : op_families()) {
      for (const AtenOp& op : family->aten) {
        const std::string_view name = op.sig.name(), domain = "aten::";
        if (name.starts_with(domain)) result.insert(name.substr(domain.size(), name.find('.') - domain.size()));
      }
    }
    return result;
  }();
  return words;
}

}  // namespace

bool is_operator_word(std::string_view word) {
  const bool has_weights = word.starts_with("conv") || word.ends_with("_norm") || word == "linear" ||
                           word == "embedding" || word == "lstm" || word == "gru";
  return !has_weights && operator_words().contains(word);
}

bool is_result_name(std::string_view name) {
  std::string_view word = name;
  for (bool is_numbered = true; is_numbered;) {  // `abs_1_2` is one of several that were called abs_1
    std::string_view rest = word;
    while (!rest.empty() && is_digit(rest.back())) rest.remove_suffix(1);
    is_numbered = rest.size() < word.size() && rest.ends_with('_');
    if (is_numbered) word = rest.substr(0, rest.size() - 1);
  }
  // Without a number: nobody calls a parameter so. What was expanded is one mostly, for each of a batch.
  constexpr std::array<std::string_view, 5> kMoves{"unsqueeze", "squeeze", "permute", "transpose", "reshape"};
  if (word == name && word.find('_') == std::string_view::npos && !is_among(word, kMoves)) return false;
  return is_operator_word(word);
}

bool is_trained_scalar(const Value& value) {
  if (!value.constant || value.producer != nullptr || value.constant->count() != 1 || !is_float(value.constant->dtype))
    return false;
  const std::string_view name = value.name;
  const bool is_path = std::all_of(name.begin(), name.end(), [](char c) { return is_word(c) || c == '.'; });
  if (!is_path || name.empty() || is_digit(name.front()) || name.front() == '.' || name.back() == '.') return false;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return !is_constant_name(name) && is_parameter_name(name);
  const std::string_view last = name.substr(dot + 1);
  return is_paddle_weight(last) || !is_constant_name(last);
}

}  // namespace tonnx
