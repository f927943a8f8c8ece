# The shared library once more, with debugging information of the public interface, for abidw and abidiff: only the layer of the
# interface is compiled for it, and only on request (make test-abi).
if(TONNX_SHARED)
  file(GLOB api_sources CONFIGURE_DEPENDS src/api/*.cpp)
  set(other_objects ${objects})
  list(REMOVE_ITEM other_objects $<TARGET_OBJECTS:tonnx_api>)
  add_library(tonnx_described SHARED EXCLUDE_FROM_ALL ${api_sources} ${other_objects})
  tonnx_options(tonnx_described)
  target_compile_options(tonnx_described PRIVATE -O0 -g -U_FORTIFY_SOURCE -fvisibility-inlines-hidden)
  target_link_libraries(tonnx_described PRIVATE ${TONNX_PRIVATE_LIBRARIES})
  target_link_options(tonnx_described PRIVATE -Wl,--version-script=${version_script})
  set_target_properties(tonnx_described PROPERTIES SOVERSION ${TONNX_SOVERSION} VERSION ${PROJECT_VERSION}
                        OUTPUT_NAME tonnx LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/described
                        UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
endif()
