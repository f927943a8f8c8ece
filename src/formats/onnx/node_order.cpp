// node_order.cpp - sorts the nodes of a graph so that each comes behind those that make its inputs.
#include "formats/onnx/node_order.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/message.h"
#include "formats/onnx/type_reader.h"

namespace tonnx::onnx {
namespace {

using Names = std::vector<std::string_view>;

struct Listed {
  Names reads, makes;
  std::string_view name, op;
};

Listed list(const Bytes& bytes, int depth);

/// What one field of a message holds; empty where it is absent.
std::string_view view_at(const Bytes& bytes, uint32_t field) {
  std::string_view result;
  Message message(bytes);
  while (message.next()) {
    if (message.field() == field) {
      result = message.view();
    } else {
      message.skip();
    }
  }
  return result;
}

/// What a subgraph reads from outside.
void list_captured(const Bytes& graph, Names& reads, int depth) {
  require(depth < kMaxNesting, "subgraphs are nested more than {} deep", kMaxNesting);
  Names inside;
  std::unordered_set<std::string_view> made;
  Message message(graph);
  while (message.next()) {
    switch (message.field()) {
      case graph::node: {
        const Listed node = list(message.bytes(), depth);
        inside.insert(inside.end(), node.reads.begin(), node.reads.end());
        made.insert(node.makes.begin(), node.makes.end());
        break;
      }
      case graph::input: made.insert(view_at(message.bytes(), value_info::name)); break;
      case graph::output: inside.push_back(view_at(message.bytes(), value_info::name)); break;
      case graph::initializer: made.insert(view_at(message.bytes(), tensor::name)); break;
      case graph::sparse_initializer: {  // its values carry its name
        const Bytes both = message.bytes();
        made.insert(view_at(both.slice(view_at(both, sparse::values)), tensor::name));
        break;
      }
      default: message.skip();
    }
  }
  for (const std::string_view name : inside) {
    if (!made.contains(name)) reads.push_back(name);
  }
}

Listed list(const Bytes& bytes, int depth) {
  Listed result;
  Message message(bytes);
  while (message.next()) {
    switch (message.field()) {
      case node::input: result.reads.push_back(message.view()); break;
      case node::output: result.makes.push_back(message.view()); break;
      case node::name: result.name = message.view(); break;
      case node::op_type: result.op = message.view(); break;
      case node::attribute: {
        Message value(message.bytes());
        while (value.next()) {
          if (value.field() == attribute::g || value.field() == attribute::graphs) {
            list_captured(value.bytes(), result.reads, depth + 1);
          } else {
            value.skip();
          }
        }
        break;
      }
      default: message.skip();
    }
  }
  return result;
}

}  // namespace

std::vector<std::string_view> names_read_by(const Bytes& node) { return list(node, 0).reads; }

std::vector<Bytes> in_running_order(const std::vector<Bytes>& nodes) {
  std::vector<Listed> listed;
  std::unordered_map<std::string_view, size_t> maker;
  for (const Bytes& node : nodes) {
    for (const std::string_view name : listed.emplace_back(list(node, 0)).makes) {
      if (!name.empty()) maker.emplace(name, listed.size() - 1);
    }
  }
  enum class State : uint8_t { New, Open, Done };
  std::vector<State> states(nodes.size(), State::New);
  std::vector<Bytes> result;
  for (size_t first = 0; first < nodes.size(); ++first) {
    std::vector<size_t> path{first};
    while (!path.empty()) {
      const size_t at = path.back();
      if (states[at] != State::New) {
        path.pop_back();
        if (states[at] == State::Open) result.push_back(nodes[at]);
        states[at] = State::Done;
        continue;
      }
      states[at] = State::Open;
      for (const std::string_view name : listed[at].reads) {
        const auto found = maker.find(name);
        if (found == maker.end() || states[found->second] == State::Done) continue;
        require(states[found->second] == State::New, "the graph has a cycle through node '{}' ({})", listed[at].name,
                listed[at].op);
        path.push_back(found->second);
      }
    }
  }
  return result;
}

}  // namespace tonnx::onnx
