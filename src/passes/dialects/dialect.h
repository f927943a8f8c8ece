// dialect.h - the vocabularies that graphs are written in, and what holds in each; docs/dialects.md tells of them.
#pragma once
#include <cstdint>

#include "ir/graph.h"

namespace tonnx {

enum class Dialect : uint8_t {
  Stored,    // operators of ONNX at the opset of each node, and calls of functions, as a file has them
  Onnx,      // operators of ONNX at the newest opset, with the types of values
  Script,    // aten as a program was written: operators may write to tensors, and have other names than the newest ones
  Exported,  // aten as torch.export gives it: functional, sizes as integers, graphs of torch.ops.higher_order
  Code,      // aten as Python is written: lists, loops, branches and numbers of the library tonnx
  Python,    // code with modules, and types of numbers, that Python alone has
};

const char* name_of(Dialect dialect);

/// Throws Internal where the graph, or one inside it, is not what the dialect allows. The tests call it, and builds
/// with sanitizers wherever a graph has come into a dialect.
void check_dialect(const Graph& graph, Dialect dialect);

/// The same in builds with sanitizers, and nothing in others.
inline void expect_dialect([[maybe_unused]] const Graph& graph, [[maybe_unused]] Dialect dialect) {
#ifdef TONNX_CHECKS_DIALECTS
  check_dialect(graph, dialect);
#endif
}

}  // namespace tonnx
