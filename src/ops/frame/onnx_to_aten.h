// onnx_to_aten.h - what a lowering sees (an ONNX node whose inputs are aten values) and what it builds with.
#pragma once
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "ops/frame/int_arg.h"
#include "ops/frame/node_view.h"

namespace tonnx {

class Lowering;  // the conversion that runs (conversion.h)

/// An argument of an aten operator.
class Arg {
 public:
  Arg(std::nullptr_t);                   // NOLINT: None
  Arg(Value* value);                     // NOLINT: None where null
  Arg(bool v);                           // NOLINT
  Arg(int v);                            // NOLINT
  Arg(int64_t v);                        // NOLINT
  Arg(double v);                         // NOLINT
  Arg(const char* v);                    // NOLINT
  Arg(std::string v);                    // NOLINT
  Arg(DType v);                          // NOLINT
  Arg(std::vector<int64_t> v);           // NOLINT
  Arg(std::vector<double> v);            // NOLINT
  Arg(const IntArg& v);                  // NOLINT
  Arg(const IntArgs& v);                 // NOLINT
  Arg(std::initializer_list<IntArg> v);  // NOLINT
  Arg(const std::vector<Value*>& v);     // NOLINT: Tensor[], null is None
  Arg(const Arg& other);
  Arg(Arg&& other) noexcept;
  Arg& operator=(const Arg& other);
  Arg& operator=(Arg&& other) noexcept;
  ~Arg();

 private:
  friend class AtenBuilder;
  AttrValue constant_;
  Value* value_ = nullptr;
  bool is_value_ = false;
  IntArgs list_;
  bool is_list_ = false;
  std::vector<Value*> values_;
  bool is_values_ = false;
};

/// A keyword argument: `aten("cumsum", x, dim, Kw{"dtype", DType::Float32})`.
struct Kw {
  const char* name;
  Arg value;
};

class AtenBuilder {
 public:
  explicit AtenBuilder(Lowering& lowering) : lowering_(&lowering) {}

  /// Appends `aten::name` (or `ns::name` where a namespace is given) and returns its first output.
  template <class... Args>
  Value* operator()(std::string_view name, Args&&... args) {
    return call_first(name, {NamedArg(std::forward<Args>(args))...});
  }
  /// The same, with all outputs.
  template <class... Args>
  Values all(std::string_view name, Args&&... args) {
    return call_all(name, {NamedArg(std::forward<Args>(args))...});
  }
  /// For an operator that returns a list of tensors, such as split: its elements, `count` of them.
  template <class... Args>
  Values list(size_t count, std::string_view name, Args&&... args) {
    return call_list(count, name, {NamedArg(std::forward<Args>(args))...});
  }

  /// A node that has graphs inside it, or outputs of its own kind; neither has been added yet.
  template <class... Args>
  Node* node(std::string_view name, Args&&... args) {
    return call(name, {NamedArg(std::forward<Args>(args))...});
  }
  /// A graph of an ONNX node, lowered as an attribute of the aten node.
  struct Body {
    const Value* counter = nullptr;    // an integer known by its symbol: the first input
    std::vector<const Value*> inputs;  // the other inputs
    std::vector<const Value*> outputs;
  };
  void add_body(Node& owner, const char* attribute, const Graph& onnx, const Body& body);
  /// Gives the aten node an output for each one of the ONNX node, or for some of them.
  Values add_outputs(Node& node, const Node& onnx, const std::function<bool(size_t)>& wanted = {});

  /// A constant of the aten graph that is not trained. `hint` is what its name should be.
  Value* constant(TensorPtr tensor, std::string_view hint = "constant");
  /// Integers as a tensor of int64 with one dimension.
  Value* ints(const IntArgs& values);

  /// A constant of the graph with other sizes for as many elements; still one weight where several ask for it.
  Value* reshaped(Value* constant, std::vector<int64_t> dims);

  // Arithmetic on integers, done now where both are numbers.
  IntArg add(const IntArg& a, const IntArg& b);
  IntArg sub(const IntArg& a, const IntArg& b);
  IntArg mul(const IntArg& a, const IntArg& b);
  IntArg floor_div(const IntArg& a, const IntArg& b);
  IntArg mod(const IntArg& a, const IntArg& b);  // of the sign of b, as in Python
  IntArg max(const IntArg& a, const IntArg& b);
  IntArg min(const IntArg& a, const IntArg& b);
  /// x.size(dim); a number where the type of x says so.
  IntArg size(Value* x, int64_t dim);

  Lowering& lowering() { return *lowering_; }

 private:
  struct NamedArg {
    NamedArg(Kw kw) : name(kw.name), value(std::move(kw.value)) {}  // NOLINT
    template <class T>
    NamedArg(T&& v) : value(std::forward<T>(v)) {}  // NOLINT
    const char* name = nullptr;
    Arg value;
  };
  using NamedArgs = std::initializer_list<NamedArg>;
  Node* call(std::string_view name, NamedArgs args);
  Value* call_first(std::string_view name, NamedArgs args);
  Values call_all(std::string_view name, NamedArgs args);
  Values call_list(size_t count, std::string_view name, NamedArgs args);
  void bind(Node& node, const ParsedSignature& signature, NamedArgs args);
  static AttrValue attr_of(Node& node, const Arg& arg);
  IntArg number_op(const char* op, const IntArg& a, const IntArg& b);

  Lowering* lowering_;
};

/// An ONNX node whose inputs have been lowered.
class OnnxNode : public NodeView {
 public:
  OnnxNode(const Node& node, const OnnxOpEntry& entry, Lowering& lowering)
      : NodeView(node, entry), lowering_(&lowering) {}

  /// The aten value of an input. Throws where it is absent.
  Value* input(std::string_view name) const;
  /// Null where it is absent.
  Value* find_input(std::string_view name) const;
  std::vector<Value*> inputs(std::string_view variadic) const;
  /// The type that inference found for an output.
  const Type& output_type(size_t i = 0) const { return node_->output(i)->type; }

  /// The elements of an integer input (a shape, axes, pads) as integers: numbers where known, else expressions over
  /// sizes. Where they are only known at run time and `count` says how many there are, they are read from the tensor.
  IntArgs int_args(std::string_view input, std::optional<size_t> count = std::nullopt) const;
  /// The same as one argument: where even the count is not known, the list that `.tolist()` gives.
  Arg int_list(std::string_view input) const;
  /// One integer, from an input of one element.
  IntArg int_arg(std::string_view input) const;
  /// The size of an input (ONNX's own type, so that it is a number where known).
  IntArg size(std::string_view input, int64_t dim) const;
  /// An expression over sizes as an argument.
  IntArg int_arg(const Dim& dim) const;
  /// A number, where the input is a constant of one element: what a person writes as a literal.
  std::optional<double> find_scalar(std::string_view input) const;

  /// Throws Internal where an input or an attribute that is given was never asked for: nothing is dropped silently.
  void require_all_used() const;

 private:
  Lowering* lowering_;
};

/// The tensor whose sizes the value is, where their number is not known; null elsewhere.
const Value* find_shape_of_any_rank(const Value* value);
/// The aten tensor of any ONNX value that has been lowered.
Value* tensor_of(AtenBuilder& aten, const Value* onnx);

}  // namespace tonnx
