// callback.h - a function of the caller's that the library calls.
#pragma once
#include <tonnx/export.h>

#include <utility>

TONNX_BEGIN

template <class Signature>
class Callback;

/// Holds any callable, such as a lambda, as std::function does; that takes as long to compile as this whole
/// interface.
template <class Result, class... Args>
class Callback<Result(Args...)> {
 public:
  Callback() = default;
  Callback(decltype(nullptr)) {}  // NOLINT: nothing is called
  template <class F>
    requires(!__is_same(F, Callback) && requires(F f, Args... args) { f(args...); })
  Callback(F function)  // NOLINT: a lambda is a callback
      : object_(new F(std::move(function))),
        call_([](void* object, Args... args) -> Result { return (*static_cast<F*>(object))(args...); }),
        copy_([](const void* object) -> void* { return new F(*static_cast<const F*>(object)); }),
        destroy_([](void* object) { delete static_cast<F*>(object); }) {}
  Callback(const Callback& other)
      : object_(other.object_ ? other.copy_(other.object_) : nullptr),
        call_(other.call_),
        copy_(other.copy_),
        destroy_(other.destroy_) {}
  Callback(Callback&& other) noexcept { swap(other); }
  Callback& operator=(Callback other) noexcept {
    swap(other);
    return *this;
  }
  ~Callback() {
    if (object_) destroy_(object_);
  }

  explicit operator bool() const { return object_ != nullptr; }
  Result operator()(Args... args) const { return call_(object_, args...); }

 private:
  void swap(Callback& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(call_, other.call_);
    std::swap(copy_, other.copy_);
    std::swap(destroy_, other.destroy_);
  }

  void* object_ = nullptr;
  Result (*call_)(void*, Args...) = nullptr;
  void* (*copy_)(const void*) = nullptr;
  void (*destroy_)(void*) = nullptr;
};

TONNX_END
