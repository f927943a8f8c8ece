// registry.h - operators of one's own, in both directions.
#pragma once
#include <tonnx/callback.h>
#include <tonnx/edit.h>

TONNX_BEGIN

/// An argument of an operator of PyTorch: `aten("sum", {x, std::vector<int64_t>{1}, Argument("keepdim", true)})`.
class TONNX_API Argument {
 public:
  Argument(ValueView value);                       // NOLINT: all of these are arguments; a view of nothing is None
  Argument(bool value);                            // NOLINT
  Argument(int value);                             // NOLINT
  Argument(int64_t value);                         // NOLINT
  Argument(double value);                          // NOLINT
  Argument(const char* value);                     // NOLINT
  Argument(DType value);                           // NOLINT
  Argument(std::vector<int64_t> value);            // NOLINT
  Argument(std::vector<double> value);             // NOLINT
  Argument(const std::vector<ValueView>& values);  // NOLINT
  /// By the name of the parameter; those without a name are given in order.
  template <class T>
  Argument(const char* name, T value) : Argument(value) {
    set_name(name);
  }
  Argument(const Argument& other);
  Argument(Argument&& other) noexcept;
  Argument& operator=(Argument other) noexcept;
  ~Argument();

 private:
  friend class AtenBuilder;
  void set_name(const char* name);
  struct Content;
  Content* content_;
};

/// A node of ONNX, whose inputs are values of the program of PyTorch that is being made. Inputs and attributes are
/// asked for by the names of the signature; attributes have its defaults. All throw Error where the node has no such
/// thing.
class TONNX_API OnnxNode {
 public:
  NodeView node() const;
  ValueView input(std::string_view name) const;
  ValueView find_input(std::string_view name) const;  ///< nothing where it is left out
  std::vector<ValueView> inputs(std::string_view variadic) const;
  Type type(std::string_view input) const;
  Type output_type(size_t i = 0) const;
  bool has(std::string_view name) const;
  int64_t i(std::string_view attribute) const;
  double f(std::string_view attribute) const;
  std::string s(std::string_view attribute) const;
  std::vector<int64_t> ints(std::string_view attribute) const;
  std::vector<double> floats(std::string_view attribute) const;
  /// The elements of an input that is a constant.
  std::vector<int64_t> const_ints(std::string_view input) const;

 private:
  friend class Registry;
  explicit OnnxNode(const void* node) : node_(node) {}
  const void* node_;
};

/// Adds calls of PyTorch's operators to the program.
class TONNX_API AtenBuilder {
 public:
  /// `aten::name`, or `library::name`; with its overload where it has one: `aten("add.Tensor", {x, y})`. Its result,
  /// or the first of them.
  ValueView operator()(std::string_view name, const std::vector<Argument>& arguments);
  std::vector<ValueView> all(std::string_view name, const std::vector<Argument>& arguments);
  ValueView constant(const Tensor& tensor, std::string_view name = "constant");

 private:
  friend class Registry;
  explicit AtenBuilder(void* builder) : builder_(builder) {}
  void* builder_;
};

/// A node of a program of PyTorch, whose arguments are values of the ONNX that is being made.
class TONNX_API AtenNode {
 public:
  NodeView node() const;
  ValueView input(std::string_view name) const;
  ValueView find_input(std::string_view name) const;
  std::vector<ValueView> inputs(std::string_view name) const;
  Type type(std::string_view argument) const;
  Type output_type(size_t i = 0) const;
  bool has(std::string_view name) const;  ///< whether it is given, and not None
  int64_t i(std::string_view name) const;
  double f(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::string s(std::string_view name) const;
  std::vector<int64_t> ints(std::string_view name) const;

 private:
  friend class Registry;
  explicit AtenNode(const void* node) : node_(node) {}
  const void* node_;
};

/// Adds nodes of the newest opset of ONNX; they are brought to the one that is asked for afterwards.
class TONNX_API OnnxBuilder {
 public:
  using Attributes = std::vector<std::pair<std::string, AttributeValue>>;
  /// `onnx("Add", {a, b})`; of another domain: `onnx("com.microsoft.Gelu", {x})`. A view of nothing is an input that
  /// is left out.
  ValueView operator()(std::string_view op, const std::vector<ValueView>& inputs, const Attributes& attributes = {});
  std::vector<ValueView> all(size_t count, std::string_view op, const std::vector<ValueView>& inputs,
                             const Attributes& attributes = {});
  ValueView constant(const Tensor& tensor, std::string_view name = "constant");
  /// A tensor without dimensions.
  ValueView number(DType dtype, double value);
  ValueView ints(std::vector<int64_t> values);
  ValueView cast(ValueView x, DType to);
  int64_t target_opset() const;

 private:
  friend class Registry;
  explicit OnnxBuilder(void* builder) : builder_(builder) {}
  void* builder_;
};

/// Operators that the tables do not have, or that one knows better. Given to write(), to_bytes() and convert() by
/// WriteOptions::registry; it may be used by several threads as long as none adds to it.
class TONNX_API Registry {
 public:
  using ToAten = Callback<ValueView(const OnnxNode&, AtenBuilder&)>;
  using ToAtenMany = Callback<std::vector<ValueView>(const OnnxNode&, AtenBuilder&)>;
  using ToOnnx = Callback<ValueView(const AtenNode&, OnnxBuilder&)>;

  Registry();
  Registry(const Registry& other);
  Registry(Registry&& other) noexcept;
  Registry& operator=(Registry other) noexcept;
  ~Registry();

  /// `my.domain::Swish(T x, *, float beta=1.0) -> T y`: inputs, `T?` for one that may be left out and `T...` for any
  /// number of them, then attributes. `like` names the input whose type and sizes the output has; without it they are
  /// those that the file declares, if it does.
  void add_onnx(const std::string& signature, ToAten lower, const std::string& like = {});
  /// The same for an operator with several outputs.
  void add_onnx_many(const std::string& signature, ToAtenMany lower, const std::string& like = {});
  /// `mylib::swish(Tensor x, float beta) -> Tensor`: a schema of PyTorch.
  void add_aten(const std::string& signature, ToOnnx raise);

 private:
  friend struct RegistryAccess;
  struct Content;
  Content* content_;
};

TONNX_END
