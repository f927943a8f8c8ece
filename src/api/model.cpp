// model.cpp - models of the interface: read, made, looked at, simplified.
#include <filesystem>

#include "api/internal.h"
#include "base/join.h"
#include "convert/file_kind.h"
#include "convert/inference.h"
#include "convert/one_pass.h"
#include "convert/opset.h"
#include "convert/weights.h"
#include "formats/onnx/onnx.h"
#include "formats/pt2/pt2.h"
#include "formats/torchscript/torchscript.h"
#include "ir/clone.h"
#include "ir/text.h"
#include "ops/frame/op_def.h"
#include "passes/dialects/to_exported.h"

namespace tonnx::v1 {

const char* version() { return TONNX_VERSION; }
int64_t newest_opset() { return core::kNewestOpset; }

ByteSource::~ByteSource() = default;

void Model::Content::require_onnx(const char* what) const {
  if (!is_onnx())
    core::fail_unsupported("{} is for models of ONNX, and this is a program of PyTorch: to_onnx() makes it one", what);
}

namespace {

/// Where a model comes from: a file that is told by its name, or bytes.
struct Origin {
  std::string path;
  core::Bytes bytes;
};

core::ScriptInputs script_inputs(const ReadOptions& options) {
  core::ScriptInputs inputs;
  inputs.shapes = map_of(options.input_shapes);
  for (const auto& [name, dtype] : options.input_types)
    core::require(inputs.types.emplace(name, core_of(dtype)).second, "input '{}' is given two types", name);
  return inputs;
}

core::Program read_program(const Origin& origin, Format format, const ReadOptions& options) {
  const bool is_file = !origin.path.empty();
  if (format == Format::Onnx) {
    core::Program program;
    program.model = is_file ? core::read_onnx(origin.path) : core::read_onnx(origin.bytes, options.folder);
    return program;
  }
  if (format == Format::TorchExport)
    return is_file ? core::read_pt2(origin.path) : core::read_program(core::read_pt2_archive(origin.bytes));
  core::Program program = is_file ? core::read_torchscript(origin.path, script_inputs(options))
                                  : core::read_torchscript(origin.bytes, script_inputs(options));
  core::make_higher_order(*program.model.graph);
  return program;
}

/// Refuses what means nothing for the format, by the table of routes.
void require_options(Format format, const ReadOptions& options) {
  core::ConvertOptions asked;
  asked.input_shapes = map_of(options.input_shapes);
  asked.input_types = script_inputs(options).types;
  asked.weights = options.weights;
  asked.part = options.part;
  core::route(core_of(format), "model.py", asked);
}

void put_weights(Model::Content& content, const std::vector<core::StateTensor>& weights, const std::string& path) {
  core::replace_weights(content.model(), content.dialect, weights, path, {});
}

Model read_from(const Origin& origin, Format format, const ReadOptions& options) {
  if (format != Format::Onnx && format != Format::TorchExport && format != Format::TorchScript)
    core::fail_unsupported("a model is read from {}", core::readable_endings());
  require_options(format, options);
  auto content = std::make_unique<Model::Content>();
  content->format = format;
  content->dialect = core::dialect_of(core_of(format));
  content->limits = core_of(options.limits);
  const core::BudgetScope scope(content->limits);
  content->program = read_program(origin, format, options);
  core::Model& model = content->model();
  content->input_bytes = origin.path.empty() ? origin.bytes.size() : std::filesystem::file_size(origin.path);
  if (!options.weights.empty())
    put_weights(*content, core::read_weights(options.weights, options.part), options.weights);
  if (format == Format::Onnx) core::set_input_shapes(model, map_of(options.input_shapes));
  return Access::model(std::move(content));
}

/// Bytes of the caller's, which stay where they are.
class CallersBytes : public core::ByteOwner {
 public:
  explicit CallersBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  const uint8_t* begin() const override { return reinterpret_cast<const uint8_t*>(bytes_.data()); }
  size_t size() const override { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

core::Bytes borrowed(std::span<const std::byte> bytes) {
  const auto owner = std::make_shared<const CallersBytes>(bytes);
  return {owner, owner->begin(), owner->size()};
}

core::Bytes read_all(const ByteSource& source) {
  const uint64_t size = callers([&] { return source.size(); });
  if (const std::byte* data = callers([&] { return source.data(); })) return borrowed({data, size});
  std::vector<uint8_t> bytes(size);
  constexpr size_t kPiece = size_t{64} << 20;
  for (size_t done = 0; done < bytes.size(); done += kPiece) {
    const std::span<uint8_t> piece(bytes.data() + done, std::min(kPiece, bytes.size() - done));
    callers([&] { source.read(done, std::as_writable_bytes(piece)); });
  }
  return core::Bytes::own(std::move(bytes));
}

/// A model of ONNX that is about to be changed, with a place for each declaration of an input or an output.
core::Model& changeable(Model::Content& content, const char* what) {
  content.require_onnx(what);
  check_edited(content);
  core::Graph& graph = *content.model().graph;
  graph.input_declarations.resize(graph.inputs().size());
  graph.output_declarations.resize(graph.outputs().size());
  return content.model();
}

size_t count_nodes(const core::Graph& graph) {
  size_t count = 0;
  for (const core::Node& node : graph) {
    ++count;
    for (const core::GraphPtr& subgraph : core::subgraphs_of(node)) count += count_nodes(*subgraph);
  }
  return count;
}

}  // namespace

Model Model::read(const std::string& path, const ReadOptions& options) {
  return translated([&] {
    const auto format = core::find_format(path);
    const bool is_read =
        format == core::Format::Onnx || format == core::Format::Pt2 || format == core::Format::TorchScript;
    if (!is_read || path.empty()) {
      const std::string advice = core::advice_on(path, "model.py");
      if (!advice.empty()) throw core::Error(core::ErrorKind::Unsupported, advice);
      core::fail_unsupported("cannot read a model from '{}': the library reads .onnx, .pt2 and .pt", path);
    }
    core::require_content(path, *format);
    return read_from({path, {}}, public_of(*format), options);
  });
}

Model Model::read(const std::string& path, Format format, const ReadOptions& options) {
  return translated([&] {
    core::require_content(path, core_of(format));
    return read_from({path, {}}, format, options);
  });
}

Model Model::read(std::span<const std::byte> bytes, Format format, const ReadOptions& options) {
  return translated([&] { return read_from({{}, borrowed(bytes)}, format, options); });
}

Model Model::read(std::vector<std::byte>&& bytes, Format format, const ReadOptions& options) {
  return translated([&] {
    const auto size = static_cast<int64_t>(bytes.size());
    const Tensor holder(DType::UInt8, {size}, std::move(bytes));
    return read_from({{}, Access::tensor(holder)->data}, format, options);
  });
}

Model Model::read(const Tensor& bytes, Format format, const ReadOptions& options) {
  return translated([&] {
    core::require(bytes.dtype() == DType::UInt8, "a model is read from a tensor of bytes, and this one is of {}",
                  name_of(bytes.dtype()));
    return read_from({{}, Access::tensor(bytes)->data}, format, options);
  });
}

Model Model::read(const ByteSource& source, Format format, const ReadOptions& options) {
  return translated([&] { return read_from({{}, read_all(source)}, format, options); });
}

Model Model::create(int64_t opset) {
  return translated([&] {
    core::require(opset >= 1 && opset <= core::kNewestOpset, "there is no opset {}; the newest is {}", opset,
                  core::kNewestOpset);
    auto content = std::make_unique<Content>();
    core::Model& model = content->model();
    model.graph = std::make_shared<core::Graph>();
    model.graph->name = "main";
    model.ir_version = core::least_ir_version(opset);
    model.opsets.emplace_back("", opset);
    model.producer_name = "tonnx";
    model.producer_version = TONNX_VERSION;
    return Access::model(std::move(content));
  });
}

Model Model::parse(std::string_view text) {
  return translated([&] {
    auto content = std::make_unique<Content>();
    content->input_bytes = text.size();
    content->model() = core::parse_model(text);
    if (core::is_aten(content->graph())) {
      core::check_written_code(content->graph());
      content->format = Format::TorchExport;
      content->dialect = core::Dialect::Code;
      for (const core::Value* output : content->graph().outputs())
        content->program.output_names.push_back(output->name);
    }
    return Access::model(std::move(content));
  });
}

Model::Model(Model&& other) noexcept : content_(std::exchange(other.content_, nullptr)) {}
Model& Model::operator=(Model&& other) noexcept {
  std::swap(content_, other.content_);
  return *this;
}
Model::~Model() { delete content_; }

Model Model::clone() const {
  return translated([&] {
    const ModelBudget budget(*content_);
    auto copy = std::make_unique<Content>();
    copy->program = {core::clone(content_->model()), content_->program.output_names};
    copy->format = content_->format;
    copy->limits = content_->limits;
    copy->input_bytes = content_->input_bytes;
    copy->dialect = content_->dialect;
    copy->declares_values = content_->declares_values;
    copy->is_checked = content_->is_checked.load();
    return Access::model(std::move(copy));
  });
}

Format Model::format() const { return content_->format; }
GraphView Model::graph() const { return view_of(content_->graph()); }
std::string Model::text(const PrintOptions& options) const {
  return translated([&] {
    const ModelBudget budget(*content_);
    return core::print(content_->model(), {.max_elements = options.max_elements, .notes = options.notes});
  });
}
int64_t Model::ir_version() const { return content_->model().ir_version; }
std::string Model::producer() const {
  const core::Model& model = content_->model();
  return model.producer_version.empty() ? model.producer_name : model.producer_name + " " + model.producer_version;
}
std::string_view Model::doc() const { return content_->model().doc; }
const Metadata& Model::metadata() const { return content_->model().metadata; }
const std::vector<std::pair<std::string, int64_t>>& Model::opsets() const { return content_->model().opsets; }
int64_t Model::opset(std::string_view domain) const {
  return content_->model().opset(domain == "ai.onnx" ? "" : domain);
}
std::vector<std::string> Model::output_names() const {
  if (!content_->is_onnx()) return content_->program.output_names;
  std::vector<std::string> names;
  for (const core::Value* output : content_->graph().outputs()) names.push_back(output->name);
  return names;
}
void Model::set_output_names(std::vector<std::string> names) {
  translated([&] {
    core::require(names.size() == content_->graph().outputs().size(), "{} names are given for {} outputs", names.size(),
                  content_->graph().outputs().size());
    if (!content_->is_onnx()) {
      content_->program.output_names = std::move(names);
      return;
    }
    GraphEditor editor = edit();
    const std::vector<ValueView> outputs = graph().outputs();
    for (size_t i = 0; i < outputs.size(); ++i) editor.rename(outputs[i], std::move(names[i]));
  });
}
void Model::replace_weights(const std::string& path, const std::optional<std::string>& part) {
  translated([&] {
    check_edited(*content_);
    const ModelBudget budget(*content_);
    put_weights(*content_, core::read_weights(path, part), path);
  });
}
size_t Model::node_count() const { return count_nodes(content_->graph()); }

Report Model::simplify(const SimplifyOptions& options) {
  return translated([&] {
    core::Model& model = changeable(*content_, "simplify");
    const ModelBudget budget(*content_);
    core::SimplifyFileOptions inner;
    inner.simplify.input_shapes = map_of(options.input_shapes);
    inner.simplify.skip = options.skip;
    inner.simplify.only = options.only;
    inner.simplify.enable = options.enable;
    inner.simplify.unused_outputs = options.unused_outputs;
    inner.simplify.fold_limit = options.fold_limit;
    inner.simplify.opset = options.opset;
    inner.simplify.infers_shapes = options.infers_shapes;
    inner.verifies_passes = options.verifies_passes;
    if (options.compare) {
      inner.judge = [&](const std::string& source, const std::string& result) {
        return callers([&] { return options.compare(source, result); });
      };
    }
    auto report = std::make_unique<Report::Content>();
    report->report = core::simplify_and_compare(model, inner);
    model.graph->value_declarations.clear();
    content_->declares_values = core::has_room_for_types(model, report->report, inner.simplify);
    return Report(report.release());
  });
}

void Model::infer_shapes(const InputShapes& input_shapes) {
  translated([&] {
    core::Model& model = changeable(*content_, "infer_shapes");
    const ModelBudget budget(*content_);
    core::infer_and_declare(model, map_of(input_shapes));
    content_->declares_values = true;
  });
}

void Model::set_input_shapes(const InputShapes& shapes) {
  translated([&] {
    core::Model& model = changeable(*content_, "set_input_shapes");
    core::set_input_shapes(model, map_of(shapes));
  });
}

void Model::set_opset(int64_t opset) {
  translated([&] {
    core::Model& model = changeable(*content_, "set_opset");
    const ModelBudget budget(*content_);
    core::change_opset(model, opset);
  });
}

void Model::set_metadata(std::string key, std::string value) {
  core::Metadata& metadata = content_->model().metadata;
  for (auto& entry : metadata) {
    if (entry.first != key) continue;
    entry.second = std::move(value);
    return;
  }
  metadata.emplace_back(std::move(key), std::move(value));
}

Report::Report(Report&& other) noexcept : content_(std::exchange(other.content_, nullptr)) {}
Report& Report::operator=(Report&& other) noexcept {
  std::swap(content_, other.content_);
  return *this;
}
Report::~Report() { delete content_; }

namespace {

int64_t sum_of(const std::map<std::string, int64_t>& counts) {
  int64_t sum = 0;
  for (const auto& [op, count] : counts) sum += count;
  return sum;
}

}  // namespace

int64_t Report::nodes_before() const { return sum_of(content_->report.ops_before); }
int64_t Report::nodes_after() const { return sum_of(content_->report.ops_after); }
Report::Counts Report::ops_before() const {
  return {content_->report.ops_before.begin(), content_->report.ops_before.end()};
}
Report::Counts Report::ops_after() const {
  return {content_->report.ops_after.begin(), content_->report.ops_after.end()};
}
std::vector<Report::Pass> Report::passes() const {
  std::vector<Pass> result;
  for (const auto& pass : content_->report.passes) result.push_back({pass.name, pass.changes, pass.seconds});
  return result;
}
int Report::rounds() const { return content_->report.rounds; }
uint64_t Report::bytes_before() const { return content_->report.bytes_before; }
bool Report::is_same() const { return content_->report.is_right; }
std::string Report::difference() const { return content_->report.difference; }
std::string Report::not_judged() const { return content_->report.not_judged; }
std::vector<std::string> Report::taken_back() const { return content_->report.taken_back; }
std::string Report::json(uint64_t bytes_after) const { return core::json_of(content_->report, bytes_after); }
std::string Report::table(uint64_t bytes_after) const { return core::table_of(content_->report, bytes_after); }

}  // namespace tonnx::v1
