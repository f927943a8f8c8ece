"""A random ONNX graph that grows node by node; each node runs in ONNX Runtime before it is taken."""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import deviations
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

Pair = tuple[int, int]  # a size at the two times that a model is tried
Arrays = tuple[np.ndarray, np.ndarray]

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
SIGNED = (TensorProto.INT64, TensorProto.INT32, TensorProto.INT8, TensorProto.INT16)
UNSIGNED = (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)
BOOL = TensorProto.BOOL
PLAIN = (*FLOATS, *SIGNED, *UNSIGNED, BOOL)
# types that numpy does not have: inside of graphs only, and their values are looked at in these types
CARRIERS = {TensorProto.BFLOAT16: np.float32, TensorProto.FLOAT8E4M3FN: np.float32, TensorProto.FLOAT8E5M2: np.float32}
ORT_NAMES = {
    "bfloat16": TensorProto.BFLOAT16,
    "float8e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8e5m2": TensorProto.FLOAT8E5M2,
}
MAX_ELEMENTS = 4000
FILL, OTHER_FILL = 0x5A, 0xC3  # what memory holds before anything is written to it


class Unfit(Exception):
    """A node that cannot be made of what there is, or that ONNX Runtime does not run."""


@dataclass(eq=False)
class Value:
    """A tensor of the graph, and what it is at the two sizes."""

    name: str
    kind: int  # its element type
    runs: Arrays
    is_constant: bool = False

    @property
    def rank(self) -> int:
        return self.runs[0].ndim

    @property
    def shape(self) -> tuple[Pair, ...]:
        return tuple(zip(self.runs[0].shape, self.runs[1].shape, strict=True))

    @property
    def is_float(self) -> bool:
        return self.kind in FLOATS or self.kind in CARRIERS

    @property
    def dtype(self) -> np.dtype:
        return self.runs[0].dtype


@dataclass
class Block:
    """Nodes that belong together, what they take, and which of their results the graph can go on with."""

    nodes: list[onnx.NodeProto]
    inputs: list[Value]
    outputs: list[str]


def fill_memory(byte: int) -> None:
    """Fills what is allocated from here on, so that a result that a runtime never wrote is always the same."""
    if sys.platform == "linux":
        ctypes.CDLL(None).mallopt(-6, byte)  # M_PERTURB


def session(model: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # so that fill_memory reaches what the runtime allocates
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def numpy_kind(kind: int) -> np.dtype:
    return np.dtype(CARRIERS.get(kind) or helper.tensor_dtype_to_np_dtype(kind))


def opset_imports(opset: int) -> list[onnx.OperatorSetIdProto]:
    ml = 5 if opset >= 21 else 4 if opset >= 20 else 3 if opset >= 15 else 2
    return [
        helper.make_opsetid("", opset),
        helper.make_opsetid("com.microsoft", 1),
        helper.make_opsetid("ai.onnx.ml", ml),
    ]


@dataclass
class Drawing:
    """A graph in the making."""

    rng: random.Random
    opset: int
    symbols: dict[str, Pair]
    numbers: np.random.Generator
    values: list[Value] = field(default_factory=list)
    inputs: dict[str, onnx.ValueInfoProto] = field(default_factory=dict)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    pending: list[Callable[[], None]] = field(default_factory=list)  # what is added once a block is taken
    count: int = 0
    takes_inputs: bool = True

    # names and chances

    def name(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def schema(self, op: str) -> onnx.defs.OpSchema:
        try:
            schema = onnx.defs.get_schema(op, self.opset, "")
        except Exception:
            raise Unfit(op) from None
        if schema.deprecated:
            raise Unfit(op)
        return schema

    # values

    def numbers_of(self, kind: int, shape: Sequence[int], *, special: float = 0.12) -> np.ndarray:
        """Values of an element type: small and round ones mostly, and sometimes the borders of the type."""
        dtype = numpy_kind(kind)
        shape = tuple(shape)
        if kind == BOOL:
            return self.numbers.random(shape) < 0.5
        is_special = self.chance(special)
        if dtype.kind in "iu":
            low = 0 if dtype.kind == "u" else -6
            array = self.numbers.integers(low, 7, shape).astype(dtype)
            if is_special and array.size:
                borders = [np.iinfo(dtype).min, np.iinfo(dtype).max, np.iinfo(dtype).max - 1]
                array.flat[self.numbers.integers(array.size)] = self.rng.choice(borders)
            return array
        if self.chance(0.5):
            array = (self.numbers.integers(-12, 13, shape) / 4).astype(dtype)
        else:
            array = self.numbers.standard_normal(shape).astype(dtype)
        if is_special and array.size:
            info = np.finfo(dtype)
            borders = [np.nan, np.inf, -np.inf, -0.0, info.max, info.min, info.tiny, 1e4, -1e4]
            for _ in range(self.rng.randint(1, 3)):
                array.flat[self.numbers.integers(array.size)] = self.rng.choice(borders)
        return array

    def constant(self, array: np.ndarray, kind: int | None = None) -> Value:
        """A value that the file holds: an initializer, or a node Constant."""
        array = np.asarray(array)
        kind = kind or helper.np_dtype_to_tensor_dtype(array.dtype)
        name = self.name("c")
        value = Value(name, kind, (array, array), True)
        tensor = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        if self.chance(0.2):
            node = helper.make_node("Constant", [], [name], value=tensor)
            self.pending.append(lambda: self.nodes.append(node))
        else:
            self.pending.append(lambda: self.initializers.append(tensor))
        self.pending.append(lambda: self.values.append(value))
        return value

    def ints(self, *numbers: int, kind: int = TensorProto.INT64) -> Value:
        return self.constant(np.array(numbers, numpy_kind(kind)))

    def told(self, first: np.ndarray, second: np.ndarray | None = None, *, p: float = 0.1) -> Value:
        """What an operator is told of sizes, axes or counts: the file holds it mostly, and at times it is an input."""
        first = np.asarray(first)
        second = first if second is None else np.asarray(second)
        is_fixed = np.array_equal(first, second)
        if is_fixed and (not self.takes_inputs or len(self.inputs) > 4 or not self.chance(p)):
            return self.constant(first)
        runs = iter((first, second))
        shape = list(zip(first.shape, second.shape, strict=True))
        return self.input(helper.np_dtype_to_tensor_dtype(first.dtype), self.dims_of(shape), lambda _: next(runs))

    def dims(self, rank: int) -> list[int | str]:
        """A shape: small sizes, 1 and sometimes 0 among them, and open ones."""
        found: list[int | str] = []
        for _ in range(rank):
            if self.symbols and self.chance(0.35):
                found.append(self.rng.choice(list(self.symbols)))
            else:
                found.append(self.rng.choice([1, 1, 2, 2, 3, 3, 4, 5, 6] if not self.chance(0.03) else [0]))
        return found

    def sizes(self, dims: Sequence[int | str]) -> tuple[Pair, ...]:
        return tuple(self.symbols[d] if isinstance(d, str) else (d, d) for d in dims)

    def dims_of(self, shape: Sequence[Pair]) -> list[int | str]:
        """A shape of an input that has these sizes; an open size needs a symbol that has both."""
        found: list[int | str] = []
        for pair in shape:
            names = [name for name, sizes in self.symbols.items() if sizes == pair]
            if pair[0] != pair[1] and not names:
                raise Unfit("no symbol has these sizes")
            found.append(self.rng.choice(names) if names and (pair[0] != pair[1] or self.chance(0.3)) else pair[0])
        return found

    def input(
        self, kind: int, dims: Sequence[int | str], array: Callable[[tuple[int, ...]], np.ndarray] | None = None
    ) -> Value:
        if len(self.inputs) > 5 or kind in CARRIERS:
            raise Unfit("enough inputs")
        shape = self.sizes(dims)
        if max(np.prod([s[i] for s in shape], dtype=np.int64) for i in (0, 1)) > MAX_ELEMENTS:
            raise Unfit("too large")
        make = array or (lambda size: self.numbers_of(kind, size))
        name = self.name("x")
        value = Value(name, kind, (make(tuple(s[0] for s in shape)), make(tuple(s[1] for s in shape))))
        info = helper.make_tensor_value_info(name, kind, list(dims))
        self.pending.append(lambda: self.inputs.update({name: info}))
        self.pending.append(lambda: self.values.append(value))
        return value

    def fresh(
        self, kind: int, shape: Sequence[Pair], array: Callable[[tuple[int, ...]], np.ndarray] | None = None
    ) -> Value:
        """A new value of these sizes: a constant where they allow it, or an input."""
        if any(size < 0 for pair in shape for size in pair):
            raise Unfit("a negative size")
        is_fixed = all(a == b for a, b in shape)
        if is_fixed and kind in PLAIN and self.chance(0.6):
            size = tuple(a for a, _ in shape)
            if np.prod(size, dtype=np.int64) > MAX_ELEMENTS:
                raise Unfit("too large")
            return self.constant(array(size) if array else self.numbers_of(kind, size))
        return self.input(kind, self.dims_of(shape), array)

    def pick(self, kinds: Sequence[int] | None = None, fits: Callable[[Value], bool] = lambda v: True) -> Value:
        """A value that is there already, late ones rather than early ones."""
        found = [v for v in self.values if (kinds is None or v.kind in kinds) and fits(v)]
        if not found:
            raise Unfit("no such value")
        unused = [v for v in found if v.name not in self.used and not v.is_constant]
        if unused and self.chance(0.6):
            return self.rng.choice(unused)
        return self.rng.choice(found)

    def take(self, kinds: Sequence[int], ranks: Sequence[int], fits: Callable[[Value], bool] = lambda v: True) -> Value:
        """A value that is there already or, where there is none or by chance, a new one."""
        if not self.chance(0.12):
            try:
                return self.pick(kinds, lambda v: v.rank in ranks and fits(v))
            except Unfit:
                pass
        kind = self.rng.choice([k for k in kinds if k in PLAIN] or [TensorProto.FLOAT])
        if TensorProto.FLOAT in kinds and self.chance(0.6):
            kind = TensorProto.FLOAT
        value = self.fresh(kind, self.sizes(self.dims(self.rng.choice(list(ranks)))))
        if not fits(value):
            raise Unfit("the new value does not fit")
        return value

    def like(self, value: Value, shape: Sequence[Pair] | None = None) -> Value:
        """A value of the same type, and of a shape that broadcasts against that of `value`."""
        if self.chance(0.5):
            try:
                return self.pick([value.kind], lambda v: broadcasts(v.shape, value.shape))
            except Unfit:
                pass
        if shape is None:
            shape = list(value.shape)[self.rng.randint(0, value.rank) if self.chance(0.3) else 0 :]
            shape = [(1, 1) if self.chance(0.2) else pair for pair in shape]
        return self.fresh(value.kind, shape)

    # growing

    def evaluate(self, block: Block) -> list[Value]:
        """Runs a block by itself at both sizes."""
        taken = {v.name: v for v in block.inputs}
        casts, infos, constants = [], [], []
        for v in taken.values():
            name = v.name
            if v.kind in CARRIERS:
                name = f"{v.name}_carried"
                casts.append(helper.make_node("Cast", [name], [v.name], to=v.kind))
            if v.is_constant and v.kind not in CARRIERS:
                constants.append(
                    numpy_helper.from_array(np.ascontiguousarray(v.runs[0]).reshape(v.runs[0].shape), v.name)
                )
            else:
                infos.append(
                    helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), [None] * v.rank)
                )
        kinds: dict[str, int] = {}
        for _ in range(2):
            outputs = [onnx.ValueInfoProto(name=f"{o}_carried" if o in kinds else o) for o in block.outputs]
            after = [helper.make_node("Cast", [o], [f"{o}_carried"], to=TensorProto.FLOAT) for o in kinds]
            graph = helper.make_graph([*casts, *block.nodes, *after], "block", infos, outputs, constants)
            model = helper.make_model(graph, opset_imports=opset_imports(self.opset), ir_version=10)
            try:
                run = session(model.SerializeToString())
                types = [o.type.removeprefix("tensor(").removesuffix(")") for o in run.get_outputs()]
            except Exception as e:
                raise Unfit(str(e)) from None
            exotic = {o: ORT_NAMES[t] for o, t in zip(block.outputs, types, strict=True) if t in ORT_NAMES}
            if not exotic:
                break
            kinds = exotic
        try:
            feeds = [{i.name: taken[i.name.removesuffix("_carried")].runs[at] for i in infos} for at in (0, 1)]
            results = [run.run(None, f) for f in feeds]
            fill_memory(OTHER_FILL)
            again = [run.run(None, f) for f in feeds]
        except Exception as e:
            raise Unfit(str(e)) from None
        finally:
            fill_memory(FILL)
        if not all(
            is_same(a, b) for one, other in zip(results, again, strict=True) for a, b in zip(one, other, strict=True)
        ):
            raise Unfit("ONNX Runtime gives what it never wrote")
        found = []
        for name, *runs in zip(block.outputs, *results, strict=True):
            if any(not isinstance(a, np.ndarray) or a.size > MAX_ELEMENTS for a in runs):
                raise Unfit("no tensor, or a large one")
            kind = kinds.get(name) or helper.np_dtype_to_tensor_dtype(runs[0].dtype)
            found.append(Value(name, kind, (runs[0], runs[1]), all(v.is_constant for v in block.inputs)))
        for node in block.nodes:
            if why := deviations.reason(node, {name: v.runs for name, v in taken.items()}):
                raise Unfit(why)
        return found

    def add(self, block: Block) -> None:
        found = self.evaluate(block)
        for act in self.pending:
            act()
        self.pending.clear()
        self.nodes += block.nodes
        self.used |= {v.name for v in block.inputs}
        # a value whose rank is not the same at both sizes can be an output, and nothing goes on from it
        self.values += [v for v in found if v.runs[0].ndim == v.runs[1].ndim]
        self.odd += [v for v in found if v.runs[0].ndim != v.runs[1].ndim]

    odd: list[Value] = field(default_factory=list)


def is_same(a: object, b: object) -> bool:
    """Whether two results are the same tensor; those of other kinds are not looked at."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return True
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def broadcasts(a: Sequence[Pair], b: Sequence[Pair]) -> bool:
    """Whether two shapes broadcast against each other at both sizes."""
    for p, q in zip(reversed(a), reversed(b), strict=False):
        if any(p[i] != q[i] and 1 not in (p[i], q[i]) for i in (0, 1)):
            return False
    return True
