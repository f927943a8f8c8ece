// methods.cpp - compares the graphs of two methods node by node.
#include <algorithm>
#include <type_traits>

#include "modules/alike.h"

namespace tonnx {
namespace {

class MethodComparison {
 public:
  MethodComparison(const Method& a, const Method& b) : a_(a), b_(b) {}

  bool are_equal_graphs(const Graph& a, const Graph& b) {
    if (a.inputs().size() != b.inputs().size() || a.outputs().size() != b.outputs().size() ||
        a.node_count() != b.node_count())
      return false;
    for (size_t i = 0; i < a.inputs().size(); ++i) twin_[a.inputs()[i]] = b.inputs()[i];
    const Node* other = b.first();
    for (const Node& node : a) {
      if (!are_equal_nodes(node, *other)) return false;
      other = other->next;
    }
    for (size_t i = 0; i < a.outputs().size(); ++i) {
      if (!are_twins(a.outputs()[i], b.outputs()[i])) return false;
    }
    return true;
  }

 private:
  bool are_twins(const Value* a, const Value* b) const {
    const auto at = twin_.find(a);
    return at == twin_.end() ? a == b : at->second == b;
  }

  bool are_equal_values(const AttrValue& a, const AttrValue& b) {
    if (a.index() != b.index()) return false;
    return std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          const T& other = *b.get<T>();
          if constexpr (std::is_same_v<T, GraphPtr>)
            return are_equal_graphs(*value, *other);
          else if constexpr (std::is_same_v<T, AttrList>)
            return std::equal(value.begin(), value.end(), other.begin(), other.end(),
                              [&](const AttrValue& x, const AttrValue& y) { return are_equal_values(x, y); });
          else
            return value == other;
        },
        static_cast<const AttrValue::variant&>(a));
  }

  bool are_equal_nodes(const Node& a, const Node& b) {
    if (a.op != b.op || a.domain != b.domain || a.overload != b.overload || a.inputs().size() != b.inputs().size() ||
        a.outputs().size() != b.outputs().size() || a.attributes.size() != b.attributes.size() ||
        called_by(a, a_.calls) != called_by(b, b_.calls))
      return false;
    for (size_t i = 0; i < a.inputs().size(); ++i) {
      if (!are_twins(a.input(i), b.input(i))) return false;
    }
    for (size_t i = 0; i < a.attributes.size(); ++i) {
      if (a.attributes[i].name != b.attributes[i].name ||
          !are_equal_values(a.attributes[i].value, b.attributes[i].value))
        return false;
    }
    for (size_t i = 0; i < a.outputs().size(); ++i) {
      if ((a.output(i) == nullptr) != (b.output(i) == nullptr)) return false;
      if (a.output(i)) twin_[a.output(i)] = b.output(i);
    }
    return true;
  }

  const Method &a_, &b_;
  std::unordered_map<const Value*, const Value*> twin_;
};

}  // namespace

bool are_equal(const Method& a, const Method& b) { return MethodComparison(a, b).are_equal_graphs(*a.graph, *b.graph); }

}  // namespace tonnx
