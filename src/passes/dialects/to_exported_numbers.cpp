// to_exported_numbers.cpp - aten: lists of integers that are read from tensors, tensors that are made of sizes, and
// operators that PyTorch has as functions only.
#include <map>

#include "base/checked_int.h"
#include "base/error.h"
#include "ops/frame/op_def.h"
#include "passes/dialects/to_exported.h"
#include "passes/frame/aten_match.h"
#include "passes/frame/aten_writer.h"

namespace tonnx {
namespace {

constexpr int64_t kMaxItems = 1024;

Type int_type() { return Type::number(Type::Kind::Int); }

class Rewriting {
 public:
  explicit Rewriting(Graph& graph) : graph_(graph), writer_(graph) {}

  void run() {
    visit([&](Node& node) {
      expand_lists(node);
      if (node.domain == "tonnx") {
        rewrite_own(node);
      } else if (is_aten(node, "dim")) {
        rewrite_rank(node);
      } else {
        rewrite_function(node);
      }
      for (const GraphPtr& inner : subgraphs_of(node)) Rewriting(*inner).run();
    });
  }

  void run_functions() {
    visit([&](Node& node) {
      for (const GraphPtr& inner : subgraphs_of(node)) Rewriting(*inner).run_functions();
      rewrite_function(node);
    });
  }

 private:
  template <class Rewrite>
  void visit(Rewrite&& rewrite) {
    for (Node* node = graph_.first(); node != nullptr;) {
      Node* next = node->next;
      writer_.write_before(node);
      rewrite(*node);
      node = next;
    }
  }

  void rewrite_function(Node& node) {
    if (node.domain == "torch" && node.op == "local_response_norm") {
      rewrite_response_norm(node);
    } else if (node.overload == "generator") {
      drop_generator(node);
    } else if (is_recurrent(node)) {
      give_state(node);
    }
  }

  void replace(Node& node, Value* by) {
    if (by->type.is_tensor() && by->type.dtype == DType::Undefined) by->type = node.output(0)->type;
    graph_.replace_uses(node.output(0), by);
    graph_.erase(&node);
  }

  /// The integers of a list that a node gives, as far as their number is known.
  const IntArgs& items_of(Value* list) {
    const auto [at, fresh] = items_.try_emplace(list);
    if (!fresh) return at->second;
    const Node* node = list->producer;
    require(node != nullptr, "a list of integers comes from nowhere");
    IntArgs result;
    if (node->op == "tolist") {
      result = items_of_tensor(operand(*node, "self"), node);
    } else if (node->op == "copied_zeros") {
      result = with_sizes(items_of_argument(*node, "list"), operand(*node, "self"), 0, 0, node);
    } else if (node->op == "broadcast_shapes") {
      result = broadcast_items(items_of_argument(*node, "shape"), operand(*node, "self"), node);
    } else {
      fail_unsupported("the list of integers that {} gives has no place in a .pt2 file", node->op.view());
    }
    return items_[list] = std::move(result);
  }

  IntArgs items_of_argument(const Node& node, std::string_view argument) {
    if (Value* list = operand(node, argument)) return items_of(list);
    return ints_of_list(node, node.find_attribute(argument)->value);
  }

  IntArgs items_of_tensor(Value* tensor, const Node* like) {
    const auto& shape = tensor->type.shape;
    const auto count = shape && shape->size() == 1 ? (*shape)[0].constant() : std::nullopt;
    if (!count) fail_unsupported("how many integers '{}' holds is not known", tensor->name);
    require(*count <= kMaxItems, "'{}' is to be a list of sizes, and has {} elements", tensor->name, *count);
    IntArgs result;
    for (int64_t i = 0; i < *count; ++i) {
      AtenCall select("select", "int", like);
      select.with("self", tensor).with("dim", IntArg(0)).with("index", IntArg(i));
      result.emplace_back(item_of(writer_.add(select, Type::tensor(tensor->type.dtype, Shape()), "element"), like));
    }
    return result;
  }

  Value* item_of(Value* tensor, const Node* like) {
    AtenCall item("item", "", like);
    item.with("self", tensor);
    return writer_.add(item, int_type(), "n");
  }

  /// `size` where `n` is `marker`, else `n`.
  IntArg size_if(const IntArg& n, int64_t marker, const IntArg& size, const Node* like) {
    if (n.value == nullptr) return n.number == marker ? size : n;
    AtenCall equal("eq", "", like);
    equal.with("a", n).with("b", IntArg(marker));
    Value* is_marker = writer_.add(equal, Type::number(Type::Kind::Bool), "is_given", "_operator");
    AtenCall choice("sym_ite", "", like);
    choice.with("b", is_marker).with("t", size).with("f", n);
    return writer_.add(choice, int_type(), "n", "torch");
  }

  IntArgs with_sizes(IntArgs items, Value* tensor, size_t offset, int64_t marker, const Node* like) {
    const auto rank = tensor->type.rank();
    if (!rank) fail_unsupported("the rank of '{}' is not known", tensor->name);
    for (size_t i = 0; i < static_cast<size_t>(*rank) && offset + i < items.size(); ++i) {
      if (items[offset + i].value == nullptr && items[offset + i].number != marker) continue;
      items[offset + i] = size_if(items[offset + i], marker, writer_.size(tensor, tensor->type, i, like), like);
    }
    return items;
  }

  IntArgs broadcast_items(IntArgs items, Value* tensor, const Node* like) {
    const auto rank = tensor->type.rank();
    if (!rank) fail_unsupported("the rank of '{}' is not known", tensor->name);
    while (items.size() < static_cast<size_t>(*rank)) items.insert(items.begin(), IntArg(1));
    return with_sizes(items, tensor, items.size() - static_cast<size_t>(*rank), 1, like);
  }

  /// Lists of integers among the arguments of a node, written out.
  void expand_lists(Node& node) {
    if (node.domain == "tonnx") return;
    for (Attribute& attribute : node.attributes) {
      const auto* at = attribute.value.get<Operand>();
      Value* list = at ? node.input(at->index) : nullptr;
      if (list == nullptr || list->type.kind != Type::Kind::IntList) continue;
      const IntArgs items = items_of(list);
      node.set_input(at->index, nullptr);
      AttrList written;
      for (const IntArg& item : items) {
        if (item.value == nullptr) {
          written.emplace_back(item.number);
          continue;
        }
        written.emplace_back(Operand{static_cast<uint32_t>(node.inputs().size())});
        node.add_input(item.value);
      }
      attribute.value = std::move(written);
    }
  }

  DType dtype_of(const Node& node) {
    const Attribute* given = node.find_attribute("dtype");
    const auto* dtype = given ? given->value.get<DType>() : nullptr;
    return dtype ? *dtype : DType::Int64;
  }

  Value* scalar(const IntArg& number, DType dtype, const Node* like) {
    AtenCall call("scalar_tensor", "", like);
    call.with("s", number).with("dtype", AttrValue(dtype));
    return writer_.add(call, Type::tensor(dtype, Shape()), "number");
  }

  Value* stacked(const IntArgs& numbers, DType dtype, const Node* like) {
    const Type type = Type::tensor(dtype, Shape{Dim(static_cast<int64_t>(numbers.size()))});
    if (numbers.empty()) {
      AtenCall zeros("zeros", "", like);
      zeros.with("size", AttrValue(std::vector<int64_t>{0})).with("dtype", AttrValue(dtype));
      return writer_.add(zeros, type, "numbers");
    }
    AtenCall call("stack", "", like);
    AttrList items;
    for (const IntArg& number : numbers) {
      items.emplace_back(Operand{static_cast<uint32_t>(call.inputs.size())});
      call.inputs.push_back(scalar(number, dtype, like));
    }
    call.with("tensors", AttrValue(std::move(items)));
    return writer_.add(call, type, "numbers");
  }

  IntArgs ints_of_list(const Node& node, const AttrValue& value) {
    IntArgs result;
    if (const auto* numbers = value.get<std::vector<int64_t>>()) result.assign(numbers->begin(), numbers->end());
    if (const auto* list = value.get<AttrList>()) {
      for (const AttrValue& item : *list) result.push_back(size_argument(node, item));
    }
    return result;
  }

  void rewrite_own(Node& node) {
    const std::string_view op = node.op.view();
    if (op == "item") {
      node.domain = "aten";
    } else if (op == "list_item") {
      const auto index = static_cast<size_t>(*node.find_attribute("index")->value.get<int64_t>());
      const IntArgs items = items_of_argument(node, "list");
      require(index < items.size(), "a list of {} integers has none of number {}", items.size(), index);
      if (items[index].value != nullptr) {
        replace(node, items[index].value);
      } else {
        node.output(0)->known_ints = {Dim(items[index].number)};
        fold_into(node);
      }
    } else if (op == "int_scalar") {
      replace(node, scalar(size_argument(node, node.find_attribute("value")->value), dtype_of(node), &node));
    } else if (op == "int_tensor") {
      replace(node, stacked(ints_of_list(node, node.find_attribute("values")->value), dtype_of(node), &node));
    } else if (op == "shape") {
      rewrite_shape(node);
    } else if (op == "both" || op == "either") {
      node.domain = "_operator";
      node.op = op == "both" ? "and_" : "or_";
    } else if (op == "count_if") {
      rewrite_count_if(node);
    }
  }

  /// A node whose result is a known number: the sum of it and zero.
  void fold_into(Node& node) {
    node.domain = "_operator";
    node.op = "add";
    node.resize_inputs(0);
    node.attributes.clear();
    node.set_attribute("a", *node.output(0)->known_ints->at(0).constant());
    node.set_attribute("b", int64_t{0});
  }

  void rewrite_shape(Node& node) {
    Value* self = operand(node, "self");
    if (!self->type.shape) fail_unsupported("the rank of '{}' is not known", self->name);
    const auto rank = *self->type.rank();
    const auto bound = [&](const char* name, int64_t otherwise) {
      const Attribute* given = node.find_attribute(name);
      const auto* number = given ? given->value.get<int64_t>() : nullptr;
      const int64_t at = number ? *number : otherwise;
      return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    IntArgs sizes;
    for (int64_t i = bound("start", 0); i < bound("end", rank); ++i)
      sizes.push_back(writer_.size(self, self->type, static_cast<size_t>(i), &node));
    replace(node, stacked(sizes, DType::Int64, &node));
  }

  void rewrite_count_if(Node& node) {
    Value* condition = operand(node, "condition");
    const IntArg count = size_argument(node, node.find_attribute("count")->value);
    if (condition->type.is_tensor()) {
      AtenCall cast("to", "dtype", &node);
      cast.with("self", condition).with("dtype", AttrValue(DType::Int64));
      Value* flag = item_of(writer_.add(cast, Type::tensor(DType::Int64, condition->type.shape), "flag"), &node);
      AtenCall product("mul", "", &node);
      product.with("a", IntArg(flag)).with("b", count);
      return replace(node, writer_.add(product, int_type(), "n", "_operator"));
    }
    AtenCall choice("sym_ite", "", &node);
    choice.with("b", condition).with("t", count).with("f", IntArg(0));
    replace(node, writer_.add(choice, int_type(), "n", "torch"));
  }

  /// x / (k + alpha * mean of x^2 over the channels around)^beta
  void rewrite_response_norm(Node& node) {
    Value* x = operand(node, "input");
    require(x != nullptr, "argument 'input' is not a tensor");
    const Type type = x->type;
    if (!type.shape || type.shape->size() < 3) fail_unsupported("the rank of '{}' is not known", x->name);
    const ParsedSignature& signature = get_aten_op(node).signature;
    const auto number = [&](const char* name) {
      const Attribute* given = node.find_attribute(name);
      const AttrValue& value =
          given ? given->value : signature.inputs[static_cast<size_t>(signature.find_input(name))].default_value;
      const auto* f = value.get<double>();
      const auto* i = value.get<int64_t>();
      require(f != nullptr || i != nullptr, "argument '{}' is not a fixed number", name);
      return f ? *f : static_cast<double>(*i);
    };
    const auto size = static_cast<int64_t>(number("size"));
    const auto call = [&](const char* op, const char* overload, Value* self) {
      AtenCall made(op, overload, &node);
      made.with("self", self);
      return made;
    };
    const auto add = [&](const AtenCall& made) { return writer_.add(made, Type::tensor(type.dtype), x->name); };
    Value* y = add(call("mul", "Tensor", x).with("other", x));
    y = add(call("flatten", "using_ints", y).with("start_dim", IntArg(2)));
    y = add(call("unsqueeze", "", y).with("dim", IntArg(1)));
    y = add(
        call("constant_pad_nd", "", y).with("pad", AttrValue(std::vector<int64_t>{0, 0, size / 2, (size - 1) / 2})));
    y = add(call("avg_pool2d", "", y)
                .with("kernel_size", AttrValue(std::vector<int64_t>{size, 1}))
                .with("stride", AttrValue(std::vector<int64_t>{1, 1})));
    y = add(call("squeeze", "dim", y).with("dim", IntArg(1)));
    y = add(call("reshape", "", y).with("shape", writer_.sizes(x, type, &node)));
    y = add(call("mul", "Scalar", y).with("other", AttrValue(number("alpha"))));
    y = add(call("add", "Scalar", y).with("other", AttrValue(number("k"))));
    y = add(call("pow", "Tensor_Scalar", y).with("exponent", AttrValue(number("beta"))));
    replace(node, add(call("div", "Tensor", x).with("other", y)));
  }

  /// A rank that depends on which branch was taken is chosen by the same condition.
  void rewrite_rank(Node& node) {
    const Value* self = operand(node, "self");
    const Node* branch = self->producer;
    if (branch != nullptr && branch->domain == "tonnx" && branch->op == "cond") {
      const auto rank_in = [&](const char* name) {
        const auto& graph = **branch->find_attribute(name)->value.get<GraphPtr>();
        return graph.outputs()[self->output_index]->type.rank();
      };
      const auto yes = rank_in("then_branch"), no = rank_in("else_branch");
      if (yes && no && *yes != *no && branch->input(0)->type.kind == Type::Kind::Bool) {
        decide_by(branch->input(0), node, *yes, *no);
        if (node.output(0)->uses.empty()) {
          graph_.erase(&node);
          return;
        }
        AtenCall choice("sym_ite", "", &node);
        choice.with("b", branch->input(0)).with("t", IntArg(*yes)).with("f", IntArg(*no));
        return replace(node, writer_.add(choice, int_type(), "rank", "torch"));
      }
      if (!yes || !no || *yes != *no) return;
    }
    if (!self->type.rank()) return;
    node.output(0)->known_ints = {Dim(*self->type.rank())};
    fold_into(node);
  }

  struct Relation {
    std::string_view op, negated;
    bool (*holds)(int64_t, int64_t);
  };
  static const Relation* find_relation(const Node* node) {
    static constexpr Relation kRelations[] = {
        {"eq", "ne", [](int64_t a, int64_t b) { return a == b; }},
        {"ne", "eq", [](int64_t a, int64_t b) { return a != b; }},
        {"lt", "ge", [](int64_t a, int64_t b) { return a < b; }},
        {"ge", "lt", [](int64_t a, int64_t b) { return a >= b; }},
        {"gt", "le", [](int64_t a, int64_t b) { return a > b; }},
        {"le", "gt", [](int64_t a, int64_t b) { return a <= b; }},
    };
    if (node == nullptr || node->domain != "_operator") return nullptr;
    for (const Relation& relation : kRelations) {
      if (relation.op == node->op.view()) return &relation;
    }
    return nullptr;
  }

  /// What compares a number that is `yes` or `no`, by `condition`, with another number, is `condition` or its opposite.
  void decide_by(Value* condition, const Node& number, int64_t yes, int64_t no) {
    const std::vector<Use> uses = number.output(0)->uses;
    const Node* test = condition->producer;
    const Relation* tested = find_relation(test);
    for (const Use& use : uses) {
      const Relation* relation = find_relation(use.user);
      const Attribute* other = relation && use.user->graph == &graph_ ? use.user->find_attribute("b") : nullptr;
      const auto* limit = other ? other->value.get<int64_t>() : nullptr;
      if (limit == nullptr || tested == nullptr) continue;
      const bool if_yes = relation->holds(yes, *limit), if_no = relation->holds(no, *limit);
      if (if_yes == if_no) continue;
      Value* result = condition;
      if (if_no) {
        AtenCall opposite(tested->negated, "", test);
        opposite.attributes = test->attributes;
        opposite.inputs = test->inputs();
        result = writer_.add(opposite, condition->type, "is_other", "_operator");
      }
      graph_.replace_uses(use.user->output(0), result);
      Node* user = use.user;
      user->set_input(use.index, nullptr);
    }
  }

  static bool is_recurrent(const Node& node) {
    return node.overload == "input" && (is_aten(node, "lstm", "input") || is_aten(node, "gru", "input") ||
                                        is_aten(node, "rnn_tanh", "input") || is_aten(node, "rnn_relu", "input"));
  }

  /// The modules begin with zeros where they are given no state; the operators want them.
  void give_state(Node& node) {
    Attribute* given = nullptr;
    const AttrList* params = nullptr;
    int64_t layers = 1, directions = 1, batch_dim = 1;
    for (Attribute& attribute : node.attributes) {
      if (attribute.name == "hx") given = &attribute;
      if (attribute.name == "params") params = attribute.value.get<AttrList>();
      if (const auto* count = attribute.value.get<int64_t>(); count && attribute.name == "num_layers") layers = *count;
      if (attribute.name == "bidirectional" && is_true(attribute.value)) directions = 2;
      if (attribute.name == "batch_first" && is_true(attribute.value)) batch_dim = 0;
    }
    const bool is_lstm = node.op == "lstm";
    if (given != nullptr) {
      const auto* list = given->value.get<AttrList>();
      const auto* none = given->value.get<std::vector<int64_t>>();
      if (!given->value.is_none() && !(list && list->empty()) && !(none && none->empty())) return;
    }
    const auto* second = params && params->size() > 1 ? (*params)[1].get<Operand>() : nullptr;
    const Value* weight = second ? node.input(second->index) : nullptr;
    if (weight == nullptr || !weight->type.shape || weight->type.shape->size() != 2)
      fail_unsupported("how many hidden states there are is not known");
    Value* input = operand(node, "input");
    require(input != nullptr, "argument 'input' is not a tensor");
    AtenCall zeros("zeros", "", &node);
    const auto hidden = (*weight->type.shape)[1].constant();
    if (!hidden) fail_unsupported("how many hidden states there are is not known");
    const IntArg batch = writer_.size(input, input->type, static_cast<size_t>(batch_dim), &node);
    zeros.with("size", IntArgs{checked_mul(layers, directions), batch, *hidden})
        .with("dtype", AttrValue(weight->type.dtype));
    AttrValue state;
    const auto add_zeros = [&] {
      const auto index = static_cast<uint32_t>(node.inputs().size());
      node.add_input(writer_.add(zeros, Type::tensor(weight->type.dtype), "state"));
      return Operand{index};
    };
    if (is_lstm) {
      AttrList both;
      both.emplace_back(add_zeros());
      both.emplace_back(add_zeros());
      state = std::move(both);
    } else {
      state = add_zeros();
    }
    node.set_attribute("hx", std::move(state));
  }

  static bool is_true(const AttrValue& value) {
    const auto* flag = value.get<bool>();
    const auto* number = value.get<int64_t>();
    return (flag && *flag) || (number && *number != 0);
  }

  /// A seed has no place in a program: its numbers are drawn as all others are.
  static void drop_generator(Node& node) {
    const Attribute* given = node.find_attribute("generator");
    if (given == nullptr) return;
    if (const auto* at = given->value.get<Operand>()) node.set_input(at->index, nullptr);
    node.take_attribute("generator");
    node.overload = "";
  }

  Graph& graph_;
  AtenWriter writer_;
  std::map<const Value*, IntArgs> items_;
};

}  // namespace

void rewrite_numbers(Graph& graph) { Rewriting(graph).run(); }
void rewrite_functions(Graph& graph) { Rewriting(graph).run_functions(); }

}  // namespace tonnx
