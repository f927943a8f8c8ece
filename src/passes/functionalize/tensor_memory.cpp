// tensor_memory.cpp - reads and writes of tensors that share memory, as values.
#include "passes/functionalize/tensor_memory.h"

#include <algorithm>

#include "base/error.h"
#include "ops/frame/result_dtype.h"

namespace tonnx {

Place* TensorMemory::find(const Value* value) const {
  const auto at = places_.find(value);
  return at == places_.end() ? nullptr : at->second;
}

Place& TensorMemory::get(Value* value) {
  Place*& place = places_[value];
  if (place == nullptr) {
    place = &add_copy(value, value->type);
    if (value->producer == nullptr || value->graph != graph_) place->origin = value;
  }
  return *place;
}

Place& TensorMemory::add_copy(Value* content, const Type& type) {
  Place& place = storage_.emplace_back();
  place.whole = &place;
  place.type = type;
  place.content = content;
  return place;
}

Place& TensorMemory::add_view(Place& parent, View view) {
  // what has memory of its own is another tensor each time
  std::string key = view.may_copy ? std::string() : key_of(view.call);
  Place* unkeyed = nullptr;
  if (!key.empty()) key += fmt::format(" of {}", fmt::ptr(&parent));
  Place*& place = key.empty() ? unkeyed : views_[key];
  if (place == nullptr) {
    place = &storage_.emplace_back();
    place->parent = &parent;
    place->whole = parent.whole;
    place->type = view.type;
    place->is_opaque = parent.is_opaque || view.kind == View::Kind::Opaque;
    place->view = std::move(view);
  }
  return *place;
}

const std::optional<Strides>& TensorMemory::strides_of(Place& place) {
  std::vector<Place*> unknown;
  for (Place* at = &place; at != nullptr && !at->has_strides; at = at->parent) unknown.push_back(at);
  for (size_t i = unknown.size(); i-- > 0;) {
    Place& at = *unknown[i];
    at.strides = at.parent ? view_strides(*at.view, at.parent->type, at.parent->strides) : dense_strides(at.type);
    at.has_strides = true;
  }
  return place.strides;
}

bool TensorMemory::has_unknown_layout(const Node& node) {
  const AtenOpEntry* const entry = find_aten_op(node);
  const Layout layout = entry && !is_elementwise(node) ? entry->op->layout : Layout::Rows;
  if (layout == Layout::Rows || layout == Layout::Own) return layout == Layout::Own;
  return std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Value* input) {
    if (input == nullptr || is_row_by_row(input)) return false;
    const std::optional<Strides>& strides = strides_of(*find(input));
    if (!strides) return true;
    if (layout == Layout::Channels) return strides->size() >= 4 && (*strides)[1].is(1);
    return strides != dense_strides(input->type);
  });
}

void TensorMemory::add_result(const Node& node) {
  if (has_unknown_layout(node)) {
    for (Value* output : node.outputs()) {
      if (output == nullptr || !output->type.is_tensor()) continue;
      Place& made = get(output);
      made.strides.reset();
      made.has_strides = true;
    }
    return;
  }
  Value* result = node.outputs().size() == 1 ? node.output(0) : nullptr;
  if (result == nullptr || !is_elementwise(node) || !result->type.shape) return;
  const Attribute* const format = node.find_attribute("memory_format");
  const auto* const name = format ? format->value.get<std::string>() : nullptr;
  if (name != nullptr && *name == "contiguous_format") return;
  std::vector<Value*> tensors;
  for (Value* input : node.inputs()) {
    if (input && input->type.is_tensor()) tensors.push_back(input);
  }
  if (std::all_of(tensors.begin(), tensors.end(), [&](const Value* value) { return is_row_by_row(value); })) return;
  std::vector<Strides> of;
  for (Value* tensor : tensors) {
    if (auto strides = broadcast_strides(tensor, result->type)) of.push_back(std::move(*strides));
  }
  Place& made = get(result);
  made.has_strides = true;
  const bool is_kept = name == nullptr || *name == "preserve_format";
  if (is_kept && of.size() == tensors.size()) made.strides = kept_strides(made.type, of);
}

bool TensorMemory::is_row_by_row(const Value* value) const {
  const Place* place = find(value);
  return place == nullptr || (place->parent == nullptr && !place->has_strides);
}

std::optional<Strides> TensorMemory::broadcast_strides(Value* value, const Type& to) {
  Place* place = find(value);
  const std::optional<Strides> own = place ? strides_of(*place) : dense_strides(value->type);
  const auto rank = value->type.rank(), all = to.rank();
  if (!own || !rank || *rank > *all || own->size() != static_cast<size_t>(*rank)) return std::nullopt;
  Strides result(static_cast<size_t>(*all), Dim(0));
  for (size_t i = 0; i < own->size(); ++i) {
    const size_t at = result.size() - own->size() + i;
    const bool is_repeated = (*value->type.shape)[i].is(1) && !(*to.shape)[at].is(1);
    if (!is_repeated) result[at] = (*own)[i];
  }
  return result;
}

Viewed TensorMemory::viewed(Place& place, bool with_strides) {
  return {place.type, place.parent == nullptr, with_strides ? strides_of(place) : std::nullopt};
}

void TensorMemory::set_current(Place& place, Value* content) {
  place.content = content;
  place.version = place.whole->written;
}

Value* TensorMemory::read(Place& place, Node* before) {
  if (is_current(place)) return place.content;
  writer_.write_before(before);
  std::vector<Place*> stale;
  const auto climb = [&] {
    stale.clear();
    Place* at = &place;
    for (; !is_current(*at) && at->parent; at = at->parent) stale.push_back(at);
    return at;
  };
  if (Place* top = climb(); !is_current(*top)) {
    update_whole(*top);
    climb();
  }
  for (const Place* at : stale) {
    if (at->view->may_copy && at->content != nullptr)
      fail_unsupported("what {} gives may be a view or a copy, and what it was made of is written to",
                       at->view->call.op.view());
  }
  for (size_t i = stale.size(); i-- > 0;)
    set_current(*stale[i], make_view(*stale[i]->view, stale[i]->parent->content, writer_));
  return place.content;
}

void TensorMemory::update_whole(Place& whole) {
  Place* changed = whole.changed;
  ensure(changed != nullptr && is_current(*changed), "memory is out of date with nothing written to it");
  std::vector<Place*> path;  // from the view up to the whole
  for (Place* at = changed; at != nullptr; at = at->parent) path.push_back(at);
  // the elements before the write, of those on the way that are looked at; the whole has them
  const auto is_former = [&](const Place& at) { return at.content && at.version == whole.version; };
  std::vector<bool> needed(path.size(), false);
  for (size_t i = 1; i < path.size(); ++i) {
    needed[i] = needs_former(*path[i - 1]->view, path[i]->type) || (i > 1 && needed[i - 1] && !is_former(*path[i - 1]));
  }
  for (size_t i = path.size() - 1; i-- > 1;) {
    if (!needed[i] || is_former(*path[i])) continue;
    path[i]->content = make_view(*path[i]->view, path[i + 1]->content, writer_);
    path[i]->version = whole.version;
  }
  std::vector<Value*> made(path.size(), nullptr);
  made[0] = changed->content;
  for (size_t i = 1; i < path.size(); ++i)
    made[i] = scatter_view(*path[i - 1]->view, made[i - 1], path[i]->content, path[i]->type, writer_);
  for (size_t i = 1; i < path.size(); ++i) set_current(*path[i], made[i]);
  whole.changed = nullptr;
}

void TensorMemory::write(Place& place, Value* content, Node* before) {
  Place& whole = *place.whole;
  if (place.is_opaque) {
    const Place* at = &place;
    while (at->view->kind != View::Kind::Opaque) at = at->parent;
    fail_unsupported("a write to what {} gives is not supported", at->view->call.op.view());
  }
  for (const Place* at = &place; at->parent != nullptr; at = at->parent) {
    // elements that are there several times must all get the same value
    const bool is_same_everywhere = at == &place && (before->op == "fill_" || before->op == "zero_");
    if (at->view->kind == View::Kind::Expanded && !is_same_everywhere)
      fail_unsupported("a write to some of the elements that {} repeats is not supported", at->view->call.op.view());
  }
  if (whole.is_read_by_strides) fail_unsupported("a write to memory that as_strided looks at is not supported");
  if (whole.origin != nullptr && whole.origin->graph != graph_)
    fail_unsupported("'{}' belongs to the graph around this one, and is written to", whole.origin->name);
  bool covers = whole.changed == nullptr;
  for (const Place* at = whole.changed; at != nullptr && !covers; at = at->parent) covers = at == &place;
  if (!covers) {
    writer_.write_before(before);
    update_whole(whole);
  }
  ++whole.written;
  set_current(place, content);
  whole.changed = place.parent ? &place : nullptr;
  if (whole.origin != nullptr && !whole.is_noted) {
    whole.is_noted = true;
    written_.push_back(whole.origin->name);
  }
}

}  // namespace tonnx
