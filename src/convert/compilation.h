// compilation.h - one conversion: what is being converted, the dialect that it is in, and what was asked of it.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convert/pipeline.h"
#include "modules/module_tree.h"
#include "passes/dialects/dialect.h"

namespace tonnx {

/// Two verbs: bring it to a dialect, and write it in a format. The way from one dialect to another is a path through
/// one table of edges, each with its function and the passes that belong to it.
class Compilation {
 public:
  /// The model stays the caller's, and is changed on the way. `output_names`: what the outputs of a program are called.
  Compilation(Model& model, Dialect dialect, ConvertOptions options = {}, std::vector<std::string> output_names = {});
  Compilation(Program& program, Dialect dialect, ConvertOptions options = {})
      : Compilation(program.model, dialect, std::move(options), program.output_names) {}
  Compilation(const Compilation&) = delete;

  Dialect dialect() const { return dialect_; }
  /// In the dialect that it is in.
  const GraphPtr& graph() const { return graph_; }
  /// Around the graph; of code, the model that it comes from.
  Model& model() { return made_ ? *made_ : *source_; }
  /// Which nodes are taken over, and how; to be given before the step that needs it.
  LoweringOptions& lowering() { return lowering_; }
  ConvertOptions& options() { return options_; }

  /// Gives the source the weights, sizes and the like that were asked for. write() does so itself.
  void apply_options();
  /// Throws Internal where no edges lead there.
  void bring_to(Dialect dialect);
  /// To code as it is before any pass of it ran.
  void bring_to_plain_code();
  /// In the format that the ending of the path says.
  void write(const std::string& target);

  /// Its code.
  PythonModule python(const PythonOptions& options);
  /// Its modules, and the graph with their calls.
  ModuleTree modules();

 private:
  struct Edge;
  static const Edge kEdges[];
  static std::vector<const Edge*> path(Dialect from, Dialect to);

  void step(const Edge& edge, bool runs_passes = true);
  void check() const;

  void make_graph_functional();
  void upgrade();
  void raise_graph();
  void store_model();
  void lower_graph();
  void write_as_code();
  void export_code();
  void name_outputs();

  void write_pt2_file(const std::string& target);
  void write_onnx_file(const std::string& target);

  Model* source_;
  std::optional<Model> made_;  // ONNX that was made of a program
  GraphPtr graph_;
  Dialect dialect_;
  ConvertOptions options_;
  LoweringOptions lowering_;
  std::vector<std::string> output_names_;
  std::set<std::string> weights_;  // of a program that became ONNX
  std::vector<StateEntry> state_;  // of code that became a program
  bool has_options_ = false;       // of the source, which were applied
};

/// A file and the dialect that it is read in.
struct Source {
  Program program;
  Dialect dialect;
};
Source read_source(const std::string& path, Format format, const ConvertOptions& options);
/// The dialect that a format is read in.
Dialect dialect_of(Format format);

}  // namespace tonnx
