// plain_layers.h - layers without weights that do what a node does.
#pragma once
#include <string>

#include "ir/graph.h"

namespace tonnx {

/// `nn.MaxPool2d(3, stride=2)`; empty where there is none.
std::string plain_layer(const Node& node);

}  // namespace tonnx
