"""Views, joins, parts, paddings and diagonals: ONNX Runtime gives what PyTorch gives."""

import pytest
import torch
import torch.nn.functional as F
from export_checks import check, exported, together

X = torch.arange(24.0).reshape(2, 3, 4)
BATCH = ({0: torch.export.Dim("batch", min=3)},)

GROUPS = {
    "view": [
        lambda x: x.view(6, 4),
        lambda x: x.reshape(-1),
        lambda x: x.flatten(1),
        lambda x: x.unflatten(2, (2, 2)),
        lambda x: x.ravel(),
        lambda x: x.expand(5, 2, 3, 4),
        lambda x: x[:, :1].expand(-1, 3, -1),
        lambda x: x[0, 0, 0].expand(2),
        lambda x: x.broadcast_to(2, 2, 3, 4),
        lambda x: x[:0].reshape(4, 0),
        lambda x: torch.atleast_3d(x[0, 0]),
        lambda x: torch.broadcast_tensors(x, x[:1, :, :1]),
    ],
    "axes": [
        lambda x: x.permute(2, 0, 1),
        lambda x: x.transpose(-1, 0),
        lambda x: x[0].t(),
        lambda x: x[0, 0].t(),
        lambda x: x.mT,
        lambda x: x.mH,
        lambda x: x[0].H,
        lambda x: x.movedim((0, 1), (-1, 0)),
        lambda x: x.movedim(0, 2),
        lambda x: x.unsqueeze(-1),
        lambda x: x[:1].squeeze(),
        lambda x: x.squeeze(0),
        lambda x: x[:1, :, :1].squeeze((0, 1, -1)),
        lambda x: x[0, 0, 0].squeeze(0),
    ],
    "repeat": [
        lambda x: x.repeat(2, 1, 1, 3),
        lambda x: x.tile(2),
        lambda x: x.repeat(1, 0, 2),
        lambda x: x.repeat_interleave(2, dim=1),
        lambda x: x.repeat_interleave(2),
        lambda x: x.repeat_interleave(torch.tensor([2, 0, 1]), dim=1),
        lambda x: x.roll(1, 1),
        lambda x: x.roll((5, -1), (0, 2)),
        lambda x: x.roll(7),
        lambda x: x.flip(0, 2),
        lambda x: x[0, 0, 0].flip([]),
        lambda x: x.fliplr(),
        lambda x: x.flipud(),
        lambda x: torch.rot90(x, 1, (1, 2)),
        lambda x: torch.rot90(x, -1, (0, 2)),
        lambda x: torch.rot90(x, 2, (0, 2)),
        lambda x: x.unfold(2, 2, 1),
        lambda x: x.unfold(1, 2, 3),
        lambda x: x[0, 0, 0].unfold(0, 1, 1),
        lambda x: torch.fft.fftshift(x),
        lambda x: torch.fft.ifftshift(x, 1),
    ],
    "parts": [
        lambda x: x[1],
        lambda x: x[:, -1],
        lambda x: x[:, 1:],
        lambda x: x[:, -2:-1],
        lambda x: x[:, 2:100],
        lambda x: x[:, -100:2],
        lambda x: x[:, 3:1],
        lambda x: x[..., ::2],
        lambda x: x.narrow(2, 1, 2),
        lambda x: x.narrow(2, -3, 2),
        lambda x: torch.narrow(x, 1, torch.tensor(-2), 1),
        lambda x: x.split(3, 2),
        lambda x: x.split((1, 2), 1),
        lambda x: x.chunk(3, 2),
        lambda x: x.tensor_split(3, 2),
        lambda x: x.tensor_split((1, 3), 2),
        lambda x: x.tensor_split((3, 1), 2),
        lambda x: x.tensor_split((-1,), 2),
        lambda x: x.hsplit(3),
        lambda x: x.vsplit((1,)),
        lambda x: x.dsplit(2),
        lambda x: x.unbind(1),
    ],
    "join": [
        lambda x: torch.cat((x, x[:1]), 0),
        lambda x: torch.cat((x, x.int()), -1),
        lambda x: torch.cat((torch.zeros(0), x)),
        lambda x: torch.cat((x[0, 0],)),
        lambda x: torch.stack((x, x), -1),
        lambda x: torch.stack((x[0, 0, 0], x[0, 0, 1])),
        lambda x: torch.hstack((x, x)),
        lambda x: torch.hstack((x[0, 0], x[0, 0, 0])),
        lambda x: torch.vstack((x[0, 0], x[0])),
        lambda x: torch.dstack((x[0], x[1])),
        lambda x: torch.column_stack((x[0, 0], x[0].T)),
        lambda x: torch.block_diag(x[0], x[0, 0], x[0, 0, 0]),
        lambda x: torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij"),
        lambda x: torch.meshgrid(x[0, 0], x[0, :, 0], x[:, 0, 0], indexing="xy"),
        lambda x: torch.cartesian_prod(x[0, 0], x[:, 0, 0], x[0, :, 0]),
    ],
    "pad": [
        lambda x: F.pad(x, (1, 2)),
        lambda x: F.pad(x, (1, 0, -1, 3), value=1.5),
        lambda x: F.pad(x.to(torch.int16), (1, 1), value=7),
        lambda x: F.pad(x > 3, (1, 1), value=True),
        lambda x: F.pad(x, (2, 1), mode="reflect"),
        lambda x: F.pad(x, (3, 1, 2, 2), mode="replicate"),
        lambda x: F.pad(x, (-1, 2), mode="replicate"),
        lambda x: F.pad(x, (-2, 3), mode="reflect"),
        lambda x: F.pad(x, (2, 4), mode="circular"),
        lambda x: F.pad(x, (-1, 2), mode="circular"),
        lambda x: F.pad(x, (0, 0)),
        lambda x: F.pixel_shuffle(x.reshape(1, 4, 2, 3), 2),
        lambda x: F.pixel_shuffle(x.int().reshape(1, 1, 4, 2, 3), 2),
        lambda x: F.pixel_unshuffle(x.reshape(1, 4, 6), 2),
        lambda x: F.channel_shuffle(x.reshape(1, 4, 2, 3), 2),
    ],
    "diagonal": [
        lambda x: x.tril(),
        lambda x: x.triu(-1),
        lambda x: x.to(torch.int16).tril(1),
        lambda x: x[0].diagonal(),
        lambda x: x.diagonal(1, 0, 2),
        lambda x: x.diagonal(-1, -1, 0),
        lambda x: x.diagonal(9),
        lambda x: x[0, 0].diag(),
        lambda x: x[0, 0].diag(-2),
        lambda x: x[0].diag(1),
        lambda x: x[0].diag_embed(),
        lambda x: x[0].diag_embed(1, 0, 2),
        lambda x: x[0].diag_embed(-2),
        lambda x: x[0].diagflat(1),
        lambda x: x[0].trace(),
        lambda x: x[0].int().trace(),
        lambda x: torch.diagonal_scatter(x, torch.ones(4, 2), 0, 0, 1),
        lambda x: torch.as_strided(x, (2, 2), (1, 3), 2),
        lambda x: torch.as_strided_scatter(x, torch.ones(2, 2), (2, 2), (1, 3), 2),
        lambda x: torch.select_scatter(x, torch.ones(2, 4), 1, -1),
        lambda x: torch.select_scatter(x, torch.ones(3, 4), 0, 1),
        lambda x: torch.slice_scatter(x, torch.ones(2, 2, 4), 1, 1),
        lambda x: torch.slice_scatter(x, torch.ones(2, 3, 2), 2, 0, -1, 2),
    ],
}


@pytest.mark.parametrize("group", GROUPS)
def test_static(group):
    functions = GROUPS[group]
    check(lambda x: together(functions, x), X)


@pytest.mark.parametrize("opset", [13, 23])
@pytest.mark.parametrize("group", ["view", "parts", "pad"])
def test_other_opsets(group, opset):
    check(lambda x: together(GROUPS[group], x), X, opset=opset)


def test_sizes_at_run_time():
    functions = [
        lambda x: x.reshape(x.size(0) * 3, 4),
        lambda x: x.flatten(),
        lambda x: x[:1].expand(x.size(0), -1, -1),
        lambda x: x.repeat(x.size(0), 1, 1),
        lambda x: x.repeat_interleave(x.size(0), 0),
        lambda x: x.roll(2, 0),
        lambda x: x.roll(1, 0),
        lambda x: x.unfold(0, 2, 1),
        lambda x: x[-2:],
        lambda x: x[: x.size(0) - 1],
        lambda x: x.split((1, x.size(0) - 1)),
        lambda x: torch.cat((x, x)),
        lambda x: F.pad(x, (0, 0, 0, 0, 1, x.size(0))),
        lambda x: x.diagonal(0, 0, 1),
        lambda x: x[:, 0].diag_embed(),
        lambda x: torch.block_diag(x[:, 0], x[:, 1]),
        lambda x: torch.slice_scatter(x, torch.ones(1, 3, 4), 0, -1),
        lambda x: torch.select_scatter(x, torch.ones(3, 4), 0, -1),
    ]
    check(lambda x: together(functions, x), X[[0, 1, 0]], dynamic=BATCH, also=[(X[[1, 0, 1, 0, 1]],)])


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: x.view(2, 12), 1),
        (lambda x: x[:, 1], 1),
        (lambda x: x[:, :3], 0),
        (lambda x: x.permute(0, 1, 2), 0),
        (lambda x: x.expand(2, 3, 4), 0),
        (lambda x: torch.cat((x, x)), 1),
        (lambda x: x.split(2, 2), 1),
        (lambda x: x.tril(), 1),
        (lambda x: F.pad(x, (1, 1)), 1),
    ],
)
def test_few_nodes(function, count):
    nodes = [node.op_type for node in exported(function, X).graph.node if node.op_type != "Identity"]
    assert len(nodes) <= count, nodes


def test_sizes_that_were_known_while_exporting():
    """PyTorch asks a tensor for its number, writes the number where it is used, and leaves a question without answer."""

    def function(x):
        parts = torch.div(x.size(1), 2, rounding_mode="trunc")
        return x.new_ones((2, parts + 1)), x.reshape(x.size(0), parts, -1)

    check(function, torch.randn(2, 6))
