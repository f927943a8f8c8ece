// export.h - what every header of the interface begins with, in C and in C++: the mark of what the shared library
// exports, and the namespace.
#ifndef TONNX_EXPORT_H
#define TONNX_EXPORT_H

/// Stands before each function and class of the public headers; all else in the shared library is hidden. The objects
/// of the static and of the shared library are the same, so it does not depend on which of them a program links.
#if defined(__GNUC__)
#define TONNX_API __attribute__((visibility("default")))
#else
#define TONNX_API
#endif

/// The names of the interface are in `tonnx`; what the linker sees has the version of the binary interface in it, so
/// that two versions can be in one program. The sources of the library, whose inner types have some of the same names,
/// define TONNX_INTERNAL, and write `v1::Model` where users write `tonnx::Model`.
#ifdef TONNX_INTERNAL
#define TONNX_BEGIN namespace tonnx::v1 {
#define TONNX_END }
#else
#define TONNX_BEGIN \
  namespace tonnx { \
  inline namespace v1 {
#define TONNX_END \
  }               \
  }
#endif

#endif
