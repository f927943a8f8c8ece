// program.h - the JSON of a program, parsed, to a graph.
#pragma once
#include <rapidjson/document.h>

#include "formats/pt2/pt2.h"

namespace tonnx::pt2 {

/// The archive has the weights; its own text is not looked at.
Program read_json(const rapidjson::Value& json, const Pt2Archive& archive);

}  // namespace tonnx::pt2
