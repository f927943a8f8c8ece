// open.cpp - Reshape, Flatten, Expand and Squeeze of a tensor that has an open size.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/frame/node_view.h"
#include "ops/shape/rows.h"

namespace tonnx {
namespace {

/// Deals out the parts of the input's dimensions, in their order, to the dimensions of the output.
class Dealer {
 public:
  Dealer(OpenNode& n, const std::vector<SizeParts>& from, const Shape& to)
      : n_(n), to_(to), case_(text_of(*n.fixed_shape(0)) + text_of(to)), dealt_(to.size()) {
    for (const SizeParts& parts : from) {
      for (const SizePart& part : parts) {
        if (!(part.now.is(1) && part.fixed.is(1))) left_.push_back(part);
      }
    }
  }

  std::vector<SizeParts> deal() {
    for (size_t j = 0; j < to_.size(); ++j) {
      Dim need = to_[j];
      if (need.is(1)) take_single(j);
      while (!need.is(1)) need = take(j, need);
    }
    for (; at_ < left_.size(); ++at_) {  // what is left was 1
      if (!left_[at_].fixed.is(1) || dealt_.empty()) fail();
      dealt_.back().push_back(left_[at_]);
    }
    return std::move(dealt_);
  }

 private:
  [[noreturn]] void fail() const {
    n_.refuse(fmt::format("nothing tells which of the sizes {} follow the open size of its input", text_of(to_)));
  }

  /// A dimension of 1 takes one that was 1 and is open now, where it is next.
  void take_single(size_t j) {
    if (at_ < left_.size() && left_[at_].fixed.is(1)) dealt_[j].push_back(left_[at_++]);
  }

  /// Joins the next part with the one behind it: sizes inside a sample are dealt out anew. Only what stays fixed.
  void join_next() {
    SizePart& part = left_[at_];
    if (at_ + 1 == left_.size()) fail();
    SizePart& next = left_[at_ + 1];
    if (!(part.now == part.fixed) || !(next.now == next.fixed)) fail();
    const Dim size = part.fixed * next.fixed;
    next = {size, size};
    ++at_;
  }

  /// Takes the next part, or its outer part, and gives what the dimension still needs.
  Dim take(size_t j, const Dim& need) {
    if (at_ == left_.size()) fail();
    SizePart& part = left_[at_];
    if (part.fixed.is(1)) {
      // An open dimension that was 1 and that has no place of its own in the output belongs to the dimension before it,
      // or to the one after it: [9, 1, 32] as [9, 4, 8] may be [9, batch * 4, 8].
      const bool is_between = dealt_[j].empty() && j > 0 && !dealt_[j - 1].empty();
      const bool joins_previous = is_between && n_.choose("join " + case_, 2) == 0;
      dealt_[joins_previous ? j - 1 : j].push_back(part);
      ++at_;
      return need;
    }
    if (const auto rest = exact_div(need, part.fixed)) {
      dealt_[j].push_back(part);
      ++at_;
      return *rest;
    }
    const auto inner = exact_div(part.fixed, need);
    if (!inner) {
      join_next();
      return need;
    }
    if (part.now == part.fixed) {
      dealt_[j].push_back({need, need});
      part = {*inner, *inner};
    } else {  // the outer part varies: windows, patches and heads keep their size
      const auto outer = exact_div(part.now, *inner);
      dealt_[j].push_back({outer ? *outer : floor_div(part.now, *inner), need});
      part = {*inner, *inner};
    }
    return 1;
  }

  OpenNode& n_;
  const Shape& to_;
  std::string case_;
  std::vector<SizeParts> dealt_;
  std::vector<SizePart> left_;
  size_t at_ = 0;
};

Dim size_of(const SizeParts& parts) {
  Dim size = 1;
  for (const SizePart& part : parts) size = size * part.now;
  return size;
}

Shape sizes_of(const std::vector<SizeParts>& parts) {
  Shape result;
  for (const SizeParts& each : parts) result.push_back(size_of(each));
  return result;
}

/// What the list of a Reshape gives; nothing where that cannot be told, or cannot be.
std::optional<Shape> asked_shape(const Shape& from, const Dims& list, bool zero_is_zero) {
  Shape result;
  Dim others = 1;
  std::optional<size_t> rest;
  for (size_t i = 0; i < list.size(); ++i) {
    Dim size = list[i];
    if (size.is(0) && !zero_is_zero) {
      if (i >= from.size()) return std::nullopt;
      size = from[i];
    }
    if (size.is(-1)) {
      rest = i;
    } else {
      others = others * size;
    }
    result.push_back(size);
  }
  const Dim count = count_of(from);
  if (!rest) return others == count ? std::optional(result) : std::nullopt;
  if (others.is(0)) return std::nullopt;
  const auto size = exact_div(count, others);
  if (!size) return std::nullopt;
  result[*rest] = *size;
  return result;
}

bool is_constant_list(const Dims& list) {
  return std::all_of(list.begin(), list.end(), [](const Dim& size) { return size.is_constant(); });
}

/// The list that gives these sizes, with as few sizes that have to be computed as can be.
Dims list_for(const Shape& from, const Shape& to, bool zero_is_zero) {
  Dims list(to.begin(), to.end());
  const auto stays = [&](size_t i) { return !zero_is_zero && i < from.size() && from[i] == to[i]; };
  size_t others = 0;
  for (size_t i = 0; i < to.size(); ++i) others += to[i].is_constant() || stays(i) ? 0 : 1;
  const auto open =
      static_cast<size_t>(std::count_if(to.begin(), to.end(), [](const Dim& size) { return !size.is_constant(); }));
  const bool has_zero = std::any_of(to.begin(), to.end(), [](const Dim& size) { return size.is(0); });
  if (open == 1 && !has_zero) {
    for (Dim& size : list) size = size.is_constant() ? size : Dim(-1);
  } else if (others <= 1 && !has_zero) {
    for (size_t i = 0; i < to.size(); ++i) {
      if (!to[i].is_constant()) list[i] = stays(i) ? Dim(0) : Dim(-1);
    }
  }
  return list;
}

/// Sizes that were 1 and stand behind others in the input, but in front of them in the output: the exporter, or a tool
/// after it, wrote a Transpose that moves nothing as a Reshape. The permutation that brings them to their places.
std::optional<std::vector<int64_t>> find_hidden_transpose(const OpenNode& n, const Shape& now, const Shape& fixed,
                                                          const Shape& to) {
  std::optional<size_t> open;
  for (size_t i = 0; i < now.size(); ++i) {
    if (!n.is_open(now[i]) || !fixed[i].is(1)) continue;
    if (open) return std::nullopt;
    open = i;
  }
  if (!open || *open == 0) return std::nullopt;
  // the sizes behind which it stands now, and the place of a 1 in the output; those in front of it must fit
  Dim before = count_of(Shape(fixed.begin(), fixed.begin() + static_cast<std::ptrdiff_t>(*open)));
  Dim passed = 1;
  std::optional<size_t> place;
  for (size_t j = 0; j < to.size(); ++j) {
    if (to[j].is(1) && passed == before) return std::nullopt;  // it has its place
    if (to[j].is(1) && !place) place = j;
    passed = passed * to[j];
  }
  if (!place) return std::nullopt;
  Dim wanted = count_of(Shape(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(*place)));
  Dim in_front = 1;
  for (size_t i = 0; i <= now.size(); ++i) {
    if (i == *open) continue;
    if (in_front == wanted) {
      std::vector<int64_t> permutation(now.size());
      std::iota(permutation.begin(), permutation.end(), 0);
      permutation.erase(permutation.begin() + static_cast<std::ptrdiff_t>(*open));
      const size_t at = i > *open ? i - 1 : i;
      permutation.insert(permutation.begin() + static_cast<std::ptrdiff_t>(at), static_cast<int64_t>(*open));
      return permutation;
    }
    if (i < now.size()) in_front = in_front * fixed[i];
  }
  return std::nullopt;
}

}  // namespace

void open_reshape(OpenNode& n) {
  const Shape *now = n.shape(0), *fixed = n.fixed_shape(0), *to = n.fixed_output();
  const auto list = n.list(1, "shape");
  if (now == nullptr || fixed == nullptr || to == nullptr) {
    const bool says_nothing = list && is_constant_list(*list) && n.depends_on_data(0) &&
                              std::none_of(list->begin(), list->end(), [](const Dim& size) { return size.is(-1); });
    if (says_nothing) n.refuse("the sizes are constants, and nothing is known of the tensor that gets them");
    return;
  }
  if (!list || !n.is_open(now)) return;
  const Attribute* allow_zero = n.node().find_attribute("allowzero");
  const auto* flag = allow_zero ? allow_zero->value.get<int64_t>() : nullptr;
  const bool zero_is_zero = flag != nullptr && *flag != 0;
  const auto asked = asked_shape(*now, *list, zero_is_zero);
  // sizes that the model computes are those that its author meant
  const bool is_meant = asked && !is_constant_list(*list);
  const auto permutation = is_meant ? std::nullopt : find_hidden_transpose(n, *now, *fixed, *to);
  if (permutation && n.choose("move " + text_of(*fixed) + text_of(*to), 2) == 0) {
    n.transpose(0, *permutation);
    return open_reshape(n);
  }
  std::vector<SizeParts> parts;
  if (is_meant) {
    for (size_t j = 0; j < asked->size(); ++j) parts.push_back({{(*asked)[j], (*to)[j]}});
    try {
      std::vector<SizeParts> dealt = Dealer(n, n.parts(0), *to).deal();
      if (sizes_of(dealt) == *asked) parts = std::move(dealt);
    } catch (const Error&) {  // the order of the parts is not known then
    }
    return n.set_parts(0, std::move(parts));
  }
  parts = Dealer(n, n.parts(0), *to).deal();
  const Shape wanted = sizes_of(parts);
  if (!asked || !(*asked == wanted)) n.set_list(1, "shape", list_for(*now, wanted, zero_is_zero));
  n.set_parts(0, std::move(parts));
}

void open_flatten(OpenNode& n) {
  const Shape *now = n.shape(0), *fixed = n.fixed_shape(0);
  if (now == nullptr || fixed == nullptr || !n.is_open(now)) return;
  const Attribute* given = n.node().find_attribute("axis");
  const auto* number = given ? given->value.get<int64_t>() : nullptr;
  const auto rank = static_cast<int64_t>(now->size());
  const int64_t axis = number == nullptr ? 1 : *number < 0 ? *number + rank : *number;
  if (axis < 0 || axis > rank) return;
  // rows that were one are as many as the open size now
  auto first = static_cast<size_t>(axis);
  if (axis == 0 && n.is_open((*now)[0]) && (*fixed)[0].is(1)) {
    first = 1;
    n.node().set_attribute("axis", int64_t{1});
    n.node().mark_changed();
  }
  std::vector<SizeParts> joined(2);
  const std::vector<SizeParts> parts = n.parts(0);
  for (size_t i = 0; i < parts.size(); ++i) {
    SizeParts& into = joined[i < first ? 0 : 1];
    for (const SizePart& part : parts[i]) {
      if (!(part.now.is(1) && part.fixed.is(1))) into.push_back(part);
    }
  }
  n.set_parts(0, std::move(joined));
}

void open_expand(OpenNode& n) {
  const Shape *now = n.shape(0), *to = n.fixed_output();
  const auto list = n.list(1, "shape");
  if (now == nullptr || to == nullptr || !list || !n.is_open(now)) return;
  Dims wanted = *list;
  bool changes = false;
  for (size_t back = 1; back <= std::min(wanted.size(), now->size()); ++back) {
    Dim& asked = wanted[wanted.size() - back];
    const Dim& size = (*now)[now->size() - back];
    if (!n.is_open(size) || asked.is(1) || asked == size || !asked.is_constant()) continue;
    if (!(n.fixed(size) == asked))
      n.refuse(fmt::format("a size of {} is spread to {}, which only a size of 1 can be", size.text(), asked.text()));
    asked = 1;
    changes = true;
  }
  if (changes) n.set_list(1, "shape", wanted);
}

void open_squeeze(OpenNode& n) {
  const Shape *now = n.shape(0), *fixed = n.fixed_shape(0);
  if (now == nullptr || fixed == nullptr || !n.is_open(now)) return;
  const auto rank = static_cast<int64_t>(now->size());
  const auto list = n.list(1, "axes");
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool is_asked =
        list ? std::any_of(list->begin(), list->end(), [&](const Dim& axis) { return axis.is(i) || axis.is(i - rank); })
             : (*fixed)[at].is(1);
    if (!is_asked) continue;
    if (n.is_open((*now)[at]))
      n.refuse(fmt::format("axis {} is taken away, and its size {} is open", i, (*now)[at].text()));
    axes.push_back(i);
  }
  // without axes it would take away whatever is 1 at run time
  if (!list) n.set_list(1, "axes", Dims(axes.begin(), axes.end()));
}

}  // namespace tonnx
