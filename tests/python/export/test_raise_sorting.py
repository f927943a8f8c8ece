"""Sorting and what is found by it: ONNX Runtime gives what PyTorch gives."""

import pytest
import torch
from export_checks import check, together

X = (torch.arange(60.0).reshape(3, 4, 5) * 7) % 11
NAN = torch.where(X == 3, torch.nan, X)

GROUPS = {
    "sort": [
        lambda x: torch.sort(x, stable=True),
        lambda x: torch.sort(x, dim=0, descending=True, stable=True),
        lambda x: torch.sort(x[0, 0, 0]),
        lambda x: torch.sort(x[:0]),
        lambda x: torch.sort(x.to(torch.int8), dim=1, stable=True),
        lambda x: torch.sort(x > 5, dim=1, stable=True),
        lambda x: torch.argsort(x, dim=1, stable=True),
        lambda x: torch.argsort(x, dim=1, descending=True, stable=True),
        lambda x: torch.msort(x),
        lambda x: torch.topk(x, 2)[0],
        lambda x: torch.topk(x, 3, 0, largest=False, sorted=False)[0],
        lambda x: torch.topk(x[0, 0, 0], 1),
        lambda x: torch.kthvalue(x, 3)[0],
        lambda x: torch.kthvalue(x, 2, 1, keepdim=True)[0],
    ],
    "middle": [
        lambda x: torch.median(x),
        lambda x: torch.median(x, 1),
        lambda x: torch.median(x, 2, keepdim=True),
        lambda x: torch.median(x.int(), 2)[0],
        lambda x: torch.nanmedian(x),
        lambda x: torch.nanmedian(x, 1)[0],
        lambda x: torch.quantile(x, 0.3),
        lambda x: torch.quantile(x, torch.tensor([0.1, 0.5, 1.0]), 1),
        lambda x: torch.quantile(x, torch.tensor([0.1, 0.5]), 2, keepdim=True),
        lambda x: torch.nanquantile(x, 0.4, 1, keepdim=True),
        lambda x: torch.nanquantile(x, torch.tensor([0.1, 0.5])),
        *[
            (lambda x, mode=mode: torch.quantile(x, 0.4, 2, interpolation=mode))
            for mode in ("lower", "higher", "nearest", "midpoint")
        ],
    ],
    "mode": [
        lambda x: torch.mode(x % 3),
        lambda x: torch.mode(x.int() % 2, 0, keepdim=True),
    ],
}


@pytest.mark.parametrize("group", GROUPS)
def test_static(group):
    check(lambda x: together(GROUPS[group], x), X)


def test_nan():
    check(lambda x: together([f for f in GROUPS["middle"] if f is not GROUPS["middle"][3]], x), NAN)


def test_sizes_at_run_time():
    functions = [
        lambda x: torch.sort(x, dim=0, stable=True),
        lambda x: torch.median(x, 0)[0],
        lambda x: torch.nanmedian(x),
        lambda x: torch.quantile(x, 0.3, 0),
        lambda x: torch.topk(x, 2, 0)[0],
        lambda x: torch.mode(x % 3, 0)[0],
    ]
    dims = ({0: torch.export.Dim("n", min=2, max=1000)},)
    check(lambda x: together(functions, x), X, dynamic=dims, also=[(torch.rand(6, 4, 5),)])


@pytest.mark.parametrize("opset", [11, 23])
def test_other_opsets(opset):
    check(lambda x: together(GROUPS["sort"], x), X, opset=opset)
