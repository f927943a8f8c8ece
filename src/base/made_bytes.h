// made_bytes.h - large results that are made piece by piece.
#pragma once
#include <functional>

#include "base/bytes.h"

namespace tonnx {

/// Fills memory with that many bytes of a result, from an offset on. Several threads call it at once; it must not
/// throw.
using MakeBytes = std::function<void(size_t offset, uint8_t* into, size_t size)>;

/// Makes the bytes on all cores, in pieces that begin at multiples of 256 kB. As with Scratch, large results lie in a
/// temporary file; but they are written to it, and not to its pages, which the system would fill with zeros before.
Bytes made_bytes(size_t size, const MakeBytes& make);

}  // namespace tonnx
