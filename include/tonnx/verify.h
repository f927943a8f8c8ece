// verify.h - whether two models compute the same, where a program has a runtime for them.
#pragma once
#include <tonnx/model.h>

TONNX_BEGIN

/// A model in a runtime: ONNX Runtime, libtorch, one of one's own. A program implements it.
class TONNX_API Runner {
 public:
  struct Value {
    std::string name;
    Type type;  ///< with what is not known left open
  };
  virtual ~Runner();
  /// What run() takes, in order.
  virtual std::vector<Value> inputs() const = 0;
  /// The names of what it gives, in order.
  virtual std::vector<std::string> outputs() const = 0;
  /// May throw where it cannot run with inputs of these sizes: others are tried then, where sizes are open.
  virtual std::vector<Tensor> run(const std::vector<Tensor>& inputs) = 0;
  /// The names of values inside that run_inner() can give, in the order in which they are computed. None, unless a
  /// program says otherwise: then outputs alone are compared.
  virtual std::vector<std::string> inner() const;
  /// The values of these names, in this order, at these inputs.
  virtual std::vector<Tensor> run_inner(const std::vector<Tensor>& inputs, const std::vector<std::string>& names);
};

struct VerifyOptions {
  std::vector<std::pair<std::string, Tensor>> inputs = {};  ///< those of them that are not to be random
  InputShapes shapes = {};                                  ///< of random ones; -1 is chosen
  int draws = 3;  ///< random inputs: in [0, 1), normal, waves, pixels, sparse, small
  uint64_t seed = 0;
  /// In place of those that fit the types and the depth; one that is not given is 0.
  std::optional<double> rtol = {}, atol = {};
  /// Compares values inside too, where both runners have them: at the first draw at which the outputs differ, or at the
  /// first one.
  bool layers = false;
};

/// One output of the two models, at the inputs where it is furthest off.
struct OutputComparison {
  std::string name;
  std::string type;  ///< `float32[1, 1000]`
  int64_t elements = 0;
  int64_t wrong = 0;  ///< elements further off than they may be
  double max_abs = 0, max_rel = 0, mse = 0, cosine = 1;
  double rtol = 0, atol = 0;  ///< |b - a| may be atol + rtol * |a|
  bool is_same = true;
  std::string why;  ///< where it is not a matter of numbers: another shape
};

/// A value inside of the first model, and what it is in the second.
struct LayerComparison : OutputComparison {
  std::string counterpart;  ///< its name there
};

struct VerifyResult {
  bool is_same = true;
  std::vector<OutputComparison> outputs;
  int draws = 0;
  std::vector<std::pair<std::string, std::string>> inputs;  ///< names, and types with the sizes that were chosen

  /// Values inside that have a counterpart, in the order of the first model. They do not change the verdict, for two
  /// models may compute the same in two ways; but for hidden_layer().
  std::vector<LayerComparison> layers = {};

  explicit operator bool() const { return is_same; }
  /// The first of these that differs; null where none does.
  TONNX_API const LayerComparison* first_layer() const;
  /// A value inside that differs though no output would show it: the reference, a ProbedRunner (probe.h), gives the
  /// same outputs with the value of the other model in place of its own. Null where there is none. The models differ
  /// then.
  TONNX_API const LayerComparison* hidden_layer() const;
  /// The first output that differs, or else the hidden layer, in words; empty where none does.
  TONNX_API std::string first_difference() const;
  /// All of it, a line for each output.
  TONNX_API std::string text() const;
};

/// Runs both on the same inputs, which belong together by name, or by place where the names say nothing, and so do
/// the outputs. Sizes, inputs and tolerances follow the rules of docs/verify.md. What they are is found in `model`,
/// which either of them runs: sizes at which something happens inside, rows of tables that inputs choose, numbers that
/// they are compared with, and how much rounding is to be expected. Where a runner throws, other sizes are tried, if
/// any are open; what it throws in the end passes through.
TONNX_API VerifyResult verify(Runner& reference, Runner& other, const Model& model, const VerifyOptions& options = {});

TONNX_END
