/* convert_model.c - converts one model with the library, in C: convert_model model.onnx model.pt. */
#include <stdio.h>
#include <stdlib.h>
#include <tonnx/c.h>

/* Prints what is wrong, frees it, and ends the program. */
static void require_ok(tonnx_status status, tonnx_error* error) {
  if (status == TONNX_OK) return;
  fprintf(stderr, "error: %s\n", tonnx_error_message(error));
  tonnx_error_free(error);
  exit(1);
}

int main(int argc, char** argv) {
  tonnx_model* model = NULL;
  tonnx_error* error = NULL;
  tonnx_buffer* missing = NULL;
  size_t i;
  if (argc != 3) {
    fprintf(stderr, "usage: convert_model model.onnx model.pt\n");
    return 1;
  }
  require_ok(tonnx_model_read(argv[1], NULL, &model, &error), error);
  for (i = 0; i < tonnx_model_input_count(model); ++i)
    printf("input %s: %s\n", tonnx_model_input_name(model, i), tonnx_model_input_type(model, i));

  require_ok(tonnx_model_unsupported(model, TONNX_FORMAT_TORCH_SCRIPT, &missing, &error), error);
  printf("%s", (const char*)tonnx_buffer_data(missing)); /* nothing, where all operators can be converted */
  tonnx_buffer_free(missing);

  require_ok(tonnx_model_simplify(model, NULL, NULL, &error), error);
  require_ok(tonnx_model_write(model, argv[2], NULL, &error), error);
  tonnx_model_free(model);
  return 0;
}
