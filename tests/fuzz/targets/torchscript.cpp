// torchscript.cpp - the code of TorchScript archives, and whole archives on their way to ONNX.
#include "base/output_file.h"
#include "convert/pipeline.h"
#include "formats/torchscript/source/syntax.h"
#include "fuzz/targets/targets.h"

namespace tonnx::fuzz {

void read_script_code(std::string_view text) {
  tried([&] {
    const BudgetScope scope;
    const torchscript::Unit unit = torchscript::parse_unit(text, "__torch__", "code");
    choice_of(unit.classes.empty() ? std::string_view() : unit.classes.front().name);
  });
}

void read_script_archive(std::string_view bytes) {
  const std::string source = scratch_file("fuzzed.pt");
  {
    OutputFile file(source);
    file.write(bytes);
    file.commit();
  }
  ConvertOptions options;
  for (const char* const place : {"0", "1"}) options.input_shapes[place] = {-1, 3};
  tried([&] { convert_file(source, scratch_file("fuzzed.onnx"), options); });
  options.input_shapes.erase("1");
  tried([&] { convert_file(source, scratch_file("fuzzed.onnx"), options); });
}

}  // namespace tonnx::fuzz
