// archive_test.cpp - archives in each layout, tensors of each kind, and what is refused by name.
#include "formats/pt2/archive.h"

#include "checks.h"
#include "formats/pt2/dtype.h"
#include "formats/pt2/pt2_files.h"

namespace tonnx {
namespace {

using namespace std::string_literals;

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T));
}
template <class T>
std::vector<T> values_of(const Pt2Tensor& tensor) {
  std::vector<T> result(tensor.tensor->data.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), tensor.tensor->data.data(), tensor.tensor->data.size());
  return result;
}

Pt2Archive read(const std::vector<ZipPart>& parts) { return read_pt2_archive(Bytes::own(make_zip(parts))); }

/// An archive whose weights are these rows over a file weight_0 of six floats.
std::vector<ZipPart> with_weights(const std::vector<std::string>& rows) {
  std::vector<ZipPart> parts = pt2_parts("{}", payload_table(rows), payload_table({}));
  parts.push_back({"m/data/weights/weight_0", bytes_of<float>({0, 1, 2, 3, 4, 5}), false, true});
  return parts;
}

void expect_refused(ErrorKind kind, std::string_view part, const std::vector<ZipPart>& parts) {
  const Error error = error_of([&] { read(parts); });
  EXPECT_EQ(error.kind(), kind) << error.what();
  EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();
}

void remove_part(std::vector<ZipPart>& parts, std::string_view name) {
  std::erase_if(parts, [&](const ZipPart& part) { return part.name == name; });
}
void replace_part(std::vector<ZipPart>& parts, std::string_view name, const std::string& content) {
  for (ZipPart& part : parts) {
    if (part.name == name) part.content = content;
  }
}

TEST(Pt2Archive, ReadsTheLayoutOfToday) {
  std::vector<ZipPart> parts = with_weights({
      "\"w\": " + payload("weight_0", 7, "2, 3", "3, 1"),
      "\"tied\": " + payload("weight_0", 7, "2, 3", "3, 1"),
      "\"transposed\": " + payload("weight_0", 7, "3, 2", "1, 3", "0", false),
      "\"offset\": " + payload("weight_0", 7, "2", "1", "3"),
      "\"every_second\": " + payload("weight_0", 7, "3", "2"),
      "\"expanded\": " + payload("weight_0", 7, "2, 2, 2", "0, 1, 0", "4"),
      "\"ones\": " + payload("weight_0", 7, "1, 6, 1", "9223372036854775807, 1, 17"),
      "\"scalar\": " + payload("weight_0", 7, "", "", "5"),
      "\"empty\": " + payload("weight_1", 7, "0, 3", "3, 1"),
  });
  parts.push_back({"m/data/weights/weight_1", ""});
  parts.push_back({"m/extra/note.txt", "hi"});
  replace_part(parts, "m/data/constants/model_constants_config.json",
               payload_table({"\"c\": " + payload("tensor_0", 10, "1", "1", "0", false)}));
  parts.push_back({"m/data/constants/tensor_0", bytes_of<float>({1, 2}), true});
  replace_part(parts, "m/models/model.json", "{\"a\": 1}");

  const Bytes file = Bytes::own(make_zip(parts));
  const Pt2Archive archive = read_pt2_archive(file);
  EXPECT_EQ(archive.program.view(), "{\"a\": 1}");
  EXPECT_EQ(archive.extra.at("note.txt").view(), "hi");
  ASSERT_EQ(archive.weights.size(), 9U);
  const auto& weights = archive.weights;
  EXPECT_EQ(weights.at("w").tensor->dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(values_of<float>(weights.at("w")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(weights.at("w").tensor->data.owner(), file.owner()) << "it was copied";
  EXPECT_TRUE(weights.at("w").is_param);
  EXPECT_TRUE(weights.at("w").requires_grad);
  EXPECT_EQ(weights.at("w").tensor, weights.at("tied").tensor);
  EXPECT_EQ(values_of<float>(weights.at("transposed")), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_FALSE(weights.at("transposed").is_param);
  EXPECT_FALSE(weights.at("transposed").requires_grad);
  EXPECT_EQ(values_of<float>(weights.at("offset")), (std::vector<float>{3, 4}));
  EXPECT_EQ(weights.at("offset").tensor->data.owner(), file.owner()) << "it was copied";
  EXPECT_EQ(values_of<float>(weights.at("every_second")), (std::vector<float>{0, 2, 4}));
  EXPECT_EQ(values_of<float>(weights.at("expanded")), (std::vector<float>{4, 4, 5, 5, 4, 4, 5, 5}));
  EXPECT_EQ(values_of<float>(weights.at("ones")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values_of<float>(weights.at("scalar")), (std::vector<float>{5}));
  EXPECT_TRUE(weights.at("scalar").tensor->dims.empty());
  EXPECT_EQ(weights.at("empty").tensor->dims, (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(weights.at("empty").tensor->data.empty());
  EXPECT_EQ(archive.constants.at("c").tensor->dtype, DType::Complex64);
  EXPECT_EQ(values_of<float>(archive.constants.at("c")), (std::vector<float>{1, 2}));
}

TEST(Pt2Archive, EveryElementSizeIsGathered) {
  // the numbers of torch.export: uint8, int16, float, int64, complex128
  const std::pair<int, size_t> kTypes[] = {{1, 1}, {3, 2}, {7, 4}, {5, 8}, {11, 16}};
  for (const auto& [number, size] : kTypes) {
    std::string stored;
    std::string expected;
    for (const char c : {'a', 'b', 'c', 'd'}) stored += std::string(size, c);
    for (const char c : {'a', 'c', 'b', 'd'}) expected += std::string(size, c);
    std::vector<ZipPart> parts =
        pt2_parts("{}", payload_table({"\"t\": " + payload("weight_0", number, "2, 2", "1, 2")}), payload_table({}));
    parts.push_back({"m/data/weights/weight_0", stored});
    EXPECT_EQ(read(parts).weights.at("t").tensor->data.view(), expected) << number;
  }
}

TEST(Pt2Archive, NumbersOfTypesAreTheirOwn) {
  const std::pair<int, DType> kNumbers[] = {
      {1, DType::UInt8},           {2, DType::Int8},          {3, DType::Int16},       {4, DType::Int32},
      {5, DType::Int64},           {6, DType::Float16},       {7, DType::Float32},     {8, DType::Float64},
      {10, DType::Complex64},      {11, DType::Complex128},   {12, DType::Bool},       {13, DType::BFloat16},
      {28, DType::UInt16},         {29, DType::Float8E4M3FN}, {30, DType::Float8E5M2}, {31, DType::Float8E4M3FNUZ},
      {32, DType::Float8E5M2FNUZ}, {33, DType::Float8E8M0},   {34, DType::UInt32},     {35, DType::UInt64}};
  for (const auto& [number, dtype] : kNumbers) EXPECT_EQ(dtype_of_pt2(number), dtype);
  EXPECT_ERROR(Unsupported, "complex32", dtype_of_pt2(9));
  for (const int64_t number : {int64_t{0}, int64_t{14}, int64_t{27}, int64_t{36}, int64_t{-1}, INT64_MAX}) {
    EXPECT_ERROR(InvalidModel, "element type", dtype_of_pt2(number));
  }
}

void expect_saved_state(const std::map<std::string, Pt2Tensor>& weights) {
  ASSERT_EQ(weights.size(), 5U);
  EXPECT_EQ(weights.at("w").tensor->dims, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(values_of<float>(weights.at("w")), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(weights.at("w").is_param);
  EXPECT_TRUE(weights.at("w").requires_grad);
  EXPECT_EQ(weights.at("w").tensor, weights.at("tied").tensor);
  EXPECT_EQ(weights.at("b").tensor->dtype, DType::BFloat16);
  EXPECT_EQ(values_of<uint16_t>(weights.at("b")), (std::vector<uint16_t>{0x3f80, 0x4000, 0x4040}));
  EXPECT_FALSE(weights.at("b").is_param);
  EXPECT_EQ(weights.at("u").tensor->dtype, DType::UInt16);
  EXPECT_EQ(values_of<uint16_t>(weights.at("u")), (std::vector<uint16_t>{1, 65535}));
  EXPECT_EQ(values_of<double>(weights.at("s")), (std::vector<double>{2}));
  EXPECT_TRUE(weights.at("s").tensor->dims.empty());
}

TEST(Pt2Archive, ReadsTheOlderLayouts) {
  const Pt2Archive old = read(old_pt2_parts("{}", saved_state_dict(), ""));
  EXPECT_EQ(old.program.view(), "{}");
  expect_saved_state(old.weights);
  EXPECT_TRUE(old.constants.empty());
  EXPECT_EQ(old.extra.at("note").view(), "hello");

  std::vector<ZipPart> parts = pt2_parts("{}", "", payload_table({}));
  remove_part(parts, "m/data/weights/model_weights_config.json");
  parts.push_back({"m/data/weights/model.pt", saved_state_dict(), true});
  expect_saved_state(read(parts).weights);
}

TEST(Pt2Archive, BytesOfAnOlderLayoutStayInTheFile) {
  const Bytes file = Bytes::own(make_zip(old_pt2_parts("{}", saved_state_dict(), "")));
  EXPECT_EQ(read_pt2_archive(file).weights.at("b").tensor->data.owner(), file.owner());
}

TEST(Pt2Archive, FindsTheProgram) {
  std::vector<ZipPart> parts = with_weights({});
  for (ZipPart& part : parts) {
    if (const size_t at = part.name.find("model"); part.name.find("models/") == std::string::npos) {
      if (at != std::string::npos) part.name.replace(at, 5, "net");
    } else {
      part.name = "m/models/net.json";
    }
  }
  EXPECT_EQ(read(parts).program.view(), "{}");
  parts.push_back({"m/models/other.json", "{}"});
  expect_refused(ErrorKind::Unsupported, "2 programs", parts);

  parts = with_weights({});
  parts.insert(parts.begin(), {"m/models/a.json", "?"});
  EXPECT_EQ(read(parts).program.view(), "{}");
  remove_part(parts, "m/models/a.json");
  remove_part(parts, "m/models/model.json");
  expect_refused(ErrorKind::BadFile, "no program", parts);
  parts.push_back({"m/data/aotinductor/model/x.so", ""});
  expect_refused(ErrorKind::Unsupported, "AOTInductor", parts);
}

TEST(Pt2Archive, ChecksTheMarks) {
  const auto with = [](std::string_view name, const std::string& content) {
    std::vector<ZipPart> parts = with_weights({});
    replace_part(parts, name, content);
    return parts;
  };
  EXPECT_NO_THROW(read(with("m/archive_version", "0\n")));
  expect_refused(ErrorKind::BadFile, "format 'pt3'", with("m/archive_format", "pt3"));
  expect_refused(ErrorKind::Unsupported, "version '1'", with("m/archive_version", "1"));
  expect_refused(ErrorKind::Unsupported, "big-endian", with("m/byteorder", "big"));
  expect_refused(ErrorKind::BadFile, "byte order 'middle'", with("m/byteorder", "middle"));
  std::vector<ZipPart> parts = old_pt2_parts("{}", "", "");
  replace_part(parts, "version", "5.3");
  expect_refused(ErrorKind::Unsupported, "version 5.3", parts);
  for (const char* const name : {"version", "serialized_state_dict.pt", "serialized_constants.pt"}) {
    parts = old_pt2_parts("{}", "", "");
    remove_part(parts, name);
    EXPECT_EQ(error_of([&] { read(parts); }).kind(), ErrorKind::BadFile) << name;
  }
  for (const char* const name :
       {"m/data/weights/model_weights_config.json", "m/data/constants/model_constants_config.json"}) {
    parts = with_weights({});
    remove_part(parts, name);
    expect_refused(ErrorKind::BadFile, std::string_view(name).substr(2), parts);
  }
}

TEST(Pt2Archive, SaysWhatOtherFilesAre) {
  expect_refused(ErrorKind::BadFile, "TorchScript",
                 {{"m/data.pkl", ""}, {"m/constants.pkl", ""}, {"m/code/__torch__.py", ""}});
  EXPECT_ERROR(BadFile, "torch.save (.pth)", read_pt2_archive(Bytes::own(saved_state_dict())));
  EXPECT_ERROR(BadFile, "in its old form", read_pt2_archive(Bytes::own("\x80\x02\x8a\x0a"s)));
  expect_refused(ErrorKind::BadFile, "no archive_format", {{"readme.txt", ""}});
  expect_refused(ErrorKind::BadFile, "no archive_format", {});
  EXPECT_ERROR(BadFile, "does not begin as a zip", read_pt2_archive(Bytes::own(""s)));
  EXPECT_ERROR(BadFile, "does not begin as a zip", read_pt2_archive(Bytes::own("\x08\x07onnx"s)));
}

TEST(Pt2Archive, RefusesTensorsByName) {
  const auto refused = [](ErrorKind kind, std::string_view part, const std::string& row) {
    expect_refused(kind, part, with_weights({"\"layer.w\": " + row}));
    expect_refused(kind, "'layer.w'", with_weights({"\"layer.w\": " + row}));
  };
  const auto invalid = [&](std::string_view part, const std::string& row) {
    refused(ErrorKind::InvalidModel, part, row);
  };
  invalid("reaches element 6", payload("weight_0", 7, "2, 3", "3, 1", "1"));
  invalid("reaches element 6", payload("weight_0", 7, "7", "1"));
  invalid("reaches element 3", payload("weight_0", 8, "4", "1"));
  invalid("reaches element 3", payload("weight_0", 8, "2, 2", "2, 1"));
  invalid("reaches", payload("weight_0", 7, "2", "4611686018427387904"));
  invalid("beyond all bounds", payload("weight_0", 7, "3, 3", "4611686018427387904, 1"));
  invalid("negative stride", payload("weight_0", 7, "2", "-1", "5"));
  invalid("offset is negative", payload("weight_0", 7, "2", "1", "-1"));
  invalid("negative size", payload("weight_0", 7, "-2", "1"));
  invalid("overflow", payload("weight_0", 7, "4294967296, 4294967296", "0, 0"));
  invalid("2 sizes but 1 strides", payload("weight_0", 7, "2, 3", "1"));
  invalid("element type", payload("weight_0", 99, "2", "1"));
  invalid("weight_7' is missing", payload("weight_7", 7, "2", "1"));
  invalid("'path_name' is missing", "{}");
  invalid("'path_name' is missing", "3");
  invalid("is no text", "{\"path_name\": 3}");
  refused(ErrorKind::Unsupported, "complex32", payload("weight_0", 9, "2", "1"));
  refused(ErrorKind::Unsupported, "too many to be gathered", payload("weight_0", 7, "1048576, 1048576", "0, 0"));

  std::string row = payload("weight_0", 7, "2", "1");
  const auto changed = [&row](std::string_view from, std::string_view to) {
    std::string text = row;
    return text.replace(text.find(from), from.size(), to);
  };
  refused(ErrorKind::Unsupported, "never executed", changed("\"use_pickle\": false", "\"use_pickle\": true"));
  refused(ErrorKind::Unsupported, "layout", changed("\"layout\": 7", "\"layout\": 1"));
  invalid("'layout' is missing", changed("layout", "lay"));
  invalid("no known number", changed("\"as_int\": 2", "\"as_expr\": \"s0\""));
  invalid("no integer", changed("\"as_int\": 2", "\"as_int\": 2.5"));
  invalid("no integer", changed("\"as_int\": 2", "\"as_int\": 9223372036854775808"));
  invalid("neither true nor false", changed("\"is_param\": true", "\"is_param\": 1"));

  expect_refused(ErrorKind::InvalidModel, "two tensors 'a'", with_weights({"\"a\": " + row, "\"a\": " + row}));
}

TEST(Pt2Archive, RefusesPickledConstants) {
  for (const char* const file : {"custom_obj_0", "opaque_obj_0", "weight_0"}) {
    std::vector<ZipPart> parts = with_weights({});
    replace_part(parts, "m/data/constants/model_constants_config.json",
                 payload_table({"\"the.constant\": " + payload(file, 7, "", "")}));
    expect_refused(ErrorKind::Unsupported, "'the.constant'", parts);
    expect_refused(ErrorKind::Unsupported, file, parts);
  }
}

TEST(Pt2Archive, RefusesTablesThatAreNone) {
  for (const char* const table : {"[]", "{}", "{\"config\": []}"}) {
    expect_refused(ErrorKind::InvalidModel, "no table", pt2_parts("{}", table, payload_table({})));
  }
  expect_refused(ErrorKind::BadFile, "model_weights_config.json is not valid JSON",
                 pt2_parts("{}", "{\"config", payload_table({})));
}

TEST(Pt2Archive, RefusesWhatIsNoTensorInSavedDicts) {
  const auto refused = [](ErrorKind kind, std::string_view part, const std::string& blob) {
    expect_refused(kind, part, old_pt2_parts("{}", blob, ""));
  };
  const std::string key = "\x80\x02}X\x01\x00\x00\x00l"s;
  refused(ErrorKind::Unsupported, "tensor 'l'",
          saved_pickle(key + "]K\x01"
                             "as."));
  refused(ErrorKind::Unsupported, "made by os.system", saved_pickle(key + "cos\nsystem\n)Rs."));
  refused(ErrorKind::InvalidModel, "got 0 arguments", saved_pickle(key + "ctorch._utils\n_rebuild_tensor_v2\n)Rs."));
  refused(ErrorKind::InvalidModel, "no known way",
          saved_pickle(key + "ctorch._utils\n_rebuild_tensor_v2\n(NNNNNNtRs."));
  refused(ErrorKind::InvalidModel, "key that is no text", saved_pickle("\x80\x02}K\x01K\x02s."s));
  refused(ErrorKind::Unsupported, "no dict of tensors", saved_pickle("\x80\x02]."s));
  refused(ErrorKind::BadFile, "bad pickle", saved_pickle("\x80\x02]"s));
  refused(ErrorKind::BadFile, "no data.pkl", make_zip({{"archive/version", "3"}}));
  refused(ErrorKind::Unsupported, "zip form", "\x80\x02]."s);
  refused(ErrorKind::BadFile, "bad zip file", saved_state_dict().substr(0, 500));
  const std::string tensor =
      key +
      "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00"
      "9X\x03\x00\x00\x00"
      "cpuK\x06tQK\x00K\x02\x85K\x01\x85\x89NtRs."s;
  refused(ErrorKind::InvalidModel, "'archive/data/9' is missing", saved_pickle(tensor));
  refused(ErrorKind::InvalidModel, "has 4 of 24 bytes",
          make_zip({{"archive/data.pkl", tensor}, {"archive/data/9", "abcd"}}));
}

}  // namespace
}  // namespace tonnx
