// program_writer.cpp - signature, tree specs and ranges around the graph of a program.
#include "formats/pt2/program_writer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/join.h"
#include "formats/pt2/graph_writer.h"

namespace tonnx::pt2 {
namespace {

constexpr int64_t kMajor = 8, kMinor = 20;
constexpr int64_t kAtenOpset = 10;

constexpr std::string_view kLeaf = R"({"type": null, "context": null, "children_spec": []})";

std::string tree(std::string_view type, std::string_view context, const std::vector<std::string>& children) {
  return fmt::format(R"({{"type": "{}", "context": "{}", "children_spec": [{}]}})", type, context,
                     joined(children, ", "));
}

class ProgramWriter {
 public:
  explicit ProgramWriter(const ProgramParts& parts)
      : parts_(parts), graph_(*parts.graph), writer_(json_, sizes_, parts.sample_sizes) {}

  ProgramTexts write() {
    name_inputs();
    json_.begin_object();
    json_.object("graph_module", [&] {
      json_.key("graph");
      writer_.write_graph(graph_, inputs_);
      write_signature();
      write_calls();
      json_.object("metadata", [] {});
      json_.object("treespec_namedtuple_fields", [] {});
    });
    json_.object("opset_version", [&] {
      json_.key("aten");
      json_.number(kAtenOpset);
    });
    write_ranges();
    json_.object("schema_version", [&] {
      json_.key("major");
      json_.number(kMajor);
      json_.key("minor");
      json_.number(kMinor);
    });
    json_.list("verifiers", [&] { json_.text("TRAINING"); });
    json_.entry("torch_version", "2.13.0");
    json_.list("guards_code", [] {});
    json_.key("tonnx");
    write_names(json_);
    json_.end_object();
    JsonWriter names;
    write_names(names);
    return {std::string(json_.result()), weights_config(), std::string(names.result())};
  }

 private:
  void name_inputs() {
    for (const Value* input : graph_.inputs()) {
      std::string hint = python::identifier(input->name);
      if (hint.empty() || python::is_made_up(input->name)) hint = graph_.inputs().size() == 1 ? "x" : "input";
      arguments_.push_back(writer_.give_name(input, hint));
      if (!input->type.is_tensor())
        fail_unsupported("input '{}' is not a tensor, which a .pt2 file cannot take", input->name);
      if (!input->type.shape) fail_unsupported("input '{}' has no shape; give one with --input-shape", input->name);
      for (const Dim& dim : *input->type.shape) {
        if (const auto symbol = dim.symbol_name()) sizes_.add_input_symbol(*symbol);
      }
    }
    for (const Weight& weight : parts_.weights) {
      if (weight.is_alias) continue;
      writer_.give_name(weight.value, fmt::format("{}_{}", weight.trainable ? "p" : "b", weight.name));
      inputs_.push_back(weight.value);
    }
    inputs_.insert(inputs_.end(), graph_.inputs().begin(), graph_.inputs().end());
  }

  void write_signature() {
    json_.object("signature", [&] {
      json_.list("input_specs", [&] {
        for (const Weight& weight : parts_.weights) {
          if (weight.is_alias) continue;
          json_.variant(weight.trainable ? "parameter" : "buffer", [&] {
            json_.begin_object();
            json_.object("arg", [&] { json_.entry("name", writer_.name_of(weight.value)); });
            json_.entry(weight.trainable ? "parameter_name" : "buffer_name", weight.name);
            if (!weight.trainable) {
              json_.key("persistent");
              json_.flag(true);
            }
            json_.end_object();
          });
        }
        for (const Value* input : graph_.inputs()) write_user("user_input", input);
      });
      json_.list("output_specs", [&] {
        for (const Value* output : flat_outputs(graph_)) write_user("user_output", output);
      });
    });
  }

  void write_user(std::string_view kind, const Value* value) {
    json_.variant(kind, [&] {
      json_.begin_object();
      json_.key("arg");
      writer_.write_argument(value);
      json_.end_object();
    });
  }

  void write_calls() {
    const std::vector<std::string> in(graph_.inputs().size(), std::string(kLeaf));
    std::vector<std::string> out;
    for (const Value* output : graph_.outputs()) {
      const Node* list = find_list(output);
      const std::vector<std::string> items(list ? list->inputs().size() : 0, std::string(kLeaf));
      out.push_back(list ? tree("builtins.list", "null", items) : std::string(kLeaf));
    }
    const std::string arguments = tree("builtins.tuple", "null", in), keywords = tree("builtins.dict", "[]", {});
    const std::string result = out.size() == 1 ? out[0] : tree("builtins.tuple", "null", out);
    json_.list("module_call_graph", [&] {
      json_.begin_object();
      json_.entry("fqn", "");
      json_.object("signature", [&] {
        json_.list("inputs", [] {});
        json_.list("outputs", [] {});
        json_.entry("in_spec", fmt::format("[1, {}]", tree("builtins.tuple", "null", {arguments, keywords})));
        json_.entry("out_spec", fmt::format("[1, {}]", result));
        json_.list("forward_arg_names", [&] {
          for (const std::string& name : arguments_) json_.text(name);
        });
      });
      json_.end_object();
    });
  }

  void write_ranges() {
    json_.object("range_constraints", [&] {
      for (const SizeNames::Symbol& symbol : sizes_.symbols()) {
        const auto given = parts_.ranges.find(symbol.model);
        const SizeRange* range = given == parts_.ranges.end() ? nullptr : &given->second;
        json_.object(symbol.name, [&] {
          json_.key("min_val");
          json_.number(range ? range->low : int64_t{0});
          json_.key("max_val");
          if (range && range->high) {
            json_.number(*range->high);
          } else {
            json_.null();
          }
        });
      }
    });
  }

  /// What inputs, outputs and sizes are called in the model.
  void write_names(JsonWriter& json) const {
    json.begin_object();
    json.list("input_names", [&] {
      for (const Value* input : graph_.inputs()) json.text(input->name);
    });
    json.list("arguments", [&] {
      for (const std::string& name : arguments_) json.text(name);
    });
    json.list("output_names", [&] {
      for (const std::string& name : parts_.output_names) json.text(name);
    });
    json.object("symbols", [&] {
      for (const SizeNames::Symbol& symbol : sizes_.symbols()) {
        if (symbol.name[0] == 's') json.entry(symbol.name, symbol.model);
      }
    });
    json.end_object();
  }

  std::string weights_config() const {
    JsonWriter json;
    SizeNames sizes;
    GraphWriter writer(json, sizes);
    json.begin_object();
    json.object("config", [&] {
      for (const Weight& weight : parts_.weights) {
        json.object(weight.name, [&] {
          json.entry("path_name", weight.file);
          json.key("is_param");
          json.flag(weight.trainable);
          json.key("use_pickle");
          json.flag(false);
          json.key("tensor_meta");
          const std::vector<int64_t>& dims = weight.value->constant->dims;
          writer.write_tensor_meta(weight.value->constant->dtype, Shape(dims.begin(), dims.end()), weight.trainable);
        });
      }
    });
    json.end_object();
    return std::string(json.result());
  }

  const ProgramParts& parts_;
  const Graph& graph_;
  JsonWriter json_;
  SizeNames sizes_;
  GraphWriter writer_;
  std::vector<const Value*> inputs_;
  std::vector<std::string> arguments_;
};

}  // namespace

ProgramTexts write_program(const ProgramParts& parts) {
  return in_context([] { return std::string("writing the program"); }, [&] { return ProgramWriter(parts).write(); });
}

}  // namespace tonnx::pt2
