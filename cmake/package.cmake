# cpack makes a .deb of what is installed; `make deb` and `cpack --config build/release/CPackConfig.cmake` do it.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tonnx)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The tonnx developers <maintainers@tonnx.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "converts neural networks between ONNX and PyTorch")
set(CPACK_PACKAGE_DESCRIPTION
    "tonnx carries neural networks between ONNX and PyTorch, in both directions, without PyTorch or Python: it reads .onnx files,
programs of torch.export (.pt2) and TorchScript (.pt), and writes each of them, readable code of an nn.Module (.py) with its
weights beside it, or the weights alone (.safetensors, .pth).
.
It also makes models of ONNX simpler, infers their shapes, brings them from one opset to another, lists what cannot be
converted before anything is, and does many conversions as a YAML file lists them. Files of strangers are read with limits, and
nothing in them is run.
.
This package has the program tonnx with its man page, and the library that it is made of for C++ and C: static and shared, with
headers, a CMake package, and a file for pkg-config.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/deb)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
# What the shared library and the program link is found by dpkg-shlibdeps; the static library is linked with these.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libyaml-cpp-dev, zlib1g-dev")
# Other packages learn from `shlibs` what to depend on.
file(WRITE ${PROJECT_BINARY_DIR}/package/shlibs "libtonnx ${TONNX_SOVERSION} tonnx (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/package/shlibs ${PROJECT_SOURCE_DIR}/cmake/debian/postinst
    ${PROJECT_SOURCE_DIR}/cmake/debian/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tonnx RENAME copyright COMPONENT development)
include(CPack)
