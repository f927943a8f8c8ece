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

/** A tensor: an element type, sizes and bytes. */
typedef struct tonnx_tensor tonnx_tensor;
/** A tensor with a copy of the bytes: little-endian, dense, row by row. `type` is `float32`, `int64` and so on. */
TONNX_API tonnx_status tonnx_tensor_new(const char* type, const int64_t* sizes, size_t rank, const void* bytes,
                                        size_t size, tonnx_tensor** tensor, tonnx_error** error);
TONNX_API void tonnx_tensor_free(tonnx_tensor* tensor);              /**< Frees the tensor. */
TONNX_API const char* tonnx_tensor_type(const tonnx_tensor* tensor); /**< `float32`; empty for NULL. */
TONNX_API size_t tonnx_tensor_rank(const tonnx_tensor* tensor);      /**< How many sizes it has. */
/** The sizes, which live as long as the tensor. */
TONNX_API const int64_t* tonnx_tensor_sizes(const tonnx_tensor* tensor);
/** The bytes, in the same way. */
TONNX_API const void* tonnx_tensor_data(const tonnx_tensor* tensor);
TONNX_API size_t tonnx_tensor_size(const tonnx_tensor* tensor); /**< How many bytes there are. */

/** A node of a model as it is; valid as long as the model lives and is not changed, as are the names that it gives. */
typedef struct tonnx_node_view tonnx_node_view;
/** The first node of the model's graph, in the order in which they run; NULL where there is none. */
TONNX_API const tonnx_node_view* tonnx_model_first_node(const tonnx_model* model);
/** The node behind this one in its graph; NULL behind the last. */
TONNX_API const tonnx_node_view* tonnx_node_view_next(const tonnx_node_view* node);
/** `Conv`; `conv2d` in a program of PyTorch. */
TONNX_API const char* tonnx_node_view_op(const tonnx_node_view* node);
/** Empty for ai.onnx; `aten` in a program of PyTorch. */
TONNX_API const char* tonnx_node_view_domain(const tonnx_node_view* node);
/** `Tensor` of `aten::add.Tensor`; empty in ONNX. */
TONNX_API const char* tonnx_node_view_overload(const tonnx_node_view* node);
/** Its name, which may be empty; of a program of PyTorch the path of its module. */
TONNX_API const char* tonnx_node_view_name(const tonnx_node_view* node);
TONNX_API size_t tonnx_node_view_input_count(const tonnx_node_view* node);  /**< How many inputs it has. */
TONNX_API size_t tonnx_node_view_output_count(const tonnx_node_view* node); /**< How many outputs it has. */
/** The name of the value that it takes; NULL for one that is left out, and beyond the last. */
TONNX_API const char* tonnx_node_view_input(const tonnx_node_view* node, size_t index);
/** The name of a value that it gives; NULL for one that is left out, and beyond the last. */
TONNX_API const char* tonnx_node_view_output(const tonnx_node_view* node, size_t index);
/** Type and sizes of a value that it gives, `float32[n, 3]`, as far as they are known. */
TONNX_API tonnx_status tonnx_node_view_output_type(const tonnx_node_view* node, size_t index, tonnx_buffer** text,
                                                   tonnx_error** error);
/** How many attributes it has, or arguments in a program of PyTorch. */
TONNX_API size_t tonnx_node_view_attribute_count(const tonnx_node_view* node);
/** The name of one of them; NULL beyond the last. */
TONNX_API const char* tonnx_node_view_attribute(const tonnx_node_view* node, size_t index);
/** An attribute that is an integer. Each of these fails where there is none of that name, or it is of another kind. */
TONNX_API tonnx_status tonnx_node_view_int(const tonnx_node_view* node, const char* name, int64_t* value,
                                           tonnx_error** error);
/** One that is a number. */
TONNX_API tonnx_status tonnx_node_view_float(const tonnx_node_view* node, const char* name, double* value,
                                             tonnx_error** error);
/** One that is a text, which is not copied. */
TONNX_API tonnx_status tonnx_node_view_text(const tonnx_node_view* node, const char* name, const char** value,
                                            tonnx_error** error);
/** One that is a list of integers: how many there are, of which as many are written as there is room for. */
TONNX_API tonnx_status tonnx_node_view_ints(const tonnx_node_view* node, const char* name, int64_t* values, size_t room,
                                            size_t* count, tonnx_error** error);
/** One that is a list of numbers, in the same way. */
TONNX_API tonnx_status tonnx_node_view_floats(const tonnx_node_view* node, const char* name, double* values,
                                              size_t room, size_t* count, tonnx_error** error);
/** One that is a tensor, which shares the bytes of the model and must be freed before it; they need not be aligned. */
TONNX_API tonnx_status tonnx_node_view_tensor(const tonnx_node_view* node, const char* name, tonnx_tensor** tensor,
                                              tonnx_error** error);
/** One that is a graph, such as the branch of an If: its first node, which is NULL where it has none. */
TONNX_API tonnx_status tonnx_node_view_graph(const tonnx_node_view* node, const char* name,
                                             const tonnx_node_view** first, tonnx_error** error);
/** How many weights the graph of the model has. */
TONNX_API size_t tonnx_model_weight_count(const tonnx_model* model);
/** The name of a weight, as that of an input. */
TONNX_API const char* tonnx_model_weight_name(const tonnx_model* model, size_t index);
/** A weight, which shares the bytes of the model, mostly those of the mapped file, and must be freed before it. Its
    elements need not be aligned. */
TONNX_API tonnx_status tonnx_model_weight(const tonnx_model* model, size_t index, tonnx_tensor** tensor,
                                          tonnx_error** error);

/** Attributes of a node that is made. */
typedef struct tonnx_attributes tonnx_attributes;
/** No attributes; NULL where there is no memory. Where a function takes attributes, NULL stands for these. */
TONNX_API tonnx_attributes* tonnx_attributes_new(void);
TONNX_API void tonnx_attributes_free(tonnx_attributes* attributes); /**< Frees the attributes. */
/** An attribute that is an integer. Like all functions that set an attribute it keeps a copy. */
TONNX_API tonnx_status tonnx_attributes_set_int(tonnx_attributes* attributes, const char* name, int64_t value);
/** One that is a number. */
TONNX_API tonnx_status tonnx_attributes_set_float(tonnx_attributes* attributes, const char* name, double value);
/** One that is a text. */
TONNX_API tonnx_status tonnx_attributes_set_text(tonnx_attributes* attributes, const char* name, const char* value);
/** One that is a list of integers. */
TONNX_API tonnx_status tonnx_attributes_set_ints(tonnx_attributes* attributes, const char* name, const int64_t* values,
                                                 size_t count);
/** One that is a list of numbers. */
TONNX_API tonnx_status tonnx_attributes_set_floats(tonnx_attributes* attributes, const char* name, const double* values,
                                                   size_t count);
/** One that is a tensor. */
TONNX_API tonnx_status tonnx_attributes_set_tensor(tonnx_attributes* attributes, const char* name,
                                                   const tonnx_tensor* tensor);

/** An empty model of ONNX, to be edited. */
TONNX_API tonnx_status tonnx_model_create(int64_t opset, tonnx_model** model, tonnx_error** error);

/**
 * Changes to the graph of a model of ONNX, which are made on a copy until tonnx_editor_finish(). Values and nodes are
 * called by their names; a change costs the same in a small graph and in a large one, but for those that say otherwise.
 */
typedef struct tonnx_editor tonnx_editor;
/** Begins to edit: copies the graph, but not the weights. */
TONNX_API tonnx_status tonnx_editor_new(const tonnx_model* model, tonnx_editor** editor, tonnx_error** error);
TONNX_API void tonnx_editor_free(
    tonnx_editor* editor); /**< Frees the editor; changes that are not finished are lost. */
/** An input; sizes that are negative are open. */
TONNX_API tonnx_status tonnx_editor_add_input(tonnx_editor* editor, const char* name, const char* type,
                                              const int64_t* sizes, size_t rank, tonnx_error** error);
/** A weight, which shares the bytes of the tensor. */
TONNX_API tonnx_status tonnx_editor_add_initializer(tonnx_editor* editor, const char* name, const tonnx_tensor* tensor,
                                                    tonnx_error** error);
/** A value that becomes an output. */
TONNX_API tonnx_status tonnx_editor_add_output(tonnx_editor* editor, const char* value, tonnx_error** error);
/**
 * A node of an operator of the model's opset. `domain` is NULL or empty for ai.onnx; `name` may be NULL; an input that
 * is NULL or empty is left out. It stands in front of the node `before`, or at the end where that is NULL.
 */
TONNX_API tonnx_status tonnx_editor_add_node(tonnx_editor* editor, const char* op, const char* domain, const char* name,
                                             const char* const* inputs, size_t input_count, const char* const* outputs,
                                             size_t output_count, const tonnx_attributes* attributes,
                                             const char* before, tonnx_error** error);
/** A node in the place of another, whose outputs become its own, with their names; it has the name of the other too. */
TONNX_API tonnx_status tonnx_editor_replace_node(tonnx_editor* editor, const char* node, const char* op,
                                                 const char* domain, const char* const* inputs, size_t input_count,
                                                 const tonnx_attributes* attributes, tonnx_error** error);
/** Removes a node whose outputs nobody uses. */
TONNX_API tonnx_status tonnx_editor_remove_node(tonnx_editor* editor, const char* node, tonnx_error** error);
/** Sets attributes of a node; others stay as they are. */
TONNX_API tonnx_status tonnx_editor_set_attributes(tonnx_editor* editor, const char* node,
                                                   const tonnx_attributes* attributes, tonnx_error** error);
/** Removes an input that nobody uses. */
TONNX_API tonnx_status tonnx_editor_remove_input(tonnx_editor* editor, const char* value, tonnx_error** error);
/** A value stops to be an output. */
TONNX_API tonnx_status tonnx_editor_remove_output(tonnx_editor* editor, const char* value, tonnx_error** error);
/** Removes a weight that nobody uses. */
TONNX_API tonnx_status tonnx_editor_remove_initializer(tonnx_editor* editor, const char* value, tonnx_error** error);
/** All that took the one value takes the other, outputs of the graph too. */
TONNX_API tonnx_status tonnx_editor_replace_uses(tonnx_editor* editor, const char* old_value, const char* new_value,
                                                 tonnx_error** error);
/** Gives a value another name. */
TONNX_API tonnx_status tonnx_editor_rename(tonnx_editor* editor, const char* value, const char* name,
                                           tonnx_error** error);
/** Removes all that no output needs, and says how many nodes that were, where `count` is not NULL. Looks through the
    graph. */
TONNX_API tonnx_status tonnx_editor_remove_unused(tonnx_editor* editor, size_t* count, tonnx_error** error);
/** Puts nodes in an order in which they can run. Looks through the graph. */
TONNX_API tonnx_status tonnx_editor_sort(tonnx_editor* editor, tonnx_error** error);
/** Checks the graph, as Model::check() does, and puts it into the model; where it is none, both stay as they are. The
    editor goes on from there. */
TONNX_API tonnx_status tonnx_editor_finish(tonnx_editor* editor, tonnx_model* model, tonnx_error** error);

/** Operators of the caller's own. */
typedef struct tonnx_registry tonnx_registry;
/** A value of the program that a conversion makes; it lives as long as the function that it was given to runs. */
typedef struct tonnx_value tonnx_value;
/** A node that is converted: of ONNX, whose inputs are values of the program of PyTorch; or of PyTorch, whose inputs
   are values of ONNX. */
typedef struct tonnx_node tonnx_node;
/** Adds calls of PyTorch's operators, or nodes of ONNX. */
typedef struct tonnx_builder tonnx_builder;
/** Arguments of an operator of PyTorch. */
typedef struct tonnx_arguments tonnx_arguments;
/** Converts a node: fills `outputs` with values that the builder gave. Anything but 0 is a failure of the conversion.
 */
typedef int (*tonnx_convert_node)(void* context, const tonnx_node* node, tonnx_builder* builder,
                                  const tonnx_value** outputs, size_t output_count);

/** A registry without operators; NULL where there is no memory. */
TONNX_API tonnx_registry* tonnx_registry_new(void);
TONNX_API void tonnx_registry_free(tonnx_registry* registry); /**< Frees the registry. */
/** An operator of ONNX, `my.domain::Swish(T x, *, float beta=1.0) -> T y`, that the function makes a program of;
   `like`, which may be NULL, names the input whose type and sizes the output has. */
TONNX_API tonnx_status tonnx_registry_add_onnx(tonnx_registry* registry, const char* signature, const char* like,
                                               tonnx_convert_node convert, void* context, tonnx_error** error);
/** An operator of PyTorch with one result, `mylib::swish(Tensor x, float beta) -> Tensor`, that the function makes ONNX
    of. */
TONNX_API tonnx_status tonnx_registry_add_aten(tonnx_registry* registry, const char* signature,
                                               tonnx_convert_node convert, void* context, tonnx_error** error);
/** The registry that writing and converting use, of which the options keep a copy. NULL takes it away. */
TONNX_API tonnx_status tonnx_options_set_registry(tonnx_options* options, const tonnx_registry* registry);

/** An input or argument of the node by its name in the signature; NULL where it is left out, or there is none. */
TONNX_API const tonnx_value* tonnx_node_input(const tonnx_node* node, const char* name);
/** An attribute, or an argument, that is an integer. */
TONNX_API tonnx_status tonnx_node_int(const tonnx_node* node, const char* name, int64_t* value);
/** One that is a number. */
TONNX_API tonnx_status tonnx_node_float(const tonnx_node* node, const char* name, double* value);
/** One that is a list of integers: how many there are, of which as many are written as there is room for. */
TONNX_API tonnx_status tonnx_node_ints(const tonnx_node* node, const char* name, int64_t* values, size_t room,
                                       size_t* count);

/** No arguments; NULL where there is no memory. */
TONNX_API tonnx_arguments* tonnx_arguments_new(void);
TONNX_API void tonnx_arguments_free(tonnx_arguments* arguments); /**< Frees the arguments. */
/** The next argument, or that of a name where `name` is not NULL: a value, which is None where it is NULL. */
TONNX_API tonnx_status tonnx_arguments_add_value(tonnx_arguments* arguments, const char* name,
                                                 const tonnx_value* value);
/** One that is an integer. */
TONNX_API tonnx_status tonnx_arguments_add_int(tonnx_arguments* arguments, const char* name, int64_t value);
/** One that is a number. */
TONNX_API tonnx_status tonnx_arguments_add_float(tonnx_arguments* arguments, const char* name, double value);
/** One that is true or false. */
TONNX_API tonnx_status tonnx_arguments_add_bool(tonnx_arguments* arguments, const char* name, int value);
/** One that is a list of integers. */
TONNX_API tonnx_status tonnx_arguments_add_ints(tonnx_arguments* arguments, const char* name, const int64_t* values,
                                                size_t count);
/** Calls an operator of PyTorch, `mul.Tensor`, and gives its first result. For functions of tonnx_registry_add_onnx().
 */
TONNX_API tonnx_status tonnx_builder_call(tonnx_builder* builder, const char* op, const tonnx_arguments* arguments,
                                          const tonnx_value** result, tonnx_error** error);
/** Adds a node of the newest opset of ONNX, or of another domain: `my.domain.Swish`; an input that is NULL is left out.
    For functions of tonnx_registry_add_aten(). */
TONNX_API tonnx_status tonnx_builder_node(tonnx_builder* builder, const char* op, const tonnx_value* const* inputs,
                                          size_t input_count, const tonnx_attributes* attributes,
                                          const tonnx_value** result, tonnx_error** error);
/** A constant, in either direction. */
TONNX_API tonnx_status tonnx_builder_constant(tonnx_builder* builder, const tonnx_tensor* tensor,
                                              const tonnx_value** result, tonnx_error** error);

/** A model in a runtime of the caller's. */
typedef struct tonnx_runner tonnx_runner;
/**
 * Runs the model: fills `outputs` with tensors by tonnx_tensor_new(), which the library frees. Where it returns
 * anything but 0 it cannot run with these inputs: other sizes are tried, if any are open.
 */
typedef int (*tonnx_run)(void* context, const tonnx_tensor* const* inputs, size_t input_count, tonnx_tensor** outputs,
                         size_t output_count);
/** The same for values inside, of these names. */
typedef int (*tonnx_run_inner)(void* context, const tonnx_tensor* const* inputs, size_t input_count,
                               const char* const* names, tonnx_tensor** values, size_t count);
/** A runner without inputs and outputs; NULL where there is no memory. */
TONNX_API tonnx_runner* tonnx_runner_new(tonnx_run run, void* context);
TONNX_API void tonnx_runner_free(tonnx_runner* runner); /**< Frees the runner. */
/** The next input; sizes that are negative are open. */
TONNX_API tonnx_status tonnx_runner_add_input(tonnx_runner* runner, const char* name, const char* type,
                                              const int64_t* sizes, size_t rank);
/** The next output. */
TONNX_API tonnx_status tonnx_runner_add_output(tonnx_runner* runner, const char* name);
/** A function that gives values inside, and their names in the order in which they are computed. */
TONNX_API tonnx_status tonnx_runner_set_inner(tonnx_runner* runner, tonnx_run_inner run, const char* const* names,
                                              size_t count);

/** What is asked of a comparison. */
typedef struct tonnx_verify_options tonnx_verify_options;
/** Options that ask for three random draws; NULL where there is no memory. */
TONNX_API tonnx_verify_options* tonnx_verify_options_new(void);
TONNX_API void tonnx_verify_options_free(tonnx_verify_options* options); /**< Frees the options. */
/** An input that is not random. */
TONNX_API tonnx_status tonnx_verify_options_set_input(tonnx_verify_options* options, const char* name,
                                                      const tonnx_tensor* tensor);
/** The sizes of a random one; -1 is chosen. */
TONNX_API tonnx_status tonnx_verify_options_set_input_shape(tonnx_verify_options* options, const char* input,
                                                            const int64_t* sizes, size_t count);
/** How many random inputs are tried, and the seed of them. */
TONNX_API tonnx_status tonnx_verify_options_set_draws(tonnx_verify_options* options, int draws, uint64_t seed);
/** |b - a| may be atol + rtol * |a|, in place of what fits the types and the depth. */
TONNX_API tonnx_status tonnx_verify_options_set_tolerance(tonnx_verify_options* options, double rtol, double atol);
/** Whether values inside are compared too, where both runners have them. */
TONNX_API tonnx_status tonnx_verify_options_set_layers(tonnx_verify_options* options, int has_layers);
/**
 * Runs two models on the same inputs: `is_same` is 1 where they compute the same, otherwise 0; `report`, which may be
 * NULL, says more in lines. `model` is one that either of them runs. Models that differ are no error.
 */
TONNX_API tonnx_status tonnx_verify(tonnx_runner* reference, tonnx_runner* other, const tonnx_model* model,
                                    const tonnx_verify_options* options, int* is_same, tonnx_buffer** report,
                                    tonnx_error** error);

/** What is asked of a batch. */
typedef struct tonnx_batch_options tonnx_batch_options;
/** Options that ask for nothing: a thread for each core; NULL where there is no memory. */
TONNX_API tonnx_batch_options* tonnx_batch_options_new(void);
TONNX_API void tonnx_batch_options_free(tonnx_batch_options* options); /**< Frees the options. */
/** How many conversions run at a time; 0: one for each core. */
TONNX_API tonnx_status tonnx_batch_options_set_threads(tonnx_batch_options* options, unsigned threads);
/** Whether what is done and unchanged is left alone. */
TONNX_API tonnx_status tonnx_batch_options_set_resume(tonnx_batch_options* options, int resumes);
/** Whether nothing is done, and the jobs are only listed. */
TONNX_API tonnx_status tonnx_batch_options_set_dry(tonnx_batch_options* options, int is_dry);
/** Whether results are compared where the file asks for it; they are, unless this is called with 0. */
TONNX_API tonnx_status tonnx_batch_options_set_verify(tonnx_batch_options* options, int verifies);
/**
 * A function that compares a result with its source: 0 where they agree, 1 where they do not, 2 where that cannot be
 * judged. It writes why into `text`, which has that much room and is a text. Several threads may call it at once.
 */
TONNX_API tonnx_status tonnx_batch_options_set_compare(tonnx_batch_options* options,
                                                       int (*compare)(void* context, const char* source,
                                                                      const char* result, char* text, size_t room),
                                                       void* context);
/** A function that is told what came of each job: `done`, `failed`, `unchanged`; one thread calls it at a time. */
TONNX_API tonnx_status tonnx_batch_options_set_on_end(tonnx_batch_options* options,
                                                      void (*on_end)(void* context, const char* source,
                                                                     const char* target, const char* status),
                                                      void* context);
/** Does what a YAML file lists (docs/batch.md). `failed` and `report`, which may be NULL, say how many failed, and what
    came of each, in JSON; conversions that fail are no error. */
TONNX_API tonnx_status tonnx_batch(const char* config, const tonnx_batch_options* options, size_t* failed,
                                   tonnx_buffer** report, tonnx_error** error);

#ifdef __cplusplus
}
#endif

#endif
