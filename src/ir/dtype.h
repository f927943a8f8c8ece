// dtype.h - element types, numbered as in ONNX, with their names in each vocabulary.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace tonnx {

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
inline constexpr int kDTypeCount = 29;

struct DTypeInfo {
  DType dtype;
  std::string_view name;         // in our text form; that of numpy and ml_dtypes
  int bits;                      // of one element; 0 for string
  char kind;                     // f float, i int, u uint, b bool, c complex, s string
  std::string_view torch;        // attribute of the torch module, empty where PyTorch has no such type
  std::string_view safetensors;  // empty where the format has no such type
};

const DTypeInfo& info(DType dtype);
/// Nothing for a number that ONNX 1.23 does not define.
std::optional<DType> find_dtype(int64_t onnx_number);
std::optional<DType> find_dtype(std::string_view name);

inline std::string_view name_of(DType dtype) { return info(dtype).name; }
inline bool is_float(DType dtype) { return info(dtype).kind == 'f'; }
inline bool is_signed_int(DType dtype) { return info(dtype).kind == 'i'; }
inline bool is_unsigned(DType dtype) { return info(dtype).kind == 'u'; }
inline bool is_integer(DType dtype) { return is_signed_int(dtype) || is_unsigned(dtype); }
inline bool is_complex(DType dtype) { return info(dtype).kind == 'c'; }
inline bool is_sub_byte(DType dtype) { return info(dtype).bits > 0 && info(dtype).bits < 8; }

/// The type that holds such values in PyTorch, which computes in none smaller than a byte.
DType widened(DType dtype);

/// A set of element types, as a bit mask.
using DTypeSet = uint32_t;
template <class... D>
constexpr DTypeSet dtype_set(D... dtypes) {
  return (DTypeSet{0} | ... | (DTypeSet{1} << static_cast<int>(dtypes)));
}
constexpr bool contains(DTypeSet set, DType dtype) { return (set >> static_cast<int>(dtype)) & 1U; }

inline constexpr DTypeSet kBFloat16 = dtype_set(DType::BFloat16);
inline constexpr DTypeSet kSmallInts = dtype_set(DType::Int8, DType::Int16, DType::UInt8, DType::UInt16);
inline constexpr DTypeSet kAllInts = kSmallInts | dtype_set(DType::Int32, DType::Int64, DType::UInt32, DType::UInt64);
inline constexpr DTypeSet kWideInts = dtype_set(DType::Int32, DType::Int64);
inline constexpr DTypeSet kByteInts = kWideInts | dtype_set(DType::Int8, DType::UInt8);
inline constexpr DTypeSet kBool = dtype_set(DType::Bool);
inline constexpr DTypeSet kSignedInts = dtype_set(DType::Int8, DType::Int16, DType::Int32, DType::Int64);
/// What operators of the first opsets, which took floats only, came to take with all the others.
inline constexpr DTypeSet kNonFloats =
    kAllInts | dtype_set(DType::Bool, DType::Complex64, DType::Complex128, DType::String);
inline constexpr DTypeSet kFloat8 =
    dtype_set(DType::Float8E4M3FN, DType::Float8E4M3FNUZ, DType::Float8E5M2, DType::Float8E5M2FNUZ);
inline constexpr DTypeSet kInt4 = dtype_set(DType::Int4, DType::UInt4);
inline constexpr DTypeSet kFloat4 = dtype_set(DType::Float4E2M1);
inline constexpr DTypeSet kFloat8E8M0 = dtype_set(DType::Float8E8M0);
inline constexpr DTypeSet kInt2 = dtype_set(DType::Int2, DType::UInt2);
inline constexpr DTypeSet kFloat6 = dtype_set(DType::Float6E2M3, DType::Float6E3M2);

}  // namespace tonnx
