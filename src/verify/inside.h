// inside.h - compares the values inside two models, some at a time, and finds where they part.
#pragma once
#include "verify/plan.h"
#include "verify/report.h"
#include "verify/work.h"

namespace tonnx::judge {

/// Nobody asked for the values inside, and to look at all of them is more work than the rest was.
struct TooLong {};

/// Says what is being done, how much of it is done, and how much there is.
using Tell = std::function<void(const char* what, size_t done, size_t all)>;

/// The graph that a model was read as, and its depths; neither where it was not read.
struct KnownGraph {
  explicit KnownGraph(const Model* model) : graph(model != nullptr ? model->graph.get() : nullptr) {
    if (model != nullptr) depths.emplace(*model);
  }
  const Graph* graph;
  std::optional<GraphDepths> depths;
};
struct Side {
  Runner& runner;
  const KnownGraph& known;
};

/// What is kept of all values of a model: a sketch of each, and the values themselves while there is room.
class Traced {
 public:
  /// Keeps as many bytes of values as there is room for.
  Traced(const Side& side, Tensors feeds, uint64_t room, Work& work);

  const std::vector<Step>& steps() const { return steps_; }
  const KnownGraph& known() const { return known_; }
  const Prints& prints() const { return prints_; }
  Runner& runner() const { return runner_; }
  const Tensors& feeds() const { return feeds_; }
  ByPlace fetch(const std::vector<size_t>& wanted) const;

 private:
  Runner& runner_;
  const KnownGraph& known_;
  Tensors feeds_;
  std::vector<Step> steps_;
  Prints prints_;
  ByPlace kept_;
};

/// The values inside of two models on the same inputs, and which of them belong together.
class Inside {
 public:
  Inside(const Side& a, const Side& b, const Plan& plan, const Feeds& feeds, const Tolerance& tolerance,
         uint64_t memory, Work& work, const Tell& tell);

  std::vector<LayerComparison>& layers() { return layers_; }
  const std::vector<Step>& steps_a() const { return in_a_.steps(); }
  const std::vector<Step>& steps_b() const { return in_b_.steps(); }
  /// The layers whose counterparts are beyond doubt, by their places.
  std::vector<LayerComparison*> sure();
  /// The value of the second model as the first would have it; null where it has none.
  TensorPtr counterpart(const LayerComparison& layer) const;
  /// Judges layers by themselves: the first model computes them from the values that the second has before them. So no
  /// rounding is carried on from layer to layer, and what a layer does is all that can differ. What is too much work
  /// stays as it was judged before.
  void recheck(const std::vector<LayerComparison*>& layers, const Tolerance& tolerance, Work& work);

 private:
  struct Segment {
    std::vector<size_t> inside;  // the steps from the nearest values before one that were compared, itself among them
    std::vector<size_t> before;  // these values
  };

  void compare(const std::vector<Pair>& pairs);
  void compare_chunk(const std::vector<Pair>& chunk);
  void note_all_covered();
  void note_covered(LayerComparison& layer, const std::set<size_t>& compared) const;
  bool is_sure(const LayerComparison& layer) const;
  std::vector<double> noises() const;
  std::vector<std::vector<LayerComparison*>> parts_of(const std::vector<LayerComparison*>& layers) const;
  /// Values that are close are not always counterparts: one that differs by itself may belong to a value near it.
  /// Says whether any did.
  bool rematch(const Tolerance& tolerance);
  std::vector<size_t> near(size_t index) const;
  void move(LayerComparison& layer, size_t index, const Measured& found);
  void recheck_all(const std::vector<LayerComparison*>& layers, const Tolerance& tolerance, Work& work);
  void recheck_part(const std::vector<LayerComparison*>& part, const Tolerance& tolerance);
  template <class Compared>
  static Segment segment_of(const std::vector<Step>& steps, const Compared& compared, size_t index);
  Segment segment_of(size_t index) const;
  /// What the second model has in the places of the values that a step is computed from.
  void add_before(size_t index, ByPlace& given) const;
  Depth depth_of_segment(size_t index) const;
  std::pair<int, int> quantisations(const LayerComparison& layer) const;

  Tolerance tolerance_;
  uint64_t memory_;
  Work& work_;
  const Tell& tell_;
  Traced in_a_, in_b_;
  std::vector<double> noises_;
  std::vector<Depth> depths_a_, depths_b_;
  std::vector<LayerComparison> layers_;
  std::map<size_t, size_t> at_;  // places of sure layers -> their places in layers_
};

/// The layers to show, and the first of them whose difference goes on to an output. One that is gone again after it is
/// no cause: the models compute the same in another way there. Where no name said that it has a counterpart, it has
/// none.
std::vector<LayerComparison> sorted_out(const std::vector<Step>& steps, const std::vector<LayerComparison>& layers,
                                        std::optional<LayerComparison>& first);
/// The layers that differ though nothing does that they are computed from.
std::vector<LayerComparison*> foremost(const std::vector<Step>& steps, const std::vector<LayerComparison*>& layers);

}  // namespace tonnx::judge
