# Tests of what other programs see: the interface in C, from C, and what the shared library exports.
enable_language(C)
function(tonnx_c_program target source)
  add_executable(${target} ${source})
  set_target_properties(${target} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF LINKER_LANGUAGE CXX)
  target_compile_options(${target} PRIVATE -Wall -Wextra -pedantic -Werror)
  target_link_libraries(${target} PRIVATE tonnx)
endfunction()
tonnx_c_program(tonnx_c_test tests/c/interface.c)
tonnx_c_program(tonnx_c_changes_test tests/c/changes.c)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/c_test ${PROJECT_BINARY_DIR}/c_changes_test)
add_test(NAME InterfaceInC COMMAND tonnx_c_test ${PROJECT_SOURCE_DIR}/examples/cpp/relu.onnx
         ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/pt2/static.pt2 ${PROJECT_BINARY_DIR}/c_test)
add_test(NAME ChangesInC COMMAND tonnx_c_changes_test ${PROJECT_BINARY_DIR}/c_changes_test)

if(TONNX_SHARED)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  add_test(NAME ExportedSymbols COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_abi.py symbols
           $<TARGET_FILE:tonnx_shared>)
endif()
