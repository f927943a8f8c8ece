// rank_choice.cpp - one copy of a node for each rank that an input may have, or for each length of a list.
#include "ops/frame/rank_choice.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "ir/clone.h"
#include "ops/frame/expansion.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"

namespace tonnx {
namespace {

enum class Chosen : uint8_t { Rank, Length };

class Choice {
 public:
  Choice(OnnxEdit& edit, const NodeView& n, Chosen what, const std::vector<std::string_view>& inputs)
      : edit_(edit), node_(edit.node()), entry_(n.entry()), what_(what) {
    for (const std::string_view name : inputs) {
      const Value* value = n.value(name);
      for (size_t i = 0; value != nullptr && i < node_.inputs().size(); ++i) {
        if (node_.input(i) == value && is_open(*value) && !is_chosen(i)) places_.push_back(i);
      }
      if (places_.empty()) return;  // the first decides
    }
  }

  bool make(const std::vector<int64_t>& candidates) {
    if (places_.empty() || is_learned()) return false;
    std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(taken_), [&](int64_t k) { return takes(k); });
    if (taken_.empty()) return false;
    Value* first = node_.input(places_[0]);
    size_ = edit_.before("Size", {what_ == Chosen::Rank ? edit_.before("Shape", {first}) : first});
    return edit_.replace_with(choose(nullptr, 0));
  }

 private:
  bool is_chosen(size_t place) const { return std::find(places_.begin(), places_.end(), place) != places_.end(); }

  bool is_open(const Value& input) const {
    const Type& type = input.type;
    if (!type.is_tensor() || input.constant || type.dtype == DType::Undefined) return false;
    if (what_ == Chosen::Rank || !type.shape) return !type.shape;
    return type.shape->size() == 1 && !type.shape->front().is_constant();
  }

  /// Runs the operator's inference on a copy that takes inputs of the given types in the places of the choice, and
  /// gives the types that they have afterwards; nothing where the operator does not take such inputs.
  std::optional<std::vector<Type>> inferred(const std::vector<Type>& types) {
    Graph scratch;
    scratch.owner = &node_;
    std::vector<Value*> given;
    bool is_taken = true;
    try {
      Node* copy = copied_to(&scratch);
      for (size_t i = 0; i < places_.size(); ++i) {
        given.push_back(add_input(scratch, "given", types[i]));
        copy->set_input(places_[i], given.back());
      }
      FreshDims fresh;
      InferNode view(*copy, entry_, fresh);
      if (entry_.op->infer != nullptr) entry_.op->infer(view);
    } catch (const Error& e) {
      is_taken = false;
      if (e.kind() != ErrorKind::InvalidModel) {
        scratch.release_uses();
        throw;
      }
    }
    std::vector<Type> result;
    for (const Value* value : given) result.push_back(value->type);
    scratch.release_uses();
    return is_taken ? std::optional(result) : std::nullopt;
  }

  /// Whether the rank follows from other inputs.
  bool is_learned() {
    std::vector<Type> types;
    for (const size_t place : places_) types.push_back(node_.input(place)->type);
    const auto found = inferred(types);
    return found && !(found->front() == types.front()) && node_.input(places_[0])->graph == node_.graph;
  }

  bool takes(int64_t k) {
    std::vector<Type> types;
    for (const size_t place : places_) {
      types.push_back(node_.input(place)->type);
      types.back().shape = Shape();
      for (int64_t i = 0; i < (what_ == Chosen::Rank ? k : 1); ++i)
        types.back().shape->push_back(what_ == Chosen::Rank ? Dim::symbol(fmt::format("size{}", i)) : Dim(k));
    }
    return inferred(types).has_value();
  }

  /// A copy of the node at the end of a graph; null: in front of the node itself.
  Node* copied_to(Graph* graph) {
    const std::string domain = node_.domain.empty() ? "" : std::string(node_.domain.view()) + ".";
    Node* copy = graph ? graph->add_node(node_.domain, node_.op)
                       : edit_.node_before(domain + std::string(node_.op.view()), {}, {}, node_.outputs().size());
    copy->version = node_.version;
    copy->name = node_.name;
    for (const Attribute& attribute : node_.attributes) {
      copy->attributes.push_back(attribute);
      if (const auto* subgraph = attribute.value.get<GraphPtr>())
        copy->attributes.back().value = clone_graph(**subgraph, *copy, {});
    }
    for (size_t i = 0; i < node_.inputs().size(); ++i) copy->set_input(i, node_.input(i));
    for (size_t i = 0; graph != nullptr && i < node_.outputs().size(); ++i)
      graph->add_output_to(copy, graph->unique_name(node_.op.view()));
    return copy;
  }

  /// The node for one rank. `is_last`: there is no other, and the run looks whether it is that one.
  std::vector<Value*> outputs_for(Graph* graph, int64_t k, bool is_last) {
    std::vector<Attribute> attributes{{what_ == Chosen::Rank ? "rank" : "length", k}, {"checks", int64_t{is_last}}};
    std::vector<Value*> known;
    for (const size_t place : places_) {
      Node* made = nullptr;
      if (graph == nullptr) {
        made = edit_.node_before("tonnx.Sized", {node_.input(place)}, attributes);
      } else {
        made = append_node(*graph, "Sized", {node_.input(place)}, attributes);
        made->domain = "tonnx";
        made->version = 1;
      }
      known.push_back(made->output(0));
    }
    Node* copy = copied_to(graph);
    for (size_t i = 0; i < places_.size(); ++i) copy->set_input(places_[i], known[i]);
    return copy->outputs();
  }

  /// The outputs for the possible rank number `at`, or one behind it.
  std::vector<Value*> choose(Graph* graph, size_t at) {
    if (at + 1 == taken_.size()) return outputs_for(graph, taken_[at], true);
    Expansion make = graph ? Expansion(edit_, *graph) : Expansion(edit_);
    Value* is_this = make("Equal", {size_, make.number(DType::Int64, static_cast<double>(taken_[at]))});
    const std::vector<Value*> results = make.all(node_.outputs().size(), "If", {is_this});
    Node& branch = *results.front()->producer;
    for (const bool is_this_rank : {false, true}) {
      auto inside = std::make_shared<Graph>();
      inside->owner = &branch;
      inside->name = is_this_rank ? "then" : "else";
      branch.set_attribute(is_this_rank ? "then_branch" : "else_branch", inside, AttrType::Graph);
      for (Value* output : is_this_rank ? outputs_for(inside.get(), taken_[at], false) : choose(inside.get(), at + 1))
        inside->add_output(output);
    }
    return results;
  }

  OnnxEdit& edit_;
  Node& node_;
  const OnnxOpEntry& entry_;
  Chosen what_;
  std::vector<size_t> places_;  // of the inputs that the choice is for
  std::vector<int64_t> taken_;  // ranks, or lengths, that the operator takes
  Value* size_ = nullptr;       // what the run finds
};

/// The rank, or the length of a list.
std::pair<std::optional<int64_t>, std::optional<int64_t>> rank_and_length(const NodeView& n) {
  const auto rank = n.find_i("rank"), length = n.find_i("length");
  require(rank.has_value() != length.has_value(), "a rank or a length is given");
  require(rank.value_or(0) >= 0 && rank.value_or(0) <= kMaxRank, "a rank of {}", rank.value_or(0));
  require(length.value_or(0) >= 0, "a length of {}", length.value_or(0));
  return {rank, length};
}

void infer_sized(InferNode& n) {
  const auto [rank, length] = rank_and_length(n);
  Shape shape;
  for (int64_t i = 0; i < rank.value_or(0); ++i) shape.push_back(n.fresh());
  if (length) shape = {Dim(*length)};
  n.set(0, n.dtype("data"), std::move(shape));
}

/// What is of another rank cannot be expanded so.
Values lower_sized(const OnnxNode& n, AtenBuilder& aten) {
  const auto [rank, length] = rank_and_length(n);
  if (!n.flag("checks")) return n.input("data");
  std::vector<int64_t> sizes(static_cast<size_t>(rank.value_or(0)), -1);
  if (length) sizes = {*length};
  return aten("expand", n.input("data"), sizes);
}

constexpr OnnxOp kRankChoiceOnnx[] = {
    {.sig = "tonnx::Sized(T data, *, int? rank, int? length, int checks=0) -> T sized",
     .since = 1,
     .infer = infer_sized,
     .lower = lower_sized},
};

}  // namespace

bool choose_rank(OnnxEdit& edit, const NodeView& n, const std::vector<std::string_view>& inputs,
                 const std::vector<int64_t>& ranks) {
  return Choice(edit, n, Chosen::Rank, inputs).make(ranks);
}

bool choose_length(OnnxEdit& edit, const NodeView& n, const std::vector<std::string_view>& lists,
                   const std::vector<int64_t>& lengths) {
  return Choice(edit, n, Chosen::Length, lists).make(lengths);
}

std::vector<int64_t> from_to(int64_t first, int64_t last) {
  std::vector<int64_t> result(static_cast<size_t>(last - first + 1));
  std::iota(result.begin(), result.end(), first);
  return result;
}

std::vector<int64_t> ranks_with(int64_t axis, int64_t last) {
  require(axis >= -kMaxRank && axis < kMaxRank, "axis {} is out of range", axis);
  const int64_t least = axis >= 0 ? axis + 1 : -axis;
  return from_to(least, std::max(least, last));
}

extern const OpFamily kRankChoiceOps;
constinit const OpFamily kRankChoiceOps{"rank_choice", kRankChoiceOnnx, {}};

}  // namespace tonnx
