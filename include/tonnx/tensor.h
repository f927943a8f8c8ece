// tensor.h - element types, types of values, and tensors: those of a model, seen where they are, and one's own.
#pragma once
#include <tonnx/export.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

TONNX_BEGIN

/// Element types, numbered as in ONNX.
enum class DType : uint8_t {
  Undefined = 0,
  Float32 = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Float64 = 11,
  UInt32 = 12,
  UInt64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BFloat16 = 16,
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  UInt4 = 21,
  Int4 = 22,
  Float4E2M1 = 23,
  Float8E8M0 = 24,
  UInt2 = 25,
  Int2 = 26,
  Float6E2M3 = 27,
  Float6E3M2 = 28,
};
/// `float32`, `int64`, `bfloat16`: as numpy has it.
TONNX_API std::string_view name_of(DType dtype);
TONNX_API std::optional<DType> find_dtype(std::string_view name);
/// `float32`, `float8_e4m3fn`: as PyTorch has it; empty where it has no such type.
TONNX_API std::string_view torch_name_of(DType dtype);
TONNX_API std::optional<DType> find_torch_dtype(std::string_view name);
/// Of one element; 0 for strings.
TONNX_API int bits_of(DType dtype);

/// A size: a number; or a name, or an expression over names such as `2*batch`, for one that the run decides.
struct Dim {
  Dim(int64_t size = 0) : number(size) {}                       // NOLINT: a number is a size
  Dim(int size) : number(size) {}                               // NOLINT
  Dim(const char* name) : number(-1), text(name) {}             // NOLINT: so is a name
  Dim(std::string name) : number(-1), text(std::move(name)) {}  // NOLINT

  bool is_number() const { return number >= 0; }
  TONNX_API bool operator==(const Dim& other) const;

  int64_t number;    ///< -1 where it is no number
  std::string text;  ///< empty where it is a number, or where nothing is known
};

/// What a value is.
struct Type {
  enum class Kind : uint8_t {
    Unknown,
    Tensor,
    SparseTensor,
    Sequence,  ///< of elements[0]
    Map,       ///< from dtype to elements[0]
    Optional,  ///< of elements[0]
    Opaque,
    Int,  ///< plain numbers, in programs of PyTorch only
    Float,
    Bool,
    IntList,
  };
  Kind kind = Kind::Unknown;
  DType dtype = DType::Undefined;
  std::optional<std::vector<Dim>> shape;  ///< nothing: not even the number of dimensions is known
  std::vector<Type> elements;

  TONNX_API static Type tensor(DType dtype, std::vector<Dim> shape);
  TONNX_API bool operator==(const Type& other) const;
};
/// `float32[batch, 3]`.
TONNX_API std::string text_of(const Type& type);

namespace detail {
struct Tensor;  // never defined, as the others of this namespace: what views point to
}

/// A constant of a model, where it is: mostly in the mapped file. Valid as long as the model is there and is not
/// changed.
class TONNX_API TensorView {
 public:
  explicit TensorView(const detail::Tensor* tensor) : tensor_(tensor) {}

  DType dtype() const;
  std::span<const int64_t> dims() const;
  /// The number of elements.
  int64_t count() const;
  /// Little-endian, dense, row by row; types smaller than a byte are packed, lowest bits first. Empty for strings.
  /// A weight that was scaled or cast by simplify() is computed when it is first asked for, and kept.
  std::span<const std::byte> bytes() const;
  std::span<const std::string> strings() const;

  const detail::Tensor* handle() const { return tensor_; }

 private:
  const detail::Tensor* tensor_;
};

/// A tensor of one's own: an element type, sizes, and bytes, which are its own or somebody else's.
class TONNX_API Tensor {
 public:
  Tensor();
  /// Takes the bytes. Throws Error where there are not as many as the sizes say.
  Tensor(DType dtype, std::vector<int64_t> dims, std::vector<std::byte> bytes);
  /// A copy of the elements: `Tensor::of<float>(DType::Float32, {2, 2}, {1, 2, 3, 4})`.
  template <class T>
  static Tensor of(DType dtype, std::vector<int64_t> dims, const std::vector<T>& elements) {
    const auto* first = reinterpret_cast<const std::byte*>(elements.data());
    return Tensor(dtype, std::move(dims), std::vector<std::byte>(first, first + elements.size() * sizeof(T)));
  }
  /// Bytes that stay where they are. `release(keeper)` is called when nobody needs them any more.
  static Tensor borrow(DType dtype, std::vector<int64_t> dims, std::span<const std::byte> bytes, void* keeper = nullptr,
                       void (*release)(void*) = nullptr);
  /// The same of bytes that nobody else looks at or writes to from now on, as if they had been moved here.
  static Tensor adopt(DType dtype, std::vector<int64_t> dims, std::span<const std::byte> bytes, void* keeper,
                      void (*release)(void*));
  static Tensor strings(std::vector<int64_t> dims, std::vector<std::string> strings);
  /// Shares the bytes of the view, which may go away with its model then.
  explicit Tensor(const TensorView& view);

  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor other) noexcept;
  ~Tensor();

  DType dtype() const { return view().dtype(); }
  std::span<const int64_t> dims() const { return view().dims(); }
  int64_t count() const { return view().count(); }
  std::span<const std::byte> bytes() const { return view().bytes(); }
  /// The elements, where T has their size.
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes().data()), bytes().size() / sizeof(T)};
  }
  TensorView view() const;

 private:
  friend struct Access;
  struct Content;
  explicit Tensor(Content* content) : content_(content) {}
  Content* content_;
};

TONNX_END
