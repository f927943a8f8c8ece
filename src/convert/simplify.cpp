// simplify.cpp - runs the passes over a model until nothing changes any more.
#include "convert/simplify.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "convert/inference.h"
#include "convert/opset.h"
#include "convert/pipeline.h"
#include "passes/pass_table.h"
#include "passes/passes.h"

namespace tonnx {
namespace {

constexpr int kMaxRounds = 8;

void count_ops(const Graph& graph, std::map<std::string, int64_t>& counts) {
  for (const Node& node : graph) {
    ++counts[node.domain.empty() ? node.op.str() : fmt::format("{}.{}", node.domain.view(), node.op.view())];
    for (const GraphPtr& subgraph : subgraphs_of(node)) count_ops(*subgraph, counts);
  }
}

uint64_t external_bytes(const Graph& graph) {
  uint64_t bytes = 0;
  for (const Value* value : graph.initializers()) {
    if (value->constant && value->constant->external) bytes += value->constant->data.size();
  }
  return bytes;
}

bool names(const Pass& pass, const std::vector<std::string>& list) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& name) {
    if (name == pass.name) return true;
    for (std::string_view rest = pass.peers; !rest.empty();) {
      const size_t comma = std::min(rest.find(','), rest.size());
      if (rest.substr(0, comma) == name) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return false;
  });
}

/// Optimizers of onnxsim that nothing here does the like of: they may be skipped by scripts that were written for it.
constexpr std::string_view kOthers[] = {
    "adjust_add",
    "adjust_slice_and_matmul",
    "eliminate_nop_monotone_argmax",
    "eliminate_slice_after_shape",
    "fuse_consecutive_reduce_unsqueeze",
    "fuse_qkv",
    "lift_lexical_references",
    "nop",
    "rename_input_output",
    "replace_einsum_with_matmul",
    "rewrite_input_dtype",
    "rewrite_where",
    "set_unique_name_for_nodes",
    "split_init",
    "split_predict",
};

/// The passes that the options ask for, in the order of the list.
std::vector<const Pass*> chosen_passes(const SimplifyOptions& options) {
  for (const auto* list : {&options.skip, &options.only, &options.enable}) {
    for (const std::string& name : *list) {
      const auto passes = simplify_passes();
      const bool is_known =
          std::any_of(passes.begin(), passes.end(), [&](const Pass& pass) { return names(pass, {name}); });
      const bool may_be_skipped =
          list == &options.skip && std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers);
      if (is_known || may_be_skipped) continue;
      Names known;
      for (const Pass& pass : passes) known.push_back(pass.name);
      fail_invalid("there is no pass '{}'; there are: {}", name, nearest_list(name, known));
    }
  }
  std::vector<const Pass*> result;
  for (const Pass& pass : simplify_passes()) {
    const bool is_wanted = options.only.empty() ? pass.when == When::Always || names(pass, options.enable)
                                                : names(pass, options.only) || names(pass, options.enable);
    if (is_wanted && !names(pass, options.skip)) result.push_back(&pass);
  }
  return result;
}

void require_known_opset(const Model& model) {
  if (model.opset("") <= kNewestOpset) return;
  fail_unsupported("the model follows opset {}, and tonnx knows opsets up to {}", model.opset(""), kNewestOpset);
}

void drop_outputs(Model& model, const std::vector<std::string>& unwanted) {
  Graph& graph = *model.graph;
  for (const std::string& name : unwanted) {
    const auto& outputs = graph.outputs();
    const auto at =
        std::find_if(outputs.begin(), outputs.end(), [&](const Value* value) { return value->name == name; });
    if (at == outputs.end()) {
      Names known;
      for (const Value* value : outputs) known.emplace_back(value->name);
      fail_invalid("the model has no output '{}'; it has: {}", name, nearest_list(name, known));
    }
    require(outputs.size() > 1, "no output would be left without '{}'", name);
    graph.remove_output(static_cast<size_t>(at - outputs.begin()));
  }
}

/// A file of before IR version 4 lists its weights among the inputs; what has a value is no input.
void separate_weights(Model& model) {
  Graph& graph = *model.graph;
  for (size_t i = graph.inputs().size(); i-- > 0;) {
    if (graph.inputs()[i]->constant || graph.inputs()[i]->sparse) graph.remove_input(i);
  }
  model.ir_version = std::max<int64_t>(model.ir_version, 4);
}

/// How often a pass changed something in a graph and those inside it.
int64_t run_pass(const Pass& pass, Graph& graph, Rewriter& rewriter) {
  if (pass.on_graph != nullptr) return pass.on_graph(graph, rewriter) ? 1 : 0;
  if (pass.on_node == nullptr) return 0;
  int64_t changes = 0;
  for (Node* node = graph.first(); node != nullptr;) {
    Node* next = node->next;
    for (const Attribute& attribute : node->attributes) {
      if (attribute.value.get<GraphPtr>() == nullptr && attribute.value.get<AttrList>() == nullptr) continue;
      for (const GraphPtr& subgraph : subgraphs_of(*node)) changes += run_pass(pass, *subgraph, rewriter);
      break;
    }
    if (pass.on_node(*node, rewriter)) ++changes;
    node = next;
  }
  return changes;
}

class Simplifier {
 public:
  Simplifier(Model& model, const SimplifyOptions& options, SimplifyReport& report)
      : model_(model),
        options_(options),
        report_(report),
        inference_({.rewrites = false, .leave_alone = {}, .fold = {.times = 1, .bytes = options.fold_limit}}),
        rewriter_(model.opset(""),
                  {.bring_down = [this](Node& node) { return bring_down(node, model_.opset("")); },
                   .infer = [this](Node& node) { inference_.visit(node); },
                   .may_grow = [this](int64_t added, int64_t removed) { return take_growth(added, removed); },
                   .main = model.graph.get()}) {}

  /// Bytes by which the result may still grow.
  int64_t growth_left() const { return growth_left_; }

  void run() {
    const std::vector<const Pass*> passes = chosen_passes(options_);
    for (const Pass* pass : passes) report_.passes.push_back({std::string(pass->name), 0, 0});
    for (const Pass* pass : passes) {
      if (pass->on_model == nullptr) continue;
      pass->on_model(model_);
      align_opset(model_);
    }
    growth_left_ = static_cast<int64_t>(report_.bytes_before / 100);
    while (report_.rounds < kMaxRounds) {
      ++report_.rounds;
      infer();
      bool is_changed = false;
      for (size_t i = 0; i < passes.size(); ++i) {
        if (!run_timed(*passes[i], report_.passes[i])) continue;
        is_changed = true;
        if (options_.is_right && !options_.is_right(model_, passes[i]->name)) {
          report_.guilty = passes[i]->name;
          return;
        }
      }
      if (!is_changed) break;
    }
  }

  bool run_once(const Pass& pass) {
    growth_left_ = static_cast<int64_t>(report_.bytes_before / 100);
    if (pass.on_model == nullptr) {
      infer();
      SimplifyReport::Pass entry;
      return run_timed(pass, entry);
    }
    const size_t functions = model_.functions.size();
    pass.on_model(model_);
    align_opset(model_);
    infer();
    return model_.functions.size() != functions;
  }

 private:
  void infer() {
    inference_.walk(*model_.graph);
    for (Function& function : model_.functions) inference_.walk(*function.body);
  }

  bool run_timed(const Pass& pass, SimplifyReport::Pass& entry) {
    const auto start = std::chrono::steady_clock::now();
    int64_t changes = 0;
    in_context([&] { return fmt::format("in pass {}", pass.name); },
               [&] {
                 changes += run_pass(pass, *model_.graph, rewriter_);
                 for (Function& function : model_.functions) {
                   const int64_t inside = run_pass(pass, *function.body, rewriter_);
                   if (inside > 0) function.source = {};
                   changes += inside;
                 }
                 if (changes > 0) expect_dialect(*model_.graph, pass.dialect);
               });
    entry.changes += changes;
    entry.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return changes > 0;
  }

  /// The rule of what folding may add to the file. A result that is smaller than 1 kB is always a constant. Larger ones
  /// are as long as all of them together add no more than a hundredth of the file; what others remove counts for them.
  /// None exceeds what it is made of by more than the limit that the user set.
  bool take_growth(int64_t added, int64_t removed) {
    constexpr int64_t kSmall = 1024;
    const int64_t growth = added - removed;
    if (growth > options_.fold_limit) return false;
    if (growth > growth_left_) return added < kSmall;
    growth_left_ -= growth;
    return true;
  }

  Model& model_;
  const SimplifyOptions& options_;
  SimplifyReport& report_;
  OnnxInference inference_;
  Rewriter rewriter_;
  int64_t growth_left_ = 0;
};

/// What a function says of its body is not known any more; and it has no constants but those of nodes.
void make_constant_nodes(Function& function) {
  Graph& body = *function.body;
  const std::vector<Value*> initializers = body.initializers();
  for (Value* value : initializers) {
    Node* node = body.add_node("", "Constant", body.first());
    node->version = imported_version(function.opsets, "");
    node->set_attribute("value", value->constant);
    body.move_output(value, node, 0);
  }
  body.remove_initializers([](const Value&) { return true; });
  if (!initializers.empty()) function.source = {};
}

/// What a function calls may be of domains that the model does not import.
void import_domains_of_functions(Model& model) {
  for (const Function& function : model.functions) {
    for (const auto& [domain, version] : function.opsets) {
      if (model.opset(domain) == 0) model.opsets.emplace_back(domain, version);
    }
  }
}

/// Runs passes over a graph at the newest opset whose types are known; nothing that the other opset lacks is made.
void run_passes(Graph& graph, int64_t opset, bool Pass::*is_wanted, const std::function<bool(const Node&)>& leave_alone,
                const FoldLimits& fold) {
  constexpr int kRounds = 3;
  OnnxInference inference({.rewrites = false, .leave_alone = leave_alone, .fold = fold});
  Rewriter rewriter(
      opset, {.bring_down = [](Node&) { return true; },
              .infer = [&](Node& node) { inference.visit(node); },
              .may_grow = [](int64_t added, int64_t removed) { return added <= removed; },
              .keeps_weight = [&](const Value& value) { return fold.keeps_weights && is_weight_of_module(&value); },
              .is_for_training = fold.keeps_weights});
  for (int round = 0; round < kRounds; ++round) {
    bool is_changed = false;
    for (const Pass& pass : simplify_passes()) {
      if (!(pass.*is_wanted)) continue;
      is_changed |= run_pass(pass, graph, rewriter) > 0;
    }
    if (!is_changed) break;
  }
}

}  // namespace

void simplify_for_lowering(Graph& graph, const std::function<bool(const Node&)>& leave_alone) {
  run_passes(graph, kNewestOpset, &Pass::before_lowering, leave_alone, {.keeps_weights = true});
}

void simplify_raised(Graph& graph, int64_t opset, bool keeps_weights) {
  run_passes(graph, opset, &Pass::after_raising, {}, {.keeps_weights = keeps_weights});
}

void require_known_passes(const SimplifyOptions& options) { chosen_passes(options); }

bool run_simplify_pass(Model& model, const Pass& pass) {
  require_known_opset(model);
  SimplifyReport report;
  report.bytes_before = model.file_size + external_bytes(*model.graph);
  import_domains_of_functions(model);
  const SimplifyOptions options;
  std::vector<Type> declared;
  for (const Value* output : model.graph->outputs()) declared.push_back(output->type);
  const bool is_changed = Simplifier(model, options, report).run_once(pass);
  declare_outputs(*model.graph, declared);
  return is_changed;
}

SimplifyReport simplify(Model& model, const SimplifyOptions& options) {
  SimplifyReport report;
  report.bytes_before = model.file_size + external_bytes(*model.graph);
  count_ops(*model.graph, report.ops_before);
  require_known_opset(model);
  chosen_passes(options);
  set_input_shapes(model, options.input_shapes);
  drop_outputs(model, options.unused_outputs);
  if (options.opset && *options.opset > model.opset("")) change_opset(model, *options.opset);
  separate_weights(model);
  import_domains_of_functions(model);
  std::vector<Type> declared;
  for (const Value* output : model.graph->outputs()) declared.push_back(output->type);
  for (const auto& [value, declaration] : model.graph->value_declarations)
    report.room_for_types += static_cast<int64_t>(declaration.size());
  Simplifier simplifier(model, options, report);
  simplifier.run();
  report.room_for_types += simplifier.growth_left();
  declare_outputs(*model.graph, declared);
  for (Function& function : model.functions) make_constant_nodes(function);
  if (options.opset && *options.opset < model.opset("")) change_opset(model, *options.opset);
  count_ops(*model.graph, report.ops_after);
  return report;
}

}  // namespace tonnx
