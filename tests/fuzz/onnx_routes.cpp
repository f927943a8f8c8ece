// onnx_routes.cpp - all routes of one ONNX file.
#include "fuzz/onnx_routes.h"

#include "checks.h"
#include "convert/inference.h"
#include "convert/opset.h"
#include "convert/pipeline.h"
#include "convert/simplify.h"
#include "convert/to_program.h"
#include "formats/onnx/onnx.h"
#include "passes/simplify_passes.h"

namespace tonnx {

bool fuzz::convert_all_ways(const std::string& bytes, unsigned choice) {
  const auto tried = [](auto&& body) {
    try {
      body();
      return true;
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Internal) throw;
      return false;
    }
  };
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
        for (const SimplifyPass& pass : simplify_passes()) options.enable.emplace_back(pass.name);
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
      prepare(model);
      check_invariants(*model.graph);
      const GraphPtr aten = lower_for_python(model);
      check_invariants(*aten);
      write_python(*aten, model, {.weights_file = "w.safetensors", .title = "m", .external = {}});
      print(*aten);
      tried([&] { write_torchscript_file(*lower_for_python(model), {}, testing::TempDir() + "tonnx_fuzz.pt", {}); });
      tried([&] { write_pt2_file(*aten, model, testing::TempDir() + "tonnx_fuzz.pt2", {}); });
      check_invariants(*aten);
    });
  });
}

}  // namespace tonnx
