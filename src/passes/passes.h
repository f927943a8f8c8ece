// passes.h - rewrites of graphs; each is one file that numbers its rules. pass_table.h lists those that run in a phase.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace tonnx {

/// Replaces each call of a function of the model by the function's body. Throws InvalidModel on recursion.
void inline_functions(Model& model);

/// ONNX: puts the nodes of the branch that an If with a known condition takes in front of it, and gives them its
/// outputs: nobody uses the If any more. False where the condition is not known.
bool put_branch_before(Node& node);

/// ONNX: masks that are asked more than once which of their elements are set are asked once.
void share_nonzero(Graph& graph);

/// ONNX: of nodes that compute the same of the same one is left. Says whether there were any.
bool share_nodes(Graph& graph);

/// Removes nodes whose outputs nobody uses, and initializers that nobody uses. Says whether there were any.
bool remove_dead_code(Graph& graph);

/// ONNX: a normalisation by constants behind a convolution, or a product with a constant matrix, becomes a part of its
/// weights.
void fuse_normalisations(Graph& graph);

/// aten: operators that write to tensors become operators that give new ones, and each operator has one name. Returns
/// the names of the inputs and initializers that the graph writes to: nobody outside of it sees these writes any more.
std::vector<std::string> functionalize(Graph& graph);

/// aten: iterations over the rows of a tensor that a trace wrote out, with all that they give to each other, become
/// scan.
void roll_loops(Graph& graph);

/// aten: a matrix product with a constant, and the sum with a constant vector behind it, become linear.
void recognise_linear(Graph& graph);

/// aten: products of matrices one of which is constant, with or without the sum with a constant vector, become linear.
void recognise_matrix_layers(Graph& graph);

/// aten: weights that the file reshapes before it computes with them have the sizes of the file, and are reshaped
/// there.
void restore_weight_shapes(Graph& graph);

/// aten: products and sums that are an activation, such as x * sigmoid(x), become it.
void recognise_aten_activations(Graph& graph);

/// aten: exponents over their sum become softmax.
void recognise_aten_softmax(Graph& graph);

/// aten: means and quotients that are a normalised layer become layer_norm.
void recognise_aten_layer_norm(Graph& graph);

/// aten: an instance norm of a tensor whose channels were reshaped to groups becomes group_norm.
void recognise_group_norm(Graph& graph);

/// aten: products around a softmax that are an attention become scaled_dot_product_attention.
void recognise_aten_attention(Graph& graph);

/// aten: a sum with 0 or -inf, by a condition, becomes masked_fill.
void recognise_masked_fill(Graph& graph);

/// aten: sizes are asked of the tensor that they come from, and not of what is made of it.
void find_sources_of_sizes(Graph& graph);

/// aten: a product of a tensor's rows with a constant matrix is one of the tensor.
void cancel_flattening(Graph& graph);

/// aten: two parts of a tensor that change places become roll.
void recognise_roll(Graph& graph);

/// aten: means over windows that are gathered one by one become adaptive_avg_pool.
void recognise_adaptive_pool(Graph& graph);

/// aten: reshapes around a transpose that split heads, or move a dimension, become unflatten and permute.
void recognise_heads(Graph& graph);

/// aten: a reshape that splits or adds one dimension, and repeats the sizes of the others, becomes unflatten or
/// unsqueeze.
void recognise_unflatten(Graph& graph);

/// aten: slices or elements of a tensor that are all of it become chunk, split or unbind.
void recognise_parts(Graph& graph);

/// aten: tensors that get a dimension each, and are joined along it, become stack.
void recognise_stack(Graph& graph);

/// aten: recurrent layers of one module that give each other their results become one of several layers.
void recognise_stacked_recurrent(Graph& graph);

/// aten: of nodes of one module that compute the same of the same one is left.
void share_equal_aten(Graph& graph);

/// aten: names into which tools have put functions that they wrote out are paths, and what they have put behind the
/// names of weights that they made common goes.
void read_tool_names(Graph& graph);

/// aten: of quantised weights that are equal one is left.
void share_quantised(Graph& graph);

/// aten: a constant that is added to each channel of a convolution becomes its bias.
void fold_conv_bias(Graph& graph);

/// aten: a branch that takes a dimension away where its size is 1, and leaves it elsewhere, becomes squeeze.
void recognise_squeezes(Graph& graph);

/// aten: what moves dimensions and is undone at once goes away.
void cancel_moves(Graph& graph);

/// aten: tensors that are made as float32, of integers or of nothing, take the type of a tensor that the model computes
/// with: it may be moved to another. For generated code only; the other forms say their types.
void follow_float_type(Graph& graph);

/// aten: a layer whose input is quantised as it comes becomes quant_linear or quant_conv, a module of generated code.
void recognise_quant_layers(Graph& graph);

/// onnx: weights of which a file holds one for all that are equal, and copies for the others, are each module's own.
void part_weights(Graph& graph);

/// aten: a table that a file holds once for modules of one kind, which names tell, is each module's own again.
void part_constants(Graph& graph);

/// aten: constants that a line of code says, as 0, 1, 2 ... or a triangle of ones, are computed by it; a weight that an
/// exporter repeated for its batch is stored once.
void write_plain_constants(Graph& graph);
/// aten: what shifted windows may see is computed where the file holds it, in each module that uses it.
void write_window_masks(Graph& graph);

/// aten: a tensor that is joined with blocks of zeros, or of another number, is padded with it.
void recognise_pads(Graph& graph);
/// aten: a concatenation that begins with all of another one is made out of it.
void share_concats(Graph& graph);

/// aten: quantised numbers that are floats again at once stay floats.
void keep_whole_numbers(Graph& graph);

/// aten: attention of a tensor to itself, between the two projections that the names of their weights call those of an
/// nn.MultiheadAttention, becomes one node, a module of generated code.
void recognise_whole_attention(Graph& graph);

}  // namespace tonnx
