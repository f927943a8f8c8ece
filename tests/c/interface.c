/* interface.c - what the interface in C promises, tried from C: interface MODEL.onnx PROGRAM.pt2 FOLDER.
   MODEL.onnx is one Relu from x to y, of float32[n, 3]; PROGRAM.pt2 has weights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tonnx/c.h>
#include <tonnx/version.h>

static int failures = 0;

#define EXPECT(condition) expect((condition) != 0, #condition, __LINE__)

static void expect(int holds, const char* text, int line) {
  if (holds) return;
  fprintf(stderr, "interface.c:%d: does not hold: %s\n", line, text);
  ++failures;
}

/* The status must be that; the error, which must be there where it is none of success, is freed. */
static void expect_status(tonnx_status status, tonnx_status expected, tonnx_error* error, int line) {
  if (status != expected || (error == NULL) != (status == TONNX_OK)) {
    fprintf(stderr, "interface.c:%d: %s, and %s was expected: %s\n", line, tonnx_status_name(status),
            tonnx_status_name(expected), tonnx_error_message(error));
    ++failures;
  }
  if (error != NULL && tonnx_error_status(error) != status) ++failures;
  tonnx_error_free(error);
}

#define EXPECT_STATUS(call, expected, error)             \
  do {                                                   \
    const tonnx_status status_ = (call);                 \
    expect_status(status_, (expected), error, __LINE__); \
    error = NULL;                                        \
  } while (0)

static char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  char* data;
  long end;
  if (file == NULL) {
    perror(path);
    exit(2);
  }
  fseek(file, 0, SEEK_END);
  end = ftell(file);
  rewind(file);
  data = malloc((size_t)end + 1);
  if (data == NULL || fread(data, 1, (size_t)end, file) != (size_t)end) exit(2);
  data[end] = '\0';
  fclose(file);
  *size = (size_t)end;
  return data;
}

static int is_there(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file != NULL) fclose(file);
  return file != NULL;
}

static int holds(const tonnx_buffer* buffer, const char* text) {
  const size_t size = tonnx_buffer_size(buffer), length = strlen(text);
  const char* data = tonnx_buffer_data(buffer);
  size_t i;
  for (i = 0; i + length <= size; ++i) {
    if (memcmp(data + i, text, length) == 0) return 1;
  }
  return 0;
}

static void try_version(void) {
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", TONNX_VERSION_MAJOR, TONNX_VERSION_MINOR, TONNX_VERSION_PATCH);
  EXPECT(strcmp(tonnx_version(), text) == 0);
  EXPECT(strcmp(tonnx_status_name(TONNX_UNSUPPORTED), "unsupported") == 0);
  EXPECT(strcmp(tonnx_status_name((tonnx_status)99), "unknown") == 0);
}

static void look_at(const tonnx_model* model) {
  EXPECT(tonnx_model_format(model) == TONNX_FORMAT_ONNX);
  EXPECT(tonnx_model_opset(model) > 0);
  EXPECT(tonnx_model_node_count(model) == 1);
  EXPECT(tonnx_model_input_count(model) == 1);
  EXPECT(tonnx_model_output_count(model) == 1);
  EXPECT(strcmp(tonnx_model_input_name(model, 0), "x") == 0);
  EXPECT(strcmp(tonnx_model_output_name(model, 0), "y") == 0);
  EXPECT(strcmp(tonnx_model_input_type(model, 0), "float32[n, 3]") == 0);
  EXPECT(strcmp(tonnx_model_output_type(model, 0), "float32[n, 3]") == 0);
  EXPECT(tonnx_model_input_name(model, 1) == NULL);
  EXPECT(tonnx_model_output_type(model, 1) == NULL);
}

static void try_model(const char* path) {
  tonnx_model *model = NULL, *copy = NULL;
  tonnx_error* error = NULL;
  tonnx_buffer *text = NULL, *report = NULL;
  EXPECT_STATUS(tonnx_model_read(path, NULL, &model, &error), TONNX_OK, error);
  look_at(model);
  EXPECT_STATUS(tonnx_model_text(model, &text, &error), TONNX_OK, error);
  EXPECT(holds(text, "Relu"));
  EXPECT(strlen(tonnx_buffer_data(text)) == tonnx_buffer_size(text));
  tonnx_buffer_free(text);
  EXPECT_STATUS(tonnx_model_clone(model, &copy, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_model_infer_shapes(model, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_model_simplify(model, NULL, &report, &error), TONNX_OK, error);
  EXPECT(holds(report, "Relu"));
  tonnx_buffer_free(report);
  look_at(model);
  EXPECT_STATUS(tonnx_model_simplify(model, NULL, NULL, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_model_unsupported(model, TONNX_FORMAT_TORCH_EXPORT, &text, &error), TONNX_OK, error);
  EXPECT(tonnx_buffer_size(text) == 0);
  tonnx_buffer_free(text);
  tonnx_model_free(model);
  look_at(copy);
  tonnx_model_free(copy);
}

static void try_simplify_options(const char* path) {
  const int64_t sizes[] = {4, -1};
  tonnx_model* model = NULL;
  tonnx_error* error = NULL;
  tonnx_simplify_options* options = tonnx_simplify_options_new();
  EXPECT_STATUS(tonnx_model_read(path, NULL, &model, &error), TONNX_OK, error);
  EXPECT(tonnx_simplify_options_set_input_shape(options, "x", sizes, 2) == TONNX_OK);
  EXPECT(tonnx_simplify_options_set_opset(options, 17) == TONNX_OK);
  EXPECT(tonnx_simplify_options_set_fold_limit(options, 1 << 16) == TONNX_OK);
  EXPECT(tonnx_simplify_options_skip(options, "fold_constants") == TONNX_OK);
  EXPECT_STATUS(tonnx_model_simplify(model, options, NULL, &error), TONNX_OK, error);
  EXPECT(strcmp(tonnx_model_input_type(model, 0), "float32[4, 3]") == 0);
  EXPECT(strcmp(tonnx_model_output_type(model, 0), "float32[4, 3]") == 0);
  EXPECT(tonnx_model_opset(model) == 17);
  /* What cannot be leaves the model as it was. */
  EXPECT(tonnx_simplify_options_drop_output(options, "there is no such output") == TONNX_OK);
  EXPECT_STATUS(tonnx_model_simplify(model, options, NULL, &error), TONNX_INVALID_MODEL, error);
  EXPECT(strcmp(tonnx_model_input_type(model, 0), "float32[4, 3]") == 0);
  tonnx_simplify_options_free(options);
  options = tonnx_simplify_options_new();
  EXPECT(tonnx_simplify_options_enable(options, "no such pass") == TONNX_OK);
  EXPECT_STATUS(tonnx_model_simplify(model, options, NULL, &error), TONNX_INVALID_MODEL, error);
  tonnx_simplify_options_free(options);
  options = tonnx_simplify_options_new();
  EXPECT(tonnx_simplify_options_only(options, "fold_constants") == TONNX_OK);
  EXPECT_STATUS(tonnx_model_simplify(model, options, NULL, &error), TONNX_OK, error);
  tonnx_simplify_options_free(options);
  tonnx_model_free(model);
}

static void try_formats(const char* path) {
  static const struct {
    tonnx_format format;
    const char* begins; /* what files of the kind begin with */
    const char* holds;
  } kinds[] = {{TONNX_FORMAT_ONNX, "\x08", "Relu"},
               {TONNX_FORMAT_TORCH_EXPORT, "PK\x03\x04", "aten.relu"},
               {TONNX_FORMAT_TORCH_SCRIPT, "PK\x03\x04", "relu"},
               {TONNX_FORMAT_PYTHON, "\"\"\"", "nn.Module"},
               {TONNX_FORMAT_SAFETENSORS, "", "{"},
               {TONNX_FORMAT_PTH, "PK\x03\x04", "data.pkl"}};
  tonnx_model* model = NULL;
  tonnx_error* error = NULL;
  tonnx_options* shapes = tonnx_options_new(); /* which TorchScript does not say */
  const int64_t sizes[] = {-1, 3};
  size_t i;
  EXPECT(tonnx_options_set_input_shape(shapes, "x", sizes, 2) == TONNX_OK);
  EXPECT(tonnx_options_set_input_type(shapes, "x", "float32") == TONNX_OK);
  EXPECT_STATUS(tonnx_model_read(path, NULL, &model, &error), TONNX_OK, error);
  for (i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
    tonnx_buffer* bytes = NULL;
    EXPECT_STATUS(tonnx_model_to_bytes(model, kinds[i].format, NULL, &bytes, &error), TONNX_OK, error);
    EXPECT(tonnx_buffer_size(bytes) > 4);
    EXPECT(memcmp(tonnx_buffer_data(bytes), kinds[i].begins, strlen(kinds[i].begins)) == 0);
    EXPECT(holds(bytes, kinds[i].holds));
    if (kinds[i].format <= TONNX_FORMAT_TORCH_SCRIPT) {
      const int is_script = kinds[i].format == TONNX_FORMAT_TORCH_SCRIPT;
      tonnx_model* again = NULL;
      EXPECT_STATUS(tonnx_model_read_bytes(tonnx_buffer_data(bytes), tonnx_buffer_size(bytes), kinds[i].format,
                                           is_script ? shapes : NULL, NULL, NULL, &again, &error),
                    TONNX_OK, error);
      EXPECT(tonnx_model_format(again) == kinds[i].format);
      EXPECT(tonnx_model_input_count(again) == 1);
      tonnx_model_free(again);
    } else {
      tonnx_model* again = NULL;
      EXPECT_STATUS(tonnx_model_read_bytes(tonnx_buffer_data(bytes), tonnx_buffer_size(bytes), kinds[i].format, NULL,
                                           NULL, NULL, &again, &error),
                    TONNX_BAD_ARGUMENT, error);
      EXPECT(again == NULL);
    }
    tonnx_buffer_free(bytes);
  }
  look_at(model);
  tonnx_options_free(shapes);
  tonnx_model_free(model);
}

static void count_release(void* context) { ++*(int*)context; }

static void try_lent_bytes(const char* path) {
  size_t size = 0;
  int released = 0;
  char* data = read_file(path, &size);
  tonnx_model *model = NULL, *copy = NULL;
  tonnx_error* error = NULL;
  EXPECT_STATUS(tonnx_model_read_bytes(data, size, TONNX_FORMAT_ONNX, NULL, count_release, &released, &model, &error),
                TONNX_OK, error);
  look_at(model);
  EXPECT_STATUS(tonnx_model_clone(model, &copy, &error), TONNX_OK, error);
  tonnx_model_free(model);
  EXPECT(released == 0);
  tonnx_model_free(copy);
  EXPECT(released == 1);
  EXPECT_STATUS(tonnx_model_read_bytes(data, size, (tonnx_format)77, NULL, count_release, &released, &model, &error),
                TONNX_BAD_ARGUMENT, error);
  EXPECT(released == 2);
  EXPECT_STATUS(
      tonnx_model_read_bytes(data, size - 5, TONNX_FORMAT_ONNX, NULL, count_release, &released, &model, &error),
      TONNX_BAD_FILE, error);
  EXPECT(released == 3);
  EXPECT(model == NULL);
  free(data);
}

static void try_unsupported(const char* path) {
  size_t size = 0, i;
  char* data = read_file(path, &size);
  tonnx_model* model = NULL;
  tonnx_error* error = NULL;
  tonnx_buffer* text = NULL;
  for (i = 0; i + 4 <= size; ++i) {
    if (memcmp(data + i, "Relu", 4) == 0) data[i + 3] = 'x';
  }
  EXPECT_STATUS(tonnx_model_read_bytes(data, size, TONNX_FORMAT_ONNX, NULL, NULL, NULL, &model, &error), TONNX_OK,
                error);
  free(data);
  EXPECT_STATUS(tonnx_model_unsupported(model, TONNX_FORMAT_PYTHON, &text, &error), TONNX_OK, error);
  EXPECT(strncmp(tonnx_buffer_data(text), "Relx", 4) == 0);
  tonnx_buffer_free(text);
  EXPECT_STATUS(tonnx_model_to_bytes(model, TONNX_FORMAT_PYTHON, NULL, &text, &error), TONNX_UNSUPPORTED, error);
  EXPECT(text == NULL);
  tonnx_model_free(model);
}

static int stop_at_once(void* context, double done) {
  *(double*)context = done;
  return 1;
}

static int go_on(void* context, double done) {
  *(double*)context = done;
  return 0;
}

static void try_program(const char* path, const char* folder) {
  char target[1024];
  double done = -1;
  tonnx_model* model = NULL;
  tonnx_error* error = NULL;
  tonnx_buffer* text = NULL;
  tonnx_options* options = tonnx_options_new();
  snprintf(target, sizeof target, "%s/program.safetensors", folder);
  remove(target);
  EXPECT_STATUS(tonnx_model_read(path, NULL, &model, &error), TONNX_OK, error);
  EXPECT(tonnx_model_format(model) == TONNX_FORMAT_TORCH_EXPORT);
  EXPECT(tonnx_model_opset(model) == 0);
  EXPECT(tonnx_model_node_count(model) > 0);
  EXPECT_STATUS(tonnx_model_unsupported(model, TONNX_FORMAT_ONNX, &text, &error), TONNX_OK, error);
  EXPECT(tonnx_buffer_size(text) == 0);
  tonnx_buffer_free(text);
  EXPECT_STATUS(tonnx_model_unsupported(model, TONNX_FORMAT_PYTHON, &text, &error), TONNX_OK, error);
  EXPECT(tonnx_buffer_size(text) == 0);
  tonnx_buffer_free(text);
  EXPECT_STATUS(tonnx_model_simplify(model, NULL, NULL, &error), TONNX_UNSUPPORTED, error);
  EXPECT(tonnx_options_set_progress(options, stop_at_once, &done) == TONNX_OK);
  EXPECT_STATUS(tonnx_model_write(model, target, options, &error), TONNX_CANCELLED, error);
  EXPECT(done >= 0 && done <= 1);
  EXPECT(!is_there(target));
  EXPECT(tonnx_options_set_progress(options, go_on, &done) == TONNX_OK);
  EXPECT_STATUS(tonnx_model_write(model, target, options, &error), TONNX_OK, error);
  EXPECT(done == 1);
  EXPECT(is_there(target));
  tonnx_options_free(options);
  tonnx_model_free(model);
}

static void try_convert(const char* path, const char* folder) {
  const int64_t sizes[] = {2, 3};
  char target[1024];
  tonnx_error* error = NULL;
  tonnx_model* model = NULL;
  tonnx_options* options = tonnx_options_new();
  snprintf(target, sizeof target, "%s/converted.onnx", folder);
  EXPECT(tonnx_options_set_opset(options, 18) == TONNX_OK);
  EXPECT(tonnx_options_set_input_shape(options, "x", sizes, 2) == TONNX_OK);
  EXPECT(tonnx_options_set_external_data(options, 0) == TONNX_OK);
  EXPECT(tonnx_options_set_limit(options, "memory", 1 << 20) == TONNX_OK);
  EXPECT_STATUS(tonnx_convert(path, target, options, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_model_read(target, NULL, &model, &error), TONNX_OK, error);
  EXPECT(tonnx_model_opset(model) == 18);
  EXPECT(strcmp(tonnx_model_input_type(model, 0), "float32[2, 3]") == 0);
  tonnx_model_free(model);
  EXPECT(tonnx_options_set_flat(options, 1) == TONNX_OK);
  EXPECT_STATUS(tonnx_convert(path, target, options, &error), TONNX_INVALID_MODEL, error); /* ONNX has no classes */
  tonnx_options_free(options);

  options = tonnx_options_new();
  snprintf(target, sizeof target, "%s/converted.pt2", folder);
  EXPECT(tonnx_options_add_dynamic(options, "x", 0, "batch", 1, 64) == TONNX_OK);
  EXPECT_STATUS(tonnx_convert(path, target, options, &error), TONNX_OK, error);
  EXPECT_STATUS(tonnx_model_read(target, NULL, &model, &error), TONNX_OK, error);
  tonnx_model_free(model);
  EXPECT(tonnx_options_set_limit(options, "no such limit", 1) == TONNX_OK);
  EXPECT_STATUS(tonnx_convert(path, target, options, &error), TONNX_INVALID_MODEL, error);
  tonnx_options_free(options);
}

static void try_errors(const char* path, const char* folder) {
  char target[1024];
  tonnx_error* error = NULL;
  tonnx_model* model = NULL;
  tonnx_buffer* text = NULL;
  size_t count;
  snprintf(target, sizeof target, "%s/never.py", folder);
  remove(target);
  EXPECT(tonnx_convert("there/is/no/such.onnx", target, NULL, &error) == TONNX_BAD_FILE);
  EXPECT(tonnx_error_status(error) == TONNX_BAD_FILE);
  EXPECT(strstr(tonnx_error_text(error), "such.onnx") != NULL);
  count = tonnx_error_while_count(error);
  EXPECT(count > 0);
  EXPECT(strcmp(tonnx_error_while(error, count - 1), "converting there/is/no/such.onnx") == 0);
  EXPECT(tonnx_error_while(error, count) == NULL);
  EXPECT(strstr(tonnx_error_message(error), tonnx_error_text(error)) == tonnx_error_message(error));
  EXPECT(strstr(tonnx_error_message(error), tonnx_error_while(error, 0)) != NULL);
  tonnx_error_free(error);
  error = NULL;
  EXPECT(!is_there(target));
  EXPECT(tonnx_convert("there/is/no/such.onnx", target, NULL, NULL) == TONNX_BAD_FILE);
  EXPECT_STATUS(tonnx_model_read(target, NULL, &model, &error), TONNX_UNSUPPORTED, error);
  EXPECT_STATUS(tonnx_convert(NULL, target, NULL, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_convert(path, NULL, NULL, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_model_read(path, NULL, NULL, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_model_read(NULL, NULL, &model, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_model_read_bytes(NULL, 8, TONNX_FORMAT_ONNX, NULL, NULL, NULL, &model, &error),
                TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_model_text(NULL, &text, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_model_simplify(NULL, NULL, NULL, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_model_infer_shapes(NULL, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_model_unsupported(NULL, TONNX_FORMAT_ONNX, &text, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_model_write(NULL, target, NULL, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_model_to_bytes(NULL, TONNX_FORMAT_ONNX, NULL, &text, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT_STATUS(tonnx_model_clone(NULL, &model, &error), TONNX_BAD_ARGUMENT, error);
  EXPECT(tonnx_options_set_opset(NULL, 18) == TONNX_BAD_ARGUMENT);
  EXPECT(tonnx_simplify_options_skip(NULL, "x") == TONNX_BAD_ARGUMENT);
  EXPECT(tonnx_model_node_count(NULL) == 0 && tonnx_model_input_name(NULL, 0) == NULL);
  tonnx_error_free(NULL);
  tonnx_buffer_free(NULL);
  tonnx_model_free(NULL);
  tonnx_options_free(NULL);
  tonnx_simplify_options_free(NULL);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: interface MODEL.onnx PROGRAM.pt2 FOLDER\n");
    return 2;
  }
  try_version();
  try_model(argv[1]);
  try_simplify_options(argv[1]);
  try_formats(argv[1]);
  try_lent_bytes(argv[1]);
  try_unsupported(argv[1]);
  try_program(argv[2], argv[3]);
  try_convert(argv[1], argv[3]);
  try_errors(argv[1], argv[3]);
  if (failures == 0) printf("the interface in C keeps its promises\n");
  return failures == 0 ? 0 : 1;
}
