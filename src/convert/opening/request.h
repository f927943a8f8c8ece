// request.h - which sizes of a model's inputs are to be open.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "convert/input_sizes.h"
#include "convert/opening/fixed_types.h"
#include "ir/dim_map.h"

namespace tonnx {

/// Where an input has a size that is to be open, and the name of that.
struct OpeningPlace {
  size_t input, axis;
  std::string name;
};

struct OpeningRequest {
  std::map<std::string, int64_t> opened;  // what each size is in the file
  std::set<std::string> samples;          // of them, those of first dimensions
  std::vector<OpeningPlace> places;
  DimMap renamed;  // sizes that are open already

  /// Whether all that is opened is one number of samples, which is 1 in the file.
  bool is_one_sample() const {
    return opened.size() == 1 && opened.begin()->second == 1 && samples.size() == 1 && renamed.empty();
  }
};

/// Throws InvalidModel where the model has no such sizes, or they cannot be equal.
OpeningRequest read_request(const Model& model, const std::vector<DynamicDim>& dims);

/// Makes these sizes of the inputs symbols.
void declare_open(Model& model, const OpeningRequest& request);

}  // namespace tonnx
