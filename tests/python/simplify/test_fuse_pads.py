"""fuse_pads: constants around a tensor become the padding of a convolution or a pool that pads with the same."""

from __future__ import annotations

import pytest
from simplify_checks import check, check_unchanged, model

ONLY = ["fold_constants", "fuse_pads", "eliminate_dead_code"]
ROUND = {"special": False, "tolerance": 1e-5}


def pad(opset: int, pads: str = "0, 0, 1, 2, 0, 0, 3, 0", value: str = "", mode: str = "constant") -> str:
    if opset < 11:
        number = f", value = {value}" if value else ""
        return f'p = Pad<mode = "{mode}", pads = [{pads}]{number}>(x)'
    more = f" v = Constant<value = float {{{value}}}>()" if value else ""
    inputs = "x, n, v" if value else "x, n"
    return f'n = Constant<value_ints = [{pads}]>(){more} p = Pad<mode = "{mode}">({inputs})'.replace(
        "<value_ints = [", "<value = int64[" + str(pads.count(",") + 1) + "] {"
    ).replace("]>()", "}>()", 1)


def convolution(opset: int, attributes: str = "", shape: str = "N,2,H,W", **given: str):
    nodes = f"{pad(opset, **given)} y = Conv{attributes}(p, w)"
    return model(f"g (float[{shape}] x, float[3,2,3,3] w) => (float[N,3,a,b] y) {{ {nodes} }}", opset)


@pytest.mark.parametrize("opset", [7, 11, 13, 18, 22])
@pytest.mark.parametrize("attributes", ["", "<pads = [1, 0, 1, 2]>", '<auto_pad = "VALID">', "<strides = [2, 2]>"])
@pytest.mark.parametrize("value", ["", "0.0"])
def test_convolution(opset, attributes, value):
    source = convolution(opset, attributes, value=value)
    check(source, {"Conv": 1}, ONLY, sizes={"H": 6, "W": 7}, **ROUND)


def test_axes():
    nodes = "n = Constant<value = int64[4] {1, 2, 3, 0}>() a = Constant<value = int64[2] {-1, 2}>()"
    body = (
        f"g (float[N,2,5,6] x, float[3,2,3,3] w) => (float[N,3,a,b] y) {{ {nodes} p = Pad(x, n, , a) y = Conv(p, w) }}"
    )
    check(model(body), {"Conv": 1}, ONLY, **ROUND)


@pytest.mark.parametrize(
    "attributes, given",
    [
        ("", {"value": "1.0"}),
        ("", {"mode": "reflect"}),
        ("", {"mode": "edge"}),
        ("", {"pads": "1, 0, 0, 0, 0, 0, 0, 0"}),
        ("", {"pads": "0, 0, -1, 0, 0, 0, 0, 0"}),
        ('<auto_pad = "SAME_UPPER">', {}),
    ],
)
def test_convolution_stays(attributes, given):
    source = convolution(13, attributes, **{"pads": "0, 0, 1, 2, 0, 0, 3, 0", **given})
    check_unchanged(source, ONLY, sizes={"H": 6, "W": 7}, **ROUND)


def test_others_use_what_is_padded():
    nodes = pad(13) + " y = Conv(p, w)"
    body = f"g (float[N,2,6,6] x, float[3,2,3,3] w) => (float[N,3,a,b] y, float[N,2,c,d] p) {{ {nodes} }}"
    check_unchanged(model(body, 13), ONLY, **ROUND)


def pool(opset: int, op: str, **given: str):
    return model(f"g (float[N,2,6,6] x) => (float[N,2,a,b] y) {{ {pad(opset, **given)} y = {op}(p) }}", opset)


AVERAGE = "AveragePool<kernel_shape = [3, 4], strides = [2, 1]"
SMALL = "0, 0, 1, 2, 0, 0, 2, 0"


@pytest.mark.parametrize("opset", [7, 13, 22])
@pytest.mark.parametrize("more", ["", ", count_include_pad = 1", ", count_include_pad = 1, pads = [0, 1, 0, 1]"])
def test_average_pool(opset, more):
    check(pool(opset, f"{AVERAGE}{more}>", pads=SMALL), {"AveragePool": 1}, ONLY, **ROUND)


@pytest.mark.parametrize(
    "more, pads",
    [(", pads = [0, 1, 0, 1]", SMALL), ("", "0, 0, 3, 0, 0, 0, 0, 0"), (", ceil_mode = 1", SMALL)],
)
def test_average_pool_stays(more, pads):
    check_unchanged(pool(13, f"{AVERAGE}{more}>", pads=pads), ONLY, **ROUND)


def largest(value: str):
    nodes = f"one = Constant<value = float {{{value}}}>() z = Constant<value = float {{0}}>() v = Div(one, z)"
    nodes += f" n = Constant<value = int64[8] {{{SMALL}}}>() p = Pad(x, n, v) y = MaxPool<kernel_shape = [3, 4]>(p)"
    return model(f"g (float[N,2,6,6] x) => (float[N,2,a,b] y) {{ {nodes} }}", 13)


def test_max_pool():
    both = {"Pad": 1, "MaxPool": 1}
    check(largest("-1"), both, ONLY)
    check(largest("-1"), {"MaxPool": 1}, [*ONLY, "fuse_pads_into_max_pool"], special=False)
    check(largest("1"), both, [*ONLY, "fuse_pads_into_max_pool"], special=False)
    check_unchanged(pool(13, "MaxPool<kernel_shape = [3, 4]>", pads=SMALL), [*ONLY, "fuse_pads_into_max_pool"])


@pytest.mark.parametrize("dtype, lowest", [("int8", "-128"), ("uint8", "0")])
def test_max_pool_of_integers(dtype, lowest):
    nodes = (
        f"n = Constant<value = int64[8] {{{SMALL}}}>() v = Constant<value = {dtype} {{{lowest}}}>() p = Pad(x, n, v)"
    )
    body = f"g ({dtype}[N,2,6,6] x) => ({dtype}[N,2,a,b] y) {{ {nodes} y = MaxPool<kernel_shape = [3, 4]>(p) }}"
    check(model(body, 13), {"MaxPool": 1}, ONLY)


def test_special_values():
    check(convolution(13), {"Conv": 1}, ONLY, sizes={"H": 6, "W": 7}, tolerance=1e-5)


@pytest.mark.parametrize("zero, value, left", [("5", "5", 1), ("5", "0", 2), ("", "0", 1), ("", "5", 2)])
def test_integers(zero, value, left):
    inputs = f"z = Constant<value = uint8 {{{zero}}}>() y = ConvInteger(p, w, z)" if zero else "y = ConvInteger(p, w)"
    nodes = f"n = Constant<value = int64[8] {{{SMALL}}}>() v = Constant<value = uint8 {{{value}}}>() p = Pad(x, n, v)"
    body = f"g (uint8[N,2,6,6] x, uint8[3,2,3,3] w) => (int32[N,3,a,b] y) {{ {nodes} {inputs} }}"
    check(model(body, 13), {"ConvInteger": 1, **({"Pad": 1} if left == 2 else {})}, ONLY, special=False)
