// opener.h - walks through a model whose inputs have open sizes, and lets the sizes that the file fixes follow them.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "convert/inference.h"
#include "convert/opening/choices.h"
#include "convert/opening/fixed_types.h"
#include "convert/opening/grow.h"
#include "convert/opening/size_values.h"
#include "ir/dim_map.h"
#include "ops/frame/open_node.h"

namespace tonnx {

class Opener {
 public:
  /// `opened`: what each opened size is in the file. `samples`: of them, those of first dimensions.
  Opener(Model& model, FixedTypes types, Choices& choices, const std::map<std::string, int64_t>& opened,
         std::set<std::string> samples);

  /// Of the names, those that count samples, which do not depend on each other.
  std::set<std::string> open();

 private:
  class View;

  bool is_open(const Dim& size) const;
  Dim fixed(const Dim& size) const { return substituted(size, fixed_); }
  bool depends_on_data(const Value* value) const;
  std::optional<SizeValues::Source> source_of(const std::string& symbol) const;
  void note_sources(Value& value);
  void infer_made(Node& node);

  void before(Node& node);
  void after(Node& node);
  void check_sizes(Value& output);
  void check_equal();
  void check_samples(const Node& node);
  bool is_one_per_sample(const Value& output, const std::string& name) const;
  void note_data(const Node& node);
  void note_size_values(const Node& node);
  void hand_on_parts(const Node& node);
  void follow_states(Node& loop);
  bool agree(const Dim& a, const Dim& b) const;

  Model& model_;
  FixedTypes fixed_types_;
  Choices& choices_;
  DimMap fixed_;                   // what each open size is in the file: those that were asked for, and what follows
  std::set<std::string> samples_;  // names of first dimensions whose elements nothing joined so far
  OnnxInference inference_;
  SizeValues sizes_;
  Grower grower_;
  std::map<std::string, SizeValues::Source> sources_;
  std::unordered_set<const Value*> data_;         // what depends on the data of an opened input
  std::unordered_set<const Value*> size_values_;  // what is computed from open sizes
  std::unordered_map<const Value*, std::vector<SizeParts>> parts_;
  std::unordered_set<const Value*> has_parts_;         // of the node at hand
  std::set<std::pair<const Value*, size_t>> resized_;  // along which axis, in proportion to the input
  bool is_busy_ = false;
};

}  // namespace tonnx
