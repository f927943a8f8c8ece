// factor_raise.cpp - factorisations, norms of matrices and other operators that PyTorch has and ONNX has nothing for.
#include "ops/frame/op_def.h"
#include "ops/linalg/rows.h"

namespace tonnx {
namespace {

constexpr AtenOp kAtenFactorAten[] = {
    {.sig = "aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
     .layout = Layout::Own,
     .python = "torch.linalg.qr",
     .note = kNoOperator},
    {.sig = "aten::linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
     .layout = Layout::Own,
     .python = "torch.linalg.pinv",
     .note = kNoOperator},
    {.sig = "aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
            "hermitian=False) -> Tensor",
     .layout = Layout::Own,
     .python = "torch.linalg.pinv",
     .note = kNoOperator},
    {.sig = "aten::linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
            "hermitian=False) -> Tensor",
     .layout = Layout::Own,
     .python = "torch.linalg.pinv",
     .note = kNoOperator},
    {.sig = "aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? "
            "dtype=None) -> Tensor",
     .python = "torch.linalg.matrix_norm",
     .note = kNoOperator},
    {.sig = "aten::linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, "
            "ScalarType? dtype=None) -> Tensor",
     .python = "torch.linalg.matrix_norm",
     .note = kNoOperator},
    {.sig = "aten::linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
     .python = "torch.linalg.matrix_rank",
     .note = kNoOperator},
    {.sig = "aten::linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
            "hermitian=False) -> Tensor",
     .python = "torch.linalg.matrix_rank",
     .note = kNoOperator},
    {.sig = "aten::linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
            "hermitian=False) -> Tensor",
     .python = "torch.linalg.matrix_rank",
     .note = kNoOperator},
    {.sig = "aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
            "dtype=None) -> Tensor",
     .python = "torch.linalg.norm",
     .note = kNoOperator},
    {.sig = "aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
            "dtype=None) -> Tensor",
     .python = "torch.linalg.norm",
     .note = kNoOperator},
    {.sig = "aten::linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
     .python = "torch.linalg.cond",
     .note = kNoOperator},
    {.sig = "aten::linalg_cond.p_str(Tensor self, str p) -> Tensor",
     .python = "torch.linalg.cond",
     .note = kNoOperator},
    {.sig = "aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
     .layout = Layout::Own,
     .python = "torch.linalg.householder_product",
     .note = kNoOperator},
    {.sig = "aten::linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
     .layout = Layout::Own,
     .python = "torch.linalg.ldl_factor",
     .note = kNoOperator},
    {.sig = "aten::linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, "
            "Tensor pivots, Tensor info)",
     .layout = Layout::Own,
     .python = "torch.linalg.ldl_factor_ex",
     .note = kNoOperator},
    {.sig = "aten::linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
     .layout = Layout::Own,
     .python = "torch.linalg.ldl_solve",
     .note = kNoOperator},
    {.sig = "aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
     .layout = Layout::Own,
     .python = "torch.linalg.lu",
     .note = kNoOperator},
    {.sig = "aten::linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
     .layout = Layout::Own,
     .python = "torch.linalg.lu_factor",
     .note = kNoOperator},
    {.sig = "aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor "
            "pivots, Tensor info)",
     .layout = Layout::Own,
     .python = "torch.linalg.lu_factor_ex",
     .note = kNoOperator},
    {.sig =
         "aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
     .python = "torch.linalg.lu_solve",
     .note = kNoOperator},
    {.sig = "aten::linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
     .layout = Layout::Own,
     .python = "torch.linalg.tensorsolve",
     .note = kNoOperator},
    {.sig = "aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
     .layout = Layout::Own,
     .python = "torch.lu_solve",
     .note = kNoOperator},
    {.sig = "aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
            "(Tensor P, Tensor L, Tensor U)",
     .layout = Layout::Own,
     .python = "torch.lu_unpack",
     .note = kNoOperator},
    {.sig = "aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)", .python = "torch.geqrf", .note = kNoOperator},
    {.sig = "aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
     .python = "torch.ormqr",
     .note = kNoOperator},
    {.sig = "aten::pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor",
     .layout = Layout::Own,
     .python = "torch.pinverse",
     .note = kNoOperator},
    {.sig = "aten::qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
     .layout = Layout::Own,
     .python = "torch.qr",
     .note = kNoOperator},
    {.sig =
         "aten::gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
     .python = "torch.gradient",
     .note = kNoOperator},
    {.sig = "aten::gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
     .python = "torch.gradient",
     .note = kNoOperator},
    {.sig = "aten::gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
     .python = "torch.gradient",
     .note = kNoOperator},
    {.sig =
         "aten::gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
     .python = "torch.gradient",
     .note = kNoOperator},
    {.sig = "aten::gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
     .python = "torch.gradient",
     .note = kNoOperator},
    {.sig =
         "aten::gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
     .python = "torch.gradient",
     .note = kNoOperator},
    {.sig = "aten::gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
     .python = "torch.gradient",
     .note = kNoOperator},
    {.sig = "aten::hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
     .python = "torch.hash_tensor",
     .note = kNoOperator},
};

}  // namespace

extern const OpFamily kAtenFactorOps;
constinit const OpFamily kAtenFactorOps{"aten_factor", {}, kAtenFactorAten};

}  // namespace tonnx
