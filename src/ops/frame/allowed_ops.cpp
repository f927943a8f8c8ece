// allowed_ops.cpp - reads the names that the user gives, and keeps out what no model has a reason to call.
#include "ops/frame/allowed_ops.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/identifier.h"
#include "ir/graph.h"

namespace tonnx {
namespace {

bool is_among(std::span<const std::string_view> all, std::string_view text) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

/// Attributes of torch.ops that are no libraries, and libraries whose operators print, talk to other processes or hold
/// code of their own.
constexpr std::string_view kLibraries[] = {"load_library",
                                           "loaded_libraries",
                                           "import_module",
                                           "higher_order",
                                           "prim",
                                           "prims",
                                           "profiler",
                                           "c10d",
                                           "_c10d_functional",
                                           "_dtensor",
                                           "rpc",
                                           "image",
                                           "streams",
                                           "_operator",
                                           "math",
                                           "torch",
                                           "tonnx",
                                           "os",
                                           "sys",
                                           "builtins",
                                           "_export"};

/// Parts of names, between underscores.
constexpr std::string_view kParts[] = {"file",  "files",   "filename", "library", "libraries", "dlopen",
                                       "exec",  "eval",    "system",   "shell",   "process",   "fork",
                                       "spawn", "socket",  "import",   "pickle",  "unpickle",  "save",
                                       "print", "environ", "getenv",   "setenv",  "url",       "download"};

}  // namespace

bool does_more_than_compute(std::string_view library, std::string_view op) {
  if (is_among(kLibraries, library)) return true;
  while (!op.empty()) {
    const size_t end = std::min(op.find('_'), op.size());
    if (is_among(kParts, op.substr(0, end))) return true;
    op.remove_prefix(std::min(end + 1, op.size()));
  }
  return false;
}

AllowedOps::AllowedOps(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const size_t colons = name.find("::");
    const size_t dot = name.find('.', colons == std::string::npos ? 0 : colons);
    const std::string_view text = name;
    const bool is_name = colons != std::string::npos && is_plain_name(text.substr(0, colons)) &&
                         is_plain_name(text.substr(colons + 2, dot == std::string::npos ? dot : dot - colons - 2)) &&
                         (dot == std::string::npos || is_plain_name(text.substr(dot + 1)));
    require(is_name, "'{}' is no operator: the name of one is library::name or library::name.overload", name);
    if (does_more_than_compute(text.substr(0, colons),
                               text.substr(colons + 2, dot == std::string::npos ? dot : dot - colons - 2)))
      fail_unsupported("'{}' cannot be allowed: no model has a reason to reach for files, libraries or the process",
                       name);
    names_.insert(name);
  }
}

bool AllowedOps::contains(const Node& node) const {
  const std::string name = fmt::format("{}::{}", node.domain.view(), node.op.view());
  if (names_.contains(name)) return true;
  const std::string_view overload = node.overload.empty() ? "default" : node.overload.view();
  return names_.contains(fmt::format("{}.{}", name, overload));
}

}  // namespace tonnx
