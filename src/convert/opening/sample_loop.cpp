// sample_loop.cpp - a model of one sample as a Scan over samples, where it cannot compute several at once.
#include "convert/opening/sample_loop.h"

#include <algorithm>

#include "convert/opening/steady_sizes.h"
#include "ir/clone.h"

namespace tonnx {
namespace {

constexpr int64_t kScan = 9, kAxesAsInput = 13;

class SampleLoop {
 public:
  SampleLoop(const Model& model, const OpeningRequest& request, const FixedTypes& types)
      : from_(*model.graph), request_(request), types_(types), opset_(model.opset("")) {}

  bool can_loop() {
    if (opset_ < kScan || !request_.is_one_sample() || from_.outputs().empty()) return false;
    const SteadySizes steady(from_, types_);
    for (const Value* output : from_.outputs()) {
      const Type* type = types_.find(output);
      if (type == nullptr || !type->is_tensor() || !type->shape) return false;
      const bool is_same =
          std::all_of(type->shape->begin(), type->shape->end(), [&](const Dim& size) { return steady.contains(size); });
      const auto one = std::find(type->shape->begin(), type->shape->end(), Dim(1));
      if (!is_same || one == type->shape->end()) return false;
      axes_out_.push_back(one - type->shape->begin());
    }
    return true;
  }

  GraphPtr make() {
    auto graph = std::make_shared<Graph>();
    graph->name = from_.name;
    graph->doc = from_.doc;
    graph->metadata = from_.metadata;
    for (const Value* input : from_.inputs()) map_[input] = graph->add_input(input->name, input->type);
    for (const Value* value : from_.initializers()) {
      Value*& made = map_[value];
      if (made == nullptr) made = graph->new_value(value->name, value->type);
      made->constant = value->constant;
      made->sparse = value->sparse;
      graph->add_initializer(made);
    }
    std::vector<int64_t> axes_in;
    scan_ = graph->add_node("", "Scan");
    scan_->name = "samples";
    scan_->version = opset_;
    auto body = std::make_shared<Graph>();
    body->owner = scan_;
    body->name = "sample";
    for (const OpeningPlace& place : request_.places) {
      const Value* input = from_.inputs()[place.input];
      scan_->add_input(map_.at(input));
      axes_in.push_back(static_cast<int64_t>(place.axis));
      map_[input] = one_sample(*graph, *body, *input, place.axis);
    }
    for (const Node& node : from_) clone_node(node, *body, nullptr, map_);
    for (size_t i = 0; i < from_.outputs().size(); ++i) add_output(*graph, *body, i);
    scan_->set_attribute("body", body, AttrType::Graph);
    scan_->set_attribute("num_scan_inputs", static_cast<int64_t>(axes_in.size()), AttrType::Int);
    scan_->set_attribute("scan_input_axes", axes_in, AttrType::Ints);
    scan_->set_attribute("scan_output_axes", axes_out_, AttrType::Ints);
    graph->input_declarations.resize(graph->inputs().size());
    graph->output_declarations.resize(graph->outputs().size());
    return graph;
  }

 private:
  /// Takes an axis of size 1 away, or puts one in.
  Value* with_axis(Graph& graph, Graph& body, std::string_view op, Value* value, size_t axis, Shape shape) {
    Node* node = body.add_node("", op);
    node->version = opset_;
    node->add_input(value);
    const auto at = static_cast<int64_t>(axis);
    if (opset_ >= kAxesAsInput) {
      node->add_input(graph.add_initializer(graph.unique_name("sample_axis"), make_ints({at})));
    } else {
      node->set_attribute("axes", std::vector{at}, AttrType::Ints);
    }
    return body.add_output_to(node, body.unique_name(value->name + (op == "Squeeze" ? "_sample" : "_batch")),
                              Type::tensor(value->type.dtype, std::move(shape)));
  }

  /// The input of the body for one sample, as the model had it.
  Value* one_sample(Graph& graph, Graph& body, const Value& input, size_t axis) {
    Shape whole = *types_.find(&input)->shape, part;
    for (size_t i = 0; i < whole.size(); ++i) {
      if (i != axis) part.push_back(whole[i]);
    }
    Value* sample =
        body.add_input(graph.unique_name(input.name + "_sample"), Type::tensor(input.type.dtype, std::move(part)));
    return with_axis(graph, body, "Unsqueeze", sample, axis, std::move(whole));
  }

  void add_output(Graph& graph, Graph& body, size_t i) {
    const Value* output = from_.outputs()[i];
    const auto axis = static_cast<size_t>(axes_out_[i]);
    const Type& type = *types_.find(output);
    Shape whole = *type.shape, part;
    for (size_t d = 0; d < whole.size(); ++d) {
      if (d != axis) part.push_back(whole[d]);
    }
    Value* inside = copy_of(const_cast<Value*>(output), map_);  // NOLINT: the copy is what is changed
    inside->type = type;
    body.add_output(with_axis(graph, body, "Squeeze", inside, axis, std::move(part)));
    whole[axis] = Dim::symbol(request_.opened.begin()->first);
    // the body is left with another name for what the model gives under this one
    if (inside->name == output->name && inside->graph == &body) inside->name = graph.unique_name(output->name + "_one");
    graph.add_output(graph.add_output_to(scan_, output->name, Type::tensor(type.dtype, std::move(whole))));
  }

  const Graph& from_;
  const OpeningRequest& request_;
  const FixedTypes& types_;
  int64_t opset_;
  std::vector<int64_t> axes_out_;
  ValueMap map_;
  Node* scan_ = nullptr;
};

}  // namespace

std::optional<Model> loop_over_samples(const Model& model, const OpeningRequest& request, const FixedTypes& types) {
  SampleLoop loop(model, request, types);
  if (!loop.can_loop()) return std::nullopt;
  Model result = clone(model);
  result.graph = loop.make();
  declare_open(result, request);
  return result;
}

}  // namespace tonnx
