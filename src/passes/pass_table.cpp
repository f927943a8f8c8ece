// pass_table.cpp - every pass, by phase, in the order in which they run.
#include "passes/pass_table.h"

#include <algorithm>

#include "base/error.h"
#include "passes/passes.h"

namespace tonnx {

namespace {

void remove_dead_aten(Graph& graph) { remove_dead_code(graph); }

constexpr Pass kPasses[] = {
    {.name = "inline_functions",
     .sentence = "puts the bodies of functions in place of their calls",
     .on_model = inline_functions},
    {.name = "inline_if",
     .sentence = "puts the branch that is taken in place of an If with a known condition",
     .on_node = inline_if,
     .peers = "eliminate_if_with_const_cond"},
    {.name = "loop_invariants",
     .sentence = "lets the body of a Loop read what it would only carry along from outside",
     .on_node = loop_invariants},
    {.name = "unroll_loops",
     .sentence = "puts the nodes of the body in place of a Loop of at most 16 iterations",
     .on_node = unroll_loops,
     .when = When::OnRequest},
    {.name = "fold_constants",
     .sentence = "computes what does not depend on the inputs",
     .on_node = fold_constants,
     .peers = "constant_folding,extract_constant_to_initializer"},
    {.name = "eliminate_identity",
     .sentence = "removes nodes that give what they are given",
     .on_node = eliminate_identity,
     .before_lowering = true,
     .peers = "eliminate_identity,eliminate_nop_cast,eliminate_nop_concat,eliminate_nop_dropout,eliminate_nop_expand,"
              "eliminate_nop_flatten,eliminate_nop_pad,eliminate_nop_reshape,eliminate_nop_split,"
              "eliminate_nop_transpose,eliminate_nop_with_unit"},
    {.name = "drop_default_inputs",
     .sentence = "leaves out optional inputs that are what is assumed without them",
     .on_node = drop_default_inputs},
    {.name = "merge_casts",
     .sentence = "leaves out a Cast in front of another where its type holds every value",
     .on_node = merge_casts,
     .before_lowering = true,
     .after_raising = true},
    {.name = "merge_reshapes",
     .sentence = "makes chains of Reshape, Flatten, Squeeze and Unsqueeze one of them, or nothing",
     .on_node = merge_reshapes,
     .before_lowering = true,
     .peers = "eliminate_consecutive_idempotent_ops,fuse_consecutive_squeezes,fuse_consecutive_unsqueezes"},
    {.name = "merge_transposes",
     .sentence = "makes a Transpose of a Transpose one, or nothing",
     .on_node = merge_transposes,
     .before_lowering = true,
     .peers = "fuse_consecutive_transposes"},
    {.name = "move_transposes",
     .sentence = "moves Transposes to where they meet others, into Gemm, or to where they are not needed",
     .on_node = move_transposes,
     .before_lowering = true,
     .peers = "fuse_transpose_into_gemm"},
    {.name = "merge_slices",
     .sentence = "makes parts of parts one, and joins parts that lie side by side",
     .on_node = merge_slices,
     .before_lowering = true,
     .peers = "eliminate_slice_after_shape,fuse_consecutive_slices,fuse_consecutive_concats"},
    {.name = "split_slices",
     .sentence = "makes one Split of Slices that are all the parts of a tensor",
     .on_graph = split_slices},
    {.name = "merge_pads", .sentence = "makes a Pad of a Pad one", .on_node = merge_pads, .before_lowering = true},
    {.name = "static_shapes",
     .sentence = "gives Reshape, Expand and Slice constants where sizes need not be computed",
     .on_node = static_shapes,
     .peers = "eliminate_shape_op"},
    {.name = "fuse_bn",
     .sentence = "makes what scales and shifts the channels of a layer with constant weights a part of these",
     .on_node = fuse_scales,
     .peers = "fuse_bn_into_conv,fuse_add_bias_into_conv,FusionConvBN,FusionConvAdd,FusionConvMul"},
    {.name = "fuse_gemm",
     .sentence = "makes one Gemm of a product of matrices and the sum behind it",
     .on_node = fuse_gemm,
     .peers = "fuse_matmul_add_bias_into_gemm,FusionGemm"},
    {.name = "fuse_pads",
     .sentence = "makes what is put around a tensor for a convolution or a pool its own padding",
     .on_node = fuse_pads,
     .before_lowering = true,
     .after_raising = true,
     .peers = "fuse_pad_into_conv,fuse_pad_into_pool,FusionPadConv"},
    {.name = "fuse_pads_into_max_pool",
     .sentence = "does so for MaxPool and -inf; runtimes differ in what they make of a NaN then",
     .on_node = fuse_pads_into_max_pool,
     .when = When::OnRequest},
    {.name = "recognise_activations",
     .sentence =
         "makes one node of sums and products that are Gelu, HardSwish, HardSigmoid, Mish, Swish, LeakyRelu ...",
     .on_node = recognise_activations,
     .peers = "FusionGelu"},
    {.name = "recognise_overflowing_activations",
     .sentence = "does so where the written form, other than the activation, is infinite for large numbers",
     .on_node = recognise_overflowing_activations,
     .when = When::OnRequest},
    {.name = "recognise_reductions",
     .sentence = "makes one node of what is ReduceL1, ReduceL2, ReduceSumSquare, ReduceLogSum or Softmax",
     .on_node = recognise_reductions},
    {.name = "recognise_log_sum_exp",
     .sentence = "makes one node of logarithms of sums of exponentials, which is finite where these are not",
     .on_node = recognise_log_sum_exp,
     .when = When::OnRequest,
     .peers = "fuse_consecutive_log_softmax"},
    {.name = "recognise_channel_norm",
     .sentence = "makes InstanceNormalization and GroupNormalization of means and quotients; large numbers may differ",
     .on_node = recognise_channel_norm,
     .when = When::OnRequest},
    {.name = "recognise_layer_norm",
     .sentence = "makes a LayerNormalization of means and quotients; sums that overflow may differ",
     .on_node = recognise_layer_norm,
     .when = When::OnRequest},
    {.name = "recognise_rms_norm",
     .sentence = "makes an RMSNormalization of quotients by the root of a mean of squares",
     .on_node = recognise_rms_norm},
    {.name = "recognise_attention",
     .sentence = "makes an Attention of products around a Softmax; rows that are masked as a whole become zeros",
     .on_node = recognise_attention,
     .when = When::OnRequest},
    {.name = "recognise_dynamic_quantization",
     .sentence = "makes a DynamicQuantizeLinear of what rounds a tensor to 256 steps of its own range; no NaN is kept",
     .on_node = recognise_dynamic_quantization,
     .when = When::OnRequest,
     .after_raising = true},
    {.name = "recognise_quantization",
     .sentence =
         "makes QuantizeLinear and DequantizeLinear of quotients that are rounded, and of products; no NaN is kept",
     .on_node = recognise_quantization,
     .when = When::OnRequest,
     .after_raising = true},
    {.name = "recognise_qlinear",
     .sentence = "makes QLinearMatMul and QLinearConv of products of quantised numbers that are quantised again",
     .on_node = recognise_qlinear,
     .when = When::OnRequest,
     .after_raising = true},
    {.name = "recognise_integer_products",
     .sentence = "makes MatMulInteger and ConvInteger of products of quantised numbers as floats",
     .on_node = recognise_integer_products,
     .when = When::OnRequest,
     .after_raising = true},
    {.name = "share_sizes",
     .sentence = "makes one value of those that hold the same sizes",
     .on_graph = share_sizes,
     .peers = "eliminate_shape_gather"},
    {.name = "share_nodes",
     .sentence = "makes one node of those that compute the same of the same inputs",
     .on_graph = share_equal_nodes,
     .before_lowering = true,
     .peers = "eliminate_common_subexpression"},
    {.name = "share_initializers",
     .sentence = "makes one constant of those that are equal",
     .on_graph = share_initializers,
     .peers = "eliminate_duplicate_initializer"},
    {.name = "drop_unused_inputs",
     .sentence = "removes inputs of the model that nobody uses",
     .on_graph = drop_unused_inputs,
     .when = When::OnRequest},
    {.name = "eliminate_dead_code",
     .sentence = "removes nodes and constants that nobody uses",
     .on_graph = eliminate_dead_code,
     .peers = "eliminate_deadend,eliminate_unused_initializer"},
    {.name = "recognise_squeezes",
     .sentence = "makes a branch that takes a dimension away where its size is 1 the squeeze that it is",
     .dialect = Dialect::Code,
     .phase = Phase::Code,
     .on_aten = recognise_squeezes},
    {.name = "cancel_moves",
     .sentence = "removes pairs of nodes that undo each other, such as unsqueeze and squeeze",
     .dialect = Dialect::Code,
     .phase = Phase::Code,
     .on_aten = cancel_moves},
    {.name = "keep_whole_numbers",
     .sentence = "drops the way of whole numbers from a float type through an integer type and back",
     .dialect = Dialect::Code,
     .phase = Phase::Code,
     .on_aten = keep_whole_numbers},
    {.name = "recognise_aten_activations",
     .sentence = "makes products and sums that are an activation, such as x * sigmoid(x), one node",
     .dialect = Dialect::Code,
     .phase = Phase::Code,
     .on_aten = recognise_aten_activations},
    {.name = "recognise_aten_layer_norm",
     .sentence = "makes means and quotients that are a normalised layer one node",
     .dialect = Dialect::Code,
     .phase = Phase::Code,
     .on_aten = recognise_aten_layer_norm},
    {.name = "recognise_aten_attention",
     .sentence = "makes products around a softmax that are an attention one node",
     .dialect = Dialect::Code,
     .phase = Phase::Code,
     .on_aten = recognise_aten_attention},
    {.name = "recognise_masked_fill",
     .sentence = "makes a sum with 0 or -inf, by a condition, masked_fill",
     .dialect = Dialect::Code,
     .phase = Phase::Code,
     .on_aten = recognise_masked_fill},
    {.name = "fold_conv_bias",
     .sentence = "makes a constant that is added to each channel of a convolution its bias",
     .dialect = Dialect::Code,
     .phase = Phase::Code,
     .on_aten = fold_conv_bias},
    {.name = "recognise_linear",
     .sentence = "makes a product with a constant matrix, and the sum behind it, one linear layer",
     .dialect = Dialect::Code,
     .phase = Phase::Code,
     .on_aten = recognise_linear},
    {.name = "remove_dead_code",
     .sentence = "removes nodes and constants that nobody uses",
     .dialect = Dialect::Code,
     .phase = Phase::Code,
     .on_aten = remove_dead_aten},
};

template <class Function>
std::string_view name_where(const Function& is_it) {
  const auto* at = std::find_if(std::begin(kPasses), std::end(kPasses), is_it);
  ensure(at != std::end(kPasses), "a pass is in the table");
  return at->name;
}

}  // namespace

std::span<const Pass> pass_table() { return kPasses; }

std::span<const Pass> simplify_passes() {
  const auto* end = std::find_if(std::begin(kPasses), std::end(kPasses),
                                 [](const Pass& pass) { return pass.phase != Phase::Simplify; });
  return {std::begin(kPasses), end};
}

void simplify_for_code(Graph& graph) {
  for (const Pass& pass : kPasses) {
    if (pass.phase == Phase::Code) pass.on_aten(graph);
  }
}

std::string_view pass_name(bool (*on_node)(Node&, Rewriter&)) {
  return name_where([&](const Pass& pass) { return pass.on_node == on_node; });
}
std::string_view pass_name(bool (*on_graph)(Graph&, Rewriter&)) {
  return name_where([&](const Pass& pass) { return pass.on_graph == on_graph; });
}

}  // namespace tonnx
