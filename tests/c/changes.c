/* changes.c - the interface in C once more: graphs that are built and changed, operators of one's own, comparisons and
   batches: changes FOLDER. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tonnx/c.h>

static int failures = 0;

#define EXPECT(condition) expect((condition) != 0, #condition, __LINE__)

static void expect(int holds, const char* text, int line) {
  if (holds) return;
  fprintf(stderr, "changes.c:%d: does not hold: %s\n", line, text);
  ++failures;
}

/* The status must be that; the error, which must be there where it is none of success, is freed. */
static void expect_status(tonnx_status status, tonnx_status expected, tonnx_error* error, int line) {
  if (status != expected || (error == NULL) != (status == TONNX_OK)) {
    fprintf(stderr, "changes.c:%d: %s, and %s was expected: %s\n", line, tonnx_status_name(status),
            tonnx_status_name(expected), tonnx_error_message(error));
    ++failures;
  }
  tonnx_error_free(error);
}

#define EXPECT_STATUS(call, expected, error)             \
  do {                                                   \
    const tonnx_status status_ = (call);                 \
    expect_status(status_, (expected), error, __LINE__); \
    error = NULL;                                        \
  } while (0)

static int holds(const tonnx_buffer* buffer, const char* text) {
  return buffer != NULL && strstr(tonnx_buffer_data(buffer), text) != NULL;
}

static tonnx_tensor* tensor_of(const float* values, int64_t count) {
  tonnx_tensor* tensor = NULL;
  if (tonnx_tensor_new("float32", &count, 1, values, (size_t)count * sizeof(float), &tensor, NULL) != TONNX_OK) exit(2);
  return tensor;
}

/* x [n, 3] -> Mul by {1, 2, 4} -> op -> y, of the domain */
static tonnx_model* built(const char* op, const char* domain) {
  static const float scale[] = {1, 2, 4};
  const int64_t sizes[] = {-1, 3};
  const char* const factors[] = {"x", "scale"};
  const char* const scaled[] = {"scaled"};
  const char* const outputs[] = {"y"};
  tonnx_model* model = NULL;
  tonnx_editor* editor = NULL;
  tonnx_error* error = NULL;
  tonnx_tensor* weight = tensor_of(scale, 3);
  EXPECT_STATUS(tonnx_model_create(17, &model, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_new(model, &editor, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_add_input(editor, "x", "float32", sizes, 2, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_add_initializer(editor, "scale", weight, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_add_node(editor, "Mul", NULL, "times", factors, 2, scaled, 1, NULL, NULL, &error),
                TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_add_node(editor, op, domain, "last", scaled, 1, outputs, 1, NULL, NULL, &error), TONNX_OK,
                error);
  EXPECT_STATUS(tonnx_editor_add_output(editor, "y", &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_finish(editor, model, &error), TONNX_OK, error);
  tonnx_editor_free(editor);
  tonnx_tensor_free(weight);
  return model;
}

static void try_tensors(void) {
  static const float values[] = {1, 2};
  const int64_t sizes[] = {2}, others[] = {3};
  tonnx_tensor* tensor = NULL;
  tonnx_error* error = NULL;
  EXPECT_STATUS(tonnx_tensor_new("float32", sizes, 1, values, sizeof values, &tensor, &error), TONNX_OK, error);
  EXPECT(strcmp(tonnx_tensor_type(tensor), "float32") == 0);
  EXPECT(tonnx_tensor_rank(tensor) == 1 && tonnx_tensor_sizes(tensor)[0] == 2);
  EXPECT(tonnx_tensor_size(tensor) == sizeof values && memcmp(tonnx_tensor_data(tensor), values, sizeof values) == 0);
  tonnx_tensor_free(tensor);
  EXPECT_STATUS(tonnx_tensor_new("float32", others, 1, values, sizeof values, &tensor, &error), TONNX_INVALID_MODEL,
                error);
  EXPECT_STATUS(tonnx_tensor_new("float33", sizes, 1, values, sizeof values, &tensor, &error), TONNX_BAD_ARGUMENT,
                error);
  EXPECT_STATUS(tonnx_tensor_new("float32", sizes, 1, NULL, 8, &tensor, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT(tensor == NULL);
  tonnx_tensor_free(NULL);
}

static void try_editor(void) {
  const char* const scaled[] = {"scaled"};
  const char* const nobody[] = {"nobody"};
  const char* const more[] = {"more"};
  tonnx_model* model = built("Relu", NULL);
  tonnx_editor* editor = NULL;
  tonnx_error* error = NULL;
  tonnx_buffer* text = NULL;
  tonnx_attributes* attributes = tonnx_attributes_new();
  size_t removed = 9;
  EXPECT(tonnx_model_node_count(model) == 2);
  EXPECT(strcmp(tonnx_model_output_name(model, 0), "y") == 0);
  EXPECT(tonnx_attributes_set_float(attributes, "alpha", 0.25) == TONNX_OK);
  EXPECT_STATUS(tonnx_editor_new(model, &editor, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_replace_node(editor, "last", "LeakyRelu", NULL, scaled, 1, attributes, &error), TONNX_OK,
                error);
  EXPECT_STATUS(tonnx_editor_replace_node(editor, "first", "Relu", NULL, scaled, 1, NULL, &error), TONNX_INVALID_MODEL,
                error);
  EXPECT_STATUS(tonnx_editor_add_node(editor, "Relu", NULL, NULL, nobody, 1, more, 1, NULL, NULL, &error),
                TONNX_INVALID_MODEL, error);
  EXPECT_STATUS(tonnx_editor_remove_node(editor, "times", &error), TONNX_INVALID_MODEL, error); /* it is used */
  EXPECT_STATUS(tonnx_model_text(model, &text, &error), TONNX_OK, error);
  EXPECT(holds(text, "Relu") && !holds(text, "LeakyRelu")); /* nothing is finished */
  tonnx_buffer_free(text);
  EXPECT_STATUS(tonnx_editor_finish(editor, model, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_model_text(model, &text, &error), TONNX_OK, error);
  EXPECT(holds(text, "LeakyRelu") && holds(text, "0.25"));
  tonnx_buffer_free(text);

  /* a node in front, and one that nobody needs */
  EXPECT_STATUS(tonnx_editor_add_node(editor, "Abs", NULL, "abs", scaled, 1, more, 1, NULL, "last", &error), TONNX_OK,
                error);
  EXPECT_STATUS(tonnx_editor_remove_unused(editor, &removed, &error), TONNX_OK, error);
  EXPECT(removed == 1);
  EXPECT_STATUS(tonnx_editor_remove_node(editor, "abs", &error), TONNX_INVALID_MODEL, error); /* it is gone */
  EXPECT_STATUS(tonnx_editor_rename(editor, "y", "result", &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_replace_uses(editor, "scaled", "x", &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_remove_node(editor, "times", &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_remove_initializer(editor, "scale", &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_sort(editor, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_finish(editor, model, &error), TONNX_OK, error);
  EXPECT(tonnx_model_node_count(model) == 1);
  EXPECT(strcmp(tonnx_model_output_name(model, 0), "result") == 0);

  /* what is no model is refused at the end, and the model stays as it is */
  EXPECT(tonnx_attributes_set_int(attributes, "nonsense", 3) == TONNX_OK);
  EXPECT_STATUS(tonnx_editor_set_attributes(editor, "last", attributes, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_finish(editor, model, &error), TONNX_INVALID_MODEL, error);
  EXPECT_STATUS(tonnx_model_text(model, &text, &error), TONNX_OK, error);
  EXPECT(!holds(text, "nonsense"));
  tonnx_buffer_free(text);
  tonnx_editor_free(editor);
  EXPECT_STATUS(tonnx_editor_new(NULL, &editor, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT(editor == NULL);
  tonnx_attributes_free(attributes);
  tonnx_model_free(model);
}

/* x * sigmoid(x) */
static int swish_to_aten(void* context, const tonnx_node* node, tonnx_builder* builder, const tonnx_value** outputs,
                         size_t output_count) {
  const tonnx_value* x = tonnx_node_input(node, "x");
  const tonnx_value* sigmoid = NULL;
  double beta = 0;
  tonnx_arguments* one = tonnx_arguments_new();
  tonnx_arguments* two = tonnx_arguments_new();
  ++*(int*)context;
  EXPECT(output_count == 1 && x != NULL && tonnx_node_input(node, "z") == NULL);
  EXPECT(tonnx_node_float(node, "beta", &beta) == TONNX_OK && beta == 1.5);
  EXPECT(tonnx_arguments_add_value(one, NULL, x) == TONNX_OK);
  EXPECT(tonnx_builder_call(builder, "sigmoid", one, &sigmoid, NULL) == TONNX_OK);
  EXPECT(tonnx_builder_node(builder, "Sigmoid", &x, 1, NULL, &sigmoid, NULL) == TONNX_BAD_ARGUMENT);
  EXPECT(tonnx_builder_call(builder, "sigmoid", one, &sigmoid, NULL) == TONNX_OK);
  EXPECT(tonnx_builder_call(builder, "no_such_thing", one, &outputs[0], NULL) == TONNX_UNSUPPORTED);
  EXPECT(tonnx_arguments_add_value(two, "self", x) == TONNX_OK);
  EXPECT(tonnx_arguments_add_value(two, "other", sigmoid) == TONNX_OK);
  EXPECT(tonnx_builder_call(builder, "mul.Tensor", two, &outputs[0], NULL) == TONNX_OK);
  tonnx_arguments_free(one);
  tonnx_arguments_free(two);
  return 0;
}

static int refuses(void* context, const tonnx_node* node, tonnx_builder* builder, const tonnx_value** outputs,
                   size_t output_count) {
  (void)context, (void)node, (void)builder, (void)outputs, (void)output_count;
  return 7;
}

static void try_registry(void) {
  static const char* const signature = "my.domain::Swish(T x, *, float beta=1.5) -> T y";
  int calls = 0;
  tonnx_model* model = built("Swish", "my.domain");
  tonnx_registry* registry = tonnx_registry_new();
  tonnx_options* options = tonnx_options_new();
  tonnx_buffer* source = NULL;
  tonnx_error* error = NULL;
  EXPECT_STATUS(tonnx_model_to_bytes(model, TONNX_FORMAT_PYTHON, options, &source, &error), TONNX_UNSUPPORTED, error);
  EXPECT_STATUS(tonnx_registry_add_onnx(registry, signature, "x", swish_to_aten, &calls, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_registry_add_onnx(registry, "no signature", NULL, swish_to_aten, &calls, &error),
                TONNX_INVALID_MODEL, error);
  EXPECT_STATUS(tonnx_registry_add_onnx(registry, signature, NULL, NULL, NULL, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT(tonnx_options_set_registry(options, registry) == TONNX_OK);
  tonnx_registry_free(registry); /* the options have a copy */
  EXPECT_STATUS(tonnx_model_to_bytes(model, TONNX_FORMAT_PYTHON, options, &source, &error), TONNX_OK, error);
  EXPECT(calls == 1);
  EXPECT(holds(source, "silu") || holds(source, "sigmoid"));
  tonnx_buffer_free(source);
  registry = tonnx_registry_new();
  EXPECT_STATUS(tonnx_registry_add_onnx(registry, signature, "x", refuses, NULL, &error), TONNX_OK, error);
  EXPECT(tonnx_options_set_registry(options, registry) == TONNX_OK);
  EXPECT(tonnx_model_to_bytes(model, TONNX_FORMAT_PYTHON, options, &source, &error) == TONNX_UNSUPPORTED);
  EXPECT(strstr(tonnx_error_text(error), "returned 7") != NULL);
  tonnx_error_free(error);
  EXPECT(tonnx_options_set_registry(options, NULL) == TONNX_OK);
  tonnx_registry_free(registry);
  tonnx_options_free(options);
  tonnx_model_free(model);
}

/* elu(x, alpha) as a node of another domain, with alpha as a constant */
static int elu_to_onnx(void* context, const tonnx_node* node, tonnx_builder* builder, const tonnx_value** outputs,
                       size_t output_count) {
  const tonnx_value* inputs[2];
  tonnx_attributes* attributes = tonnx_attributes_new();
  tonnx_arguments* none = tonnx_arguments_new();
  tonnx_tensor* number = NULL;
  double alpha = 0;
  float value;
  EXPECT(output_count == 1 && tonnx_node_float(node, "alpha", &alpha) == TONNX_OK && alpha == 0.25);
  value = (float)alpha;
  EXPECT(tonnx_tensor_new("float32", NULL, 0, &value, sizeof value, &number, NULL) == TONNX_OK);
  inputs[0] = tonnx_node_input(node, "self");
  EXPECT(tonnx_builder_constant(builder, number, &inputs[1], NULL) == TONNX_OK);
  EXPECT(tonnx_builder_call(builder, "elu", none, &outputs[0], NULL) == TONNX_BAD_ARGUMENT); /* the other direction */
  EXPECT(tonnx_attributes_set_text(attributes, "kind", "soft") == TONNX_OK);
  EXPECT(tonnx_builder_node(builder, "my.domain.Elu", inputs, 2, attributes, &outputs[0], NULL) == TONNX_OK);
  tonnx_tensor_free(number);
  tonnx_arguments_free(none);
  tonnx_attributes_free(attributes);
  ++*(int*)context;
  return 0;
}

static void try_registry_of_aten(void) {
  static const char* const signature =
      "aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor";
  const char* const x[] = {"scaled"};
  int calls = 0;
  float value = 0;
  const char* kind = NULL;
  const tonnx_node_view* node = NULL;
  tonnx_model* model = built("Relu", NULL);
  tonnx_model* program = NULL;
  tonnx_editor* editor = NULL;
  tonnx_buffer* bytes = NULL;
  tonnx_error* error = NULL;
  tonnx_tensor* alpha = NULL;
  tonnx_attributes* attributes = tonnx_attributes_new();
  tonnx_registry* registry = tonnx_registry_new();
  tonnx_options* options = tonnx_options_new();
  EXPECT(tonnx_attributes_set_float(attributes, "alpha", 0.25) == TONNX_OK);
  EXPECT_STATUS(tonnx_editor_new(model, &editor, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_replace_node(editor, "last", "Elu", NULL, x, 1, attributes, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_finish(editor, model, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_model_to_bytes(model, TONNX_FORMAT_TORCH_EXPORT, NULL, &bytes, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_model_read_bytes(tonnx_buffer_data(bytes), tonnx_buffer_size(bytes), TONNX_FORMAT_TORCH_EXPORT,
                                       NULL, NULL, NULL, &program, &error),
                TONNX_OK, error);
  tonnx_buffer_free(bytes);
  EXPECT_STATUS(tonnx_registry_add_aten(registry, "elu(Tensor x) -> Tensor", elu_to_onnx, &calls, &error),
                TONNX_INVALID_MODEL, error);
  EXPECT_STATUS(tonnx_registry_add_aten(registry, signature, elu_to_onnx, &calls, &error), TONNX_OK, error);
  EXPECT(tonnx_options_set_registry(options, registry) == TONNX_OK);
  EXPECT_STATUS(tonnx_model_to_bytes(program, TONNX_FORMAT_ONNX, options, &bytes, &error), TONNX_OK, error);
  EXPECT(calls == 1);
  tonnx_model_free(model);
  EXPECT_STATUS(tonnx_model_read_bytes(tonnx_buffer_data(bytes), tonnx_buffer_size(bytes), TONNX_FORMAT_ONNX, NULL,
                                       NULL, NULL, &model, &error),
                TONNX_OK, error);
  for (node = tonnx_model_first_node(model); strcmp(tonnx_node_view_op(node), "Elu") != 0;)
    node = tonnx_node_view_next(node);
  EXPECT(strcmp(tonnx_node_view_domain(node), "my.domain") == 0 && tonnx_node_view_input_count(node) == 2);
  EXPECT_STATUS(tonnx_node_view_text(node, "kind", &kind, &error), TONNX_OK, error);
  EXPECT(strcmp(kind, "soft") == 0);
  EXPECT(tonnx_model_weight_count(model) == 2);
  EXPECT_STATUS(tonnx_model_weight(model, 1, &alpha, &error), TONNX_OK, error);
  EXPECT(tonnx_tensor_rank(alpha) == 0 && tonnx_tensor_size(alpha) == sizeof value);
  memcpy(&value, tonnx_tensor_data(alpha), sizeof value); /* it need not be aligned */
  EXPECT(value == 0.25F);
  tonnx_tensor_free(alpha);
  tonnx_buffer_free(bytes);
  tonnx_editor_free(editor);
  tonnx_attributes_free(attributes);
  tonnx_registry_free(registry);
  tonnx_options_free(options);
  tonnx_model_free(program);
  tonnx_model_free(model);
}

static void try_views(void) {
  static const float values[] = {1, 2};
  const char* const scaled[] = {"scaled"};
  const char* const window[] = {"window"};
  const int64_t sizes[] = {2}, kernel[] = {3, 5};
  const double slopes[] = {0.5, 0.25};
  int64_t ints[2] = {0, 0}, number = 0;
  double floats[1] = {0}, slope = 0;
  size_t count = 0;
  const char* text = NULL;
  const tonnx_node_view *node = NULL, *inside = NULL;
  tonnx_model* model = built("Relu", NULL);
  tonnx_editor* editor = NULL;
  tonnx_tensor* tensor = NULL;
  tonnx_buffer* type = NULL;
  tonnx_error* error = NULL;
  tonnx_attributes* attributes = tonnx_attributes_new();
  EXPECT_STATUS(tonnx_tensor_new("float32", sizes, 1, values, sizeof values, &tensor, &error), TONNX_OK, error);
  EXPECT(tonnx_attributes_set_ints(attributes, "kernel", kernel, 2) == TONNX_OK);
  EXPECT(tonnx_attributes_set_floats(attributes, "slopes", slopes, 2) == TONNX_OK);
  EXPECT(tonnx_attributes_set_int(attributes, "ceil", 7) == TONNX_OK);
  EXPECT(tonnx_attributes_set_float(attributes, "slope", 0.125) == TONNX_OK);
  EXPECT(tonnx_attributes_set_tensor(attributes, "table", tensor) == TONNX_OK);
  tonnx_tensor_free(tensor);
  EXPECT_STATUS(tonnx_editor_new(model, &editor, &error), TONNX_OK, error);
  EXPECT_STATUS(
      tonnx_editor_add_node(editor, "Window", "my.domain", "w", scaled, 1, window, 1, attributes, NULL, &error),
      TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_add_output(editor, "window", &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_editor_finish(editor, model, &error), TONNX_OK, error);

  node = tonnx_model_first_node(model);
  EXPECT(strcmp(tonnx_node_view_op(node), "Mul") == 0 && strcmp(tonnx_node_view_name(node), "times") == 0);
  EXPECT(strcmp(tonnx_node_view_domain(node), "") == 0 && strcmp(tonnx_node_view_overload(node), "") == 0);
  EXPECT(tonnx_node_view_input_count(node) == 2 && tonnx_node_view_output_count(node) == 1);
  EXPECT(strcmp(tonnx_node_view_input(node, 1), "scale") == 0 && tonnx_node_view_input(node, 2) == NULL);
  EXPECT(strcmp(tonnx_node_view_output(node, 0), "scaled") == 0 && tonnx_node_view_output(node, 1) == NULL);
  EXPECT(tonnx_node_view_attribute_count(node) == 0 && tonnx_node_view_attribute(node, 0) == NULL);
  EXPECT_STATUS(tonnx_model_infer_shapes(model, &error), TONNX_OK, error);
  node = tonnx_model_first_node(model);
  EXPECT_STATUS(tonnx_node_view_output_type(node, 0, &type, &error), TONNX_OK, error);
  EXPECT(holds(type, "float32["));
  tonnx_buffer_free(type);
  EXPECT_STATUS(tonnx_node_view_output_type(node, 1, &type, &error), TONNX_BAD_ARGUMENT, error);
  node = tonnx_node_view_next(tonnx_node_view_next(node));
  EXPECT(strcmp(tonnx_node_view_op(node), "Window") == 0 && tonnx_node_view_next(node) == NULL);
  EXPECT(tonnx_node_view_attribute_count(node) == 5 && tonnx_node_view_attribute(node, 5) == NULL);
  EXPECT_STATUS(tonnx_node_view_ints(node, "kernel", ints, 2, &count, &error), TONNX_OK, error);
  EXPECT(count == 2 && ints[0] == 3 && ints[1] == 5);
  EXPECT_STATUS(tonnx_node_view_floats(node, "slopes", floats, 1, &count, &error), TONNX_OK, error);
  EXPECT(count == 2 && floats[0] == 0.5);
  EXPECT_STATUS(tonnx_node_view_int(node, "ceil", &number, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_node_view_float(node, "slope", &slope, &error), TONNX_OK, error);
  EXPECT(number == 7 && slope == 0.125);
  EXPECT_STATUS(tonnx_node_view_tensor(node, "table", &tensor, &error), TONNX_OK, error);
  EXPECT(tonnx_tensor_size(tensor) == sizeof values && memcmp(tonnx_tensor_data(tensor), values, sizeof values) == 0);
  tonnx_tensor_free(tensor);
  EXPECT_STATUS(tonnx_node_view_text(node, "ceil", &text, &error), TONNX_INVALID_MODEL, error);
  EXPECT_STATUS(tonnx_node_view_int(node, "nobody", &number, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_node_view_graph(node, "kernel", &inside, &error), TONNX_INVALID_MODEL, error);
  EXPECT_STATUS(tonnx_node_view_int(NULL, "ceil", &number, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT(tonnx_model_weight_count(model) == 1 && strcmp(tonnx_model_weight_name(model, 0), "scale") == 0);
  EXPECT(tonnx_model_weight_name(model, 1) == NULL && tonnx_model_weight_count(NULL) == 0);
  EXPECT_STATUS(tonnx_model_weight(model, 0, &tensor, &error), TONNX_OK, error);
  EXPECT(strcmp(tonnx_tensor_type(tensor), "float32") == 0);
  tonnx_tensor_free(tensor);
  EXPECT_STATUS(tonnx_model_weight(model, 1, &tensor, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT(tonnx_model_first_node(NULL) == NULL && tonnx_node_view_next(NULL) == NULL);
  tonnx_editor_free(editor);
  tonnx_attributes_free(attributes);
  tonnx_model_free(model);
}

/* y = relu(x * {1, 2, 4}), and the last of every three is off by `context` */
static void compute(const tonnx_tensor* x, float off, float* scaled, float* y, size_t count) {
  static const float scale[] = {1, 2, 4};
  const float* values = tonnx_tensor_data(x);
  size_t i;
  for (i = 0; i < count; ++i) {
    scaled[i] = values[i] * scale[i % 3] + (i % 3 == 2 ? off : 0);
    y[i] = scaled[i] > 0 ? scaled[i] : 0;
  }
}

static int run_values(void* context, const tonnx_tensor* const* inputs, size_t input_count, const char* const* names,
                      tonnx_tensor** values, size_t count) {
  const size_t elements = tonnx_tensor_size(inputs[0]) / sizeof(float);
  float* scaled = malloc(2 * elements * sizeof(float) + 1);
  size_t i;
  int failure = input_count != 1 || scaled == NULL;
  if (failure) exit(2);
  compute(inputs[0], *(const float*)context, scaled, scaled + elements, elements);
  for (i = 0; i < count; ++i) {
    const float* found = strcmp(names[i], "y") == 0 ? scaled + elements : scaled;
    failure |= tonnx_tensor_new("float32", tonnx_tensor_sizes(inputs[0]), tonnx_tensor_rank(inputs[0]), found,
                                elements * sizeof(float), &values[i], NULL) != TONNX_OK;
  }
  free(scaled);
  return failure;
}

static int run_outputs(void* context, const tonnx_tensor* const* inputs, size_t input_count, tonnx_tensor** outputs,
                       size_t output_count) {
  const char* const names[] = {"y"};
  return run_values(context, inputs, input_count, names, outputs, output_count);
}

static int cannot_run(void* context, const tonnx_tensor* const* inputs, size_t input_count, tonnx_tensor** outputs,
                      size_t output_count) {
  (void)inputs, (void)input_count, (void)outputs, (void)output_count;
  ++*(int*)context;
  return 3;
}

static tonnx_runner* runner_of(tonnx_run run, void* context) {
  const char* const names[] = {"scaled", "y"};
  const int64_t sizes[] = {-1, 3};
  tonnx_runner* runner = tonnx_runner_new(run, context);
  EXPECT(tonnx_runner_add_input(runner, "x", "float32", sizes, 2) == TONNX_OK);
  EXPECT(tonnx_runner_add_output(runner, "y") == TONNX_OK);
  EXPECT(tonnx_runner_set_inner(runner, run_values, names, 2) == TONNX_OK);
  return runner;
}

static void try_verify(void) {
  static const float given[] = {1, 2, 3};
  float none = 0, off = 0.125F;
  const int64_t sizes[] = {1, 3};
  int is_same = -1, attempts = 0;
  tonnx_model* model = built("Relu", NULL);
  tonnx_runner *a = runner_of(run_outputs, &none), *b = runner_of(run_outputs, &off);
  tonnx_runner* broken = runner_of(cannot_run, &attempts);
  tonnx_verify_options* options = tonnx_verify_options_new();
  tonnx_tensor* x = NULL;
  tonnx_buffer* report = NULL;
  tonnx_error* error = NULL;
  EXPECT_STATUS(tonnx_verify(a, a, model, NULL, &is_same, NULL, &error), TONNX_OK, error);
  EXPECT(is_same == 1);
  EXPECT(tonnx_verify_options_set_layers(options, 1) == TONNX_OK);
  EXPECT(tonnx_verify_options_set_draws(options, 2, 5) == TONNX_OK);
  EXPECT_STATUS(tonnx_verify(a, b, model, options, &is_same, &report, &error), TONNX_OK, error);
  EXPECT(is_same == 0);
  EXPECT(holds(report, "first layer that differs: ") && holds(report, "value scaled") && holds(report, "DIFFERENT"));
  tonnx_buffer_free(report);
  EXPECT(tonnx_verify_options_set_tolerance(options, 0, 0.2) == TONNX_OK);
  EXPECT_STATUS(tonnx_verify(a, b, model, options, &is_same, NULL, &error), TONNX_OK, error);
  EXPECT(is_same == 1);
  EXPECT_STATUS(tonnx_tensor_new("float32", sizes, 2, given, sizeof given, &x, &error), TONNX_OK, error);
  EXPECT(tonnx_verify_options_set_input(options, "x", x) == TONNX_OK);
  EXPECT_STATUS(tonnx_verify(a, b, model, options, &is_same, &report, &error), TONNX_OK, error);
  EXPECT(holds(report, "float32[1, 3]") && holds(report, "max abs 0.125"));
  tonnx_buffer_free(report);
  EXPECT_STATUS(tonnx_verify(a, broken, model, NULL, &is_same, NULL, &error), TONNX_UNSUPPORTED, error);
  EXPECT(attempts > 1); /* other sizes were tried */
  EXPECT_STATUS(tonnx_verify(a, NULL, model, NULL, &is_same, NULL, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT(tonnx_runner_new(NULL, NULL) == NULL);
  tonnx_runner_free(a);
  tonnx_runner_free(b);
  tonnx_runner_free(broken);
  tonnx_verify_options_free(options);
  tonnx_tensor_free(x);
  tonnx_model_free(model);
}

static int says_no_to_code(void* context, const char* source, const char* result, char* text, size_t room) {
  const size_t length = strlen(result);
  (void)context;
  EXPECT(strstr(source, "relu.onnx") != NULL);
  if (length < 3 || strcmp(result + length - 3, ".py") != 0) return 0;
  snprintf(text, room, "it is code");
  return 1;
}

static void count_ends(void* context, const char* source, const char* target, const char* status) {
  (void)source, (void)target;
  if (strcmp(status, "done") == 0) ((int*)context)[0]++;
  if (strcmp(status, "failed") == 0) ((int*)context)[1]++;
}

static void try_batch(const char* folder) {
  char path[1024];
  int ends[2] = {0, 0};
  size_t failed = 9;
  FILE* file;
  tonnx_model* model = built("Relu", NULL);
  tonnx_batch_options* options = tonnx_batch_options_new();
  tonnx_buffer* report = NULL;
  tonnx_error* error = NULL;
  snprintf(path, sizeof path, "%s/relu.onnx", folder);
  EXPECT_STATUS(tonnx_model_write(model, path, NULL, &error), TONNX_OK, error);
  snprintf(path, sizeof path, "%s/batch.yml", folder);
  file = fopen(path, "w");
  if (file == NULL) exit(2);
  fputs("models:\n  - source: relu.onnx\n    targets: [out.pt2, out.py]\n    verify: true\n", file);
  fclose(file);
  EXPECT_STATUS(tonnx_batch(path, NULL, NULL, NULL, &error), TONNX_INVALID_MODEL, error); /* nothing compares */
  EXPECT(tonnx_batch_options_set_compare(options, says_no_to_code, NULL) == TONNX_OK);
  EXPECT(tonnx_batch_options_set_on_end(options, count_ends, ends) == TONNX_OK);
  EXPECT(tonnx_batch_options_set_threads(options, 1) == TONNX_OK);
  EXPECT_STATUS(tonnx_batch(path, options, &failed, &report, &error), TONNX_OK, error);
  EXPECT(failed == 1 && ends[0] == 1 && ends[1] == 1);
  EXPECT(holds(report, "it is code") && holds(report, "out.pt2"));
  tonnx_buffer_free(report);
  EXPECT(tonnx_batch_options_set_verify(options, 0) == TONNX_OK);
  EXPECT_STATUS(tonnx_batch(path, options, &failed, NULL, &error), TONNX_OK, error);
  EXPECT(failed == 0);
  EXPECT_STATUS(tonnx_batch("there/is/no/such.yml", options, &failed, &report, &error), TONNX_BAD_FILE, error);
  tonnx_batch_options_free(options);
  tonnx_model_free(model);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: changes FOLDER\n");
    return 2;
  }
  try_tensors();
  try_editor();
  try_registry();
  try_registry_of_aten();
  try_views();
  try_verify();
  try_batch(argv[1]);
  if (failures == 0) printf("what is changed from C is as it should be\n");
  return failures == 0 ? 0 : 1;
}
