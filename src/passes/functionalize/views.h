// views.h - how the tensor that a view node gives lies in the one that it looks at, and the way back.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ops/frame/op_def.h"
#include "passes/frame/aten_writer.h"

namespace tonnx {

using Strides = Dims;

struct View {
  enum class Kind {
    None,       // no view: the result has memory of its own
    Merged,     // the same tensor; the node is not needed
    Same,       // the same tensor, by a node that means something: dropout in eval mode
    Scatter,    // some of the elements; `<op>_scatter` of the same arguments puts them back
    Reshape,    // all elements, in the same order
    Permute,    // dims: for each dimension, which one it was
    Squeeze,    // dims: those that are left out
    Unsqueeze,  // dims: the one that is new
    Expanded,   // all elements, those along some dimensions several times
    Windows,    // some of the elements, each once, in places that are counted
    Opaque,     // nothing can be written through it: elements lie in several places, or are of another type
  };
  Kind kind = Kind::None;
  AtenCall call;  // that makes the view again; its input `viewed` is what it looks at
  ViewRule rule;  // of the call
  size_t viewed = 0;
  std::vector<int64_t> dims;
  Type type;              // of the result
  bool may_copy = false;  // Opaque, as it is not known how memory lies: it may have memory of its own

  View(AtenCall made, ViewRule by) : call(std::move(made)), rule(by) {}
};

/// What a node is asked about: the tensor that it may look at.
struct Viewed {
  Type type;
  bool is_whole;                   // it has all of its memory, so that as_strided means what it says
  std::optional<Strides> strides;  // nothing: not known
};

/// Which of the node's inputs it may be a view of; -1 for operators that always give new memory.
int viewed_input(const Node& node);
/// Whether the answer depends on strides.
bool asks_strides(const Node& node);
/// For each output of the node, how it lies in the input. Views of symbolic sizes may need numbers, which are written.
std::vector<View> views_of(const Node& node, const Viewed& input, AtenWriter& writer);

/// A text that is equal for two calls that do the same; empty where it is not known.
std::string key_of(const AtenCall& call);

/// The view of another tensor that has the same shape as the one it was made for.
Value* make_view(const View& view, Value* of, AtenWriter& writer);
/// Whether scatter_view looks at the former elements, or at their sizes.
bool needs_former(const View& view, const Type& type);
/// The tensor of this type whose view is `part`; the elements outside the view are those of `former`.
Value* scatter_view(const View& view, Value* part, Value* former, const Type& type, AtenWriter& writer);

/// Of a tensor that lies row by row.
std::optional<Strides> dense_strides(const Type& type);
/// Of what an elementwise operator gives for tensors that lie in memory like these, each with a stride for every
/// dimension of the result: 0 where it is broadcast. In the order of the first that tells, and without gaps; nothing
/// where symbolic sizes do not tell.
std::optional<Strides> kept_strides(const Type& type, const std::vector<Strides>& of);
std::optional<Strides> view_strides(const View& view, const Type& of, const std::optional<Strides>& strides);
/// As PyTorch decides whether reshape gives a view: nothing where it has to copy.
std::optional<Strides> reshape_strides(const Shape& from, const Strides& strides, const Shape& to);

}  // namespace tonnx
