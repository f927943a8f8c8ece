// samples.cpp - compares a model sample by sample with one that takes several at once.
#include "verify/samples.h"

#include <algorithm>

namespace tonnx::judge {
namespace {

constexpr size_t kCounts[] = {2, 3};                     // samples
constexpr double kTimes[] = {2.0, 3.0, 0.5, 0.25, 1.5};  // other sizes, in terms of the fixed one
constexpr size_t kEnough = 2;                            // of those that have to run

bool are_equal(const Tensors& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const TensorPtr& part) {
    return part->dims == parts[0]->dims && part->data.view() == parts[0]->data.view();
  });
}

/// The outputs of samples as one: along the axis that is longer there. One that all samples share stays as it is.
TensorPtr joined_samples(const Tensors& parts, const Tensor& like) {
  const auto& dims = parts[0]->dims;
  if (dims.empty()) return parts[0];
  const auto count = static_cast<int64_t>(parts.size());
  const bool is_uneven =
      std::any_of(parts.begin(), parts.end(), [&](const TensorPtr& part) { return part->dims != dims; });
  if (is_uneven) {
    const bool can_join = std::all_of(parts.begin(), parts.end(), [&](const TensorPtr& part) {
      return part->dims.size() == dims.size() && std::equal(dims.begin() + 1, dims.end(), part->dims.begin() + 1);
    });
    return can_join ? joined_along(parts, 0) : parts[0];
  }
  std::optional<size_t> longer, of_one;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1 && !of_one) of_one = i;
    const bool is_longer = dims.size() == like.dims.size() && dims[i] > 0 && like.dims[i] == count * dims[i];
    if (is_longer && !longer) longer = i;
  }
  if (!longer && like.dims == dims && (dims[0] != 1 || are_equal(parts))) return parts[0];
  return joined_along(parts, longer.value_or(of_one.value_or(0)));
}

Tensors part_of(const std::vector<Tensors>& outputs, size_t k, size_t count) {
  Tensors parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(outputs[i][k]);
  return parts;
}

}  // namespace

bool Samples::Opened::is_batch() const {
  return size == 1 && std::any_of(places.begin(), places.end(), [](const auto& place) { return place.second == 0; });
}

std::optional<size_t> Samples::Opened::axis_of(size_t input) const {
  for (const auto& [number, axis] : places) {
    if (number == input) return axis;
  }
  return std::nullopt;
}

Samples::Samples(Runner& a, Runner& b, const Plan& plan, const Tolerance& tolerance, const Depth& depth,
                 std::vector<std::pair<size_t, size_t>> outputs)
    : a_(a), b_(b), plan_(plan), tolerance_(tolerance), depth_(depth), outputs_(std::move(outputs)) {
  find();
}

/// What is open in the first alone, and in the second alone.
void Samples::find() {
  for (size_t j = 0; j < plan_.pairs().size(); ++j) {
    const size_t i = plan_.pairs()[j];
    const auto &first = plan_.inputs()[i].shape, &second = plan_.others()[j].shape;
    if (!first || !second || first->size() != second->size()) continue;
    for (size_t axis = 0; axis < first->size(); ++axis) {
      for (const bool is_first : {true, false}) {
        const Size& size = is_first ? (*first)[axis] : (*second)[axis];
        const Size& other = is_first ? (*second)[axis] : (*first)[axis];
        if (size.is_number() || !other.is_number()) continue;
        // sizes without a name may differ, but those of first dimensions seldom do
        std::string name = size.text;
        if (name.empty()) name = axis == 0 ? "batch" : fmt::format("{}:{}", i, axis);
        add(is_first ? in_a_ : in_b_, name, other.number, i, axis);
      }
    }
  }
}

void Samples::add(std::vector<Opened>& opened, const std::string& name, int64_t size, size_t input, size_t axis) {
  auto at = std::find_if(opened.begin(), opened.end(), [&](const Opened& one) { return one.name == name; });
  if (at == opened.end()) at = opened.insert(opened.end(), {name, size, {}});
  if (at->size == size) at->places.emplace_back(input, axis);
}

std::vector<SizeCheck> Samples::checks() {
  std::vector<SizeCheck> found;
  if (!in_a_.empty() && !in_b_.empty()) return found;
  bool has_batch = false;
  for (const Opened& one : in_a_.empty() ? in_b_ : in_a_) {
    if (one.is_batch() && !has_batch) {
      has_batch = true;
      found.push_back(compare_samples(one));
    } else if (one.size > 1) {
      found.push_back(run_at_others(one));
    }
  }
  return found;
}

Tensors Samples::run_fixed(const Tensors& feeds) {
  Tensors result;
  const bool is_first = !in_b_.empty();
  const Tensors all = is_first ? a_.run(feeds) : b_.run(plan_.feeds_of_other(feeds));
  for (const auto& [i, j] : outputs_) result.push_back(all.at(is_first ? i : j));
  return result;
}

Tensors Samples::run_open(const Tensors& feeds) {
  Tensors result;
  const bool is_first = in_b_.empty();
  const Tensors all = is_first ? a_.run(feeds) : b_.run(plan_.feeds_of_other(feeds));
  names_ = is_first ? a_.outputs() : b_.outputs();
  for (const auto& [i, j] : outputs_) result.push_back(all.at(is_first ? i : j));
  return result;
}

const std::string& Samples::name_of_output(size_t k) const {
  return names_.at(in_b_.empty() ? outputs_[k].first : outputs_[k].second);
}

/// What is no part of a sample is the same for all of them.
Samples::Drawn Samples::drawn(const Opened& opened, size_t count) {
  Drawn result;
  for (size_t number = 0; number < 3 * count && result.feeds.size() < count; ++number) {
    Tensors feeds = plan_.draw(static_cast<int>(number)).first;
    for (size_t i = 0; i < feeds.size() && !result.feeds.empty(); ++i) {
      if (!opened.axis_of(i)) {
        feeds[i] = result.feeds[0][i];
      } else if (!plan_.is_random()) {
        feeds[i] = rolled(feeds[i], static_cast<int64_t>(number));  // the numbers that were given, in other places
      }
    }
    try {
      result.outputs.push_back(run_fixed(feeds));
      result.feeds.push_back(std::move(feeds));
    } catch (const Failure&) {
      if (result.feeds.empty()) throw;
    }
  }
  return result;
}

/// The open model at two and at three samples, the other once for each of them.
SizeCheck Samples::compare_samples(const Opened& opened) {
  SizeCheck check;
  check.name = opened.name;
  const Drawn samples = drawn(opened, kCounts[1]);
  for (const size_t count : kCounts) {
    if (count > samples.feeds.size()) {
      check.why = "the model with fixed sizes does not run on other samples";
      break;
    }
    if (!compare_at(opened, samples, count, check)) return check;
  }
  bool all_equal = check.why.empty();
  for (size_t k = 0; k < outputs_.size(); ++k)
    all_equal = all_equal && are_equal(part_of(samples.outputs, k, samples.outputs.size()));
  if (all_equal) check.note = "all samples give the same";
  return check;
}

bool Samples::compare_at(const Opened& opened, const Drawn& samples, size_t count, SizeCheck& check) {
  const auto size = static_cast<int64_t>(count);
  Tensors joined, found;
  for (size_t i = 0; i < samples.feeds[0].size(); ++i) {
    const auto axis = opened.axis_of(i);
    joined.push_back(axis ? joined_along(part_of(samples.feeds, i, count), *axis) : samples.feeds[0][i]);
  }
  try {
    found = run_open(joined);
  } catch (const Failure& failure) {
    check.fail(size, failure.text);
    return false;
  }
  check.sizes.push_back(size);
  for (size_t k = 0; k < found.size(); ++k) {
    const TensorPtr wanted = joined_samples(part_of(samples.outputs, k, count), *found[k]);
    OutputComparison output;
    static_cast<Measured&>(output) = measured(*wanted, *found[k], tolerance_, {depth_});
    if (!output.is_same && output.why.empty() && !tolerance_.is_given()) {
      Tensors near;
      for (size_t i = 0; i < count; ++i) near.push_back(run_fixed(perturbed(samples.feeds[i]))[k]);
      const TensorPtr all_near = joined_samples(near, *found[k]);
      static_cast<Measured&>(output) = measured(*wanted, *found[k], tolerance_, {depth_, 1, all_near.get()});
    }
    if (output.is_same) continue;
    output.name = output.counterpart = name_of_output(k);
    check.fail(size, line_of(output));
    return false;
  }
  return true;
}

/// Whether the model with open sizes runs at two other sizes: what it gives there nobody knows.
SizeCheck Samples::run_at_others(const Opened& opened) {
  SizeCheck check;
  check.name = opened.name;
  check.is_compared = false;
  const Tensors usual = plan_.draw(0).first;
  std::string problem;
  for (const double times : kTimes) {
    const auto size = static_cast<int64_t>(static_cast<double>(opened.size) * times);
    if (size < 1 || size == opened.size || check.sizes.size() == kEnough) continue;
    Tensors feeds;
    for (size_t i = 0; i < usual.size(); ++i) {
      std::vector<int64_t> dims(usual[i]->dims.begin(), usual[i]->dims.end());
      for (const auto& [input, axis] : opened.places) {
        if (input == i) dims.at(axis) = size;
      }
      feeds.push_back(spread(usual[i], dims));
    }
    try {
      run_open(feeds);
      check.sizes.push_back(size);
    } catch (const Failure& failure) {
      if (problem.empty()) problem = fmt::format("at {} = {}: {}", opened.name, size, failure.text);
    }
  }
  if (check.sizes.empty() && !problem.empty()) {
    check.is_same = false;
    check.why = problem;
  }
  return check;
}

}  // namespace tonnx::judge
