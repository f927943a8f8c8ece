/* c.h - the interface of tonnx in C, for programs in C and for bindings of other languages; C99 and C++. */
#ifndef TONNX_C_H
#define TONNX_C_H

#include <stddef.h>
#include <stdint.h>
#include <tonnx/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * All objects are behind pointers, which are made and freed by the library: `tonnx_..._free(NULL)` does nothing. Texts
 * are UTF-8 and end with a zero. Functions that can fail return a status, and say more in `error`, which may be NULL;
 * what they were to give is NULL then, and the objects that they were given stay as they were. No exception leaves a
 * function, nothing is printed, and there is no global state: different objects may be used in different threads at
 * the same time, and one object in several threads as long as none of them changes it. Functions whose object is
 * `const` change nothing.
 */

/* In C++ too an enumeration may hold numbers that it has no names for. */
#ifdef __cplusplus
#define TONNX_NUMBERS : unsigned int
#else
#define TONNX_NUMBERS
#endif

/** What came of a call: who must act. */
typedef enum tonnx_status TONNX_NUMBERS {
  TONNX_OK = 0,             /**< all is well */
  TONNX_BAD_FILE = 1,       /**< the one who has the file: it cannot be read or written, or it is damaged */
  TONNX_INVALID_MODEL = 2,  /**< the one who made the model, or gave the options */
  TONNX_UNSUPPORTED = 3,    /**< nobody yet: the library cannot do that */
  TONNX_INTERNAL_ERROR = 4, /**< the authors of the library: please report it */
  TONNX_CANCELLED = 5,      /**< nobody: the caller's own function asked to stop */
  TONNX_BAD_ARGUMENT = 6, /**< the caller: a pointer is NULL that must not be, or a number is none of those there are */
  TONNX_OUT_OF_MEMORY = 7 /**< nobody: there is not enough memory */
} tonnx_status;

/** Kinds of files. */
typedef enum tonnx_format TONNX_NUMBERS {
  TONNX_FORMAT_ONNX = 0,         /**< .onnx */
  TONNX_FORMAT_TORCH_EXPORT = 1, /**< .pt2, a program of torch.export */
  TONNX_FORMAT_TORCH_SCRIPT = 2, /**< .pt */
  TONNX_FORMAT_PYTHON = 3,       /**< .py, with its weights in .safetensors beside it */
  TONNX_FORMAT_SAFETENSORS = 4,  /**< weights alone, under the names that the .py has */
  TONNX_FORMAT_PTH = 5           /**< the same, as torch.save writes them */
} tonnx_format;

/** What went wrong. */
typedef struct tonnx_error tonnx_error;
/** Bytes or a text that the library made. */
typedef struct tonnx_buffer tonnx_buffer;
/** A model of ONNX, or a program of PyTorch. */
typedef struct tonnx_model tonnx_model;
/** What is asked of reading, writing and converting. */
typedef struct tonnx_options tonnx_options;
/** What is asked of simplifying. */
typedef struct tonnx_simplify_options tonnx_simplify_options;

/** The version of the library that runs: `0.1.0`. That of the headers is in tonnx/version.h. */
TONNX_API const char* tonnx_version(void);
/** `bad_file`, `unsupported` and so on; `unknown` for a number that is no status. */
TONNX_API const char* tonnx_status_name(tonnx_status status);

/** The status that the call returned; TONNX_OK for NULL. */
TONNX_API tonnx_status tonnx_error_status(const tonnx_error* error);
/** All that is known, in several lines: the text, and "while ..." for each thing that was being done. */
TONNX_API const char* tonnx_error_message(const tonnx_error* error);
/** What is wrong, without the lines that say where. */
TONNX_API const char* tonnx_error_text(const tonnx_error* error);
/** How many lines say where. */
TONNX_API size_t tonnx_error_while_count(const tonnx_error* error);
/** What was being done, the innermost first: `converting model.onnx`; NULL beyond the last. */
TONNX_API const char* tonnx_error_while(const tonnx_error* error, size_t index);
TONNX_API void tonnx_error_free(tonnx_error* error); /**< Frees the error. */

/** The bytes, which live as long as the buffer. Behind those of a text is a zero, which is not counted. */
TONNX_API const void* tonnx_buffer_data(const tonnx_buffer* buffer);
TONNX_API size_t tonnx_buffer_size(const tonnx_buffer* buffer); /**< How many bytes there are. */
TONNX_API void tonnx_buffer_free(tonnx_buffer* buffer);         /**< Frees the buffer and its bytes. */

/** Options that ask for nothing; NULL where there is no memory. Where a function takes options, NULL stands for these.
 */
TONNX_API tonnx_options* tonnx_options_new(void);
TONNX_API void tonnx_options_free(tonnx_options* options); /**< Frees the options. */
/**
 * The sizes of an input, by its name, or by its place where it is a .pt; -1 leaves one as it is. Of .onnx and .pt. Like
 * all functions that set an option it keeps a copy, and says nothing of its meaning: what cannot be is an error of the
 * call that uses it.
 */
TONNX_API tonnx_status tonnx_options_set_input_shape(tonnx_options* options, const char* input, const int64_t* sizes,
                                                     size_t count);
/** The element type of an input of a .pt, which does not say it: `int64`. It is float32 otherwise. */
TONNX_API tonnx_status tonnx_options_set_input_type(tonnx_options* options, const char* input, const char* type);
/** A file of weights whose values take the place of the model's own; `part`, or NULL: which dict of a checkpoint. */
TONNX_API tonnx_status tonnx_options_set_weights(tonnx_options* options, const char* path, const char* part);
/** Where external data of an .onnx in memory lies; without it there is none. */
TONNX_API tonnx_status tonnx_options_set_folder(tonnx_options* options, const char* folder);
/** The opset of ONNX that is written; otherwise that of the model. */
TONNX_API tonnx_status tonnx_options_set_opset(tonnx_options* options, int64_t opset);
/** Whether ONNX that is written has its weights in a file of their own; otherwise as they were, or must be. */
TONNX_API tonnx_status tonnx_options_set_external_data(tonnx_options* options, int is_external);
/** Whether nodes of ONNX say which line of a .pt2's model they come from. */
TONNX_API tonnx_status tonnx_options_set_source_lines(tonnx_options* options, int has_source_lines);
/** Whether code is one class, without modules inside modules. */
TONNX_API tonnx_status tonnx_options_set_flat(tonnx_options* options, int is_flat);
/** A size of an input that may vary, from `low` to `high`, which is open where it is negative; `name` is what it is
 * called. */
TONNX_API tonnx_status tonnx_options_add_dynamic(tonnx_options* options, const char* input, int64_t axis,
                                                 const char* name, int64_t low, int64_t high);
/** An operator of a program, `library::name`, that is not known, and that the code may call all the same. */
TONNX_API tonnx_status tonnx_options_allow_op(tonnx_options* options, const char* name);
/** What one call may use, by name, in place of what follows from the size of its input: `memory`, `steps`, `nodes`,
 * `text`. */
TONNX_API tonnx_status tonnx_options_set_limit(tonnx_options* options, const char* name, int64_t value);
/**
 * A function that is told how much of the weights is written, 0 to 1. Where it returns anything but 0, nothing is
 * written, and the call ends with TONNX_CANCELLED. NULL takes it away.
 */
TONNX_API tonnx_status tonnx_options_set_progress(tonnx_options* options, int (*progress)(void* context, double done),
                                                  void* context);

/** Converts a file, by the endings of the names, as the command `tonnx convert` does. A target appears whole or not at
 * all. */
TONNX_API tonnx_status tonnx_convert(const char* source, const char* target, const tonnx_options* options,
                                     tonnx_error** error);

/** Reads a file, by the ending of its name: .onnx, .pt2 or .pt. Weights stay in the mapped file. */
TONNX_API tonnx_status tonnx_model_read(const char* path, const tonnx_options* options, tonnx_model** model,
                                        tonnx_error** error);
/**
 * The same from memory. Without `release` the bytes are copied. With it they are used where they are, must stay as they
 * are, and `release(context)` is called once, by some thread, when nothing uses them any more; also where the call
 * fails.
 */
TONNX_API tonnx_status tonnx_model_read_bytes(const void* data, size_t size, tonnx_format format,
                                              const tonnx_options* options, void (*release)(void* context),
                                              void* context, tonnx_model** model, tonnx_error** error);
/** The same model a second time; a change of one leaves the other. They share the weights. */
TONNX_API tonnx_status tonnx_model_clone(const tonnx_model* model, tonnx_model** copy, tonnx_error** error);
TONNX_API void tonnx_model_free(tonnx_model* model); /**< Frees the model. */

/** What it was read from: .onnx, .pt2 or .pt, and so which operators it has. */
TONNX_API tonnx_format tonnx_model_format(const tonnx_model* model);
/** The opset of ONNX that it follows; 0 for a program of PyTorch. */
TONNX_API int64_t tonnx_model_opset(const tonnx_model* model);
/** How many nodes it has, with those of graphs inside nodes. */
TONNX_API size_t tonnx_model_node_count(const tonnx_model* model);
TONNX_API size_t tonnx_model_input_count(const tonnx_model* model);  /**< How many inputs it has; weights are none. */
TONNX_API size_t tonnx_model_output_count(const tonnx_model* model); /**< How many outputs it has. */
/** The name of an input, as long as the model lives and is not changed; NULL beyond the last. */
TONNX_API const char* tonnx_model_input_name(const tonnx_model* model, size_t index);
/** The name of an output, in the same way. */
TONNX_API const char* tonnx_model_output_name(const tonnx_model* model, size_t index);
/** Type and sizes of an input: `float32[n, 3, 224, 224]`, in the same way. */
TONNX_API const char* tonnx_model_input_type(const tonnx_model* model, size_t index);
/** Type and sizes of an output, as far as they are known; in the same way. */
TONNX_API const char* tonnx_model_output_type(const tonnx_model* model, size_t index);
/** The graph as text, one line a node. */
TONNX_API tonnx_status tonnx_model_text(const tonnx_model* model, tonnx_buffer** text, tonnx_error** error);

/** Options that ask for nothing but what is always done; NULL where there is no memory. */
TONNX_API tonnx_simplify_options* tonnx_simplify_options_new(void);
TONNX_API void tonnx_simplify_options_free(tonnx_simplify_options* options); /**< Frees the options. */
/** The sizes of an input; -1 leaves one as it is. */
TONNX_API tonnx_status tonnx_simplify_options_set_input_shape(tonnx_simplify_options* options, const char* input,
                                                              const int64_t* sizes, size_t count);
/** A pass that is left out. */
TONNX_API tonnx_status tonnx_simplify_options_skip(tonnx_simplify_options* options, const char* pass);
/** A pass that runs; where this was called, no other does. */
TONNX_API tonnx_status tonnx_simplify_options_only(tonnx_simplify_options* options, const char* pass);
/** A pass that runs on request. */
TONNX_API tonnx_status tonnx_simplify_options_enable(tonnx_simplify_options* options, const char* pass);
/** An output that is dropped, with all that only it needs. */
TONNX_API tonnx_status tonnx_simplify_options_drop_output(tonnx_simplify_options* options, const char* output);
/** Bytes by which a constant may exceed what it is made of. */
TONNX_API tonnx_status tonnx_simplify_options_set_fold_limit(tonnx_simplify_options* options, int64_t bytes);
/** The opset that the result follows. */
TONNX_API tonnx_status tonnx_simplify_options_set_opset(tonnx_simplify_options* options, int64_t opset);

/** Makes a model of ONNX simpler. `report`, which may be NULL, says what was done, in JSON; no file is written, so that
    the size of one in it is 0. */
TONNX_API tonnx_status tonnx_model_simplify(tonnx_model* model, const tonnx_simplify_options* options,
                                            tonnx_buffer** report, tonnx_error** error);
/** Finds out the types of all values of a model of ONNX, which a file that is written says then. */
TONNX_API tonnx_status tonnx_model_infer_shapes(tonnx_model* model, tonnx_error** error);
/**
 * What keeps the model from becoming that, before any work: a line for each operator, with its nodes. `text` is empty
 * where all is well.
 */
TONNX_API tonnx_status tonnx_model_unsupported(const tonnx_model* model, tonnx_format target, tonnx_buffer** text,
                                               tonnx_error** error);

/** Writes the model by the ending of the name. A target appears whole or not at all. */
TONNX_API tonnx_status tonnx_model_write(const tonnx_model* model, const char* path, const tonnx_options* options,
                                         tonnx_error** error);
/** The bytes of such a file; of TONNX_FORMAT_PYTHON the source, whose weights TONNX_FORMAT_SAFETENSORS gives. */
TONNX_API tonnx_status tonnx_model_to_bytes(const tonnx_model* model, tonnx_format format, const tonnx_options* options,
                                            tonnx_buffer** bytes, tonnx_error** error);

#ifdef __cplusplus
}
#endif

#endif
