// vetted_program.h - the JSON of a program written anew, with nothing in it that PyTorch could run.
#pragma once
#include <rapidjson/document.h>

#include <string>
#include <string_view>

#include "ops/frame/allowed_ops.h"

namespace tonnx::pt2 {

/// Throws InvalidModel, Unsupported.
std::string vetted_program(const rapidjson::Value& program, const AllowedOps& allowed);

/// The name of a weight, whose parts that are no identifiers stand in code between quotes. Throws InvalidModel.
std::string_view vetted_path(std::string_view name);

}  // namespace tonnx::pt2
