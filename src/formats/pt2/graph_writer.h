// graph_writer.h - a graph of aten nodes as the JSON of torch.export.
#pragma once
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/json.h"
#include "formats/pt2/size_writer.h"
#include "ir/graph.h"
#include "ops/frame/python_names.h"

namespace tonnx::pt2 {

/// rapidjson with texts as string_views, and the little unions that the format consists of.
class JsonWriter {
 public:
  void begin_object() { json_.StartObject(); }
  void end_object() { json_.EndObject(); }
  void begin_list() { json_.StartArray(); }
  void end_list() { json_.EndArray(); }
  void key(std::string_view name) { write_json_text(json_, name); }
  void text(std::string_view value) { write_json_text(json_, value); }
  void number(int64_t value) { json_.Int64(value); }
  void number(double value);  // infinities and NaN are texts
  void flag(bool value) { json_.Bool(value); }
  void null() { json_.Null(); }

  /// `{"as_x": ...}`, the content of which `fill` writes.
  template <class Fill>
  void variant(std::string_view kind, Fill&& fill) {
    begin_object();
    key(kind);
    fill();
    end_object();
  }
  template <class Fill>
  void object(std::string_view name, Fill&& fill) {
    key(name);
    begin_object();
    fill();
    end_object();
  }
  template <class Fill>
  void list(std::string_view name, Fill&& fill) {
    key(name);
    begin_list();
    fill();
    end_list();
  }
  void entry(std::string_view name, std::string_view value) {
    key(name);
    text(value);
  }

  std::string_view result() const { return {buffer_.GetString(), buffer_.GetSize()}; }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> json_{buffer_};
};

/// The values that a program gives, those of lists one by one.
std::vector<const Value*> flat_outputs(const Graph& graph);
/// The elements of a list that `tonnx::list` makes; null for any other value.
const Node* find_list(const Value* value);

/// Names and types of all values, and the JSON of graphs and their parts.
class GraphWriter {
 public:
  /// `hints`: sizes that the symbols of inputs may have.
  GraphWriter(JsonWriter& json, SizeNames& sizes, SampleSizes hints = {});

  /// A name of its own for a value, as near to `hint` as can be.
  const std::string& give_name(const Value* value, std::string_view hint);
  const std::string& name_of(const Value* value) const { return names_.at(value); }

  /// `inputs` are those of the graph in the order of the file, with the weights.
  void write_graph(const Graph& graph, const std::vector<const Value*>& inputs, bool is_single_return = false);
  /// `{"as_tensor": {"name": ...}}`, or what else the value is; null is None.
  void write_argument(const Value* value);
  /// What TensorMeta holds, as an object.
  void write_tensor_meta(DType dtype, const Shape& shape, bool requires_grad = false);

 private:
  void name_values(const Graph& graph);
  void write_node(const Node& node);
  void write_hop(const Node& node);
  void write_arguments(const Node& node);
  void write_constant(const Node& node, const AttrValue& value, std::string_view type, bool is_list);
  void write_outputs(const Node& node);
  void write_values(const Graph& graph, const std::vector<const Value*>& inputs);
  void write_size(const Dim& dim);
  void write_list(const Node& node, const AttrList& list, std::string_view type);
  std::string number_text(const Node& node, std::string_view argument);
  std::string float_text(const Value& value);
  std::string bool_text(const Value& value);

  JsonWriter& json_;
  SizeNames& sizes_;
  SampleSizes hints_;
  python::NameSet taken_;
  std::unordered_map<const Value*, std::string> names_;
  std::unordered_map<const Node*, std::vector<std::string>> unused_;  // names of outputs that the graph does not have
  std::unordered_map<const Value*, std::string> float_texts_;
  int unbacked_floats_ = 0;
};

}  // namespace tonnx::pt2
