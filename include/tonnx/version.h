// version.h - the version of tonnx, in C and in C++. It is written here and nowhere else: the build reads it from here.
#ifndef TONNX_VERSION_H
#define TONNX_VERSION_H

/// Semantic versioning. While the first number is 0, programs are compiled anew where the second one changes; later,
/// where the first one does.
#define TONNX_VERSION_MAJOR 0
#define TONNX_VERSION_MINOR 1
#define TONNX_VERSION_PATCH 0

/// One number to compare with, such as `#if TONNX_VERSION_NUMBER >= 10200` for 1.2.0.
#define TONNX_VERSION_NUMBER (TONNX_VERSION_MAJOR * 10000 + TONNX_VERSION_MINOR * 100 + TONNX_VERSION_PATCH)

#endif
