// judge.h - decides whether two models compute the same: on one draw after the other, until what was compared depends
// on all of their weights.
#pragma once
#include "verify/inside.h"
#include "verify/report.h"

namespace tonnx::judge {

struct Options {
  GivenInputs given;
  int draws = 1;  // at least; more are drawn until the outputs depend on all weights
  std::optional<double> rtol = {}, atol = {};
  bool layers = false;                  // compare all values inside
  bool outputs_only = false;            // no more draws than were asked for, and no look at what the outputs hide
  bool may_drop_outputs = false;        // the second model may lack outputs
  uint64_t memory = uint64_t{1} << 30;  // bytes of values inside that are held at the same time
  Tell tell = {};
};

/// The first model is what the second one is measured by.
Report judge(Runner& a, Runner& b, const Options& options);

}  // namespace tonnx::judge
