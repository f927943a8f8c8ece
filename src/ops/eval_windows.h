// eval_windows.h - evaluations of operators that index, search, slide windows over tensors, sample them or run along
// them.
#pragma once
#include "ops/eval.h"

namespace tonnx {

// eval_index.cpp
Results eval_gather_elements(const NodeView& n);
Results eval_gather_nd(const NodeView& n);
Results eval_scatter_elements(const NodeView& n);
Results eval_scatter_nd(const NodeView& n);
Results eval_tensor_scatter(const NodeView& n);
Results eval_one_hot(const NodeView& n);
Results eval_non_zero(const NodeView& n);
Results eval_compress(const NodeView& n);
Results eval_reverse_sequence(const NodeView& n);
Results eval_eye_like(const NodeView& n);

// eval_search.cpp
Results eval_top_k(const NodeView& n);
Results eval_unique(const NodeView& n);
Results eval_nms(const NodeView& n);

// eval_space.cpp
Results eval_depth_to_space(const NodeView& n);
Results eval_space_to_depth(const NodeView& n);
Results eval_center_crop_pad(const NodeView& n);
Results eval_col2im(const NodeView& n);
Results eval_max_unpool(const NodeView& n);

// eval_conv.cpp
Results eval_conv(const NodeView& n);
Results eval_conv_transpose(const NodeView& n);
Results eval_conv_integer(const NodeView& n);
Results eval_qlinear_conv(const NodeView& n);
Results eval_deform_conv(const NodeView& n);

// eval_pool.cpp
Results eval_max_pool(const NodeView& n);
Results eval_average_pool(const NodeView& n);
Results eval_lp_pool(const NodeView& n);
Results eval_global_average_pool(const NodeView& n);
Results eval_global_max_pool(const NodeView& n);
Results eval_global_lp_pool(const NodeView& n);
Results eval_roi_align(const NodeView& n);
Results eval_max_roi_pool(const NodeView& n);

// eval_resize.cpp, eval_grid.cpp
Results eval_resize(const NodeView& n);
Results eval_grid_sample(const NodeView& n);
Results eval_affine_grid(const NodeView& n);

// eval_signal.cpp
Results eval_hann_window(const NodeView& n);
Results eval_hamming_window(const NodeView& n);
Results eval_blackman_window(const NodeView& n);
Results eval_dft(const NodeView& n);
Results eval_stft(const NodeView& n);

// eval_attention.cpp
Results eval_attention(const NodeView& n);
Results eval_linear_attention(const NodeView& n);
Results eval_rotary_embedding(const NodeView& n);

// eval_recurrent.cpp
Results eval_recurrent(const NodeView& n);

}  // namespace tonnx
