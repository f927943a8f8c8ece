// input_sizes.h - gives the inputs of a model other sizes than its file declares, and declares what follows.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/model.h"

namespace tonnx {

/// A size of an input that may vary from call to call.
struct DynamicDim {
  std::string input;  // empty: all that have a first size as large as that of the first input
  int64_t axis;
  std::string name;
  int64_t low = 0;
  std::optional<int64_t> high;
};

/// By input; -1 leaves a size as it is.
using ShapesByInput = std::map<std::string, std::vector<int64_t>>;

struct ConvertOptions;

/// Where an input of the model is among all; throws InvalidModel where there is none of that name.
size_t require_input(const Model& model, const std::string& name);

/// Gives inputs other shapes than the file does. A size that the file fixes to another
/// number is opened first, so that what the model has of it follows; throws Unsupported where that cannot be.
void set_input_shapes(Model& model, const ShapesByInput& shapes);

/// Makes sizes of inputs symbols; those of one name are equal.
void set_dynamic_dims(Model& model, const ConvertOptions& options);

/// The types of the model's outputs, with their ranks but without their sizes.
std::vector<Type> output_ranks(const Model& model);
/// Forgets the shapes of all values but the inputs: they held for other sizes of these.
void forget_declared_shapes(Model& model);
/// Declares the outputs as they have been inferred. Where inference found nothing they are `declared`, and so are sizes
/// that it only has a made-up name for.
void declare_outputs(Graph& graph, const std::vector<Type>& declared);
/// Infers the types of the outputs anew, from other sizes of the inputs, and declares them.
void infer_outputs(Model& model, const std::vector<Type>& declared);

}  // namespace tonnx
