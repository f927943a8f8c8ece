// verify.h - whether two models compute the same, where a program has a runtime for them.
#pragma once
#include <tonnx/callback.h>
#include <tonnx/model.h>

TONNX_BEGIN

/// A model in a runtime: ONNX Runtime, libtorch, one of one's own. A program implements it.
class TONNX_API Runner {
 public:
  struct Value {
    std::string name;
    Type type;                          ///< with what is not known left open
    std::optional<int64_t> limit = {};  ///< integers of it are below that
  };
  /// What an open size may be.
  struct Range {
    std::string name;
    int64_t low = 0;
    int64_t high = INT64_MAX;
  };
  /// A value inside, in the order in which values are computed. All but the name may be left out: it is then found in
  /// the model, by the name.
  struct Step {
    Step(std::string name) : name(std::move(name)) {}  // NOLINT: a name is a step
    Step(const char* name) : name(name) {}             // NOLINT

    std::string name;
    std::string op = {};
    std::vector<int64_t> parents = {};  ///< steps that it is computed from; inputs are -1, -2, ...
    std::string layer = {};             ///< the node or the module that computes it
    std::string module = {};            ///< where that lies in the model that the file was made of
    std::vector<std::string> weights = {};
    std::vector<std::string> paths = {};  ///< of modules whose output it is
  };
  /// How much rounding is to be expected, where no graph tells more.
  struct Numerics {
    DType precision = DType::Float32;  ///< the coarsest type that it computes in
    bool is_quantised = false;
    double layers = 0;   ///< that add up many numbers, one after the other
    double numbers = 0;  ///< that these add up for one element, together
  };
  /// Called with the place of a step and its value.
  using Visit = Callback<void(size_t, const Tensor&)>;

  virtual ~Runner();
  /// What it is called in messages.
  virtual std::string title() const;
  /// What run() takes, in order.
  virtual std::vector<Value> inputs() const = 0;
  virtual std::vector<Range> ranges() const;
  /// What it runs, where tonnx has read it: sizes at which something happens inside, rows of tables that inputs
  /// choose, numbers that they are compared with, and how much rounding is to be expected, are found in it.
  virtual const Model* model() const;
  virtual Numerics numerics() const;
  /// The names of what run() gives, in order; asked after it ran.
  virtual std::vector<std::string> outputs() const = 0;
  /// May throw a std::exception where it cannot run with inputs of these sizes: others are tried then, where sizes are
  /// open. Whatever else it throws ends the comparison.
  virtual std::vector<Tensor> run(const std::vector<Tensor>& inputs) = 0;
  /// The values inside that run_inner() can give. None, unless a program says otherwise: then outputs alone are
  /// compared.
  virtual std::vector<Step> inner() const;
  /// The values of these steps at these inputs; a Tensor() for what is none.
  virtual std::vector<Tensor> run_inner(const std::vector<Tensor>& inputs, const std::vector<size_t>& places);
  /// All steps, and their values, one after the other. Asks inner() and run_inner() for some at a time, unless a
  /// program has a better way.
  virtual std::vector<Step> trace(const std::vector<Tensor>& inputs, const Visit& visit);
};

/// Random inputs, or others that are easier to follow.
enum class Fill : uint8_t { Random, Ones, Zeros, Arange };

struct VerifyOptions {
  std::vector<std::pair<std::string, Tensor>> inputs = {};  ///< all inputs, where they are not to be random
  InputShapes shapes = {};                                  ///< of random ones; -1 is chosen
  /// Random inputs at least: in [0, 1), normal, waves, pixels, sparse, small. More are drawn, six in all, until the
  /// outputs depend on all weights, as far as a ProbedRunner (probe.h) can tell; three where none can.
  int draws = 1;
  uint64_t seed = 0;
  Fill fill = Fill::Random;
  /// In place of those that fit the types and the depth; one that is not given is 0.
  std::optional<double> rtol = {}, atol = {};
  /// Compares values inside too, where both runners have them.
  bool layers = false;
  bool outputs_only = false;            ///< no more draws than were asked for, and no look at what the outputs hide
  bool may_drop_outputs = false;        ///< the second model may lack outputs
  uint64_t memory = uint64_t{1} << 30;  ///< bytes of values inside that are held at the same time
  /// What is being done, how much of it is done, and how much there is.
  Callback<void(const char*, size_t, size_t)> on_progress = {};
};

/// One output of the two models, at the inputs where it comes closest to what is not allowed.
struct OutputComparison {
  std::string name;
  std::string counterpart;  ///< its name in the second model
  std::string type;         ///< `float32[1, 1000]`
  int64_t elements = 0;
  int64_t wrong = 0;  ///< elements further off than they may be
  double max_abs = 0, max_rel = 0, mse = 0, cosine = 1;
  double rtol = 0, atol = 0;  ///< |b - a| may be atol + rtol * |a|
  bool is_same = true;
  std::string why;  ///< where it is not a matter of numbers: another shape
  /// Off by more than is allowed, though every layer does the same where it gets the same: rounding, magnified.
  bool is_rounding = false;

  /// In a line.
  TONNX_API std::string text() const;
};

/// A value inside of the first model, and what it is in the second.
struct LayerComparison : OutputComparison {
  /// How the counterpart was found.
  enum class How : uint8_t { Name, Value, Place };
  size_t index = 0, counterpart_index = 0;  ///< in order of execution
  std::string layer, op, module, counterpart_layer, counterpart_op;
  std::vector<std::string> weights;
  std::vector<std::string> covers;  ///< nodes before it that have no counterpart
  How how = How::Name;
  double depth = 1;  ///< layers that lie behind it

  /// The layer in the words of both models.
  TONNX_API std::string title() const;
};

/// A size that one model fixes and the other leaves open: what the open model does at other sizes.
struct SizeCheck {
  std::string name;
  bool is_compared = true;  ///< with the fixed model, run once for each sample; otherwise it only has to run
  std::vector<int64_t> sizes;
  bool is_same = true;
  std::string why, note;

  TONNX_API std::string text() const;
};

/// Which weights a comparison has seen: those of which a change by one hundredth would move what was compared by more
/// than it may differ. Weights that are all zeros, and statistics of normalisations, are not counted.
struct Coverage {
  size_t weights = 0;
  size_t outputs = 0;                                            ///< that the outputs depend on
  size_t inside = 0;                                             ///< that only values inside depend on
  std::vector<std::pair<std::string, std::string>> hidden = {};  ///< the others, and why

  bool is_complete() const { return hidden.empty(); }
  /// In a sentence.
  TONNX_API std::string text() const;
};

struct VerifyResult {
  bool is_same = true;
  std::vector<std::pair<std::string, std::string>> inputs;  ///< names, and types with the sizes that were chosen
  bool is_random = false;
  std::vector<std::string> draws;  ///< what random floats were like, each time that both ran
  std::vector<OutputComparison> outputs;
  std::vector<std::string> missing;  ///< outputs that only one model has
  /// Values inside that have a counterpart, in the order of the first model. Two models may compute the same in two
  /// ways, so these do not change the verdict, but for a hidden difference.
  std::vector<LayerComparison> layers;
  /// Where the models part.
  std::optional<LayerComparison> first_difference;
  /// The first difference is one that no output shows: the first model gives the same outputs with the value of the
  /// second in place of its own. The models differ then.
  bool is_hidden_difference = false;
  size_t inside = 0;                               ///< values inside that were compared
  std::optional<std::pair<size_t, size_t>> steps;  ///< values inside that were looked at in the two, where layers are
  std::optional<Coverage> coverage;                ///< nothing where no runner can be differentiated
  std::vector<SizeCheck> sizes;                    ///< those that only one of the models fixes
  std::vector<std::string> left_out;               ///< what would have been too much work, in words
  std::string verdict;                             ///< the last line of the text
  std::string difference;                          ///< what differs, in one line; empty where nothing does
  std::string text;                                ///< all of it, a line for each output

  explicit operator bool() const { return is_same; }
};

/// The reference cannot be run on anything that is known of its inputs: nothing can be said of the other model.
class TONNX_API CannotRun : public Error {
 public:
  using Error::Error;
  ~CannotRun() override;
};

/// Neither model says what shape an input has, and so the caller has to.
class TONNX_API ShapeUnknown : public Error {
 public:
  explicit ShapeUnknown(std::string input);
  ~ShapeUnknown() override;
  const std::string& input() const { return input_; }

 private:
  std::string input_;
};

/// Runs both on the same inputs, which belong together by name, or by place where the names say nothing, and so do
/// the outputs. Sizes, inputs and tolerances follow the rules of docs/verify.md. What the second model throws in the
/// end passes through.
TONNX_API VerifyResult verify(Runner& reference, Runner& other, const VerifyOptions& options = {});
/// The same, where `model` is what the reference runs.
TONNX_API VerifyResult verify(Runner& reference, Runner& other, const Model& model, const VerifyOptions& options = {});

TONNX_END
