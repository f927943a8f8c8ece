"""ONNX models that mean harm and are well-formed: sizes that explode, names and texts that carry code, shapes that make algorithms slow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MODELS: dict[str, Callable[[], onnx.ModelProto | bytes]] = {}
LARGE: set[str] = set()  # of hundreds of kilobytes: what costs too much shows there
HUGE = 1 << 40
RUN = "__import__('pathlib').Path('executed').touch()"

TEXTS = {
    "a newline": f"x\n{RUN}\n#",
    "a carriage return": f"x\r{RUN}\r#",
    "the end of a docstring": f'x"""\n{RUN}\n"""',
    "a backslash at the end": "x\\",
    "quotes": "\"'\"'",
    "a call": RUN,
    "an attribute": "x.__class__.__bases__",
    "braces": "{0.__class__} {x!r} {{}} %s",
    "invalid UTF-8": b"\xff\xfe\xc3(",
    "a surrogate": b"\xed\xa0\x80x",
    "a zero": "a\0b",
    "an escape sequence": "\x1b]0;owned\x07\x1b[2J\x9b31m",
    "marks that turn the writing": "a\u202eb\u2066c\u2069",
    "a line separator": f"a\u2028{RUN}\u2029b\x85c",
    "keywords": "class",
    "words of the code": "self",
    "torch": "torch",
    "forward": "forward",
    "Chinese": "模型" * 2000,
    "a path": "../../../etc/passwd",
    "long": "n" * 100_000,
    "empty": "",
    "spaces": "  ",
    "dots": "...",
    "double underscores": "__init__",
}


def model(
    nodes: list[onnx.NodeProto], inputs: Any, outputs: Any, initializers: Any = (), **more: Any
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", list(inputs), list(outputs), list(initializers))
    opsets = [("", more.pop("opset", 20)), ("ai.onnx.ml", 3), ("com.microsoft", 1), ("local", 1)]
    more.setdefault("ir_version", 10)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*pair) for pair in opsets], **more)


def value(name: str, *dims: int | str, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, list(dims))


def ints(name: str, *numbers: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def scalar(name: str, number: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(number, np.int64), name)


def floats(name: str, *dims: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ones(dims, np.float32), name)


def hostile(maker: Callable[[], onnx.ModelProto | bytes]) -> Callable[[], onnx.ModelProto | bytes]:
    MODELS[maker.__name__] = maker
    return maker


def large(maker: Callable[[], onnx.ModelProto | bytes]) -> Callable[[], onnx.ModelProto | bytes]:
    LARGE.add(maker.__name__)
    return hostile(maker)


# ---- one node whose numbers are absurd


def one(
    op: str, constants: list[onnx.TensorProto], inputs: list[str], domain: str = "", n: int = 1, **attributes: Any
) -> Any:
    def make() -> onnx.ModelProto:
        names = {tensor.name for tensor in constants}
        variables = [value(name, 1, 2, 3, 3) for name in dict.fromkeys(inputs) if name and name not in names]
        outputs = [f"y{i}" for i in range(n)]
        node = helper.make_node(op, inputs, outputs, domain=domain, **attributes)
        unknown = [onnx.ValueInfoProto(name=name) for name in outputs]
        return model([node], variables, unknown, constants)

    return make


def add_one(name: str, *args: Any, **kwargs: Any) -> None:
    MODELS[name] = one(*args, **kwargs)


TREE: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_values": [0.5, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
}  # fmt: skip
FEW = floats("c", 2, 3)

for number in (1 << 62, 1 << 61, 1 << 32, -1, 0, -(1 << 63)):
    for ids in (0, 1 << 40, -(1 << 40)):
        add_one(
            f"tree_of_{number}_targets_{ids}", "TreeEnsembleRegressor", [FEW], ["c"], "ai.onnx.ml", n_targets=number,
            target_ids=[ids, ids], target_nodeids=[1, 2], target_treeids=[0, 0], target_weights=[1.0, 2.0], **TREE,
        )  # fmt: skip
    add_one(f"constant_of_shape_{number}", "ConstantOfShape", [ints("s", number, 4)], ["s"])
    add_one(f"range_{number}", "Range", [scalar("a", 0), scalar("b", number), scalar("d", 1)], ["a", "b", "d"])
    add_one(f"expand_{number}", "Expand", [FEW, ints("s", number, 2, 3)], ["c", "s"])
    add_one(f"tile_{number}", "Tile", [FEW, ints("s", number, 2)], ["c", "s"])
    add_one(f"tile_open_{number}", "Tile", [ints("s", number, 1, 1, 1)], ["x", "s"])
    add_one(f"pad_{number}", "Pad", [FEW, ints("s", number, 0, 0, number)], ["c", "s"])
    add_one(
        f"slice_{number}",
        "Slice",
        [FEW, ints("s", number), ints("e", -number - 1), ints("a", 0), ints("t", number)],
        ["c", "s", "e", "a", "t"],
    )
    add_one(f"one_hot_{number}", "OneHot", [ints("i", 0, 1), scalar("d", number), floats("v", 2)], ["i", "d", "v"])
    add_one(
        f"one_hot_axis_{number}",
        "OneHot",
        [ints("i", 0, 1), scalar("d", 3), floats("v", 2)],
        ["i", "d", "v"],
        axis=number,
    )
    add_one(f"top_k_{number}", "TopK", [FEW, ints("k", number)], ["c", "k"], n=2)
    add_one(f"reshape_{number}", "Reshape", [FEW, ints("s", number, -1)], ["c", "s"])
    add_one(f"split_{number}", "Split", [FEW, ints("s", number, 2 - number if number > -2 else 2)], ["c", "s"], n=2)
    add_one(f"split_outputs_{number}", "Split", [FEW], ["c"], n=2, num_outputs=number)
    add_one(f"gather_{number}", "Gather", [FEW, ints("i", number)], ["c", "i"])
    add_one(
        f"gather_nd_{number}",
        "GatherND",
        [FEW, numpy_helper.from_array(np.array([[number]]), "i")],
        ["c", "i"],
        batch_dims=0,
    )
    add_one(
        f"gather_nd_batch_{number}",
        "GatherND",
        [FEW, numpy_helper.from_array(np.array([[0]]), "i")],
        ["c", "i"],
        batch_dims=number,
    )
    add_one(
        f"scatter_{number}",
        "ScatterElements",
        [FEW, numpy_helper.from_array(np.array([[number]]), "i"), floats("u", 1, 1)],
        ["c", "i", "u"],
    )
    add_one(
        f"roi_align_{number}",
        "RoiAlign",
        [floats("im", 1, 1, 2, 2), floats("r", 1, 4), ints("b", 0)],
        ["im", "r", "b"],
        output_height=number,
        output_width=2,
    )
    add_one(
        f"roi_align_open_{number}",
        "RoiAlign",
        [floats("r", 1, 4), ints("b", 0)],
        ["x", "r", "b"],
        output_height=number,
        output_width=number,
        sampling_ratio=number,
    )
    add_one(f"max_roi_pool_{number}", "MaxRoiPool", [floats("r", 1, 5)], ["x", "r"], pooled_shape=[number, number])
    add_one(f"resize_{number}", "Resize", [ints("s", 1, 1, number, number)], ["x", "", "", "s"], mode="linear")
    add_one(
        f"resize_constant_{number}",
        "Resize",
        [floats("im", 1, 1, 2, 2), ints("s", 1, 1, number, 4)],
        ["im", "", "", "s"],
        mode="cubic",
    )
    add_one(
        f"conv_{number}",
        "Conv",
        [floats("w", 2, 2, 1, 1)],
        ["x", "w"],
        pads=[number, 0, 0, 0],
        strides=[number, 1],
        dilations=[number, 1],
        group=number,
    )
    add_one(
        f"conv_constant_{number}",
        "Conv",
        [floats("im", 1, 2, 3, 3), floats("w", 2, 2, 1, 1)],
        ["im", "w"],
        pads=[number, 0, 0, number],
    )
    add_one(
        f"conv_transpose_{number}",
        "ConvTranspose",
        [floats("w", 2, 2, 1, 1)],
        ["x", "w"],
        output_padding=[number, 0],
        strides=[number, 1],
        output_shape=[number, number],
    )
    add_one(
        f"deform_conv_{number}",
        "DeformConv",
        [floats("w", 2, 2, 1, 1), floats("o", 1, 2, 3, 3)],
        ["x", "w", "o"],
        offset_group=number,
        group=number,
    )
    add_one(
        f"max_pool_{number}",
        "MaxPool",
        [],
        ["x"],
        kernel_shape=[number, 1],
        strides=[number, 1],
        dilations=[number, 1],
        pads=[number, 0, 0, 0],
    )
    add_one(
        f"avg_pool_constant_{number}",
        "AveragePool",
        [floats("im", 1, 2, 3, 3)],
        ["im"],
        kernel_shape=[number, 1],
        pads=[number, 0, number, 0],
    )
    add_one(f"lp_pool_{number}", "LpPool", [floats("im", 1, 2, 3, 3)], ["im"], kernel_shape=[2, 1], p=number)
    add_one(
        f"max_unpool_{number}",
        "MaxUnpool",
        [
            floats("im", 1, 1, 1, 1),
            numpy_helper.from_array(np.zeros((1, 1, 1, 1), np.int64), "i"),
            ints("s", 1, 1, number, number),
        ],
        ["im", "i", "s"],
        kernel_shape=[2, 2],
    )
    add_one(
        f"col2im_{number}",
        "Col2Im",
        [floats("c3", 1, 4, 4), ints("s", number, 2), ints("b", 2, 2)],
        ["c3", "s", "b"],
        strides=[number, 1],
    )
    add_one(f"depth_to_space_{number}", "DepthToSpace", [], ["x"], blocksize=number)
    add_one(f"space_to_depth_{number}", "SpaceToDepth", [floats("im", 1, 1, 4, 4)], ["im"], blocksize=number)
    add_one(f"flatten_{number}", "Flatten", [], ["x"], axis=number)
    add_one(f"softmax_{number}", "Softmax", [FEW], ["c"], axis=number)
    add_one(f"lrn_{number}", "LRN", [floats("im", 1, 2, 3, 3)], ["im"], size=number)
    add_one(
        f"group_norm_{number}",
        "GroupNormalization",
        [floats("s", 2), floats("b", 2)],
        ["x", "s", "b"],
        num_groups=number,
    )
    add_one(
        f"layer_norm_{number}",
        "LayerNormalization",
        [floats("im", 1, 2, 3, 3), floats("s", 3)],
        ["im", "s"],
        axis=number,
    )
    add_one(f"cum_sum_{number}", "CumSum", [FEW, scalar("a", number)], ["c", "a"])
    add_one(f"hann_{number}", "HannWindow", [scalar("n", number)], ["n"])
    add_one(
        f"mel_{number}",
        "MelWeightMatrix",
        [scalar("n", number), scalar("d", number), scalar("r", 8000), floats("l"), floats("u")],
        ["n", "d", "r", "l", "u"],
    )
    add_one(f"dft_{number}", "DFT", [floats("s", 1, 4, 1), scalar("n", number), scalar("a", 1)], ["s", "n", "a"])
    add_one(
        f"stft_{number}",
        "STFT",
        [floats("s", 1, 8, 1), scalar("t", number), floats("w", 4), scalar("l", 4)],
        ["s", "t", "w", "l"],
    )
    add_one(f"eye_like_{number}", "EyeLike", [FEW], ["c"], k=number)
    add_one(f"trilu_{number}", "Trilu", [FEW, scalar("k", number)], ["c", "k"])
    add_one(f"random_{number}", "RandomNormal", [], [], shape=[number, number])
    add_one(f"multinomial_{number}", "Multinomial", [FEW], ["c"], sample_size=number)
    add_one(f"bernoulli_cast_{number}", "Cast", [FEW], ["c"], to=number % (1 << 31))
    add_one(
        f"nms_{number}",
        "NonMaxSuppression",
        [floats("b", 1, 2, 4), floats("s", 1, 1, 2), scalar("n", number)],
        ["b", "s", "n"],
    )
    add_one(f"unsqueeze_{number}", "Unsqueeze", [FEW, ints("a", number)], ["c", "a"])
    add_one(f"transpose_{number}", "Transpose", [FEW], ["c"], perm=[number, 0])
    add_one(f"concat_{number}", "Concat", [FEW], ["c", "c"], axis=number)
    add_one(f"reduce_{number}", "ReduceSum", [FEW, ints("a", number)], ["c", "a"])
    add_one(f"arg_max_{number}", "ArgMax", [FEW], ["c"], axis=number)
    add_one(f"shift_{number}", "BitShift", [ints("a", 1), ints("b", number)], ["a", "b"], direction="LEFT")
    add_one(f"mod_{number}", "Mod", [ints("a", -(1 << 63)), ints("b", number)], ["a", "b"])
    add_one(f"div_{number}", "Div", [ints("a", -(1 << 63)), ints("b", number)], ["a", "b"])
    add_one(f"pow_{number}", "Pow", [ints("a", number), ints("b", number)], ["a", "b"])
    add_one(
        f"compress_{number}", "Compress", [FEW, numpy_helper.from_array(np.array([True]), "m")], ["c", "m"], axis=number
    )
    add_one(
        f"reverse_sequence_{number}",
        "ReverseSequence",
        [FEW, ints("l", number, 1, 1)],
        ["c", "l"],
        batch_axis=1,
        time_axis=0,
    )
    add_one(f"grid_{number}", "AffineGrid", [floats("t", 1, 2, 3), ints("s", 1, 1, number, number)], ["t", "s"])
    add_one(
        f"tf_idf_{number}",
        "TfIdfVectorizer",
        [ints("i", 1, 2)],
        ["i"],
        mode="TF",
        min_gram_length=1,
        max_gram_length=number,
        max_skip_count=number,
        ngram_counts=[0, number],
        ngram_indexes=[number],
        pool_int64s=[1],
    )
    add_one(
        f"svm_{number}",
        "SVMRegressor",
        [FEW],
        ["c"],
        "ai.onnx.ml",
        n_supports=number,
        coefficients=[1.0],
        support_vectors=[1.0],
        rho=[1.0],
        kernel_params=[1.0, 1.0, 1.0],
    )
    add_one(
        f"svm_classes_{number}",
        "SVMClassifier",
        [FEW],
        ["c"],
        "ai.onnx.ml",
        n=2,
        vectors_per_class=[number, number],
        coefficients=[1.0],
        support_vectors=[1.0],
        rho=[1.0],
        kernel_params=[1.0, 1.0, 1.0],
        classlabels_ints=[0, 1],
    )
    add_one(f"linear_{number}", "LinearRegressor", [FEW], ["c"], "ai.onnx.ml", targets=number, coefficients=[1.0])
    add_one(f"features_{number}", "FeatureVectorizer", [FEW], ["c"], "ai.onnx.ml", inputdimensions=[number])
    add_one(f"array_feature_{number}", "ArrayFeatureExtractor", [FEW, ints("i", number)], ["c", "i"], "ai.onnx.ml")
    add_one(
        f"attention_{number}",
        "Attention",
        [floats("w", 3, 9), floats("b", 9)],
        ["x", "w", "b"],
        "com.microsoft",
        num_heads=number,
    )
    add_one(
        f"group_query_{number}",
        "GroupQueryAttention",
        [],
        ["x", "x", "x"],
        "com.microsoft",
        num_heads=number,
        kv_num_heads=number,
    )
    add_one(
        f"nbits_{number}",
        "MatMulNBits",
        [numpy_helper.from_array(np.zeros((1, 1, 8), np.uint8), "w"), floats("s", 1)],
        ["x", "w", "s"],
        "com.microsoft",
        K=number,
        N=number,
        bits=4,
        block_size=16,
    )
    add_one(
        f"dequantize_{number}",
        "DequantizeLinear",
        [numpy_helper.from_array(np.zeros((2, 3), np.int8), "q"), floats("s", 2)],
        ["q", "s"],
        axis=number,
        block_size=number,
    )
    add_one(
        f"lstm_{number}", "LSTM", [floats("w", 1, 8, 3), floats("r", 1, 8, 2)], ["x", "w", "r"], n=3, hidden_size=number
    )
    add_one(f"sequence_{number}", "SplitToSequence", [FEW, scalar("s", number)], ["c", "s"])
    add_one(
        f"image_scaler_{number}",
        "CropAndResize",
        [
            floats("r", 1, 4),
            numpy_helper.from_array(np.zeros(1, np.int32), "b"),
            numpy_helper.from_array(np.array([number % (1 << 31), 7], np.int32), "s"),
        ],
        ["x", "r", "b", "s"],
        "com.microsoft",
    )

for op in ("Max", "Min", "Sum", "Mean", "Concat", "Einsum", "SequenceConstruct"):
    attributes = {"Concat": {"axis": 0}, "Einsum": {"equation": "ij,ij->ij"}}.get(op, {})
    add_one(f"{op}_with_an_absent_input", op, [FEW], ["c", "", "c"], **attributes)
    add_one(f"{op}_of_absent_inputs", op, [FEW], ["", ""], **attributes)
    add_one(f"{op}_of_nothing", op, [FEW], [], **attributes)


# ---- texts that carry code, or break what shows them


def put(target: Any, name: str, text: str | bytes) -> None:
    setattr(target, name, text if isinstance(text, str) else "REPLACED")


def with_text(place: str, text: str | bytes) -> bytes:
    """A small model with the text in that place."""
    shown = text if isinstance(text, str) else "REPLACED"
    body = helper.make_node("local_f" if place == "the name of a function" else "Relu", ["x"], ["y"])
    made = model(
        [
            helper.make_node("Conv", ["x", "w", "b"], ["h"], name="conv", auto_pad="VALID"),
            helper.make_node("Resize", ["h", "", "s"], ["r"], mode="nearest"),
            helper.make_node("Einsum", ["r", "r"], ["y"], equation="abcd,abcd->abcd"),
        ],
        [value("x", "n", 2, 3, 3)],
        [value("y", "n", 2, 3, 3)],
        [floats("w", 2, 2, 1, 1), floats("b", 2), floats("s", 4)],
    )
    graph, first = made.graph, made.graph.node[0]
    if place == "a value":
        first.output[0] = made.graph.node[1].input[0] = shown or "h"
    elif place == "an input":
        graph.input[0].name = first.input[0] = shown or "x"
    elif place == "an output":
        graph.output[0].name = graph.node[2].output[0] = shown or "y"
    elif place == "a weight":
        graph.initializer[0].name = first.input[1] = shown or "w"
    elif place == "a size":
        graph.input[0].type.tensor_type.shape.dim[0].dim_param = shown
    elif place == "a node":
        first.name = shown
    elif place == "the graph":
        graph.name = shown
    elif place == "a text of the model":
        made.doc_string = graph.doc_string = first.doc_string = shown
    elif place == "the producer":
        made.producer_name = made.producer_version = made.domain = shown
    elif place == "metadata":
        made.metadata_props.add(key=shown, value=shown)
        first.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=shown)
        first.metadata_props.add(key="namespace", value=shown)
    elif place == "an operator":
        first.op_type = shown
    elif place == "a domain":
        first.domain = shown
        made.opset_import.add(domain=shown, version=1)
    elif place == "an attribute":
        first.attribute[0].name = shown
    elif place == "a padding":
        first.attribute[0].s = text if isinstance(text, bytes) else text.encode()
    elif place == "a mode":
        made.graph.node[1].attribute[0].s = text if isinstance(text, bytes) else text.encode()
    elif place == "an equation":
        made.graph.node[2].attribute[0].s = text if isinstance(text, bytes) else text.encode()
    elif place == "the name of a function":
        made = model([body], [value("x", 2)], [value("y", 2)])
        made.graph.node[0].domain, made.graph.node[0].op_type = "local", shown or "f"
        made.graph.node[0].name = shown
        inner = helper.make_node("Relu", ["a"], ["c"], name=shown)
        made.functions.append(
            helper.make_function("local", shown or "f", ["a"], ["c"], [inner], [helper.make_opsetid("", 20)])
        )
    whole = made.SerializeToString()
    return whole if isinstance(text, str) else whole.replace(b"REPLACED", text.ljust(8, b"\xff")[:8])


PLACES = [
    "a value", "an input", "an output", "a weight", "a size", "a node", "the graph", "a text of the model", "the producer",
    "metadata", "an operator", "a domain", "an attribute", "a padding", "a mode", "an equation", "the name of a function",
]  # fmt: skip


# ---- small files that cost much


@hostile
def functions_that_call_each_other_twice() -> onnx.ModelProto:
    made = model([helper.make_node("f0", ["x"], ["y"], domain="local")], [value("x", 2)], [value("y", 2)])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    for i in range(40):
        calls = [helper.make_node(f"f{i + 1}", ["a"], [f"t{k}"], domain="local") for k in range(2)]
        made.functions.append(helper.make_function("local", f"f{i}", ["a"], ["t0"], calls, opsets))
    made.functions.append(helper.make_function("local", "f40", ["a"], ["a"], [], opsets))
    return made


@hostile
def functions_without_results_that_call_each_other() -> onnx.ModelProto:
    made = model([helper.make_node("f0", [], [], domain="local")], [value("x", 2)], [value("x", 2)])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    for i in range(40):
        calls = [helper.make_node(f"f{i + 1}", [], [], domain="local") for _ in range(2)]
        made.functions.append(helper.make_function("local", f"f{i}", [], [], calls, opsets))
    made.functions.append(helper.make_function("local", "f40", [], [], [], opsets))
    return made


@large
def a_long_name_before_many_nodes() -> onnx.ModelProto:
    made = model(
        [helper.make_node("f", ["x"], ["y"], domain="local", name="n" * 1_000_000)], [value("x", 2)], [value("y", 2)]
    )
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(20_000)]
    made.functions.append(helper.make_function("local", "f", ["v0"], ["v20000"], nodes, [helper.make_opsetid("", 20)]))
    return made


def folded_convolutions(count: int) -> onnx.ModelProto:
    """Each result is constant, and as large as the limits of one node let it be."""
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["v0"])]
    nodes += [helper.make_node("Conv", [f"v{i}", "w"], [f"v{i + 1}"], pads=[15] * 4) for i in range(count)]
    return model(
        nodes, [], [value(f"v{count}", 1, 1, 512, 512)], [ints("s", 1, 1, 512, 512), floats("w", 1, 1, 31, 31)]
    )


@hostile
def ten_folded_convolutions() -> onnx.ModelProto:
    return folded_convolutions(10)


@hostile
def a_thousand_folded_convolutions() -> onnx.ModelProto:
    return folded_convolutions(1000)


@hostile
def a_thousand_folded_products() -> onnx.ModelProto:
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["v0"])]
    nodes += [helper.make_node("MatMul", [f"v{i}", "v0"], [f"v{i + 1}"]) for i in range(1000)]
    return model(nodes, [], [value("v1000", 700, 700)], [ints("s", 700, 700)])


def body_of(nodes: list[onnx.NodeProto], inputs: Any, outputs: Any) -> onnx.GraphProto:
    return helper.make_graph(nodes, "body", inputs, outputs)


def nested(op: str, depth: int, steps: int) -> onnx.ModelProto:
    inner = [helper.make_node("Add", ["s", "s"], ["t"]), helper.make_node("Identity", ["t"], ["o"])]
    for _ in range(depth):
        if op == "Scan":
            body = body_of(inner, [value("s", 4), value("e", 4)], [value("t", 4), value("o", 4)])
            inner = [
                helper.make_node("Scan", ["s", "many"], ["t", "unused"], body=body, num_scan_inputs=1),
                helper.make_node("Identity", ["t"], ["o"]),
            ]
        else:
            numbers = [value("i", dtype=TensorProto.INT64), value("c", dtype=TensorProto.BOOL), value("s", 4)]
            body = body_of(
                [helper.make_node("Identity", ["c"], ["d"]), *inner],
                numbers,
                [value("d", dtype=TensorProto.BOOL), value("t", 4), value("o", 4)],
            )
            inner = [
                helper.make_node("Loop", ["trips", "", "s"], ["t", "unused"], body=body),
                helper.make_node("Identity", ["t"], ["o"]),
            ]
    return model(inner, [value("s", 4)], [value("t", 4)], [floats("many", steps, 4), scalar("trips", steps)])


@hostile
def scans_in_scans() -> onnx.ModelProto:
    return nested("Scan", 12, 8)


@hostile
def loops_in_loops() -> onnx.ModelProto:
    return nested("Loop", 12, 8)


@hostile
def scans_20_deep() -> onnx.ModelProto:
    return nested("Scan", 20, 2)


@hostile
def branches_25_deep() -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    for _ in range(25):
        branch = helper.make_graph(nodes, "b", [], [value("y", 2)])
        nodes = [
            helper.make_node(
                "If",
                ["c"],
                ["y"],
                then_branch=branch,
                else_branch=helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "e", [], [value("y", 2)]),
            )
        ]
    return model(nodes, [value("x", 2), value("c", dtype=TensorProto.BOOL)], [value("y", 2)])


@hostile
def branches_that_both_double() -> onnx.ModelProto:
    made = model(
        [helper.make_node("f0", ["x", "c"], ["y"], domain="local")],
        [value("x", 2), value("c", dtype=TensorProto.BOOL)],
        [value("y", 2)],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    for i in range(30):
        branches = [
            helper.make_graph(
                [helper.make_node(f"f{i + 1}", ["a", "k"], ["z"], domain="local")],
                "b",
                [],
                [onnx.ValueInfoProto(name="z")],
            )
            for _ in range(2)
        ]
        node = helper.make_node("If", ["k"], ["r"], then_branch=branches[0], else_branch=branches[1])
        made.functions.append(helper.make_function("local", f"f{i}", ["a", "k"], ["r"], [node], opsets))
    made.functions.append(
        helper.make_function("local", "f30", ["a", "k"], ["r"], [helper.make_node("Relu", ["a"], ["r"])], opsets)
    )
    return made


@hostile
def sizes_that_double() -> onnx.ModelProto:
    """Each step makes the expression of a size twice as long."""
    nodes = []
    for i in range(60):
        nodes.append(helper.make_node("Concat", [f"v{i}", f"v{i}"], [f"v{i + 1}"], axis=0))
    return model(nodes, [value("v0", "n", "m")], [value("v60", "k", "m")])


@hostile
def sizes_that_multiply() -> onnx.ModelProto:
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [helper.make_node("Mul", [f"s{i}", f"s{i}"], [f"s{i + 1}"]) for i in range(30)]
    nodes += [helper.make_node("Add", [f"s{i}", f"s{i + 1}"], [f"t{i}"]) for i in range(30)]
    nodes.append(helper.make_node("ConstantOfShape", ["t29"], ["y"]))
    return model(nodes, [value("x", "n", "m", "k")], [onnx.ValueInfoProto(name="y")])


# ---- files of a few hundred kilobytes that make algorithms slow


@large
def many_live_values() -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", ["x"], [f"v{i}"]) for i in range(20_000)]
    nodes.append(helper.make_node("Sum", [f"v{i}" for i in range(20_000)], ["y"]))
    return model(nodes, [value("x", 2)], [value("y", 2)])


@large
def many_live_values_used_one_by_one() -> onnx.ModelProto:
    nodes = [helper.make_node("LeakyRelu", ["x"], [f"v{i}"], alpha=float(i)) for i in range(10_000)]
    nodes += [helper.make_node("Add", [f"v{i}", f"w{i - 1}" if i else "x"], [f"w{i}"]) for i in range(10_000)]
    return model(nodes, [value("x", 2)], [value("w9999", 2)])


@large
def many_equal_names() -> onnx.ModelProto:
    nodes = [
        helper.make_node("LeakyRelu", [f"v{i}"], [f"v{i + 1}"], name="same", alpha=float(i)) for i in range(20_000)
    ]
    made = model(nodes, [value("v0", 2)], [value("v20000", 2)])
    return made


@large
def many_names_that_become_equal() -> onnx.ModelProto:
    names = ["x", *(("a" + "/."[i % 2] + "-" * (i // 2)) for i in range(1_500)), "y"]
    nodes = [
        helper.make_node("LeakyRelu", [a], [b], alpha=1.0 + i) for i, (a, b) in enumerate(itertools.pairwise(names))
    ]
    return model(nodes, [value("x", 2)], [value("y", 2)])


@large
def a_long_chain() -> onnx.ModelProto:
    nodes = [helper.make_node("Relu" if i % 2 else "Neg", [f"{i}"], [f"{i + 1}"]) for i in range(20_000)]
    return model(nodes, [value("0", 2)], [value("20000", 2)])


@large
def a_long_chain_backwards() -> onnx.ModelProto:
    nodes = [helper.make_node("Relu" if i % 2 else "Neg", [f"{i}"], [f"{i + 1}"]) for i in range(20_000)]
    return model(nodes[::-1], [value("0", 2)], [value("20000", 2)])


@large
def a_chain_of_transposes() -> onnx.ModelProto:
    nodes = [helper.make_node("Transpose", [f"{i}"], [f"{i + 1}"], perm=[1, 2, 0]) for i in range(15_001)]
    return model(nodes, [value("0", "a", "b", "c")], [value("15001", "d", "e", "f")])


@large
def a_chain_of_shapes() -> onnx.ModelProto:
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [helper.make_node("Add" if i % 2 else "Mul", [f"s{i}", "k"], [f"s{i + 1}"]) for i in range(20_000)]
    nodes.append(helper.make_node("Expand", ["one", "s20000"], ["y"]))
    return model(nodes, [value("x", "n")], [onnx.ValueInfoProto(name="y")], [ints("k", 2), floats("one", 1)])


@large
def a_node_with_many_inputs() -> onnx.ModelProto:
    return model([helper.make_node("Concat", ["x"] * 100_000, ["y"], axis=0)], [value("x", 2)], [value("y", 200_000)])


@large
def a_node_with_many_outputs() -> onnx.ModelProto:
    outputs = [f"y{i}" for i in range(20_000)]
    return model(
        [helper.make_node("Split", ["x"], outputs, axis=0, num_outputs=20_000)],
        [value("x", 20_000)],
        [value(name, 1) for name in outputs],
    )


@large
def a_node_with_many_attributes() -> onnx.ModelProto:
    node = helper.make_node("Foo", ["x"], ["y"], domain="local")
    node.attribute.extend(helper.make_attribute(f"a{i}", i) for i in range(20_000))
    return model([node], [value("x", 2)], [value("y", 2)])


@large
def many_inputs() -> onnx.ModelProto:
    inputs = [value(f"x{i}", 2) for i in range(15_000)]
    return model([helper.make_node("Sum", [i.name for i in inputs], ["y"])], inputs, [value("y", 2)])


@large
def many_weights() -> onnx.ModelProto:
    weights = [helper.make_tensor(f"w{i}", TensorProto.FLOAT, [1], [float(i)]) for i in range(20_000)]
    nodes = [helper.make_node("Mul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(20_000)]
    return model(nodes, [value("v0", 2)], [value("v20000", 2)], weights)


@large
def many_layers_of_one_name() -> onnx.ModelProto:
    weights = [floats(f"w{i}", 2, 2) for i in range(5_000)]
    nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"], name="/layer/MatMul") for i in range(5_000)]
    return model(nodes, [value("v0", 3, 2)], [value("v5000", 3, 2)], weights)


@large
def many_functions() -> onnx.ModelProto:
    made = model(
        [helper.make_node(f"f{i}", [f"v{i}"], [f"v{i + 1}"], domain="local") for i in range(10_000)],
        [value("v0", 2)],
        [value("v10000", 2)],
    )
    for i in range(10_000):
        made.functions.append(
            helper.make_function(
                "local", f"f{i}", ["a"], ["c"], [helper.make_node("Relu", ["a"], ["c"])], [helper.make_opsetid("", 20)]
            )
        )
    return made


@large
def many_subgraphs() -> onnx.ModelProto:
    def branch(op: str, i: int) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node(op, [f"v{i}"], ["z"])], "b", [], [onnx.ValueInfoProto(name="z")])

    nodes = [
        helper.make_node("If", ["c"], [f"v{i + 1}"], then_branch=branch("Relu", i), else_branch=branch("Neg", i))
        for i in range(5_000)
    ]
    return model(nodes, [value("v0", 2), value("c", dtype=TensorProto.BOOL)], [value("v5000", 2)])


@large
def a_large_text() -> onnx.ModelProto:
    made = model([helper.make_node("Relu", ["x"], ["y"], name="n" * 500_000)], [value("x", 2)], [value("y", 2)])
    made.doc_string = "d" * 1_000_000
    return made


@large
def a_diamond_of_ifs() -> onnx.ModelProto:
    """Conditions that are known, each of which copies a branch."""
    branch = helper.make_graph(
        [helper.make_node("Relu", ["x"], [f"z{i}"]) for i in range(200)], "b", [], [onnx.ValueInfoProto(name="z0")]
    )
    nodes = [helper.make_node("If", ["yes"], [f"v{i}"], then_branch=branch, else_branch=branch) for i in range(60)]
    return model(
        nodes, [value("x", 2)], [onnx.ValueInfoProto(name="v59")], [numpy_helper.from_array(np.array(True), "yes")]
    )


def all_models(is_large: bool) -> Iterator[tuple[str, Callable[[], onnx.ModelProto | bytes]]]:
    return ((name, maker) for name, maker in MODELS.items() if (name in LARGE) == is_large)
