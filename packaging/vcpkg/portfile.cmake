# The port of tonnx, as an overlay inside the source tree: vcpkg install tonnx --overlay-ports=packaging/vcpkg. In a registry
# vcpkg_from_github takes the place of SOURCE_PATH. fmt has to be 9: "overrides" of the manifest that asks for tonnx says so.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)

string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "static" is_static)
string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "dynamic" is_shared)
vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES program TONNX_PROGRAM)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${features}
    -DTONNX_STATIC=${is_static}
    -DTONNX_SHARED=${is_shared}
    -DTONNX_STATIC_PROGRAM=OFF
    -DTONNX_TESTS=OFF
    -DTONNX_PYTHON=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME tonnx CONFIG_PATH lib/cmake/tonnx)
vcpkg_fixup_pkgconfig()
if("program" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES tonnx AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
     "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
