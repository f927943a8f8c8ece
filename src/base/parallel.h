// parallel.h - work that is shared by threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tonnx {

/// How many threads are worth having: as many as there are cores, and not more than a few.
size_t thread_count();

/// Calls `use(begin, end)` for pieces of [0, count), on several threads where `count * cost` is past a million; `cost`
/// is how many simple steps one of them takes. Pieces begin at multiples of 1,024 where `count` is that large. `use`
/// must not throw.
void in_parallel(int64_t count, const std::function<void(int64_t, int64_t)>& use, int64_t cost = 1);

}  // namespace tonnx
