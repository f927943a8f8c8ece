// nms.cpp - the best of boxes that overlap: NonMaxSuppression, as a Loop that takes the best box that is left.
#include <cmath>

#include "base/error.h"
#include "ops/frame/expansion.h"
#include "ops/frame/infer.h"
#include "ops/frame/open_node.h"
#include "ops/search/rows.h"

namespace tonnx {
namespace {

/// Up to that many turns the loop has a fixed number of them, which torch.export and torch.compile can follow; past
/// that it ends when no box is left.
constexpr int64_t kFixedTurns = 256;

void check_nms(const NodeView& n) {
  const Shape *boxes = n.find_shape("boxes"), *scores = n.find_shape("scores");
  require(!boxes || boxes->size() == 3, "the boxes have {} dimensions where they need three",
          boxes ? boxes->size() : 0);
  require(!scores || scores->size() == 3, "the scores have {} dimensions where they need three",
          scores ? scores->size() : 0);
  require(!boxes || !boxes->back().is_constant() || boxes->back().is(4), "a box has {} numbers",
          boxes ? boxes->back().text() : "");
  require(n.i("center_point_box") == 0 || n.i("center_point_box") == 1, "center_point_box is {}",
          n.i("center_point_box"));
}

void infer_nms(InferNode& n) {
  check_nms(n);
  n.set(0, DType::Int64, Shape{n.fresh(), 3});
}

/// The edges of each box along both axes, and its area, all [batch, boxes].
struct Boxes {
  Value *low[2], *high[2];
  Value* area;
};

Boxes edges(OnnxEdit& edit, Expansion& onnx, Value* boxes, bool centred) {
  const auto column = [&](int64_t at) {
    return onnx("Gather", {boxes, edit.constant(make_scalar(DType::Int64, static_cast<double>(at)), "column")},
                {{"axis", int64_t{2}}});
  };
  Boxes result{};
  for (size_t axis = 0; axis < 2; ++axis) {
    const auto at = static_cast<int64_t>(axis);
    Value *first = column(at), *second = column(at + 2);
    if (centred) second = onnx("Mul", {second, onnx.number(DType::Float32, 0.5)});
    result.low[axis] = onnx(centred ? "Sub" : "Min", {first, second});
    result.high[axis] = onnx(centred ? "Add" : "Max", {first, second});
  }
  const auto length = [&](size_t axis) { return onnx("Sub", {result.high[axis], result.low[axis]}); };
  result.area = onnx("Mul", {length(0), length(1)});
  return result;
}

/// One turn: takes the best box of each class, and drops those that overlap it too much. What is carried are the
/// scores, minus infinity where a box is gone, and which boxes were taken.
GraphPtr turn(OnnxEdit& edit, Node& loop, const Boxes& boxes, Value* count, bool is_padded, bool stops) {
  const auto body = new_loop_body(loop);
  Expansion onnx(edit, *body);
  Value* keep_on = body->inputs()[1];
  std::optional<Shape> shape = edit.node().input(1)->type.shape;
  if (shape && is_padded) shape->back() = shape->back() + 1;
  Value* left = add_input(*body, "left", Type::tensor(DType::Float32, shape));
  Value* taken = add_input(*body, "taken", Type::tensor(DType::Bool, shape));
  Value* nothing = onnx.number(DType::Float32, -HUGE_VAL);
  const std::vector<Attribute> along{{"axis", int64_t{2}}, {"keepdims", int64_t{0}}};
  Value* best = onnx("ArgMax", {left}, along);  // [batch, classes]
  Value* is_best = onnx("Equal", {onnx.unsqueeze(best, {2}), count});
  Value* is_left = onnx("Greater", {left, nothing});
  Value* taken_now = onnx("Or", {taken, onnx("And", {is_best, is_left})});
  const auto of_best = [&](Value* of) {
    return onnx.unsqueeze(onnx("GatherElements", {of, best}, {{"axis", int64_t{1}}}), {2});
  };
  const auto of_each = [&](Value* of) { return onnx.unsqueeze(of, {1}); };
  Value* shared = nullptr;
  for (size_t axis = 0; axis < 2; ++axis) {
    Value* high = onnx("Min", {of_each(boxes.high[axis]), of_best(boxes.high[axis])});
    Value* low = onnx("Max", {of_each(boxes.low[axis]), of_best(boxes.low[axis])});
    Value* length = onnx("Relu", {onnx("Sub", {high, low})});
    shared = shared ? onnx("Mul", {shared, length}) : length;
  }
  Value* both = onnx("Add", {of_each(boxes.area), of_best(boxes.area)});
  Value* overlap = onnx("Div", {shared, onnx("Sub", {both, shared})});
  Value* threshold = edit.node().input(3);
  Value* is_gone =
      onnx("Or", {is_best, onnx("Greater", {overlap, threshold ? threshold : onnx.number(DType::Float32, 0)})});
  Value* left_now = onnx("Where", {is_gone, nothing, left});
  body->add_output(stops ? onnx("Greater", {onnx("ReduceMax", {left_now}, {{"keepdims", int64_t{0}}}), nothing})
                         : onnx("Identity", {keep_on}));
  body->add_output(left_now);
  body->add_output(taken_now);
  return body;
}

std::optional<int64_t> find_box_count(const NodeView& n) {
  const Shape *boxes = n.find_shape("boxes"), *scores = n.find_shape("scores");
  if (boxes && (*boxes)[1].is_constant()) return (*boxes)[1].constant();
  return scores ? (*scores)[2].constant() : std::nullopt;
}

/// Where nothing is known of the shapes: the standard says that there are three dimensions.
void give_ranks(OnnxEdit& edit) {
  const std::vector<int64_t> sizes[] = {{0, 0, 4}, {0, 0, -1}};
  for (size_t i = 0; i < 2; ++i) {
    Value* input = edit.node().input(i);
    if (!input->type.shape) edit.node().set_input(i, edit.before("Reshape", {input, edit.ints(sizes[i])}));
  }
}

bool expand_nms(const NodeView& n, OnnxEdit& edit) {
  check_nms(n);
  const auto limit = n.find_const_ints("max_output_boxes_per_class");
  require(!limit || limit->size() == 1, "max_output_boxes_per_class has {} elements", limit ? limit->size() : 0);
  const auto count = find_box_count(n);
  if (!n.has("max_output_boxes_per_class") || (limit && (*limit)[0] <= 0) || count == 0) {
    auto none = std::make_shared<Tensor>(*make_ints({}));
    none->dims = {0, 3};
    return edit.replace_with({edit.before("Identity", {edit.constant(none, "selected")})});
  }
  Expansion onnx(edit);
  give_ranks(edit);
  Value* scores = edit.node().input(1);
  Value* given = edit.node().input(0);
  Value* left = scores;
  Value* least = edit.node().input(4);
  if (least != nullptr)
    left = onnx("Where", {onnx("Greater", {scores, least}), scores, onnx.number(DType::Float32, -HUGE_VAL)});
  if (!count) {  // one more box, which is never taken: of none at all there is no best
    given = onnx("Pad", {given, edit.ints({0, 0, 0, 0, 1, 0})});
    left = onnx("Pad", {left, edit.ints({0, 0, 0, 0, 0, 1}), onnx.number(DType::Float32, -HUGE_VAL)});
  }
  const Boxes boxes = edges(edit, onnx, given, n.flag("center_point_box"));
  const std::vector<Attribute> last{{"start", int64_t{2}}};
  Value* places = onnx(
      "Range", {edit.constant(make_scalar(DType::Int64, 0), "zero"), onnx("Squeeze", {onnx("Shape", {left}, last)}),
                edit.constant(make_scalar(DType::Int64, 1), "one")});

  int64_t turns = limit ? (*limit)[0] : std::numeric_limits<int64_t>::max();
  if (count) turns = std::min(turns, *count);
  const bool stops = turns > kFixedTurns;
  Value* trips = stops ? nullptr : edit.constant(make_scalar(DType::Int64, static_cast<double>(turns)), "turns");
  Value* keep_on = edit.constant(make_scalar(DType::Bool, 1), "keep_on");
  Value* none = onnx("Less", {left, onnx.number(DType::Float32, -HUGE_VAL)});
  Node* loop = edit.node_before("Loop", {trips, stops ? keep_on : nullptr, left, none}, {}, 2);
  loop->set_attribute("body", turn(edit, *loop, boxes, places, !count, stops));

  // the boxes that were taken, by class, and by score within each
  Node* sorted = edit.node_before("TopK", {scores, onnx("Shape", {scores}, last)}, {}, 2);
  Value* order = sorted->output(1);
  Value* is_taken = onnx("GatherElements", {loop->output(1), order}, {{"axis", int64_t{2}}});
  if (stops || !limit) {
    Value* number = onnx("CumSum", {onnx("Cast", {is_taken}, {{"to", static_cast<int64_t>(DType::Int64)}}),
                                    edit.constant(make_scalar(DType::Int64, 2), "axis")});
    is_taken = onnx("And", {is_taken, onnx("LessOrEqual", {number, edit.node().input(2)})});
  }
  Value* found = onnx("Transpose", {onnx("NonZero", {is_taken})});
  Value* box = onnx.unsqueeze(onnx("GatherND", {order, found}), {1});
  Value* where = onnx("Slice", {found, edit.ints({0}), edit.ints({2}), edit.ints({1})});
  return edit.replace_with({onnx("Concat", {where, box}, {{"axis", int64_t{1}}})});
}

constexpr OpsetStep kHistory[] = {{.to = 11}};

constexpr OnnxOp kNmsOnnx[] = {
    {.sig = "NonMaxSuppression(tensor(float) boxes, tensor(float) scores, tensor(int64)? max_output_boxes_per_class, "
            "tensor(float)? iou_threshold, tensor(float)? score_threshold, *, int center_point_box=0) -> tensor(int64) "
            "selected_indices",
     .since = 10,
     .traits = kBounded,
     .history = kHistory,
     .infer = infer_nms,
     .open = open_first_axes<0, 1>,
     .eval = eval_nms,
     .note = "a loop, of a fixed number of turns where that is small",
     .expand = expand_nms},
};

}  // namespace

extern const OpFamily kNmsOps;
constinit const OpFamily kNmsOps{"nms", kNmsOnnx, {}};

}  // namespace tonnx
