// pickle.cpp - the pickle machine: a stack, a memo, and opcodes that make inert values.
#include "base/pickle.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>

#include "base/budget.h"
#include "base/error.h"

namespace tonnx {
namespace {

using Kind = PickleValue::Kind;
using Item = PickleValue::Item;

constexpr size_t kMaxValues = size_t{1} << 22;
constexpr size_t kMaxItems = size_t{1} << 26;
constexpr int kMaxProtocol = 5;

/// The values that a pickle numbers. Pickles of good faith count from 0 on; numbers with gaps go to a tree, whose time
/// no choice of numbers spoils.
class Memo {
 public:
  size_t size() const { return dense_.size() + sparse_.size(); }
  void set(uint32_t index, PickleValue* value) {
    if (index < dense_.size()) {
      dense_[index] = value;
    } else if (index == dense_.size()) {
      dense_.push_back(value);
      sparse_.erase(index);
    } else {
      sparse_[index] = value;
    }
  }
  PickleValue* find(uint32_t index) const {
    if (index < dense_.size()) return dense_[index];
    const auto at = sparse_.find(index);
    return at == sparse_.end() ? nullptr : at->second;
  }

 private:
  std::vector<PickleValue*> dense_;
  std::map<uint32_t, PickleValue*> sparse_;
};

class Machine {
 public:
  Machine(std::string_view input, std::string_view what, std::deque<PickleValue>& values)
      : input_(input), what_(what), values_(values) {}

  Item run() {
    while (true) {
      const auto op = static_cast<uint8_t>(take(1).front());
      if (op == '.') break;
      if (!scalar(op) && !container(op) && !call(op) && !memo(op)) fail_opcode(op);
    }
    Item result = pop();
    if (!stack_.empty() || !marks_.empty()) fail_pickle("values are left over at its end");
    return result;
  }
  size_t position() const { return at_; }

 private:
  template <class... Args>
  [[noreturn]] void fail_pickle(fmt::format_string<Args...> text, Args&&... args) const {
    throw Error(ErrorKind::BadFile, error_text("{} is a bad pickle: ", what_) +
                                        format_error(text, fmt::make_format_args(args...)) +
                                        error_text(" (byte {})", at_));
  }
  [[noreturn]] void fail_opcode(uint8_t op) const {
    const bool printable = op > ' ' && op < 0x7F;
    if (printable && std::string_view("FILSVPgip").find(static_cast<char>(op)) != std::string_view::npos) {
      fail_unsupported("{} is a pickle in the text form of protocol 0, which is not read (byte {})", what_, at_);
    }
    if (op >= 0x82 && op <= 0x84) fail_unsupported("{} uses the extension registry of pickle (byte {})", what_, at_);
    if (op == 0x97 || op == 0x98)
      fail_unsupported("{} is a pickle with parts that lie elsewhere (byte {})", what_, at_);
    fail_pickle("{:#04x} is no opcode", op);
  }

  std::string_view take(uint64_t size) {
    if (size > input_.size() - at_) fail_pickle("it ends too early");
    const std::string_view part = input_.substr(at_, size);
    at_ += size;
    return part;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view line() {
    const size_t end = input_.find('\n', at_);
    if (end == std::string_view::npos) fail_pickle("it ends too early");
    const std::string_view text = take(end - at_);
    at_ += 1;
    return text;
  }

  PickleValue& make(Kind kind) {
    if (values_.size() >= kMaxValues) fail_pickle("it has more than {} values", kMaxValues);
    budget().take(Resource::Memory, sizeof(PickleValue));
    PickleValue& value = values_.emplace_back();
    value.kind = kind;
    return value;
  }
  PickleValue& push(Kind kind) {
    PickleValue& value = make(kind);
    stack_.push_back(&value);
    return value;
  }
  bool push_text(Kind kind, std::string_view text) {
    push(kind).text = text;
    return true;
  }
  bool push_integer(Kind kind, int64_t value) {
    push(kind).integer = value;
    return true;
  }
  bool push_long(std::string_view digits) {
    if (digits.size() > 8) return push_text(Kind::BigInt, digits);
    int64_t value = !digits.empty() && (digits.back() & 0x80) ? -1 : 0;
    std::memcpy(&value, digits.data(), digits.size());
    return push_integer(Kind::Int, value);
  }
  bool push_global(std::string_view module, std::string_view name) {
    PickleValue& value = push(Kind::Global);
    value.module = module;
    value.text = name;
    return true;
  }

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleValue* pop() {
    PickleValue* value = &top();
    stack_.pop_back();
    return value;
  }
  PickleValue& top() const {
    if (stack_.size() <= floor()) fail_pickle("its stack runs empty");
    return *stack_.back();
  }
  /// All that was pushed since the last mark.
  std::vector<Item> pop_mark() {
    if (marks_.empty()) fail_pickle("it lacks a mark");
    const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    marks_.pop_back();
    std::vector<Item> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    count_items(items.size());
    return items;
  }
  void count_items(size_t count) {
    items_ += count;
    if (items_ > kMaxItems) fail_pickle("it has more than {} items", kMaxItems);
  }

  bool scalar(uint8_t op) {
    switch (op) {
      case 0x80: {
        const auto protocol = number<uint8_t>();
        if (protocol > kMaxProtocol) fail_unsupported("{} is a pickle of protocol {}", what_, protocol);
        return true;
      }
      case 0x95:  // a frame only tells how much to read ahead
        number<uint64_t>();
        return true;
      case 'N': push(Kind::None); return true;
      case 0x88: return push_integer(Kind::Bool, 1);
      case 0x89: return push_integer(Kind::Bool, 0);
      case 'J': return push_integer(Kind::Int, number<int32_t>());
      case 'K': return push_integer(Kind::Int, number<uint8_t>());
      case 'M': return push_integer(Kind::Int, number<uint16_t>());
      case 0x8a: return push_long(take(number<uint8_t>()));
      case 0x8b: {
        const auto size = number<int32_t>();
        if (size < 0) fail_pickle("a number has {} bytes", size);
        return push_long(take(static_cast<uint64_t>(size)));
      }
      case 'G': {
        uint64_t bits = 0;
        for (const char c : take(8)) bits = bits << 8 | static_cast<uint8_t>(c);
        std::memcpy(&push(Kind::Float).real, &bits, 8);
        return true;
      }
      case 'U': return push_text(Kind::String, take(number<uint8_t>()));   // a str of Python 2
      case 'T': return push_text(Kind::String, take(number<uint32_t>()));  // the same
      case 0x8c: return push_text(Kind::String, take(number<uint8_t>()));
      case 'X': return push_text(Kind::String, take(number<uint32_t>()));
      case 0x8d: return push_text(Kind::String, take(number<uint64_t>()));
      case 'C': return push_text(Kind::Bytes, take(number<uint8_t>()));
      case 'B': return push_text(Kind::Bytes, take(number<uint32_t>()));
      case 0x8e: return push_text(Kind::Bytes, take(number<uint64_t>()));
      case 0x96: return push_text(Kind::Bytes, take(number<uint64_t>()));
      default: return false;
    }
  }

  bool tuple_of(size_t count) {
    std::vector<Item> items(count);
    while (count > 0) items[--count] = pop();
    count_items(items.size());
    push(Kind::Tuple).items = std::move(items);
    return true;
  }

  bool container(uint8_t op) {
    switch (op) {
      case '(': marks_.push_back(stack_.size()); return true;
      case '0':
        if (!marks_.empty() && marks_.back() == stack_.size()) {
          marks_.pop_back();
        } else {
          pop();
        }
        return true;
      case '1': pop_mark(); return true;
      case '2': stack_.push_back(&top()); return true;
      case ')': push(Kind::Tuple); return true;
      case 0x85: return tuple_of(1);
      case 0x86: return tuple_of(2);
      case 0x87: return tuple_of(3);
      case 't': return push_items(Kind::Tuple);
      case ']': push(Kind::List); return true;
      case 'l': return push_items(Kind::List);
      case 0x8f: push(Kind::Set); return true;
      case 0x91: return push_items(Kind::Set);
      case '}': push(Kind::Dict); return true;
      case 'd': {
        std::vector<Item> entries = pop_mark();
        return set_entries(push(Kind::Dict), entries);
      }
      case 'a': {
        Item item = pop();
        count_items(1);
        return append(top(), {item});
      }
      case 'e':
      case 0x90: {
        const std::vector<Item> items = pop_mark();
        return append(top(), items);
      }
      case 's': {
        Item value = pop();
        Item key = pop();
        count_items(2);
        return set_entries(top(), {key, value});
      }
      case 'u': {
        const std::vector<Item> entries = pop_mark();
        return set_entries(top(), entries);
      }
      default: return false;
    }
  }

  bool push_items(Kind kind) {
    std::vector<Item> items = pop_mark();
    push(kind).items = std::move(items);
    return true;
  }
  bool append(PickleValue& target, const std::vector<Item>& items) {
    if (!target.is(Kind::List) && !target.is(Kind::Set) && !target.is(Kind::Object)) {
      fail_pickle("it appends to what is no list");
    }
    target.items.insert(target.items.end(), items.begin(), items.end());
    return true;
  }
  bool set_entries(PickleValue& target, const std::vector<Item>& entries) {
    if (!target.is(Kind::Dict) && !target.is(Kind::Object)) fail_pickle("it sets items of what is no dict");
    if (entries.size() % 2 != 0) fail_pickle("a dict has a key without a value");
    target.entries.insert(target.entries.end(), entries.begin(), entries.end());
    return true;
  }

  bool push_call(Item callee, Item arguments, Item keywords) {
    if (!arguments->is(Kind::Tuple)) fail_pickle("a call has no tuple of arguments");
    PickleValue& value = push(Kind::Object);
    value.callee = callee;
    value.arguments = arguments;
    value.keywords = keywords;
    return true;
  }

  bool call(uint8_t op) {
    switch (op) {
      case 'c': {
        const std::string_view module = line();
        return push_global(module, line());
      }
      case 0x93: {
        Item name = pop();
        Item module = pop();
        if (!name->is(Kind::String) || !module->is(Kind::String)) fail_pickle("a global has no name");
        return push_global(module->text, name->text);
      }
      case 'R': {
        Item arguments = pop();
        Item callee = pop();
        if (!arguments->is(Kind::Tuple)) {  // torch.jit.save writes the members of an Enum so
          PickleValue& one = make(Kind::Tuple);
          one.items.push_back(arguments);
          count_items(1);
          arguments = &one;
        }
        return push_call(callee, arguments, nullptr);
      }
      case 0x81: {
        Item arguments = pop();
        Item callee = pop();
        return push_call(callee, arguments, nullptr);
      }
      case 0x92: {
        Item keywords = pop();
        Item arguments = pop();
        Item callee = pop();
        return push_call(callee, arguments, keywords);
      }
      case 'o': {
        std::vector<Item> items = pop_mark();
        if (items.empty()) fail_pickle("it makes an object of no class");
        Item callee = items.front();
        PickleValue& arguments = make(Kind::Tuple);
        arguments.items.assign(items.begin() + 1, items.end());
        return push_call(callee, &arguments, nullptr);
      }
      case 'b': {
        Item state = pop();
        PickleValue& object = top();
        if (!object.is(Kind::Object)) fail_pickle("it gives state to what is no object");
        if (object.state != nullptr) fail_pickle("it gives state to an object twice");
        object.state = state;
        return true;
      }
      case 'Q': {
        Item id = pop();
        push(Kind::Persistent).callee = id;
        return true;
      }
      default: return false;
    }
  }

  bool memo(uint8_t op) {
    switch (op) {
      case 'q': memo_.set(number<uint8_t>(), &top()); return true;
      case 'r': memo_.set(number<uint32_t>(), &top()); return true;
      case 0x94: memo_.set(static_cast<uint32_t>(memo_.size()), &top()); return true;
      case 'h': return push_memo(number<uint8_t>());
      case 'j': return push_memo(number<uint32_t>());
      default: return false;
    }
  }
  bool push_memo(uint32_t index) {
    PickleValue* found = memo_.find(index);
    if (found == nullptr) fail_pickle("it fetches value {} of its memo, which is not there", index);
    stack_.push_back(found);
    return true;
  }

  std::string_view input_;
  std::string_view what_;
  std::deque<PickleValue>& values_;
  size_t at_ = 0;
  size_t items_ = 0;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;
  Memo memo_;
};

/// The part of a value with that number, over all the ways in which it can hold others; nothing past the last.
bool part_of(const PickleValue& value, size_t index, Item& part) {
  const Item fixed[] = {value.callee, value.arguments, value.keywords, value.state};
  if (index < std::size(fixed)) {
    part = fixed[index];
    return true;
  }
  index -= std::size(fixed);
  if (index < value.items.size() + value.entries.size()) {
    part = index < value.items.size() ? value.items[index] : value.entries[index - value.items.size()];
    return true;
  }
  return false;
}

/// Walks from the root with a stack of its own; each value is entered once.
void check_shape(Item root, std::string_view what) {
  struct Visit {
    Item value;
    size_t next = 0;
    int height = 1;  // of the tallest part, and one
  };
  constexpr int kOpen = -1;
  const auto fail_deep = [&] {
    fail(ErrorKind::BadFile, "{} is a pickle that nests deeper than {} levels", what, Pickle::kMaxDepth);
  };
  std::unordered_map<Item, int> heights;
  std::vector<Visit> path{{root}};
  heights[root] = kOpen;
  while (!path.empty()) {
    Visit& visit = path.back();
    Item part = nullptr;
    if (!part_of(*visit.value, visit.next, part)) {
      const int height = visit.height;
      heights[visit.value] = height;
      path.pop_back();
      if (!path.empty()) path.back().height = std::max(path.back().height, height + 1);
      if (height > Pickle::kMaxDepth) fail_deep();
      continue;
    }
    visit.next += 1;
    if (part == nullptr) continue;
    const auto [known, is_new] = heights.emplace(part, kOpen);
    if (is_new) {
      if (path.size() >= Pickle::kMaxDepth) fail_deep();
      path.push_back({part});
    } else if (known->second == kOpen) {
      fail(ErrorKind::BadFile, "{} is a pickle with a value that contains itself", what);
    } else {
      visit.height = std::max(visit.height, known->second + 1);
    }
  }
}

}  // namespace

Pickle::Pickle(Bytes bytes, std::string_view what) : bytes_(std::move(bytes)) {
  Machine machine(bytes_.view(), what, values_);
  root_ = machine.run();
  size_ = machine.position();
  check_shape(root_, what);
}

}  // namespace tonnx
