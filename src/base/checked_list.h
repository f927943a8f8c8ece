// checked_list.h - a list whose length a file decides: an index beyond it is an error of the file, wherever it is used.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tonnx {

/// Throws InvalidModel: the list has only `size` elements.
[[noreturn]] void fail_index(size_t index, size_t size);

template <class T>
class CheckedList : public std::vector<T> {
  using Base = std::vector<T>;

 public:
  using Base::Base;
  CheckedList() = default;
  CheckedList(Base list) : Base(std::move(list)) {}  // NOLINT: a list is one

  T& operator[](size_t i) { return data()[checked(i)]; }
  const T& operator[](size_t i) const { return data()[checked(i)]; }
  T& at(size_t i) { return (*this)[i]; }
  const T& at(size_t i) const { return (*this)[i]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size() - 1]; }
  const T& back() const { return (*this)[size() - 1]; }
  void pop_back() {
    checked(0);
    Base::pop_back();
  }

  // Parts of it; `count` may come from a file as well.
  CheckedList first(int64_t count) const { return CheckedList(this->begin(), this->begin() + part(count)); }
  CheckedList last(int64_t count) const { return CheckedList(this->end() - part(count), this->end()); }
  CheckedList without_last(int64_t count) const { return CheckedList(this->begin(), this->end() - part(count)); }
  void insert_at(int64_t place, T item) { this->insert(this->begin() + part(place), std::move(item)); }
  void erase_at(int64_t place) {
    checked(static_cast<size_t>(place));
    this->erase(this->begin() + place);
  }
  void append(const Base& more) { this->insert(this->end(), more.begin(), more.end()); }

  using Base::data;
  using Base::size;

 private:
  size_t checked(size_t i) const {
    if (i >= size()) [[unlikely]]
      fail_index(i, size());
    return i;
  }
  std::ptrdiff_t part(int64_t count) const {
    if (count < 0 || static_cast<size_t>(count) > size()) [[unlikely]]
      fail_index(static_cast<size_t>(count), size());
    return count;
  }
};

using Ints = CheckedList<int64_t>;

}  // namespace tonnx
