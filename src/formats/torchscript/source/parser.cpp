// parser.cpp - recursive descent over the words of an archive's code.
#include <charconv>
#include <limits>

#include "base/budget.h"
#include "base/error.h"
#include "formats/torchscript/source/syntax.h"
#include "formats/torchscript/source/tokens.h"

namespace tonnx::torchscript {
namespace {

using Kind = Token::Kind;

/// How tightly an operator between two expressions binds; 0: it is none.
int binding_of(const Token& token) {
  if (token.is("or")) return 1;
  if (token.is("and")) return 2;
  for (const std::string_view sign : {"==", "!=", "<", "<=", ">", ">=", "is", "in"}) {
    if (token.is(sign)) return 4;
  }
  if (token.is("|")) return 5;
  if (token.is("^")) return 6;
  if (token.is("&")) return 7;
  if (token.is("<<") || token.is(">>")) return 8;
  if (token.is("+") || token.is("-")) return 9;
  if (token.is("*") || token.is("/") || token.is("//") || token.is("%") || token.is("@")) return 10;
  return token.is("**") ? 12 : 0;
}
constexpr int kNot = 3, kMinus = 11, kPower = 12;

class Parser {
 public:
  Parser(std::string_view source, const std::string& scope, const std::string& file)
      : tokens_(tokens_of(source)), scope_(scope), file_(file) {}

  Unit run() {
    Unit unit;
    while (!at(Kind::End)) {
      if (now().is("class")) {
        unit.classes.push_back(parse_class());
      } else if (now().is("def")) {
        unit.functions.push_back(parse_function());
      } else {
        statement();  // op_version_set = 1
      }
    }
    return unit;
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  bool at(Kind kind) const { return now().kind == kind; }
  const Token& take() {
    const Token& token = tokens_[at_];
    if (token.kind != Kind::End) ++at_;
    return token;
  }
  bool accept(std::string_view sign) {
    if (!now().is(sign)) return false;
    take();
    return true;
  }
  [[noreturn]] void fail_here(std::string_view wanted) const {
    fail(ErrorKind::BadFile, "line {}: there is '{}' where {} is due", now().line, now().text, wanted);
  }
  void expect(std::string_view sign) {
    if (!accept(sign)) fail_here(std::string("'") + std::string(sign) + "'");
  }
  void expect(Kind kind, std::string_view wanted) {
    if (!at(kind)) fail_here(wanted);
    take();
  }
  std::string name() {
    if (!at(Kind::Name)) fail_here("a name");
    return std::string(take().text);
  }

  ExprPtr make(Expr::Kind kind) const {
    budget().take(Resource::Memory, sizeof(Expr));
    auto made = std::make_unique<Expr>();
    made->kind = kind;
    made->line = now().line;
    return made;
  }

  /// Depth of the tree: whoever walks over it recurses.
  struct Deeper {
    explicit Deeper(Parser& parser) : parser(parser) {
      constexpr int kMostDepth = 600;
      if (++parser.depth_ > kMostDepth) fail(ErrorKind::BadFile, "line {}: the code nests too deep", parser.now().line);
    }
    ~Deeper() { --parser.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    Parser& parser;
  };

  ExprPtr expression() {
    const Deeper deeper(*this);
    ExprPtr value = binary(1);
    if (!now().is("if")) return value;
    ExprPtr choice = make(Expr::Kind::Choice);
    take();
    choice->items.push_back(std::move(value));
    choice->items.push_back(binary(1));
    expect("else");
    choice->items.push_back(expression());
    return choice;
  }

  ExprPtr unary(std::string_view sign, int binding) {
    ExprPtr made = make(Expr::Kind::Unary);
    take();
    if (sign == "-" && at(Kind::Int) && now().text == "9223372036854775808") {  // an integer with its sign only
      made->kind = Expr::Kind::Int;
      made->integer = std::numeric_limits<int64_t>::min();
      take();
      return made;
    }
    made->text = sign;
    made->items.push_back(binary(binding));
    return made;
  }

  ExprPtr binary(int least) {
    const Deeper deeper(*this);
    ExprPtr left = now().is("not") ? unary("not", kNot)
                   : now().is("-") ? unary("-", kMinus)
                   : now().is("~") ? unary("~", kMinus)
                                   : postfix();
    constexpr int kMostTerms = 500;
    for (int count = 0;; ++count) {
      const bool is_not_in = now().is("not") && tokens_[at_ + 1].is("in");
      const int binding = is_not_in ? 4 : binding_of(now());
      if (binding == 0 || binding < least) return left;
      if (count > kMostTerms) fail_here("an end of the expression");
      ExprPtr made = make(Expr::Kind::Binary);
      made->text = take().text;
      if (is_not_in) made->text = "not " + std::string(take().text);
      if (made->text == "is" && accept("not")) made->text = "is not";
      ExprPtr right = binary(binding == kPower ? binding : binding + 1);
      made->items.push_back(std::move(left));
      made->items.push_back(std::move(right));
      left = std::move(made);
    }
  }

  ExprPtr postfix() {
    ExprPtr value = atom();
    for (int links = 0;; ++links) {
      constexpr int kMostLinks = 300;
      if (links > kMostLinks) fail_here("an end of the expression");
      if (now().is(".")) {
        ExprPtr made = make(Expr::Kind::Attribute);
        take();
        made->text = name();
        made->items.push_back(std::move(value));
        value = std::move(made);
      } else if (now().is("(")) {
        value = call(std::move(value));
      } else if (now().is("[")) {
        value = subscript(std::move(value));
      } else {
        return value;
      }
    }
  }

  ExprPtr call(ExprPtr callee) {
    ExprPtr made = make(Expr::Kind::Call);
    take();
    made->items.push_back(std::move(callee));
    while (!accept(")")) {
      if (at(Kind::Name) && tokens_[at_ + 1].is("=")) {
        made->keywords.push_back(name());
        take();
      } else if (!made->keywords.empty()) {
        fail_here("an argument by its name");
      }
      made->items.push_back(expression());
      if (!now().is(")")) expect(",");
    }
    return made;
  }

  ExprPtr subscript(ExprPtr of) {
    ExprPtr made = make(Expr::Kind::Subscript);
    take();
    made->items.push_back(std::move(of));
    ExprPtr first = now().is(":") ? nullptr : expression();
    if (accept(":")) {
      made->kind = Expr::Kind::Slice;
      made->items.push_back(std::move(first));
      made->items.push_back(now().is("]") ? nullptr : expression());
      expect("]");
      return made;
    }
    if (now().is(",")) {
      ExprPtr tuple = make(Expr::Kind::Tuple);
      tuple->items.push_back(std::move(first));
      while (accept(",")) {
        if (!now().is("]")) tuple->items.push_back(expression());
      }
      first = std::move(tuple);
    }
    made->items.push_back(std::move(first));
    expect("]");
    return made;
  }

  void items_until(Expr& into, std::string_view end) {
    while (!accept(end)) {
      into.items.push_back(expression());
      if (into.kind == Expr::Kind::Dict) {
        expect(":");
        into.items.push_back(expression());
      }
      if (!now().is(end)) expect(",");
    }
  }

  ExprPtr atom() {
    const Token& token = now();
    if (token.kind == Kind::Int || token.kind == Kind::Float) return number();
    if (token.kind == Kind::Text) {
      ExprPtr made = make(Expr::Kind::Text);
      while (at(Kind::Text)) made->text += unescaped(take().text);
      return made;
    }
    if (token.kind == Kind::Name) {
      ExprPtr made = make(Expr::Kind::Name);
      made->text = take().text;
      return made;
    }
    if (token.is("[") || token.is("{")) {
      ExprPtr made = make(token.is("[") ? Expr::Kind::List : Expr::Kind::Dict);
      const bool is_list = take().is("[");
      items_until(*made, is_list ? "]" : "}");
      return made;
    }
    if (!token.is("(")) fail_here("an expression");
    ExprPtr tuple = make(Expr::Kind::Tuple);
    take();
    if (accept(")")) return tuple;
    ExprPtr first = expression();
    if (accept(")")) return first;
    tuple->items.push_back(std::move(first));
    expect(",");
    items_until(*tuple, ")");
    return tuple;
  }

  ExprPtr number() {
    const Token& token = now();
    ExprPtr made = make(token.kind == Kind::Int ? Expr::Kind::Int : Expr::Kind::Float);
    const char* const end = token.text.data() + token.text.size();
    if (token.kind == Kind::Int) {
      const auto [last, error] = std::from_chars(token.text.data(), end, made->integer);
      if (error == std::errc::result_out_of_range) {  // a large float that torch.jit prints without its point
        made->kind = Expr::Kind::Float;
      } else if (error != std::errc() || last != end) {
        fail_here("a number");
      }
    }
    if (made->kind == Expr::Kind::Float) {
      const auto [last, error] = std::from_chars(token.text.data(), end, made->real);
      if (error == std::errc::result_out_of_range) {
        made->real = std::numeric_limits<double>::infinity();
      } else if (error != std::errc() || last != end) {
        fail_here("a number");
      }
    }
    take();
    return made;
  }

  /// The block behind a colon.
  Block block() {
    const Deeper deeper(*this);
    expect(":");
    Block result;
    if (!at(Kind::NewLine)) {  // on the same line
      result.push_back(statement());
      return result;
    }
    take();
    expect(Kind::Indent, "a block");
    while (!at(Kind::Dedent)) result.push_back(statement());
    take();
    return result;
  }

  void end_line() {
    if (at(Kind::End) || at(Kind::Dedent)) return;
    expect(Kind::NewLine, "an end of the line");
  }

  Stmt statement() {
    budget().take(Resource::Memory, sizeof(Stmt));
    Stmt made;
    made.line = now().line;
    if (accept("if")) return branch(std::move(made));
    if (accept("while")) {
      made.kind = Stmt::Kind::While;
      made.value = expression();
      made.body = block();
      return made;
    }
    if (accept("for")) {
      made.kind = Stmt::Kind::For;
      made.targets.push_back(postfix());
      expect("in");
      made.value = expression();
      made.body = block();
      return made;
    }
    if (accept("with")) {
      made.kind = Stmt::Kind::With;
      made.value = expression();
      made.body = block();
      return made;
    }
    if (now().is("def")) {
      made.kind = Stmt::Kind::Def;
      made.function = std::make_shared<Function>(parse_function());
      return made;
    }
    if (accept("return")) {
      made.kind = Stmt::Kind::Return;
      if (!at(Kind::NewLine)) made.value = expressions().first;
    } else if (accept("pass")) {
      made.kind = Stmt::Kind::Pass;
    } else if (accept("assert")) {
      made.kind = Stmt::Kind::Assert;
      made.value = expressions().first;
    } else if (accept("raise")) {
      made.kind = Stmt::Kind::Raise;
      if (!at(Kind::NewLine)) made.value = expression();
    } else if (accept("del")) {
      made.kind = Stmt::Kind::Delete;
      made.value = expression();
    } else {
      assignment(made);
    }
    end_line();
    return made;
  }

  Stmt branch(Stmt made) {
    const Deeper deeper(*this);
    made.kind = Stmt::Kind::If;
    made.value = expression();
    made.body = block();
    Stmt rest;
    rest.line = now().line;
    if (accept("elif")) {
      made.otherwise.push_back(branch(std::move(rest)));
    } else if (accept("else")) {
      made.otherwise = block();
    }
    return made;
  }

  /// One expression, or a tuple where there are commas; whether there were any.
  std::pair<ExprPtr, bool> expressions() {
    ExprPtr first = expression();
    if (!now().is(",")) return {std::move(first), false};
    ExprPtr tuple = make(Expr::Kind::Tuple);
    tuple->items.push_back(std::move(first));
    while (accept(",")) {
      if (!now().is("=") && !at(Kind::NewLine)) tuple->items.push_back(expression());
    }
    return {std::move(tuple), true};
  }

  void assignment(Stmt& made) {
    auto [first, is_list] = expressions();
    for (const std::string_view sign : {"+=", "-=", "*=", "/="}) {
      if (!accept(sign)) continue;
      made.kind = Stmt::Kind::Assign;
      made.sign = sign.substr(0, 1);
      made.targets.push_back(std::move(first));
      made.value = expressions().first;
      return;
    }
    if (accept(":")) {  // the type of a variable
      expression();
      if (!now().is("=")) return;
    }
    if (!accept("=")) {
      made.kind = Stmt::Kind::Expression;
      made.value = std::move(first);
      return;
    }
    made.kind = Stmt::Kind::Assign;
    made.unpacks = is_list;
    if (is_list) {
      made.targets = std::move(first->items);
    } else {
      made.targets.push_back(std::move(first));
    }
    made.value = expressions().first;
  }

  Function parse_function() {
    Function made;
    made.line = now().line;
    made.file = file_;
    expect("def");
    made.name = name();
    expect("(");
    while (!accept(")")) {
      Parameter parameter;
      if (accept("*")) {
        if (!now().is(")")) expect(",");
        continue;
      }
      parameter.name = name();
      if (accept(":")) parameter.type = expression();
      if (accept("=")) parameter.value = expression();
      made.parameters.push_back(std::move(parameter));
      if (!now().is(")")) expect(",");
    }
    if (accept("->")) made.result = expression();
    made.body = block();
    return made;
  }

  static std::vector<std::string> texts_of(const Expr& list) {
    std::vector<std::string> result;
    for (const ExprPtr& item : list.items) result.push_back(item->text);
    return result;
  }

  Class parse_class() {
    Class made;
    expect("class");
    made.name = scope_ + "." + name();
    if (accept("(")) {
      made.base = name();
      expect(")");
    }
    expect(":");
    expect(Kind::NewLine, "an end of the line");
    if (!at(Kind::Indent)) return made;
    take();
    while (!at(Kind::Dedent)) member(made);
    take();
    return made;
  }

  void member(Class& made) {
    if (now().is("def")) {
      Function method = parse_function();
      const std::string name = method.name;
      made.methods.insert_or_assign(name, std::move(method));
      return;
    }
    if (accept("pass")) return end_line();
    ExprPtr target = postfix();
    std::string field = target->text;
    ExprPtr type, value;
    if (accept(":")) type = expression();
    if (accept("=")) value = expression();
    end_line();
    if (field == "__parameters__" && value) {
      made.parameters = texts_of(*value);
    } else if (field == "__buffers__" && value) {
      made.buffers = texts_of(*value);
    } else if (target->kind == Expr::Kind::Subscript && target->items[0]->is_name("__annotations__")) {
      made.fields.emplace_back(target->items[1]->text, std::move(value));
    } else if (value) {
      made.constants.insert_or_assign(std::move(field), std::move(value));
    } else {
      made.fields.emplace_back(std::move(field), std::move(type));
    }
  }

  std::vector<Token> tokens_;
  std::string scope_, file_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Unit parse_unit(std::string_view source, const std::string& scope, const std::string& file) {
  return in_context([&] { return error_text("reading '{}'", file); },
                    [&] { return Parser(source, scope, file).run(); });
}

}  // namespace tonnx::torchscript
