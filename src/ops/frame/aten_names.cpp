// aten_names.cpp - the tables and rules by which names of aten operators come to one.
#include "ops/frame/aten_names.h"

#include <algorithm>
#include <unordered_map>

#include "ops/frame/op_def.h"

namespace tonnx {
namespace {

constexpr std::string_view kEvery = "*";

/// An operator, the one that it is, and, where they differ, names of arguments: `theirs=ours`, or `theirs=` for one
/// that the other does not have.
struct NameRow {
  std::string_view op, overload;        // kEvery: any overload
  std::string_view to_op, to_overload;  // kEvery: the same one
  std::string_view arguments = {};
};

constexpr NameRow kAliases[] = {
    {"__and__", kEvery, "bitwise_and", kEvery},
    {"__lshift__", "Scalar", "bitwise_left_shift", "Tensor_Scalar"},
    {"__lshift__", "Tensor", "bitwise_left_shift", "Tensor"},
    {"__or__", kEvery, "bitwise_or", kEvery},
    {"__rshift__", "Scalar", "bitwise_right_shift", "Tensor_Scalar"},
    {"__rshift__", "Tensor", "bitwise_right_shift", "Tensor"},
    {"__xor__", kEvery, "bitwise_xor", kEvery},
    {"_adaptive_avg_pool2d", kEvery, "adaptive_avg_pool2d", kEvery},
    {"_adaptive_avg_pool3d", kEvery, "adaptive_avg_pool3d", kEvery},
    {"_conj_physical", kEvery, "conj_physical", kEvery},
    {"_index_put_impl", kEvery, "index_put", kEvery, "unsafe="},
    {"_local_scalar_dense", "", "item", ""},
    {"_prelu_kernel", kEvery, "prelu", kEvery},
    {"_reshape_alias", "", "view", "", "stride="},
    {"_unsafe_index", "Tensor", "index", "Tensor"},
    {"_unsafe_index_put", kEvery, "index_put", kEvery},
    {"_unsafe_view", "", "view", ""},
    {"absolute", kEvery, "abs", kEvery},
    {"arccos", kEvery, "acos", kEvery},
    {"arccosh", kEvery, "acosh", kEvery},
    {"arcsin", kEvery, "asin", kEvery},
    {"arcsinh", kEvery, "asinh", kEvery},
    {"arctan", kEvery, "atan", kEvery},
    {"arctan2", kEvery, "atan2", kEvery},
    {"arctanh", kEvery, "atanh", kEvery},
    {"broadcast_to", "", "expand", ""},
    {"chain_matmul", "", "linalg_multi_dot", "", "matrices=tensors"},
    {"cholesky", kEvery, "linalg_cholesky", kEvery},
    {"clip", kEvery, "clamp", kEvery},
    {"concat", kEvery, "cat", kEvery},
    {"concatenate", kEvery, "cat", kEvery},
    {"det", "", "linalg_det", "", "self=A"},
    {"divide", kEvery, "div", kEvery},
    {"fix", kEvery, "trunc", kEvery},
    {"ger", kEvery, "outer", kEvery},
    {"greater", kEvery, "gt", kEvery},
    {"greater_equal", kEvery, "ge", kEvery},
    {"inverse", kEvery, "linalg_inv", kEvery, "self=A"},
    {"less", kEvery, "lt", kEvery},
    {"less_equal", kEvery, "le", kEvery},
    {"linalg_matmul", kEvery, "matmul", kEvery},
    {"matrix_exp", kEvery, "linalg_matrix_exp", kEvery},
    {"matrix_power", kEvery, "linalg_matrix_power", kEvery},
    {"max", "other", "maximum", ""},
    {"min", "other", "minimum", ""},
    {"moveaxis", kEvery, "movedim", kEvery},
    {"multiply", kEvery, "mul", kEvery},
    {"negative", kEvery, "neg", kEvery},
    {"not_equal", kEvery, "ne", kEvery},
    {"orgqr", kEvery, "linalg_householder_product", kEvery, "self=input input2=tau"},
    {"row_stack", kEvery, "vstack", kEvery},
    {"slogdet", kEvery, "linalg_slogdet", kEvery, "self=A"},
    {"special_digamma", kEvery, "digamma", kEvery},
    {"special_erf", kEvery, "erf", kEvery},
    {"special_erfc", kEvery, "erfc", kEvery},
    {"special_erfinv", kEvery, "erfinv", kEvery},
    {"special_exp2", kEvery, "exp2", kEvery},
    {"special_expit", kEvery, "sigmoid", kEvery},
    {"special_expm1", kEvery, "expm1", kEvery},
    {"special_gammainc", kEvery, "igamma", kEvery},
    {"special_gammaincc", kEvery, "igammac", kEvery},
    {"special_gammaln", kEvery, "lgamma", kEvery},
    {"special_i0", kEvery, "i0", kEvery},
    {"special_log1p", kEvery, "log1p", kEvery},
    {"special_log_softmax", "", "log_softmax", "int"},
    {"special_logit", kEvery, "logit", kEvery},
    {"special_logsumexp", kEvery, "logsumexp", kEvery},
    {"special_multigammaln", kEvery, "mvlgamma", kEvery},
    {"special_polygamma", kEvery, "polygamma", kEvery},
    {"special_psi", kEvery, "digamma", kEvery},
    {"special_sinc", kEvery, "sinc", kEvery},
    {"special_softmax", "", "softmax", "int"},
    {"special_xlogy", "", "xlogy", "Tensor"},
    {"special_xlogy", "other_scalar", "xlogy", "Scalar_Other"},
    {"special_xlogy", "self_scalar", "xlogy", "Scalar_Self"},
    {"split", "sizes", "split_with_sizes", "", "split_size=split_sizes"},
    {"subtract", kEvery, "sub", kEvery},
    {"swapaxes", "", "transpose", "int", "axis0=dim0 axis1=dim1"},
    {"swapdims", "", "transpose", "int"},
    {"trapz", kEvery, "trapezoid", kEvery},
    {"true_divide", kEvery, "div", kEvery},
    {"unsafe_chunk", kEvery, "chunk", kEvery},
    {"unsafe_split", kEvery, "split", kEvery},
    {"unsafe_split_with_sizes", kEvery, "split_with_sizes", kEvery},
};

/// What the rule "add_ is add, of the same overload" does not give.
constexpr NameRow kInPlace[] = {
    {"__iand__", kEvery, "__and__", kEvery},
    {"__ilshift__", kEvery, "__lshift__", kEvery},
    {"__ior__", kEvery, "__or__", kEvery},
    {"__irshift__", kEvery, "__rshift__", kEvery},
    {"__ixor__", kEvery, "__xor__", kEvery},
    {"alpha_dropout_", "", "alpha_dropout", "", "self=input"},
    {"bernoulli_", "float", "bernoulli", "p"},
    {"dropout_", "", "dropout", "", "self=input"},
    {"feature_alpha_dropout_", "", "feature_alpha_dropout", "", "self=input"},
    {"feature_dropout_", "", "feature_dropout", "", "self=input"},
    {"float_power_", "Scalar", "float_power", "Tensor_Scalar"},
    {"float_power_", "Tensor", "float_power", "Tensor_Tensor"},
    {"floor_divide_", "Tensor", "floor_divide", ""},
    {"ldexp_", "", "ldexp", "Tensor"},
    {"normal_", "", "normal_functional", ""},
    {"pow_", "Scalar", "pow", "Tensor_Scalar"},
    {"pow_", "Tensor", "pow", "Tensor_Tensor"},
    {"swapaxes_", "", "transpose", "int", "axis0=dim0 axis1=dim1"},
    {"swapdims_", "", "transpose", "int"},
    {"transpose_", "", "transpose", "int"},
};

/// An out= overload, the functional one of the same arguments, and the names of the out arguments where they are not
/// `out`, or `out0`, `out1` ...
struct OutRow {
  std::string_view op, overload, functional;
  std::string_view arguments = {};
};

/// What the rule ".out is the empty overload, .X_out is .X" does not give.
constexpr OutRow kOut[] = {
    {"adaptive_max_pool2d", "out", "", "out indices"},
    {"adaptive_max_pool3d", "out", "", "out indices"},
    {"add", "out", "Tensor"},
    {"all", "all_out", ""},
    {"all", "out", "dim"},
    {"aminmax", "out", "", "min max"},
    {"any", "all_out", ""},
    {"any", "out", "dim"},
    {"arange", "start_out", "start_step"},
    {"bernoulli", "float_out", "p"},
    {"copysign", "out", "Tensor"},
    {"cummax", "out", "", "values indices"},
    {"cummin", "out", "", "values indices"},
    {"div", "out", "Tensor"},
    {"div", "out_mode", "Tensor_mode"},
    {"empty", "out", "memory_format"},
    {"fractional_max_pool2d", "output", "", "output indices"},
    {"fractional_max_pool3d", "output", "", "output indices"},
    {"frexp", "Tensor_out", "Tensor", "mantissa exponent"},
    {"frobenius_norm", "out", "dim"},
    {"geqrf", "a", "", "a tau"},
    {"histogram", "bin_ct_out", "bin_ct", "hist bin_edges"},
    {"histogram", "bins_tensor_out", "bins_tensor", "hist bin_edges"},
    {"kthvalue", "values", "", "values indices"},
    {"ldexp", "out", "Tensor"},
    {"linalg_cholesky_ex", "L", "", "L info"},
    {"linalg_eig", "out", "", "eigenvalues eigenvectors"},
    {"linalg_eigh", "eigvals", "", "eigvals eigvecs"},
    {"linalg_inv_ex", "inverse", "", "inverse info"},
    {"linalg_ldl_factor", "out", "", "LD pivots"},
    {"linalg_ldl_factor_ex", "out", "", "LD pivots info"},
    {"linalg_lstsq", "out", "", "solution residuals rank singular_values"},
    {"linalg_lu", "out", "", "P L U"},
    {"linalg_lu_factor", "out", "", "LU pivots"},
    {"linalg_lu_factor_ex", "out", "", "LU pivots info"},
    {"linalg_matrix_rank", "out_tol_tensor", "tol_tensor"},
    {"linalg_pinv", "out_rcond_tensor", "rcond_tensor"},
    {"linalg_qr", "out", "", "Q R"},
    {"linalg_slogdet", "out", "", "sign logabsdet"},
    {"linalg_solve_ex", "out", "", "result info"},
    {"linalg_svd", "U", "", "U S Vh"},
    {"lu_unpack", "out", "", "P L U"},
    {"max", "dim_max", "dim", "max max_values"},
    {"max", "out", "other"},
    {"max", "unary_out", ""},
    {"max_pool2d_with_indices", "out", "", "out indices"},
    {"max_pool3d_with_indices", "out", "", "out indices"},
    {"mean", "dtype_out", ""},
    {"mean", "out", "dim"},
    {"median", "dim_values", "dim", "values indices"},
    {"min", "dim_min", "dim", "min min_indices"},
    {"min", "out", "other"},
    {"min", "unary_out", ""},
    {"mode", "values", "", "values indices"},
    {"mul", "out", "Tensor"},
    {"nanmedian", "dim_values", "dim", "values indices"},
    {"native_batch_norm", "out", "", "out save_mean save_invstd"},
    {"norm", "dtype_out", "ScalarOpt_dim_dtype"},
    {"norm", "out", "ScalarOpt_dim"},
    {"prod", "int_out", "dim_int"},
    {"qr", "Q", "", "Q R"},
    {"range", "out", "step"},
    {"range", "out_", "", "out"},
    {"sort", "values", "", "values indices"},
    {"sort", "values_stable", "stable", "values indices"},
    {"std", "out", "dim"},
    {"sub", "out", "Tensor"},
    {"sum", "IntList_out", "dim_IntList"},
    {"svd", "U", "", "U S V"},
    {"topk", "values", "", "values indices"},
    {"triangular_solve", "X", "", "X M"},
    {"var", "out", "dim"},
    {"xlogy", "OutScalar_Other", "Scalar_Other"},
    {"xlogy", "OutScalar_Self", "Scalar_Self"},
    {"xlogy", "OutTensor", "Tensor"},
};

/// Views that are copied by `<name>_copy`, and have no row that says they are views: the tensor itself under another
/// name, and other names of view.
constexpr std::string_view kViewsWithoutRow[] = {"_neg_view", "_reshape_alias", "alias", "detach"};

/// The rows of a table by the name of the operator.
template <class Row>
class RowsByName {
 public:
  template <size_t N>
  explicit RowsByName(const Row (&rows)[N]) {
    for (const Row& row : rows) rows_[row.op].push_back(&row);
  }
  const Row* find(std::string_view op, std::string_view overload) const {
    const auto at = rows_.find(op);
    if (at == rows_.end()) return nullptr;
    for (const Row* row : at->second) {
      if (row->overload == kEvery || row->overload == overload) return row;
    }
    return nullptr;
  }

 private:
  std::unordered_map<std::string_view, std::vector<const Row*>> rows_;
};

const NameRow* find_alias(const Node& node) {
  static const RowsByName<NameRow> rows(kAliases);
  return rows.find(node.op.view(), node.overload.view());
}

const OutRow* find_out(const Node& node) {
  static const RowsByName<OutRow> rows(kOut);
  return rows.find(node.op.view(), node.overload.view());
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

void rename(Node& node, const NameRow& row) {
  node.op = row.to_op;
  if (row.to_overload != kEvery) node.overload = row.to_overload;
  for (const std::string_view pair : words(row.arguments)) {
    const std::string_view theirs = pair.substr(0, pair.find('=')), ours = pair.substr(pair.find('=') + 1);
    if (ours.empty()) {
      node.take_attribute(theirs);
      continue;
    }
    for (Attribute& attribute : node.attributes) {
      if (attribute.name == theirs) {
        attribute.name = ours;
        break;
      }
    }
  }
  node.mark_changed();
}

bool is_aten(const Node& node) {
  static const Symbol aten("aten");
  return node.domain == aten;
}

}  // namespace

bool copies_view(const Node& node) {
  constexpr std::string_view kSuffix = "_copy";
  const std::string_view op = node.op.view();
  if (!op.ends_with(kSuffix) || !is_aten(node)) return false;
  const std::string_view stem = op.substr(0, op.size() - kSuffix.size());
  if (std::find(std::begin(kViewsWithoutRow), std::end(kViewsWithoutRow), stem) != std::end(kViewsWithoutRow))
    return true;
  const AtenOpEntry* entry =
      find_aten_op(fmt::format("aten::{}{}{}", stem, node.overload.empty() ? "" : ".", node.overload.view()));
  return entry != nullptr && entry->op->view != ViewRule::None;
}

const AtenOpEntry* find_canonical_op(const Node& node) {
  const NameRow* row = is_aten(node) ? find_alias(node) : nullptr;
  if (row == nullptr) return find_aten_op(node);
  const std::string_view overload = row->to_overload == kEvery ? node.overload.view() : row->to_overload;
  return find_aten_op(fmt::format("aten::{}{}{}", row->to_op, overload.empty() ? "" : ".", overload));
}

void use_canonical_name(Node& node) {
  if (!is_aten(node)) return;
  if (copies_view(node)) {
    node.op = node.op.view().substr(0, node.op.view().size() - 5);
    node.mark_changed();
    // a copy need not lie in memory as a view has to
    static const Symbol view("view");
    if (node.op == view && node.overload.empty()) rename(node, {"view", "", "reshape", "", "size=shape"});
  }
  if (const NameRow* row = find_alias(node)) rename(node, *row);
  static const Symbol special_round("special_round");
  if (node.op == special_round) {
    node.op = "round";
    if (node.overload.empty() && node.find_attribute("decimals")) node.overload = "decimals";
    node.mark_changed();
  }
}

bool writes_self(const Node& node) {
  const std::string_view op = node.op.view();
  if (!op.ends_with('_') || !is_aten(node)) return false;
  return !op.ends_with("__") || op.starts_with("__i");
}

std::vector<std::string_view> out_arguments(const Node& node) {
  if (!is_aten(node) || node.overload.empty()) return {};
  const OutRow* row = find_out(node);
  if (row == nullptr && node.overload.view() != "out" && !node.overload.view().ends_with("_out")) return {};
  if (row != nullptr && !row->arguments.empty()) return words(row->arguments);
  if (node.find_attribute("out")) return {"out"};
  constexpr std::string_view kNumbered[] = {"out0", "out1", "out2", "out3", "out4"};
  std::vector<std::string_view> result;
  for (const std::string_view name : kNumbered) {
    if (node.find_attribute(name)) result.push_back(name);
  }
  return result;
}

void use_functional_name(Node& node) {
  static const RowsByName<NameRow> in_place(kInPlace);
  if (writes_self(node)) {
    if (const NameRow* row = in_place.find(node.op.view(), node.overload.view())) {
      rename(node, *row);
      // the one default that the functional form does not have
      const bool has_p = node.op != "bernoulli" || node.find_attribute("p");
      if (!has_p) node.set_attribute("p", 0.5);
    } else {
      node.op = node.op.view().substr(0, node.op.view().size() - 1);
      node.mark_changed();
    }
  } else if (!out_arguments(node).empty()) {
    const OutRow* row = find_out(node);
    const std::string_view overload = node.overload.view();
    node.overload = row ? row->functional : overload == "out" ? "" : overload.substr(0, overload.size() - 4);
    node.mark_changed();
  }
  use_canonical_name(node);
}

}  // namespace tonnx
