// export.h - TONNX_API, in C and in C++: marks what the shared library exports; all else in it is hidden.
#ifndef TONNX_EXPORT_H
#define TONNX_EXPORT_H

/// Stands before each function and class of the public headers: `TONNX_API const char* version();`,
/// `class TONNX_API Model`. The objects of the static and of the shared library are the same, so it does not depend on
/// which of them a program links.
#if defined(__GNUC__) || defined(__clang__)
#define TONNX_API __attribute__((visibility("default")))
#else
#define TONNX_API
#endif

#endif
