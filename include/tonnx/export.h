// export.h - what every header of the interface begins with: its namespace, and the mark of what a shared library
// shows.
#pragma once

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

#if defined(__GNUC__)
#define TONNX_API __attribute__((visibility("default")))
#else
#define TONNX_API
#endif
