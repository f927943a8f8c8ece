// interpreter.h - runs the code of an archive on values of a graph: what is known is computed, the rest becomes nodes.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/torchscript/operators/operators.h"
#include "formats/torchscript/run/item.h"
#include "formats/torchscript/source/archive.h"

namespace tonnx::torchscript {

/// Variables of a function that runs.
using Variables = std::map<std::string, Item, std::less<>>;

class Interpreter {
 public:
  Interpreter(ScriptArchive& archive, Graph& graph)
      : archive_(archive), graph_(graph), ops_(graph, archive.version()) {}

  /// The object that the archive holds.
  Item root();
  /// Calls a method; `arguments` are those behind `self`.
  Item call_method(const Item& object, std::string_view name, Arguments arguments);
  ScriptCalls& calls() { return ops_.calls; }
  /// What was refused on the way: the graph is of no use where it is not empty.
  const Refusals& refusals() const { return ops_.refusals; }

 private:
  enum class Flow : uint8_t { Next, Return, Raise };
  struct Frame {
    const Function* function = nullptr;
    Variables variables;
    std::map<std::string, std::shared_ptr<Function>, std::less<>> locals;  // functions
    Item result;
  };

  // statements
  Flow run(const Block& block, Frame& frame);
  Flow run(const Stmt& stmt, Frame& frame);
  void assign(const Expr& target, Item value, Frame& frame);
  void assign(const Stmt& stmt, Frame& frame);

  // what cannot be read (refused.cpp): it is noted, and the code behind it is read on for what else there is
  bool mentions_refused(const Expr& expr, const Frame& frame);
  bool mentions_refused(const Block& block, const Frame& frame);
  /// Notes an error, unless it follows from others. Throws it where nobody may go on behind it.
  void refuse(const Error& error, const Frame& frame, uint32_t line, bool follows);
  Flow refuse(const Error& error, const Stmt& stmt, Frame& frame, size_t mark);
  /// Runs both ways of a branch, or a loop once, where only what was refused knows.
  Flow run_refused(const Stmt& stmt, Frame& frame);
  void forget_assigned(const Stmt& stmt, Frame& frame);

  // expressions
  Item eval(const Expr& expr, Frame& frame);
  Item eval_name(const Expr& expr, Frame& frame);
  Item eval_slice(const Expr& expr, Frame& frame);
  Item eval_choice(const Expr& expr, Frame& frame);
  Item eval_attribute(const Item& of, std::string_view name);
  Item eval_subscript(const Item& of, const Item& index);
  std::optional<Item> enum_member(const std::string& name);
  Item eval_binary(const Expr& expr, Frame& frame);
  std::optional<std::string> dotted_name(const Expr& expr, const Frame& frame) const;

  // calls (callees.cpp)
  void note_class(const Object& module);
  Item call_function(const Function& function, Arguments arguments, std::optional<Item> self);
  Item eval_call(const Expr& expr, Frame& frame);
  Item called(const Expr& expr, Frame& frame);
  Arguments eval_arguments(const Expr& call, Frame& frame);
  Item call_name(std::string_view name, Arguments arguments);
  Item call_builtin(const Expr& expr, Frame& frame);
  bool is_instance(const Item& item, const Expr& type);
  // functions of Python's own
  Item forked(const Expr& expr, Frame& frame);
  Item cast(const Expr& expr, Frame& frame);
  Item uninitialized(const Expr& expr, Frame& frame);
  Item asked_instance(const Expr& expr, Frame& frame);
  Item attribute(const Expr& expr, Frame& frame);
  Item printed(const Expr& expr, Frame& frame);
  Item has_attribute(const Expr& expr, Frame& frame);
  template <Item::Kind Kind>
  Item number_of(const Expr& expr, Frame& frame);

  // objects (objects.cpp)
  Item item_of(const PickleValue& value, const std::string& path, bool is_constant);
  Item object_of(const PickleValue& value, const std::string& path);
  Item tensor_of(const PickleValue& value, const std::string& path, bool is_constant, bool is_parameter);
  Item constant(size_t index);

  // branches and loops (control.cpp, loops.cpp)
  class LoopTrace;
  Flow run_if(const Stmt& stmt, Frame& frame);
  /// Throws where a branch or a loop writes to a weight, or to a tensor that a caller of the function has.
  void check_written(const std::set<Value*>& written) const;
  /// What was last written to a tensor by branches and loops in that graph; the tensor itself where none did.
  Value* latest(const Graph& graph, Value* root) const;
  /// A number for all that lists and dicts of objects hold: a branch or a loop may not change them.
  size_t state_of_objects() const;
  void require_same_objects(size_t before) const;
  using Way = std::function<Flow(Frame&)>;
  /// Where the code that runs stands in: the same again, however the block ends.
  class Around {
   public:
    explicit Around(Interpreter& in) : in_(in), graph_(in.ops_.calls.place.graph), branches_(in.ops_.branches) {}
    ~Around() {
      in_.ops_.calls.place.graph = graph_;
      in_.ops_.branches = branches_;
    }
    Around(const Around&) = delete;
    Around& operator=(const Around&) = delete;

   private:
    Interpreter& in_;
    Graph* graph_;
    int branches_;
  };
  Flow run_branch(const Item& condition, const Way& yes, const Way& no, Frame& frame);
  Flow run_for(const Stmt& stmt, Frame& frame);
  Flow run_while(const Stmt& stmt, Frame& frame);
  void run_loop(const Stmt& stmt, const std::optional<Item>& count, std::optional<Item> goes_on, Frame& frame);

  ScriptArchive& archive_;
  Graph& graph_;
  Operators ops_;
  std::map<const PickleValue*, Item> objects_;
  std::vector<const Frame*> frames_;  // of the functions that run
  std::map<std::pair<const Graph*, const Value*>, Value*> versions_;
  std::map<size_t, Item> constants_;
  std::set<std::string> noted_;  // paths of modules whose classes are noted
  int depth_ = 0;
  bool is_located_ = false;
  std::vector<GraphPtr> left_;  // bodies of loops that were given up: their values may still be named
};

}  // namespace tonnx::torchscript
