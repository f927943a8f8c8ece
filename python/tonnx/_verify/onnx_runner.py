"""Runs an ONNX file in ONNX Runtime, and shows the values between its nodes by making them outputs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tonnx import _core
from tonnx._error import Error, translated
from tonnx._runtime import ONNX_TYPES, open_session
from tonnx._verify.expression import Needs
from tonnx._verify.hints import Hints, all_nodes, needs_of
from tonnx._verify.runners import ChunkRunner, Input, Step, Value, depths, layer_of_weight, short

if TYPE_CHECKING:
    import numpy as np

_NO_LAYERS = {"Constant", "Shape", "Size", "ConstantOfShape"}
_INTEGERS = {6, 7}  # int32 and int64: shapes, axes and places, which no layer is named after
_QUANTISED = {"DequantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger"}


def _problem(path: str, doing: str, e: Exception) -> Error:
    text = short(e)
    kind = "unsupported" if "NOT_IMPLEMENTED" in text or "NotImplemented" in type(e).__name__ else "invalid_model"
    return Error(f"ONNX Runtime cannot {doing} '{path}': {text}", kind)


class OnnxRunner(ChunkRunner):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        try:
            with translated():
                _core.Conversion.read_file(path)  # what is no model, or lies outside its folder, is refused here
        except Error as e:
            raise Error(f"cannot load '{path}': {e}", e.kind) from None
        try:
            self._session = open_session(path)
        except Error:
            raise
        except Exception as e:
            raise _problem(path, "load", e) from None
        self._model: Any = None
        self._places: dict[int, str] = {}
        for value in self._session.get_inputs():
            if value.type not in ONNX_TYPES:
                raise Error(f"input '{value.name}' of '{path}' is a {value.type}", "unsupported")
            shape = [size if isinstance(size, int) or size else None for size in value.shape]
            self.inputs.append(Input(value.name, ONNX_TYPES[value.type], shape))
        self._find_hints()

    def _graph(self) -> Any:
        """The graph, without external data."""
        if self._model is None:
            import onnx

            self._model = onnx.load(self.path, load_external_data=False)
        return self._model.graph

    def _find_hints(self) -> None:
        import onnx

        graph = self._graph()
        Hints(self.inputs).read(graph)
        types = {tensor.data_type for tensor in graph.initializer}
        if any(node.op_type in _QUANTISED for node in all_nodes(graph)):
            self.precision = "int8"
        elif onnx.TensorProto.BFLOAT16 in types:
            self.precision = "bfloat16"
        elif onnx.TensorProto.FLOAT16 in types:
            self.precision = "float16"

    def needs(self) -> Needs:
        if not any(isinstance(size, str) or size is None for value in self.inputs for size in value.shape or ()):
            return Needs()
        return needs_of(self.path, self.inputs)

    def _named(self, feeds: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        return {value.name: array for value, array in zip(self.inputs, feeds)}

    def _open_again(self) -> Any:
        """A session over the graph as it is now."""
        try:
            return open_session(self._model.SerializeToString(), os.path.dirname(os.path.abspath(self.path)))
        except Exception as e:
            raise _problem(self.path, "load", e) from None

    def _run(self, session: Any, names: Sequence[str], arrays: Mapping[str, np.ndarray]) -> list[Any]:
        try:
            result: list[Any] = session.run(list(names), dict(arrays))
        except Exception as e:
            raise _problem(self.path, "run", e) from None
        return result

    def run(self, feeds: Sequence[np.ndarray]) -> list[tuple[str, Value]]:
        return self._outputs(self._session, self._named(feeds))

    def _outputs(self, session: Any, arrays: Mapping[str, np.ndarray]) -> list[tuple[str, Value]]:
        import numpy as np

        names = [output.name for output in session.get_outputs()]
        found: list[tuple[str, Value]] = []
        for name, value in zip(names, self._run(session, names, arrays)):
            if isinstance(value, dict) or value is None:
                raise Error(f"output '{name}' of '{self.path}' is no tensor", "unsupported")
            if isinstance(value, list):
                found += [(f"{name}[{i}]", Value(np.asarray(part), str(part.dtype))) for i, part in enumerate(value)]
            else:
                array = np.asarray(value)
                found.append((name, Value(array, str(array.dtype))))
        return found

    def find_steps(self) -> None:
        if self.steps:
            return
        graph = self._graph()
        weights = {tensor.name for tensor in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
        numbers = {tensor.name for tensor in graph.initializer if tensor.data_type in _INTEGERS}
        # what a value is computed from: steps, and inputs as negative numbers
        sources: dict[str, tuple[int, ...]] = {value.name: (-1 - i,) for i, value in enumerate(self.inputs)}
        for node in _in_order(graph.node):
            parents = tuple(dict.fromkeys(p for name in node.input for p in sources.get(name, ())))
            if node.op_type in _NO_LAYERS or not parents:
                if node.op_type == "Constant":
                    weights.update(node.output)
                sources.update((name, ()) for name in node.output)
                continue
            used = tuple(name for name in node.input if name in weights)
            layers = (layer_of_weight(name) for name in used if name not in numbers)
            paths = tuple(filter(None, layers))[:1]
            for name in filter(None, node.output):
                sources[name] = (len(self.steps),)
                self._places[len(self.steps)] = name
                self.steps.append(Step(name, node.op_type, parents, node.name, used, paths, module_of(node)))

    def fetch(self, feeds: Sequence[np.ndarray], wanted: Iterable[int]) -> dict[int, Value]:
        import numpy as np
        import onnx

        self.find_steps()
        places = list(wanted)
        names = [self._places[i] for i in places]
        outputs = self._graph().output
        count, declared = len(outputs), {output.name for output in outputs}
        outputs.extend(onnx.ValueInfoProto(name=name) for name in names if name not in declared)
        try:
            session = self._open_again()
        finally:
            del outputs[count:]
        values = self._run(session, names, self._named(feeds))
        return {
            i: Value(value, str(value.dtype))
            for i, value in zip(places, values)
            if isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
        }

    def run_with(self, feeds: Sequence[np.ndarray], index: int, array: np.ndarray) -> list[tuple[str, Value]]:
        import onnx

        self.find_steps()
        name, graph = self._places[index], self._graph()
        maker = next(node for node in graph.node if name in node.output)
        place = list(maker.output).index(name)
        maker.output[place] = f"{name} as computed"
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        graph.input.append(onnx.helper.make_tensor_value_info(name, kind, array.shape))
        try:
            session = self._open_again()
        finally:
            del graph.input[-1]
            maker.output[place] = name
        return self._outputs(session, {**self._named(feeds), name: array})

    def depth(self) -> int:
        self.find_steps()
        return max(depths(self.steps), default=1)


def module_of(node: Any) -> str:
    """The path of the module that an exporter of PyTorch left in the node's metadata."""
    kept = {entry.key: entry.value for entry in node.metadata_props}
    if "torch.module" in kept:  # as tonnx.export writes it
        return str(kept["torch.module"])
    scopes = re.findall(r"'([^']*)'", kept.get("pkg.torch.onnx.name_scopes", ""))
    return scopes[-2] if len(scopes) > 1 else ""  # the last one is the operator


def _in_order(nodes: Sequence[Any]) -> list[Any]:
    """The nodes so that each comes after those that it needs; ONNX Runtime takes files that are not sorted."""
    made = {name for node in nodes for name in node.output}
    done: set[str] = set()
    waiting, result = list(nodes), []
    while waiting:
        later = []
        for node in waiting:
            if all(name in done or name not in made for name in node.input):
                result.append(node)
                done.update(node.output)
            else:
                later.append(node)
        if len(later) == len(waiting):  # a cycle, which ONNX Runtime has refused before
            return result + later
        waiting = later
    return result
