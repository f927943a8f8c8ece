# The libraries that programs link: libtonnx.a, libtonnx.so, both out of the objects of the layers, and tonnx::tonnx.
if(TONNX_SANITIZE OR TONNX_FUZZ)
  # for the tests and the fuzzers the layers are enough
  set(TONNX_STATIC OFF)
  set(TONNX_SHARED OFF)
endif()

set(objects $<TARGET_OBJECTS:tonnx_rows> $<TARGET_OBJECTS:tonnx_evaluations>)
foreach(layer ${TONNX_LAYERS})
  list(APPEND objects $<TARGET_OBJECTS:tonnx_${layer}>)
endforeach()

# Where they are installed the dependencies are targets, which tonnxConfig.cmake finds.
set(TONNX_PRIVATE_LIBRARIES
    $<BUILD_INTERFACE:${TONNX_YAML}> $<BUILD_INTERFACE:${TONNX_ZLIB}>
    $<INSTALL_INTERFACE:$<IF:$<TARGET_EXISTS:yaml-cpp::yaml-cpp>,yaml-cpp::yaml-cpp,yaml-cpp>>
    $<INSTALL_INTERFACE:ZLIB::ZLIB> Threads::Threads)

function(tonnx_library target kind)
  add_library(${target} ${kind} ${objects})
  add_library(tonnx::${ARGV2} ALIAS ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME tonnx EXPORT_NAME ${ARGV2} LINKER_LANGUAGE CXX)
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE ${TONNX_PRIVATE_LIBRARIES})
endfunction()

if(TONNX_STATIC)
  tonnx_library(tonnx_static STATIC static)
endif()
if(TONNX_SHARED)
  tonnx_library(tonnx_shared SHARED shared)
  set(version_script ${CMAKE_CURRENT_BINARY_DIR}/tonnx.map)
  configure_file(cmake/tonnx.map.in ${version_script} @ONLY)
  target_link_options(tonnx_shared PRIVATE -Wl,-z,defs -Wl,--version-script=${version_script})
  set_target_properties(tonnx_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${TONNX_SOVERSION}
                        LINK_DEPENDS ${version_script})
endif()

# Inside the build tonnx::tonnx is the layers themselves, so that nothing waits for an archive of all of them.
add_library(tonnx INTERFACE)
target_include_directories(tonnx INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
list(GET TONNX_LAYERS -1 top_layer)
target_link_libraries(tonnx INTERFACE tonnx_${top_layer})
if(BUILD_SHARED_LIBS AND TONNX_SHARED)
  add_library(tonnx::tonnx ALIAS tonnx_shared)
else()
  add_library(tonnx::tonnx ALIAS tonnx)
endif()
