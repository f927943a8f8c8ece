// judge.cpp - compares two models draw by draw.
#include "verify/judge.h"

#include <algorithm>

#include "base/join.h"
#include "verify/influence.h"
#include "verify/samples.h"

namespace tonnx::judge {
namespace {

constexpr int kDraws = 6;
constexpr size_t kUnprovedDraws = 3;  // where nobody can tell which weights they show
constexpr double kAllWork = 60;       // in seconds of a usual processor, as all work is counted
constexpr double kDrawsWork = 15;     // of it, for draws
constexpr double kLookWork = 40;      // to look into one draw
constexpr double kInsideWork = 10;    // past which no other draw is looked into
constexpr double kRecheckWork = 20;   // to judge the layers of one draw by themselves
constexpr int kIdle = 2;              // draws in a row that show no other weight: more of them are in vain
constexpr int kLeast = 4;             // draws, whatever they show
constexpr double kMagnified = 1000;   // times what is allowed: a model that magnifies rounding by more says nothing
constexpr double kAlike = 0.5;        // the cosine of values that a change of a layer leaves recognisable
constexpr size_t kSuspects = 4;       // layers that differ for which it is found out whether the outputs hide it

using OutputPairs = std::vector<std::pair<size_t, size_t>>;

/// Outputs of the same name, or in the same place where the names say nothing; and what only one model has.
OutputPairs pair_outputs(const std::vector<std::string>& a, const std::vector<std::string>& b,
                         std::vector<std::string>& missing) {
  OutputPairs pairs;
  std::vector<bool> is_taken_a(a.size()), is_taken_b(b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size() && !is_taken_a[i]; ++j) {
      if (is_taken_b[j] || a[i].empty() || b[j].empty() || identifier(a[i]) != identifier(b[j])) continue;
      is_taken_a[i] = is_taken_b[j] = true;
      pairs.emplace_back(i, j);
    }
  }
  std::vector<size_t> left_a, left_b;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!is_taken_a[i]) left_a.push_back(i);
  }
  for (size_t j = 0; j < b.size(); ++j) {
    if (!is_taken_b[j]) left_b.push_back(j);
  }
  const bool fits = left_a.size() == left_b.size();
  for (size_t k = 0; fits && k < left_a.size(); ++k) pairs.emplace_back(left_a[k], left_b[k]);
  std::sort(pairs.begin(), pairs.end());
  missing.clear();
  if (fits) return pairs;
  const auto name_of = [](const std::string& name, size_t place) {
    return name.empty() ? std::to_string(place) : name;
  };
  for (const size_t i : left_a) missing.push_back(name_of(a[i], i) + "  only in the first model");
  for (const size_t j : left_b) missing.push_back(name_of(b[j], j) + "  only in the second model");
  return pairs;
}

/// Of every output the draw in which it comes closest to what is not allowed.
void keep_worst(std::vector<OutputComparison>& kept, const std::vector<OutputComparison>& found) {
  if (kept.size() != found.size()) {
    kept = found;
    return;
  }
  const auto badness = [](const OutputComparison& output) {
    return std::pair(!output.is_same, output.max_abs > 0 ? output.max_abs / std::max(output.atol, 1e-30) : 0.0);
  };
  for (size_t i = 0; i < kept.size(); ++i) {
    if (badness(found[i]) > badness(kept[i])) kept[i] = found[i];
  }
}

class Judge {
 public:
  Judge(Runner& a, Runner& b, const Options& options)
      : a_(a), b_(b), options_(options), known_a_(a.model()), known_b_(b.model()), plan_(a, b, hints(), options.given) {
    tolerance_ = {options.rtol, options.atol, {}};
    const auto add = [&](const Rounding& rounding) {
      tolerance_.precisions.push_back(rounding.precision);
      depth_ = deepest(depth_, rounding.depth);
    };
    for (const Runner* runner : {&a, &b}) add(runner->rounding());
    for (const KnownGraph* known : {&known_a_, &known_b_}) {
      if (known->depths) add(known->depths->whole());
    }
  }

  Report run() {
    ran_ = plan_.find_sizes();
    const Tensors first = plan_.draw(0).first;
    for (size_t i = 0; i < first.size(); ++i) report_.inputs.emplace_back(plan_.inputs()[i].name, type_of(*first[i]));
    report_.is_random = plan_.is_random();
    const int least = plan_.is_random() ? std::max(options_.draws, 1) : 1;
    compare_draws(least, options_.outputs_only || !plan_.is_random() ? least : std::max(least, kDraws));
    if (report_.is_same_outside() && !draws_.empty())
      report_.sizes = Samples(a_, b_, plan_, tolerance_, depth_, pairs_).checks();
    const bool is_hidden = !report_.coverage || !report_.coverage->is_complete();
    const bool looks_inside = report_.is_same_outside() && report_.is_same_at_other_sizes() && is_hidden &&
                              !options_.outputs_only && !tolerance_.is_given();
    if (options_.layers || looks_inside) compare_inside(options_.layers);
    return std::move(report_);
  }

 private:
  /// What the models tell of their inputs: the first one, or the second where nothing is known of the first.
  ModelHints hints() const {
    const Model *const first = a_.model(), *const second = b_.model();
    if (first == nullptr) return second == nullptr ? ModelHints() : hints_of(*second);
    ModelHints found = hints_of(*first);
    if (second != nullptr) take_limits(found, hints_of(*second));
    return found;
  }

  void tell(const char* what, size_t done, size_t all) const {
    if (options_.tell) options_.tell(what, done, all);
  }

  /// Whether the draws so far have shown all that draws can show.
  bool is_complete() const {
    return report_.coverage ? report_.coverage->is_complete() : draws_.size() >= kUnprovedDraws;
  }

  void compare_draws(int least, int most) {
    Work work(kDrawsWork);
    int idle = 0;  // draws that showed nothing new
    for (int number = 0; number < most; ++number) {
      const bool is_idle = idle >= kIdle && number >= kLeast;
      if (number >= least && (is_idle || is_complete())) break;
      if (number >= least && work.is_spent()) {
        report_.left_out.push_back(fmt::format("draws after the first {}: too much work", number));
        break;
      }
      tell("draws of inputs", static_cast<size_t>(number), static_cast<size_t>(most));
      Feeds feeds;
      std::vector<OutputComparison> found;
      try {
        std::tie(feeds, found) = compare_draw(number);
      } catch (const Failure&) {
        if (number == 0) throw;
        continue;  // what was drawn is nothing for these models
      } catch (const CannotRun&) {
        if (number == 0) throw;
        continue;
      }
      draws_.push_back(number);
      report_.draws.emplace_back(plan_.is_random() ? title_of_draw(number) : "given");
      keep_worst(report_.outputs, found);
      if (!report_.is_same_outside() && !is_rounding(feeds)) break;
      const size_t seen = report_.coverage ? report_.coverage->outputs : 0;
      reach_[number] = note_influence(feeds, found, work);
      idle = report_.coverage && report_.coverage->outputs > seen ? 0 : idle + 1;
    }
  }

  std::pair<Feeds, std::vector<OutputComparison>> compare_draw(int number) {
    Feeds feeds = plan_.draw(number);
    try {
      std::vector<OutputComparison> found = compare_outputs(feeds);
      return {std::move(feeds), std::move(found)};
    } catch (const Failure&) {
      if (number == 0 || !plan_.has_choices()) throw;
    }
    ran_ = plan_.find_sizes(number);
    feeds = plan_.draw(number);
    std::vector<OutputComparison> found = compare_outputs(feeds);
    return {std::move(feeds), std::move(found)};
  }

  std::vector<OutputComparison> compare_outputs(const Feeds& feeds) {
    Ran ran;
    if (ran_) {
      ran = *std::exchange(ran_, std::nullopt);
    } else {
      ran.first = a_.run(feeds.first);
      ran.second = b_.run(feeds.second);
    }
    const Tensors &in_a = ran.first, &in_b = ran.second;
    const std::vector<std::string> names_a = a_.outputs(), names_b = b_.outputs();
    require(names_a.size() == in_a.size() && names_b.size() == in_b.size(),
            "a model gives {} and {} outputs, and says that it gives {} and {}", in_a.size(), in_b.size(),
            names_a.size(), names_b.size());
    pairs_ = pair_outputs(names_a, names_b, report_.missing);
    if (options_.may_drop_outputs && pairs_.size() == in_b.size()) report_.missing.clear();
    if (pairs_.empty() && !report_.missing.empty())
      fail_invalid("'{}' and '{}' have no output in common: {}", a_.title(), b_.title(), joined(report_.missing, "; "));
    std::vector<OutputComparison> found;
    Tensors near;
    for (const auto& [i, j] : pairs_) {
      OutputComparison& output = found.emplace_back();
      static_cast<Measured&>(output) = measured(*in_a[i], *in_b[j], tolerance_, {depth_});
      if (!output.is_same && output.why.empty() && !tolerance_.is_given()) {
        if (near.empty()) near = a_.run(perturbed(feeds.first));
        static_cast<Measured&>(output) = measured(*in_a[i], *in_b[j], tolerance_, {depth_, 1, near.at(i).get()});
      }
      output.name = !names_a[i].empty() ? names_a[i] : !names_b[j].empty() ? names_b[j] : fmt::format("output {}", i);
      output.counterpart = names_b[j].empty() ? output.name : names_b[j];
    }
    return found;
  }

  /// Whether outputs differ by rounding alone, which the models magnify from layer to layer. Then every layer does the
  /// same in both where it gets the same, and so do those that compute the outputs.
  bool is_rounding(const Feeds& feeds) {
    if (tolerance_.is_given() || !report_.missing.empty()) return false;
    std::vector<OutputComparison*> wrong;
    for (OutputComparison& output : report_.outputs) {
      if (output.is_same) continue;
      if (!output.why.empty() || !(output.max_abs <= kMagnified * std::max(output.atol, output.rtol))) return false;
      wrong.push_back(&output);
    }
    std::set<std::string> judged;
    try {
      Work work(kLookWork);
      Inside inside = look_inside(feeds, true, work);
      for (const LayerComparison* layer : inside.sure()) {
        if (!layer->is_same) return false;
        judged.insert(layer->name);
      }
    } catch (const Failure&) {
      return false;
    } catch (const TooLong&) {
      return false;
    }
    for (const OutputComparison* output : wrong) {
      if (!judged.contains(output->name)) return false;
    }
    for (OutputComparison* output : wrong) output->is_same = output->is_rounding = true;
    return true;
  }

  size_t note_influence(const Feeds& feeds, const std::vector<OutputComparison>& found, Work& work) {
    Allowed in_a, in_b;
    for (size_t k = 0; k < pairs_.size(); ++k) {
      const std::pair<double, double> allowed(found[k].rtol, found[k].atol);
      in_a.emplace(pairs_[k].first, allowed);
      in_b.emplace(pairs_[k].second, allowed);
    }
    std::optional<Influence> influence = influence_of(b_, feeds.second, in_b, false);
    if (!influence) influence = influence_of(a_, feeds.first, in_a, false);
    if (!influence) return 0;
    work.take(influence->work);
    all_.take(influence->work + 2 * influence->work / 3);  // both models forth, and one of them back
    if (!report_.coverage) report_.coverage.emplace();
    note(*influence, false, *report_.coverage);
    return static_cast<size_t>(std::count_if(influence->moved.begin(), influence->moved.end(),
                                             [](const auto& each) { return each.second.value_or(0) >= 1; }));
  }

  /// At the draw where the outputs differ, or at all until every weight has been seen.
  void compare_inside(bool is_asked) {
    Work all_draws(kInsideWork);
    std::vector<int> telling = draws_;
    if (!report_.is_same_outside()) {
      telling.assign(draws_.end() - std::min<ptrdiff_t>(1, static_cast<ptrdiff_t>(draws_.size())), draws_.end());
    } else {
      std::stable_sort(telling.begin(), telling.end(), [&](int x, int y) { return reach_[x] > reach_[y]; });
    }
    for (const int number : telling) {
      const Feeds feeds = plan_.draw(number);
      Work work = is_asked ? Work() : Work(std::min(kLookWork, all_.left()));
      try {
        Inside inside = look_inside(feeds, report_.is_same_outside(), work);
        if (!keep_layers(inside, feeds, is_asked) || !note_inside(feeds, inside, all_draws)) return;
      } catch (const TooLong&) {
        report_.left_out.emplace_back("values inside: too much work, but for --layers");
        return;
      }
      all_draws.take(work.taken());
      all_.take(work.taken());
      if (number != telling.back() && (all_draws.is_spent() || all_.is_spent())) {
        report_.left_out.emplace_back("values inside at other draws: too much work");
        return;
      }
    }
  }

  /// Says whether other draws are worth a look.
  bool keep_layers(Inside& inside, const Feeds& feeds, bool is_asked) {
    const LayerComparison* hidden = report_.is_same_outside() ? find_hidden(feeds, inside) : nullptr;
    std::optional<LayerComparison> first;
    std::vector<LayerComparison> kept = sorted_out(inside.steps_a(), inside.layers(), first);
    report_.inside = std::max(report_.inside, kept.size());
    if ((is_asked && report_.layers.empty()) || hidden != nullptr) {
      report_.layers = std::move(kept);
      report_.steps.emplace(inside.steps_a().size(), inside.steps_b().size());
      report_.first_difference = first;
    }
    if (hidden != nullptr) {
      report_.first_difference = *hidden;
      report_.is_hidden_difference = true;
      const auto is_hidden = [&](const LayerComparison& layer) { return layer.index == hidden->index; };
      if (std::none_of(report_.layers.begin(), report_.layers.end(), is_hidden)) {
        report_.layers.push_back(*hidden);
        std::sort(report_.layers.begin(), report_.layers.end(),
                  [](const auto& x, const auto& y) { return x.index < y.index; });
      }
    }
    return hidden == nullptr && report_.is_same_outside();
  }

  /// Compares values inside. One by one, a layer differs where it does so by itself: that is asked of those that
  /// differ, and of all in a quantised model, where a step that falls the other way goes on from layer to layer.
  Inside look_inside(const Feeds& feeds, bool one_by_one, Work& work) {
    Inside inside({a_, known_a_}, {b_, known_b_}, plan_, feeds, tolerance_, options_.memory, work, tell_);
    if (tolerance_.is_given() || !one_by_one) return inside;
    const bool is_quantised = tolerance_.is_quantised();
    std::vector<LayerComparison*> suspects;
    for (LayerComparison* layer : inside.sure()) {
      if (is_quantised || !layer->is_same) suspects.push_back(layer);
    }
    const Tolerance strict{{}, {}, {Precision::Float32}};
    Work recheck(options_.layers ? kRecheckWork : std::min(kRecheckWork, all_.left()));
    try {
      inside.recheck(suspects, is_quantised ? strict : tolerance_, recheck);
      all_.take(recheck.taken());
      if (recheck.is_spent() && !suspects.empty())
        report_.left_out.emplace_back("some layers by themselves: too much work");
    } catch (const Failure&) {
      // the first model cannot take other values: what was found before holds
    }
    return inside;
  }

  /// Which weights the values inside depend on; says whether others are left that another draw may reach.
  bool note_inside(const Feeds& feeds, Inside& inside, Work& work) {
    if (!report_.coverage || report_.coverage->is_complete()) return false;
    Coverage& coverage = *report_.coverage;
    Allowed in_a, in_b;
    for (const LayerComparison& layer : inside.layers()) {
      if (!layer.is_same) continue;
      in_a.emplace(layer.index, std::pair(layer.rtol, layer.atol));
      in_b.emplace(layer.counterpart_index, std::pair(layer.rtol, layer.atol));
    }
    std::optional<Influence> influence = influence_of(b_, feeds.second, in_b, true);
    const auto tells = [&](const Influence& found) {
      return std::any_of(found.moved.begin(), found.moved.end(), [&](const auto& moved) {
        return std::any_of(coverage.hidden.begin(), coverage.hidden.end(),
                           [&](const auto& hidden) { return hidden.first == moved.first; });
      });
    };
    if (!influence || !tells(*influence)) influence = influence_of(a_, feeds.first, in_a, true);
    if (!influence) return false;
    work.take(influence->work);
    note(*influence, true, coverage);
    return !coverage.is_complete();
  }

  /// A layer that differs where the outputs do not care. Two models may compute the same in two ways: then the outputs
  /// of the first do change when it gets the value of the second. Where they do not, nothing that was compared after it
  /// says that the difference is none.
  const LayerComparison* find_hidden(const Feeds& feeds, Inside& inside) {
    std::vector<LayerComparison*> suspects = foremost(inside.steps_a(), inside.sure());
    if (suspects.size() > kSuspects) suspects.resize(kSuspects);
    Tensors usual;
    for (const LayerComparison* layer : suspects) {
      const bool is_doubtful = layer->how != How::Name && layer->cosine < kAlike;  // they may be no counterparts at all
      const TensorPtr value = is_doubtful ? nullptr : inside.counterpart(*layer);
      if (!value) continue;
      Tensors changed;
      try {
        changed = a_.run_with(feeds.first, {{layer->index, value}});
      } catch (const Failure&) {
        continue;
      }
      if (usual.empty()) usual = a_.run(feeds.first);
      bool shows = changed.size() != usual.size();
      for (size_t i = 0; i < usual.size() && !shows; ++i)
        shows = !measured(*usual[i], *changed[i], tolerance_, {depth_}).is_same;
      if (!shows) return layer;
    }
    return nullptr;
  }

  Runner &a_, &b_;
  const Options& options_;
  KnownGraph known_a_, known_b_;
  Plan plan_;
  Tolerance tolerance_;
  Depth depth_;
  Tell tell_ = [this](const char* what, size_t done, size_t all) { tell(what, done, all); };
  std::optional<Ran> ran_;  // what both made of the next inputs, where they have run on them
  Report report_;
  Work all_{kAllWork};
  OutputPairs pairs_;
  std::vector<int> draws_;       // those that both models could run
  std::map<int, size_t> reach_;  // how many weights each of them showed
};

}  // namespace

Report judge(Runner& a, Runner& b, const Options& options) { return Judge(a, b, options).run(); }

}  // namespace tonnx::judge
