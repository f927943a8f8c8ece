// internal.h - what the sources of the public interface share: names of both sides, handles, and the border for errors.
#pragma once
#define TONNX_INTERNAL
#include <tonnx/probe.h>
#include <tonnx/tonnx.h>

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>

#include "base/budget.h"
#include "base/error.h"
#include "convert/compilation.h"
#include "convert/pipeline.h"
#include "convert/simplify.h"
#include "ir/model.h"

namespace tonnx::v1 {

/// The inner types, some of which have the names of public ones.
namespace core = ::tonnx;

/// Views point to inner objects.
inline const core::Graph& open(const detail::Graph* graph) { return *reinterpret_cast<const core::Graph*>(graph); }
inline const core::Node& open(const detail::Node* node) { return *reinterpret_cast<const core::Node*>(node); }
inline const core::Value& open(const detail::Value* value) { return *reinterpret_cast<const core::Value*>(value); }
inline const core::Tensor& open(const detail::Tensor* tensor) { return *reinterpret_cast<const core::Tensor*>(tensor); }
inline const core::AttrValue& open(const detail::Attribute* value) {
  return *reinterpret_cast<const core::AttrValue*>(value);
}
inline GraphView view_of(const core::Graph& graph) { return GraphView(reinterpret_cast<const detail::Graph*>(&graph)); }
inline NodeView view_of(const core::Node* node) { return NodeView(reinterpret_cast<const detail::Node*>(node)); }
inline ValueView view_of(const core::Value* value) { return ValueView(reinterpret_cast<const detail::Value*>(value)); }
inline TensorView view_of(const core::Tensor& tensor) {
  return TensorView(reinterpret_cast<const detail::Tensor*>(&tensor));
}
inline AttributeView view_of(const core::Node* node, const core::AttrValue& value, std::string_view name) {
  return {reinterpret_cast<const detail::Node*>(node), reinterpret_cast<const detail::Attribute*>(&value), name};
}

inline core::DType core_of(DType dtype) { return static_cast<core::DType>(dtype); }
inline DType public_of(core::DType dtype) { return static_cast<DType>(dtype); }
core::Type core_of(const Type& type);
Type public_of(const core::Type& type);
/// `names`: what is not said is null.
std::map<std::string, std::vector<int64_t>> map_of(const InputShapes& shapes);
core::Limits core_of(const Limits& limits);
core::ConvertOptions core_of(const WriteOptions& options);
core::ConvertOptions core_of(const ConvertOptions& options);
core::Format core_of(Format format);
Format public_of(core::Format format);
/// `model.pt2`: a name that says the format.
std::string name_for(Format format);

/// The caller does not want the rest.
struct Cancellation {};

/// What a function of the caller's threw while inner code ran: it goes on to the caller as it is.
struct CallersException {
  std::exception_ptr thrown;
};

/// Runs a function of the caller's.
template <class Body>
auto callers(Body&& body) {
  try {
    return body();
  } catch (...) {
    throw CallersException{std::current_exception()};
  }
}

/// The kind of an error inside; what there is only outside is the caller's own mistake.
inline core::ErrorKind core_of(Error::Kind kind) {
  return kind > Error::Kind::Internal ? core::ErrorKind::InvalidModel : static_cast<core::ErrorKind>(kind);
}

[[noreturn]] void throw_public(const core::Error& error);
[[noreturn]] void throw_internal(const char* what);
[[noreturn]] void throw_cancelled();
[[noreturn]] void throw_callers(const CallersException& exception);

/// The border: inner errors become those of the interface.
template <class Body>
auto translated(Body&& body) {
  try {
    return body();
  } catch (const core::Error& e) {
    throw_public(e);
  } catch (const Cancellation&) {
    throw_cancelled();
  } catch (const CallersException& e) {
    throw_callers(e);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    throw_internal(e.what());
  }
}

struct Tensor::Content {
  core::TensorPtr tensor;
};
struct AttributeValue::Content {
  core::AttrValue value;
};
struct Report::Content {
  core::SimplifyReport report;
};

struct Model::Content {
  core::Program program;  // of a model of ONNX the first half
  Format format = Format::Onnx;
  core::Limits limits;
  uint64_t input_bytes = 0;  // in proportion to which the limits are
  core::Dialect dialect = core::Dialect::Stored;
  bool declares_values = true;                  // whether a file says the types of values between the nodes
  mutable std::atomic<bool> is_checked = true;  // since it was last edited; several threads may look at one model

  core::Model& model() { return program.model; }
  const core::Model& model() const { return program.model; }
  const core::Graph& graph() const { return *program.model.graph; }
  bool is_onnx() const { return format == Format::Onnx; }
  __attribute__((visibility("hidden"))) void require_onnx(const char* what) const;
};

/// Opens what the interface keeps closed.
struct Access {
  static Model model(std::unique_ptr<Model::Content> content) { return Model(content.release()); }
  static const Model::Content& content(const Model& model) { return *model.content_; }
  static Model::Content& content(Model& model) { return *model.content_; }
  static const core::AttrValue& attribute(const AttributeValue& value) { return value.content_->value; }
  static Tensor tensor(core::TensorPtr tensor) { return Tensor(new Tensor::Content{std::move(tensor)}); }
  static const core::TensorPtr& tensor(const Tensor& tensor) { return tensor.content_->tensor; }
};

inline const core::AttrValue& attribute_of(const AttributeValue& value) { return Access::attribute(value); }

/// The bytes of a tensor, made where they are computed.
std::span<const std::byte> bytes_of(const core::Tensor& tensor);

/// Throws InvalidModel where the model is none that can be written.
void check_model(const core::Model& model);
/// The same where it was edited.
void check_edited(const Model::Content& content);

/// A copy that a conversion may change.
core::Program copy_of(const Model::Content& content);
/// The conversion of a copy of a model.
struct Conversion {
  Conversion(const Model::Content& content, core::ConvertOptions options)
      : program(copy_of(content)), compilation(program, content.dialect, std::move(options)) {}

  core::Program program;
  core::Compilation compilation;
};
/// What keeps a model of ONNX from becoming code.
std::vector<UnsupportedOp> unsupported_in(const Model::Content& content, const core::LoweringOptions& options);

/// What the operations of one model may use.
class ModelBudget {
 public:
  explicit ModelBudget(const Model::Content& content) : scope_(content.limits, content.input_bytes) {}

 private:
  core::BudgetScope scope_;
};

std::shared_ptr<const core::CustomOps> custom_of(const Registry& registry);

}  // namespace tonnx::v1
