"""RNN, GRU and LSTM against ONNX Runtime: as modules of PyTorch where they mean the same, step by step elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks import check, check_opset, expected, one_node, refuses_opset, source
from onnx import helper, numpy_helper

import tonnx

STEPS, BATCH, FEATURES, HIDDEN = 5, 3, 4, 2
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
RNG = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def inputs_of(op: str, direction: str = "forward", full: bool = True) -> dict[str, np.ndarray | None]:
    count = 2 if direction == "bidirectional" else 1
    rows = GATES[op] * HIDDEN
    inputs: dict[str, np.ndarray | None] = {
        "X": numbers(STEPS, BATCH, FEATURES),
        "W": numbers(count, rows, FEATURES),
        "R": numbers(count, rows, HIDDEN),
    }
    if not full:
        return inputs
    inputs |= {"B": numbers(count, 2 * rows), "lens": None, "h": numbers(count, BATCH, HIDDEN)}
    if op == "LSTM":
        inputs["c"] = numbers(count, BATCH, HIDDEN)
    return inputs


def options_of(op: str, **more: object) -> dict:
    return {"hidden_size": HIDDEN, "outputs": 3 if op == "LSTM" else 2, **more}


WEIGHTS = ("W", "R", "B")
DIRECTIONS = ["forward", "reverse", "bidirectional"]


@pytest.mark.parametrize("reset", [0, 1])
@pytest.mark.parametrize("constant", [(), WEIGHTS])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op", GATES)
def test_directions(op: str, direction: str, constant: tuple[str, ...], reset: int) -> None:
    if op != "GRU" and reset:
        pytest.skip("no such attribute")
    more = {"linear_before_reset": reset} if op == "GRU" else {}
    inputs = inputs_of(op, direction)
    options = options_of(op, direction=direction, **more)
    check(op, inputs, 14, constant, **options)
    check(op, inputs, 14, constant, dynamic=("X",), **options)
    bare = inputs_of(op, direction, full=False)
    check(op, bare, 14, constant[:2], **options)


@pytest.mark.parametrize("constant", [WEIGHTS, (*WEIGHTS, "lens")])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op", GATES)
def test_lengths(op: str, direction: str, constant: tuple[str, ...]) -> None:
    inputs = inputs_of(op, direction)
    inputs["lens"] = np.array([5, 1, 3], np.int32)
    more = {"linear_before_reset": 1} if op == "GRU" else {}
    check(op, inputs, 14, constant, **options_of(op, direction=direction, **more))
    inputs["lens"] = np.full(3, STEPS, np.int32)
    check(op, inputs, 14, constant, **options_of(op, direction=direction))
    if op == "LSTM":  # without the last cell the module can be kept
        inputs["lens"] = np.array([2, 5, 4], np.int32)
        options = options_of(op, direction=direction) | {"outputs": 2}
        module = check(op, inputs, 14, constant, **options)
        assert any(isinstance(child, torch.nn.LSTM) for child in module.children())


@pytest.mark.parametrize("lens", [None, np.array([5, 1, 3], np.int32)])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("op", GATES)
def test_batch_first(op: str, direction: str, lens: np.ndarray | None) -> None:
    for reset in [0, 1] if op == "GRU" else [None]:
        more = {} if reset is None else {"linear_before_reset": reset}
        inputs = inputs_of(op, direction) | {"lens": lens}
        options = options_of(op, direction=direction, **more)
        if lens is not None:
            options["outputs"] = 2
        feeds = {name: array for name, array in inputs.items() if array is not None}
        y, *states = expected(one_node(op, inputs, 14, **options), feeds, False)
        values = [y.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in states)]
        turned = {
            name: array.swapaxes(0, 1) if name in ("X", "h", "c") and array is not None else array
            for name, array in inputs.items()
        }
        turned = {name: None if array is None else np.ascontiguousarray(array) for name, array in turned.items()}
        check(op, turned, 14, WEIGHTS, values=values, layout=1, **options)


ACTIVATIONS = [
    ("Relu", None, None),
    ("Tanh", None, None),
    ("Sigmoid", None, None),
    ("Affine", 0.5, 0.1),
    ("LeakyRelu", 0.2, None),
    ("ThresholdedRelu", 0.3, None),
    ("ScaledTanh", 0.7, 1.5),
    ("HardSigmoid", 0.3, 0.4),
    ("Elu", 0.6, None),
    ("Softsign", None, None),
    ("Softplus", None, None),
]


@pytest.mark.parametrize(("name", "alpha", "beta"), ACTIVATIONS)
@pytest.mark.parametrize("op", GATES)
def test_activations(op: str, name: str, alpha: float | None, beta: float | None) -> None:
    count = {"RNN": 1, "GRU": 2, "LSTM": 3}[op]
    options = options_of(op, activations=[name] * count)
    if alpha is not None:
        options["activation_alpha"] = [alpha * (i + 1) for i in range(count)]
    if beta is not None:
        options["activation_beta"] = [beta * (i + 1) for i in range(count)]
    inputs = inputs_of(op)
    inputs["R"] = inputs["R"] * 0.25  # or some activations grow past the range of the type
    check(op, inputs, 14, WEIGHTS, **options)


def test_each_direction_has_activations() -> None:
    options = options_of("RNN", direction="bidirectional", activations=["Relu", "LeakyRelu"], activation_alpha=[0.3])
    check("RNN", inputs_of("RNN", "bidirectional"), 14, WEIGHTS, **options)
    options = options_of("LSTM", direction="bidirectional", activations=["sigmoid", "tanh", "tanh"] * 2)
    module = check("LSTM", inputs_of("LSTM", "bidirectional"), 14, WEIGHTS, **options)
    assert isinstance(next(module.children()), torch.nn.LSTM)


@pytest.mark.parametrize("op", GATES)
def test_clip(op: str) -> None:
    inputs = inputs_of(op)
    inputs["X"] = inputs["X"] * 9
    check(op, inputs, 14, WEIGHTS, clip=0.5, **options_of(op))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lens", [None, np.array([2, 5, 4], np.int32)])
def test_peepholes(direction: str, lens: np.ndarray | None) -> None:
    count = 2 if direction == "bidirectional" else 1
    inputs = inputs_of("LSTM", direction) | {"lens": lens, "P": numbers(count, 3 * HIDDEN)}
    check("LSTM", inputs, 14, (*WEIGHTS, "P"), **options_of("LSTM", direction=direction))
    check("LSTM", inputs, 14, (*WEIGHTS, "P"), **options_of("LSTM", direction=direction, input_forget=1))


@pytest.mark.parametrize("op", GATES)
def test_opsets(op: str) -> None:
    inputs = inputs_of(op)
    options = options_of(op)
    for opset, to in [(7, 14), (14, 7), (14, 22), (22, 14)]:
        check_opset(op, inputs, opset, to, WEIGHTS, reference=to == 22 or opset == 22, **options)
    values = expected(one_node(op, inputs, 7, **options), {k: v for k, v in inputs.items() if v is not None}, False)
    check(op, inputs, 1, WEIGHTS, values=values, output_sequence=1, **options)
    assert "layout" in refuses_opset(op, inputs, 14, 7, constant=WEIGHTS, layout=1, **options)


def test_opset_3() -> None:
    inputs = inputs_of("GRU")
    feeds = {name: array for name, array in inputs.items() if array is not None}
    values = expected(one_node("GRU", inputs, 7, **options_of("GRU", linear_before_reset=1)), feeds, False)
    check("GRU", inputs, 3, WEIGHTS, values=values, **options_of("GRU", linear_before_reset=1))
    values = expected(one_node("GRU", inputs, 7, **options_of("GRU")), feeds, False)
    check("GRU", inputs, 1, WEIGHTS, values=values, direction="foward", **options_of("GRU"))
    refused = refuses_opset("GRU", inputs, 7, 1, constant=WEIGHTS, **options_of("GRU", linear_before_reset=1))
    assert "linear_before_reset" in refused


def test_reads_well(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    inputs = inputs_of("LSTM")
    text = source("LSTM", inputs, 14, WEIGHTS, **options_of("LSTM"))
    assert "x, (y, z) = self.lstm1(X, (h, c))" in text
    bare = inputs_of("LSTM", "bidirectional", full=False)
    text = source("LSTM", bare, 14, WEIGHTS, **(options_of("LSTM", direction="bidirectional") | {"outputs": 1}))
    assert "_ = self.lstm1(X)" in text
    module = tonnx.convert(one_node("LSTM", inputs, 14, WEIGHTS, dynamic=("X", "h", "c"), **options_of("LSTM")))
    assert [name for name, _ in module.named_parameters()] == [
        "lstm1.weight_ih_l0",
        "lstm1.weight_hh_l0",
        "lstm1.bias_ih_l0",
        "lstm1.bias_hh_l0",
    ]


@pytest.mark.parametrize("constant", [(), WEIGHTS])
@pytest.mark.parametrize("op", GATES)
def test_gradients_reach_every_weight(op: str, constant: tuple[str, ...]) -> None:
    inputs = inputs_of(op)
    for more in [{}, {"clip": 3.0}]:
        model = one_node(op, inputs, 14, WEIGHTS, **options_of(op, **more))
        module = tonnx.convert(model)
        outputs = module(*(torch.from_numpy(inputs[name]) for name in ("X", "h", "c") if name in inputs))
        sum(output.sum() for output in outputs).backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())
        assert sum(p.numel() for p in module.parameters()) == sum(inputs[name].size for name in WEIGHTS)


@pytest.mark.parametrize("op", GATES)
def test_export_with_any_batch(op: str) -> None:
    inputs = inputs_of(op, full=False)
    more = {"linear_before_reset": 1} if op == "GRU" else {}
    module = tonnx.convert(one_node(op, inputs, 14, WEIGHTS, dynamic=("X",), **options_of(op, **more)))
    x = torch.from_numpy(inputs["X"])
    program = torch.export.export(module, (x,), dynamic_shapes=({1: torch.export.Dim("batch")},))
    wide = torch.cat([x, x], 1)
    for got, want in zip(program.module()(wide), module(wide), strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("layout", [0, 1])
def test_export_with_lengths_and_any_batch(layout: int) -> None:
    inputs = inputs_of("GRU", "bidirectional", full=False)
    if layout:
        inputs["X"] = np.ascontiguousarray(inputs["X"].swapaxes(0, 1))
    inputs |= {"B": None, "lens": np.array([5, 1, 3], np.int32)}
    options = options_of("GRU", direction="bidirectional", linear_before_reset=1, layout=layout)
    module = tonnx.convert(one_node("GRU", inputs, 14, ("W", "R"), dynamic=("X", "lens"), **options))
    given = torch.from_numpy(inputs["X"]), torch.from_numpy(inputs["lens"])
    batch = torch.export.Dim("batch")
    program = torch.export.export(module, given, dynamic_shapes=({1 - layout: batch}, {0: batch}))
    wide = torch.cat([given[0]] * 2, 1 - layout), torch.cat([given[1]] * 2)
    for got, want in zip(program.module()(*wide), module(*wide), strict=True):
        torch.testing.assert_close(got, want)


def test_contradictions_are_refused() -> None:
    inputs = inputs_of("LSTM")
    with pytest.raises(tonnx.Error, match="hidden_size"):
        tonnx.convert(one_node("LSTM", inputs, 14, WEIGHTS, **(options_of("LSTM") | {"hidden_size": 0})))
    with pytest.raises(tonnx.Error, match="'W' has a size"):
        tonnx.convert(one_node("LSTM", inputs, 14, WEIGHTS, **(options_of("LSTM") | {"hidden_size": 3})))
    with pytest.raises(tonnx.Error, match="not an activation"):
        tonnx.convert(one_node("LSTM", inputs, 14, WEIGHTS, activations=["Cube"] * 3, **options_of("LSTM")))


def test_weights_may_be_put_together_by_nodes() -> None:
    """As PyTorch's exporter writes them: the gates in another order by Slice and Concat."""
    inputs = inputs_of("LSTM")
    model = one_node("LSTM", inputs, 14, WEIGHTS, **options_of("LSTM"))
    graph = model.graph
    rows = 4 * HIDDEN
    nodes = []
    for name, axis in (("W", 1), ("R", 1), ("B", 1)):
        weight = next(tensor for tensor in graph.initializer if tensor.name == name)
        array = numpy_helper.to_array(weight)
        weight.CopyFrom(numpy_helper.from_array(np.roll(array, HIDDEN, axis)[0], name + "0"))
        for part, (start, end) in {"a": (HIDDEN, 1 << 40), "b": (0, HIDDEN)}.items():
            for key, number in {"start": start, "end": end, "axis": 0}.items():
                graph.initializer.append(numpy_helper.from_array(np.array([number]), f"{name}{part}_{key}"))
            keys = [f"{name}{part}_{key}" for key in ("start", "end", "axis")]
            nodes.append(helper.make_node("Slice", [name + "0", *keys], [f"{name}{part}"]))
        nodes.append(helper.make_node("Concat", [f"{name}a", f"{name}b"], [name + "1"], axis=0))
        nodes.append(helper.make_node("Unsqueeze", [name + "1", f"{name}a_axis"], [name]))
    nodes.extend(graph.node)
    del graph.node[:]
    graph.node.extend(nodes)
    feeds = {name: inputs[name] for name in ("X", "h", "c")}
    module = tonnx.convert(model)
    assert [type(child) for child in module.children()] == [torch.nn.LSTM]
    assert sum(p.numel() for p in module.parameters()) == rows * (FEATURES + HIDDEN + 2)
    for got, want in zip(
        module(*(torch.from_numpy(a) for a in feeds.values())), expected(model, feeds, False), strict=True
    ):
        np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-5, atol=1e-6)
