// rows.h - what the fuzzers do with each row of the tables: models of one node whose arguments, attributes and types
// lie.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tonnx::fuzz {

/// One row of a table, and what is done with a case of it: false where it was refused, and nothing is thrown but for
/// what no file may cause.
struct Row {
  std::string name;
  std::function<bool(uint32_t seed)> run;
};

/// Every operator of aten's tables that a file can have, in programs to ONNX, Python and TorchScript.
std::vector<Row> aten_rows();
/// Operators that take graphs.
std::vector<Row> graph_rows();
/// Every operator of ONNX's tables, in models on every route.
std::vector<Row> onnx_rows();

/// The case that the bytes pick: two for the row, four for the seed.
void run_case(const std::vector<Row>& rows, std::string_view bytes);

}  // namespace tonnx::fuzz
