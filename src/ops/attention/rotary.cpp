// rotary.cpp - rotary position embedding: RotaryEmbedding.
#include "base/error.h"
#include "ops/attention/rows.h"
#include "ops/frame/infer.h"
#include "ops/frame/onnx_to_aten.h"
#include "ops/frame/open_node.h"

namespace tonnx {
namespace {

void infer_rotary(InferNode& n) {
  infer_same_as_first(n);
  const auto rank = n.find_rank("X");
  require(!rank || *rank == 3 || *rank == 4, "the input has {} dimensions where three or four are needed",
          rank.value_or(0));
  require(n.i("rotary_embedding_dim") >= 0, "rotary_embedding_dim is {}", n.i("rotary_embedding_dim"));
}

/// The angles of each position, with a dimension for the heads.
Value* angles(const OnnxNode& n, AtenBuilder& aten, const char* cache, int64_t heads_at) {
  Value* table = n.input(cache);
  if (table->constant) table->trainable = false;
  if (Value* positions = n.find_input("position_ids")) table = aten("index.Tensor", table, std::vector{positions});
  return aten("unsqueeze", table, heads_at);
}

/// Turns the pairs of the last dimension: its halves, or each two neighbours.
Value* rotated(AtenBuilder& aten, Value* x, Value* cos, Value* sin, bool interleaved) {
  Value *left = nullptr, *right = nullptr;
  if (interleaved) {
    left = aten("slice.Tensor", x, -1, nullptr, nullptr, 2);
    right = aten("slice.Tensor", x, -1, 1, nullptr, 2);
  } else {
    const Values halves = aten.list(2, "chunk", x, 2, -1);
    left = halves[0];
    right = halves[1];
  }
  Value* real = aten("sub.Tensor", aten("mul.Tensor", left, cos), aten("mul.Tensor", right, sin));
  Value* imaginary = aten("add.Tensor", aten("mul.Tensor", left, sin), aten("mul.Tensor", right, cos));
  if (!interleaved) return aten("cat", std::vector{real, imaginary}, -1);
  return aten("flatten.using_ints", aten("stack", std::vector{real, imaginary}, -1), -2);
}

Values lower_rotary(const OnnxNode& n, AtenBuilder& aten) {
  Value* x = n.input("X");
  const auto heads = n.find_i("num_heads");
  const auto rank = n.find_rank("X");
  const bool is_split = rank ? *rank == 4 : heads.value_or(0) == 0;
  if (!is_split) {
    require(heads.value_or(0) >= 1, "an input of three dimensions needs 'num_heads'");
    x = aten("unflatten.int", x, -1, IntArgs{*heads, -1});
  }
  Value* cos = angles(n, aten, "cos_cache", is_split ? 1 : 2);
  Value* sin = angles(n, aten, "sin_cache", is_split ? 1 : 2);
  const bool interleaved = n.flag("interleaved");
  const int64_t turns = n.i("rotary_embedding_dim");
  const Shape* shape = n.find_shape("X");
  const auto size = shape ? shape->back().constant() : std::nullopt;
  const bool is_whole = turns == 0 || (size && *size == turns * (is_split ? 1 : *heads));
  if (is_whole) {
    x = rotated(aten, x, cos, sin, interleaved);
  } else {
    Value* first = rotated(aten, aten("slice.Tensor", x, -1, nullptr, turns), cos, sin, interleaved);
    x = aten("cat", std::vector{first, aten("slice.Tensor", x, -1, turns)}, -1);
  }
  return is_split ? x : aten("flatten.using_ints", x, 2);
}

/// The tables have a row for each sample, or the list of positions has.
void open_rotary(OpenNode& n) {
  if (n.node().input(3) != nullptr) return open_first_axes<0, 3>(n);
  open_first_axes<0, 1, 2>(n);
}

constexpr OnnxOp kRotaryOnnx[] = {
    {.sig = "RotaryEmbedding(T X, T cos_cache, T sin_cache, M? position_ids, *, int interleaved=0, int? num_heads, "
            "int rotary_embedding_dim=0) -> T Y",
     .since = 23,
     .infer = infer_rotary,
     .open = open_rotary,
     .eval = eval_rotary_embedding,
     .lower = lower_rotary},
};

}  // namespace

extern const OpFamily kRotaryOps;
constinit const OpFamily kRotaryOps{"rotary", kRotaryOnnx, {}};

}  // namespace tonnx
