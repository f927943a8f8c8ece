// tensor_memory.h - which values of an aten graph share memory, and which value holds what is there at the moment.
#pragma once
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "passes/functionalize/views.h"

namespace tonnx {

/// A tensor as PyTorch has it in memory: all of it, or a view of another one. Writes count up the version of the whole.
struct Place {
  Place* parent = nullptr;  // null for whole memory
  Place* whole = nullptr;   // itself for whole memory
  std::optional<View> view;
  Type type;
  bool is_opaque = false;    // some view on the way cannot be written through
  Value* content = nullptr;  // null until somebody reads it
  uint64_t version = 0;      // of the whole, that the content is right for
  bool has_strides = false;
  std::optional<Strides> strides;

  // of whole memory only
  const Value* origin = nullptr;  // the input or initializer that it is
  uint64_t written = 0;           // the newest version
  Place* changed = nullptr;       // the view that was written last, and has not been put back
  bool is_noted = false;
  bool is_read_by_strides = false;  // a copy of it has gone to as_strided
};

/// What is written to a view is put back into the whole only when somebody reads another part of it; what is read
/// through a view is read anew only when the whole has changed.
class TensorMemory {
 public:
  explicit TensorMemory(Graph& graph) : graph_(&graph), writer_(graph) {}

  AtenWriter& writer() { return writer_; }

  Place* find(const Value* value) const;
  /// The memory of a value; its own, where nothing is known of it yet.
  Place& get(Value* value);
  void set(const Value* value, Place& place) { places_[value] = &place; }
  /// New memory with the same elements.
  Place& add_copy(Value* content, const Type& type);
  /// The view of a place; an equal one that is there already, or a new one without content.
  Place& add_view(Place& parent, View view);
  /// New memory for what a node gives, where it does not lie row by row.
  void add_result(const Node& node);
  /// The place as views_of wants to know it.
  Viewed viewed(Place& place, bool with_strides);

  bool is_current(const Place& place) const { return place.content && place.version == place.whole->written; }
  void set_current(Place& place, Value* content);
  /// The value that holds the elements now. New nodes go in front of `before`, or to the end.
  Value* read(Place& place, Node* before);
  /// A value of the place's shape, with elements of any time.
  Value* any(Place& place, Node* before) { return place.content ? place.content : read(place, before); }
  void write(Place& place, Value* content, Node* before);

  /// Inputs and initializers that were written to.
  const std::vector<std::string>& written() const { return written_; }

 private:
  void update_whole(Place& whole);
  const std::optional<Strides>& strides_of(Place& place);
  bool has_unknown_layout(const Node& node);
  bool is_row_by_row(const Value* value) const;
  /// Of a tensor that is broadcast to the type; nothing where they are not known.
  std::optional<Strides> broadcast_strides(Value* value, const Type& to);

  Graph* graph_;
  AtenWriter writer_;
  std::deque<Place> storage_;
  std::unordered_map<const Value*, Place*> places_;
  std::unordered_map<std::string, Place*> views_;  // by parent and call
  std::vector<std::string> written_;
};

}  // namespace tonnx
