// syntax.h - the code of an archive as trees: expressions, statements, functions and classes.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tonnx::torchscript {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  enum class Kind : uint8_t {
    Name,       // text
    Int,        // integer
    Float,      // real
    Text,       // text
    Tuple,      // items
    List,       // items
    Dict,       // items: a key, its value, and so on
    Subscript,  // items: of what, and the index
    Slice,      // items: of what, begin and end, where each may be null
    Attribute,  // items[0].text
    Call,       // items[0] called with the others; the last of them by the keywords
    Unary,      // text: - or not
    Binary,     // text: the operator between the two items
    Choice,     // items[1] ? items[0] : items[2], in Python's own order
  };
  Kind kind = Kind::Name;
  uint32_t line = 0;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<ExprPtr> items;
  std::vector<std::string> keywords;

  bool is_name(std::string_view name) const { return kind == Kind::Name && text == name; }
};

struct Function;
struct Stmt;
using Block = std::vector<Stmt>;

struct Stmt {
  enum class Kind : uint8_t { Assign, Expression, Return, Pass, If, For, While, With, Def, Assert, Raise, Delete };
  Kind kind = Kind::Pass;
  uint32_t line = 0;
  std::vector<ExprPtr> targets;  // of an assignment and a loop
  bool unpacks = false;          // several targets, or one with a comma behind it
  std::string sign;              // of an assignment: `+` for +=
  ExprPtr value;                 // what is assigned, asked, walked over, called or returned
  Block body, otherwise;
  std::shared_ptr<Function> function;  // a local one
};

struct Parameter {
  std::string name;
  ExprPtr type;   // null: a tensor
  ExprPtr value;  // the default; null: none
};

struct Function {
  std::string name;
  std::string file;
  uint32_t line = 0;
  std::vector<Parameter> parameters;
  ExprPtr result;  // null: not said
  Block body;
};

struct Class {
  std::string name;  // in full: __torch__.pkg.Net
  std::string base;  // Module, NamedTuple, Enum, ModuleInterface, or nothing
  std::vector<std::string> parameters, buffers;
  std::vector<std::pair<std::string, ExprPtr>> fields;    // in their order, with their types
  std::map<std::string, ExprPtr, std::less<>> constants;  // values that the class itself has
  std::map<std::string, Function, std::less<>> methods;
};

/// All of one file of code.
struct Unit {
  std::vector<Class> classes;
  std::vector<Function> functions;
};

/// `scope` is what the names of its classes and functions begin with: __torch__.torch.nn. Throws BadFile with the line.
Unit parse_unit(std::string_view source, const std::string& scope, const std::string& file);

}  // namespace tonnx::torchscript
