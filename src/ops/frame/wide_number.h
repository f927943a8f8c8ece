// wide_number.h - arithmetic of tensors of float64 as it is written on paper, for operators that ONNX lacks.
#pragma once
#include <span>
#include <string_view>

#include "ops/frame/aten_to_onnx.h"

namespace tonnx {

/// A tensor of float64 in the making; numbers may stand beside it.
class Wide {
 public:
  Wide(OnnxBuilder& onnx, Value* value) : onnx_(&onnx), value_(value) {}

  OnnxBuilder& onnx() const { return *onnx_; }
  Value* value() const { return value_; }
  Wide number(double value) const { return {*onnx_, onnx_->number(DType::Float64, value)}; }
  Wide unary(std::string_view op) const { return {*onnx_, (*onnx_)(op, {value_})}; }
  Wide binary(std::string_view op, const Wide& other) const { return {*onnx_, (*onnx_)(op, {value_, other.value_})}; }
  Value* compare(std::string_view op, const Wide& other) const { return (*onnx_)(op, {value_, other.value_}); }

  friend Wide operator+(const Wide& a, const Wide& b) { return a.binary("Add", b); }
  friend Wide operator-(const Wide& a, const Wide& b) { return a.binary("Sub", b); }
  friend Wide operator*(const Wide& a, const Wide& b) { return a.binary("Mul", b); }
  friend Wide operator/(const Wide& a, const Wide& b) { return a.binary("Div", b); }
  friend Wide operator+(const Wide& a, double b) { return a + a.number(b); }
  friend Wide operator-(const Wide& a, double b) { return a - a.number(b); }
  friend Wide operator*(const Wide& a, double b) { return a * a.number(b); }
  friend Wide operator/(const Wide& a, double b) { return a / a.number(b); }
  friend Wide operator+(double a, const Wide& b) { return b.number(a) + b; }
  friend Wide operator-(double a, const Wide& b) { return b.number(a) - b; }
  friend Wide operator*(double a, const Wide& b) { return b.number(a) * b; }
  friend Wide operator/(double a, const Wide& b) { return b.number(a) / b; }
  friend Wide operator-(const Wide& a) { return a.unary("Neg"); }

  friend Value* operator<(const Wide& a, double b) { return a.compare("Less", a.number(b)); }
  friend Value* operator<=(const Wide& a, double b) { return a.compare("LessOrEqual", a.number(b)); }
  friend Value* operator>(const Wide& a, double b) { return a.compare("Greater", a.number(b)); }
  friend Value* operator>=(const Wide& a, double b) { return a.compare("GreaterOrEqual", a.number(b)); }
  friend Value* operator==(const Wide& a, double b) { return a.compare("Equal", a.number(b)); }
  friend Value* operator<(const Wide& a, const Wide& b) { return a.compare("Less", b); }
  friend Value* operator==(const Wide& a, const Wide& b) { return a.compare("Equal", b); }

  friend Wide abs(const Wide& x) { return x.unary("Abs"); }
  friend Wide exp(const Wide& x) { return x.unary("Exp"); }
  friend Wide log(const Wide& x) { return x.unary("Log"); }
  friend Wide sqrt(const Wide& x) { return x.unary("Sqrt"); }
  friend Wide sin(const Wide& x) { return x.unary("Sin"); }
  friend Wide cos(const Wide& x) { return x.unary("Cos"); }
  friend Wide floor(const Wide& x) { return x.unary("Floor"); }
  friend Wide round(const Wide& x) { return x.unary("Round"); }
  friend Wide sign(const Wide& x) { return x.unary("Sign"); }
  friend Wide pow(const Wide& x, const Wide& y) { return x.binary("Pow", y); }
  friend Wide pow(const Wide& x, double y) { return x.binary("Pow", x.number(y)); }
  friend Wide max(const Wide& x, double y) { return x.binary("Max", x.number(y)); }
  friend Wide min(const Wide& x, double y) { return x.binary("Min", x.number(y)); }
  friend Wide select(Value* condition, const Wide& a, const Wide& b) {
    return {a.onnx(), a.onnx().where(condition, a.value_, b.value_)};
  }
  friend Wide select(Value* condition, double a, const Wide& b) { return select(condition, b.number(a), b); }
  friend Wide select(Value* condition, const Wide& a, double b) { return select(condition, a, a.number(b)); }
  friend Wide square(const Wide& x) { return x * x; }

  /// c[0] + c[1] * x + c[2] * x^2 ..., as a sum over powers times coefficients: four nodes for any degree.
  friend Wide polynomial(const Wide& x, std::span<const double> c);
  /// The sum of 1 / (x + k)^s and the product of x + k over k = 0 ... count - 1.
  friend Wide sum_of_powers(const Wide& x, int count, const Wide& s);
  friend Wide product_from(const Wide& x, int count);

 private:
  OnnxBuilder* onnx_;
  Value* value_;
};

// Functions that several others are made of (aten_special.cpp, aten_gamma.cpp).
Wide log_gamma(const Wide& x);
Wide digamma(const Wide& x);
/// exp(x^2) * erfc(x).
Wide scaled_erfc(const Wide& x);
Wide erfc(const Wide& x);
Wide erf(const Wide& x);
Wide arc_tangent(const Wide& x);

/// A function of one tensor, computed in float64.
template <Wide (*Function)(const Wide&)>
Values raise_wide(const AtenNode& n, OnnxBuilder& onnx) {
  const DType dtype = n.output_dtype();
  const char* name = n.node().find_attribute("self") ? "self" : "x";
  const Wide x(onnx, onnx.cast(n.input_as(name, dtype), DType::Float64));
  return onnx.cast(Function(x).value(), dtype);
}

}  // namespace tonnx
