// tensor.cpp - tensors of models, and those of callers.
#include "api/internal.h"
#include "base/computed.h"

namespace tonnx::v1 {
namespace {

/// Memory that a caller keeps for us.
class Borrowed : public core::ByteOwner {
 public:
  Borrowed(std::span<const std::byte> bytes, void* keeper, void (*release)(void*), bool is_own = false)
      : bytes_(bytes), keeper_(keeper), release_(release), is_own_(is_own) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() override {
    if (release_ != nullptr) release_(keeper_);
  }
  const uint8_t* begin() const override { return reinterpret_cast<const uint8_t*>(bytes_.data()); }
  size_t size() const override { return bytes_.size(); }
  bool is_own() const override { return is_own_; }

 private:
  std::span<const std::byte> bytes_;
  void* keeper_;
  void (*release_)(void*);
  bool is_own_;
};

core::TensorPtr tensor_of(DType dtype, std::vector<int64_t> dims, core::Bytes data) {
  auto tensor = std::make_shared<core::Tensor>();
  tensor->dtype = core_of(dtype);
  core::require(dtype != DType::Undefined && static_cast<int>(dtype) < core::kDTypeCount && dtype != DType::String,
                "a tensor of bytes is of a type whose elements are numbers");
  const int64_t wanted = core::byte_size(tensor->dtype, core::count_of(dims));
  core::require(static_cast<uint64_t>(wanted) == data.size(), "a tensor of {} elements of type {} has {} bytes, not {}",
                core::count_of(dims), core::name_of(tensor->dtype), wanted, data.size());
  tensor->dims.assign(dims.begin(), dims.end());
  tensor->data = std::move(data);
  return tensor;
}

core::Bytes owned(std::vector<std::byte> bytes) {
  auto* kept = new std::vector<std::byte>(std::move(bytes));
  const auto owner = std::make_shared<const Borrowed>(
      *kept, kept, [](void* keeper) { delete static_cast<std::vector<std::byte>*>(keeper); });
  return {owner, owner->begin(), owner->size()};
}

}  // namespace

std::span<const std::byte> bytes_of(const core::Tensor& tensor) {
  const auto* first = reinterpret_cast<const std::byte*>(tensor.data.data());
  if (core::is_computed(tensor.data)) {
    const auto& computed = static_cast<const core::ComputedBytes&>(*tensor.data.owner());
    first = reinterpret_cast<const std::byte*>(computed.in_memory().data()) + (tensor.data.data() - computed.begin());
  }
  return {first, tensor.data.size()};
}

DType TensorView::dtype() const { return public_of(open(tensor_).dtype); }
std::span<const int64_t> TensorView::dims() const { return open(tensor_).dims; }
int64_t TensorView::count() const {
  return translated([&] { return open(tensor_).count(); });
}
std::span<const std::byte> TensorView::bytes() const {
  return translated([&] { return bytes_of(open(tensor_)); });
}
std::span<const std::string> TensorView::strings() const { return open(tensor_).strings; }

Tensor::Tensor() : Tensor(new Content{std::make_shared<core::Tensor>()}) {}

Tensor::Tensor(DType dtype, std::vector<int64_t> dims, std::vector<std::byte> bytes)
    : content_(translated([&] { return new Content{tensor_of(dtype, std::move(dims), owned(std::move(bytes)))}; })) {}

Tensor Tensor::borrow(DType dtype, std::vector<int64_t> dims, std::span<const std::byte> bytes, void* keeper,
                      void (*release)(void*)) {
  return translated([&] {
    const auto owner = std::make_shared<const Borrowed>(bytes, keeper, release);
    return Access::tensor(tensor_of(dtype, std::move(dims), {owner, owner->begin(), owner->size()}));
  });
}

Tensor Tensor::adopt(DType dtype, std::vector<int64_t> dims, std::span<const std::byte> bytes, void* keeper,
                     void (*release)(void*)) {
  return translated([&] {
    const auto owner = std::make_shared<const Borrowed>(bytes, keeper, release, /*is_own=*/true);
    return Access::tensor(tensor_of(dtype, std::move(dims), {owner, owner->begin(), owner->size()}));
  });
}

Tensor Tensor::strings(std::vector<int64_t> dims, std::vector<std::string> strings) {
  return translated([&] {
    auto tensor = std::make_shared<core::Tensor>();
    tensor->dtype = core::DType::String;
    core::require(core::count_of(dims) == static_cast<int64_t>(strings.size()), "a tensor of {} strings is given {}",
                  core::count_of(dims), strings.size());
    tensor->dims.assign(dims.begin(), dims.end());
    tensor->strings = std::move(strings);
    return Access::tensor(std::move(tensor));
  });
}

Tensor::Tensor(const TensorView& view) : content_(new Content{std::make_shared<core::Tensor>(open(view.handle()))}) {}

Tensor::Tensor(const Tensor& other) : content_(new Content(*other.content_)) {}
Tensor::Tensor(Tensor&& other) noexcept : content_(std::exchange(other.content_, nullptr)) {}
Tensor& Tensor::operator=(Tensor other) noexcept {
  std::swap(content_, other.content_);
  return *this;
}
Tensor::~Tensor() { delete content_; }
TensorView Tensor::view() const { return view_of(*content_->tensor); }

}  // namespace tonnx::v1
