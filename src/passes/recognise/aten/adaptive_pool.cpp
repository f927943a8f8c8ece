// adaptive_pool.cpp - aten: recognises means over the windows of an adaptive pool that were gathered one by one.
#include <algorithm>
#include <cmath>

#include "passes/frame/aten_match.h"
#include "passes/frame/aten_writer.h"
#include "passes/passes.h"
#include "passes/recognise/aten/plane_sums.h"

namespace tonnx {
namespace {

using Sizes = std::vector<int64_t>;
constexpr int64_t kMostWindows = 1 << 16;

/// Whether a sum is the mean of the window that belongs to an element of the result.
bool is_window(const PlaneSums::Sum& sum, int64_t element, const Sizes& in, const Sizes& out, double tolerance) {
  Sizes places{0};
  int64_t block = 1;
  for (const int64_t size : out) block *= size;
  for (size_t d = 0; d < in.size(); ++d) {
    block /= out[d];
    const int64_t i = element / block % out[d];
    const int64_t start = i * in[d] / out[d], end = ((i + 1) * in[d] + out[d] - 1) / out[d];
    Sizes next;
    for (const int64_t place : places) {
      for (int64_t k = start; k < end; ++k) next.push_back(place * in[d] + k);
      if (next.size() > sum.size()) return false;
    }
    places = std::move(next);
  }
  const double share = 1.0 / static_cast<double>(places.size());
  return std::equal(sum.begin(), sum.end(), places.begin(), places.end(), [&](const auto& each, int64_t place) {
    return each.first == place && std::abs(each.second - share) <= tolerance * share;
  });
}

/// All sizes with so many elements, of so many dimensions.
void add_factors(int64_t count, size_t dims, Sizes& so_far, std::vector<Sizes>& found) {
  if (dims == 1) {
    so_far.push_back(count);
    found.push_back(so_far);
    so_far.pop_back();
    return;
  }
  for (int64_t size = 1; size <= count; ++size) {
    if (count % size != 0) continue;
    so_far.push_back(size);
    add_factors(count / size, dims - 1, so_far, found);
    so_far.pop_back();
  }
}

/// Sizes that the result may have: as it is reshaped to, or as its own are, or any.
std::vector<Sizes> candidates_for(const PlaneSums& sums, const Value& value, size_t spatial) {
  std::vector<Sizes> found;
  const Node* user = value.uses.size() == 1 ? value.uses[0].user : nullptr;
  if (is_aten(user, "reshape") && user->output(0)->type.shape) {
    Sizes sizes;
    for (const Dim& dim : *user->output(0)->type.shape) sizes.push_back(dim.constant().value_or(0));
    if (sizes.size() == sums.lead + spatial)
      found.emplace_back(sizes.begin() + static_cast<std::ptrdiff_t>(sums.lead), sizes.end());
  }
  if (sums.dims.size() == spatial) found.push_back(sums.dims);
  Sizes so_far;
  add_factors(static_cast<int64_t>(sums.sums.size()), spatial, so_far, found);
  return found;
}

/// Whether a node that reshapes gives the same of all tensors whose first dimensions, and elements, are the same.
bool needs_elements_only(const Node& node, size_t lead) {
  if (is_aten(node, "reshape")) return true;
  const int64_t *start = find_int(node, "start_dim"), *end = find_int(node, "end_dim");
  const auto first = start ? *start : 0;
  return is_aten(node, "flatten", "using_ints") && first >= 0 && first <= static_cast<int64_t>(lead) &&
         (!end || *end == -1);
}

class AdaptivePool {
 public:
  explicit AdaptivePool(Graph& graph) : graph_(graph), finder_(graph) {}

  /// 1. mean(x.flatten(2)[:, :, windows], -1), where the windows are those of the pool
  /// 2. a gather of windows that have one element each
  /// 3. sum(where(own, x.flatten(2)[:, :, windows], 0.0), -1) / counts, and the same written out as one sum
  void replace(Node& node) {
    const PlaneSums* sums = finder_.find(node);
    if (sums == nullptr || !sums->is_in_order() || !is_float(node.output(0)->type.dtype)) return;
    const size_t spatial = sums->of->type.shape->size() - sums->lead;
    // A gather of single elements is a pool only where it has a dimension for the elements of a window.
    if (is_aten(node, "index", "Tensor") && sums->dims.size() <= spatial &&
        std::find(sums->dims.begin(), sums->dims.end(), 1) == sums->dims.end())
      return;
    const auto out = find_sizes(*sums, *node.output(0), spatial);
    if (out) write(node, *sums, *out, spatial);
  }

 private:
  static std::optional<Sizes> find_sizes(const PlaneSums& sums, const Value& value, size_t spatial) {
    if (static_cast<int64_t>(sums.sums.size()) > kMostWindows) return std::nullopt;
    Sizes in;
    for (size_t i = sums.lead; i < sums.of->type.shape->size(); ++i)
      in.push_back(*(*sums.of->type.shape)[i].constant());
    const bool is_short = value.type.dtype == DType::Float16 || value.type.dtype == DType::BFloat16;
    for (const Sizes& out : candidates_for(sums, value, spatial)) {
      int64_t count = 1;
      for (const int64_t size : out) count *= size;
      bool fits = count == static_cast<int64_t>(sums.sums.size()) && out != in;
      for (int64_t i = 0; i < count && fits; ++i)
        fits = is_window(sums.sums[static_cast<size_t>(i)], i, in, out, is_short ? 4e-3 : 1e-6);
      if (fits) return out;
    }
    return std::nullopt;
  }

  void write(Node& node, const PlaneSums& sums, const Sizes& out, size_t spatial) {
    Value* value = node.output(0);
    Type type = value->type;
    type.shape->assign(sums.of->type.shape->begin(),
                       sums.of->type.shape->begin() + static_cast<std::ptrdiff_t>(sums.lead));
    for (const int64_t size : out) type.shape->push_back(Dim(size));
    AtenWriter writer(graph_);
    writer.write_before(&node);
    constexpr const char* kNames[] = {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"};
    AtenCall call(kNames[spatial - 1], "", &node);
    call.with("self", sums.of).with("output_size", AttrValue(out));
    Value* pool = writer.add(call, type, value->name);
    const std::vector<Use> uses = value->uses;
    for (const Use& use : uses) {
      if (!use.user || !only_reshapes(*use.user)) continue;
      if (use.user->output(0)->type.shape == type.shape)
        graph_.replace_uses(use.user->output(0), pool);
      else if (needs_elements_only(*use.user, sums.lead))
        use.user->set_input(use.index, pool);
    }
    if (*type.shape == *value->type.shape) {
      graph_.replace_uses(value, pool);
    } else if (!value->uses.empty()) {
      AtenCall back("reshape", "", &node);
      back.with("self", pool).with("shape", writer.sizes(pool, value->type, &node));
      Value* same = writer.add(back, value->type, value->name);
      finder_.take_place(same, value);
      graph_.replace_uses(value, same);
    }
  }

  Graph& graph_;
  PlaneSumsFinder finder_;
};

}  // namespace

void recognise_adaptive_pool(Graph& graph) {
  AdaptivePool rewriter(graph);
  for (Node* node = graph.first(); node != nullptr; node = node->next) {
    for (const GraphPtr& subgraph : subgraphs_of(*node)) recognise_adaptive_pool(*subgraph);
    rewriter.replace(*node);
  }
}

}  // namespace tonnx
