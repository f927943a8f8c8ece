// plan.cpp - pairs the inputs of two models, chooses their sizes, and draws them.
#include "verify/plan.h"

#include <algorithm>
#include <chrono>

#include "base/join.h"
#include "base/nearest.h"
#include "verify/equations.h"
#include "verify/numbers.h"

namespace tonnx::judge {
namespace {

constexpr int64_t kLargest = int64_t{1} << 31;        // elements of a random input
constexpr int64_t kLargestChosen = int64_t{1} << 24;  // of one whose sizes were chosen
constexpr int kTriesOfSecond = 4;  // sizes at which only the first model runs, before the second is to blame
constexpr std::chrono::seconds kSearch{60}, kLaterSearch{5};

std::vector<std::string> names_of(const std::vector<Input>& inputs) {
  std::vector<std::string> names;
  for (const Input& input : inputs) names.push_back(input.name);
  return names;
}

/// By name, or by place where the names say nothing.
std::vector<size_t> paired(const std::vector<Input>& a, const std::vector<Input>& b, const Runner& first,
                           const Runner& second) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<size_t> result(b.size(), kNone);
  std::vector<bool> is_taken(a.size());
  for (const bool is_exact : {true, false}) {
    for (size_t j = 0; j < b.size(); ++j) {
      for (size_t i = 0; i < a.size() && result[j] == kNone; ++i) {
        const bool is_same = is_exact ? a[i].name == b[j].name : identifier(a[i].name) == identifier(b[j].name);
        if (is_taken[i] || !is_same) continue;
        result[j] = i;
        is_taken[i] = true;
      }
    }
  }
  for (size_t j = 0; j < b.size(); ++j) {
    if (result[j] != kNone) continue;
    const auto left = std::find(is_taken.begin(), is_taken.end(), false);
    if (a.size() != b.size() || left == is_taken.end())
      fail_invalid("input '{}' of '{}' has no counterpart in '{}', which has {}", b[j].name, second.title(),
                   first.title(), joined(names_of(a)));
    *left = true;
    result[j] = static_cast<size_t>(left - is_taken.begin());
  }
  return result;
}

std::string text_of(const std::vector<Size>& shape) {
  std::vector<std::string> sizes;
  for (const Size& size : shape)
    sizes.push_back(size.is_number() ? std::to_string(size.number) : size.text.empty() ? "?" : size.text);
  return joined(sizes);
}

bool fits(const std::vector<Size>& shape, const Tensor& data) {
  if (shape.size() != data.dims.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_number() && shape[i].number != data.dims[i]) return false;
  }
  return true;
}

bool is_too_large(const std::vector<std::vector<int64_t>>& shapes) {
  return std::any_of(shapes.begin(), shapes.end(), [](const auto& shape) { return count_of(shape) > kLargestChosen; });
}

}  // namespace

std::string identifier(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      result += c;
    } else if (!result.empty() && result.back() != '_') {
      result += '_';
    }
  }
  if (!result.empty() && result.back() == '_') result.pop_back();
  return !result.empty() && std::isdigit(static_cast<unsigned char>(result[0])) != 0 ? "n" + result : result;
}

Plan::Plan(Runner& a, Runner& b, const ModelHints& hints, const GivenInputs& given)
    : a_(a), b_(b), inputs_(a.inputs()), others_(b.inputs()), seed_(given.seed), fill_(given.fill) {
  pairs_ = paired(inputs_, others_, a, b);
  take_given(given);
  take_hints(hints);
  for (size_t i = 0; i < inputs_.size(); ++i) dims_.push_back(declared_of(i));
  find_bounds();
  find_open_sizes(hints);
}

const Input* Plan::other_of(size_t input) const {
  const auto at = std::find(pairs_.begin(), pairs_.end(), input);
  return at == pairs_.end() ? nullptr : &others_[static_cast<size_t>(at - pairs_.begin())];
}

/// All names that an input may be given under.
std::vector<std::string> Plan::titles(size_t input) const {
  std::vector<std::string> result{inputs_[input].name, identifier(inputs_[input].name)};
  if (const Input* other = other_of(input)) {
    result.push_back(other->name);
    result.push_back(identifier(other->name));
  }
  return result;
}

void Plan::take_given(const GivenInputs& given) {
  std::set<std::string> used;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    data_.emplace_back();
    given_shapes_.emplace_back();
    for (const std::string& title : titles(i)) {
      const auto data =
          std::find_if(given.data.begin(), given.data.end(), [&](const auto& each) { return each.first == title; });
      if (data != given.data.end() && !data_[i]) {
        data_[i] = data->second;
        used.insert(title);
      }
      const auto shape = given.shapes.find(title);
      if (shape != given.shapes.end() && !given_shapes_[i]) {
        given_shapes_[i] = shape->second;
        used.insert(title);
      }
    }
  }
  const std::vector<std::string> known = names_of(inputs_);
  const auto require_used = [&](const std::string& name) {
    require(used.contains(name), "the model has no input '{}'; it has: {}", name,
            nearest_list(name, Names(known.begin(), known.end())));
  };
  for (const auto& [name, shape] : given.shapes) require_used(name);
  for (const auto& [name, data] : given.data) require_used(name);
  std::vector<std::string> missing;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto& shape = given_shapes_[i];
    if (shape && inputs_[i].shape)
      require(shape->size() == inputs_[i].shape->size(), "input '{}' has {} sizes, and [{}] is given", inputs_[i].name,
              inputs_[i].shape->size(), joined(*shape));
    if (!data_[i]) {
      missing.push_back(inputs_[i].name);
      continue;
    }
    if (inputs_[i].shape)
      require(fits(*inputs_[i].shape, *data_[i]), "input '{}' is of shape [{}] where [{}] is expected", inputs_[i].name,
              joined(data_[i]->dims), text_of(*inputs_[i].shape));
    const DType dtype = inputs_[i].dtype;
    if (dtype == DType::Undefined || dtype == data_[i]->dtype) continue;
    require(is_number(data_[i]->dtype) && is_number(dtype), "input '{}' holds {} where {} is expected", inputs_[i].name,
            name_of(data_[i]->dtype), name_of(dtype));
    data_[i] = converted(data_[i], dtype);
  }
  require(given.data.empty() || missing.empty(), "the inputs given lack {}", joined(missing));
}

/// What the model tells of each input: by name, or by place where there are as many.
void Plan::take_hints(const ModelHints& hints) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::vector<std::string> names = titles(i);
    const auto at = std::find_if(hints.inputs.begin(), hints.inputs.end(), [&](const InputHint& hint) {
      return std::find(names.begin(), names.end(), hint.name) != names.end() ||
             std::find(names.begin(), names.end(), identifier(hint.name)) != names.end();
    });
    InputHint hint;
    if (at != hints.inputs.end()) {
      hint = *at;
    } else if (hints.inputs.size() == inputs_.size()) {
      hint = hints.inputs[i];
    } else {
      hint.is_mask = inputs_[i].name.find("mask") != std::string::npos;
    }
    for (const Input* one : {static_cast<const Input*>(&inputs_[i]), other_of(i)}) {
      if (one != nullptr && one->limit) hint.limit = std::min(hint.limit.value_or(*one->limit), *one->limit);
    }
    hint.name = inputs_[i].name;
    hints_.push_back(std::move(hint));
  }
}

bool Plan::is_random() const {
  return std::any_of(data_.begin(), data_.end(), [](const TensorPtr& data) { return data == nullptr; });
}

bool Plan::has_choices() const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!hints_[i].choices.empty() || inputs_[i].dtype == DType::Bool) return true;
  }
  return false;
}

DType Plan::dtype_of(size_t input) const {
  if (inputs_[input].dtype != DType::Undefined) return inputs_[input].dtype;
  const Input* other = other_of(input);
  return other != nullptr && other->dtype != DType::Undefined ? other->dtype : DType::Float32;
}

bool Plan::has_integers() const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const char kind = info(dtype_of(i)).kind;
    if (!data_[i] && (kind == 'i' || kind == 'u')) return true;
  }
  return false;
}

// Sizes

void Plan::declare(const Size& size, Declared& declared) {
  if (size.is_number()) {
    declared.number = declared.number.value_or(size.number);
  } else if (!size.text.empty()) {
    declared.names.push_back(size.text);
    const auto expression = find_expression(size.text);
    if (expression && !expression->symbol_name() && !expression->is_constant())
      declared.expressions.push_back(*expression);
  }
}

void Plan::require_same_shapes(size_t input) const {
  const Input* other = other_of(input);
  const auto& shape = inputs_[input].shape;
  if (other == nullptr || !shape || !other->shape) return;
  require(shape->size() == other->shape->size(), "input '{}' is of rank {} in one model and {} in the other",
          inputs_[input].name, shape->size(), other->shape->size());
  for (size_t i = 0; i < shape->size(); ++i) {
    const Size &one = (*shape)[i], &two = (*other->shape)[i];
    require(!one.is_number() || !two.is_number() || one.number == two.number,
            "input '{}' has different shapes: [{}] and [{}]", inputs_[input].name, text_of(*shape),
            text_of(*other->shape));
  }
}

std::vector<Plan::Declared> Plan::declared_of(size_t input) const {
  require_same_shapes(input);
  const Input* other = other_of(input);
  const TensorPtr& data = data_[input];
  const auto& given = given_shapes_[input];
  const std::optional<std::vector<Size>>* shape = &inputs_[input].shape;
  if (!*shape && other != nullptr) shape = &other->shape;
  if (!data && !given && !*shape) throw ShapeUnknown{inputs_[input].name};
  const size_t rank = data ? data->dims.size() : given ? given->size() : (*shape)->size();
  std::vector<Declared> result(rank);
  for (size_t d = 0; d < rank; ++d) {
    if (data) {
      result[d].number = data->dims[d];
    } else if (given && (*given)[d] >= 0) {
      result[d].number = (*given)[d];
    }
  }
  const auto declare_all = [&](const std::vector<Size>& sizes) {
    for (size_t d = 0; sizes.size() == rank && d < rank; ++d) declare(sizes[d], result[d]);
  };
  if (inputs_[input].shape) declare_all(*inputs_[input].shape);
  if (other != nullptr && other->shape) declare_all(*other->shape);
  const auto& known = hints_[input].shape;
  for (size_t d = 0; known && known->size() == rank && d < rank; ++d) {
    const Dim& dim = (*known)[d];
    declare(dim.is_constant() ? Size{*dim.constant(), {}} : Size{-1, dim.text()}, result[d]);
  }
  return result;
}

/// What the programs allow the sizes to be; sizes that are one in either model are one.
void Plan::find_bounds() {
  std::map<std::string, SizeRange> ranges;
  for (const Runner* runner : {&a_, &b_}) {
    for (const SizeRange& range : runner->ranges()) {
      SizeRange& bound = ranges.try_emplace(range.name, range).first->second;
      bound.low = std::max(bound.low, range.low);
      bound.high = std::min(bound.high, range.high);
    }
  }
  for (const auto& dims : dims_) {
    for (const Declared& dim : dims) {
      SizeRange all;
      bool is_bounded = false;
      for (const std::string& name : dim.names) {
        const auto at = ranges.find(name);
        if (at == ranges.end()) continue;
        is_bounded = true;
        all.low = std::max(all.low, at->second.low);
        all.high = std::min(all.high, at->second.high);
      }
      for (const std::string& name : dim.names) {
        if (is_bounded) bounds_[name] = all;
      }
    }
  }
  for (const auto& [name, range] : ranges) bounds_.try_emplace(name, range);
}

int64_t Plan::bounded(const std::string& name, int64_t size) const {
  const auto at = bounds_.find(name);
  return at == bounds_.end() ? size : std::clamp(size, at->second.low, std::max(at->second.low, at->second.high));
}

/// `past + sequence` is the sum of two sizes that have names of their own.
void Plan::drop_composed(std::map<std::string, SizePlace>& names) const {
  for (const auto& dims : dims_) {
    for (const Declared& dim : dims) {
      for (const Dim& expression : dim.expressions) {
        const std::set<std::string> used = names_in(expression);
        const bool is_composed = std::all_of(used.begin(), used.end(), [&](const std::string& name) {
          return names.contains(name) && std::find(dim.names.begin(), dim.names.end(), name) == dim.names.end();
        });
        if (!is_composed || dim.number) continue;
        for (const std::string& name : dim.names) names.erase(name);
      }
    }
  }
}

/// All open sizes, where each is declared first, and those that are not open.
void Plan::find_open_sizes(const ModelHints& hints) {
  std::map<std::string, SizePlace> names;
  SizesByName fixed;
  for (const auto& dims : dims_) {
    for (size_t d = 0; d < dims.size(); ++d) {
      for (const std::string& name : dims[d].names) {
        names.try_emplace(name, SizePlace{d, dims.size()});
        if (dims[d].number) fixed.try_emplace(name, *dims[d].number);
      }
    }
  }
  drop_composed(names);
  SizesByName known = solved(hints.equations, names, fixed);
  if (!known.empty()) {
    known.insert(fixed.begin(), fixed.end());
    candidates_ = size_choices(names, hints.needs, known);
  }
  for (SizeChoice& choice : size_choices(names, hints.needs, fixed)) candidates_.push_back(std::move(choice));
}

int64_t Plan::size_of(const Declared& dim, size_t place, size_t rank, SizesByName& sizes, const SizeRule& rule) const {
  std::optional<int64_t> size = dim.number;
  for (const std::string& name : dim.names) {
    if (const auto at = sizes.find(name); at != sizes.end() && !size) size = at->second;
  }
  for (const Dim& expression : dim.expressions) {
    if (size) break;
    for (const std::string& name : names_in(expression))
      sizes.try_emplace(name, bounded(name, std::max<int64_t>(rule(place, rank), 2)));
    const auto value = value_of(expression, sizes);
    if (value && *value >= 0) size = value;
  }
  if (!size) size = rule(place, rank);
  for (const std::string& name : dim.names) sizes.try_emplace(name, *size);
  return *size;
}

Plan::Shapes Plan::shapes_of(const Choice& choice) const {
  SizesByName sizes;
  for (const auto& [name, size] : choice.sizes) sizes[name] = bounded(name, size);
  for (const auto& dims : dims_) {  // what is fixed is what it is
    for (const Declared& dim : dims) {
      for (const std::string& name : dim.names) {
        if (dim.number) sizes[name] = *dim.number;
      }
    }
  }
  Shapes shapes;
  for (const std::vector<Declared>& dims : dims_) {
    std::vector<int64_t>& shape = shapes.emplace_back();
    for (size_t d = 0; d < dims.size(); ++d) shape.push_back(size_of(dims[d], d, dims.size(), sizes, choice.rule));
  }
  return shapes;
}

/// How long a sequence is: the largest size that is open in an input of several dimensions.
int64_t Plan::length_of(const Shapes& shapes) const {
  int64_t length = 1;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (hints_[i].is_length || shapes[i].size() < 2) continue;
    size_t place = 1;
    for (size_t d = shapes[i].size() - 1; d > 0; --d) {
      if (!dims_[i][d].number) place = d;
    }
    length = std::max(length, shapes[i][place]);
  }
  return length;
}

Tensors Plan::made(int number, const Choice& choice) const {
  const Shapes shapes = shapes_of(choice);
  const int64_t length = length_of(shapes);
  Tensors result;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (data_[i]) {
      result.push_back(data_[i]);
      continue;
    }
    const bool is_possible = std::all_of(shapes[i].begin(), shapes[i].end(), [](int64_t size) { return size >= 0; });
    require(is_possible && count_of(shapes[i]) <= kLargest, "input '{}' cannot be of shape [{}]", inputs_[i].name,
            joined(shapes[i]));
    const uint64_t seed = seed_ + static_cast<uint64_t>(number) * 1000 + i;
    result.push_back(
        random_tensor(dtype_of(i), shapes[i], hints_[i], {number, seed, length, choice.is_cautious, fill_}));
  }
  return result;
}

Feeds Plan::draw(int number) const {
  const auto own = choices_.find(number);
  const auto usual = choices_.find(0);
  const Choice none;
  const Choice& choice = own != choices_.end() ? own->second : usual != choices_.end() ? usual->second : none;
  Feeds feeds;
  feeds.first = is_random() ? made(number, choice) : data_;
  feeds.second = feeds_of_other(feeds.first);
  return feeds;
}

Tensors Plan::feeds_of_other(const Tensors& feeds) const {
  Tensors result;
  for (size_t j = 0; j < others_.size(); ++j) result.push_back(converted(feeds[pairs_[j]], others_[j].dtype));
  return result;
}

Ran Plan::find_sizes(int number) {
  if (!is_random()) {
    const Feeds feeds = draw(number);
    Tensors first = a_.run(feeds.first);
    return {std::move(first), b_.run(feeds.second)};
  }
  const auto end = std::chrono::steady_clock::now() + (number == 0 ? kSearch : kLaterSearch);
  std::optional<Failure> of_first, of_second;
  int tries_of_second = 0;
  for (const bool is_cautious : {false, true}) {
    if (is_cautious && !has_integers()) break;
    std::set<Shapes> seen;
    for (const SizeChoice& candidate : candidates_) {
      const Choice choice{candidate.sizes, candidate.rule, is_cautious};
      const Shapes shapes = shapes_of(choice);
      if ((!seen.empty() && is_too_large(shapes)) || !seen.insert(shapes).second) continue;
      const Tensors feeds = made(number, choice);
      try {
        Tensors first = a_.run(feeds);
        try {
          Tensors second = b_.run(feeds_of_other(feeds));
          choices_[number] = choice;
          return {std::move(first), std::move(second)};
        } catch (const Failure& failure) {
          if (!of_second) of_second = failure;
          ++tries_of_second;
        }
      } catch (const Failure& failure) {
        if (!of_first) of_first = failure;
      }
      const bool is_late = std::chrono::steady_clock::now() > end;
      if (tries_of_second < kTriesOfSecond && !is_late) continue;
      if (of_second) throw *of_second;
      throw CannotRun{*of_first};
    }
  }
  if (of_second) throw *of_second;
  throw CannotRun{*of_first};
}

}  // namespace tonnx::judge
