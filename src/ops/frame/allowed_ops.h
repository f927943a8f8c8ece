// allowed_ops.h - operators without a row that the user vouches for by name, and those that nobody can vouch for.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tonnx {

struct Node;

class AllowedOps {
 public:
  AllowedOps() = default;
  /// `ns::op` for all its overloads, `ns::op.overload` for one. Throws InvalidModel where one is no such name, and
  /// Unsupported where it does more than compute with tensors.
  explicit AllowedOps(const std::vector<std::string>& names);

  bool contains(const Node& node) const;
  std::vector<std::string> names() const { return {names_.begin(), names_.end()}; }

 private:
  std::set<std::string, std::less<>> names_;
};

/// Whether the operator reads or writes files, loads libraries or acts on the process, as far as its name tells: such
/// an operator has no row, and is never called from generated code.
bool does_more_than_compute(std::string_view library, std::string_view op);

}  // namespace tonnx
