// writer.cpp - a torch.export archive: program, weights, sample inputs.
#include <unordered_set>

#include "base/error.h"
#include "base/zip_writer.h"
#include "formats/pt2/program_writer.h"
#include "formats/pt2/pt2.h"
#include "formats/pt2/sample_inputs.h"
#include "formats/weight_files.h"

namespace tonnx {

void write_pt2(const Graph& graph, const std::vector<StateEntry>& state, const std::string& path,
               const Pt2Options& options) {
  pt2::ProgramParts parts{&graph, {}, options.output_names, {}, {}};
  std::unordered_set<const Value*> written;
  for (const bool trainable : {true, false}) {
    for (const StateEntry& each : state) {
      if (each.trainable != trainable) continue;
      const bool is_alias = !written.insert(each.value).second;
      parts.weights.push_back({each.name, each.value, each.transposed, trainable, is_alias, {}});
    }
  }
  WeightFiles files;
  for (pt2::Weight& weight : parts.weights)
    weight.file = fmt::format("weight_{}", files.add(*weight.value, weight.transposed));
  for (const auto& [name, range] : options.ranges) parts.ranges[name] = {range.first, range.second};
  const auto sizes = pt2::choose_sample_sizes(graph, parts.ranges);
  if (sizes) parts.sample_sizes = *sizes;
  const pt2::ProgramTexts texts = pt2::write_program(parts);

  OutputFile file = options.memory != nullptr ? OutputFile(*options.memory) : OutputFile(path);
  ZipWriter zip(file);
  zip.add("model/archive_format", "pt2");
  zip.add("model/archive_version", "0");
  zip.add("model/.data/version", "6\n");
  zip.add("model/byteorder", "little");
  zip.add("model/models/model.json", texts.program);
  zip.add("model/data/sample_inputs/model.pt", sizes ? pt2::sample_inputs(graph, *sizes) : std::string());
  zip.add("model/data/constants/model_constants_config.json", R"({"config": {}})");
  zip.add("model/data/weights/model_weights_config.json", texts.weights_config);
  zip.add("model/extra/tonnx.json", texts.names);
  files.write(zip, "model/data/weights/weight_", options.progress);
  zip.finish();
  file.commit();
}

}  // namespace tonnx
