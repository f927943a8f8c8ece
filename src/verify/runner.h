// runner.h - a model that can be run, as the judge sees it: inputs, outputs, and the values in between.
#pragma once
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/model.h"
#include "ir/tensor.h"
#include "verify/rounding.h"

namespace tonnx::judge {

using Tensors = std::vector<TensorPtr>;

/// One size of an input: a number, a name or an expression over names, or nothing that is known.
struct Size {
  int64_t number = -1;
  std::string text = {};

  bool is_number() const { return number >= 0; }
};

struct Input {
  std::string name;
  DType dtype = DType::Undefined;
  std::optional<std::vector<Size>> shape = {};
  std::optional<int64_t> limit = {};  // integers below it
};

/// What an open size may be.
struct SizeRange {
  std::string name;
  int64_t low = 0;
  int64_t high = INT64_MAX;
};

/// A value that a model computes, in order of execution.
struct Step {
  std::string name;
  std::string op = {};
  std::vector<int64_t> parents = {};  // steps that it is computed from; inputs are -1, -2, ...
  std::string layer = {};             // the node or the module that computes it
  std::string module = {};            // where a node lies in the model that the file was made of
  std::vector<std::string> weights = {};
  std::vector<std::string> paths = {};  // of modules whose output it is

  const std::string& title() const { return layer.empty() ? name : layer; }
};

/// Values by their places among the steps.
using ByPlace = std::map<size_t, TensorPtr>;

/// A weight, and the derivative of a sum with respect to each of its elements.
struct WeightGradient {
  std::string name;
  TensorPtr weight;
  TensorPtr gradient;  // null where the weight had no part in the sum
};
struct Gradients {
  std::vector<WeightGradient> weights;
  double work = 0;  // that it took, in seconds of a usual processor
};
/// The factors of the elements of one value in the sum that is differentiated; null where it is no part of it.
using Factors = std::function<TensorPtr(size_t place, const TensorPtr& value)>;
using Visit = std::function<void(size_t place, const TensorPtr& value)>;

/// A runner could not do what it was asked for.
struct Failure {
  std::exception_ptr thrown;
  ErrorKind kind = ErrorKind::InvalidModel;
  std::string text;
};
/// The first model cannot be run on anything that is known of its inputs: nothing can be said of the second.
struct CannotRun {
  Failure failure;
};

/// A model that is open. All but the first group throw Failure where they cannot do it.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual std::string title() const = 0;
  virtual std::vector<Input> inputs() const = 0;
  virtual std::vector<SizeRange> ranges() const = 0;
  /// What it runs, where that is known: it tells of inputs, sizes and rounding. Null where it is not.
  virtual const Model* model() const = 0;
  /// What is known of its rounding, where no graph says more.
  virtual Rounding rounding() const = 0;
  /// The names of the outputs, once it ran.
  virtual std::vector<std::string> outputs() const = 0;

  virtual Tensors run(const Tensors& inputs) = 0;
  /// Runs the model, shows values on the way, and gives all steps. Empty where it has nothing to show.
  virtual std::vector<Step> trace(const Tensors& inputs, const Visit& visit) = 0;
  /// The values of some steps; null for what is no tensor.
  virtual Tensors fetch(const Tensors& inputs, const std::vector<size_t>& places) = 0;
  /// The outputs where the values of some steps are others.
  virtual Tensors run_with(const Tensors& inputs, const ByPlace& given) = 0;
  /// Values of steps as they are computed where those that use the given ones take these.
  virtual Tensors recompute(const Tensors& inputs, const ByPlace& given, const std::vector<size_t>& wanted) = 0;
  /// The derivatives of a sum over outputs, or over values inside; nothing where the model has none.
  virtual std::optional<Gradients> gradients(const Tensors& inputs, const Factors& factors, bool is_inside) = 0;
};

/// The name as it is written into code and programs of PyTorch.
std::string identifier(std::string_view name);

}  // namespace tonnx::judge
