// texts.cpp - YAML, the text form of models, expressions of sizes, JSON.
#include "base/error.h"
#include "base/json.h"
#include "batch/text.h"
#include "formats/pt2/sympy.h"
#include "fuzz/targets/targets.h"
#include "ir/text.h"

namespace tonnx::fuzz {

void read_yaml(std::string_view text) {
  tried([&] {
    Mistakes mistakes;
    parse_batch(text, mistakes);
    mistakes.report("models.yml");
  });
}

void read_text_form(std::string_view text) {
  tried([&] {
    const Model model = parse_model(text);
    check_invariants(*model.graph);
    const std::string printed = print(model, {.max_elements = INT64_MAX});
    const Model again = parse_model(printed);
    ensure(print(again, {.max_elements = INT64_MAX}) == printed, "a model is printed in another way the second time");
  });
}

void read_sympy(std::string_view text) {
  tried([&] {
    if (const auto dim = pt2::parse_size(text)) dim->text();
  });
}

void read_json(std::string_view text) {
  tried([&] { parse_json(text, "a text"); });
}

}  // namespace tonnx::fuzz
