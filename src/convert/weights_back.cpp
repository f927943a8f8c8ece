// weights_back.cpp - undoes what was noted, the last first.
#include "convert/weights_back.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/computed.h"
#include "base/error.h"
#include "base/scratch.h"
#include "convert/inverse.h"
#include "ir/cast_numbers.h"
#include "ir/transposed.h"

namespace tonnx {
namespace {

constexpr int kMostRounds = 6;  // what one sum needs may be what another one gives

Tensor with_bytes(const Tensor& like, Bytes bytes) {
  Tensor result;
  result.dtype = like.dtype;
  result.dims = like.dims;
  result.data = std::move(bytes);
  return result;
}

TensorPtr shared(Tensor tensor) { return std::make_shared<Tensor>(std::move(tensor)); }

/// The bytes in memory.
Bytes made(const Bytes& bytes) {
  if (!is_computed(bytes)) return bytes;
  Scratch room(bytes.size());
  compute_into(bytes, room.data());
  return room.done();
}

bool has_same_bytes(const Bytes& a, const Bytes& b) { return a.size() == b.size() && made(a).view() == made(b).view(); }

/// Numbers of one type as those of another.
Bytes cast_bytes(const Tensor& numbers, DType to) {
  Scratch room(static_cast<size_t>(byte_size(to, numbers.count())));
  for (int64_t i = 0; i < numbers.count(); ++i) {
    const double number = element_as_double(numbers, i);
    set_element_bits(to, room.data(), i, bits_of(to, number));
  }
  return room.done();
}

/// Whether integers are those numbers, but for rounding.
bool has_numbers(const Tensor& integers, const std::vector<double>& numbers) {
  constexpr double kClose = 1e-3;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!(std::fabs(element_as_double(integers, static_cast<int64_t>(i)) - numbers[i]) < kClose)) return false;
  }
  return true;
}

/// How far numbers may be apart that were computed forth and back.
double tolerance_of(DType dtype) {
  if (dtype == DType::Float64) return 1e-10;
  if (dtype == DType::Float32) return 1e-5;
  return dtype == DType::Float16 ? 2e-3 : 2e-2;
}

bool are_close(const Tensor& a, const Tensor& b, double tolerance) {
  double largest = 0;
  for (int64_t i = 0; i < b.count(); ++i) {
    const double number = std::fabs(element_as_double(b, i));
    if (std::isfinite(number)) largest = std::max(largest, number);
  }
  for (int64_t i = 0; i < b.count(); ++i) {
    const double x = element_as_double(a, i), y = element_as_double(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::fabs(x - y) <= tolerance * (std::fabs(y) + 0.01 * largest))) return false;
  }
  return true;
}

}  // namespace

WeightsBack::WeightsBack(const Origins& origins, const std::vector<TensorPtr>& constants) : origins_(&origins) {
  std::vector<const Tensor*> sorted;
  for (const TensorPtr& tensor : constants) {
    if (!tensor->data.empty() && !is_computed(tensor->data)) sorted.push_back(tensor.get());
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const Tensor* a, const Tensor* b) { return a->data.data() < b->data.data(); });
  Run* last = nullptr;
  for (const Tensor* tensor : sorted) {
    const uint8_t* begin = tensor->data.data();
    if (last == nullptr || begin >= last->begin + last->size) {
      last = &runs_[begin];
      last->begin = begin;
    }
    last->size = std::max(last->size, static_cast<size_t>(begin + tensor->data.size() - last->begin));
    last->constants.push_back(tensor);
  }
  for (const Origin& origin : origins.computed) {
    for (size_t i = 0; i < origin.results.size(); ++i) {
      const TensorPtr& result = origin.results[i];
      if (result == nullptr || result->data.empty() || find_run(result->data.data(), 1) != nullptr) continue;
      Run& run = runs_[result->data.data()];
      run.begin = result->data.data();
      run.size = result->data.size();
      run.origin = &origin;
      run.result = i;
      run.before = result;
      computed_.push_back(&run);
    }
  }
}

const WeightsBack::Run* WeightsBack::find_run(const uint8_t* data, size_t size) const {
  const auto next = runs_.upper_bound(data);
  if (next == runs_.begin()) return nullptr;
  const Run& run = std::prev(next)->second;
  return data + size <= run.begin + run.size ? &run : nullptr;
}
WeightsBack::Run* WeightsBack::find_run(const uint8_t* data, size_t size) {
  return const_cast<Run*>(std::as_const(*this).find_run(data, size));
}

bool WeightsBack::knows(const TensorPtr& tensor) const {
  if (const CastNumbers* cast = find_cast(*tensor)) return knows(shared(cast->numbers()));
  return !is_computed(tensor->data) && find_run(tensor->data.data(), tensor->data.size()) != nullptr;
}

std::set<const Tensor*> WeightsBack::constants_of(const TensorPtr& tensor) const {
  if (const CastNumbers* cast = find_cast(*tensor)) return constants_of(shared(cast->numbers()));
  const Run* run = find_run(tensor->data.data(), tensor->data.size());
  std::set<const Tensor*> result;
  if (run == nullptr) return result;
  const uint8_t *begin = tensor->data.data(), *end = begin + tensor->data.size();
  for (const Tensor* constant : run->constants) {
    if (constant->data.data() < end && constant->data.data() + constant->data.size() > begin) result.insert(constant);
  }
  if (run->origin == nullptr) return result;
  for (const TensorPtr& input : run->origin->inputs) {
    if (input != nullptr && !input->data.empty()) result.merge(constants_of(input));
  }
  return result;
}

void WeightsBack::want(std::string name, TensorPtr before, TensorPtr now) {
  if (!knows(before) && has_same_bytes(before->data, now->data)) return;
  wanted_.push_back({std::move(name), std::move(before), std::move(now)});
}

/// Gives the bytes of a run a place of their own, so that parts of them can be set.
void WeightsBack::split(Run& run) {
  if (!run.now.empty()) return;
  run.now.resize(run.size);
  run.given.assign(run.size, !run.whole.empty());
  if (!run.whole.empty())
    compute_into(run.whole, run.now.data());
  else if (run.before != nullptr)
    compute_into(run.before->data, run.now.data());
  else
    std::memcpy(run.now.data(), run.begin, run.size);
  run.whole = {};
}

void WeightsBack::put(const Tensor& place, const Bytes& bytes, const std::string& name) {
  if (place.data.empty()) return;
  if (const CastNumbers* cast = find_cast(place)) {
    const Tensor numbers = cast->numbers();
    return put(numbers, cast_bytes(with_bytes(place, made(bytes)), numbers.dtype), name);
  }
  put_bytes(place.data.data(), place.data.size(), made(bytes), name);
}

void WeightsBack::put_bytes(const uint8_t* data, size_t size, const Bytes& bytes, const std::string& name) {
  Run* run = find_run(data, size);
  if (run == nullptr && std::memcmp(data, bytes.data(), size) == 0) return;
  if (run == nullptr) return fail(name, "it is not a weight of the file alone, and nothing says how it was made");
  const auto at = static_cast<size_t>(data - run->begin);
  if (run->wanted_by.empty() && at == 0 && size == run->size) {
    run->whole = bytes;
  } else if (run->whole.data() != bytes.data() || size != run->size) {
    split(*run);
    for (size_t i = 0; i < size; ++i) {
      has_conflict_ |= run->given[at + i] && run->now[at + i] != bytes.data()[i];
      if (run->given[at + i] && run->now[at + i] != bytes.data()[i])
        return fail(name, fmt::format("it and {} are one weight in the file, and differ", shown(run->wanted_by)));
      run->now[at + i] = bytes.data()[i];
      run->given[at + i] = true;
    }
  }
  run->wanted_by = name;
  put_equal(data, size, bytes, name);
}

/// What was equal, and is the same for the module, stays equal.
void WeightsBack::put_equal(const uint8_t* data, size_t size, const Bytes& bytes, const std::string& name) {
  for (const Equal& equal : origins_->equal) {
    if (equal.kept->data.data() != data || equal.kept->data.size() != size) continue;
    const Tensor now = with_bytes(*equal.kept, bytes);
    put(*equal.dropped, equal.transposed ? bytes_to_write(now, true) : bytes, name);
  }
}

void WeightsBack::put_part(const Tensor& place, const std::vector<bool>& is_given, const std::vector<uint8_t>& bytes,
                           const std::string& name) {
  const auto width = bytes.size() / is_given.size();
  for (size_t i = 0; i < is_given.size();) {
    size_t end = i;
    while (end < is_given.size() && is_given[end]) ++end;
    if (end > i)
      put_bytes(place.data.data() + i * width, (end - i) * width,
                Bytes::own(std::vector<uint8_t>(bytes.begin() + static_cast<ptrdiff_t>(i * width),
                                                bytes.begin() + static_cast<ptrdiff_t>(end * width))),
                name);
    i = std::max(end, i + 1);
  }
}

/// The elements of a run as they are to be.
Tensor WeightsBack::wanted_tensor(const Run& run) const {
  return with_bytes(*run.before, run.now.empty() ? run.whole : Bytes::own(run.now));
}

/// The tensor with the values that it has in the round before.
TensorPtr WeightsBack::now_of(const TensorPtr& tensor) const {
  if (tensor == nullptr || tensor->data.empty()) return tensor;
  if (const CastNumbers* cast = find_cast(*tensor)) {
    const TensorPtr numbers = now_of(shared(cast->numbers()));
    return shared(with_bytes(*tensor, cast_bytes(*numbers, tensor->dtype)));
  }
  const Run* run = find_run(tensor->data.data(), tensor->data.size());
  if (run == nullptr || run->forward == nullptr) return tensor;
  const auto at = static_cast<size_t>(tensor->data.data() - run->begin);
  return shared(with_bytes(*tensor, run->forward->data.slice(at, tensor->data.size())));
}

bool WeightsBack::changes(const Run& run, const Tensor& now) const {
  return !has_same_bytes(run.before->data, now.data);
}

/// Elements that were put into other places go back to theirs. Numbers of the places, moved in the same way, say where
/// each was.
void WeightsBack::undo_move(const Run& run, const Tensor& now) {
  const Origin& origin = *run.origin;
  Tensors inputs = origin.inputs;
  std::vector<int64_t> first;
  int64_t count = 0;
  for (const size_t i : origin.moved) {
    first.push_back(count);
    auto numbers = std::make_shared<Tensor>();
    numbers->dtype = DType::Int32;
    numbers->dims = inputs[i]->dims;
    Scratch room(static_cast<size_t>(inputs[i]->count()) * sizeof(int32_t));
    for (int64_t k = 0; k < inputs[i]->count(); ++k)
      set_element_bits(DType::Int32, room.data(), k, static_cast<uint64_t>(count++));
    numbers->data = room.done();
    inputs[i] = numbers;
  }
  const int bits = info(now.dtype).bits;
  const Tensors moved = bits % 8 == 0 && count < INT32_MAX ? origin.compute(inputs) : Tensors();
  if (moved.size() <= run.result || moved[run.result] == nullptr || moved[run.result]->count() != now.count())
    return replace(run);
  const auto width = static_cast<size_t>(bits / 8);
  for (size_t m = 0; m < origin.moved.size(); ++m) {
    const Tensor& place = *origin.inputs[origin.moved[m]];
    const auto size = static_cast<size_t>(place.count());
    std::vector<bool> is_given(size);
    std::vector<uint8_t> bytes(size * width);
    size_t given = 0;
    for (int64_t k = 0; k < now.count(); ++k) {
      const int64_t at = element_as_int(*moved[run.result], k) - first[m];
      if (at < 0 || at >= place.count()) continue;
      if (!run.given.empty() && !run.given[static_cast<size_t>(k) * width]) continue;
      const uint8_t* from = now.data.data() + static_cast<size_t>(k) * width;
      uint8_t* to = bytes.data() + static_cast<size_t>(at) * width;
      if (is_given[static_cast<size_t>(at)]) {
        if (std::memcmp(from, to, width) != 0) return replace(run);
        continue;
      }
      std::memcpy(to, from, width);
      is_given[static_cast<size_t>(at)] = true;
      ++given;
    }
    if (given == size)
      put(place, Bytes::own(std::move(bytes)), run.wanted_by);
    else if (given > 0)
      put_part(place, is_given, bytes, run.wanted_by);
  }
}

/// Whether a tensor was computed of integers that cannot be what they would have to be: what was computed of it becomes
/// a constant then, and has the very values that are wanted.
bool WeightsBack::is_coarse(const Tensor& tensor) const {
  const Run* run = find_run(tensor.data.data(), 1);
  if (run == nullptr || run->origin == nullptr) return false;
  if (coarse_.contains(run)) return true;
  const auto& inputs = run->origin->inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](const TensorPtr& input) {
    return input != nullptr && !input->data.empty() && input->count() == tensor.count() && is_coarse(*input);
  });
}

/// One input is changed, and the others keep their values: the largest one, and a weight before what was made of some.
bool WeightsBack::undo_elementwise(const Run& run, const Tensor& now) {
  const Origin& origin = *run.origin;
  std::vector<size_t> order;
  Tensors inputs;
  for (size_t i = 0; i < origin.inputs.size(); ++i) {
    const TensorPtr& input = origin.inputs[i];
    inputs.push_back(now_of(input));
    if (input != nullptr && input->count() == now.count() && knows(input) && !is_coarse(*input)) order.push_back(i);
  }
  const auto is_of_others = [&](size_t i) {
    const Run* of = find_run(origin.inputs[i]->data.data(), 1);
    return of == nullptr || !of->wanted_by.empty() || of->origin != nullptr;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return is_of_others(a) < is_of_others(b); });
  for (const size_t i : order) {
    const auto numbers = solve_for_input(origin, i, inputs, now);
    if (!numbers) continue;
    const TensorPtr solved = make_floats(origin.inputs[i]->dtype, origin.inputs[i]->dims, *numbers);
    if (!is_float(solved->dtype) && !has_numbers(*solved, *numbers)) {
      coarse_.insert(&run);
      continue;
    }
    put(*origin.inputs[i], solved->data, run.wanted_by);
    return true;
  }
  return false;
}

/// Where nothing else helps, the result itself becomes a constant of the file.
void WeightsBack::replace(const Run& run) {
  if (run.origin->name.empty() || run.result != 0)
    return fail(run.wanted_by, "it is computed from constants that cannot give these numbers");
  replaced_[run.origin->name] = {shared(wanted_tensor(run)), run.wanted_by};
  replaced_runs_.insert(&run);
}

void WeightsBack::clear() {
  failures_.clear();
  replaced_.clear();
  replaced_runs_.clear();
  for (auto& [begin, run] : runs_) {
    run.whole = {};
    run.now = {};
    run.given = {};
    run.wanted_by.clear();
  }
}

/// Whether anything was computed on the way, so that the result has to be looked at.
bool WeightsBack::go_back() {
  clear();
  for (const Wanted& wanted : wanted_) put(*wanted.before, wanted.now->data, wanted.name);
  bool is_computed_on_the_way = false;
  for (auto at = computed_.rbegin(); at != computed_.rend(); ++at) {
    const Run& run = **at;
    if (run.wanted_by.empty()) continue;
    const Tensor now = wanted_tensor(run);
    if (!run.origin->moved.empty()) {
      undo_move(run, now);
    } else if (changes(run, now)) {
      is_computed_on_the_way = true;
      if (!undo_elementwise(run, now)) replace(run);
    }
  }
  return is_computed_on_the_way;
}

/// What the constants that were found give, wherever something was computed.
void WeightsBack::go_forward() {
  for (auto& [begin, run] : runs_) {
    if (run.origin != nullptr) continue;
    run.forward = nullptr;
    if (run.wanted_by.empty()) continue;
    auto all = std::make_shared<Tensor>();
    all->data = run.now.empty() ? run.whole : Bytes::own(run.now);
    run.forward = std::move(all);
  }
  for (Run* run : computed_) {
    if (replaced_runs_.contains(run)) {
      run->forward = shared(wanted_tensor(*run));
      continue;
    }
    Tensors inputs;
    bool is_other = false;
    for (const TensorPtr& input : run->origin->inputs) {
      inputs.push_back(now_of(input));
      is_other |= inputs.back() != input;
    }
    run->forward = nullptr;
    if (!is_other) continue;
    if (run->origin->compute == nullptr) {
      run->forward = shared(with_bytes(*run->before, cast_bytes(*inputs[0], run->before->dtype)));
      continue;
    }
    const Tensors results = run->origin->compute(inputs);
    if (run->result < results.size() && results[run->result] != nullptr &&
        results[run->result]->data.size() == run->size)
      run->forward = shared(with_bytes(*results[run->result], made(results[run->result]->data)));
  }
}

bool WeightsBack::agrees(const Wanted& wanted) const {
  if (!is_float(wanted.before->dtype)) return true;
  double tolerance = tolerance_of(wanted.before->dtype);
  for (const Tensor* constant : constants_of(wanted.before)) {  // the file may have them in fewer bits
    if (is_float(constant->dtype)) tolerance = std::max(tolerance, tolerance_of(constant->dtype));
  }
  return are_close(*now_of(wanted.before), *wanted.now, tolerance);
}

void WeightsBack::solve() {
  for (int round = 0; round < kMostRounds; ++round) {
    const size_t coarse = coarse_.size();
    const bool is_to_be_looked_at = go_back();
    if (coarse_.size() > coarse) continue;
    if (!is_to_be_looked_at || !failures_.empty()) return;
    go_forward();
    if (std::all_of(wanted_.begin(), wanted_.end(), [&](const Wanted& each) { return agrees(each); })) return;
  }
  for (const Wanted& wanted : wanted_) {
    if (!agrees(wanted)) fail(wanted.name, "no values of the weights that it was computed from give it");
  }
}

TensorPtr WeightsBack::find_new(const TensorPtr& constant) const {
  if (constant->data.empty()) return nullptr;
  const Run* run = find_run(constant->data.data(), constant->data.size());
  if (run == nullptr || run->origin != nullptr || run->wanted_by.empty()) return nullptr;
  const auto at = static_cast<size_t>(constant->data.data() - run->begin);
  const Bytes all = run->now.empty() ? run->whole : Bytes::own(run->now);
  Bytes bytes = all.slice(at, constant->data.size());
  if (std::memcmp(bytes.data(), constant->data.data(), bytes.size()) == 0) return nullptr;
  return shared(with_bytes(*constant, std::move(bytes)));
}

}  // namespace tonnx
