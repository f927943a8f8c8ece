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

#include "formats/torchscript/item.h"
#include "formats/torchscript/script_archive.h"
#include "formats/torchscript/script_calls.h"
#include "formats/torchscript/script_refusals.h"

namespace tonnx::torchscript {

/// Variables of a function that runs.
using Variables = std::map<std::string, Item, std::less<>>;

class Interpreter {
 public:
  Interpreter(ScriptArchive& archive, Graph& graph) : archive_(archive), graph_(graph), calls_(graph) {}

  /// The object that the archive holds.
  Item root();
  /// Calls a method; `arguments` are those behind `self`.
  Item call_method(const Item& object, std::string_view name, Arguments arguments);
  ScriptCalls& calls() { return calls_; }
  /// What was refused on the way: the graph is of no use where it is not empty.
  const Refusals& refusals() const { return refusals_; }

 private:
  enum class Flow : uint8_t { Next, Return, Raise };
  struct Frame {
    const Function* function = nullptr;
    Variables variables;
    std::map<std::string, std::shared_ptr<Function>, std::less<>> locals;  // functions
    Item result;
  };

  void note_class(const Object& module);

  // statements
  Item call_function(const Function& function, Arguments arguments, std::optional<Item> self);
  Flow run(const Block& block, Frame& frame);
  Flow run(const Stmt& stmt, Frame& frame);
  void assign(const Expr& target, Item value, Frame& frame);
  void assign(const Stmt& stmt, Frame& frame);

  // what cannot be read (script_refused.cpp): it is noted, and the code behind it is read on for what else there is
  /// Whether the item, or one in it, is what was refused. What nobody has said yet is noted.
  bool is_refused(const Item& item);
  bool is_refused(const Arguments& arguments);
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
  Item eval_call(const Expr& expr, Frame& frame);
  Item called(const Expr& expr, Frame& frame);
  Item eval_attribute(const Item& of, std::string_view name);
  Item eval_subscript(const Item& of, const Item& index);
  std::optional<Item> enum_member(const std::string& name);
  Item eval_binary(const Expr& expr, Frame& frame);
  Arguments eval_arguments(const Expr& call, Frame& frame);
  std::optional<std::string> dotted_name(const Expr& expr, const Frame& frame) const;
  Item call_name(std::string_view name, Arguments arguments);
  bool is_instance(const Item& item, const Expr& type);

  // objects (script_objects.cpp)
  Item item_of(const PickleValue& value, const std::string& path, bool is_constant);
  Item object_of(const PickleValue& value, const std::string& path);
  Item tensor_of(const PickleValue& value, const std::string& path, bool is_constant, bool is_parameter);
  Item constant(size_t index);

  // operators (script_operators.cpp, script_numbers.cpp, script_containers.cpp)
  Item operate(std::string_view library, std::string_view op, const Arguments& arguments);
  std::optional<Item> of_older(std::string_view op, const Arguments& arguments);
  std::optional<Item> of_tensor(std::string_view op, const Arguments& arguments);
  std::optional<Item> of_prim(std::string_view op, const Arguments& arguments);
  std::optional<Item> of_container(std::string_view op, const Arguments& arguments);
  std::optional<Item> of_list(std::string_view op, const Item::Items& args);
  Item chunk_from_back(const Item& first, int64_t place);
  std::optional<Item> of_dict(std::string_view op, const Item::Items& args);
  void put_inside(const Item::Items& items, const Item::Items& more);
  std::optional<Item> of_numbers(std::string_view op, const Arguments& arguments);
  std::optional<Item> of_literals(std::string_view op, const Arguments& arguments);  // script_literals.cpp
  bool is_literal(const Item& item) const;
  /// A tensor whose elements are known: nothing writes to it, itself or through a view.
  bool is_known_tensor(const Item& item) const;
  Item arithmetic(std::string_view op, const Item& a, const Item& b);
  Item compare(std::string_view op, const Item& a, const Item& b);
  Item negated(const Item& flag);
  Item both(const Item& a, const Item& b, bool is_or);
  Item convolution(const Arguments& arguments);
  Item convolution_mode(const Arguments& arguments);
  Item attention(const Arguments& arguments);  // this and the next two: script_fused.cpp
  Item encoder_layer(const Arguments& arguments);
  Item normalised_weight(const Arguments& arguments);
  Item make_tensor(const Arguments& arguments);
  Item converted(const Item& number, Item::Kind kind);

  // branches and loops (script_control.cpp, script_loops.cpp)
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
    explicit Around(Interpreter& in) : in_(in), graph_(in.calls_.place.graph), branches_(in.branches_) {}
    ~Around() {
      in_.calls_.place.graph = graph_;
      in_.branches_ = branches_;
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
  ScriptCalls calls_;
  std::map<const PickleValue*, Item> objects_;
  std::vector<const Frame*> frames_;  // of the functions that run
  std::map<std::pair<const Graph*, const Value*>, Value*> versions_;
  std::map<const Tensor*, Value*> weights_;
  std::map<size_t, Item> constants_;
  std::set<std::string> noted_;  // paths of modules whose classes are noted
  int depth_ = 0;
  size_t nested_ = 0;  // lists that were put into lists
  int branches_ = 0;   // that are open: what is raised in one is raised only where it is taken
  bool is_located_ = false;
  Refusals refusals_;
  const std::string* file_ = nullptr;  // of the call that is evaluated
  uint32_t line_ = 0;
  std::vector<GraphPtr> left_;  // bodies of loops that were given up: their values may still be named
};

}  // namespace tonnx::torchscript
