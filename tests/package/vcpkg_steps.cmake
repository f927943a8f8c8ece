# Runs the steps of packaging/vcpkg/portfile.cmake by hand, without vcpkg: each of its functions does here what it does there,
# as far as the port needs it, with the libraries of the system. cmake -DLINKAGE=static -DFEATURES=program -DSCRATCH=folder
# -DBUILDS=OFF -P vcpkg_steps.cmake; without BUILDS nothing is compiled, and what would be installed is not looked at.
cmake_minimum_required(VERSION 3.25)
get_filename_component(CURRENT_PORT_DIR "${CMAKE_CURRENT_LIST_DIR}/../../packaging/vcpkg" ABSOLUTE)
set(CURRENT_PACKAGES_DIR ${SCRATCH}/packages)
set(VCPKG_LIBRARY_LINKAGE ${LINKAGE})

function(vcpkg_check_features)
  cmake_parse_arguments(given "" "OUT_FEATURE_OPTIONS" "FEATURES" ${ARGN})
  set(options "")
  while(given_FEATURES)
    list(POP_FRONT given_FEATURES feature variable)
    if(feature IN_LIST FEATURES)
      list(APPEND options -D${variable}=ON)
    else()
      list(APPEND options -D${variable}=OFF)
    endif()
  endwhile()
  set(${given_OUT_FEATURE_OPTIONS} ${options} PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(given "" "SOURCE_PATH" "OPTIONS" ${ARGN})
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${given_SOURCE_PATH} -B ${SCRATCH}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
                          ${given_OPTIONS} OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE result)
  if(NOT result EQUAL 0 OR said MATCHES "CMake Warning|not used by the project")
    message(FATAL_ERROR "${said}")
  endif()
endfunction()

function(vcpkg_cmake_install)
  if(BUILDS)
    execute_process(COMMAND ${CMAKE_COMMAND} --build ${SCRATCH}/build COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${CMAKE_COMMAND} --install ${SCRATCH}/build --prefix ${CURRENT_PACKAGES_DIR}
                    COMMAND_ERROR_IS_FATAL ANY)
  endif()
endfunction()

function(require_installed path)
  if(BUILDS AND NOT EXISTS ${CURRENT_PACKAGES_DIR}/${path})
    message(FATAL_ERROR "${path} is not installed")
  endif()
endfunction()

function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(given "" "PACKAGE_NAME;CONFIG_PATH" "" ${ARGN})
  require_installed(${given_CONFIG_PATH}/${given_PACKAGE_NAME}Config.cmake)
endfunction()

function(vcpkg_fixup_pkgconfig)
  require_installed(lib/pkgconfig/tonnx.pc)
endfunction()

function(vcpkg_copy_tools)
  cmake_parse_arguments(given "AUTO_CLEAN" "" "TOOL_NAMES" ${ARGN})
  foreach(name ${given_TOOL_NAMES})
    require_installed(bin/${name})
  endforeach()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(given "" "" "FILE_LIST" ${ARGN})
  file(COPY ${given_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/tonnx)
endfunction()

include(${CURRENT_PORT_DIR}/portfile.cmake)
if(BUILDS AND LINKAGE STREQUAL "dynamic" AND EXISTS ${CURRENT_PACKAGES_DIR}/lib/libtonnx.a)
  message(FATAL_ERROR "a port of the shared library has the static one too")
endif()
