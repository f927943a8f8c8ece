// pass_list.cpp - the passes and what each one does, in a sentence.
#include "passes/passes.h"

namespace tonnx {

std::span<const PassInfo> pass_list() {
  static constexpr PassInfo kPasses[] = {
      {"inline_functions", "replaces each call of a function of the model by the function's body"},
      {"functionalize", "makes operators that write to tensors operators that give new ones, and drops their aliases"},
      {"share_nonzero", "makes one NonZero of those that ask the same mask"},
      {"share_nodes", "makes one node of those that compute the same of the same inputs"},
      {"fuse_batch_norm", "makes a normalisation by constants behind a convolution a part of its weights"},
      {"remove_dead_code", "removes nodes and constants that nobody uses"},
      {"cancel_moves", "removes pairs of nodes that undo each other, such as unsqueeze and squeeze"},
      {"keep_whole_numbers", "drops the way of whole numbers from a float type through an integer type and back"},
      {"recognise_activations", "makes products and sums that are an activation, such as x * sigmoid(x), one node"},
      {"recognise_layer_norm", "makes means and quotients that are a normalised layer one node"},
      {"fold_conv_bias", "makes a constant that is added to each channel of a convolution its bias"},
      {"recognise_linear", "makes a product with a constant matrix, and the sum behind it, one linear layer"},
      {"make_plain_aten", "says lists of integers, sequences, branches and loops in PyTorch's own operators, for .pt2"},
  };
  return kPasses;
}

}  // namespace tonnx
