// module.h - a model on its way to an nn.Module in memory, step by step, with modules of the caller's own in the place
// of nodes. For those who run the code where it is written; not part of tonnx.h.
#pragma once
#include <tonnx/model.h>

TONNX_BEGIN

/// A weight of a module, as its bytes lie in memory.
struct ModuleWeight {
  std::string name;
  Tensor tensor;
  bool transposed = false;  ///< the module has it with its two dimensions swapped
  bool trainable = false;
};

/// Weights on their way to memory of their own: threads copy them while the caller does something else.
class TONNX_API WeightCopies {
 public:
  WeightCopies() = default;
  WeightCopies(WeightCopies&& other) noexcept;
  WeightCopies& operator=(WeightCopies&& other) noexcept;
  /// Waits for the threads.
  ~WeightCopies();

  /// Until this returns the bytes are not there.
  void wait();

 private:
  friend class ModuleConversion;
  struct Content;
  Content* content_ = nullptr;
};

/// Code that is run where it is written: its weights are given to it, and so are the modules of the caller's own, as
/// the list EXTERNAL.
struct ModuleCode {
  std::string source;
  std::vector<ModuleWeight> state;
  WeightCopies copies;  ///< nobody may look at the weights before wait() has returned
  /// Further names of weights that modules share, and the one that the weight has in `state`.
  std::vector<std::pair<std::string, std::string>> tied;
};

struct ModuleCodeOptions {
  std::string title = "model";  ///< what the code calls itself
  /// Weights stay where they are, such as in the mapped file. Otherwise each is in memory of its own, which may be
  /// written to.
  bool mapped = false;
  bool flat = false;  ///< one class, without modules inside modules
};

/// An operator that the caller takes over: its nodes become modules of the caller's.
struct ExternalOp {
  std::string domain;  ///< empty for ai.onnx
  std::string op;
  int64_t version = 0;  ///< of its schema, or of the opset that is imported where the domain is not ONNX's own
};

/// Which values the module that stands for such a node takes and gives, by name; an empty name is None.
struct ExternalCall {
  std::vector<std::string> inputs, outputs;
};

/// Such a module, as code in a file makes it anew.
struct ExternalModule {
  std::string import_line;          ///< `from my_package.layers import MyLayer`
  std::string constructor;          ///< `MyLayer(alpha=0.5)`
  std::vector<ModuleWeight> state;  ///< names within the module
};

/// A model that becomes code: prepare(), lower(), and then code() or write(). Steps in another order throw Error.
class TONNX_API ModuleConversion {
 public:
  explicit ModuleConversion(Model model);
  ModuleConversion(ModuleConversion&& other) noexcept;
  ModuleConversion& operator=(ModuleConversion&& other) noexcept;
  ~ModuleConversion();

  /// The model, which may be changed until prepare() is called. Afterwards its functions are inlined, and it is of the
  /// newest opset, but for nodes that are taken over.
  Model& model();
  const Model& model() const;

  /// Whether a node of the model is one of these.
  bool has_external(const std::vector<ExternalOp>& external) const;
  /// What keeps the model from becoming code, where these are taken over.
  std::vector<UnsupportedOp> unsupported(const std::vector<ExternalOp>& external) const;
  /// Copies what most likely are the weights, from now on and while the model is converted, for a code() that is not
  /// mapped.
  void begin_copies();
  /// Operators can be taken over in models of ONNX alone.
  void prepare(const std::vector<ExternalOp>& external = {});
  /// The nodes that are taken over, in the order in which their calls and their modules are given.
  std::vector<NodeView> external_nodes() const;
  /// `calls`: one for each such node; nothing: as the nodes have them. `allow_ops`: library::name of operators of a
  /// program that are not known, and may be called.
  void lower(const std::vector<ExternalCall>& calls = {}, const std::vector<std::string>& allow_ops = {});
  /// `external`: the weights of each module of the caller's, which the code is told of, and which are not given back.
  /// The conversion is of no use afterwards.
  ModuleCode code(const ModuleCodeOptions& options = {}, const std::vector<std::vector<ModuleWeight>>& external = {});
  /// The same as a file, NAME.py with NAME.safetensors beside it, or the weights alone; by the ending of the name.
  void write(const std::string& path, const std::vector<ExternalModule>& external = {}, bool flat = false);

 private:
  struct Content;
  Content* content_;
};

/// Writes code that ModuleConversion::code() gave as a file, with the weights that its module has now. `external`: how
/// the file makes the modules of the caller's own; their weights are in `state`.
TONNX_API void write_module(const std::string& path, std::string source, const std::vector<ExternalModule>& external,
                            const std::vector<ModuleWeight>& state);

TONNX_END
