// parallel.cpp - pieces of work for as many threads as there are cores.
#include "base/parallel.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace tonnx {

size_t thread_count() {
  constexpr unsigned kMost = 8;
  static const unsigned count =
      std::clamp(std::thread::hardware_concurrency(), 1U, kMost);  // asks the system each time
  return count;
}

void in_parallel(int64_t count, const std::function<void(int64_t, int64_t)>& use, int64_t cost) {
  constexpr int64_t kWorth = int64_t{1} << 20, kBlock = 1024;
  const int64_t work = count > kWorth || cost > kWorth ? kWorth * 2 : count * cost;
  const auto cores = static_cast<int64_t>(thread_count());
  if (work < kWorth || count < 2 || cores < 2) {
    if (count > 0) use(0, count);
    return;
  }
  int64_t piece = (count + cores - 1) / cores;
  if (count >= cores * kBlock) piece = (piece + kBlock - 1) / kBlock * kBlock;
  std::vector<std::thread> threads;
  int64_t begin = 0;
  for (; begin + piece < count; begin += piece) {
    try {
      threads.emplace_back(use, begin, begin + piece);
    } catch (const std::system_error&) {  // no more threads to be had
      break;
    }
  }
  use(begin, count);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tonnx
