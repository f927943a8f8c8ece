"""Reading and writing through indices and masks, scatters, searches: ONNX Runtime gives what PyTorch gives."""

import pytest
import torch
import torch.nn.functional as F
from export_checks import check, exported, together

import tonnx

X = torch.arange(60.0).reshape(3, 4, 5) % 17
PLACES = torch.tensor([0, 2, -1])
J = torch.tensor([[1, -2, 0]])
MASK = X[:, :, 0] > 5


def written(put):
    """The tensor after `put` has written to a copy of it."""

    def function(x, i, j, m):
        y = x.clone()
        put(y, i, j, m)
        return y

    return function


def put(key, value):
    def write(y, i, j, m):
        y[key(i, j, m)] = value

    return written(write)


def add(key, value):
    def write(y, i, j, m):
        k = key(i, j, m)
        y.index_put_(tuple(k) if isinstance(k, tuple) else (k,), torch.as_tensor(value), accumulate=True)

    return written(write)


GROUPS = {
    "read": [
        lambda x, i, j, m: x[i],
        lambda x, i, j, m: x[:, i],
        lambda x, i, j, m: x[..., j],
        lambda x, i, j, m: x[i, i],
        lambda x, i, j, m: x[i, :, i],
        lambda x, i, j, m: x[:, i, j],
        lambda x, i, j, m: x[i, None, j.T],
        lambda x, i, j, m: x[i, 1:3, j],
        lambda x, i, j, m: x[i[0]],
        lambda x, i, j, m: x[i.int()],
        lambda x, i, j, m: x[i[:0]],
    ],
    "read masks": [
        lambda x, i, j, m: x[m],
        lambda x, i, j, m: x[x > 8],
        lambda x, i, j, m: x[:, m[0]],
        lambda x, i, j, m: x[m[:, 0], :, 0],
        lambda x, i, j, m: x[:, m[0, :4], 2],
        lambda x, i, j, m: x.masked_select(x < 4),
        lambda x, i, j, m: x.masked_select(m[:, :, None]),
        lambda x, i, j, m: x[x > 100],
        lambda x, i, j, m: torch.nonzero(x > 12),
        lambda x, i, j, m: torch.nonzero(x.to(torch.int16)),
        lambda x, i, j, m: torch.nonzero(x[0, 0, 1]),
        lambda x, i, j, m: torch.nonzero(m, as_tuple=True),
        lambda x, i, j, m: torch.argwhere(m),
        lambda x, i, j, m: torch.nonzero_static(m, size=20),
        lambda x, i, j, m: torch.nonzero_static(m, size=2, fill_value=7),
    ],
    "gather": [
        lambda x, i, j, m: x.index_select(1, i.abs()),
        lambda x, i, j, m: x[0, 0, 0].index_select(0, i[:1]),
        lambda x, i, j, m: x.gather(1, j.abs()[:, :, None]),
        lambda x, i, j, m: x[0, 0, 0].gather(0, i[0]),
        lambda x, i, j, m: x[0, 0].gather(0, i[0]),
        lambda x, i, j, m: x.take(j),
        lambda x, i, j, m: torch.take_along_dim(x, x.argmax(1, keepdim=True), 1),
        lambda x, i, j, m: torch.take_along_dim(x, i.abs()),
        lambda x, i, j, m: torch.take_along_dim(x, j.abs()[:, :, None], 1),
        lambda x, i, j, m: F.embedding(j.abs(), x[0]),
        lambda x, i, j, m: F.one_hot(i.abs(), 6),
        lambda x, i, j, m: F.one_hot(i[0], 3),
    ],
    "put": [
        put(lambda i, j, m: i, 1.0),
        put(lambda i, j, m: (slice(None), i), 2.0),
        put(lambda i, j, m: (slice(None), i), torch.arange(15.0).reshape(3, 1, 5)),
        put(lambda i, j, m: (i, slice(None), i), torch.arange(4.0)),
        put(lambda i, j, m: (slice(None), i, j), torch.tensor([[7.0], [8.0], [9.0]])[:, :, None]),
        put(lambda i, j, m: (0, ..., -1), 7.0),
        put(lambda i, j, m: (slice(0, 2), 1), 3.0),
        put(lambda i, j, m: (slice(None), slice(0, 4, 2)), 3.0),
    ],
    "put masks": [
        put(lambda i, j, m: m, 1.0),
        put(lambda i, j, m: m, torch.arange(5.0)),
        put(lambda i, j, m: m[:, 0], torch.arange(20.0).reshape(4, 5)),
        put(lambda i, j, m: (slice(None), m[0]), torch.ones(3, 1, 5)),
        put(
            lambda i, j, m: (slice(None), torch.tensor([True, False, True, False])), torch.arange(30.0).reshape(3, 2, 5)
        ),
        put(lambda i, j, m: (torch.tensor([True, False, True]), 0, 1), torch.arange(2.0)),
        lambda x, i, j, m: x.masked_fill(m[:, :, None], -1),
        lambda x, i, j, m: (x > 3).masked_fill(x > 8, False),
        lambda x, i, j, m: x.int().masked_fill(x > 3, 2.0),
        lambda x, i, j, m: x.masked_fill(x > 3, torch.tensor(5.0)),
        lambda x, i, j, m: x.masked_scatter(m[:, :, None], torch.arange(60.0)),
    ],
    "put and add": [
        add(lambda i, j, m: torch.tensor([0, 0, 2]), torch.ones(())),
        add(lambda i, j, m: (i, i), torch.arange(15.0).reshape(3, 5)),
        add(lambda i, j, m: m, torch.ones(5)),
        add(lambda i, j, m: (torch.tensor([1, 1]), torch.tensor([2, 2]), torch.tensor([3, 3])), torch.arange(2.0)),
        lambda x, i, j, m: x.put(j.long(), torch.ones(1, 3)),
        lambda x, i, j, m: x.put(torch.tensor([5, 5]), torch.ones(2), accumulate=True),
    ],
    "scatter": [
        lambda x, i, j, m: x.scatter(1, j.abs()[:, :, None], x[:, :3] + 100),
        lambda x, i, j, m: x.scatter(0, i.abs()[:, None, None], 9.0),
        lambda x, i, j, m: x.scatter(0, i[:0, None, None], 9.0),
        lambda x, i, j, m: x[0, 0].scatter(0, i.abs()[:2], 5),
        lambda x, i, j, m: x.scatter(0, i.abs()[:, None, None], x, reduce="multiply"),
        lambda x, i, j, m: x.scatter(0, i.abs()[:, None, None], 2.0, reduce="add"),
        lambda x, i, j, m: x.scatter_add(0, torch.zeros_like(x).long(), x),
        lambda x, i, j, m: x.half().scatter_add(0, torch.zeros_like(x).long(), x.half()),
        lambda x, i, j, m: x.index_add(1, i.abs(), x[:, :3], alpha=2),
        lambda x, i, j, m: x.index_add(0, torch.tensor([1, 1]), x[:2]),
        lambda x, i, j, m: x.index_copy(1, i.abs()[:2], x[:, :2] + 50),
        lambda x, i, j, m: x.index_fill(2, i.abs(), -1),
        lambda x, i, j, m: x.index_fill(0, i.abs(), torch.tensor(4.0)),
    ],
    "scatter_reduce": [
        (
            lambda x, i, j, m, r=r, s=s, c=c: x.to(c).scatter_reduce(
                0, torch.zeros(2, 4, 5).long(), x.to(c) + 1, r, include_self=s
            )
        )
        for r in ("sum", "prod", "mean", "amax", "amin")
        for s in (True, False)
        for c in (torch.float32, torch.int64)
    ]
    + [
        lambda x, i, j, m: x.index_reduce(1, torch.tensor([0, 0, 1]), x[:, 1:] + 3, "mean"),
        lambda x, i, j, m: x.index_reduce(1, torch.tensor([0, 0, 1]), x[:, 1:] + 3, "amin", include_self=False),
        lambda x, i, j, m: x.scatter_reduce(0, torch.zeros(2, 4, 5).long(), x / 0, "amax"),
    ],
    "search": [
        lambda x, i, j, m: torch.searchsorted(torch.arange(10.0), x),
        lambda x, i, j, m: torch.searchsorted(torch.arange(10.0), x, right=True, out_int32=True),
        lambda x, i, j, m: torch.searchsorted(x.sort(-1)[0], x[:, :, :2], side="right"),
        lambda x, i, j, m: torch.searchsorted(torch.arange(10.0), 3.5),
        lambda x, i, j, m: torch.bucketize(x / 0, torch.arange(10.0)),
        lambda x, i, j, m: torch.isin(x, torch.tensor([3.0, 4.0])),
        lambda x, i, j, m: torch.isin(x, 3, invert=True),
        lambda x, i, j, m: torch.isin(x, torch.zeros(0)),
        lambda x, i, j, m: torch.bincount(i.abs()),
        lambda x, i, j, m: torch.bincount(i.abs(), x[0, 0, :3], minlength=6),
        lambda x, i, j, m: torch.bincount(i[:0], minlength=2),
        lambda x, i, j, m: torch.histc(x, 7),
        lambda x, i, j, m: torch.histc(x, 4, 2, 9),
        lambda x, i, j, m: torch.histogram(x, 5),
        lambda x, i, j, m: torch.histogram(x, 5, range=(1.0, 12.0), weight=x, density=True),
        lambda x, i, j, m: torch.histogram(x, torch.tensor([0.0, 1.0, 9.0])),
        lambda x, i, j, m: torch.histogramdd(x[:, :, :2], [3, 2]),
    ],
    "unique": [
        lambda x, i, j, m: torch.unique(x),
        lambda x, i, j, m: torch.unique(x.int(), return_inverse=True, return_counts=True),
        lambda x, i, j, m: torch.unique(x[0].int() % 2, dim=0, return_inverse=True),
        lambda x, i, j, m: torch.unique_consecutive(x[0, 0].int() // 2, return_inverse=True, return_counts=True),
        lambda x, i, j, m: torch.unique_consecutive(x[:, :1] > 3, dim=2),
    ],
    "bags": [
        lambda x, i, j, m: F.embedding_bag(torch.tensor([0, 1, 2, 2, 3]), x[0], torch.tensor([0, 2, 2]), mode="sum"),
        lambda x, i, j, m: F.embedding_bag(torch.tensor([0, 1, 2, 2, 3]), x[0], torch.tensor([0, 2, 2]), mode="mean"),
        lambda x, i, j, m: F.embedding_bag(
            torch.tensor([0, 1, 2, 2, 3]), x[0] - 9, torch.tensor([0, 2, 2]), mode="max"
        ),
        lambda x, i, j, m: F.embedding_bag(torch.tensor([[0, 1], [2, 3]]), x[0], mode="mean", padding_idx=1),
        lambda x, i, j, m: F.embedding_bag(
            torch.tensor([[0, 1], [2, 3]]), x[0], mode="sum", per_sample_weights=x[0, :2, :2]
        ),
        lambda x, i, j, m: F.embedding_bag(
            torch.tensor([0, 1, 2]), x[0], torch.tensor([0, 1, 3]), mode="sum", include_last_offset=True
        ),
    ],
}


@pytest.mark.parametrize("group", GROUPS)
def test_static(group):
    check(lambda *args: together(GROUPS[group], *args), X, PLACES, J, MASK)


@pytest.mark.parametrize("group", ["read", "read masks", "put", "put masks", "gather"])
def test_old_opset(group):
    check(lambda *args: together(GROUPS[group], *args), X, PLACES, J, MASK, opset=13)


def test_adding_needs_a_newer_opset():
    with pytest.raises(tonnx.Error, match="needs opset 16"):
        exported(lambda x, i: x.scatter_add(0, i, x), X[0, 0], torch.zeros(5, dtype=torch.int64), opset=13)


def test_sizes_at_run_time():
    n = torch.export.Dim("n", min=2)
    functions = [
        lambda x, i: x[i],
        lambda x, i: x[:, i],
        lambda x, i: x[i, :, i],
        lambda x, i: x[x > 3],
        lambda x, i: torch.nonzero(x),
        lambda x, i: x.index_add(0, i, x[i]),
        lambda x, i: x.scatter(0, i[:, None, None], 3.0),
        lambda x, i: torch.ops.aten.index_put(x, [i, None, i], torch.zeros(4)),
        lambda x, i: F.one_hot(i, 4),
        lambda x, i: torch.bincount(i),
    ]
    check(
        lambda x, i: together(functions, x, i),
        X,
        PLACES.abs(),
        dynamic=({0: n}, {0: torch.export.Dim("k", min=2)}),
        also=[(torch.rand(7, 4, 5), torch.tensor([0, 2]))],
    )


def test_model_that_indexes():
    def forward(x, i):
        y = x.clone()
        y[:, i] = y[:, i] * 2
        y[-1, ..., -1] = 7.0
        y[i[:, None], i[None, :]] += 1
        return y, x[:, -1], x[i], x[:, i[:, None], i[None, :]][..., 0]

    check(forward, torch.rand(6, 6, 6), torch.tensor([0, 3, 4]))
