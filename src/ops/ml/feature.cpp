// feature.cpp - features made ready for a model: Scaler, Normalizer, Imputer, Binarizer, LabelEncoder and their kin.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/ml/labels.h"

namespace tonnx {
namespace {

TensorPtr floats_tensor(const std::vector<double>& values, DType dtype = DType::Float32) {
  return make_floats(dtype, {static_cast<int64_t>(values.size())}, values);
}

/// One number for all features, or one for each.
Value* per_feature(OnnxEdit& edit, const std::vector<double>& values) {
  return values.size() == 1 ? fixed_number(edit, DType::Float32, values[0]) : fixed(edit, floats_tensor(values));
}

bool expand_scaler(const NodeView& n, OnnxEdit& edit) {
  const auto offset = n.find_floats("offset"), scale = n.find_floats("scale");
  require(n.dtype("X") != DType::String, "the input is of strings");
  Value* y = cast_to(edit, edit.node().input(0), DType::Float32);
  const auto all = [](const auto& list, double value) {
    return !list || std::all_of(list->begin(), list->end(), [&](double each) { return each == value; });
  };
  if (!all(offset, 0.0)) y = edit.before("Sub", {y, per_feature(edit, *offset)});
  if (!all(scale, 1.0)) y = edit.before("Mul", {y, per_feature(edit, *scale)});
  return edit.replace_with({edit.before("Identity", {y})});
}

bool expand_normalizer(const NodeView& n, OnnxEdit& edit) {
  const std::string norm = n.s("norm");
  Value* x = rows_of(edit, edit.node().input(0));
  Value* axis = edit.ints({-1});
  Value* size = nullptr;
  if (norm == "MAX") {  // of the values themselves, negative ones too
    size = edit.before("ReduceMax", {x, axis});
  } else if (norm == "L1" || norm == "L2") {
    size = edit.before(norm == "L1" ? "ReduceL1" : "ReduceL2", {x, axis});
  } else {
    fail_invalid("the norm is '{}'", norm);
  }
  Value* zero = edit.before("Equal", {size, fixed_number(edit, DType::Float32, 0)});
  size = edit.before("Where", {zero, fixed_number(edit, DType::Float32, 1), size});
  Value* y = edit.before("Div", {x, size});
  if (edit.node().input(0)->type.rank() == 1) y = edit.before("Squeeze", {y, edit.ints({0})});
  return edit.replace_with({y});
}

bool expand_imputer(const NodeView& n, OnnxEdit& edit) {
  const DType dtype = n.dtype("X");
  Value* x = edit.node().input(0);
  Value *is_missing = nullptr, *imputed = nullptr;
  if (is_float(dtype)) {
    const auto values = n.find_floats("imputed_value_floats");
    require(values && !values->empty(), "imputed_value_floats is missing");
    const double replaced = n.f("replaced_value_float");
    is_missing = std::isnan(replaced) ? edit.before("IsNaN", {x})
                                      : edit.before("Equal", {x, fixed_number(edit, dtype, replaced)});
    imputed =
        values->size() == 1 ? fixed_number(edit, dtype, (*values)[0]) : fixed(edit, floats_tensor(*values, dtype));
  } else {
    if (!is_integer(dtype)) fail_unsupported("an input of type {}", name_of(dtype));
    const auto values = n.find_ints("imputed_value_int64s");
    require(values && !values->empty(), "imputed_value_int64s is missing");
    is_missing = edit.before("Equal", {x, cast_to(edit, fixed(edit, make_ints({n.i("replaced_value_int64")})), dtype)});
    imputed = cast_to(edit, fixed(edit, make_ints(*values)), dtype);
  }
  return edit.replace_with({edit.before("Where", {is_missing, imputed, x})});
}

bool expand_binarizer(const NodeView& n, OnnxEdit& edit) {
  const DType dtype = n.dtype("X");
  if (!is_float(dtype) && !is_integer(dtype)) fail_unsupported("an input of type {}", name_of(dtype));
  Value* x = edit.node().input(0);
  const DType wide = is_float(dtype) ? dtype : DType::Float64;
  Value* above = edit.before("Greater", {cast_to(edit, x, wide), fixed_number(edit, wide, n.f("threshold"))});
  return edit.replace_with({cast_to(edit, above, dtype)});
}

/// The elements of the last dimension at some places. Labels that are strings stay what they are looked up with: the
/// numbers of their classes.
bool expand_array_feature_extractor(const NodeView& n, OnnxEdit& edit) {
  Value* x = edit.node().input(0);
  Value* places = edit.before("Reshape", {edit.node().input(1), edit.ints({-1})});
  if (n.dtype("X") == DType::String) {
    if (!n.find_constant("X")) fail_unsupported("PyTorch has no tensors of strings");
    return edit.replace_with({edit.before("Unsqueeze", {places, edit.ints({0})})});
  }
  Value* y = edit.before("Gather", {x, places}, {{"axis", int64_t{-1}}});
  if (n.find_rank("X") == 1) y = edit.before("Unsqueeze", {y, edit.ints({0})});
  return edit.replace_with({y});
}

bool expand_one_hot_encoder(const NodeView& n, OnnxEdit& edit) {
  const auto categories = n.find_ints("cats_int64s");
  if (!categories || n.dtype("X") == DType::String) fail_unsupported("PyTorch has no tensors of strings");
  require(!categories->empty(), "there are no categories");
  Value* numbers = cast_to(edit, edit.node().input(0), DType::Int64);
  Value* is_one =
      edit.before("Equal", {edit.before("Unsqueeze", {numbers, edit.ints({-1})}), fixed(edit, make_ints(*categories))});
  n.flag("zeros");  // 0 makes an unknown category an error, which data cannot be here
  return edit.replace_with({cast_to(edit, is_one, DType::Float32)});
}

bool expand_feature_vectorizer(const NodeView& n, OnnxEdit& edit) {
  const auto sizes = n.find_ints("inputdimensions");
  std::vector<Value*> parts;
  for (size_t i = 0; i < edit.node().inputs().size(); ++i) {
    Value* part = rows_of(edit, edit.node().input(i));
    if (sizes && i < sizes->size()) {
      const auto& shape = edit.node().input(i)->type.shape;
      const auto size = shape && !shape->empty() ? shape->back().constant() : std::nullopt;
      if (size && *size > (*sizes)[i])
        part = edit.before("Slice", {part, edit.ints({0}), edit.ints({(*sizes)[i]}), edit.ints({1})});
    }
    parts.push_back(part);
  }
  return edit.replace_with({edit.before("Concat", parts, {{"axis", int64_t{1}}})});
}

/// What LabelEncoder maps from, or to: a list of numbers in one of several attributes.
std::optional<TensorPtr> find_list(const NodeView& n, const std::string& what) {
  if (const TensorPtr tensor = n.find_tensor(what + "_tensor")) return tensor;
  if (const auto ints = n.find_ints(what + "_int64s")) return make_ints(*ints);
  if (const auto floats = n.find_floats(what + "_floats")) return floats_tensor(*floats);
  return std::nullopt;
}

void infer_label_encoder(InferNode& n) {
  const Shape* shape = n.find_shape("X");
  DType dtype = DType::Int64;
  if (const TensorPtr values = n.find_tensor("values_tensor"))
    dtype = values->dtype;
  else if (n.has("values_strings"))
    dtype = DType::String;
  else if (n.has("values_floats"))
    dtype = DType::Float32;
  n.set(0, dtype, shape ? std::optional(*shape) : std::nullopt);
}

bool expand_label_encoder(const NodeView& n, OnnxEdit& edit) {
  const auto keys = find_list(n, "keys"), values = find_list(n, "values");
  if (!keys || !values || (*keys)->dtype == DType::String || (*values)->dtype == DType::String ||
      n.dtype("X") == DType::String) {
    fail_unsupported("PyTorch has no tensors of strings");
  }
  const int64_t count = (*keys)->count();
  require(count == (*values)->count() && (*keys)->dims.size() == 1 && count > 0, "{} keys are for {} values", count,
          (*values)->count());
  const DType from = (*keys)->dtype, to = (*values)->dtype;
  n.find_strings("keys_strings");
  Value* otherwise = nullptr;
  if (const TensorPtr given = n.find_tensor("default_tensor")) {
    require(given->count() == 1 && given->dtype == to, "default_tensor does not fit the values");
    otherwise = edit.before("Reshape", {fixed(edit, given), edit.ints({1})});
  } else {
    otherwise = is_float(to) ? fixed_number(edit, to, n.f("default_float"))
                             : cast_to(edit, fixed(edit, make_ints({n.i("default_int64")})), to);
  }
  Value* x = edit.before("Unsqueeze", {cast_to(edit, edit.node().input(0), from), edit.ints({-1})});
  Value* table = fixed(edit, *keys);
  Value* same = edit.before("Equal", {x, table});
  if (is_float(from)) {  // a key that is NaN is found too
    Value* both = edit.before("And", {edit.before("IsNaN", {x}), edit.before("IsNaN", {table})});
    same = edit.before("Or", {same, both});
  }
  // of equal keys the last one counts
  Value* number = edit.before("ArgMax", {cast_to(edit, same, DType::UInt8)},
                              {{"axis", int64_t{-1}}, {"keepdims", int64_t{0}}, {"select_last_index", int64_t{1}}});
  Value* found = edit.before("Gather", {fixed(edit, *values), number}, {{"axis", int64_t{0}}});
  Value* any =
      edit.before("ReduceMax", {cast_to(edit, same, DType::UInt8), edit.ints({-1})}, {{"keepdims", int64_t{0}}});
  return edit.replace_with({edit.before("Where", {cast_to(edit, any, DType::Bool), found, otherwise})});
}

void infer_zip_map(InferNode& n) {
  Type map;
  map.kind = Type::Kind::Map;
  map.dtype = n.has("classlabels_strings") ? DType::String : DType::Int64;
  map.elements.push_back(Type::tensor(DType::Float32, Shape{}));
  n.set(0, Type::sequence(std::move(map)));
}

/// A list of dictionaries, one for each row, has no use for what PyTorch computes with: the scores themselves come out.
bool expand_zip_map(const NodeView& n, OnnxEdit& edit) {
  n.find_ints("classlabels_int64s");
  n.find_strings("classlabels_strings");
  return edit.replace_with({edit.before("Identity", {edit.node().input(0)})});
}

void up_label_encoder_2(OnnxEdit& edit) {
  if (edit.node().find_attribute("classes_strings")) fail_unsupported("PyTorch has no tensors of strings");
}

constexpr OpsetStep kLabelEncoderHistory[] = {{.to = 2, .up = up_label_encoder_2}, {.to = 4}};

constexpr OnnxOp kMlFeatureOnnx[] = {
    {.sig = "ai.onnx.ml::Scaler(T X, *, floats? scale, floats? offset) -> tensor(float) Y",
     .since = 1,
     .expand = expand_scaler},
    {.sig = "ai.onnx.ml::Normalizer(T X, *, str norm=\"MAX\") -> tensor(float) Y",
     .since = 1,
     .expand = expand_normalizer},
    {.sig = "ai.onnx.ml::Imputer(T X, *, int replaced_value_int64=0, ints? imputed_value_int64s, float "
            "replaced_value_float=0.0, floats? imputed_value_floats) -> T Y",
     .since = 1,
     .expand = expand_imputer},
    {.sig = "ai.onnx.ml::Binarizer(T X, *, float threshold=0.0) -> T Y", .since = 1, .expand = expand_binarizer},
    {.sig = "ai.onnx.ml::ArrayFeatureExtractor(T X, tensor(int64) Y) -> T Z",
     .since = 1,
     .note = kLabelNote,
     .expand = expand_array_feature_extractor},
    {.sig = "ai.onnx.ml::OneHotEncoder(T X, *, int zeros=1, strs? cats_strings, ints? cats_int64s) -> tensor(float) Y",
     .since = 1,
     .note = "no strings",
     .expand = expand_one_hot_encoder},
    {.sig = "ai.onnx.ml::FeatureVectorizer(T1... X, *, ints? inputdimensions) -> tensor(float) Y",
     .since = 1,
     .expand = expand_feature_vectorizer},
    {.sig = "ai.onnx.ml::LabelEncoder(T1 X, *, tensor? default_tensor, int default_int64=-1, float default_float=-0.0, "
            "str "
            "default_string=\"_Unused\", ints? values_int64s, strs? values_strings, tensor? values_tensor, floats? "
            "keys_floats, strs? keys_strings, floats? values_floats, ints? keys_int64s, tensor? keys_tensor) -> T2 Y",
     .since = 1,
     .history = kLabelEncoderHistory,
     .infer = infer_label_encoder,
     .note = "no strings",
     .expand = expand_label_encoder},
    {.sig = "ai.onnx.ml::ZipMap(tensor(float) X, *, ints? classlabels_int64s, strs? classlabels_strings) -> T Z",
     .since = 1,
     .infer = infer_zip_map,
     .note = "dropped: the tensor of scores comes out, and no list of dictionaries",
     .expand = expand_zip_map},
};

}  // namespace

extern const OpFamily kMlFeatureOps;
constinit const OpFamily kMlFeatureOps{"ml_feature", kMlFeatureOnnx, {}};

}  // namespace tonnx
