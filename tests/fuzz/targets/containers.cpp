// containers.cpp - zip files, pickles and files of weights.
#include "base/pickle.h"
#include "base/zip.h"
#include "formats/pth/pth.h"
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
}

}  // namespace tonnx::fuzz
