// pickle.h - reads pickles without executing them: a global is only ever a name, a call is only ever a description.
#pragma once
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tonnx {

/// Texts are views of the bytes that were read, as they lie there: UTF-8 in files of good faith.
struct PickleValue {
  enum class Kind : uint8_t {
    None,
    Bool,       // integer
    Int,        // integer
    BigInt,     // text: little-endian two's complement, more than 64 bits
    Float,      // real
    String,     // text
    Bytes,      // text
    Tuple,      // items
    List,       // items
    Set,        // items
    Dict,       // entries
    Global,     // module, text
    Object,     // callee called with arguments; then items appended, entries set, state given
    Persistent  // callee: the persistent id
  };
  using Item = const PickleValue*;

  Kind kind = Kind::None;
  union {
    int64_t integer = 0;
    double real;
  };
  std::string_view text;
  std::string_view module;
  std::vector<Item> items;
  std::vector<Item> entries;  // a key, its value, and so on
  Item callee = nullptr;
  Item arguments = nullptr;
  Item keywords = nullptr;  // of __new__ with keywords
  Item state = nullptr;

  bool is(Kind k) const { return kind == k; }
  bool is_global(std::string_view module_name, std::string_view name) const {
    return kind == Kind::Global && module == module_name && text == name;
  }
  /// Whether this is what the call of that global gave.
  bool is_call_of(std::string_view module_name, std::string_view name) const {
    return kind == Kind::Object && callee->is_global(module_name, name);
  }
};

/// A pickle of protocols 2 to 5. Its values hold no cycle and nest at most kMaxDepth deep, so that recursion over them
/// ends; but one value may occur in many places, so that a blind walk over all paths may not.
class Pickle {
 public:
  static constexpr int kMaxDepth = 512;

  /// Reads the first pickle of the bytes. Throws BadFile naming `what`, and Unsupported for rare opcodes.
  Pickle(Bytes bytes, std::string_view what);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;

  const PickleValue& root() const { return *root_; }
  /// How many bytes it took: a stream may hold several pickles.
  size_t size() const { return size_; }

 private:
  Bytes bytes_;
  std::deque<PickleValue> values_;
  const PickleValue* root_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tonnx
