// script.h - lists of tensors, what may be absent, and conditions in TorchScript's code.
#pragma once
#include "ops/frame/script_node.h"

namespace tonnx {

std::string script_both(ScriptNode& n);
std::string script_either(ScriptNode& n);
std::string script_count_if(ScriptNode& n);
std::string script_list(ScriptNode& n);
std::string script_list_at(ScriptNode& n);
std::string script_list_length(ScriptNode& n);
std::string script_list_insert(ScriptNode& n);
std::string script_list_erase(ScriptNode& n);
std::string script_unbind_list(ScriptNode& n);
std::string script_split_list(ScriptNode& n);
std::string script_none(ScriptNode& n);
std::string script_is_given(ScriptNode& n);

}  // namespace tonnx
