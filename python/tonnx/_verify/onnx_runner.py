"""Runs an ONNX file in ONNX Runtime; intermediate values are observed by making them outputs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tonnx import _core
from tonnx._error import Error, translated
from tonnx._runtime import ONNX_TYPES, open_session
from tonnx._verify.bodies import has_bodies, opened
from tonnx._verify.nodes import all_nodes, subgraphs
from tonnx._verify.runners import Input, Runner, Step, Value, layer_of_weight, short
from tonnx._verify.saturation import without_saturation

if TYPE_CHECKING:
    import numpy as np

_NO_LAYERS = {"Constant", "Shape", "Size", "ConstantOfShape"}
_INTEGERS = {6, 7}  # int32 and int64: shapes, axes and indices, which are not weights of a layer


def _problem(path: str, doing: str, e: Exception) -> Error:
    text = short(e)
    kind = "unsupported" if "NOT_IMPLEMENTED" in text or "NotImplemented" in type(e).__name__ else "invalid_model"
    return Error(f"ONNX Runtime cannot {doing} '{path}': {text}", kind)


class OnnxRunner(Runner):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.model_path = path
        try:
            with translated():
                _core.Conversion.read_file(path)  # refuses invalid models, and external data outside the folder
        except Error as e:
            raise Error(f"cannot load '{path}': {e}", e.kind) from None
        try:
            self._session = open_session(path)
        except Error:
            raise
        except Exception as e:
            raise _problem(path, "load", e) from None
        self._model: Any = None
        self._watched: Any = None  # the model with subgraphs inlined, whose values are observed
        self._places: dict[int, str] = {}
        shapeless = {v.name for v in self._graph().input if not v.type.tensor_type.HasField("shape")}
        for value in self._session.get_inputs():
            if value.type not in ONNX_TYPES:
                raise Error(f"input '{value.name}' of '{path}' is a {value.type}", "unsupported")
            sizes = [size if isinstance(size, int) or size else None for size in value.shape]
            shape = None if value.name in shapeless else sizes  # the runtime reports both as []
            self.inputs.append(Input(value.name, ONNX_TYPES[value.type], shape))
        chosen = _orders_chosen(all_nodes(self._graph()))
        exact = without_saturation(self._model, self._folder())
        if chosen or exact:
            self._session = self._open_again(self._model)

    def _graph(self) -> Any:
        """The graph, without external data."""
        if self._model is None:
            import onnx

            self._model = onnx.load(self.path, load_external_data=False)
        return self._model.graph

    def _named(self, feeds: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        return {value.name: array for value, array in zip(self.inputs, feeds)}

    def _folder(self) -> str:
        return os.path.dirname(os.path.abspath(self.path))

    def _open_again(self, model: Any) -> Any:
        """A session for the model with its changes."""
        try:
            return open_session(model.SerializeToString(), self._folder())
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

    def _watch(self, feeds: Sequence[np.ndarray]) -> None:
        """Inlines subgraphs as these inputs run through them."""
        if not has_bodies(self._graph()):
            return

        def fetch(model: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
            return self._fetch(model, names, feeds)

        try:
            self._watched = opened(self._model, fetch)
            open_session(self._watched.SerializeToString(), self._folder())
        except Exception:  # then subgraphs are not observed
            self._watched = self._model

    def _observed(self) -> Any:
        self._graph()
        return self._watched if self._watched is not None else self._model

    def find_steps(self, feeds: Sequence[np.ndarray]) -> list[Step]:
        self._watch(feeds)
        steps, self._places = steps_of(self._observed().graph, self.inputs)
        return steps

    def fetch(self, feeds: Sequence[np.ndarray], wanted: Iterable[int]) -> dict[int, Value]:
        places = {self._places[i]: i for i in wanted}
        values = self._fetch(self._observed(), list(places), feeds)
        return {
            places[name]: Value(value, str(value.dtype)) for name, value in values.items() if value.dtype.kind in "fiub"
        }

    def _fetch(
        self,
        model: Any,
        names: Sequence[str],
        feeds: Sequence[np.ndarray],
        more: Mapping[str, np.ndarray] | None = None,
    ) -> dict[str, np.ndarray]:
        """Values of a model by name, those that are tensors."""
        import numpy as np
        import onnx

        outputs = model.graph.output
        count, declared = len(outputs), {output.name for output in outputs}
        outputs.extend(onnx.ValueInfoProto(name=name) for name in names if name not in declared)
        try:
            session = self._open_again(model)
        finally:
            del outputs[count:]
        values = zip(names, self._run(session, names, {**self._named(feeds), **(more or {})}))
        return {name: value for name, value in values if isinstance(value, np.ndarray)}

    def run_with(self, feeds: Sequence[np.ndarray], given: Mapping[int, np.ndarray]) -> list[tuple[str, Value]]:
        model, arrays, _ = self._cut(given)
        return self._outputs(self._open_again(model), {**self._named(feeds), **arrays})

    def recompute(
        self, feeds: Sequence[np.ndarray], given: Mapping[int, np.ndarray], wanted: Sequence[int]
    ) -> dict[int, Value]:
        model, arrays, computed = self._cut(given)
        places = {computed.get(self._places[i], self._places[i]): i for i in wanted}
        values = self._fetch(model, list(places), feeds, arrays)
        return {places[name]: Value(value, str(value.dtype)) for name, value in values.items()}

    def _cut(self, given: Mapping[int, np.ndarray]) -> tuple[Any, dict[str, np.ndarray], dict[str, str]]:
        """A copy of the model where given values are inputs, and the values that were computed are renamed."""
        import onnx

        model = onnx.ModelProto()
        model.CopyFrom(self._observed())
        arrays = {self._places[index]: array for index, array in given.items()}
        computed = {name: f"{name} as computed" for name in arrays}
        for node in model.graph.node:
            node.output[:] = [computed.get(name, name) for name in node.output]
        for name, array in arrays.items():
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            model.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, array.shape))
        return model, arrays, computed


def _orders_chosen(nodes: Iterable[Any]) -> bool:
    """Makes TopK sort where any order is allowed, as _orders.py does in PyTorch; returns whether there was such a node.

    ONNX defines the order of Unique.
    """
    found = False
    for node in nodes:
        for attribute in node.attribute if node.op_type == "TopK" and node.domain in ("", "ai.onnx") else ():
            if attribute.name == "sorted" and attribute.i == 0:
                attribute.i, found = 1, True
    return found


def steps_of(graph: Any, inputs: Sequence[Input]) -> tuple[list[Step], dict[int, str]]:
    """The values that depend on inputs in order of execution, and their names by index."""
    steps: list[Step] = []
    places: dict[int, str] = {}
    weights = {tensor.name for tensor in graph.initializer}
    weights |= {tensor.values.name for tensor in graph.sparse_initializer}
    numbers = {tensor.name for tensor in graph.initializer if tensor.data_type in _INTEGERS}
    # the steps that a value is computed from; negative numbers are inputs
    sources: dict[str, tuple[int, ...]] = {value.name: (-1 - i,) for i, value in enumerate(inputs)}
    for node in _in_order(graph.node):
        known = (sources.get(name, ()) for name in node.input)
        parents = tuple(dict.fromkeys(p for each in known for p in each))
        if node.op_type in _NO_LAYERS or not (parents or any(subgraphs(node))):
            if node.op_type == "Constant":
                weights.update(node.output)
            sources.update((name, ()) for name in node.output)
            continue
        used = tuple(name for name in node.input if name in weights)
        layers = (layer_of_weight(name) for name in used if name not in numbers)
        paths = tuple(filter(None, layers))[:1]
        for name in filter(None, node.output):
            sources[name] = (len(steps),)
            places[len(steps)] = name
            step = Step(name, node.op_type, parents, node.name, used, paths, module_of(node))
            steps.append(step)
    return steps, places


def module_of(node: Any) -> str:
    """The path of the module in the node's metadata, as exporters of PyTorch write it."""
    kept = {entry.key: entry.value for entry in node.metadata_props}
    if "torch.module" in kept:  # from tonnx.export
        return str(kept["torch.module"])
    scopes = re.findall(r"'([^']*)'", kept.get("pkg.torch.onnx.name_scopes", ""))
    return scopes[-2] if len(scopes) > 1 else ""  # the last one is the operator


def _in_order(nodes: Sequence[Any]) -> list[Any]:
    """The nodes in topological order; ONNX Runtime accepts files that are not sorted."""
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
        if len(later) == len(waiting):  # a cycle, which ONNX Runtime refuses
            return result + later
        waiting = later
    return result
