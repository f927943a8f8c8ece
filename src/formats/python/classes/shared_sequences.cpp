// shared_sequences.cpp - finds calls of nn.Sequential that are alike but for the arguments of their layers.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "base/join.h"
#include "formats/python/classes/constructors.h"
#include "formats/python/classes/parameters.h"
#include "formats/python/classes/sequences.h"
#include "formats/python/layout.h"
#include "ops/frame/python_names.h"

namespace tonnx::python {
namespace {

constexpr std::string_view kSequential = "nn.Sequential(";
constexpr size_t kOften = 3;  // what is found so often is a class
constexpr size_t kMostLayers = 4;
constexpr size_t kMostArguments = 7;
constexpr size_t kLinesOfClass = 6;  // beside what is in its constructor
constexpr size_t kIndentOfItems = 12;
constexpr std::string_view kNoActivation = "nn.Identity";
constexpr std::string_view kActivations[] = {"nn.ReLU", "nn.ReLU6", "nn.Hardswish", "nn.Hardsigmoid", "nn.SiLU",
                                             "nn.GELU", "nn.Mish",  "nn.Sigmoid",   "nn.Tanh",        "nn.ELU"};

struct Argument {
  size_t item = 0;  // the layer that it is of
  std::string layer;
  std::string keyword;  // empty where it has none
  size_t position = 0;
  std::string value;
};

/// One call of nn.Sequential in the text of a class.
struct Found {
  size_t owner = 0, member = 0;     // the class, and its statement
  size_t start = 0, end = 0;        // within the statement
  std::vector<std::string> layers;  // without the activation at their end
  std::vector<Argument> arguments;
  std::string shape;
  std::string activation = std::string(kNoActivation);
};

bool is_number_text(const std::string& text) {
  return text == "True" || text == "False" ||
         (!text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isdigit(c) || c == '.' || c == 'e' || c == '-';
         }));
}

/// Nothing where one of the items is more than a layer of PyTorch's with plain arguments.
std::optional<Found> read_sequence(const std::string& text, size_t start) {
  const size_t open = start + kSequential.size() - 1, close = matching_bracket(text, open);
  if (close == std::string::npos) return std::nullopt;
  Found found{.start = start, .end = close + 1};
  for (const std::string& item : split_arguments(text.substr(open + 1, close - open - 1))) {
    const size_t bracket = item.find('(');
    if (!item.starts_with("nn.") || bracket == std::string::npos || item.back() != ')') return std::nullopt;
    const std::string inside = item.substr(bracket + 1, item.size() - bracket - 2);
    if (inside.find_first_of("([{\"") != std::string::npos) return std::nullopt;
    found.layers.push_back(item.substr(0, bracket));
    found.shape += found.layers.back() + "(";
    if (inside.empty()) continue;
    size_t position = 0;
    for (const std::string& argument : split_arguments(inside)) {
      const size_t equals = argument.find('=');
      const std::string keyword = equals == std::string::npos ? "" : argument.substr(0, equals);
      found.arguments.push_back({found.layers.size() - 1, found.layers.back(), keyword, position++,
                                 equals == std::string::npos ? argument : argument.substr(equals + 1)});
      found.shape += keyword + ",";
    }
  }
  if (found.layers.size() < 2 || found.layers.size() > kMostLayers) return std::nullopt;
  const std::string& last = found.layers.back();
  const bool is_plain = found.arguments.empty() || found.arguments.back().item + 1 < found.layers.size();
  if (is_plain && std::find(std::begin(kActivations), std::end(kActivations), last) != std::end(kActivations)) {
    found.shape.resize(found.shape.size() - last.size() - 1);
    found.activation = last;
    found.layers.pop_back();
  }
  return found;
}

/// `ConvBNReLU`
std::string word_of(std::vector<std::string> layers, const std::string& activation) {
  if (activation != kNoActivation) layers.push_back(activation);
  if (layers.size() > 2 && layers.front() == "nn.Linear" && layers.back() == "nn.Linear") return "MLP";
  std::string word;
  for (const std::string& layer : layers) {
    std::string name = layer.substr(3);
    if (name.size() > 2 && name.back() == 'd' && std::isdigit(static_cast<unsigned char>(name[name.size() - 2])))
      name.resize(name.size() - 2);
    if (name != "Identity") word += name == "BatchNorm" ? "BN" : name;
  }
  return word;
}

class SequenceClass {
 public:
  explicit SequenceClass(std::vector<Found*> found) : found_(std::move(found)) {}

  /// Whether it has few enough arguments.
  bool find_parameters() {
    NameSet taken;
    std::map<std::vector<std::string>, size_t> known;
    const std::vector<Argument>& first = found_[0]->arguments;
    parameter_of_.assign(first.size(), -1);
    for (size_t i = 0; i < first.size(); ++i) {
      std::vector<std::string> column;
      for (const Found* each : found_) column.push_back(each->arguments[i].value);
      const bool is_equal = std::equal(column.begin() + 1, column.end(), column.begin());
      if (is_equal && is_number_text(column[0])) continue;
      const auto [at, fresh] = known.try_emplace(column, parameters_.size());
      parameter_of_[i] = static_cast<int>(at->second);
      if (!fresh) continue;
      Parameter parameter{.first = i, .column = std::move(column)};
      give_name(parameter, taken.add(name_of(first[i])));
      parameters_.push_back(std::move(parameter));
    }
    derive_parameters(parameters_, {});
    find_activation(taken);
    return given_parameters(parameters_).size() <= kMostArguments;
  }

  const std::vector<Found*>& found() const { return found_; }

  /// `ConvBNReLU`, or `ConvBNActivation`.
  std::string word() const {
    return word_of(found_[0]->layers, activation_ == kGivenActivation ? "nn.Activation" : activation_);
  }

  /// How many lines there are fewer with the class and its calls, without its empty lines.
  int saved_lines(const std::vector<ClassText>& classes) const {
    size_t lines = 0;
    for (const Found* each : found_) {
      const std::string& text = classes[each->owner].members[each->member].text;
      lines += lines_of(text.substr(each->start, each->end - each->start)) - 1;
    }
    return static_cast<int>(lines) -
           static_cast<int>(kLinesOfClass + lines_of(fmt::format("super().__init__({})", items_text())));
  }

  ClassText write(const std::string& name, const std::vector<ClassText>& classes, Standards& standards) {
    text_.name = name;
    text_.is_sequential = true;
    text_.members = {{0, fmt::format("super().__init__({})", items_text())}};
    std::vector<std::string> owners;
    for (const Found* each : found_) {
      const std::string& owner = classes[each->owner].name;
      if (std::find(owners.begin(), owners.end(), owner) == owners.end()) owners.push_back(owner);
    }
    text_.about = "of " + joined(owners);
    write_signature(standards[name]);
    return std::move(text_);
  }

  /// The call that takes the place of one of them.
  const std::string& call(size_t index) const { return calls_[index]; }

 private:
  static constexpr std::string_view kGivenActivation = "activation";

  /// One that all of them have is written; of several the most frequent need not be given.
  void find_activation(NameSet& taken) {
    std::map<std::string, size_t> counts;
    std::vector<std::string> column;
    for (const Found* each : found_) {
      ++counts[each->activation];
      column.push_back(each->activation);
    }
    activation_ = column[0];
    if (counts.size() == 1) return;
    activation_ = taken.add(std::string(kGivenActivation));
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    parameters_.push_back(
        {.column = std::move(column), .name = activation_, .text = activation_, .standard = most->first});
  }

  static size_t lines_of(const std::string& text) {
    const std::string lines = lay_out(without_standards(text, {}), kIndentOfItems);
    return static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n'));
  }

  std::string items_text() const {
    std::vector<std::string> items;
    const Found& first = *found_[0];
    size_t at = 0;
    for (size_t item = 0; item < first.layers.size(); ++item) {
      const std::string& layer = first.layers[item];
      std::vector<std::string> arguments;
      size_t plain = 0;  // so many arguments are known by their place
      for (size_t i = 0; at < first.arguments.size() && first.arguments[at].item == item; ++at, ++i) {
        const Argument& argument = first.arguments[at];
        const bool is_given = parameter_of_[at] >= 0;
        const std::string& value = is_given ? parameters_[static_cast<size_t>(parameter_of_[at])].text : argument.value;
        const bool is_placed = argument.keyword.empty() || (is_given && plain == i && is_next(argument, i));
        if (is_placed) ++plain;
        arguments.push_back(is_placed ? value : fmt::format("{}={}", argument.keyword, value));
      }
      items.push_back(fmt::format("{}({})", layer, joined(arguments)));
    }
    if (activation_ != kNoActivation) items.push_back(activation_ + "()");
    return joined(items);
  }

  /// `kernel_size, stride, padding` of a convolution are said without their names.
  static bool is_next(const Argument& argument, size_t position) {
    return argument.layer.starts_with("nn.Conv") &&
           ((position == 3 && argument.keyword == "stride") || (position == 4 && argument.keyword == "padding"));
  }

  static std::string name_of(const Argument& argument) {
    if (!argument.keyword.empty()) return identifier(argument.keyword);
    const std::string_view known = argument_name(argument.layer, argument.position);
    return known.empty() ? "size" : std::string(known);
  }

  void write_signature(std::map<std::string, std::string>& standards) {
    const std::vector<const Parameter*> given = given_parameters(parameters_);
    for (const Parameter* parameter : given) {
      text_.parameters.push_back(signature_text(*parameter));
      if (!parameter->standard.empty()) standards[parameter->name] = parameter->standard;
    }
    for (size_t i = 0; i < found_.size(); ++i) {
      std::vector<std::string> arguments;
      for (const Parameter* parameter : given) arguments.push_back(argument_text(*parameter, i));
      calls_.push_back(fmt::format("{}({})", text_.name, joined(arguments)));
    }
  }

  std::vector<Found*> found_;
  std::vector<int> parameter_of_;
  std::vector<Parameter> parameters_;
  std::string activation_;
  ClassText text_;
  std::vector<std::string> calls_;
};

std::vector<Found> find_sequences_in(const std::vector<ClassText>& classes) {
  std::vector<Found> found;
  for (size_t owner = 0; owner < classes.size(); ++owner) {
    for (size_t member = 0; member < classes[owner].members.size(); ++member) {
      const std::string& text = classes[owner].members[member].text;
      for (size_t at = 0; (at = text.find(kSequential, at)) != std::string::npos;) {
        if (auto sequence = read_sequence(text, at)) {
          sequence->owner = owner;
          sequence->member = member;
          at = sequence->end;
          found.push_back(std::move(*sequence));
        } else {
          at += kSequential.size();
        }
      }
    }
  }
  return found;
}

/// Those that are alike: one class for all, or one for each activation, whichever makes the text shorter.
std::vector<SequenceClass> classes_for(const std::vector<Found*>& alike, const std::vector<ClassText>& classes) {
  std::map<std::string, std::vector<Found*>> by_activation;
  for (Found* each : alike) by_activation[each->activation].push_back(each);
  std::vector<SequenceClass> each;
  int saved = 0;
  for (const auto& [activation, group] : by_activation) {
    SequenceClass sequence(group);
    if (group.size() < kOften || !sequence.find_parameters() || sequence.saved_lines(classes) < 0) continue;
    saved += sequence.saved_lines(classes);
    each.push_back(std::move(sequence));
  }
  SequenceClass all(alike);
  const bool is_common = by_activation.size() > 1 && alike.size() >= kOften && all.find_parameters() &&
                         all.saved_lines(classes) >= (each.empty() ? 0 : saved + 1);
  return is_common ? std::vector{std::move(all)} : each;
}

}  // namespace

void share_sequences(std::vector<ClassText>& classes, const std::function<std::string(const std::string&)>& new_name,
                     Standards& standards) {
  std::vector<Found> found = find_sequences_in(classes);
  std::map<std::string, std::vector<Found*>> alike;
  std::vector<const std::string*> order;
  for (Found& each : found) {
    const auto [at, fresh] = alike.try_emplace(each.shape);
    if (fresh) order.push_back(&at->first);
    at->second.push_back(&each);
  }
  std::map<const Found*, std::string> calls;
  std::vector<std::pair<size_t, ClassText>> made;  // with the first class that uses it
  for (const std::string* shape : order) {
    for (SequenceClass& sequence : classes_for(alike[*shape], classes)) {
      ClassText text = sequence.write(new_name(sequence.word()), classes, standards);
      for (size_t i = 0; i < sequence.found().size(); ++i) calls[sequence.found()[i]] = sequence.call(i);
      made.emplace_back(sequence.found()[0]->owner, std::move(text));
    }
  }
  for (size_t i = found.size(); i-- > 0;) {  // from the back: places before stay where they are
    const auto call = calls.find(&found[i]);
    if (call == calls.end()) continue;
    std::string& text = classes[found[i].owner].members[found[i].member].text;
    text.replace(found[i].start, found[i].end - found[i].start, call->second);
  }
  std::stable_sort(made.begin(), made.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [owner, text] : made) classes.insert(classes.begin() + static_cast<ptrdiff_t>(owner), std::move(text));
}

}  // namespace tonnx::python
