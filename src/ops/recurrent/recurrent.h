// recurrent.h - what RNN, GRU and LSTM have in common: what a node asks for, checked.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ops/frame/node_view.h"

namespace tonnx {

class OnnxEdit;

enum class CellKind { Rnn, Gru, Lstm };

struct CellActivation {
  std::string name;  // as ONNX spells the operator
  double alpha, beta;
};

struct Cell {
  CellKind kind;
  int64_t hidden;
  int64_t directions;
  bool is_reverse;                          // the only direction is backwards
  bool is_batch_first;                      // ONNX's layout 1
  std::vector<CellActivation> activations;  // those of each direction in turn
  std::optional<double> clip;
  bool linear_before_reset = false;
  bool input_forget = false;
  bool is_quantized = false;  // DynamicQuantizeLSTM, whose weights are transposed integers

  int64_t gates() const { return kind == CellKind::Rnn ? 1 : kind == CellKind::Gru ? 3 : 4; }
  /// Those of one direction.
  std::vector<CellActivation> activations_of(int64_t direction) const;
};

CellKind cell_kind(const NodeView& n);
/// The number of hidden units; nothing where neither the attribute nor the shape of R says it.
std::optional<int64_t> find_hidden(const NodeView& n);
/// What the node asks for. Throws where its inputs contradict it, and Unsupported where the hidden units are not known.
Cell cell_of(const NodeView& n);

/// Whether every sequence is as long as the input: sequence_lens is absent, or says just that.
bool has_full_sequences(const NodeView& n, const Cell& cell);
/// Whether the value is made of zeros alone, as far as the nodes in front of it show.
bool is_zeros(const Value* value, int depth = 0);
/// Whether nn.RNN, nn.GRU or nn.LSTM computes it.
bool is_plain_cell(const NodeView& n, const Cell& cell);

/// Writes as a Scan what is not plain.
bool expand_recurrent(const NodeView& n, OnnxEdit& edit);

}  // namespace tonnx
