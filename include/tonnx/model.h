// model.h - a model: read, looked at, simplified, edited, written, converted.
#pragma once
#include <tonnx/edit.h>
#include <tonnx/error.h>
#include <tonnx/graph.h>
#include <tonnx/options.h>

TONNX_BEGIN

/// `0.1.0`
TONNX_API const char* version();
/// Of ONNX, that the library knows.
TONNX_API int64_t newest_opset();

/// Bytes that the caller has somewhere. They must stay as they are while a model that was read from them, or a copy
/// of it, is there.
class TONNX_API ByteSource {
 public:
  virtual ~ByteSource();
  virtual uint64_t size() const = 0;
  /// All bytes, where they are in memory; otherwise null, and read() is called.
  virtual const std::byte* data() const { return nullptr; }
  /// Fills `into` with the bytes from `offset` on. Called with pieces that lie within the size.
  virtual void read(uint64_t offset, std::span<std::byte> into) const = 0;
};

/// An operator that keeps a model from becoming what it should.
struct UnsupportedOp {
  std::string domain;  ///< empty for ai.onnx
  std::string op;      ///< with the overload in a program of PyTorch: `add.Tensor`; empty: it is no operator, see `why`
  int64_t version = 0;
  std::vector<std::string> places;  ///< the nodes that have it, or the modules that call it
  std::string why;                  ///< empty where no version of the library has had the operator
};

/// A module of the generated code, with those inside it.
struct ModuleInfo {
  std::string name;  ///< that the module around it has it under: `0`; empty for the model itself
  std::string path;  ///< `encoder.layer.0`; empty for the model itself
  std::string type;  ///< `nn.Linear`, `nn.Sequential`; the class that the file says it was; empty where nothing says it
  std::string arguments;           ///< `768, 3072`, of PyTorch's own modules
  std::vector<std::string> keys;   ///< of the state dict: its own tensors, without those of its children
  std::vector<std::string> nodes;  ///< names of the nodes that it computes, or its operators where they have none
  std::vector<ModuleInfo> children;
};

/// A weight as generated code has it.
struct StateEntry {
  std::string name;
  Tensor tensor;
  bool trainable = false;
};
/// The source of a module, and its weights by name.
struct PythonCode {
  std::string source;
  std::vector<StateEntry> state;
};

struct PrintOptions {
  int64_t max_elements = 16;  ///< a constant with more is printed with its size alone
  bool notes = true;          ///< with the documentation and the metadata of nodes
};

/// What simplify() has done.
class TONNX_API Report {
 public:
  struct Pass {
    std::string name;
    int64_t changes = 0;
    double seconds = 0;
  };
  using Counts = std::vector<std::pair<std::string, int64_t>>;

  Report(Report&& other) noexcept;
  Report& operator=(Report&& other) noexcept;
  ~Report();

  int64_t nodes_before() const;  ///< with those of graphs inside nodes
  int64_t nodes_after() const;
  Counts ops_before() const;  ///< by operator
  Counts ops_after() const;
  std::vector<Pass> passes() const;  ///< that ran, in order
  int rounds() const;
  uint64_t bytes_before() const;
  bool is_same() const;                         ///< whether `compare` found no difference
  std::string difference() const;               ///< what it said where it did
  std::string not_judged() const;               ///< why nothing was compared, though that was asked for
  std::vector<std::string> taken_back() const;  ///< passes that changed the outputs, and were left out
  /// For programs, and as a table for people; `bytes_after` is the size of the file that was written.
  std::string json(uint64_t bytes_after) const;
  std::string table(uint64_t bytes_after) const;

 private:
  friend class Model;
  struct Content;
  explicit Report(Content* content) : content_(content) {}
  Content* content_;
};

/// A model of ONNX, or a program of PyTorch (from .pt2 and .pt). Its weights stay in the mapped file.
///
/// Several threads may use different models at once, and one model as long as none of them changes it: all const
/// members can be called at the same time. Every function throws Error, and leaves the model valid; one that changes
/// it may leave it half changed then.
class TONNX_API Model {
 public:
  /// By the ending of the name: .onnx, .pt2, .pt.
  static Model read(const std::string& path, const ReadOptions& options = {});
  /// Whatever the ending says.
  static Model read(const std::string& path, Format format, const ReadOptions& options = {});
  /// The bytes must stay where they are while the model or a copy of it is there.
  static Model read(std::span<const std::byte> bytes, Format format, const ReadOptions& options = {});
  static Model read(std::vector<std::byte>&& bytes, Format format, const ReadOptions& options = {});
  /// The bytes of a tensor of uint8, which the model keeps.
  static Model read(const Tensor& bytes, Format format, const ReadOptions& options = {});
  static Model read(const ByteSource& source, Format format, const ReadOptions& options = {});
  /// An empty model of ONNX.
  static Model create(int64_t opset = 20);
  /// What text() printed of a model whose constants are all small: of ONNX, or of aten as code has it.
  static Model parse(std::string_view text);

  Model(Model&& other) noexcept;
  Model& operator=(Model&& other) noexcept;
  ~Model();
  /// The same a second time; a change of one leaves the other. They share the weights.
  Model clone() const;

  /// Onnx, TorchExport or TorchScript: what it was read from, and so which operators it has.
  Format format() const;
  GraphView graph() const;
  std::string text(const PrintOptions& options = {}) const;
  int64_t ir_version() const;
  std::string producer() const;  ///< name and version
  std::string_view doc() const;
  const Metadata& metadata() const;
  /// Domains, "" for ai.onnx, and versions.
  const std::vector<std::pair<std::string, int64_t>>& opsets() const;
  int64_t opset(std::string_view domain = "") const;  ///< 0 where it is not imported
  /// The model as modules inside modules, as code of it has them, with their weights and nodes; the model is converted
  /// for it.
  ModuleInfo modules(const WriteOptions& options = {}) const;
  size_t node_count() const;  ///< with those of graphs inside nodes

  /// What the outputs are called; the values of a program have names of their own.
  std::vector<std::string> output_names() const;
  void set_output_names(std::vector<std::string> names);
  /// The values of a .pth or .safetensors file take the place of the model's own, as ReadOptions::weights says.
  void replace_weights(const std::string& path, const std::optional<std::string>& part = {});

  // Of models of ONNX. Programs of PyTorch are made ONNX first, by to_onnx().
  Report simplify(const SimplifyOptions& options = {});
  /// Finds out the types of all values, which a file that is written says then.
  void infer_shapes(const InputShapes& input_shapes = {});
  void set_input_shapes(const InputShapes& shapes);
  void set_opset(int64_t opset);
  GraphEditor edit();
  void set_metadata(std::string key, std::string value);
  /// Throws Error where values are used that nobody gives, names are given twice, nodes depend on themselves, or
  /// operators and their arguments are not those of the opset.
  void check() const;

  /// What keeps the model from becoming that, one entry for each operator, version and reason: operators that are not
  /// known on the way, and nodes that the opset that is asked for cannot say. Empty where all is well. The model stays
  /// as it is; for ONNX a program is converted for it.
  std::vector<UnsupportedOp> unsupported(Format target, const WriteOptions& options = {}) const;
  struct Counts {
    size_t nodes = 0, operators = 0;
  };
  /// Throws one Error with all of them; otherwise, how many nodes of how many operators can be converted.
  Counts require_supported(Format target, const WriteOptions& options = {}) const;

  /// By the ending of the name. A target appears whole or not at all. The model stays as it is.
  void write(const std::string& path, const WriteOptions& options = {}) const;
  /// Of all formats but Python, which is more than one file.
  std::vector<std::byte> to_bytes(Format format, const WriteOptions& options = {}) const;
  /// The source of an nn.Module.
  std::string to_python(const WriteOptions& options = {}) const;
  /// The same with its weights.
  PythonCode to_python_code(const WriteOptions& options = {}) const;
  /// A program of PyTorch as a model of ONNX; of a model of ONNX a copy.
  Model to_onnx(const WriteOptions& options = {}) const;

  struct Content;  // what is inside

 private:
  friend struct Access;
  explicit Model(Content* content) : content_(content) {}
  Content* content_;
};

/// Converts a file, by the endings of the names, as `tonnx convert` does; weights alone too. A target appears whole
/// or not at all.
TONNX_API void convert(const std::string& source, const std::string& target, const ConvertOptions& options = {});

/// The weights of a .pth or .safetensors file.
TONNX_API std::vector<StateEntry> read_weights(const std::string& path, const std::optional<std::string>& part = {});

TONNX_END
