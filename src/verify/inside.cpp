// inside.cpp - compares values inside two models, and judges layers by themselves.
#include "verify/inside.h"

#include <algorithm>
#include <unordered_map>

#include "verify/operator_class.h"

namespace tonnx::judge {
namespace {

constexpr double kLargestNoise = 100;
constexpr int64_t kFewElements = 1000;  // one element of so many of a quantised layer may be off by more than a step
constexpr double kRecognised = 0.5;     // values that are further apart have nothing in common
constexpr size_t kMostCovered = 12;

/// Where a runner says nothing of a value but its name, the graph that it runs tells how it is computed.
void complete_steps(std::vector<Step>& steps, const Graph* graph) {
  if (graph == nullptr) return;
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].op.empty()) return;
    places.emplace(identifier(steps[i].name), i);
  }
  std::unordered_map<const Value*, std::vector<int64_t>> sources;
  for (size_t i = 0; i < graph->inputs().size(); ++i) sources[graph->inputs()[i]] = {-1 - static_cast<int64_t>(i)};
  for (const Node& node : *graph) {
    std::set<int64_t> parents;
    std::vector<std::string> weights;
    for (const Value* input : node.inputs()) {
      if (input == nullptr) continue;
      if (input->constant) weights.push_back(input->name);
      if (const auto at = sources.find(input); at != sources.end())
        parents.insert(at->second.begin(), at->second.end());
    }
    for (const Value* output : node.outputs()) {
      if (output == nullptr) continue;
      sources[output].assign(parents.begin(), parents.end());
      const auto at = places.find(identifier(output->name));
      if (at == places.end()) continue;
      Step& step = steps[at->second];
      step.op = std::string(node.op.view());
      step.layer = node.name;
      step.weights = weights;
      for (const int64_t parent : parents) {
        if (parent < static_cast<int64_t>(at->second)) step.parents.push_back(parent);
      }
      sources[output] = {static_cast<int64_t>(at->second)};
    }
  }
}

Depth own_depth(const Traced& in, size_t place) {
  const Step& step = in.steps()[place];
  const auto& depths = in.known().depths;
  const Depth* known = depths ? depths->find_own(step.name) : nullptr;
  return known != nullptr ? *known : depth_of(step.op);
}

std::vector<Depth> depths_of(const Traced& in) {
  std::vector<Depth> found;
  for (size_t i = 0; i < in.steps().size(); ++i) {
    const Step& step = in.steps()[i];
    const Depth* known = in.known().depths ? in.known().depths->find(step.name) : nullptr;
    Depth before;
    for (const int64_t parent : step.parents) {
      if (parent >= 0 && static_cast<size_t>(parent) < i) before = deepest(before, found[static_cast<size_t>(parent)]);
    }
    found.push_back(known != nullptr ? *known : before + own_depth(in, i));
  }
  return found;
}

}  // namespace

Traced::Traced(const Side& side, Tensors feeds, uint64_t room, Work& work)
    : runner_(side.runner), known_(side.known), feeds_(std::move(feeds)) {
  const Sketcher sketcher;
  steps_ = runner_.trace(feeds_, [&](size_t place, const TensorPtr& value) {
    work.take(kValueWork + kElementWork * static_cast<double>(value->count()));
    if (work.is_spent()) throw TooLong{};
    if (!is_number(value->dtype)) return;
    prints_.emplace(place, sketcher.print_of(*value));
    if (value->data.size() > room) return;
    room -= value->data.size();
    kept_.emplace(place, value);
  });
  complete_steps(steps_, known_.graph);
  std::erase_if(prints_, [&](const auto& print) { return print.first >= steps_.size(); });
}

ByPlace Traced::fetch(const std::vector<size_t>& wanted) const {
  ByPlace found;
  std::vector<size_t> left;
  for (const size_t place : wanted) {
    const auto at = kept_.find(place);
    if (at != kept_.end()) {
      found.insert(*at);
    } else {
      left.push_back(place);
    }
  }
  if (left.empty()) return found;
  const Tensors values = runner_.fetch(feeds_, left);
  for (size_t i = 0; i < left.size() && i < values.size(); ++i) {
    if (values[i]) found.emplace(left[i], values[i]);
  }
  return found;
}

Inside::Inside(const Side& a, const Side& b, const Plan& plan, const Feeds& feeds, const Tolerance& tolerance,
               uint64_t memory, Work& work, const Tell& tell)
    : tolerance_(tolerance),
      memory_(memory),
      work_(work),
      tell_(tell),
      in_a_(a, feeds.first, memory / 2, work),
      in_b_(b, feeds.second, memory / 2, work) {
  std::map<int64_t, int64_t> inputs;
  for (size_t j = 0; j < plan.pairs().size(); ++j)
    inputs[-1 - static_cast<int64_t>(j)] = -1 - static_cast<int64_t>(plan.pairs()[j]);
  noises_ = noises();
  depths_a_ = depths_of(in_a_);
  depths_b_ = depths_of(in_b_);
  compare(Matcher(in_a_.steps(), in_b_.steps(), in_a_.prints(), in_b_.prints(), std::move(inputs)).run());
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (is_sure(layers_[i])) at_.emplace(layers_[i].index, i);
  }
  note_all_covered();
}

void Inside::note_all_covered() {
  std::set<size_t> compared;
  for (const LayerComparison& layer : layers_) compared.insert(layer.index);
  for (LayerComparison& layer : layers_) {
    layer.covers.clear();
    layer.weights.clear();
    note_covered(layer, compared);
  }
}

/// How much more rounding errors weigh than in their inputs: x - mean(x) is as exact as x was large.
std::vector<double> Inside::noises() const {
  std::vector<double> found;
  const std::vector<Step>& steps = in_a_.steps();
  const auto largest_of = [&](size_t place) {
    const auto at = in_a_.prints().find(place);
    return at == in_a_.prints().end() ? 0.0 : at->second.largest();
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    double of_inputs = 1, of_sum = 0;
    for (const int64_t parent : steps[i].parents) {
      if (parent < 0 || parent >= static_cast<int64_t>(found.size())) continue;
      const auto place = static_cast<size_t>(parent);
      of_inputs = std::max(of_inputs, found[place]);
      of_sum = std::max(of_sum, found[place] * largest_of(place));
    }
    const std::string kind = operator_class(steps[i].op);
    const bool is_sum = (kind == "add" || kind == "sub") && largest_of(i) > 0;
    found.push_back(std::clamp(is_sum ? of_sum / largest_of(i) : of_inputs, 1.0, kLargestNoise));
  }
  return found;
}

void Inside::compare(const std::vector<Pair>& pairs) {
  std::vector<Pair> chunk;
  uint64_t used = 0;
  const auto finish = [&] {
    if (chunk.empty() || work_.is_spent()) return;  // what is left stays unseen
    tell_("layers compared", layers_.size(), pairs.size());
    compare_chunk(chunk);
    chunk.clear();
    used = 0;
  };
  for (const Pair& pair : pairs) {
    const uint64_t size = in_a_.prints().at(pair.a).bytes + in_b_.prints().at(pair.b).bytes;
    if (used + size > memory_) finish();
    if (work_.is_spent()) break;
    chunk.push_back(pair);
    used += size;
  }
  finish();
  std::sort(layers_.begin(), layers_.end(), [](const auto& x, const auto& y) { return x.index < y.index; });
}

void Inside::compare_chunk(const std::vector<Pair>& chunk) {
  std::vector<size_t> of_a, of_b, wrong;
  double elements = 0;
  for (const Pair& pair : chunk) {
    of_a.push_back(pair.a);
    of_b.push_back(pair.b);
    elements += static_cast<double>(in_a_.prints().at(pair.a).elements);
  }
  work_.take(kComparedWork * elements);
  const ByPlace values_a = in_a_.fetch(of_a), values_b = in_b_.fetch(of_b);
  const size_t begin = layers_.size();
  std::vector<std::pair<TensorPtr, TensorPtr>> values;
  for (const Pair& pair : chunk) {
    const auto a = values_a.find(pair.a), b = values_b.find(pair.b);
    if (a == values_a.end() || b == values_b.end()) continue;
    const TensorPtr other = alike(b->second, *a->second);
    const Step &one = in_a_.steps()[pair.a], &two = in_b_.steps()[pair.b];
    LayerComparison layer;
    const Depth depth = deepest(depths_a_[pair.a], depths_b_[pair.b]);
    static_cast<Measured&>(layer) = measured(*a->second, *other, tolerance_, {depth, noises_[pair.a]});
    layer.name = one.name;
    layer.counterpart = two.name;
    layer.index = pair.a;
    layer.counterpart_index = pair.b;
    layer.layer = one.layer;
    layer.op = one.op;
    layer.module = one.module.empty() ? two.module : one.module;
    layer.counterpart_layer = two.layer;
    layer.counterpart_op = two.op;
    layer.how = pair.how;
    layer.depth = depth.layers;
    if (!layer.is_same && !tolerance_.is_given()) wrong.push_back(layers_.size() - begin);
    layers_.push_back(std::move(layer));
    values.emplace_back(a->second, other);
  }
  if (wrong.empty()) return;
  std::vector<size_t> places;
  for (const size_t i : wrong) places.push_back(layers_[begin + i].index);
  const Tensors near = in_a_.runner().fetch(perturbed(in_a_.feeds()), places);
  for (size_t k = 0; k < wrong.size() && k < near.size(); ++k) {
    LayerComparison& layer = layers_[begin + wrong[k]];
    const Depth depth = deepest(depths_a_[layer.index], depths_b_[layer.counterpart_index]);
    const auto& [one, other] = values[wrong[k]];
    static_cast<Measured&>(layer) = measured(*one, *other, tolerance_, {depth, noises_[layer.index], near[k].get()});
  }
}

/// Whether the two are counterparts. Where only their places say so, what is not even similar may be none, as a product
/// of integers is none of the product of what they stand for.
bool Inside::is_sure(const LayerComparison& layer) const {
  if (layer.how != How::Place) return true;
  const Print& print = in_a_.prints().at(layer.index);
  if (!print.is_telling()) return false;  // one number, or many that are equal: those of another layer may be like it
  return layer.is_same || distance(print, in_b_.prints().at(layer.counterpart_index)) < kRecognised;
}

/// The steps between a value and the nearest ones before it that were compared.
void Inside::note_covered(LayerComparison& layer, const std::set<size_t>& compared) const {
  const std::vector<Step>& steps = in_a_.steps();
  std::set<size_t> found;
  std::vector<int64_t> waiting = steps[layer.index].parents;
  while (!waiting.empty() && found.size() < kMostCovered) {
    const int64_t at = waiting.back();
    waiting.pop_back();
    if (at < 0 || compared.contains(static_cast<size_t>(at)) || !found.insert(static_cast<size_t>(at)).second) continue;
    const auto& parents = steps[static_cast<size_t>(at)].parents;
    waiting.insert(waiting.end(), parents.begin(), parents.end());
  }
  const auto add_weights = [&](const Step& step) {
    for (const std::string& name : step.weights) {
      if (std::find(layer.weights.begin(), layer.weights.end(), name) == layer.weights.end())
        layer.weights.push_back(name);
    }
  };
  for (const size_t place : found) {
    layer.covers.push_back(fmt::format("{} ({})", steps[place].title(), steps[place].op));
    add_weights(steps[place]);
  }
  add_weights(steps[layer.index]);
}

std::vector<LayerComparison*> Inside::sure() {
  std::vector<LayerComparison*> found;
  for (const auto& [place, i] : at_) found.push_back(&layers_[i]);
  return found;
}

TensorPtr Inside::counterpart(const LayerComparison& layer) const {
  const Print& print = in_a_.prints().at(layer.index);
  const ByPlace found = in_b_.fetch({layer.counterpart_index});
  const auto at = found.find(layer.counterpart_index);
  if (at == found.end() || at->second->count() != print.elements) return nullptr;
  return reshaped(converted(at->second, print.dtype), print.dims);
}

// Layers by themselves

template <class Compared>
Inside::Segment Inside::segment_of(const std::vector<Step>& steps, const Compared& compared, size_t index) {
  Segment segment;
  segment.inside.push_back(index);
  std::set<size_t> seen{index}, before;
  std::vector<int64_t> waiting = steps[index].parents;
  while (!waiting.empty()) {
    const int64_t at = waiting.back();
    waiting.pop_back();
    if (at < 0 || !seen.insert(static_cast<size_t>(at)).second) continue;
    if (compared.contains(static_cast<size_t>(at))) {
      before.insert(static_cast<size_t>(at));
      continue;
    }
    segment.inside.push_back(static_cast<size_t>(at));
    const auto& parents = steps[static_cast<size_t>(at)].parents;
    waiting.insert(waiting.end(), parents.begin(), parents.end());
  }
  segment.before.assign(before.begin(), before.end());
  return segment;
}

Inside::Segment Inside::segment_of(size_t index) const { return segment_of(in_a_.steps(), at_, index); }

void Inside::add_before(size_t index, ByPlace& given) const {
  for (const size_t place : segment_of(index).before) {
    if (given.contains(place)) continue;
    if (TensorPtr value = counterpart(layers_[at_.at(place)])) given.emplace(place, std::move(value));
  }
}

Depth Inside::depth_of_segment(size_t index) const {
  Depth depth;
  for (const size_t place : segment_of(index).inside) depth = depth + own_depth(in_a_, place);
  return depth;
}

/// How often each of the two was rounded after what both were computed from. A value before it is quantised may have
/// that after it as its counterpart, where one model has both in one layer.
std::pair<int, int> Inside::quantisations(const LayerComparison& layer) const {
  std::set<size_t> compared_b;
  for (const auto& [place, i] : at_) compared_b.insert(layers_[i].counterpart_index);
  const auto count = [](const std::vector<Step>& steps, const Segment& segment) {
    return static_cast<int>(std::count_if(segment.inside.begin(), segment.inside.end(),
                                          [&](size_t place) { return rounds_to_steps(steps[place].op); }));
  };
  return {count(in_a_.steps(), segment_of(layer.index)),
          count(in_b_.steps(), segment_of(in_b_.steps(), compared_b, layer.counterpart_index))};
}

std::vector<std::vector<LayerComparison*>> Inside::parts_of(const std::vector<LayerComparison*>& layers) const {
  std::vector<std::vector<LayerComparison*>> parts;
  uint64_t used = 0;
  for (LayerComparison* layer : layers) {
    uint64_t size = in_a_.prints().at(layer->index).bytes;
    for (const size_t place : segment_of(layer->index).before) size += in_a_.prints().at(place).bytes;
    if (parts.empty() || used + size > memory_) {
      parts.emplace_back();
      used = 0;
    }
    parts.back().push_back(layer);
    used += size;
  }
  return parts;
}

void Inside::recheck(const std::vector<LayerComparison*>& layers, const Tolerance& tolerance, Work& work) {
  constexpr int kRounds = 3;
  recheck_all(layers, tolerance, work);
  for (int round = 0; round < kRounds && !work.is_spent() && rematch(tolerance); ++round) {
    std::vector<LayerComparison*> wrong;
    for (LayerComparison* layer : sure()) {
      if (!layer->is_same) wrong.push_back(layer);
    }
    recheck_all(wrong, tolerance, work);
  }
}

void Inside::recheck_all(const std::vector<LayerComparison*>& layers, const Tolerance& tolerance, Work& work) {
  size_t judged = 0;
  for (const std::vector<LayerComparison*>& part : parts_of(layers)) {
    if (work.is_spent()) break;
    tell_("layers judged by themselves", judged, layers.size());
    judged += part.size();
    for (const LayerComparison* layer : part)
      work.take(kValueWork + kComparedWork * static_cast<double>(in_a_.prints().at(layer->index).elements));
    recheck_part(part, tolerance);
  }
}

/// Values of the first model of the same kind that have no counterpart: those that are computed from one, and those
/// that it is computed from.
std::vector<size_t> Inside::near(size_t index) const {
  constexpr size_t kMost = 8;
  const std::vector<Step>& steps = in_a_.steps();
  std::set<size_t> compared, found, reached{index};
  for (const LayerComparison& layer : layers_) compared.insert(layer.index);
  const auto consider = [&](size_t place) {
    const auto print = in_a_.prints().find(place);
    if (compared.contains(place) || print == in_a_.prints().end()) return false;
    if (print->second.kind == in_a_.prints().at(index).kind) found.insert(place);
    return true;
  };
  for (size_t i = index + 1; i < steps.size() && found.size() < kMost && reached.size() < kMost; ++i) {
    const bool is_behind = std::any_of(steps[i].parents.begin(), steps[i].parents.end(), [&](int64_t parent) {
      return parent >= 0 && reached.contains(static_cast<size_t>(parent));
    });
    if (is_behind && consider(i)) reached.insert(i);
  }
  for (const size_t place : segment_of(index).inside) {
    if (place != index && found.size() < kMost) consider(place);
  }
  return {found.begin(), found.end()};
}

bool Inside::rematch(const Tolerance& tolerance) {
  bool has_moved = false;
  for (LayerComparison* layer : sure()) {
    if (layer->is_same || layer->how == How::Name || !layer->why.empty()) continue;
    const std::vector<size_t> places = near(layer->index);
    if (places.empty()) continue;
    ByPlace given;
    add_before(layer->index, given);
    const ByPlace others = in_b_.fetch({layer->counterpart_index});
    const Tensors values = in_a_.runner().recompute(in_a_.feeds(), given, places);
    for (size_t i = 0; i < places.size() && i < values.size() && !others.empty(); ++i) {
      if (!values[i]) continue;
      const Depth depth = depth_of_segment(places[i]);
      const Measured found =
          measured(*values[i], *alike(others.begin()->second, *values[i]), tolerance, {depth, noises_[places[i]]});
      if (!found.is_same) continue;
      move(*layer, places[i], found);
      has_moved = true;
      break;
    }
  }
  at_.clear();
  std::sort(layers_.begin(), layers_.end(), [](const auto& x, const auto& y) { return x.index < y.index; });
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (is_sure(layers_[i])) at_.emplace(layers_[i].index, i);
  }
  if (has_moved) note_all_covered();
  return has_moved;
}

void Inside::move(LayerComparison& layer, size_t index, const Measured& found) {
  const Step& step = in_a_.steps()[index];
  static_cast<Measured&>(layer) = found;
  layer.name = step.name;
  layer.index = index;
  layer.layer = step.layer;
  layer.op = step.op;
  if (!step.module.empty()) layer.module = step.module;
}

void Inside::recheck_part(const std::vector<LayerComparison*>& part, const Tolerance& tolerance) {
  ByPlace given, moved;
  std::vector<size_t> wanted;
  for (const LayerComparison* layer : part) {
    wanted.push_back(layer->index);
    add_before(layer->index, given);
  }
  const Tensors values = in_a_.runner().recompute(in_a_.feeds(), given, wanted);
  Tensors near;
  for (size_t i = 0; i < part.size() && i < values.size(); ++i) {
    LayerComparison& layer = *part[i];
    const ByPlace found = in_b_.fetch({layer.counterpart_index});
    const auto other = found.find(layer.counterpart_index);
    if (!values[i] || other == found.end()) continue;
    const TensorPtr counterpart = alike(other->second, *values[i]);
    const Depth depth = depth_of_segment(layer.index);
    const Measured found_plainly = measured(*values[i], *counterpart, tolerance, {depth});
    if (found_plainly.is_same) {
      static_cast<Measured&>(layer) = found_plainly;
      continue;
    }
    if (near.empty()) {
      for (const auto& [place, value] : given) moved.emplace(place, perturbed(value));
      near = in_a_.runner().recompute(perturbed(in_a_.feeds()), moved, wanted);
    }
    const auto steps = quantisations(layer);
    const bool is_coarse = steps.first > 0 || steps.second > 0;
    const Tolerance coarse{{}, {}, {Precision::Quantised}};
    Measured judged = measured(*values[i], *counterpart, is_coarse ? coarse : tolerance,
                               {depth, 1, i < near.size() ? near[i].get() : nullptr, steps});
    // steps that fell the other way before it may add up in a few of its elements
    if (is_coarse && judged.why.empty() && judged.wrong * kFewElements <= judged.elements) judged.is_same = true;
    static_cast<Measured&>(layer) = judged;
  }
}

// What is shown

namespace {

std::unordered_map<size_t, std::vector<size_t>> users_of(const std::vector<Step>& steps) {
  std::unordered_map<size_t, std::vector<size_t>> users;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const int64_t parent : steps[i].parents) {
      if (parent >= 0) users[static_cast<size_t>(parent)].push_back(i);
    }
  }
  return users;
}

}  // namespace

std::vector<LayerComparison> sorted_out(const std::vector<Step>& steps, const std::vector<LayerComparison>& layers,
                                        std::optional<LayerComparison>& first) {
  std::unordered_map<size_t, bool> is_same;
  for (const LayerComparison& layer : layers) is_same[layer.index] = layer.is_same;
  const auto users = users_of(steps);
  std::vector<bool> reaches(steps.size());
  for (size_t i = steps.size(); i-- > 0;) {
    const auto behind = users.find(i);
    bool goes_on = behind == users.end();
    if (!goes_on)
      goes_on = std::any_of(behind->second.begin(), behind->second.end(), [&](size_t u) { return reaches[u]; });
    const auto at = is_same.find(i);
    reaches[i] = goes_on && (at == is_same.end() || !at->second);
  }
  std::vector<LayerComparison> kept;
  for (const LayerComparison& layer : layers) {
    if (layer.is_same || reaches[layer.index] || layer.how == How::Name) kept.push_back(layer);
  }
  first.reset();
  for (const LayerComparison& layer : kept) {
    if (!layer.is_same && reaches[layer.index]) {
      first = layer;
      return kept;
    }
  }
  const auto wrong = std::find_if(kept.begin(), kept.end(), [](const auto& layer) { return !layer.is_same; });
  if (wrong != kept.end()) first = *wrong;
  return kept;
}

std::vector<LayerComparison*> foremost(const std::vector<Step>& steps, const std::vector<LayerComparison*>& layers) {
  std::unordered_map<size_t, bool> is_same;
  for (const LayerComparison* layer : layers) is_same[layer->index] = layer->is_same;
  // after one that is the same again nothing is left of a difference
  std::vector<bool> is_behind(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    bool differs = false;
    for (const int64_t parent : steps[i].parents) {
      if (parent < 0 || static_cast<size_t>(parent) >= i) continue;
      const auto at = is_same.find(static_cast<size_t>(parent));
      differs = differs || is_behind[static_cast<size_t>(parent)] || (at != is_same.end() && !at->second);
    }
    const auto own = is_same.find(i);
    is_behind[i] = differs && (own == is_same.end() || !own->second);
  }
  std::vector<LayerComparison*> found;
  for (LayerComparison* layer : layers) {
    if (!layer->is_same && !is_behind[layer->index]) found.push_back(layer);
  }
  return found;
}

}  // namespace tonnx::judge
