// modules.cpp - QuantLinear and QuantConv2d: the classes that a file of generated code has for layers of 8 bits.
#include <fmt/format.h>

#include <array>

#include "ops/conv/conv.h"
#include "ops/quantize/rows.h"

namespace tonnx {
namespace {

constexpr std::string_view kQuantLinear =
    R"py(# A linear layer with weights of 8 bits; its input is rounded to 256 steps of its own range.
class QuantLinear(nn.Module):
    def __init__(self, inputs, outputs, bias=False, dtype=torch.uint8):
        super().__init__()
        self.register_buffer("weight", torch.empty(inputs, outputs, dtype=dtype))
        self.register_buffer("scale", torch.empty(()))
        self.register_buffer("zero_point", torch.empty((), dtype=dtype))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None

    def forward(self, x):
        low, high = torch.aminmax(x)
        low = torch.clamp(low, max=0.0)
        step = (torch.clamp(high, min=0.0) - low) / 255.0
        step = step.masked_fill(step == 0.0, 1.0)
        zero = torch.clamp(torch.round(-low / step), min=0, max=255)
        x = torch.clamp(torch.round(x / step) + zero, min=0, max=255) - zero
        x = x @ (self.weight.to(x.dtype) - self.zero_point) * (step * self.scale)
        return x if self.bias is None else x + self.bias


)py";

// {0} is the number of spatial dimensions, {1} a size of 1 for each of them
constexpr std::string_view kQuantConv =
    R"py(# A convolution with weights of 8 bits; its input is rounded to 256 steps of its own range (floor: its bias too).
class QuantConv{0}d(nn.Module):
    def __init__(self, inputs, outputs, kernel, groups=1, bias=True, floor=False, dtype=torch.uint8, **window):
        super().__init__()
        kernel = [kernel] * {0} if isinstance(kernel, int) else kernel
        self.register_buffer("weight", torch.empty(outputs, inputs // groups, *kernel, dtype=dtype))
        self.register_buffer("scale", torch.empty(()))
        self.register_buffer("zero_point", torch.empty((), dtype=dtype))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None
        self.groups = groups
        self.floor = floor
        self.window = window

    def forward(self, x):
        low, high = torch.aminmax(x)
        low = torch.clamp(low, max=0.0)
        step = (torch.clamp(high, min=0.0) - low) / 255.0
        step = step.masked_fill(step == 0.0, 1.0)
        zero = torch.clamp(torch.round(-low / step), min=0, max=255)
        x = torch.clamp(torch.round(x / step) + zero, min=0, max=255) - zero
        weight = self.weight.to(x.dtype) - self.zero_point
        x = F.conv{0}d(x, weight, groups=self.groups, **self.window)
        step = step * self.scale
        if self.bias is None:
            return x * step
        if not self.floor:
            return x * step + self.bias.reshape(-1, {1})
        bias = torch.floor(self.bias / step).to(torch.int32).reshape(-1, {1})
        return (x.to(torch.int32) + bias).to(x.dtype) * step


)py";

/// The class of a convolution over one to three dimensions.
std::string_view source_of_conv(size_t rank) {
  static const std::array<std::string, 3> kSources{fmt::format(kQuantConv, 1, "1"), fmt::format(kQuantConv, 2, "1, 1"),
                                                   fmt::format(kQuantConv, 3, "1, 1, 1")};
  return kSources.at(rank - 1);
}

/// Adds what a layer of 8 bits has besides its weight and bias.
void add_steps(const Emission& e, ModuleSpec& spec) {
  const DType dtype = e.value("weight")->constant->dtype;
  if (dtype != DType::UInt8) spec.arguments += ", dtype=" + python_dtype(dtype);
  spec.weights.push_back({"scale", e.value("scale")});
  spec.weights.push_back({"zero_point", e.value("zero_point")});
}

}  // namespace

std::optional<ModuleSpec> module_quant_linear(const Emission& e) {
  Value *weight = e.value("weight"), *bias = e.value("bias");
  const Tensor& matrix = *weight->constant;
  ModuleSpec spec{.type = "QuantLinear", .inputs = {"input"}, .short_name = "linear", .source = kQuantLinear};
  spec.arguments = fmt::format("{}, {}", matrix.dims[0], matrix.dims[1]);
  if (bias != nullptr) spec.arguments += ", bias=True";
  spec.weights.push_back({"weight", weight});
  add_steps(e, spec);
  if (bias != nullptr) spec.weights.push_back({"bias", bias});
  return spec;
}

std::optional<ModuleSpec> module_quant_conv(const Emission& e) {
  auto spec = module_conv(e);
  if (!spec) return std::nullopt;
  const size_t rank = e.value("weight")->constant->dims.size() - 2;
  spec->type = fmt::format("QuantConv{}d", rank);
  spec->source = source_of_conv(rank);
  if (e.flag("floor_bias")) spec->arguments += ", floor=True";
  add_steps(e, *spec);
  return spec;
}

}  // namespace tonnx
