// pass_table.h - every pass: its name, what it does in a sentence, what it works on, when it runs, and its function.
#pragma once
#include <span>
#include <string_view>

#include "ir/model.h"
#include "passes/dialects/dialect.h"
#include "passes/frame/rewriter.h"

namespace tonnx {

/// When passes run.
enum class Phase : uint8_t {
  Simplify,  // tonnx simplify: ONNX, in rounds until nothing changes
  Code,      // on the way to code: aten, each once
  Python,    // on the way from code to Python: the same
};

/// Whether a pass of its phase runs where nobody named it.
enum class When : uint8_t {
  Always,     // it changes no value, not even an infinite one or one at the border of its type
  OnRequest,  // it may, or the model may not be what its user expects
};

struct Pass {
  std::string_view name;
  std::string_view sentence;
  Dialect dialect = Dialect::Onnx;
  Phase phase = Phase::Simplify;
  /// Looks at one node, and says whether it changed anything. It may remove this node and those before it, and add
  /// nodes in front of it.
  bool (*on_node)(Node&, Rewriter&) = nullptr;
  /// The same for a whole graph with those inside it, where one node does not tell enough.
  bool (*on_graph)(Graph&, Rewriter&) = nullptr;
  /// Once, before all others.
  void (*on_model)(Model&) = nullptr;
  /// A graph of aten with those inside it, once.
  void (*on_aten)(Graph&) = nullptr;
  When when = When::Always;
  /// Whether a model is simplified by it before it is lowered too. Not by what changes weights, which people know by
  /// their names, or writes sizes in a form that PyTorch reads worse.
  bool before_lowering = false;
  /// Whether a model that comes from PyTorch is simplified by it.
  bool after_raising = false;
  std::string_view peers = {};  // what onnxsim and onnxslim call it, with commas between
};

/// All passes, by phase, in the order in which they run.
std::span<const Pass> pass_table();
std::span<const Pass> simplify_passes();
/// Runs the passes of a phase of aten, and checks the dialect behind each where expect_dialect() does.
void run_passes(Graph& graph, Phase phase);

/// The name of the pass with that function.
std::string_view pass_name(bool (*on_node)(Node&, Rewriter&));
std::string_view pass_name(bool (*on_graph)(Graph&, Rewriter&));

// Rules of one node
bool fold_constants(Node& node, Rewriter& rewriter);
bool inline_if(Node& node, Rewriter& rewriter);
bool eliminate_identity(Node& node, Rewriter& rewriter);
bool drop_default_inputs(Node& node, Rewriter& rewriter);
bool merge_casts(Node& node, Rewriter& rewriter);
bool merge_gathers(Node& node, Rewriter& rewriter);
bool merge_reshapes(Node& node, Rewriter& rewriter);
bool remove_redundant_broadcasts(Node& node, Rewriter& rewriter);
bool merge_transposes(Node& node, Rewriter& rewriter);
bool move_transposes(Node& node, Rewriter& rewriter);
bool merge_slices(Node& node, Rewriter& rewriter);
bool merge_pads(Node& node, Rewriter& rewriter);
bool static_shapes(Node& node, Rewriter& rewriter);
bool fuse_scales(Node& node, Rewriter& rewriter);
bool fuse_gemm(Node& node, Rewriter& rewriter);
bool fuse_pads(Node& node, Rewriter& rewriter);
bool fuse_pads_into_max_pool(Node& node, Rewriter& rewriter);
bool loop_invariants(Node& node, Rewriter& rewriter);
bool unroll_loops(Node& node, Rewriter& rewriter);
bool recognise_activations(Node& node, Rewriter& rewriter);
bool recognise_overflowing_activations(Node& node, Rewriter& rewriter);
bool recognise_reductions(Node& node, Rewriter& rewriter);
bool recognise_log_sum_exp(Node& node, Rewriter& rewriter);
bool recognise_layer_norm(Node& node, Rewriter& rewriter);
bool recognise_channel_norm(Node& node, Rewriter& rewriter);
bool recognise_attention(Node& node, Rewriter& rewriter);
bool recognise_rms_norm(Node& node, Rewriter& rewriter);
bool recognise_dynamic_quantization(Node& node, Rewriter& rewriter);
bool recognise_quantization(Node& node, Rewriter& rewriter);
bool recognise_qlinear(Node& node, Rewriter& rewriter);
bool recognise_qdq(Node& node, Rewriter& rewriter);
bool recognise_integer_products(Node& node, Rewriter& rewriter);

// Rules of a graph
bool split_slices(Graph& graph, Rewriter& rewriter);
bool share_sizes(Graph& graph, Rewriter& rewriter);
bool share_equal_nodes(Graph& graph, Rewriter& rewriter);
bool share_initializers(Graph& graph, Rewriter& rewriter);
bool drop_unused_inputs(Graph& graph, Rewriter& rewriter);
bool eliminate_dead_code(Graph& graph, Rewriter& rewriter);

}  // namespace tonnx
