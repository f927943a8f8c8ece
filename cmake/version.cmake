# The version, out of include/tonnx/version.h, and what follows from it: TONNX_VERSION_TEXT and TONNX_SOVERSION.
foreach(part MAJOR MINOR PATCH)
  file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../include/tonnx/version.h" line REGEX "define TONNX_VERSION_${part} [0-9]+$")
  string(REGEX REPLACE ".* " "" TONNX_VERSION_${part} "${line}")
endforeach()
set(TONNX_VERSION_TEXT "${TONNX_VERSION_MAJOR}.${TONNX_VERSION_MINOR}.${TONNX_VERSION_PATCH}")

# What programs that are compiled once can rely on: before 1.0 a minor version may change anything, later only a major one.
if(TONNX_VERSION_MAJOR EQUAL 0)
  set(TONNX_SOVERSION "0.${TONNX_VERSION_MINOR}")
  set(TONNX_COMPATIBILITY SameMinorVersion)
else()
  set(TONNX_SOVERSION "${TONNX_VERSION_MAJOR}")
  set(TONNX_COMPATIBILITY SameMajorVersion)
endif()
