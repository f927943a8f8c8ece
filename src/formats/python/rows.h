// rows.h - the rows of a docstring that say what goes in and comes out.
#pragma once
#include <string>
#include <vector>

namespace tonnx::python {

/// A name, and what is known of it.
struct Row {
  std::string name, about;
};

/// The rows, with one for those that only count on: past_0..5_key for past_0_key, past_1_key ... past_5_key.
std::vector<Row> counted_together(const std::vector<Row>& rows);

}  // namespace tonnx::python
