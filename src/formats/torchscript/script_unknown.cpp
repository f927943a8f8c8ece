// script_unknown.cpp - walks over all code of an archive, and looks up each operator that it calls.
#include "formats/torchscript/script_unknown.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/error.h"
#include "formats/torchscript/script_calls.h"

namespace tonnx::torchscript {
namespace {

/// What the interpreter computes itself, and the tables of operators do not have.
constexpr std::string_view kComputed =
    " Bool Delete Float FloatImplicit Int IntImplicit ListUnpack NumToTensor RaiseException ScalarImplicit"
    " TupleUnpack __and__ __contains__ __derive_index __getitem__ __is__ __isnot__ __lshift__ __not__"
    " __or__ __range_length __rshift__ __xor__ _assert _convolution _convolution_mode _native_multi_head_attention "
    "_set_item"
    " _transformer_encoder_layer_fwd _weight_norm append as_tensor clear copy_ cpu cuda data detach detach_ device "
    "dict dim"
    " dtype element_size endswith extend floordiv format get insert is_autocast_cpu_enabled"
    " is_autocast_enabled is_complex is_floating_point is_grad_enabled is_scripting item items keys layout"
    " len list manual_seed ndim ndimension numel pin_memory pop requires_grad requires_grad_ reverse shape"
    " size startswith str tensor tolist type unchecked_unwrap_optional update values view_copy wait warn zero_ ";

struct Place {
  std::string file;
  uint32_t line = 0;
};

class UnknownOperators {
 public:
  void walk(const Function& function) {
    file_ = function.file;
    walk(function.body);
  }

  bool is_named_in(const std::string& error) const {
    return std::any_of(found_.begin(), found_.end(), [&](const auto& each) {
      const size_t at = error.find(each.first);
      const size_t end = at + each.first.size();
      return at != std::string::npos && (end == error.size() || error[end] == ' ');
    });
  }

  std::string text() const {
    constexpr size_t kShown = 3;
    std::string result;
    for (const auto& [name, places] : found_) {
      std::vector<std::string> texts;
      for (const Place& place : places) {
        if (texts.size() < kShown) texts.push_back(error_text("{}, line {}", place.file, place.line));
      }
      result += fmt::format("\n  {}, {} time{}: {}{}", shown(name), places.size(), places.size() == 1 ? "" : "s",
                            fmt::join(texts, "; "), places.size() > kShown ? " ..." : "");
    }
    return result;
  }

 private:
  void walk(const Block& block) {
    for (const Stmt& stmt : block) {
      for (const ExprPtr& target : stmt.targets) walk(target.get());
      walk(stmt.value.get());
      walk(stmt.body);
      walk(stmt.otherwise);
      if (stmt.function) walk(stmt.function->body);
    }
  }

  void walk(const Expr* expr) {
    if (expr == nullptr) return;
    if (expr->kind == Expr::Kind::Call) look_up(*expr);
    for (const ExprPtr& item : expr->items) walk(item.get());
  }

  /// `torch.relu` is aten::relu, `ops.torchvision.nms` torchvision::nms.
  void look_up(const Expr& call) {
    const Expr& callee = *call.items[0];
    if (callee.kind != Expr::Kind::Attribute) return;
    const Expr& library = *callee.items[0];
    if (library.is_name("torch")) return look_up("aten", callee.text, call.line);
    if (library.kind == Expr::Kind::Attribute && library.items[0]->is_name("ops"))
      look_up(library.text, callee.text, call.line);
  }

  void look_up(const std::string& library, const std::string& op, uint32_t line) {
    const bool is_computed =
        (library == "aten" || library == "prim") &&
        (kComputed.find(" " + op + " ") != std::string_view::npos || op.starts_with("is_") || library == "prim");
    if (!is_computed && !ScriptCalls::is_known(library, op)) found_[library + "::" + op].push_back({file_, line});
  }

  std::string file_;
  std::map<std::string, std::vector<Place>> found_;
};

}  // namespace

std::string list_unknown_operators(const ScriptArchive& archive, const std::string& error) {
  UnknownOperators unknown;
  for (const Unit& unit : archive.units()) {
    for (const Function& function : unit.functions) unknown.walk(function);
    for (const Class& each : unit.classes) {
      for (const auto& [name, method] : each.methods) unknown.walk(method);
    }
  }
  return unknown.is_named_in(error) ? unknown.text() : std::string();
}

}  // namespace tonnx::torchscript
