// model.h - a model: its main graph, its functions, and what the file says about it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tonnx {

/// Imported domains (empty for ai.onnx) and their versions.
using Opsets = std::vector<std::pair<std::string, int64_t>>;
inline constexpr size_t kMaxOpsets = 1024;  // of one model or function; more are refused

/// The version that nodes of the domain follow: 1 where it is not imported, as before IR version 3.
int64_t imported_version(const Opsets& opsets, std::string_view domain);

/// A function that the model defines for itself.
struct Function {
  Symbol domain;
  Symbol name;
  Symbol overload;
  std::vector<std::string> attributes;  // without a default
  std::vector<Attribute> default_attributes;
  Opsets opsets;  // that its nodes follow
  GraphPtr body;  // its inputs and outputs are those of the function, its nodes may refer to attributes of the caller
  Bytes source;
};

struct Model {
  int64_t ir_version = 0;
  Opsets opsets;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  int64_t model_version = 0;
  std::string doc;
  Metadata metadata;
  GraphPtr graph;
  std::vector<Function> functions;
  Bytes extra;         // fields of the file that are carried along as they are (training info, device configurations)
  uint64_t given = 0;  // a bit for each field of the file's message that is there, even where it is empty
  uint64_t file_size = 0;  // in bytes, without external data; 0 where it was not read from a file or from memory
  std::string path;        // where it was read from; empty for bytes in memory

  Model();
  Model(Model&& other) noexcept;
  Model& operator=(Model&& other) noexcept;
  ~Model();

  int64_t opset(std::string_view domain) const;  // 0 where it is not imported
};

}  // namespace tonnx
