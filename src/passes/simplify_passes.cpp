// simplify_passes.cpp - the passes that make a model of ONNX simpler, in the order in which they run.
#include "passes/simplify_passes.h"

#include "passes/passes.h"

namespace tonnx {

std::span<const SimplifyPass> simplify_passes() {
  static constexpr SimplifyPass kPasses[] = {
      {.name = "inline_functions",
       .sentence = "puts the bodies of functions in place of their calls",
       .on_model = inline_functions},
      {.name = "inline_if",
       .sentence = "puts the branch that is taken in place of an If with a known condition",
       .on_node = inline_if,
       .peers = "eliminate_const_if"},
      {.name = "fold_constants",
       .sentence = "computes what does not depend on the inputs",
       .on_node = fold_constants,
       .peers = "constant_folding,extract_constant_to_initializer"},
      {.name = "eliminate_identity",
       .sentence = "removes nodes that give what they are given",
       .on_node = eliminate_identity,
       .peers = "eliminate_identity,eliminate_nop_cast,eliminate_nop_concat,eliminate_nop_dropout,eliminate_nop_expand,"
                "eliminate_nop_flatten,eliminate_nop_pad,eliminate_nop_reshape,eliminate_nop_split,"
                "eliminate_nop_transpose,eliminate_nop_with_unit"},
      {.name = "merge_casts",
       .sentence = "leaves out a Cast in front of another where its type holds every value",
       .on_node = merge_casts},
      {.name = "merge_reshapes",
       .sentence = "makes chains of Reshape, Flatten, Squeeze and Unsqueeze one of them, or nothing",
       .on_node = merge_reshapes,
       .peers = "eliminate_consecutive_idempotent_ops,fuse_consecutive_squeezes,fuse_consecutive_unsqueezes"},
      {.name = "merge_transposes",
       .sentence = "makes a Transpose of a Transpose one, or nothing",
       .on_node = merge_transposes,
       .peers = "fuse_consecutive_transposes"},
      {.name = "merge_slices",
       .sentence = "makes parts of parts one, and joins parts that lie side by side",
       .on_node = merge_slices,
       .peers =
           "eliminate_slice_after_shape,fuse_consecutive_slices,fuse_consecutive_concats"},
      {.name = "merge_pads", .sentence = "makes a Pad of a Pad one", .on_node = merge_pads},
      {.name = "static_shapes",
       .sentence = "gives Reshape, Expand and Slice constants where sizes need not be computed",
       .on_node = static_shapes,
       .peers = "eliminate_shape_op"},
      {.name = "fuse_bn",
       .sentence = "makes what scales and shifts the channels of a layer with constant weights a part of these",
       .on_node = fuse_bn,
       .peers = "fuse_bn_into_conv,fuse_add_bias_into_conv,FusionConvBN,FusionConvAdd,FusionConvMul"},
      {.name = "fuse_gemm",
       .sentence = "makes one Gemm of a product of matrices and the sum behind it",
       .on_node = fuse_gemm,
       .peers = "fuse_matmul_add_bias_into_gemm,FusionGemm"},
      {.name = "share_sizes",
       .sentence = "makes one value of those that hold the same sizes",
       .on_graph = share_sizes,
       .peers = "eliminate_shape_gather"},
      {.name = "share_nodes",
       .sentence = "makes one node of those that compute the same of the same inputs",
       .on_graph = share_equal_nodes,
       .peers = "eliminate_common_subexpression"},
      {.name = "share_initializers",
       .sentence = "makes one constant of those that are equal",
       .on_graph = share_initializers,
       .peers = "eliminate_duplicate_initializer"},
      {.name = "eliminate_dead_code",
       .sentence = "removes nodes and constants that nobody uses",
       .on_graph = eliminate_dead_code,
       .peers = "eliminate_deadend,eliminate_unused_initializer"},
  };
  return kPasses;
}

}  // namespace tonnx
