# What is installed: the program, both libraries, the headers, a CMake package and a file for pkg-config.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tonnx)
set(generated ${CMAKE_CURRENT_BINARY_DIR}/package)

if(TONNX_PROGRAM)
  install(TARGETS tonnx_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  # The man page is what the program says of itself; without a Python, or for another machine, there is none.
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(Python3_FOUND AND NOT CMAKE_CROSSCOMPILING)
    file(MAKE_DIRECTORY ${generated})
    add_custom_command(TARGET tonnx_cli POST_BUILD
                       COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/man_page.py $<TARGET_FILE:tonnx_cli>
                               ${generated}/tonnx.1)
    install(FILES ${generated}/tonnx.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
  endif()
endif()

if(TONNX_STATIC OR TONNX_SHARED)
  install(DIRECTORY include/tonnx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
  # A set of targets for each library, so that a package may have only one of them.
  foreach(kind static shared)
    string(TOUPPER ${kind} option)
    if(NOT TONNX_${option})
      continue()
    endif()
    install(TARGETS tonnx_${kind} EXPORT tonnx_${kind}_targets
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
    install(EXPORT tonnx_${kind}_targets FILE tonnx_${kind}.cmake NAMESPACE tonnx:: DESTINATION ${package_folder}
            COMPONENT development)
  endforeach()
  configure_package_config_file(cmake/tonnxConfig.cmake.in ${generated}/tonnxConfig.cmake
                                INSTALL_DESTINATION ${package_folder})
  write_basic_package_version_file(${generated}/tonnxConfigVersion.cmake COMPATIBILITY ${TONNX_COMPATIBILITY})
  install(FILES ${generated}/tonnxConfig.cmake ${generated}/tonnxConfigVersion.cmake DESTINATION ${package_folder}
          COMPONENT development)

  # The folders are told from that of the file itself, so that a package that was moved is still found.
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
             OUTPUT_VARIABLE TONNX_PREFIX_FROM_PKGCONFIG)
  configure_file(cmake/tonnx.pc.in ${generated}/tonnx.pc @ONLY)
  install(FILES ${generated}/tonnx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endif()
