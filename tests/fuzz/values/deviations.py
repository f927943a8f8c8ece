"""Where ONNX Runtime does not do what ONNX says, or where ONNX says nothing: such nodes are not drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

Known = dict[str, tuple[np.ndarray, np.ndarray]]  # what a node takes at both sizes, where the node's block is given it


def input_of(node: onnx.NodeProto, at: int, known: Known) -> np.ndarray | None:
    pair = known.get(node.input[at]) if at < len(node.input) else None
    return pair[0] if pair else None


def slice_reason(node: onnx.NodeProto, known: Known) -> str:
    ends, steps = input_of(node, 2, known), input_of(node, 4, known)
    if ends is not None and steps is not None and ((steps < 0) & (ends > 2**31 - 2)).any():
        return "from the front to the largest number in negative steps is nothing, and ONNX Runtime goes to the front"
    starts = input_of(node, 1, known)
    if starts is not None and steps is not None and ((steps < 0) & (starts < -1)).any():
        return "ONNX infers an element where a slice backwards starts in front of the first one"
    return ""


def recurrent_reason(node: onnx.NodeProto, known: Known) -> str:
    lengths = known.get(node.input[4], ()) if len(node.input) > 4 else ()
    if any((run == 0).any() for run in lengths):
        return "after no steps the last state is 0 in ONNX Runtime, and not the first one"
    names = {name for a in node.attribute if a.name == "activations" for name in a.strings}
    if b"Softplus" in names and names & {b"Affine", b"Elu", b"LeakyRelu", b"Relu", b"ScaledTanh", b"ThresholdedRelu"}:
        return "the softplus of ONNX Runtime is infinite above 88, which others that grow from step to step reach"
    given = [run for name in node.input for run in known.get(name, ())]
    if any(run.dtype.kind == "f" and not (np.abs(run) < 1e4).all() for run in given):
        return "the activations of ONNX Runtime cut their inputs off at about 20, those that are no number among them"
    return ""


def is_finite(node: onnx.NodeProto, known: Known) -> bool:
    given = [run for name in node.input for run in known.get(name, ())]
    return all(run.dtype.kind != "f" or bool(np.isfinite(run).all()) for run in given)


def no_number_reason(node: onnx.NodeProto, known: Known) -> str:
    if not is_finite(node, known):
        return "which results are no number depends on the order of sums, or of comparisons, that a runtime takes"
    return ""


def empty_reduction_reason(node: onnx.NodeProto, known: Known) -> str:
    given = known.get(node.input[0], ())
    if any(run.size == 0 for run in given):
        return "a reduction of nothing has another shape in ONNX Runtime"
    if any(run.dtype.kind in "iu" and (np.abs(run.astype(np.float64)) > 1e6).any() for run in given):
        return "means and norms of whole numbers are computed in floats that cannot hold all of them"
    return ""


def logarithm_reason(node: onnx.NodeProto, known: Known) -> str:
    if any(run.dtype.kind in "iu" for run in known.get(node.input[0], ())):
        return "the fraction of a logarithm is cut off, so that rounding decides where it is whole"
    return empty_reduction_reason(node, known)


def extreme_reason(node: onnx.NodeProto, known: Known) -> str:
    given = known.get(node.input[0], ())
    if any(run.dtype.kind == "f" and np.isnan(run).any() for run in given):
        return "ONNX Runtime keeps what is no number only where it comes first"
    return empty_reduction_reason(node, known)


def arg_reason(node: onnx.NodeProto, known: Known) -> str:
    return empty_reduction_reason(node, known) or no_number_reason(node, known)


def pool_reason(node: onnx.NodeProto, known: Known) -> str:
    """A window that is larger than what it slides over: how often it fits is rounded towards zero, not down."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    kernel = attributes["kernel_shape"]
    rank = len(kernel)
    pads, strides = attributes.get("pads", [0] * 2 * rank), attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    if attributes.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER"):
        if any(0 in run.shape[2:] for run in known.get(node.input[0], ())):
            return "how many windows there are over nothing is rounded towards zero where the pads are numbers"
        return "dilations do not count in ONNX Runtime's padding" if any(d > 1 for d in dilations) else ""
    for run in known.get(node.input[0], ()):
        for at, size in enumerate(run.shape[2:]):
            room = size + pads[at] + pads[at + rank] - dilations[at] * (kernel[at] - 1) - 1
            if room < 0 and room % strides[at]:
                return "how often a window fits that is too large is rounded towards zero"
            if room // strides[at] + 1 < 0:
                return "fewer windows than none"
    return ""


def has_window_of_padding(node: onnx.NodeProto, known: Known) -> bool:
    """Whether a window that is spread out lies beside all elements."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    kernel = attributes["kernel_shape"]
    rank = len(kernel)
    pads, strides = attributes.get("pads", [0] * 2 * rank), attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    for run in known.get(node.input[0], ()):
        for at, size in enumerate(run.shape[2:]):
            span = dilations[at] * (kernel[at] - 1) + 1
            for start in range(-pads[at], size + pads[at + rank] - span + strides[at], strides[at]):
                if not any(0 <= start + i * dilations[at] < size for i in range(kernel[at])):
                    return True
    return False


def max_pool_reason(node: onnx.NodeProto, known: Known) -> str:
    if has_window_of_padding(node, known):
        return "the largest of no elements is the lowest number in ONNX Runtime, 0 in ONNX's evaluator, -inf in PyTorch"
    return pool_reason(node, known) or no_number_reason(node, known)


def last_pool_reason(node: onnx.NodeProto, known: Known) -> str:
    first, second = known.get(node.input[0], (np.zeros((0, 0, 0, 0)),) * 2)
    moved = (np.moveaxis(first, -1, 1), np.moveaxis(second, -1, 1))
    return max_pool_reason(node, {node.input[0]: moved})


def quantised_pool_reason(node: onnx.NodeProto, known: Known) -> str:
    is_last = any(a.name == "channels_last" and a.i for a in node.attribute)
    runs = known.get(node.input[0], ())
    moved = tuple(np.moveaxis(run, -1, 1) if is_last else run for run in runs)
    return pool_reason(node, {node.input[0]: moved} if len(moved) == 2 else {})


def pad_reason(node: onnx.NodeProto, known: Known) -> str:
    """Pads below zero, which cut off; those of one axis may add in front what is then cut off behind."""
    as_attribute = next((np.array(a.ints) for a in node.attribute if a.name == "pads"), None)
    pads = as_attribute if as_attribute is not None else input_of(node, 1, known)
    axes = input_of(node, 3, known)
    for run in known.get(node.input[0], ()) if pads is not None else ():
        front, behind = np.split(np.asarray(pads), 2)
        sizes = np.array(run.shape)[axes.reshape(-1) if axes is not None else slice(None)]
        if (sizes + np.minimum(front, 0) + np.minimum(behind, 0) < 0).any():
            return "ONNX does not say what is left where more is cut off an axis than there is"
    return ""


def scatter_reason(node: onnx.NodeProto, known: Known) -> str:
    is_extreme = any(a.name == "reduction" and a.s in (b"max", b"min") for a in node.attribute)
    return no_number_reason(node, known) if is_extreme else ""


def window_reason(node: onnx.NodeProto, known: Known) -> str:
    is_double = any(a.name == "output_datatype" and a.i == onnx.TensorProto.DOUBLE for a in node.attribute)
    has_only_ends = any((run <= 2).all() for run in known.get(node.input[0], ()))
    return (
        "ONNX Runtime keeps 0.42 and 0.08 as floats, so that the ends of a window are not 0"
        if is_double or has_only_ends
        else ""
    )


def clip_reason(node: onnx.NodeProto, known: Known) -> str:
    """Those of 32 bits without a sign come back from PyTorch as 64 bits."""
    given = [run for name in node.input for run in known.get(name, ())]
    if any(run.dtype.name in ("int64", "uint32") and (np.abs(run.astype(np.float64)) >= 2**31).any() for run in given):
        return "ONNX Runtime compares only parts of whole numbers of 64 bits that need more than 32"
    bounds = sum(name != "" for name in node.input[1:]) + sum(a.name in ("min", "max") for a in node.attribute)
    if node.op_type == "Clip" and bounds < 2 and any(run.dtype.kind == "f" and np.isinf(run).any() for run in given):
        return "ONNX Runtime takes the largest number for a bound that is not there, and ONNX's evaluator none"
    return ""


def einsum_reason(node: onnx.NodeProto, known: Known) -> str:
    given = [run for name in node.input for run in known.get(name, ())]
    if len(node.input) > 1 and any(run.size == 0 for run in given):
        return "ONNX Runtime divides by the number of elements, where it is zero, and ends with the process"
    return ""


def conv_reason(node: onnx.NodeProto, known: Known) -> str:
    given = [run for name in node.input for run in known.get(name, ())]
    if any(run.size == 0 for run in given):
        return "ONNX Runtime never ends a convolution over no channels"
    if any(run.dtype.kind == "f" and (np.abs(run.astype(np.float64)) > 1e30).any() for run in given):
        return "sums of numbers as large as there are overflow in some orders, and not in others"
    return no_number_reason(node, known)


def table_reason(node: onnx.NodeProto, known: Known) -> str:
    """Ids that are an input are taken to count from the front: a table of rows is an nn.Embedding."""
    rows, ids = known.get(node.input[0], ()), known.get(node.input[1], ())
    is_table = any(run.ndim == 2 and run.dtype.kind == "f" for run in rows)
    is_first = not any(a.name == "axis" and a.i not in (0, -2) for a in node.attribute)
    if is_table and is_first and any(run.ndim > 0 and (run < 0).any() for run in ids):
        return "nn.Embedding takes no ids that count from the back, and says so"
    return ""


def sign_reason(node: onnx.NodeProto, known: Known) -> str:
    return "" if is_finite(node, known) else "ONNX does not say which sign what is no number has"


def sum_reason(node: onnx.NodeProto, known: Known) -> str:
    is_old = any(a.name == "axes" for a in node.attribute)
    axes = input_of(node, 1, known)  # ONNX Runtime counts none from the back where there are no elements
    return empty_reduction_reason(node, known) if is_old or (axes is not None and (axes < 0).any()) else ""


def attention_reason(node: onnx.NodeProto, known: Known) -> str:
    runs = zip(known.get(node.input[0], ()), known.get(node.input[1], ()), strict=False)
    is_causal = any(a.name == "unidirectional" and a.i for a in node.attribute)
    if is_causal and any(q.ndim == 3 and q.shape[1] != k.shape[-2] for q, k in runs):
        return (
            "which keys a query sees where there are more of one than of the other, each kernel has its own answer to"
        )
    return no_number_reason(node, known)


def scores_reason(node: onnx.NodeProto, known: Known) -> str:
    return (
        "" if is_finite(node, known) else "PyTorch's attention takes scores that are no number for those of masked keys"
    )


def single_target_reason(node: onnx.NodeProto, known: Known) -> str:
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    targets = attributes.get("n_targets", attributes.get("targets", 1))
    if targets == 1 and attributes.get("post_transform", b"NONE") not in (b"NONE", 0):
        return "ONNX Runtime leaves the scores of one target as they are"
    is_softmax = attributes.get("post_transform") == b"SOFTMAX_ZERO"
    if is_softmax and any((run == 0).all(axis=-1).any() for run in known.get(node.input[0], ())):
        return "ONNX Runtime divides 0 by 0 where all scores are 0"
    return no_number_reason(node, known)


def tree_class_reason(node: onnx.NodeProto, known: Known) -> str:
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    labels = attributes.get("classlabels_int64s") or attributes.get("classlabels_strings") or []
    if len(labels) == 2 and len(set(attributes.get("class_ids", ()))) == 2:
        return "of two classes that both have scores ONNX Runtime gives 1 or 0, by the second score, and not the labels"
    return ""


def resize_reason(node: onnx.NodeProto, known: Known) -> str:
    is_aligned = any(a.name == "coordinate_transformation_mode" and a.s == b"align_corners" for a in node.attribute)
    scales = input_of(node, 2, known)
    axes = next((list(a.ints) for a in node.attribute if a.name == "axes"), None)
    for run in known.get(node.input[0], ()):
        if not is_aligned or scales is None or not scales.size:
            break
        sizes = np.array([run.shape[a] for a in (axes if axes is not None else range(run.ndim))]) * scales.astype(
            np.float64
        )
        if (np.abs(sizes - np.round(sizes)) > 1e-4).any():
            return "ONNX's own tests align corners by a size that is not whole, and ONNX Runtime by the whole one"
    return no_number_reason(node, known)


def variance_reason(node: onnx.NodeProto, known: Known) -> str:
    if any((np.abs(run) > 1e18).any() for run in known.get(node.input[0], ())):
        return "the squares of ONNX Runtime are too large where those of differences from the mean are not"
    axes = next((tuple(a.ints) for a in node.attribute if a.name == "axes"), (0, 2, 3))
    for run in known.get(node.input[0], ()):
        spread = run.std(axis=axes, dtype=np.float64, keepdims=True) if run.size else np.ones(1)
        if (spread <= 1e-3 * np.abs(run).max(initial=0)).any():
            return "the mean of the squares less the square of the mean may round to less than zero, which has no root"
    return no_number_reason(node, known)


def norm_reason(node: onnx.NodeProto, known: Known) -> str:
    given = [run for name in node.input for run in known.get(name, ())]
    if any(run.dtype.kind == "f" and (np.abs(run.astype(np.float64)) > 1e18).any() for run in given):
        return "the squares of such numbers overflow in one order of sums, and not in another"
    return no_number_reason(node, known)


def gelu_reason(node: onnx.NodeProto, known: Known) -> str:
    given = [run for name in node.input for run in known.get(name, ())]
    if any(not (np.abs(run.astype(np.float64)) < 1e4).all() for run in given):
        return "the gelu of infinity is no number in PyTorch"
    return ""


def normalizer_reason(node: onnx.NodeProto, known: Known) -> str:
    is_l2 = any(a.name == "norm" and a.s == b"L2" for a in node.attribute)
    if is_l2 and any((run < 0).any() for run in known.get(node.input[0], ())):
        return "ONNX Runtime takes the signs from numbers that it has overwritten, where the result lies in their place"
    return no_number_reason(node, known)


def quantised_product_reason(node: onnx.NodeProto, known: Known) -> str:
    given = [run for name in node.input for run in known.get(name, ())]
    return "ONNX Runtime leaves sums of nothing unwritten" if any(run.size == 0 for run in given) else ""


def affine_grid_reason(node: onnx.NodeProto, known: Known) -> str:
    sizes = input_of(node, 1, known)
    is_aligned = any(a.name == "align_corners" and a.i for a in node.attribute)
    if is_aligned and sizes is not None and (sizes[2:] == 1).any():
        return "the corners of a single element are one place, for which ONNX divides by zero"
    return no_number_reason(node, known)


def is_halfway(image: np.ndarray, grid: np.ndarray, is_aligned: bool) -> bool:
    """Whether a place lies in the middle of two elements."""
    sizes = np.array(image.shape[:1:-1], np.float64)
    places = (grid + 1) / 2 * (sizes - 1) if is_aligned else ((grid + 1) * sizes - 1) / 2
    return bool((np.abs(places - np.floor(places) - 0.5) < 1e-4).any())


def grid_reason(node: onnx.NodeProto, known: Known) -> str:
    grid = known.get(node.input[1], ())
    if any(not (np.abs(run) < 1e4).all() for run in grid):
        return "places far outside are turned into whole numbers that are too small for them"
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if attributes.get("mode") == b"nearest" and attributes.get("padding_mode") == b"reflection":
        pairs = zip(known.get(node.input[0], ()), grid, strict=False)
        if any(is_halfway(image, places, attributes.get("align_corners") == 1) for image, places in pairs):
            return "ONNX does not say whether a place is rounded or reflected first"
    return no_number_reason(node, known)


CHECKS: dict[str, Callable[[onnx.NodeProto, Known], str]] = {
    "Slice": slice_reason,
    "Gather": table_reason,
    "RNN": recurrent_reason,
    "GRU": recurrent_reason,
    "LSTM": recurrent_reason,
    **dict.fromkeys(("Conv", "ConvInteger", "FusedConv", "QLinearConv"), conv_reason),
    "AffineGrid": affine_grid_reason,
    **dict.fromkeys(("GroupNormalization", "LayerNormalization", "RMSNormalization"), norm_reason),
    **dict.fromkeys(("InstanceNormalization", "BatchNormalization"), norm_reason),
    "Sign": sign_reason,
    "GridSample": grid_reason,
    "MaxPool": max_pool_reason,
    "NhwcMaxPool": last_pool_reason,
    "GlobalMaxPool": no_number_reason,
    "ReduceSum": sum_reason,
    "MultiHeadAttention": attention_reason,
    "Attention": scores_reason,
    **dict.fromkeys(("TreeEnsembleRegressor", "TreeEnsemble", "LinearRegressor"), single_target_reason),
    "TreeEnsembleClassifier": tree_class_reason,
    "QGemm": quantised_product_reason,
    "Normalizer": normalizer_reason,
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), logarithm_reason),
    "Resize": resize_reason,
    **dict.fromkeys(("Gelu", "BiasGelu", "FastGelu", "QuickGelu"), gelu_reason),
    **dict.fromkeys(("AveragePool", "LpPool"), pool_reason),
    "QLinearAveragePool": quantised_pool_reason,
    "Pad": pad_reason,
    **dict.fromkeys(("ScatterElements", "ScatterND"), scatter_reason),
    "BlackmanWindow": window_reason,
    "Einsum": einsum_reason,
    **dict.fromkeys(("Clip", "Max", "Min", "Relu"), clip_reason),
    **dict.fromkeys(("ArgMax", "ArgMin", "Hardmax"), arg_reason),
    **dict.fromkeys(("ReduceL1", "ReduceL2"), empty_reduction_reason),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), extreme_reason),
    **dict.fromkeys(("ReduceMean", "ReduceProd", "ReduceSumSquare"), empty_reduction_reason),
    **dict.fromkeys(("DFT", "STFT", "LRN", "Unique", "CDist"), no_number_reason),
    "MeanVarianceNormalization": variance_reason,
    **dict.fromkeys(("Upsample", "RoiAlign", "Det", "ConvTranspose"), no_number_reason),
}


def reason(node: onnx.NodeProto, known: Known) -> str:
    """Why the results of a node prove nothing; empty where they do."""
    check = CHECKS.get(node.op_type)
    return check(node, known) if check else ""
