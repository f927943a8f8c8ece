// onnx.cpp - ONNX files: read, and taken along every route.
#include "formats/onnx/onnx.h"

#include "convert/compilation.h"
#include "convert/opset.h"
#include "convert/simplify.h"
#include "fuzz/mutate.h"
#include "fuzz/targets/targets.h"
#include "ir/clone.h"
#include "ir/text.h"
#include "passes/pass_table.h"

namespace tonnx::fuzz {

void read_onnx_bytes(std::string_view bytes) {
  tried([&] {
    const Model model = read_onnx(Bytes::own(std::string(bytes)));
    check_invariants(*model.graph);
    const Model again = read_onnx(Bytes::own(write_onnx_bytes(model)));
    check_invariants(*again.graph);
    print(again);
  });
}

bool convert_all_ways(const std::string& bytes, unsigned choice) {
  return tried([&] {
    Model model = read_onnx(Bytes::own(bytes));
    check_invariants(*model.graph);
    const std::string written = write_onnx_bytes(model);
    print(model);
    tried([&] {
      Model other = read_onnx(Bytes::own(written));
      change_opset(other, choice % 28 + 1);
      check_invariants(*other.graph);
      write_onnx_bytes(other);
    });
    tried([&] {
      Model other = read_onnx(Bytes::own(written));
      SimplifyOptions options;
      if (choice % 4 == 0) {
        for (const Pass& pass : simplify_passes()) options.enable.emplace_back(pass.name);
      }
      if (choice % 5 == 0) options.skip = {"inline_functions"};
      simplify(other, options);
      check_invariants(*other.graph);
      read_onnx(Bytes::own(write_onnx_bytes(other)));
    });
    tried([&] {
      Model other = read_onnx(Bytes::own(written));
      infer_and_declare(other);
      write_onnx_bytes(other);
    });
    tried([&] {
      for (const char* file : {"model.pt", "model.pt2"}) {
        tried([&] {
          Model other = clone(model);
          Compilation(other, Dialect::Stored).write(scratch_file(file));
        });
      }
      Compilation compilation(model, Dialect::Stored);
      for (const Dialect dialect : {Dialect::Onnx, Dialect::Code, Dialect::Python}) {
        compilation.bring_to(dialect);
        check_dialect(*compilation.graph(), dialect);
      }
      compilation.python({.weights_file = "w.safetensors", .title = "m", .external = {}});
      print(*compilation.graph());
    });
  });
}

void route_onnx(std::string_view bytes) { convert_all_ways(std::string(bytes), choice_of(bytes)); }

std::string damaged_message(const std::string& bytes, const std::string& donor, unsigned seed) {
  Random random(seed);
  return mutated(bytes, {donor}, random);
}

}  // namespace tonnx::fuzz
