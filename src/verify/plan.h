// plan.h - the inputs of a comparison: what is given, and random draws at sizes with which both models can run.
#pragma once
#include <set>

#include "verify/draws.h"
#include "verify/sizes.h"

namespace tonnx::judge {

/// The inputs of either model in its own order.
struct Feeds {
  Tensors first, second;
};

/// The outputs of both.
struct Ran {
  Tensors first, second;
};

struct GivenInputs {
  std::vector<std::pair<std::string, TensorPtr>> data;
  std::map<std::string, std::vector<int64_t>> shapes;  // of random ones; -1 is chosen
  uint64_t seed = 0;
  Fill fill = Fill::Random;
};

/// Nothing says what shape an input has, and so the user has to.
struct ShapeUnknown {
  std::string input;
};

class Plan {
 public:
  Plan(Runner& a, Runner& b, const ModelHints& hints, const GivenInputs& given);

  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Input>& others() const { return others_; }
  /// For each input of the second model the number of that of the first.
  const std::vector<size_t>& pairs() const { return pairs_; }
  bool is_random() const;
  /// Draws differ in more than numbers: other parts of the models may run, which need other sizes.
  bool has_choices() const;

  /// Settles on the first sizes with which both models can run a draw, and gives what they make of it. Throws
  /// CannotRun, or the Failure of the second.
  Ran find_sizes(int number = 0);
  Feeds draw(int number) const;
  Tensors feeds_of_other(const Tensors& feeds) const;

 private:
  /// One dimension of an input: what either model, the hints and the user say of it.
  struct Declared {
    std::optional<int64_t> number;
    std::vector<std::string> names;  // that it has
    std::vector<Dim> expressions;    // over other names
  };
  /// What was chosen for a draw.
  struct Choice {
    SizesByName sizes;
    SizeRule rule;
    bool is_cautious = false;
  };
  using Shapes = std::vector<std::vector<int64_t>>;

  static void declare(const Size& size, Declared& declared);
  void take_given(const GivenInputs& given);
  void take_hints(const ModelHints& hints);
  std::vector<std::string> titles(size_t input) const;
  const Input* other_of(size_t input) const;
  std::vector<Declared> declared_of(size_t input) const;
  void require_same_shapes(size_t input) const;
  void find_open_sizes(const ModelHints& hints);
  void find_bounds();
  void drop_composed(std::map<std::string, SizePlace>& names) const;
  int64_t size_of(const Declared& dim, size_t place, size_t rank, SizesByName& sizes, const SizeRule& rule) const;
  int64_t bounded(const std::string& name, int64_t size) const;
  Shapes shapes_of(const Choice& choice) const;
  int64_t length_of(const Shapes& shapes) const;
  Tensors made(int number, const Choice& choice) const;
  DType dtype_of(size_t input) const;
  bool has_integers() const;

  Runner &a_, &b_;
  std::vector<Input> inputs_, others_;
  std::vector<size_t> pairs_;
  std::vector<TensorPtr> data_;  // null where it is random
  std::vector<std::optional<std::vector<int64_t>>> given_shapes_;
  std::vector<InputHint> hints_;
  std::map<std::string, SizeRange> bounds_;
  std::vector<std::vector<Declared>> dims_;
  std::vector<SizeChoice> candidates_;
  std::map<int, Choice> choices_;
  uint64_t seed_;
  Fill fill_;
};

}  // namespace tonnx::judge
