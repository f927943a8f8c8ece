// simplify_passes.h - the passes that make a model of ONNX simpler, in the order in which they run.
#pragma once
#include <span>
#include <string_view>

#include "ir/model.h"
#include "passes/onnx/rewriter.h"

namespace tonnx {

/// When a pass runs that nobody named.
enum class When : uint8_t {
  Always,     // it changes no value, not even an infinite one or one at the border of its type
  OnRequest,  // it may, or the model may not be what its user expects
};

struct SimplifyPass {
  std::string_view name;
  std::string_view sentence;
  /// Looks at one node, and says whether it changed anything. It may remove this node and those before it, and add
  /// nodes in front of it.
  bool (*on_node)(Node&, Rewriter&) = nullptr;
  /// The same for a whole graph with those inside it, where one node does not tell enough.
  bool (*on_graph)(Graph&, Rewriter&) = nullptr;
  /// Once, before all others.
  void (*on_model)(Model&) = nullptr;
  When when = When::Always;
  std::string_view peers = {};  // what onnxsim and onnxslim call it, with commas between
};
std::span<const SimplifyPass> simplify_passes();

// Rules of one node
bool fold_constants(Node& node, Rewriter& rewriter);
bool inline_if(Node& node, Rewriter& rewriter);
bool eliminate_identity(Node& node, Rewriter& rewriter);
bool drop_default_inputs(Node& node, Rewriter& rewriter);
bool merge_casts(Node& node, Rewriter& rewriter);
bool merge_reshapes(Node& node, Rewriter& rewriter);
bool merge_transposes(Node& node, Rewriter& rewriter);
bool move_transposes(Node& node, Rewriter& rewriter);
bool merge_slices(Node& node, Rewriter& rewriter);
bool merge_pads(Node& node, Rewriter& rewriter);
bool static_shapes(Node& node, Rewriter& rewriter);
bool fuse_bn(Node& node, Rewriter& rewriter);
bool fuse_gemm(Node& node, Rewriter& rewriter);
bool fuse_pads(Node& node, Rewriter& rewriter);
bool fuse_pads_into_max_pool(Node& node, Rewriter& rewriter);
bool loop_invariants(Node& node, Rewriter& rewriter);
bool unroll_loops(Node& node, Rewriter& rewriter);
bool recognise_onnx_activations(Node& node, Rewriter& rewriter);
bool recognise_overflowing_activations(Node& node, Rewriter& rewriter);
bool recognise_reductions(Node& node, Rewriter& rewriter);
bool recognise_log_sum_exp(Node& node, Rewriter& rewriter);
bool recognise_onnx_layer_norm(Node& node, Rewriter& rewriter);
bool recognise_channel_norm(Node& node, Rewriter& rewriter);
bool recognise_attention(Node& node, Rewriter& rewriter);
bool recognise_rms_norm(Node& node, Rewriter& rewriter);

// Rules of a graph
bool split_slices(Graph& graph, Rewriter& rewriter);
bool share_sizes(Graph& graph, Rewriter& rewriter);
bool share_equal_nodes(Graph& graph, Rewriter& rewriter);
bool share_initializers(Graph& graph, Rewriter& rewriter);
bool drop_unused_inputs(Graph& graph, Rewriter& rewriter);
bool eliminate_dead_code(Graph& graph, Rewriter& rewriter);

}  // namespace tonnx
