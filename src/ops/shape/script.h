// script.h - sizes, and tensors that are made of numbers, in TorchScript's code.
#pragma once
#include "ops/frame/script_node.h"

namespace tonnx {

std::string script_item(ScriptNode& n);  // the number that a tensor of one element holds
std::string script_int_tensor(ScriptNode& n);
std::string script_int_scalar(ScriptNode& n);
std::string script_tolist(ScriptNode& n);
std::string script_list_item(ScriptNode& n);
std::string script_shape(ScriptNode& n);
std::string script_copied_zeros(ScriptNode& n);
std::string script_axes(ScriptNode& n);
std::string script_reversed_axes(ScriptNode& n);
std::string script_broadcast_shapes(ScriptNode& n);
std::string script_power(ScriptNode& n);
std::string script_same_number(ScriptNode& n);
std::string script_not(ScriptNode& n);
std::string script_choice(ScriptNode& n);

}  // namespace tonnx
