# What tonnx is built with: headers of fmt, protozero, RapidJSON and CLI11, and the libraries of zlib, yaml-cpp and threads.
option(TONNX_STATIC_PROGRAM "Link the program tonnx statically, so that it needs nothing where it runs" ON)

if(NOT TARGET fmt::fmt)
  find_package(fmt 9 REQUIRED)
  if(fmt_VERSION VERSION_GREATER_EQUAL 10)
    message(FATAL_ERROR "tonnx is written for fmt 9, and fmt ${fmt_VERSION} was found")
  endif()
endif()
# What is compiled of fmt, and is in the static library, has a namespace of its own: a program may have another fmt.
add_compile_definitions("FMT_BEGIN_NAMESPACE=namespace fmt { inline namespace tonnx_v9 {" "FMT_END_NAMESPACE=}}")
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)

if(TONNX_STATIC_PROGRAM)
  # By their names: the static program takes libz.a and libyaml-cpp.a, and shared libraries, which need position-independent
  # code, libz.so and libyaml-cpp.so.
  set(TONNX_ZLIB z)
  set(TONNX_YAML yaml-cpp)
else()
  find_package(yaml-cpp REQUIRED)
  set(TONNX_ZLIB ZLIB::ZLIB)
  set(TONNX_YAML $<IF:$<TARGET_EXISTS:yaml-cpp::yaml-cpp>,yaml-cpp::yaml-cpp,yaml-cpp>)
endif()

# Headers that are nowhere a compiler looks by itself; those of the system are left out by CMake.
set(TONNX_HEADERS "")
foreach(header fmt/format.h protozero/pbf_reader.hpp rapidjson/document.h yaml-cpp/yaml.h)
  string(MAKE_C_IDENTIFIER "TONNX_FOLDER_OF_${header}" folder)
  find_path(${folder} ${header} REQUIRED)
  mark_as_advanced(${folder})
  list(APPEND TONNX_HEADERS ${${folder}})
endforeach()
if(TONNX_PROGRAM OR TONNX_PYTHON)
  find_path(TONNX_FOLDER_OF_CLI11 CLI/CLI.hpp REQUIRED)
  mark_as_advanced(TONNX_FOLDER_OF_CLI11)
  list(APPEND TONNX_HEADERS ${TONNX_FOLDER_OF_CLI11})
endif()
list(REMOVE_DUPLICATES TONNX_HEADERS)
