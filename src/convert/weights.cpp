// weights.cpp - reads, lists and writes files of weights.
#include "convert/weights.h"

#include "base/error.h"
#include "base/output_file.h"
#include "convert/route.h"
#include "formats/pth/pth.h"
#include "formats/pth/saved.h"
#include "formats/safetensors/safetensors.h"
#include "ir/type.h"

namespace tonnx {
namespace {

std::string type_text(const Tensor& tensor) {
  const std::vector<int64_t>& dims = tensor.dims;
  return text_of(Type::tensor(tensor.dtype, Shape(dims.begin(), dims.end())));
}

}  // namespace

bool is_weights_file(const std::string& path) {
  const auto format = find_format(path);
  return format == Format::Pth || format == Format::Safetensors;
}

std::vector<StateTensor> read_weights(const std::string& path, const std::optional<std::string>& part) {
  return in_context([&] { return "reading " + path; },
                    [&] {
                      const auto format = find_format(path);
                      if (format == Format::Pth)
                        return weights_of(read_saved(map_file(path), "the file"), part, "the file");
                      if (format != Format::Safetensors)
                        fail_unsupported("weights are in a .pth or .safetensors file, and not in '{}'", path);
                      if (!part) return read_safetensors(map_file(path), "the file");
                      SavedContent content;
                      content.tensors = read_safetensors(map_file(path), "the file");
                      return weights_of(content, part, "the file");
                    });
}

std::string print_weights(const std::string& path) {
  return in_context([&] { return "reading " + path; },
                    [&] {
                      SavedContent content;
                      if (find_format(path) == Format::Safetensors) {
                        content.tensors = read_safetensors(map_file(path), "the file");
                      } else {
                        content = read_saved(map_file(path), "the file");
                      }
                      std::string text;
                      for (const StateTensor& entry : content.tensors)
                        text += shown(entry.name) + ": " + type_text(*entry.tensor) + "\n";
                      for (const auto& [name, value] : content.values)
                        text += "# " + (name.empty() ? "" : shown(name) + " = ") + value + "\n";
                      for (const auto& [name, global] : content.foreign)
                        text += "# " + (name.empty() ? "the file" : shown(name)) + " is made by " + shown(global) +
                                ", which is not executed\n";
                      return text;
                    });
}

void convert_weights(const std::string& source, const std::string& target, const std::optional<std::string>& part,
                     const std::function<void(uint64_t, uint64_t)>& progress) {
  const std::vector<StateTensor> state = read_weights(source, part);
  in_context([&] { return "writing " + target; },
             [&] {
               OutputFile file(target);
               if (find_format(target) == Format::Pth) {
                 write_pth(file, state, progress);
               } else {
                 write_safetensors(file, state, progress);
               }
               file.commit();
             });
}

}  // namespace tonnx
