// text.cpp - operators on strings, maps and encoded images, which PyTorch has no tensors for: known, so that they can
// be named, and not supported.
#include "ops/op_def.h"

namespace tonnx {
namespace {

constexpr std::string_view kStrings = "PyTorch has no tensors of strings";
constexpr std::string_view kMaps = "PyTorch has no maps: dictionaries are not tensors";

constexpr OnnxOp kOnnx[] = {
    {.sig = "StringConcat(T X, T Y) -> T Z", .since = 20, .note = kStrings},
    {.sig = "StringSplit(T1 X, *, int? maxsplit, str? delimiter) -> (T2 Y, T3 Z)", .since = 20, .note = kStrings},
    {.sig = "StringNormalizer(tensor(string) X, *, strs? stopwords, str? locale, int is_case_sensitive=0, str "
            "case_change_action=\"NONE\") -> tensor(string) Y",
     .since = 10,
     .note = kStrings},
    {.sig = "RegexFullMatch(T1 X, *, str? pattern) -> T2 Y", .since = 20, .note = kStrings},
    {.sig = "ImageDecoder(T1 encoded_stream, *, str pixel_format=\"RGB\") -> T2 image",
     .since = 20,
     .note = "PyTorch itself decodes no images: decode them in front of the model"},
    {.sig =
         "ai.onnx.ml::CategoryMapper(T1 X, *, int default_int64=-1, str default_string=\"_Unused\", ints? cats_int64s, "
         "strs? cats_strings) -> T2 Y",
     .since = 1,
     .note = kStrings},
    {.sig = "ai.onnx.ml::CastMap(T1 X, *, int max_map=1, str map_form=\"DENSE\", str cast_to=\"TO_FLOAT\") -> T2 Y",
     .since = 1,
     .note = kMaps},
    {.sig = "ai.onnx.ml::DictVectorizer(T1 X, *, ints? int64_vocabulary, strs? string_vocabulary) -> T2 Y",
     .since = 1,
     .note = kMaps},
};

}  // namespace

extern const OpFamily kTextOps;
constinit const OpFamily kTextOps{"text", kOnnx, {}};

}  // namespace tonnx
