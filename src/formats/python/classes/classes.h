// classes.h - the classes that a model is written as: parts of it that are alike share one.
#pragma once
#include <string>
#include <vector>

#include "formats/python/python.h"
#include "formats/python/statements/statements.h"
#include "modules/outline.h"

namespace tonnx::python {

/// What an nn.Sequential has under a name.
struct ChainItem {
  std::string name, text;
};

/// A class, as text that is to be laid out.
struct ClassText {
  std::string name;
  std::string about;                    // where its modules are in the model; empty for the model itself
  std::vector<std::string> parameters;  // of the constructor
  std::vector<Statement> members;       // of the constructor
  bool has_forward = false;
  bool is_sequential = false;    // an nn.Sequential, which its constructor fills
  bool is_chain = false;         // an nn.Sequential whose members have names
  std::vector<ChainItem> chain;  // what it calls one behind the other, where that is all that it does
  Forward forward;
  std::vector<MethodText> others;
};

/// Each behind those that it uses; the model is the last.
/// Parts of the model are changed so that more of them are alike.
std::vector<ClassText> write_classes(ModulePart& model, const std::vector<ExternalModule>& external);

}  // namespace tonnx::python
