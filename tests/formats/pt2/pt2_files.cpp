// pt2_files.cpp - archives as PyTorch 2.13 and its forerunners lay them out.
#include "formats/pt2/pt2_files.h"

#include <algorithm>

namespace tonnx {
namespace {

using namespace std::string_literals;

std::string numbers(const std::string& list) {
  std::string result;
  for (size_t begin = 0; begin < list.size();) {
    const size_t end = std::min(list.find(", ", begin), list.size());
    result += (result.empty() ? "" : ", ") + ("{\"as_int\": " + list.substr(begin, end - begin) + "}");
    begin = end + 2;
  }
  return "[" + result + "]";
}

}  // namespace

std::string payload(const std::string& file, int dtype, const std::string& sizes, const std::string& strides,
                    const std::string& offset, bool is_param) {
  const std::string flag = is_param ? "true" : "false";
  return "{\"path_name\": \"" + file + "\", \"is_param\": " + flag +
         ", \"use_pickle\": false, \"tensor_meta\": {\"dtype\": " + std::to_string(dtype) +
         ", \"sizes\": " + numbers(sizes) + ", \"requires_grad\": " + flag +
         ", \"device\": {\"type\": \"cpu\", \"index\": null}, \"strides\": " + numbers(strides) +
         ", \"storage_offset\": {\"as_int\": " + offset + "}, \"layout\": 7}}";
}

std::string payload_table(const std::vector<std::string>& rows) {
  std::string result;
  for (const std::string& row : rows) result += (result.empty() ? "" : ", ") + row;
  return "{\"config\": {" + result + "}}";
}

std::vector<ZipPart> pt2_parts(const std::string& program, const std::string& weights, const std::string& constants) {
  return {{"m/models/model.json", program, false, true},
          {"m/data/weights/model_weights_config.json", weights, false, true},
          {"m/data/constants/model_constants_config.json", constants},
          {"m/data/sample_inputs/model.pt", ""},
          {"m/archive_format", "pt2"},
          {"m/archive_version", "0"},
          {"m/byteorder", "little"},
          {"m/.data/version", "6\n"}};
}

std::string saved_pickle(const std::string& pickle) {
  return make_zip({{"archive/data.pkl", pickle, false, true}, {"archive/version", "3\n"}});
}

std::string saved_state_dict() {
  const std::string pickle =
      "\x80\x02"
      "ccollections\x0aOrderedDict\x0aq\x00)Rq\x01(X\x01\x00\x00\x00wq\x02"
      "ctorch._utils\x0a_rebuild_parameter\x0aq\x03"
      "ctorch._utils\x0a_rebuild_tensor_v2\x0aq\x04((X\x07\x00\x00\x00storageq\x05"
      "ctorch\x0a"
      "FloatStorage\x0aq\x06X\x01\x00\x00\x00"
      "0q\x07X\x03\x00\x00\x00"
      "cpuq\x08K\x06tq\x09QK\x00K\x03K\x02\x86q\x0aK\x01K\x03\x86q\x0b\x89h\x00)Rq\x0ctq\x0dRq\x0e\x88h\x00)"
      "Rq\x0f\x87q\x10Rq\x11X\x04\x00\x00\x00tiedq\x12h\x11X\x01\x00\x00\x00"
      "bq\x13h\x04((h\x05"
      "ctorch\x0a"
      "BFloat16Storage\x0aq\x14X\x01\x00\x00\x00"
      "1q\x15h\x08K\x04tq\x16QK\x01K\x03\x85q\x17K\x01\x85q\x18\x89h\x00)Rq\x19tq\x1aRq\x1bX\x01\x00\x00\x00uq\x1c"
      "ctorch._utils\x0a_rebuild_tensor_v3\x0aq\x1d((h\x05"
      "ctorch.storage\x0aUntypedStorage\x0aq\x1eX\x01\x00\x00\x00"
      "2q\x1fh\x08K\x04tq "
      "QK\x00K\x02\x85q!K\x01\x85q\x22\x89h\x00)Rq#ctorch\x0auint16\x0aq$tq%Rq&X\x01\x00\x00\x00sq'h\x04((h\x05"
      "ctorch\x0a"
      "DoubleStorage\x0aq(X\x01\x00\x00\x00"
      "3q)h\x08K\x01tq*QK\x00))\x89h\x00)Rq+tq,Rq-u."s;
  return make_zip(
      {{"archive/data.pkl", pickle, false, true},
       {"archive/byteorder", "little"},
       {"archive/data/0", "\x00\x00\x00\x00\x00\x00\x80\x3f\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@"s},
       {"archive/data/1", "\x00\x00\x80\x3f\x00@@@"s},
       {"archive/data/2", "\x01\x00\xff\xff"s},
       {"archive/data/3", "\x00\x00\x00\x00\x00\x00\x00@"s},
       {"archive/version", "3\n"}});
}

std::vector<ZipPart> old_pt2_parts(const std::string& program, const std::string& weights,
                                   const std::string& constants) {
  return {{"version", "8.4"},
          {"serialized_exported_program.json", program},
          {"serialized_state_dict.pt", weights},
          {"serialized_constants.pt", constants},
          {"serialized_example_inputs.pt", ""},
          {"extra_files/note", "hello"}};
}

}  // namespace tonnx
