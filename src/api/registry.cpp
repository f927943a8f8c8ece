// registry.cpp - functions of the user's own, called as those of the tables are.
#include <array>
#include <utility>

#include "api/internal.h"

namespace tonnx::v1 {
namespace {

constexpr size_t kMostArguments = 24;  // of an operator of PyTorch

/// The values that a conversion makes are its own: builders may take them as inputs.
core::Value* mutable_of(ValueView view) {
  return view ? const_cast<core::Value*>(&open(view.handle())) : nullptr;  // NOLINT
}

std::vector<core::Value*> mutable_of(const std::vector<ValueView>& views) {
  std::vector<core::Value*> result;
  for (const ValueView view : views) result.push_back(mutable_of(view));
  return result;
}

template <class List>
std::vector<ValueView> views_of_all(const List& values) {
  std::vector<ValueView> result;
  for (const core::Value* value : values) result.push_back(view_of(value));
  return result;
}

template <size_t... I>
core::Values call(core::AtenBuilder& builder, std::string_view name, const std::vector<core::Kw>& arguments,
                  std::index_sequence<I...>) {
  return builder.all(name, core::Kw(arguments[I])...);
}

/// Calls with as many arguments as there are.
template <size_t Count = 0>
core::Values call_with(core::AtenBuilder& builder, std::string_view name, const std::vector<core::Kw>& arguments) {
  if constexpr (Count > kMostArguments) {
    core::fail_invalid("{} is called with {} arguments", name, arguments.size());
  } else {
    if (arguments.size() == Count) return call(builder, name, arguments, std::make_index_sequence<Count>());
    return call_with<Count + 1>(builder, name, arguments);
  }
}

/// Runs a user's function: an error of the interface goes on as one from inside, with the lines that say where.
template <class Body>
auto users(Body&& body) {
  try {
    return body();
  } catch (const Error& e) {
    throw core::Error(core_of(e.kind()), e.text());
  } catch (const core::Error&) {
    throw;
  } catch (...) {
    throw CallersException{std::current_exception()};
  }
}

}  // namespace

struct Argument::Content {
  core::Arg value;
  std::string name;
};

Argument::Argument(ValueView value) : content_(new Content{core::Arg(mutable_of(value)), {}}) {}
Argument::Argument(bool value) : content_(new Content{core::Arg(value), {}}) {}
Argument::Argument(int value) : content_(new Content{core::Arg(value), {}}) {}
Argument::Argument(int64_t value) : content_(new Content{core::Arg(value), {}}) {}
Argument::Argument(double value) : content_(new Content{core::Arg(value), {}}) {}
Argument::Argument(const char* value) : content_(new Content{core::Arg(value), {}}) {}
Argument::Argument(DType value) : content_(new Content{core::Arg(core_of(value)), {}}) {}
Argument::Argument(std::vector<int64_t> value) : content_(new Content{core::Arg(std::move(value)), {}}) {}
Argument::Argument(std::vector<double> value) : content_(new Content{core::Arg(std::move(value)), {}}) {}
Argument::Argument(const std::vector<ValueView>& values) : content_(new Content{core::Arg(mutable_of(values)), {}}) {}
Argument::Argument(const Argument& other) : content_(new Content(*other.content_)) {}
Argument::Argument(Argument&& other) noexcept : content_(std::exchange(other.content_, nullptr)) {}
Argument& Argument::operator=(Argument other) noexcept {
  std::swap(content_, other.content_);
  return *this;
}
Argument::~Argument() { delete content_; }
void Argument::set_name(const char* name) { content_->name = name; }

namespace {

const core::OnnxNode& onnx_node(const void* node) { return *static_cast<const core::OnnxNode*>(node); }
const core::AtenNode& aten_node(const void* node) { return *static_cast<const core::AtenNode*>(node); }
core::AtenBuilder& aten_builder(void* builder) { return *static_cast<core::AtenBuilder*>(builder); }
core::OnnxBuilder& onnx_builder(void* builder) { return *static_cast<core::OnnxBuilder*>(builder); }

}  // namespace

NodeView OnnxNode::node() const { return view_of(&onnx_node(node_).node()); }
ValueView OnnxNode::input(std::string_view name) const {
  return translated([&] { return view_of(onnx_node(node_).input(name)); });
}
ValueView OnnxNode::find_input(std::string_view name) const {
  return translated([&] { return view_of(onnx_node(node_).find_input(name)); });
}
std::vector<ValueView> OnnxNode::inputs(std::string_view variadic) const {
  return translated([&] { return views_of_all(onnx_node(node_).inputs(variadic)); });
}
Type OnnxNode::type(std::string_view input) const {
  return translated([&] { return public_of(onnx_node(node_).type(input)); });
}
Type OnnxNode::output_type(size_t i) const {
  return translated([&] {
    const core::Value* output = onnx_node(node_).node().output(i);
    return output ? public_of(output->type) : Type{};
  });
}
bool OnnxNode::has(std::string_view name) const {
  return translated([&] { return onnx_node(node_).has(name); });
}
int64_t OnnxNode::i(std::string_view attribute) const {
  return translated([&] { return onnx_node(node_).i(attribute); });
}
double OnnxNode::f(std::string_view attribute) const {
  return translated([&] { return onnx_node(node_).f(attribute); });
}
std::string OnnxNode::s(std::string_view attribute) const {
  return translated([&] { return onnx_node(node_).s(attribute); });
}
std::vector<int64_t> OnnxNode::ints(std::string_view attribute) const {
  return translated([&]() -> std::vector<int64_t> { return onnx_node(node_).ints(attribute); });
}
std::vector<double> OnnxNode::floats(std::string_view attribute) const {
  return translated([&] {
    auto found = onnx_node(node_).find_floats(attribute);
    core::require(found.has_value(), "the attribute '{}' is missing", attribute);
    return std::move(*found);
  });
}
std::vector<int64_t> OnnxNode::const_ints(std::string_view input) const {
  return translated([&]() -> std::vector<int64_t> { return onnx_node(node_).const_ints(input); });
}

ValueView AtenBuilder::operator()(std::string_view name, const std::vector<Argument>& arguments) {
  return all(name, arguments).at(0);
}
std::vector<ValueView> AtenBuilder::all(std::string_view name, const std::vector<Argument>& arguments) {
  return translated([&] {
    const std::string full = name.find("::") == name.npos ? "aten::" + std::string(name) : std::string(name);
    const core::AtenOpEntry* entry = core::find_aten_op(full);
    if (entry == nullptr) core::fail_unsupported("there is no operator '{}' to call", full);
    std::vector<core::Kw> named;
    size_t place = 0;
    for (const Argument& argument : arguments) {
      const Argument::Content& content = *argument.content_;
      const auto& parameters = entry->signature.inputs;
      core::require(!content.name.empty() || place < parameters.size(), "'{}' takes {} arguments", full,
                    parameters.size());
      const std::string& key = content.name.empty() ? parameters[place++].name : content.name;
      core::require(entry->signature.find_input(key) >= 0, "'{}' has no argument '{}'", full, key);
      named.push_back({key.c_str(), content.value});
    }
    return views_of_all(call_with(aten_builder(builder_), full, named));
  });
}
ValueView AtenBuilder::constant(const Tensor& tensor, std::string_view name) {
  return translated([&] { return view_of(aten_builder(builder_).constant(Access::tensor(tensor), name)); });
}

NodeView AtenNode::node() const { return view_of(&aten_node(node_).node()); }
ValueView AtenNode::input(std::string_view name) const {
  return translated([&] { return view_of(aten_node(node_).input(name)); });
}
ValueView AtenNode::find_input(std::string_view name) const {
  return translated([&] { return view_of(aten_node(node_).find_input(name)); });
}
std::vector<ValueView> AtenNode::inputs(std::string_view name) const {
  return translated([&] { return views_of_all(aten_node(node_).inputs(name)); });
}
Type AtenNode::type(std::string_view argument) const {
  return translated([&] { return public_of(aten_node(node_).type(argument)); });
}
Type AtenNode::output_type(size_t i) const {
  return translated([&] { return public_of(aten_node(node_).output_type(i)); });
}
bool AtenNode::has(std::string_view name) const {
  return translated([&] { return aten_node(node_).has(name); });
}
int64_t AtenNode::i(std::string_view name) const {
  return translated([&] { return aten_node(node_).i(name); });
}
double AtenNode::f(std::string_view name) const {
  return translated([&] { return aten_node(node_).f(name); });
}
bool AtenNode::flag(std::string_view name) const {
  return translated([&] { return aten_node(node_).flag(name); });
}
std::string AtenNode::s(std::string_view name) const {
  return translated([&] { return aten_node(node_).s(name); });
}
std::vector<int64_t> AtenNode::ints(std::string_view name) const {
  return translated([&]() -> std::vector<int64_t> { return aten_node(node_).ints(name); });
}

ValueView OnnxBuilder::operator()(std::string_view op, const std::vector<ValueView>& inputs,
                                  const Attributes& attributes) {
  return all(1, op, inputs, attributes).at(0);
}
std::vector<ValueView> OnnxBuilder::all(size_t count, std::string_view op, const std::vector<ValueView>& inputs,
                                        const Attributes& attributes) {
  return translated([&] {
    std::vector<core::Attribute> inner;
    for (const auto& [name, value] : attributes) inner.emplace_back(name, attribute_of(value));
    return views_of_all(onnx_builder(builder_).all(count, op, mutable_of(inputs), std::move(inner)));
  });
}
ValueView OnnxBuilder::constant(const Tensor& tensor, std::string_view name) {
  return translated([&] { return view_of(onnx_builder(builder_).constant(Access::tensor(tensor), name)); });
}
ValueView OnnxBuilder::number(DType dtype, double value) {
  return translated([&] { return view_of(onnx_builder(builder_).number(core_of(dtype), value)); });
}
ValueView OnnxBuilder::ints(std::vector<int64_t> values) {
  return translated([&] { return view_of(onnx_builder(builder_).ints(std::move(values))); });
}
ValueView OnnxBuilder::cast(ValueView x, DType to) {
  return translated([&] { return view_of(onnx_builder(builder_).cast(mutable_of(x), core_of(to))); });
}
int64_t OnnxBuilder::target_opset() const { return onnx_builder(builder_).target_opset(); }

struct Registry::Content {
  std::shared_ptr<core::CustomOps> ops = std::make_shared<core::CustomOps>();
};
struct RegistryAccess {
  static std::shared_ptr<const core::CustomOps> ops(const Registry& registry) { return registry.content_->ops; }
};
std::shared_ptr<const core::CustomOps> custom_of(const Registry& registry) { return RegistryAccess::ops(registry); }

Registry::Registry() : content_(new Content) {}
Registry::Registry(const Registry& other)
    : content_(new Content{std::make_shared<core::CustomOps>(*other.content_->ops)}) {}
Registry::Registry(Registry&& other) noexcept : content_(std::exchange(other.content_, nullptr)) {}
Registry& Registry::operator=(Registry other) noexcept {
  std::swap(content_, other.content_);
  return *this;
}
Registry::~Registry() { delete content_; }

void Registry::add_onnx(const std::string& signature, ToAten lower, const std::string& like) {
  add_onnx_many(
      signature,
      [lower = std::move(lower)](const OnnxNode& node, AtenBuilder& aten) { return std::vector{lower(node, aten)}; },
      like);
}

void Registry::add_onnx_many(const std::string& signature, ToAtenMany lower, const std::string& like) {
  translated([&] {
    content_->ops->add_onnx(signature, like,
                            [lower = std::move(lower)](const core::OnnxNode& node, core::AtenBuilder& aten) {
                              return users([&] {
                                AtenBuilder builder(&aten);
                                return core::Values(mutable_of(lower(OnnxNode(&node), builder)));
                              });
                            });
  });
}

void Registry::add_aten(const std::string& signature, ToOnnx raise) {
  translated([&] {
    content_->ops->add_aten(signature, [raise = std::move(raise)](const core::AtenNode& node, core::OnnxBuilder& onnx) {
      return users([&] {
        OnnxBuilder builder(&onnx);
        return core::Values(mutable_of(raise(AtenNode(&node), builder)));
      });
    });
  });
}

}  // namespace tonnx::v1
