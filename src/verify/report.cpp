// report.cpp - reports in words.
#include "verify/report.h"

#include <algorithm>

#include "base/join.h"

namespace tonnx::judge {
namespace {

constexpr size_t kShown = 3;  // weights that are named

/// All of them is said of nothing less.
std::string percent(size_t part, size_t whole) {
  const double share = 100 * static_cast<double>(part) / static_cast<double>(whole);
  return part == whole ? "100" : fmt::format("{:.3g}", std::min(share, 99.9));
}

std::string numbers_of_sizes(const SizeCheck& check) { return joined(check.sizes, " and "); }

}  // namespace

void SizeCheck::fail(int64_t size, const std::string& reason) {
  is_same = false;
  why = fmt::format("at {} = {}: {}", name, size, reason);
}

bool Report::is_same_outside() const {
  return missing.empty() &&
         std::all_of(outputs.begin(), outputs.end(), [](const auto& output) { return output.is_same; });
}

bool Report::is_same_at_other_sizes() const {
  return std::all_of(sizes.begin(), sizes.end(), [](const auto& check) { return check.is_same; });
}

std::string line_of(const OutputComparison& output) {
  const std::string head = output.name + "  " + output.type;
  if (!output.why.empty()) return head + "  " + output.why;
  std::string verdict = output.is_same ? "same" : fmt::format("DIFFERS in {} of {}", output.wrong, output.elements);
  if (output.is_rounding)
    verdict =
        fmt::format("same but for rounding, which the model magnifies in {} of {}", output.wrong, output.elements);
  return fmt::format("{}  max abs {:.3g}  mse {:.2g}  max rel {:.3g}  cosine {:.8f}  {} (rtol {:.2g}, atol {:.2g})",
                     head, output.max_abs, output.mse, output.max_rel, output.cosine, verdict, output.rtol,
                     output.atol);
}

std::string title_of(const LayerComparison& layer) {
  const std::string& own = layer.layer.empty() ? layer.name : layer.layer;
  const std::string& other = layer.counterpart_layer.empty() ? layer.counterpart : layer.counterpart_layer;
  std::string text = fmt::format("{} ({})", own, layer.op);
  if (other != own) text += fmt::format(" = {} ({})", other, layer.counterpart_op);
  if (!layer.module.empty()) text += ", in " + layer.module;
  text += ", value " + layer.name;
  if (!layer.covers.empty()) text += fmt::format(", with {} before it", joined(layer.covers));
  if (!layer.weights.empty()) text += ", weights " + joined(layer.weights);
  return text;
}

std::string text_of(const SizeCheck& check) {
  const std::string head = check.name + " is open in one model alone";
  if (!check.is_same) return head + ". DIFFERS " + check.why;
  if (check.sizes.empty())
    return head + ", and was not tried at another size" + (check.why.empty() ? "" : ": " + check.why);
  return fmt::format("{}: {} at {}{}", head, check.is_compared ? "compared sample by sample" : "runs",
                     numbers_of_sizes(check), check.note.empty() ? "" : "; " + check.note);
}

std::string text_of(const Coverage& coverage) {
  if (coverage.weights == 0) return "the model has no weights";
  std::string text = fmt::format("the outputs depend on {} % of the weights at these inputs ({} of {})",
                                 percent(coverage.outputs, coverage.weights), coverage.outputs, coverage.weights);
  if (coverage.inside > 0) text += fmt::format(", values inside that were compared on {} more", coverage.inside);
  for (size_t i = 0; i < std::min(coverage.hidden.size(), kShown); ++i)
    text +=
        fmt::format("{}{} ({})", i == 0 ? "; not judged: " : ", ", coverage.hidden[i].first, coverage.hidden[i].second);
  if (coverage.hidden.size() > kShown) text += fmt::format(" and {} more", coverage.hidden.size() - kShown);
  return text;
}

std::string verdict_of(const Report& report) {
  if (report.is_hidden_difference) return "DIFFERENT inside, where the outputs do not show it at these inputs";
  if (report.is_same_outside() && !report.is_same_at_other_sizes()) return "DIFFERENT at other sizes";
  return report.is_same() ? "same" : "DIFFERENT";
}

std::string difference_in(const Report& report) {
  if (report.is_hidden_difference && report.first_difference)
    return "inside, where no output shows it: " + line_of(*report.first_difference);
  for (const OutputComparison& output : report.outputs) {
    if (!output.is_same) return line_of(output);
  }
  for (const SizeCheck& check : report.sizes) {
    if (!check.is_same) return text_of(check);
  }
  return joined(report.missing);
}

std::string text_of(const Report& report, uint64_t seed) {
  std::vector<std::string> inputs, lines;
  for (const auto& [name, type] : report.inputs) inputs.push_back(name + " " + type);
  const std::string kinds =
      report.is_random ? fmt::format(" (random: {}; seed {})", joined(report.draws, "; "), seed) : "";
  lines.push_back("inputs   " + joined(inputs) + kinds);
  for (size_t i = 0; i < report.outputs.size(); ++i)
    lines.push_back((i == 0 ? "output   " : "         ") + line_of(report.outputs[i]));
  for (const std::string& missing : report.missing) lines.push_back("output   " + missing);
  for (size_t i = 0; i < report.sizes.size(); ++i)
    lines.push_back((i == 0 ? "size     " : "         ") + text_of(report.sizes[i]));
  if (report.steps) {
    const auto wrong = std::count_if(report.layers.begin(), report.layers.end(), [](auto& l) { return !l.is_same; });
    lines.push_back(fmt::format("layers   {} compared of {} and {}{}", report.layers.size(), report.steps->first,
                                report.steps->second,
                                wrong > 0 ? fmt::format(", {} differ", wrong) : ", all the same"));
  } else if (report.inside > 0) {
    lines.push_back(fmt::format("inside   {} values compared, all the same", report.inside));
  }
  if (report.first_difference) {
    const char* though = report.is_same_outside() ? ", though the outputs are the same" : "";
    lines.push_back(fmt::format("first layer that differs{}: {}", though, title_of(*report.first_difference)));
    lines.push_back("         " + line_of(*report.first_difference));
  }
  if (report.coverage) lines.push_back("weights  " + text_of(*report.coverage));
  for (const std::string& what : report.left_out) lines.push_back("left out " + what);
  lines.push_back(verdict_of(report));
  return joined(lines, "\n");
}

}  // namespace tonnx::judge
