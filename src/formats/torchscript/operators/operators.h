// operators.h - operators of an archive's code: what is known is computed, the rest becomes nodes.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/torchscript/run/calls.h"
#include "formats/torchscript/run/refusals.h"

namespace tonnx::torchscript {

class Operators {
 public:
  /// `version`: of the archive, which says what some operators mean.
  Operators(Graph& graph, int64_t version) : calls(graph), version_(version) {}

  ScriptCalls calls;
  Refusals refusals;
  int branches = 0;                         // that are open: what is raised in one is raised only where it is taken
  std::map<const Tensor*, Value*> weights;  // of the archive: they keep their names
  const std::string* file = nullptr;        // of the call that is evaluated
  uint32_t line = 0;
  size_t nested = 0;  // lists that were put into lists

  /// An operator of a library. Throws Unsupported where nothing takes such arguments.
  Item operate(std::string_view library, std::string_view op, const Arguments& arguments);

  /// Whether the item, or one in it, is what was refused. What nobody has said yet is noted.
  bool is_refused(const Item& item);
  bool is_refused(const Arguments& arguments);

  Item arithmetic(std::string_view op, const Item& a, const Item& b);
  Item compare(std::string_view op, const Item& a, const Item& b);
  Item negated(const Item& flag);
  Item both(const Item& a, const Item& b, bool is_or);
  Item converted(const Item& number, Item::Kind kind);

 private:
  std::optional<Item> of_prim(std::string_view op, const Arguments& arguments);
  std::optional<Item> of_aten(std::string_view op, const Arguments& arguments);

  int64_t version_;
};

/// The call of an operator.
struct OpCall {
  std::string_view op;
  const Arguments& arguments;
  int64_t version = 0;  // of the archive
  const Item::Items& args = arguments.positional;
};

/// One of the functions of a table, by its name.
template <class Function>
struct Named {
  std::string_view op;
  Function compute;
};
/// Null for a name that is not there.
template <class Function>
Function find_named(std::span<const Named<Function>> rows, std::string_view op) {
  for (const Named<Function>& row : rows) {
    if (row.op == op) return row.compute;
  }
  return nullptr;
}

template <class Function, size_t N>
Function find_named(const Named<Function> (&rows)[N], std::string_view op) {
  return find_named(std::span<const Named<Function>>(rows), op);
}

/// What an operator gives; nothing where it does not take such arguments, and others may.
using Compute = std::optional<Item> (*)(Operators& ops, const OpCall& call);
using OpRow = Named<Compute>;
using OpTable = std::span<const OpRow>;
/// What the row of the operator gives; nothing where there is none.
std::optional<Item> from_table(OpTable table, Operators& ops, const OpCall& call);

// The tables of aten, in the order in which they are asked
extern const OpTable kOlderForms;  // older.cpp: what operators of older files meant
extern const OpTable kOfAnything;  // general.cpp
extern const OpTable kOfTensors;   // tensors.cpp: the first argument is a tensor
/// literals.cpp: small tensors that the code itself makes.
std::optional<Item> of_literals(Operators& ops, const OpCall& call);
/// numbers.cpp: all arguments are numbers.
std::optional<Item> of_numbers(Operators& ops, const OpCall& call);
/// containers.cpp: the first argument is a list, a tuple, a dict or a text.
std::optional<Item> of_containers(Operators& ops, const OpCall& call);
/// Whether one of these has the operator.
bool is_of_numbers(std::string_view op);
bool is_of_containers(std::string_view op);

/// A tensor whose elements are known: nothing writes to it, itself or through a view.
bool is_known_tensor(const Item& item);

// fused.cpp: fused operators that traces have
std::optional<Item> attention(Operators& ops, const OpCall& call);
std::optional<Item> encoder_layer(Operators& ops, const OpCall& call);
std::optional<Item> normalised_weight(Operators& ops, const OpCall& call);

/// The argument itself, or nothing at all.
std::optional<Item> itself(Operators& ops, const OpCall& call);
std::optional<Item> nothing(Operators& ops, const OpCall& call);
Item cpu();

}  // namespace tonnx::torchscript
