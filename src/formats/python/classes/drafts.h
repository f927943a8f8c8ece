// drafts.h - what the class of one part of a model says, before it is known which parts share a class.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/python/classes/number_tokens.h"
#include "formats/python/python.h"
#include "formats/python/statements/statements.h"
#include "modules/outline.h"

namespace tonnx::python {

/// What a part has or has not, where others of its class are different.
struct Form {
  bool has_optional_add = false;  // its result may be added to what it begins with
  bool has_shortcut = false;      // and is
  std::string optional_member;    // that not all have; empty where there is none
  std::string given_member;       // that is made in another way in others, and given; empty where there is none
  NumberedText made_inside;  // how the constructor makes it, after a flag, the last of its numbers; otherwise given
};

/// A number of a member that a part has not: it may be anything.
inline constexpr std::string_view kAnyNumber = "*";

struct Draft {
  ModulePart* part = nullptr;
  Form form;
  std::vector<Statement> members;
  Forward forward;
  std::vector<MethodText> others;
  std::vector<NumberedText> lines;  // of the members, then of forward and of the other methods
  std::string shape;                // all of it but the numbers
  std::vector<std::string> numbers;
};

class Drafts {
 public:
  explicit Drafts(const std::vector<ExternalModule>& external) : external_(external) {}

  Draft draft_of(ModulePart& part, const Form& form = {}) const;
  std::vector<Statement> member_lines(const ModulePart& part, const Form& form = {}) const;
  Forward code_of(const Method& method, bool is_model) const;
  std::string constructor(const Member& member) const;
  /// From here on the part is made in this way.
  void set_constructor(const ModulePart& part, std::string text) { constructors_[&part] = std::move(text); }
  /// `{"conv": nn.Conv2d(3, 8, 1)}`
  static std::string dict_text(const std::vector<std::string>& names, const std::vector<std::string>& items);
  /// The same as keywords of a call, where all names may be: `conv=nn.Conv2d(3, 8, 1), act=nn.ReLU()`.
  static std::string keywords_text(const std::vector<std::string>& names, const std::vector<std::string>& items);

 private:
  std::string constructor(const ModulePart& part) const;

  const std::vector<ExternalModule>& external_;
  std::unordered_map<const ModulePart*, std::string> constructors_;
};

/// `self.weight = nn.Parameter(torch.empty(3, 4))`
std::string tensor_line(const StateEntry& tensor, const std::string& name);

/// The line that makes a member, if a flag says so.
NumberedText numbers_with_flag(const std::string& line);

/// What stands for an optional member where there is none.
inline constexpr std::string_view kNoMember = "None";

}  // namespace tonnx::python
