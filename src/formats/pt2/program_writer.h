// program_writer.h - the texts of a .pt2 archive: its program, and the tables of its weights.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pt2/size_writer.h"
#include "ir/model.h"

namespace tonnx::pt2 {

/// A parameter or a buffer.
struct Weight {
  std::string name;  // in the state dict
  const Value* value;
  bool transposed = false;  // the bytes of its tensor are to be stored with the two dimensions swapped
  bool trainable = false;
  bool is_alias = false;  // another name of one that the graph has
  std::string file;       // weight_0; those that are stored as one share it
};

struct ProgramParts {
  const Graph* graph;
  std::vector<Weight> weights;  // parameters first
  std::vector<std::string> output_names;
  std::map<std::string, SizeRange> ranges;  // by the model's names of sizes
  SampleSizes sample_sizes;
};

struct ProgramTexts {
  std::string program;         // models/model.json
  std::string weights_config;  // data/weights/model_weights_config.json
  std::string names;           // extra/tonnx.json
};

ProgramTexts write_program(const ProgramParts& parts);

}  // namespace tonnx::pt2
