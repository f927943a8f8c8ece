// program.h - the JSON of a program, parsed, to a graph.
#pragma once
#include <rapidjson/document.h>

#include "formats/pt2/pt2.h"

namespace tonnx::pt2 {

/// Who made the program: a file may say anything; the Python package has operators of ours besides PyTorch's.
enum class Origin { File, Package };

/// The archive has the weights; its own text is not looked at.
Program read_json(const rapidjson::Value& json, const Pt2Archive& archive, Origin origin);

}  // namespace tonnx::pt2
