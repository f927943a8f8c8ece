// to_exported_lists.cpp - aten: sequences whose elements are known while converting become these elements.
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "passes/dialects/to_exported.h"
#include "passes/frame/aten_match.h"
#include "passes/frame/aten_writer.h"

namespace tonnx {
namespace {

constexpr int64_t kMaxElements = 4096;

class Lists {
 public:
  explicit Lists(Graph& graph) : graph_(graph) {}

  void run() {
    for (Node* node = graph_.first(); node != nullptr;) {
      Node* next = node->next;
      if (node->domain == "tonnx") {
        visit(*node);
      } else {
        spread(*node);
      }
      node = next;
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      Value* output = graph_.outputs()[i];
      const Elements* all = find(output);
      if (all == nullptr || (output->producer->domain == "tonnx" && output->producer->op == "list")) continue;
      AtenCall list("list", "", output->producer);
      AttrList items;
      for (Value* element : *all) {
        items.emplace_back(Operand{static_cast<uint32_t>(list.inputs.size())});
        list.inputs.push_back(element);
      }
      list.with("items", AttrValue(std::move(items)));
      graph_.set_output(i, AtenWriter(graph_).add(list, output->type, output->name, "tonnx"));
    }
  }

 private:
  using Elements = std::vector<Value*>;

  const Elements* find(const Value* list) const {
    const auto at = elements_.find(list);
    return at == elements_.end() ? nullptr : &at->second;
  }

  static std::optional<int64_t> number(const Node& node, std::string_view argument) {
    const Attribute* given = node.find_attribute(argument);
    if (given == nullptr) return std::nullopt;
    if (const auto* plain = given->value.get<int64_t>()) return *plain;
    const Value* value = operand(node, argument);
    return value && value->known_ints ? value->known_ints->at(0).constant() : std::nullopt;
  }

  /// A place among that many elements; nothing where it is not known. `extra`: the end is a place too.
  static std::optional<size_t> place(const Node& node, size_t count, size_t extra) {
    const auto given = number(node, "index");
    if (!given) return std::nullopt;
    const int64_t at = *given < 0 ? *given + static_cast<int64_t>(count) : *given;
    require(at >= 0 && at < static_cast<int64_t>(count + extra), "a sequence of {} has no place {}", count, *given);
    return static_cast<size_t>(at);
  }

  void visit(Node& node) {
    const std::string_view op = node.op.view();
    if (op == "list") {
      Elements all;
      if (const auto* items = node.find_attribute("items")->value.get<AttrList>()) {
        for (const AttrValue& item : *items) all.push_back(node.input(item.get<Operand>()->index));
      }
      elements_[node.output(0)] = std::move(all);
    } else if (op == "split_list" || op == "unbind_list") {
      split(node);
    }
    const Elements* self = op.starts_with("list_") ? find(operand(node, "self")) : nullptr;
    if (self == nullptr) return;
    if (op == "list_insert" || op == "list_erase") {
      Elements all = *self;
      const bool inserts = op == "list_insert";
      const bool is_given = node.find_attribute("index") && !node.find_attribute("index")->value.is_none();
      const auto at = is_given ? place(node, all.size(), inserts ? 1 : 0)
                               : std::optional(inserts || all.empty() ? all.size() : all.size() - 1);
      if (!at) return;
      const auto where = all.begin() + static_cast<std::ptrdiff_t>(*at);
      if (inserts) {
        all.insert(where, operand(node, "value"));
      } else {
        require(where != all.end(), "an empty sequence has nothing to be taken out");
        all.erase(where);
      }
      elements_[node.output(0)] = std::move(all);
    } else if (op == "list_length") {
      node.output(0)->known_ints = {Dim(static_cast<int64_t>(self->size()))};
      node.domain = "_operator";
      node.op = "add";
      node.resize_inputs(0);
      node.attributes.clear();
      node.set_attribute("a", static_cast<int64_t>(self->size()));
      node.set_attribute("b", int64_t{0});
    } else if (op == "list_at") {
      const auto at = place(node, self->size(), 0);
      if (!at) return;
      graph_.replace_uses(node.output(0), (*self)[*at]);
      graph_.erase(&node);
    }
  }

  /// The pieces of a tensor as outputs of one node.
  void split(Node& node) {
    Value* self = operand(node, "self");
    const bool unbinds = node.op == "unbind_list";
    const Attribute* given_dim = node.find_attribute("dim");
    const int64_t dim = given_dim ? *given_dim->value.get<int64_t>() : 0;
    const auto& shape = self->type.shape;
    if (!shape) return;
    const auto rank = static_cast<int64_t>(shape->size());
    const int64_t axis = dim < 0 ? dim + rank : dim;
    if (axis < 0 || axis >= rank) return;
    const auto whole = (*shape)[static_cast<size_t>(axis)].constant();
    AtenCall call(unbinds ? "unbind" : "split_with_sizes", unbinds ? "int" : "", &node);
    call.with("self", self);
    int64_t count = whole.value_or(-1);
    if (!unbinds) {
      const AttrValue& sizes = node.find_attribute("sizes")->value;
      if (const auto* each = sizes.get<int64_t>()) {
        if (!whole || *each <= 0) return;
        std::vector<int64_t> all;
        for (int64_t left = *whole; left > 0; left -= *each) all.push_back(std::min(left, *each));
        count = static_cast<int64_t>(all.size());
        call.with("split_sizes", AttrValue(std::move(all)));
      } else if (const auto* numbers = sizes.get<std::vector<int64_t>>()) {
        count = static_cast<int64_t>(numbers->size());
        call.with("split_sizes", AttrValue(*numbers));
      } else {
        return;
      }
    }
    if (count <= 0 || count > kMaxElements) return;
    call.with("dim", IntArg(dim));
    AtenWriter writer(graph_);
    writer.write_before(&node);
    Elements all{writer.add(call, Type::tensor(self->type.dtype), "piece")};
    for (int64_t i = 1; i < count; ++i)
      all.push_back(
          graph_.add_output_to(all[0]->producer, graph_.unique_name("piece"), Type::tensor(self->type.dtype)));
    elements_[node.output(0)] = std::move(all);
  }

  /// Writes the elements of sequences that a node takes as a list of tensors.
  void spread(Node& node) {
    for (Attribute& attribute : node.attributes) {
      const auto* at = attribute.value.get<Operand>();
      const Elements* all = at ? find(node.input(at->index)) : nullptr;
      if (all == nullptr) continue;
      AttrList list;
      const uint32_t old = at->index;
      for (Value* element : *all) {
        list.emplace_back(Operand{static_cast<uint32_t>(node.inputs().size())});
        node.add_input(element);
      }
      node.set_input(old, nullptr);
      attribute.value = std::move(list);
    }
  }

  Graph& graph_;
  std::unordered_map<const Value*, Elements> elements_;
};

}  // namespace

void resolve_lists(Graph& graph) { Lists(graph).run(); }

}  // namespace tonnx
