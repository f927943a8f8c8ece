// tools.h - what a command line or a binding of another language needs besides: lists of what there is, texts, and
// files.
#pragma once
#include <tonnx/model.h>

TONNX_BEGIN

/// While it is there, all calls of this thread draw from one set of limits, as one conversion.
class TONNX_API LimitScope {
 public:
  explicit LimitScope(const Limits& limits);
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;
  ~LimitScope();

 private:
  struct Content;
  Content* content_;
};
/// The names of the limits.
TONNX_API std::vector<std::string> limit_names();

// Files.
/// By the ending of the name.
TONNX_API std::optional<Format> find_format(std::string_view path);
/// Throws where the file is of another kind than that, and says what it is.
TONNX_API void require_content(const std::string& path, Format format);
/// Throws where there is no way from the one file to the other, or where an option means nothing on it. The format of
/// the source.
TONNX_API Format require_route(const std::string& source, const std::string& target,
                               const ConvertOptions& options = {});
/// The same for options by name: `opset`, `external_data`, `input_shapes`, `input_types`, `dynamic`, `allow_ops`,
/// `mmap`, `source_lines`, `flat`, `weights`, `part`. A target without a name is a module in memory.
TONNX_API void require_options(const std::string& source, const std::string& target,
                               const std::vector<std::string>& names);
/// What to do about a source that is not read, such as a live model that was pickled; empty where there is no advice.
TONNX_API std::string advice_on(const std::string& source, const std::string& target);
/// Throws where one is no name of an operator that may be allowed.
TONNX_API void require_operator_names(const std::vector<std::string>& names);
/// Names, types and shapes of the weights in a .pth or .safetensors file, one line each, and what else it holds.
TONNX_API std::string print_weights(const std::string& path);
/// A .pt2 of a stranger's, written anew from what the library read of it: PyTorch can load the copy, and not the file
/// itself, which it would unpickle and evaluate.
TONNX_API void write_vetted_copy(const std::string& source, const std::string& target,
                                 const std::vector<std::string>& allow_ops = {});
TONNX_API std::string read_text(const std::string& path);
/// The file appears whole or not at all.
TONNX_API void write_text(const std::string& path, std::string_view text);
/// Removes files that are not finished, for a handler of signals: it makes only calls that such a handler may make.
TONNX_API void remove_temporaries() noexcept;

// What there is.
struct PassInfo {
  std::string name;
  std::string sentence;
  bool is_default = false;  ///< otherwise it runs where SimplifyOptions::enable names it
};
/// The passes of simplify(), in the order in which they run.
TONNX_API std::vector<PassInfo> simplify_passes();

struct PassRow {
  std::string name;
  std::string sentence;
  std::string dialect;      ///< `onnx`, `code` or `python`: what it works on, as docs/dialects.md has it
  std::string phase;        ///< `simplify`, `code` or `python`: where it runs by itself
  bool is_default = false;  ///< otherwise it runs only where it is asked for
};
/// All passes, by phase, in the order in which they run.
TONNX_API std::vector<PassRow> all_passes();
/// Runs one of them once, and says whether it changed anything. The types of values are found out first. A model that
/// the pass does not work on is made code, as it is before any pass; nothing makes ONNX of code here.
TONNX_API bool run_pass(Model& model, const std::string& name);

struct OnnxOperatorInfo {
  std::string domain;  ///< empty for ai.onnx
  std::string name;
  std::string family;
  std::vector<int> versions;
  bool is_supported = false;  ///< on the way to PyTorch
  std::string note;
};
struct AtenOperatorInfo {
  std::string name;           ///< `aten::add.Tensor`
  std::string python;         ///< how code spells it; empty: by an expression
  bool is_supported = false;  ///< on the way to ONNX
  bool is_module = false;     ///< an nn.Module, where its weights are constants
  std::string note;
};
TONNX_API std::vector<OnnxOperatorInfo> onnx_operators();
TONNX_API std::vector<AtenOperatorInfo> aten_operators();

/// The opsets of ONNX that define the operator anew; empty where ONNX has none of that name.
TONNX_API std::vector<int> standard_versions(std::string_view op);
/// The one of these that a model of an opset follows; 0 where there is none.
TONNX_API int schema_version(std::string_view op, int64_t opset);
/// Of ONNX that is made of a program, where nobody says which.
TONNX_API int64_t default_opset();

// Tensors.
/// The same elements, each in a byte or more of its own, as PyTorch has them: types smaller than a byte widened.
TONNX_API Tensor widened(const TensorView& tensor);
/// The value of an initializer, also where it is sparse: all of its elements then.
TONNX_API Tensor dense_value(ValueView initializer);

// Texts.
/// `name:1,?,224`: what parses as shapes of inputs.
TONNX_API std::vector<std::string> texts_of(const InputShapes& shapes);
/// `x:0=batch:1..64,2=height`, or `auto`
TONNX_API std::vector<DynamicDim> parse_dynamic(const std::string& text);
/// `1MB`, `4096`
TONNX_API int64_t parse_bytes(const std::string& text);
/// `memory=1G`
TONNX_API std::pair<std::string, int64_t> parse_limit(const std::string& text);
/// A name out of a file, fit to be shown: what would act on a terminal escaped, and no longer than a line or two.
TONNX_API std::string shown(std::string_view text);
/// The same of any length.
TONNX_API std::string visible_text(std::string_view text, bool keep_lines = false);
/// `; did you mean 'convert'?`, or what there is.
TONNX_API std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);
/// The names as a list for a person, the most similar first: `input, mask and 12 more`.
TONNX_API std::string nearest_list(std::string_view name, const std::vector<std::string>& known);

TONNX_END
