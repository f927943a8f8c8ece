// containers.cpp - zip files, pickles and files of weights.
#include "base/budget.h"
#include "base/pickle.h"
#include "base/zip.h"
#include "formats/pth/pth.h"
#include "formats/pth/saved.h"
#include "formats/safetensors/safetensors.h"
#include "fuzz/targets/targets.h"

namespace tonnx::fuzz {

void read_zip(std::string_view bytes) {
  tried([&] {
    ZipFile zip(Bytes::own(std::string(bytes)));
    for (const ZipEntry& entry : zip.entries()) choice_of(zip.read(entry).view());
  });
}

void read_pickle(std::string_view bytes) {
  tried([&] {
    const Pickle pickle(Bytes::own(std::string(bytes)), "a pickle");
    choice_of(pickle.root().text);
  });
}

void read_weights(std::string_view bytes) {
  tried([&] {
    ZipFile zip(Bytes::own(std::string(bytes)));
    StridedTensors tensors(uint64_t{1} << 24);
    for (const auto& [name, tensor] : read_pth(zip, tensors, "weights")) choice_of(tensor.tensor->data.view());
  });
  tried([&] {
    const BudgetScope scope;
    const SavedContent content = read_saved(Bytes::own(std::string(bytes)), "weights");
    for (const StateTensor& each : content.tensors) choice_of(each.tensor->data.view());
    weights_of(content, std::nullopt, "weights");
  });
}

void read_header(std::string_view bytes) {
  tried([&] {
    const BudgetScope scope;
    for (const StateTensor& each : read_safetensors(Bytes::own(std::string(bytes)), "weights"))
      choice_of(each.tensor->data.view());
  });
}

}  // namespace tonnx::fuzz
