// window.cpp - maps pages of a file, all at once, for a while.
#include "base/window.h"

#include <sys/mman.h>
#include <unistd.h>

namespace tonnx {

BytesWindow::BytesWindow(const Bytes& bytes) : data_(bytes.data()) {
  constexpr size_t kSmall = size_t{1} << 16;
  const int fd = bytes.owner() ? bytes.owner()->fd() : -1;
  if (fd < 0 || bytes.size() < kSmall) return;
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<size_t>(bytes.data() - bytes.owner()->begin());
  const size_t before = offset % page;
  void* mapping = mmap(nullptr, before + bytes.size(), PROT_READ, MAP_SHARED | MAP_POPULATE, fd,
                       static_cast<off_t>(offset - before));
  if (mapping == MAP_FAILED) return;  // the mapping that there is serves as well
  mapping_ = mapping;
  size_ = before + bytes.size();
  data_ = static_cast<const uint8_t*>(mapping) + before;
}

BytesWindow::~BytesWindow() {
  if (mapping_ != nullptr) munmap(mapping_, size_);
}

}  // namespace tonnx
