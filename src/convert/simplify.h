// simplify.h - makes a model of ONNX simpler, and says what was done.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convert/judge.h"
#include "ir/model.h"

namespace tonnx {

struct Pass;

struct SimplifyOptions {
  std::map<std::string, std::vector<int64_t>> input_shapes;  // by input; -1 leaves a dimension as it is
  std::vector<std::string> skip;                             // passes that are left out
  std::vector<std::string> only;                             // where it is not empty: the only passes
  std::vector<std::string> enable;                           // passes that run on request
  std::vector<std::string> unused_outputs;                   // outputs that are dropped
  int64_t fold_limit = int64_t{1} << 20;                     // bytes by which a constant may exceed what it is made of
  std::optional<int64_t> opset;                              // that the result follows
  bool infers_shapes = true;                                 // the result says the types of all values
  /// Asked after each pass that changed something; with no for an answer nothing else is done.
  std::function<bool(const Model&, std::string_view pass)> is_right;
};

struct SimplifyReport {
  struct Pass {
    std::string name;
    int64_t changes = 0;
    double seconds = 0;
  };
  std::map<std::string, int64_t> ops_before, ops_after;  // with those of graphs inside nodes; Constant is an op too
  std::vector<Pass> passes;                              // that ran, in order
  int rounds = 0;
  uint64_t bytes_before = 0;
  int64_t room_for_types = 0;           // bytes by which the result may still grow, with types of values for example
  std::string guilty;                   // the pass that `is_right` said no to
  std::vector<std::string> taken_back;  // passes that were left out because the outputs changed with them
  int64_t checks = 0;                   // comparisons of the whole result with the source
  bool is_right = true;                 // whether all of them agreed
  std::string difference;               // what the judge said where they did not
  std::string not_judged;               // why nothing was compared, where that was asked for
};

struct SimplifyFileOptions {
  SimplifyOptions simplify;
  std::optional<bool> external_data;
  Judge judge;                   // null: nothing is compared
  bool verifies_passes = false;  // the judge looks after every pass, and a pass that changes the outputs is left out
};

/// Simplifies a model that was read from a file or from memory, and compares it with what it was.
SimplifyReport simplify_and_compare(Model& model, const SimplifyFileOptions& options);
/// Writes the result, with as many types as the file can hold without growing by more than a hundredth.
void write_simplified(Model& model, const std::string& target, const SimplifyReport& report,
                      const SimplifyFileOptions& options);
std::string simplified_bytes(Model& model, const SimplifyReport& report, const SimplifyFileOptions& options);

/// Whether a file of the result has room for the types of values, by that rule.
bool has_room_for_types(const Model& model, const SimplifyReport& report, const SimplifyOptions& options);

/// Throws InvalidModel where the options name passes that there are not.
void require_known_passes(const SimplifyOptions& options);

/// Changes the model. Throws InvalidModel where the options name what the model or tonnx does not have.
SimplifyReport simplify(Model& model, const SimplifyOptions& options = {});

/// Runs one pass of Phase::Simplify once, after an inference of all types, and says whether it changed anything.
bool run_simplify_pass(Model& model, const Pass& pass);

/// Makes a graph at the newest opset, whose types are known, simpler before it is lowered: what nodes do in vain goes
/// away, and layers stay as they are. Nodes that `leave_alone` accepts are not looked into.
void simplify_for_lowering(Graph& graph, const std::function<bool(const Node&)>& leave_alone);

/// Makes a graph at the newest opset that comes from PyTorch simpler: what ONNX has one operator for is that one, where
/// the opset that it is to be written in has it. Weights stay as they are if asked for.
void simplify_raised(Graph& graph, int64_t opset, bool keeps_weights = false);

/// Finds out the types of all values, and declares them. Throws InvalidModel where what the file declares cannot be.
void infer_and_declare(Model& model, const std::map<std::string, std::vector<int64_t>>& input_shapes = {});

/// The report in JSON.
std::string json_of(const SimplifyReport& report, uint64_t bytes_after);
/// A table: each operator before and after, and the sizes of the files.
std::string table_of(const SimplifyReport& report, uint64_t bytes_after);

}  // namespace tonnx
