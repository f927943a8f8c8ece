"""Runs programs of torch.export, and observes every intermediate value."""

from __future__ import annotations

import json
import math
import operator
import tempfile
import zipfile
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from tonnx import _core
from tonnx._error import Error, translated
from tonnx._orders import choose_orders, orders_chosen
from tonnx._verify.gradients import Factor, Sum, gradients
from tonnx._verify.runners import (
    Depth,
    Gradients,
    Input,
    Runner,
    Step,
    Value,
    Visit,
    layer_of_weight,
    short,
    value_of,
)

if TYPE_CHECKING:
    import numpy as np

_NO_BOUND = 1 << 40  # PyTorch's integer for infinity is larger
See = Callable[[torch.Tensor, Callable[[], Step]], int]


def is_plain(tensor: object) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and not tensor.is_quantized


def named_outputs(result: Any, names: Sequence[str]) -> list[tuple[str, Value]]:
    tensors = [leaf for leaf in pytree.tree_leaves(result) if leaf is not None]
    tensors = [leaf if isinstance(leaf, torch.Tensor) else torch.tensor(leaf) for leaf in tensors]
    titles = list(names) if len(names) == len(tensors) else [""] * len(tensors)
    return [(name, value_of(tensor)) for name, tensor in zip(titles, tensors)]


def coarsest(tensors: Iterable[torch.Tensor]) -> str:
    types = {str(tensor.dtype).removeprefix("torch.") for tensor in tensors}
    return next((name for name in ("bfloat16", "float16") if name in types), "float32")


def weights_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def depth_of_weights(tensors: Iterable[torch.Tensor]) -> Depth:
    """A guess at the depth of a model without a graph: the number of layers with weights."""
    sums = [tensor.numel() // tensor.shape[0] for tensor in tensors if tensor.ndim >= 2 and tensor.numel()]
    return Depth(max(len(sums), 1), sum(sums))


class TorchRunner(Runner):
    """A model that is observed while it runs: each value is visited once, and not kept."""

    output_names: Sequence[str] = ()
    has_open_orders = False  # operators that may sort or not

    @abstractmethod
    def walk(self, tensors: list[torch.Tensor], see: See) -> Any:
        """Runs the model, calls `see` with every value, which returns the number of its step; returns the result."""

    @abstractmethod
    def call(self, tensors: list[torch.Tensor]) -> Any: ...

    @abstractmethod
    def weights(self) -> dict[str, torch.Tensor]: ...

    def _tensors(self, feeds: Sequence[np.ndarray]) -> list[torch.Tensor]:
        return [torch.from_numpy(array.copy()) for array in feeds]  # copies: a model may write to its inputs

    def _guarded(self, work: Callable[[], Any]) -> Any:
        try:
            with torch.no_grad(), orders_chosen(self.has_open_orders):
                return work()
        except Error:
            raise
        except Exception as e:
            raise Error(f"PyTorch cannot run '{self.path}': {short(e)}", "invalid_model") from None

    def run(self, feeds: Sequence[np.ndarray]) -> list[tuple[str, Value]]:
        return named_outputs(self._guarded(lambda: self.call(self._tensors(feeds))), self.output_names)

    def find_steps(self, feeds: Sequence[np.ndarray]) -> None:
        return None

    def trace(self, feeds: Sequence[np.ndarray], visit: Visit) -> list[Step]:
        steps: list[Step] = []

        def see(tensor: torch.Tensor, describe: Callable[[], Step]) -> int:
            steps.append(describe())
            visit(len(steps) - 1, value_of(tensor))
            return len(steps) - 1

        self._guarded(lambda: self.walk(self._tensors(feeds), see))
        return steps

    def run_with(self, feeds: Sequence[np.ndarray], given: Mapping[int, np.ndarray]) -> list[tuple[str, Value]]:
        result = self._replacing(feeds, given, lambda index, tensor: None)
        return named_outputs(result, self.output_names)

    def recompute(
        self, feeds: Sequence[np.ndarray], given: Mapping[int, np.ndarray], wanted: Sequence[int]
    ) -> dict[int, Value]:
        places, found = set(wanted), dict[int, Value]()

        def keep(index: int, tensor: torch.Tensor) -> None:
            if index in places:
                value = value_of(tensor)
                found[index] = Value(value.array.copy(), value.dtype)  # in-place operators may change it later

        self._replacing(feeds, given, keep)
        return found

    def _replacing(
        self,
        feeds: Sequence[np.ndarray],
        given: Mapping[int, np.ndarray],
        visit: Callable[[int, torch.Tensor], None],
    ) -> Any:
        count = 0

        def see(tensor: torch.Tensor, describe: Callable[[], Step]) -> int:
            nonlocal count
            visit(count, tensor)
            if count in given:
                tensor.copy_(torch.from_numpy(given[count].copy()).reshape(tensor.shape))
            count += 1
            return count - 1

        return self._guarded(lambda: self.walk(self._tensors(feeds), see))

    def gradients(self, feeds: Sequence[np.ndarray], factor: Factor, is_inside: bool) -> Gradients | None:
        count = 0

        def run(found: Sum) -> None:
            def see(tensor: torch.Tensor, describe: Callable[[], Step]) -> int:
                nonlocal count
                found.add(count, tensor)
                count += 1
                return count - 1

            if is_inside:
                self.walk(self._tensors(feeds), see)
                return
            found.add_all(self.call(self._tensors(feeds)))

        return gradients(self.weights(), factor, run)

    def fetch(self, feeds: Sequence[np.ndarray], wanted: Iterable[int]) -> dict[int, Value]:
        return self.recompute(feeds, {}, list(wanted))


class _Walk(fx.Interpreter):
    def __init__(self, module: fx.GraphModule, see: See) -> None:
        super().__init__(module)
        self.see = see
        self.sources: dict[fx.Node, tuple[int, ...]] = {}
        self.inputs = 0

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if n.op == "placeholder":
            self.inputs += 1
            self.sources[n] = (-self.inputs,)
            return result
        parents = tuple(dict.fromkeys(p for node in n.all_input_nodes for p in self.sources.get(node, ())))
        # numbers and tuples have the sources of what they were computed from
        self.sources[n] = parents
        if n.op.startswith("call") and is_plain(result) and parents:
            self.sources[n] = (self.see(result, lambda: step_of(n, parents)),)
        return result


def step_of(node: fx.Node, parents: tuple[int, ...]) -> Step:
    target = node.target
    op = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    if target is operator.getitem and isinstance(source := node.args[0], fx.Node):
        op = getattr(source.target, "__name__", "getitem")
    weights = tuple(str(source.target) for source in node.all_input_nodes if source.op == "get_attr")
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]) if stack else ""
    layer = path or (layer_of_weight(weights[0]) if weights else "")
    ends = path and all(not _is_inside(user, path) for user in node.users)
    return Step(node.name, op, parents, layer, weights, (layer,) if layer and (ends or weights) else ())


def _is_inside(node: fx.Node, path: str) -> bool:
    return any(entry[0] == path for entry in (node.meta.get("nn_module_stack") or {}).values())


def _refuse_other_functions(module: fx.GraphModule, path: str) -> None:
    """Throws where the program calls anything but operators on tensors and numbers."""
    for part in module.modules():
        for node in part.graph.nodes if isinstance(part, fx.GraphModule) else ():
            target = node.target
            if node.op != "call_function" or target in _ON_NUMBERS:
                continue
            is_operator = isinstance(target, torch._ops.OpOverload | torch._ops.HigherOrderOperator)
            if not is_operator or _takes_a_file(target):
                raise Error(f"'{path}' calls '{target}', which is not run out of a file", "unsupported")


_ON_NUMBERS = {
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod, operator.pow),
    *(operator.neg, operator.pos, operator.abs, operator.eq, operator.ne, operator.lt, operator.le, operator.gt),
    *(operator.ge, operator.and_, operator.or_, operator.not_, operator.xor, operator.lshift, operator.rshift),
    *(operator.getitem, math.ceil, math.floor, math.trunc, torch.sym_int, torch.sym_float, torch.sym_max),
    *(torch.sym_min, torch.sym_not, torch.sym_ite, torch.sym_sqrt, torch.sym_sum),
}


def _takes_a_file(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return schema is not None and any(
        argument.name in ("filename", "path") and argument.type.kind() == "StringType" for argument in schema.arguments
    )


class ProgramRunner(TorchRunner):
    """A .pt2 file."""

    def __init__(self, path: str, allow_ops: Sequence[str] = ()) -> None:
        super().__init__(path)
        self.model_path = path
        names = self._load(list(allow_ops))
        self.output_names = names.get("output_names") or [
            str(name) for name in self._program.graph_signature.user_outputs
        ]
        originals = dict(zip(names.get("arguments", ()), names.get("input_names", ())))
        self.precision = coarsest(self._program.state_dict.values())
        for symbol, bounds in self._program.range_constraints.items():
            high = int(bounds.upper) if bounds.upper < _NO_BOUND else None
            self.ranges.append((str(symbol), int(bounds.lower), high))
        nodes = {node.name: node for node in self._program.graph.nodes if node.op == "placeholder"}
        self._given: list[Any] = []  # the values of inputs that are not tensors
        for spec in self._program.graph_signature.input_specs:
            if spec.kind != torch.export.graph_signature.InputKind.USER_INPUT:
                continue
            name = spec.arg.name
            value = nodes[name].meta.get("val") if name in nodes else None
            if not isinstance(value, torch.Tensor):
                self._given.append(getattr(spec.arg, "value", None))
                continue
            self._given.append(...)
            shape = [size if isinstance(size, int) else size.node.expr for size in value.shape]
            dtype = str(value.dtype).removeprefix("torch.")
            self.inputs.append(Input(originals.get(name, name), dtype, shape))

    def _load(self, allow_ops: list[str]) -> dict[str, list[str]]:
        """Loads a copy that tonnx wrote from what it read; returns the names in the original ONNX model.

        PyTorch runs what it loads (pickles, expressions, names that become code), so it never loads the file itself.
        """
        with tempfile.TemporaryFile() as copy:  # has no name, so that it is removed even after a crash
            try:
                with translated():
                    _core.write_vetted_copy(self.path, f"/proc/self/fd/{copy.fileno()}", allow_ops)
            except Error as e:
                raise Error(f"cannot load '{self.path}': {e}", e.kind) from None
            try:
                copy.seek(0)
                self._program = torch.export.load(copy)
                _refuse_other_functions(self._program.graph_module, self.path)
                choose_orders(self._program.graph_module)
                self._module = self._program.module()
            except Error:
                raise
            except Exception as e:
                raise Error(f"PyTorch cannot load '{self.path}': {short(e)}", "bad_file") from None
            with zipfile.ZipFile(copy) as archive:
                names: dict[str, list[str]] = json.loads(archive.read("model/extra/tonnx.json"))
        return names

    def _flat(self, tensors: list[torch.Tensor]) -> list[Any]:
        rest = iter(tensors)
        return [next(rest) if value is ... else value for value in self._given]

    def call(self, tensors: list[torch.Tensor]) -> Any:
        args, kwargs = pytree.tree_unflatten(self._flat(tensors), self._program.call_spec.in_spec)
        return self._module(*args, **kwargs)

    def walk(self, tensors: list[torch.Tensor], see: See) -> Any:
        return _Walk(self._module, see).run(*self._flat(tensors), enable_io_processing=False)

    def weights(self) -> dict[str, torch.Tensor]:
        return weights_of(self._module)
