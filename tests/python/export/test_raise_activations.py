"""Activation functions, softmax, losses, distances: ONNX Runtime against PyTorch."""

import export_checks
import pytest
import torch
import torch.nn.functional as F

torch.manual_seed(0)
X = torch.randn(3, 4, 5) * 3
C = torch.randn(3, 4)
T = torch.tensor([1, 3, 0])


def activations(x):
    return (
        F.relu(x), F.relu6(x), F.elu(x), F.elu(x, 0.5), F.celu(x), F.celu(x, 1.7), F.selu(x), F.gelu(x),
        F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.hardswish(x), F.hardsigmoid(x), F.hardtanh(x, -0.5, 2),
        F.hardshrink(x), F.softshrink(x, 0.3), F.softplus(x), F.softplus(x, 2, 1), F.threshold(x, 0.1, -2.0),
        F.leaky_relu(x, 0.2), F.logsigmoid(x), F.glu(x, 1), F.softsign(x), F.tanhshrink(x), F.rrelu(x),
    )  # fmt: skip


@pytest.mark.parametrize("opset", [11, 13, 18, None, 24])
def test_activations(opset):
    export_checks.check(activations, X, opset=opset)


def test_float64():
    export_checks.check(activations, X.double(), rtol=1e-6)


def test_prelu():
    export_checks.check(torch.nn.PReLU(4), X, nodes=1)
    export_checks.check(torch.nn.PReLU(), C, nodes=1)


@pytest.mark.parametrize("opset", [11, None])
def test_softmax(opset):
    def softmax(x):
        return (
            F.softmax(x, 1), F.log_softmax(x, -1), F.softmin(x, 0), F.softmax(x, 0, dtype=torch.float64),
            torch.softmax(x[0, 0, 0], 0),
        )  # fmt: skip

    export_checks.check(softmax, X, opset=opset)


def losses(x, y):
    p, q = x.sigmoid(), y.sigmoid()
    sign = torch.where(y[:, 0] > 0, 1.0, -1.0)
    result = []
    for reduction in ("none", "mean", "sum"):
        result += [
            F.mse_loss(x, y, reduction=reduction), F.l1_loss(x, y, reduction=reduction),
            F.smooth_l1_loss(x, y, reduction=reduction, beta=0.7), F.huber_loss(x, y, reduction=reduction, delta=0.6),
            F.binary_cross_entropy(p, q, reduction=reduction),
            F.binary_cross_entropy_with_logits(x, q, reduction=reduction, pos_weight=q[0]),
            F.kl_div(p.log(), q, reduction=reduction), F.kl_div(p.log(), q.log(), reduction=reduction, log_target=True),
            F.poisson_nll_loss(x, q * 3, full=True, reduction=reduction), F.soft_margin_loss(x, y.sign(), reduction=reduction),
            F.hinge_embedding_loss(x, y.sign(), reduction=reduction),
            F.margin_ranking_loss(x[:, 0], y[:, 0], sign, margin=0.1, reduction=reduction),
            F.cosine_embedding_loss(x, y, sign, margin=0.2, reduction=reduction),
            F.triplet_margin_loss(x, y, p, swap=True, reduction=reduction),
        ]  # fmt: skip
    return tuple(result)


@pytest.mark.parametrize("opset", [12, None])
def test_losses(opset):
    export_checks.check(losses, C, torch.randn(3, 4), opset=opset)


def classes(x, t, w):
    p = torch.softmax(x + 1, 1)
    many = torch.tensor([[1, 0, -1, 2], [3, -1, 0, 0], [0, 1, 2, 3]])
    result = []
    for reduction in ("none", "mean", "sum"):
        result += [
            F.cross_entropy(x, t, reduction=reduction), F.cross_entropy(x, t, w, ignore_index=3, reduction=reduction),
            F.cross_entropy(x, t, w, label_smoothing=0.1, reduction=reduction), F.cross_entropy(x, p, reduction=reduction),
            F.cross_entropy(x, p, w, label_smoothing=0.2, reduction=reduction), F.nll_loss(x, t, w, reduction=reduction),
            F.multi_margin_loss(x, t, reduction=reduction), F.multi_margin_loss(x, t, 2, weight=w, reduction=reduction),
            F.multilabel_margin_loss(x, many, reduction=reduction), F.cross_entropy(x[0], t[0], reduction=reduction),
        ]  # fmt: skip
    return tuple(result)


def test_classes():
    export_checks.check(classes, C, T, torch.rand(4))


def test_image_classes():
    export_checks.check(lambda x, t: F.cross_entropy(x, t), torch.randn(2, 3, 4, 5), torch.randint(0, 3, (2, 4, 5)))


def test_distances():
    def distances(x, y):
        return (
            torch.cdist(x, y), torch.cdist(x, y, 1), torch.cdist(x, y, float("inf")), torch.cdist(x, y, 3.0),
            F.pdist(x), F.pdist(x, 0), F.pairwise_distance(x, y[:3]), F.pairwise_distance(x, y[:3], 1, keepdim=True),
            F.cosine_similarity(x, y[:3]), F.cosine_similarity(x, y[:1], dim=0), torch.dist(x, y[:3], 3),
        )  # fmt: skip

    export_checks.check(distances, C, torch.randn(5, 4))
