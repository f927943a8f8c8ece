// variables.h - the variables of a block: which name each value has, and which names are free.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "formats/python/naming/liveness.h"
#include "formats/python/naming/numbers.h"
#include "modules/words.h"
#include "ops/frame/python_names.h"

namespace tonnx::python {

/// What a size is called, as `batch`, where the model has a name for it.
std::string number_hint(const Value& value);

/// The variables of one block. A name is free again behind the last use of the value that has it.
class Variables {
 public:
  /// `outer`: the variables of the block around, and where in it this one stands.
  Variables(const Liveness& liveness, const NameSet& parameters, const Words& words, Variables* outer,
            int position_in_outer)
      : liveness_(liveness),
        parameters_(parameters),
        words_(words),
        outer_(outer),
        position_in_outer_(position_in_outer) {}

  /// From here on the value has that name, and what had it before has none.
  void set(const Value* value, const std::string& name);
  /// A name that statements of this block must not set.
  void reserve(const std::string& name) { reserved_.insert(name); }
  /// The name of a value of this block or of those around; null where it has none.
  const std::string* find(const Value* value) const;
  /// Whether the variable is needed behind that position, here or in the blocks around.
  bool is_live(const std::string& name, int position) const;

  /// The name for a result of a statement: a word for it where that is free, that of an operand which is not needed any
  /// more, or a free one; `_` where nobody uses it.
  std::string choose(const Value* output, const Node& node);
  /// A name for a value that is set inside an inner block at that position: nothing has it which is needed there or
  /// behind, and it is not among `others`, where it is added.
  std::string choose_early(const Value& value, int position, ChosenNames& others);
  /// As choose_early: the word, or the word with a number.
  std::string choose_word(const std::string& word, int position, ChosenNames& others);

 private:
  bool is_live_around(const std::string& name) const;
  int needed_until(const std::string& name) const;
  Numbers& numbers_of(const std::string& word, int first);
  std::string numbered(const std::string& word, int first, int position, ChosenNames* others = nullptr);
  std::string free_name(int position);
  std::string number_name(const Value* value, int position);
  std::string find_early(const Value& value, int position, ChosenNames& others);

  const Liveness& liveness_;
  const NameSet& parameters_;
  const Words& words_;
  Variables* outer_;
  int position_in_outer_;
  std::unordered_map<const Value*, std::string> name_of_;
  std::unordered_map<std::string, const Value*> holder_;  // variable -> the value it has now
  std::set<std::string, std::less<>> reserved_;
  std::map<std::pair<std::string, int>, Numbers> numbers_;  // by the word in front of them, and the first
};

}  // namespace tonnx::python
