// error.h - the one exception of the library: who must act, what is wrong, and where it happened.
#pragma once
#include <tonnx/export.h>

#include <exception>
#include <string>
#include <vector>

TONNX_BEGIN

/// Everything that the library throws, but for std::bad_alloc, and for what a caller's own functions throw, which
/// passes through as it is.
class TONNX_API Error : public std::exception {
 public:
  /// Who must act.
  enum class Kind {
    BadFile,       ///< the one who has the file: it cannot be read or written, or it is damaged
    InvalidModel,  ///< the one who made the model, or gave the options
    Unsupported,   ///< nobody yet: the library cannot do that
    Internal,      ///< the authors of the library: please report it
    Cancelled,     ///< nobody: the caller's on_progress said no
    Differs,       ///< the outputs of two models are not the same
  };

  Error(Kind kind, std::string text, std::vector<std::string> whiles = {});
  ~Error() override;
  Error(const Error& other);
  Error& operator=(const Error& other);

  Kind kind() const { return kind_; }
  /// What is wrong, without the lines that say where.
  const std::string& text() const { return text_; }
  /// What was being done, the innermost first: `lowering node '/attn/Softmax' (Softmax-13)`, `converting model.onnx`.
  const std::vector<std::string>& whiles() const { return whiles_; }
  /// The text, and a line "while ..." for each of them.
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  Kind kind_;
  std::string text_;
  std::vector<std::string> whiles_;
  std::string what_;
};

TONNX_END
