// text.cpp - operators on strings, maps and encoded images, which PyTorch has no tensors for: known, so that they can
// be named and evaluated, and not supported.
#include "base/error.h"
#include "ops/frame/eval.h"
#include "ops/frame/infer.h"
#include "ops/text/rows.h"

namespace tonnx {
namespace {

/// What follows the sizes of the words: one more dimension, as long as the longest list.
void infer_string_split(InferNode& n) {
  const Shape* shape = n.find_shape("X");
  std::optional<Shape> parts = shape ? std::optional(*shape) : std::nullopt;
  if (parts) parts->push_back(n.fresh());
  n.set(0, DType::String, std::move(parts));
  n.set(1, DType::Int64, shape ? std::optional(*shape) : std::nullopt);
}

/// Words that are stopped go away: only a row of words is allowed to lose some.
void infer_string_normalizer(InferNode& n) {
  const Shape* shape = n.find_shape("X");
  if (shape == nullptr) return n.set(0, DType::String, std::nullopt);
  require(!shape->empty() && shape->size() <= 2, "the input has {} dimensions where one or two are allowed",
          shape->size());
  Shape result = *shape;
  if (n.has("stopwords")) result.back() = n.fresh();
  n.set(0, DType::String, std::move(result));
}

void infer_regex(InferNode& n) {
  const Shape* shape = n.find_shape("X");
  n.set(0, DType::Bool, shape ? std::optional(*shape) : std::nullopt);
}

void infer_image_decoder(InferNode& n) {
  const Dim channels = n.s("pixel_format") == "Grayscale" ? 1 : 3;
  Shape image{n.fresh(), n.fresh()};
  image.push_back(channels);
  n.set(0, DType::UInt8, std::move(image));
}

/// Strings become numbers, and numbers strings.
void infer_category_mapper(InferNode& n) {
  const Shape* shape = n.find_shape("X");
  n.set(0, n.dtype("X") == DType::String ? DType::Int64 : DType::String, shape ? std::optional(*shape) : std::nullopt);
}

void infer_cast_map(InferNode& n) {
  const std::string to = n.s("cast_to");
  n.set(0,
        to == "TO_INT64"    ? DType::Int64
        : to == "TO_STRING" ? DType::String
                            : DType::Float32,
        Shape{1, n.s("map_form") == "SPARSE" ? Dim(n.i("max_map")) : n.fresh()});
}

void infer_dict_vectorizer(InferNode& n) {
  const Type& map = n.type("X");
  const auto strings = n.find_strings("string_vocabulary");
  const auto ints = n.find_ints("int64_vocabulary");
  if (map.elements.empty() || (!strings && !ints)) return;
  n.set(0, map.elements[0].dtype, Shape{1, static_cast<int64_t>(strings ? strings->size() : ints->size())});
}

constexpr std::string_view kStrings = "PyTorch has no tensors of strings";
constexpr std::string_view kMaps = "PyTorch has no maps: dictionaries are not tensors";

constexpr OnnxOp kTextOnnx[] = {
    {.sig = "StringConcat(T X, T Y) -> T Z",
     .since = 20,
     .traits = kTakesStrings,
     .infer = infer_broadcast,
     .eval = eval_string_concat,
     .note = kStrings},
    {.sig = "StringSplit(T1 X, *, int? maxsplit, str? delimiter) -> (T2 Y, T3 Z)",
     .since = 20,
     .traits = kBounded | kTakesStrings,
     .infer = infer_string_split,
     .eval = eval_string_split,
     .note = kStrings},
    {.sig = "StringNormalizer(tensor(string) X, *, strs? stopwords, str? locale, int is_case_sensitive=0, str "
            "case_change_action=\"NONE\") -> tensor(string) Y",
     .since = 10,
     .traits = kBounded | kTakesStrings,
     .infer = infer_string_normalizer,
     .eval = eval_string_normalizer,
     .note = kStrings},
    {.sig = "RegexFullMatch(T1 X, *, str? pattern) -> T2 Y", .since = 20, .infer = infer_regex, .note = kStrings},
    {.sig = "ImageDecoder(T1 encoded_stream, *, str pixel_format=\"RGB\") -> T2 image",
     .since = 20,
     .infer = infer_image_decoder,
     .note = "PyTorch itself decodes no images: decode them in front of the model"},
    {.sig =
         "ai.onnx.ml::CategoryMapper(T1 X, *, int default_int64=-1, str default_string=\"_Unused\", ints? cats_int64s, "
         "strs? cats_strings) -> T2 Y",
     .since = 1,
     .infer = infer_category_mapper,
     .note = kStrings},
    {.sig = "ai.onnx.ml::CastMap(T1 X, *, int max_map=1, str map_form=\"DENSE\", str cast_to=\"TO_FLOAT\") -> T2 Y",
     .since = 1,
     .infer = infer_cast_map,
     .note = kMaps},
    {.sig = "ai.onnx.ml::DictVectorizer(T1 X, *, ints? int64_vocabulary, strs? string_vocabulary) -> T2 Y",
     .since = 1,
     .infer = infer_dict_vectorizer,
     .note = kMaps},
};

}  // namespace

extern const OpFamily kTextOps;
constinit const OpFamily kTextOps{"text", kTextOnnx, {}};

}  // namespace tonnx
