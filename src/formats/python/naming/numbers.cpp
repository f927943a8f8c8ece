// numbers.cpp - keeps the numbers of variables that are free.
#include "formats/python/naming/numbers.h"

#include <algorithm>

namespace tonnx::python {

void Numbers::release(int position) {
  for (; !held_.empty() && held_.top().first <= position; held_.pop()) free_.insert(held_.top().second);
}

/// The lowest number, from that one on, that may be free.
int Numbers::first_from(int number) const {
  if (const auto at = free_.lower_bound(number); at != free_.end()) return *at;
  const int beyond = std::max(number, next_);
  return outer_ != nullptr ? outer_->first_from(beyond) : beyond;
}

int Numbers::find(int position, int after, const NeededUntil& needed_until,
                  const std::function<bool(int)>& is_allowed) {
  release(position);
  for (auto at = free_.upper_bound(after); at != free_.end();) {
    const int number = *at, until = needed_until(number);
    if (until > position) {  // it was taken since
      if (until != kAlways) held_.emplace(until, number);
      at = free_.erase(at);
      continue;
    }
    if (is_allowed(number)) return number;
    ++at;
  }
  while (true) {
    const int number = outer_ != nullptr ? outer_->first_from(next_) : next_;
    next_ = number + 1;
    const int until = needed_until(number);
    if (until == kAlways) continue;
    if (until > position) {
      held_.emplace(until, number);
      continue;
    }
    free_.insert(number);
    if (number > after && is_allowed(number)) return number;
  }
}

}  // namespace tonnx::python
