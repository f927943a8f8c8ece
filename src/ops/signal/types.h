// types.h - types of what transforms give.
#pragma once
#include "ops/frame/aten_types.h"

namespace tonnx {

void types_fft(TypeNode& n);
void types_rfft(TypeNode& n);
void types_irfft(TypeNode& n);
void types_fft_of_many(TypeNode& n);  // fftn, rfft2 and so on, by the name of the node
void types_stft(TypeNode& n);
void types_istft(TypeNode& n);

}  // namespace tonnx
