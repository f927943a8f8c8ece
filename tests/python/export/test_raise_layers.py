"""Convolutions, pools, normalisations, attention, recurrent layers and resizing: PyTorch -> ONNX."""

import pytest
import torch
import torch.nn.functional as F
from export_checks import check
from stand_in import stand_in
from torch import nn

torch.manual_seed(0)
X1, X2, X3 = torch.randn(2, 4, 11), torch.randn(2, 4, 9, 10), torch.randn(2, 4, 6, 7, 5)
N = torch.export.Dim("n", min=2, max=64)
H = torch.export.Dim("h", min=6, max=64)


CONVOLUTIONS = [
    (nn.Conv1d(4, 6, 3), X1),
    (nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), bias=False), X2),
    (nn.Conv2d(4, 8, 3, groups=4, padding="same", dilation=2), X2),
    (nn.Conv2d(4, 6, (4, 3), padding="same"), X2),
    (nn.Conv3d(4, 6, 2, padding="valid"), X3),
    (nn.Conv2d(4, 6, 3), X2[0]),
    (nn.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1), X1),
    (nn.ConvTranspose2d(4, 6, 3, stride=3, padding=1, output_padding=(1, 2), groups=2), X2),
    (nn.ConvTranspose3d(4, 6, 2, dilation=2, bias=False), X3),
]


@pytest.mark.parametrize(("module", "x"), CONVOLUTIONS)
def test_convolution(module, x):
    check(module.eval(), x)


def test_convolution_of_time_batch_channels():
    weight, bias = torch.randn(3, 4, 6), torch.randn(6)
    check(lambda x: torch.conv_tbc(x, weight, bias, 1), torch.randn(7, 2, 4))


def test_dynamic_convolution():
    check(nn.Conv2d(4, 6, 3).eval(), X2, dynamic=[{0: N, 2: H}], also=[(torch.randn(3, 4, 12, 10),)], nodes=1)


POOLS = [
    (lambda x: F.max_pool1d(x, 3, 2, 1), X1),
    (lambda x: F.max_pool1d(x, 3, 2, 1, ceil_mode=True), X1),
    (lambda x: F.max_pool2d(x, (3, 2)), X2),
    (lambda x: F.max_pool2d(x, 3, 3, 1, ceil_mode=True), X2),
    (lambda x: F.max_pool2d(x, 2, 2, 0, 2, return_indices=True), X2),
    (lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True, ceil_mode=True), X2),
    (lambda x: F.max_pool2d(x, 2, 3, 1, return_indices=True, ceil_mode=True), X2[0]),
    (lambda x: F.max_pool3d(x, 2, return_indices=True), X3),
    (lambda x: F.avg_pool1d(x, 3, 2, 1), X1),
    (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), X2),
    (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), X2),
    (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), X2),
    (lambda x: F.avg_pool2d(x, (2, 3), divisor_override=5), X2),
    (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=2), X2[0]),
    (lambda x: F.avg_pool3d(x, 2, ceil_mode=True), X3),
    (lambda x: F.adaptive_avg_pool1d(x, 4), X1),
    (lambda x: F.adaptive_avg_pool2d(x, (3, 5)), X2),
    (lambda x: F.adaptive_avg_pool2d(x, (1, None)), X2),
    (lambda x: F.adaptive_avg_pool2d(x, 4), X2[0]),
    (lambda x: F.adaptive_avg_pool2d(x, 1), X2),
    (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), X3),
    (lambda x: F.adaptive_max_pool1d(x, 4, return_indices=True), X1),
    (lambda x: F.adaptive_max_pool2d(x, (3, 5), return_indices=True), X2),
    (lambda x: F.adaptive_max_pool2d(x, (2, 3), return_indices=True), X2),
    (lambda x: F.adaptive_max_pool2d(x, 1), X2),
    (lambda x: F.adaptive_max_pool3d(x, (4, 2, 2), return_indices=True), X3),
    (lambda x: F.lp_pool2d(x.abs(), 2, 3), X2),
    (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(9, 10)), X2),
    (lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2, output_size=(6, 7, 5)), X3),
]


@pytest.mark.parametrize("case", POOLS)
def test_pool(case):
    function, x = case
    check(function, x)


@pytest.mark.parametrize(
    ("function", "x", "samples"),
    [
        (
            lambda x, s: F.fractional_max_pool2d(x, (3, 2), (4, 5), _random_samples=s, return_indices=True),
            X2,
            (2, 4, 2),
        ),
        (lambda x, s: F.fractional_max_pool2d(x, 2, (4, 1), _random_samples=s), X2[0], (1, 4, 2)),
        (lambda x, s: F.fractional_max_pool3d(x, 2, (3, 4, 2), _random_samples=s, return_indices=True), X3, (2, 4, 3)),
    ],
)
def test_fractional_pool(function, x, samples):
    check(function, x, torch.rand(samples))


@pytest.mark.parametrize("opset", [11, 13, 18, 23])
def test_pool_opsets(opset):
    check(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True, ceil_mode=True), X2, opset=opset)
    check(lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), X2, opset=opset)
    check(lambda x: F.adaptive_avg_pool2d(x, (3, 5)), X2, opset=opset)


def test_dynamic_pools():
    other = (torch.randn(3, 4, 13, 10),)
    check(lambda x: F.max_pool2d(x, 3, 2, 1), X2, dynamic=[{0: N, 2: H}], also=[other], nodes=1)
    check(lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), X2, dynamic=[{0: N, 2: H}], also=[other])
    check(lambda x: F.adaptive_avg_pool2d(x, 1), X2, dynamic=[{0: N, 2: H}], also=[other], nodes=1)


def norm(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    for name, buffer in module.named_buffers():
        if name.startswith("running"):
            nn.init.uniform_(buffer, 0.5, 2)
    return module.eval()


NORMS = [
    (norm(nn.BatchNorm1d(4)), X1),
    (norm(nn.BatchNorm1d(5, affine=False)), torch.randn(3, 5)),
    (norm(nn.BatchNorm2d(4, eps=0.01)), X2),
    (norm(nn.BatchNorm2d(4, track_running_stats=False)), X2),
    (norm(nn.InstanceNorm1d(4)), X1),
    (norm(nn.InstanceNorm2d(4, affine=True, eps=0.1)), X2),
    (norm(nn.InstanceNorm2d(4, track_running_stats=True)), X2),
    (norm(nn.LayerNorm(10)), X2),
    (norm(nn.LayerNorm((9, 10), eps=0.1)), X2),
    (norm(nn.LayerNorm(10, bias=False)), X2),
    (norm(nn.LayerNorm(10, elementwise_affine=False)), X2),
    (norm(nn.GroupNorm(2, 4)), X2),
    (norm(nn.GroupNorm(4, 4, eps=0.1)), X1),
    (norm(nn.GroupNorm(2, 4, affine=False)), X2),
    (norm(nn.RMSNorm(10)), X2),
    (norm(nn.RMSNorm((9, 10), eps=0.1, elementwise_affine=False)), X2),
]


@pytest.mark.parametrize(("module", "x"), NORMS)
def test_norm(module, x):
    check(module, x, atol=1e-4)


@pytest.mark.parametrize("opset", [11, 13, 17, 18, 21, 23])
@pytest.mark.parametrize("module", [norm(nn.LayerNorm(10)), norm(nn.GroupNorm(2, 4)), norm(nn.RMSNorm(10))])
def test_norm_opsets(module, opset):
    check(module, X2, opset=opset, atol=1e-4)
    check(module, X2, opset=opset, atol=1e-4, dynamic=[{0: N, 2: H}], also=[(torch.randn(3, 4, 8, 10),)])


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(4, 6, 3, bias=False),
        nn.Conv2d(4, 6, 3, groups=2),
        nn.ConvTranspose2d(4, 6, 3, groups=2),
        nn.ConvTranspose2d(4, 6, 2, bias=False),
    ],
)
def test_batch_norm_becomes_weights(layer):
    model = check(nn.Sequential(layer, norm(nn.BatchNorm2d(6))).eval(), X2, nodes=1)
    assert "0.weight" in {value.name for value in model.graph.initializer}


def test_batch_norm_behind_linear_becomes_weights():
    check(nn.Sequential(nn.Linear(5, 6), norm(nn.BatchNorm1d(6))).eval(), torch.randn(3, 5), nodes=1)


def test_batch_norm_stays_where_the_layer_is_used_twice():
    conv, bn = nn.Conv2d(4, 6, 3), norm(nn.BatchNorm2d(6))

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn = conv, bn

        def forward(self, x):
            y = self.conv(x)
            return self.bn(y), y

    check(Twice().eval(), X2, nodes=2)


Q, K, V = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 7, 8), torch.randn(2, 4, 7, 6)
SMALL_K, SMALL_V = K[:, :2], V[:, :2]
BOOL = torch.randn(5, 7) > 0
BOOL[1] = False
FLOAT = torch.randn(2, 1, 5, 7)
EMPTY_ROW = FLOAT.clone()
EMPTY_ROW[0, 0, 2] = -torch.inf
attention = F.scaled_dot_product_attention
ATTENTIONS = [
    (lambda q, k, v: attention(q, k, v), (Q, K, V)),
    (lambda q, k, v: attention(q, k, v, scale=0.3), (Q, K, V)),
    (lambda q, k, v: attention(q, k, v, is_causal=True), (Q, K, V)),
    (lambda q, k, v: attention(q, k, v), (Q[0], K[0], V[0])),
    (lambda q, k, v: attention(q, k, v), (Q[0, 0], K[0, 0], V[0, 0])),
    (lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, BOOL)),
    (lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, FLOAT)),
    (lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, EMPTY_ROW)),
    (lambda q, k, v, m: attention(q, k, v, m), (Q[0], K[0], V[0], torch.randn(4, 5, 7))),
    (lambda q, k, v, m: attention(q, k, v, m), (Q[0], K[0], V[0], BOOL)),
    (lambda q, k, v, m: attention(q, k, v, m), (Q, K, V, torch.randn(1, 1, 5, 1))),
    (lambda q, k, v: attention(q, k, v, enable_gqa=True), (Q, SMALL_K, SMALL_V)),
    (lambda q, k, v: attention(q, k, v, enable_gqa=True, is_causal=True), (Q, SMALL_K, SMALL_V)),
    (lambda q, k, v, m: attention(q, k, v, m, enable_gqa=True), (Q, SMALL_K, SMALL_V, BOOL)),
]


@pytest.mark.parametrize("opset", [None, 11, 23])
@pytest.mark.parametrize("case", ATTENTIONS)
def test_attention(case, opset):
    check(case[0], *case[1], opset=opset)


@pytest.mark.parametrize("opset", [13, 20])
def test_dynamic_attention(opset):
    auto = torch.export.Dim.AUTO
    sizes = [{0: auto, 2: auto}] * 3
    args = tuple(torch.randn(2, 4, 5, 8) for _ in range(3))
    other = tuple(torch.randn(3, 4, 9, 8) for _ in range(3))
    check(lambda q, k, v: attention(q, k, v), *args, dynamic=sizes, also=[other], opset=opset, nodes=5)
    check(lambda q, k, v: attention(q, k, v, is_causal=True), *args, dynamic=sizes, also=[other], opset=opset)
    grouped = (args[0], args[1][:, :2], args[2][:, :2])
    other = (other[0], other[1][:, :2], other[2][:, :2])
    check(lambda q, k, v: attention(q, k, v, enable_gqa=True), *grouped, dynamic=sizes, also=[other], opset=opset)
    check(
        lambda q, k, v: attention(q, k, v, enable_gqa=True, is_causal=True),
        *grouped,
        dynamic=sizes,
        also=[other],
        opset=opset,
    )


RECURRENT = [
    (nn.LSTM(4, 5), 2),
    (nn.LSTM(4, 5, num_layers=2, bidirectional=True), 8),
    (nn.LSTM(4, 5, batch_first=True, bias=False), 4),
    (nn.LSTM(4, 5, batch_first=True, bidirectional=True), 4),
    (nn.GRU(4, 5), 2),
    (nn.GRU(4, 5, num_layers=2, batch_first=True), 8),
    (nn.GRU(4, 5, bidirectional=True, bias=False), 3),
    (nn.RNN(4, 5), 2),
    (nn.RNN(4, 5, nonlinearity="relu", bidirectional=True), 3),
]


@pytest.mark.parametrize("opset", [None, 11, 23])
@pytest.mark.parametrize(("module", "nodes"), RECURRENT)
def test_recurrent(module, nodes, opset):
    layers = module.num_layers * (2 if module.bidirectional else 1)
    h, c = torch.randn(layers, 3, 5), torch.randn(layers, 3, 5)
    x = torch.randn(3, 7, 4) if module.batch_first else torch.randn(7, 3, 4)
    state = (h, c) if isinstance(module, nn.LSTM) else h

    class Given(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x, *state):
            return self.inner(x, state if len(state) == 2 else state[0])

    check(Given().eval(), x, *(state if isinstance(state, tuple) else (state,)), opset=opset)


@pytest.mark.parametrize(
    "cell", [nn.LSTMCell(4, 5), nn.GRUCell(4, 5), nn.RNNCell(4, 5, nonlinearity="relu", bias=False)]
)
def test_cell(cell):
    h, c = torch.randn(3, 5), torch.randn(3, 5)
    if isinstance(cell, nn.LSTMCell):
        check(lambda x, h, c: cell(x, (h, c)), torch.randn(3, 4), h, c)
    else:
        check(lambda x, h: cell(x, h), torch.randn(3, 4), h)


RESIZES = [
    ({"size": 17}, "nearest", X1),
    ({"size": (13, 7)}, "nearest", X2),
    ({"scale_factor": 2}, "nearest", X2),
    ({"scale_factor": (1.7, 0.6)}, "nearest", X2),
    ({"scale_factor": 2.3}, "nearest-exact", X2),
    ({"size": (5, 21)}, "nearest-exact", X2),
    ({"size": (5, 9, 4)}, "nearest", X3),
    ({"size": 17}, "linear", X1),
    ({"size": (13, 7)}, "bilinear", X2),
    ({"size": (13, 1)}, "bilinear", X2),
    ({"size": (13, 7), "align_corners": True}, "bilinear", X2),
    ({"scale_factor": 1.7}, "bilinear", X2),
    ({"scale_factor": 1.7, "align_corners": True}, "bilinear", X2),
    ({"scale_factor": 1.7, "recompute_scale_factor": True}, "bilinear", X2),
    ({"size": (13, 7)}, "bicubic", X2),
    ({"scale_factor": 0.6, "align_corners": True}, "bicubic", X2),
    ({"size": (5, 9, 4)}, "trilinear", X3),
    ({"scale_factor": 1.5, "align_corners": True}, "trilinear", X3),
    ({"size": (13, 7)}, "area", X2),
    ({"size": (5, 4), "antialias": True}, "bilinear", X2),
    ({"size": (13, 4), "antialias": True}, "bicubic", X2),
]


@pytest.mark.parametrize("opset", [None, 11, 18])
@pytest.mark.parametrize(("options", "mode", "x"), RESIZES)
def test_resize(options, mode, x, opset):
    if opset == 11 and "antialias" in options:
        pytest.skip("opset 11 has no antialias")
    check(lambda x: F.interpolate(x, mode=mode, **options), x, opset=opset)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_dynamic_resize(mode):
    other = (torch.randn(3, 4, 12, 10),)
    check(lambda x: F.interpolate(x, scale_factor=2, mode=mode), X2, dynamic=[{0: N, 2: H}], also=[other], nodes=1)
    check(lambda x: F.interpolate(x, size=(7, 8), mode=mode), X2, dynamic=[{0: N, 2: H}], also=[other])
    check(lambda x: F.interpolate(x, size=(7, 8), mode=mode), X2, dynamic=[{0: N}], also=[(torch.randn(3, 4, 9, 10),)])


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(mode, padding, align):
    grid = torch.randn(2, 5, 6, 2)
    check(lambda x, g: F.grid_sample(x, g, mode, padding, align_corners=align), X2, grid)
    if mode == "bilinear":
        check(lambda x, g: F.grid_sample(x, g, mode, padding, align_corners=align), X2, grid, opset=16)


@pytest.mark.parametrize("align", [False, True])
def test_affine_grid(align):
    check(lambda t: F.affine_grid(t, (2, 3, 4, 5), align_corners=align), torch.randn(2, 2, 3))
    check(lambda t: F.affine_grid(t, (2, 3, 4, 5, 6), align_corners=align), torch.randn(2, 3, 4))


@pytest.mark.parametrize("opset", [None, 11])
def test_unfold(opset):
    check(lambda x: F.unfold(x, (3, 2), dilation=(1, 2), padding=(1, 2), stride=(2, 1)), X2, opset=opset)
    check(lambda x: F.unfold(x, 2), X2[0], opset=opset)
    other = (torch.randn(3, 4, 12, 10),)
    check(lambda x: F.unfold(x, 3, padding=1, stride=2), X2, dynamic=[{0: N, 2: H}], also=[other], opset=opset)


def test_fold():
    check(lambda x: F.fold(x, (4, 5), (2, 2)), torch.randn(2, 8, 12))
    check(lambda x: F.fold(x, (8, 7), (3, 2), dilation=(1, 2), padding=(1, 1), stride=(2, 1)), torch.randn(2, 12, 28))


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_packed_sequences(kind):
    cells = 2 if kind == "lstm" else 1
    run = stand_in(
        getattr(torch.ops.aten, kind).data,
        lambda data, *_: (data.new_empty(data.shape[0], 5), *[data.new_empty(1, 3, 5) for _ in range(cells)]),
    )
    layer = (nn.LSTM if kind == "lstm" else nn.GRU if kind == "gru" else nn.RNN)(4, 5)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(7, 3, 4), torch.tensor([7, 5, 2]))

    def forward(data, sizes):
        states = [data.new_zeros(1, 3, 5)] * cells
        return run(data, sizes, states if kind == "lstm" else states[0], weights, True, 1, 0.0, False, False)

    weights = [weight.detach() for weight in layer._flat_weights]
    check(forward, packed.data, packed.batch_sizes)
