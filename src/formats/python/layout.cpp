// layout.cpp - the line-breaking rules: first what is inside the last brackets on one line, then one item a line.
#include "formats/python/layout.h"

#include <vector>

namespace tonnx::python {
namespace {

bool opens(char c) { return c == '(' || c == '[' || c == '{'; }
bool closes(char c) { return c == ')' || c == ']' || c == '}'; }

/// Calls `use(i, depth)` for every character outside strings; depth counts brackets around it.
template <class Use>
void scan(std::string_view text, Use&& use) {
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\')
        ++i;
      else if (c == quote)
        quote = 0;
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    if (closes(c)) --depth;
    use(i, depth);
    if (opens(c)) ++depth;
  }
}

/// The outermost brackets that close last: where the statement is to be broken.
bool find_last_brackets(std::string_view text, size_t& open, size_t& close) {
  bool found = false;
  size_t last_open = 0;
  scan(text, [&](size_t i, int depth) {
    if (depth != 0) return;
    if (opens(text[i])) last_open = i;
    if (closes(text[i]) && i > last_open + 1) {
      open = last_open;
      close = i;
      found = true;
    }
  });
  return found;
}

std::vector<std::string_view> split_items(std::string_view body) {
  std::vector<std::string_view> items;
  size_t start = 0;
  const auto push = [&](size_t end) {
    std::string_view item = body.substr(start, end - start);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    if (!item.empty()) items.push_back(item);
  };
  scan(body, [&](size_t i, int depth) {
    if (depth == 0 && body[i] == ',') {
      push(i);
      start = i + 1;
    }
  });
  push(body.size());
  return items;
}

/// Where ` for ` begins in `f(x) for x in xs`.
size_t find_comprehension(std::string_view body) {
  size_t found = std::string_view::npos;
  scan(body, [&](size_t i, int depth) {
    if (depth == 0 && found == std::string_view::npos && body.substr(i).starts_with(" for ")) found = i;
  });
  return found;
}

/// A call of a method of what calls of others gave, link by link: `x.reshape(n)`, `.transpose(1, 2)`, `.flatten()`.
std::vector<std::string_view> split_chain(std::string_view text) {
  std::vector<std::string_view> links;
  size_t start = 0;
  bool is_chain = true;
  scan(text, [&](size_t i, int depth) {
    if (depth != 0) return;
    if (text[i] == ' ') is_chain = false;
    if (text[i] != '.' || i == 0 || !closes(text[i - 1])) return;
    links.push_back(text.substr(start, i - start));
    start = i;
  });
  if (!is_chain || links.size() < 2 || !text.ends_with(')')) return {};
  links.push_back(text.substr(start));
  return links;
}

void lay_out_into(std::string& out, std::string_view text, size_t indent, std::string_view behind) {
  const std::string margin(indent, ' ');
  size_t open = 0, close = 0;
  constexpr std::string_view kReturn = "return ";
  if (indent + text.size() > kLineWidth && text.starts_with(kReturn)) {
    const std::vector<std::string_view> results = split_items(text.substr(kReturn.size()));
    if (results.size() > 1) {
      out += margin + "return (\n";
      for (const std::string_view result : results) lay_out_into(out, result, indent + 4, ",");
      out += margin + ")\n";
      return;
    }
  }
  if (indent + text.size() + behind.size() <= kLineWidth || !find_last_brackets(text, open, close)) {
    out += margin;
    out += text;
    out += behind;
    out += '\n';
    return;
  }
  const std::vector<std::string_view> links = split_chain(text);
  for (size_t i = 0; i < links.size(); ++i) lay_out_into(out, links[i], indent, i + 1 == links.size() ? behind : "");
  if (!links.empty()) return;
  const size_t equals = text.find(" = ");
  const size_t value = text.starts_with(kReturn) ? kReturn.size() : equals < open ? equals + 3 : 0;
  if (value > 0 && !split_chain(text.substr(value)).empty()) {
    out += margin;
    out += text.substr(0, value);
    out += "(\n";
    lay_out_into(out, text.substr(value), indent + 4, "");
    out += margin;
    out += ")\n";
    return;
  }
  if (indent + open + 1 > kLineWidth && equals < open) {  // even what is before the brackets is too long
    out += margin;
    out += text.substr(0, equals);
    out += " = (\n";
    lay_out_into(out, text.substr(equals + 3), indent + 4, "");
    out += margin;
    out += ")\n";
    return;
  }
  const std::string_view body = text.substr(open + 1, close - open - 1);
  out += margin;
  out += text.substr(0, open + 1);
  out += '\n';
  const std::vector<std::string_view> items = split_items(body);
  const bool starred = body.starts_with('*') && items.size() == 1;
  const size_t comprehension = find_comprehension(body);
  if (indent + 4 + body.size() <= kLineWidth && !body.ends_with(',')) {
    out += std::string(indent + 4, ' ');
    out += body;
    out += '\n';
  } else if (comprehension != std::string_view::npos) {
    lay_out_into(out, body.substr(0, comprehension), indent + 4, "");
    lay_out_into(out, body.substr(comprehension + 1), indent + 4, "");
  } else {
    for (const std::string_view item : items) lay_out_into(out, item, indent + 4, starred ? "" : ",");
  }
  out += margin;
  out += text.substr(close);
  out += behind;
  out += '\n';
}

/// One item of a subscript.
std::string space_slice(std::string_view item) {
  std::vector<std::string_view> ends;
  size_t start = 0;
  scan(item, [&](size_t i, int depth) {
    if (depth != 0 || item[i] != ':') return;
    ends.push_back(item.substr(start, i - start));
    start = i + 1;
  });
  ends.push_back(item.substr(start));
  if (ends.size() == 1 || item.find('.') == std::string_view::npos) return std::string(item);
  std::string text(ends[0]);
  for (size_t i = 1; i < ends.size(); ++i) {
    if (!ends[i - 1].empty()) text += ' ';
    text += ':';
    if (!ends[i].empty()) text += ' ';
    text += ends[i];
  }
  return text;
}

}  // namespace

std::string space_slices(std::string_view statement) {
  std::string text;
  size_t taken = 0;
  for (size_t open = statement.find('['); open != std::string_view::npos; open = statement.find('[', open + 1)) {
    size_t close = open;
    scan(statement.substr(open), [&](size_t i, int depth) {
      if (close == open && depth == 0 && closes(statement[open + i])) close = open + i;
    });
    if (close == open || open < taken) continue;
    const std::string_view body = statement.substr(open + 1, close - open - 1);
    if (body.find(':') == std::string_view::npos || body.find('[') != std::string_view::npos) continue;
    text += statement.substr(taken, open + 1 - taken);
    bool is_first = true;
    for (const std::string_view item : split_items(body)) {
      if (!is_first) text += ", ";
      is_first = false;
      text += space_slice(item);
    }
    taken = close;
  }
  return text.append(statement.substr(taken));
}

std::string lay_out(std::string_view statement, size_t indent) {
  std::string out;
  lay_out_into(out, statement, indent, "");
  return out;
}

}  // namespace tonnx::python
