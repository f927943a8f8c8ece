// payload.h - the tensors of a torch.export archive, each a raw file that a table in JSON describes.
#pragma once
#include <rapidjson/document.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/zip.h"
#include "formats/pt2/archive.h"
#include "ir/strided.h"

namespace tonnx {

enum class Payloads { Weights, Constants };

struct PayloadFolder {
  std::string path;    // in the zip file, with the slash at its end
  std::string config;  // the name of the table, for errors
  Payloads kind;
};

/// The bytes that a description calls by a name.
using StorageOf = std::function<Bytes(std::string_view)>;

Pt2Tensor read_payload(const rapidjson::Value& payload, const StorageOf& storage_of, StridedTensors& tensors);

/// Throws where a tensor is pickled, damaged, or reaches outside its file, and says which one it is.
std::map<std::string, Pt2Tensor> read_payloads(ZipFile& zip, std::string_view config, const PayloadFolder& folder,
                                               StridedTensors& tensors);

}  // namespace tonnx
