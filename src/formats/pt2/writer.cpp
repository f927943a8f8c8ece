// writer.cpp - a torch.export archive: program, weights, sample inputs.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/zip_writer.h"
#include "formats/pt2/program_writer.h"
#include "formats/pt2/pt2.h"
#include "formats/pt2/sample_inputs.h"
#include "ir/transposed.h"

namespace tonnx {
namespace {

using pt2::Weight;

/// Names of one weight share a file, and nothing else does: PyTorch takes what lies in one storage for one weight.
void name_files(std::vector<Weight>& weights) {
  std::map<const Value*, std::string> files;
  for (Weight& weight : weights) {
    const auto [at, fresh] = files.try_emplace(weight.value, "");
    if (fresh) at->second = fmt::format("weight_{}", files.size() - 1);
    weight.file = at->second;
  }
}

void write_weights(ZipWriter& zip, const std::vector<Weight>& weights, const Pt2Options& options) {
  uint64_t total = 0, done = 0;
  std::map<std::string, const Weight*> files;
  for (const Weight& weight : weights) {
    if (files.try_emplace(weight.file, &weight).second) total += weight.value->constant->data.size();
  }
  for (const Weight& weight : weights) {
    if (files.at(weight.file) != &weight) continue;
    zip.begin("model/data/weights/" + weight.file);
    const Tensor& tensor = *weight.value->constant;
    if (weight.transposed) {
      Tensor source = tensor;
      std::swap(source.dims[0], source.dims[1]);
      write_transposed(source, [&](std::string_view piece) { zip.write(piece); });
    } else {
      zip.write(tensor.data);
    }
    zip.end();
    done += tensor.data.size();
    if (options.progress) options.progress(done, total);
  }
}

}  // namespace

void write_pt2(const Graph& graph, const std::vector<Pt2State>& state, const std::string& path,
               const Pt2Options& options) {
  pt2::ProgramParts parts{&graph, {}, options.output_names, {}, {}};
  for (const bool trainable : {true, false}) {
    for (const Pt2State& each : state) {
      if (each.trainable == trainable)
        parts.weights.push_back({each.name, each.value, each.transposed, each.trainable, each.is_alias, {}});
    }
  }
  name_files(parts.weights);
  for (const auto& [name, range] : options.ranges) parts.ranges[name] = {range.first, range.second};
  const auto sizes = pt2::choose_sample_sizes(graph, parts.ranges);
  if (sizes) parts.sample_sizes = *sizes;
  const pt2::ProgramTexts texts = pt2::write_program(parts);

  OutputFile file(path);
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
  write_weights(zip, parts.weights, options);
  zip.finish();
  file.commit();
}

}  // namespace tonnx
