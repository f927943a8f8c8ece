// pt2_files.h - small .pt2 archives for tests, in each of the layouts.
#pragma once
#include <string>
#include <vector>

#include "base/zip_builder.h"

namespace tonnx {

/// One row of the table of tensors; lists are texts such as "2, 3".
std::string payload(const std::string& file, int dtype, const std::string& sizes, const std::string& strides,
                    const std::string& offset = "0", bool is_param = true);
/// The table, out of `"name": {...}` rows.
std::string payload_table(const std::vector<std::string>& rows);

/// The parts of an archive with that program and those tensors; files of tensors are to be added.
std::vector<ZipPart> pt2_parts(const std::string& program, const std::string& weights, const std::string& constants);

/// What torch.save writes for OrderedDict(w=Parameter of 3x2, transposed, tied=w, b=bfloat16 [1, 2, 3] that begins
/// inside its storage, u=uint16 [1, 65535], s=float64 scalar 2).
std::string saved_state_dict();
/// A file of torch.save with that pickle, and no storages.
std::string saved_pickle(const std::string& pickle);

/// The layout without a root folder.
std::vector<ZipPart> old_pt2_parts(const std::string& program, const std::string& weights,
                                   const std::string& constants);

}  // namespace tonnx
