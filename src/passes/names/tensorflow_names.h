// tensorflow_names.h - names of nodes and weights as converters of TensorFlow's models give them.
#pragma once
#include <string>

namespace tonnx {

/// The path of the layer that a node belongs to, and a word for the node: `model/dense/Op` of
/// `StatefulPartitionedCall/model/dense/MatMul;model/dense/BiasAdd__28`. Nothing is left of a name that was made up,
/// as `Add__17` was. Other names stay as they are.
std::string tensorflow_node_name(const std::string& name);

/// The path of a weight: `model/dense/bias` of `StatefulPartitionedCall/model/dense/BiasAdd/ReadVariableOp:0`,
/// `p_re_lu_7/weight` of `p_re_lu_7_initializer_22`. Nothing is left of a name that was made up, as
/// `const_fold_opt__12` was. Other names stay as they are.
std::string tensorflow_weight_name(const std::string& name);

}  // namespace tonnx
