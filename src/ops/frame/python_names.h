// python_names.h - turns the names of ONNX into Python identifiers that say what they name.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tonnx::python {

/// Letters, digits and underscores, not starting with a digit, not a keyword; empty where nothing is left.
std::string identifier(std::string_view text);

/// Whether a name was made up by an exporter (`onnx::MatMul_12`, `Conv_3`, `345`) and says nothing.
bool is_made_up(std::string_view name);

/// Whether it is the name of a tensor in a state dict of PyTorch's, which is to stay: `encoder.layer.0.gamma`.
bool is_state_key(std::string_view name);

/// Whether it is the name that tracing gives a number or a tensor which the model's code says: `lifted_tensor_0`.
bool is_lifted(std::string_view name);

/// `/layer1/layer1.0/conv1/Conv` gives `layer1.0.conv1`; empty where the name of the node says nothing.
std::string path_of_node(std::string_view node_name);

/// `layer1.0.conv1.weight` gives `layer1.0.conv1`; empty where the name of the weight says nothing.
std::string path_of_weight(std::string_view weight_name);

/// What an attribute of the model must not be called, as nn.Module has it.
const std::set<std::string, std::less<>>& module_attributes();

/// Names that are taken, and new ones that are not.
class NameSet {
 public:
  void reserve(std::string_view name) { taken_.emplace(name); }
  /// As if each were reserved: there are many scopes, and in all of them these are taken.
  void reserve_module_attributes() { is_module_ = true; }
  bool contains(std::string_view name) const {
    return taken_.contains(name) || (is_module_ && module_attributes().contains(name));
  }
  /// `hint`, or `hint_2` and so on.
  std::string add(const std::string& hint);

 private:
  std::set<std::string, std::less<>> taken_;
  std::unordered_map<std::string, int> last_tried_;  // the number behind a hint
  bool is_module_ = false;
};

}  // namespace tonnx::python
