// test_package.cpp - calls the library through both of its headers; a file that is not there is an error, and no crash.
#include <tonnx/c.h>
#include <tonnx/tonnx.h>

#include <cstdio>
#include <cstring>
#include <exception>

int main() {
  bool is_refused = false;
  try {
    tonnx::convert("there is no such.onnx", "never.py");
  } catch (const std::exception& e) {
    is_refused = std::strstr(e.what(), "no such") != nullptr;
  }
  tonnx_error* error = nullptr;
  const bool is_refused_in_c = tonnx_convert("there is no such.onnx", "never.py", nullptr, &error) == TONNX_BAD_FILE;
  std::printf("tonnx %s: %s\n", tonnx_version(), tonnx_error_message(error));
  tonnx_error_free(error);
  return is_refused && is_refused_in_c && std::strcmp(tonnx_version(), tonnx::version()) == 0 ? 0 : 1;
}
