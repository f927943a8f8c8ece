// sample_loop.h - a model of one sample as a Scan over samples, where it cannot compute several at once.
#pragma once
#include <optional>

#include "convert/opening/request.h"

namespace tonnx {

/// The model runs once for each sample. Nothing where that cannot be: sizes that are no samples are opened too, an
/// output has no dimension of 1 for its sample or sizes that vary, or the opset has no Scan.
std::optional<Model> loop_over_samples(const Model& model, const OpeningRequest& request, const FixedTypes& types);

}  // namespace tonnx
