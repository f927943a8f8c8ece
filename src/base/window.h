// window.h - a look at bytes of a file that leaves no memory behind.
#pragma once
#include "base/bytes.h"

namespace tonnx {

/// Bytes to be looked at once, in order. Where they lie in a file their pages are mapped anew, all at once, and given
/// back at the end: so they hold no memory, and are not found one by one.
class BytesWindow {
 public:
  explicit BytesWindow(const Bytes& bytes);
  BytesWindow(const BytesWindow&) = delete;
  BytesWindow& operator=(const BytesWindow&) = delete;
  ~BytesWindow();
  const uint8_t* data() const { return data_; }

 private:
  const uint8_t* data_;
  void* mapping_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tonnx
