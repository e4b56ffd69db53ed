"""Variables that got no gradient, or not the whole of it, because a node or an op that moves in steps stands between.

TensorFlow has no gradient for numpy_function, and none through whole numbers: `GradientTape.gradient` silently
returns None, or what the loss's other terms give. The reason is found here, in the graph from the loss back to the
variable.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Any

from pyfunc_debug.events import Notice, Observer
from pyfunc_debug.interception.bodies import unwrap
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.finite import NotFinite
from pyfunc_debug.interception.graphs.library import PYFUNC_OPS
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.interception.tokens import plain, token_of
from pyfunc_debug.program.frames import direct_caller, is_generated, own_frame, user_frames

_FARTHEST = 3000
"""How many ops are looked at."""
_LONGEST = 12
"""How many ops of a path are reported."""
_MOST_LINES = 100
"""Lines that are reported for None."""
_MOST_NAMES = 300
"""Names of a function whose values are looked at."""
_NEWEST = 2000
"""How many registered functions are looked through, the newest."""
_NO_GRADIENT = ("PyFunc", "PyFuncStateless")
_KEEPS_TERMS = frozenset({
    "Add", "AddN", "AddV2", "Cast", "EnsureShape", "ExpandDims", "Identity", "IdentityN", "Mean", "Neg", "Pack",
    "Reshape", "Squeeze", "Sub", "Sum",
})  # fmt: skip
"""Ops that give the gradient on to each input, whatever the values of the others are."""
_SCALES = frozenset({"DivNoNan", "Mul", "RealDiv"})
_FLOATS = frozenset({1, 2, 14, 19})
"""float32, float64, bfloat16 and float16 (tensorflow/core/framework/types.proto)."""
_SIZES = frozenset({"Rank", "Shape", "ShapeN", "Size"})
"""What these give does not depend on the values of what they get."""
_FLAT = frozenset({
    "ArgMax", "ArgMin", "Ceil", "Equal", "Floor", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual", "Rint",
    "Round",
})  # fmt: skip
"""What these give moves in steps: TensorFlow registers None for their gradients."""
_STOPS = ("StopGradient",)
_OF_DATASETS = "Dataset"
"""In the types of the ops of tf.data, loops over a dataset among them, which have no gradient."""


class CutGradients:
    """Watches `GradientTape.gradient`.

    Args:
      names: TensorFlow's.
      observer: Who is notified of variables without a gradient.
      user_line: Gives the user's file and line for one of AutoGraph's code.
      finite: Looks whether what it gave is finite.
    """

    def __init__(
        self, names: TensorFlowNames, observer: Observer, user_line: Callable[[str, int], tuple[str, int]],
        finite: NotFinite,
    ) -> None:  # fmt: skip
        self._names = names
        self._observer = observer
        self._user_line = user_line
        self._reported: set[tuple[str, str]] = set()
        self._asked: set[tuple[str, int]] = set()
        self._steps: set[tuple[types.CodeType, int]] = set()
        self._partly: set[tuple[str, int]] = set()
        self._fixed: set[tuple[str, int]] = set()
        self._searched: set[int] = set()
        self._finite = finite

    def gradient(self, original: Any) -> Any:
        """The replacement of `GradientTape.gradient`."""

        def gradient(
            self_: Any, target: Any, sources: Any, output_gradients: Any = None, unconnected_gradients: Any = None
        ) -> Any:
            more = {} if unconnected_gradients is None else {"unconnected_gradients": unconnected_gradients}
            try:
                found = original(self_, target, sources, output_gradients, **more)
            except BaseException as error:
                drop_our_frame(error)
                raise
            try:
                self._tell_of_step(target, sys._getframe(1))
                if all(one is None for one in self._names.nest.flatten(found)):
                    self._tell_of_none(sources, sys._getframe(1))
                self._tell_of_some(target, sources, found, sys._getframe(1))
                self._tell_of_fixed(sources, found, sys._getframe(1))
                if found is None or (isinstance(found, (list, tuple)) and any(one is None for one in found)):
                    self._look(target, sources, found)
                else:
                    self._look_at_terms(target, sources)
                self._finite.gradient(target, sources, found, sys._getframe(1))
            except Exception as trouble:
                self._observer.trouble("looking for a gradient's way", trouble)
            return found

        return gradient

    def _tell_of_step(self, target: Any, frame: types.FrameType) -> None:
        """The user's line of eager code that asked a tape: no function is traced by which its file would be known."""
        key = (frame.f_code, frame.f_lineno)
        if key in self._steps or len(self._steps) >= _MOST_LINES:
            return
        self._steps.add(key)
        user = own_frame(frame)
        if user is not None and all(hasattr(one, "numpy") for one in self._names.nest.flatten(target)):
            file, line = self._user_line(user.f_code.co_filename, user.f_lineno)
            self._observer.notice(
                Notice.ASKED_TAPE, None, None, file=file, line=line, shapes=_shapes(user), sources=[file]
            )

    def _tell_of_none(self, sources: Any, frame: types.FrameType) -> None:
        """The user's line that got nothing but None, and whether it asked for tensors."""
        autograph = os.path.join(self._names.folder, "python", "autograph") + os.sep
        site = direct_caller(frame, (autograph,))  # TensorFlow itself asks for what a body computed
        flat = self._names.nest.flatten(sources)
        if site is None or not flat:
            return
        file, line = self._user_line(*site)
        if (file, line) not in self._asked and not is_generated(file) and len(self._asked) < _MOST_LINES:
            self._asked.add((file, line))
            tensors = not any(hasattr(one, "assign") for one in flat)
            whole = all(getattr(getattr(one, "dtype", None), "is_integer", False) for one in flat)
            self._observer.notice(
                Notice.ALL_NONE, None, None, file=file, line=line, tensors=tensors, whole=whole, asked=len(flat),
                missing=[_name(one) for one in flat], sources=[file],
            )  # fmt: skip

    def _tell_of_some(self, target: Any, sources: Any, found: Any, frame: types.FrameType) -> None:
        """The user's line of eager code that got None for some variables, and their names."""
        nest = self._names.nest
        flat, given = nest.flatten(sources), nest.flatten(found)
        missing = [one for one, gradient in zip(flat, given) if gradient is None and hasattr(one, "assign")]
        eager = all(hasattr(one, "numpy") for one in nest.flatten(target))
        if not missing or len(missing) == len(flat) or not eager or len(self._partly) >= _MOST_LINES:
            return
        autograph = os.path.join(self._names.folder, "python", "autograph") + os.sep
        site = direct_caller(frame, (autograph,))
        if site is not None and site not in self._partly and not is_generated(site[0]):
            self._partly.add(site)
            self._observer.notice(
                Notice.SOME_NONE, None, None, file=site[0], line=site[1], asked=len(flat),
                missing=[_name(one) for one in missing], sources=[site[0]],
            )  # fmt: skip

    def _tell_of_fixed(self, sources: Any, found: Any, frame: types.FrameType) -> None:
        """The user's line that asked for variables which no tape watches, as they are not trainable."""
        nest = self._names.nest
        flat = nest.flatten(sources)
        fixed = [
            one for one, gradient in zip(flat, nest.flatten(found))
            if gradient is None and hasattr(one, "assign") and getattr(one, "trainable", True) is False
        ]  # fmt: skip
        user = own_frame(frame) if fixed and len(fixed) < len(flat) else None
        if user is None or len(self._fixed) >= _MOST_LINES:
            return
        site = self._user_line(user.f_code.co_filename, user.f_lineno)
        if site not in self._fixed:
            self._fixed.add(site)
            self._observer.notice(
                Notice.FIXED_ASKED, None, None, file=site[0], line=site[1], asked=len(flat),
                fixed=[_name(one) for one in fixed], sources=[site[0]],
            )  # fmt: skip

    def _look(self, target: Any, sources: Any, found: Any) -> None:
        nest = self._names.nest
        flat = nest.flatten(sources)
        missing = [one for one, gradient in zip(flat, nest.flatten(found)) if gradient is None]
        self._in_bodies([one for one in missing if hasattr(one, "assign") and id(one) not in self._searched])
        ends = [one.op for one in nest.flatten(target) if hasattr(one, "graph") and hasattr(one, "op")]
        if not missing or not ends:
            return
        graph = ends[0].graph
        handles = {id(self._handle(graph, one)): one for one in missing}
        ways = {key: (token, path) for key, token, path in cuts(ends, set(handles))}
        by_node: dict[str, tuple[list[str], list[str]]] = {}
        for key, (token, path) in ways.items():
            names, _ = by_node.setdefault(token, ([], path))
            names.append(_name(handles[key]))
        for token, (names, path) in by_node.items():
            self._tell(token, names, path, len(flat))
        if not ways:
            self._unconnected(ends, missing, len(flat))
            self._flat(ends, handles, len(flat))

    def _look_at_terms(self, target: Any, sources: Any) -> None:
        """Terms of the loss that come from a numpy_function: they have no gradient, the others hide it."""
        nest = self._names.nest
        ends = [one.op for one in nest.flatten(target) if hasattr(one, "graph") and hasattr(one, "op")]
        if not ends:
            return
        flat = nest.flatten(sources)
        handles = {id(self._handle(ends[0].graph, one)): one for one in flat}
        for op in _terms(ends, set(handles)):
            names = [_name(handles[id(one)]) for one in _ancestors([op]) if id(one) in handles]
            if names:
                self._tell(token_of(op), names, [], len(flat), term=True)

    def _in_bodies(self, variables: list[Any]) -> None:
        """Bodies of py_functions that read a variable which they are not given. Each variable is searched for once."""
        self._searched |= {id(one) for one in variables}
        newest = private.next_token(self._names.registry) if variables else None
        if newest is None:
            return
        for token, registered in private.registered_since(self._names.registry, max(0, newest - _NEWEST)):
            if isinstance(registered, self._names.eager_func_type):
                read = _read(unwrap(registered, self._names))
                names = [name for one in variables for name, value in read.items() if value is one]
                if names:
                    self._observer.notice(
                        Notice.VARIABLE_NO_INPUT, plain(token), None, variables=sorted(names), asked=True
                    )

    def _handle(self, graph: Any, source: Any) -> Any:
        """The op in this graph that stands for a variable or a tensor."""
        handle = getattr(source, "handle", source)
        for outer, inner in getattr(graph, "captures", ()):
            if outer is handle:
                return inner.op
        return getattr(handle, "op", handle) if getattr(handle, "graph", None) is graph else handle

    def _flat(self, ends: list[Any], handles: dict[int, Any], count: int) -> None:
        """Ops that move in steps, behind which the ways of some variables end."""
        found: dict[tuple[str, str, int], list[str]] = {}
        floats: dict[tuple[str, str, int], dict[str, bool]] = {}
        for key, op in _walls(ends, set(handles)):
            frames = user_frames(op.traceback or ())
            if frames:
                place = (op.type, frames[-1].file, frames[-1].line)
                found.setdefault(place, []).append(_name(handles[key]))
                floats[place] = {"floats": self._has_float_elements(op)} if _OF_DATASETS in op.type else {}
        for (kind, file, line), names in found.items():
            if (f"{kind} {file}:{line}", "") not in self._reported:
                self._reported.add((f"{kind} {file}:{line}", ""))
                self._observer.notice(
                    Notice.FLAT_OP, None, None, op=kind, file=file, line=line, variables=names, count=count,
                    **floats[kind, file, line],
                )  # fmt: skip

    def _has_float_elements(self, op: Any) -> bool:
        """Whether the elements that a reduce or a scan of a dataset goes over hold nothing but floats."""
        try:
            definition = self._names.context_module.context().get_function_def(op.get_attr("f").name)
            state, captured = len(op.get_attr("Tstate")), len(op.get_attr("Targuments"))
        except Exception:  # TensorFlow raises NotFoundError for a function, ValueError for an attribute
            return False
        given = definition.signature.input_arg
        elements = given[state : len(given) - captured]
        return bool(elements) and all(one.type in _FLOATS for one in elements)

    def _unconnected(self, ends: list[Any], missing: list[Any], count: int) -> None:
        """Nothing leads from the loss to a variable, but a node without inputs of its own is what it is made of."""
        if len(missing) < count:
            return
        for op in _ancestors(ends):
            if op.type in _NO_GRADIENT:
                self._tell(token_of(op), [_name(one) for one in missing], [], count)
                return

    def _tell(self, token: str, names: list[str], path: list[str], count: int, term: bool = False) -> None:
        key = (token, ",".join(sorted(names)))
        if key not in self._reported:
            self._reported.add(key)
            more = {"term": True} if term else {}
            self._observer.notice(Notice.CUT_GRADIENT, token, None, variables=names, path=path, count=count, **more)


def _shapes(frame: types.FrameType) -> dict[str, list[int]]:
    """Names of a frame's code, and the shapes of what they stand for: arrays and eager tensors of one or two axes."""
    found: dict[str, list[int]] = {}
    for name in (*frame.f_code.co_varnames, *frame.f_code.co_freevars, *frame.f_code.co_names)[:_MOST_NAMES]:
        value: Any = frame.f_locals[name] if name in frame.f_locals else frame.f_globals.get(name)
        if type(value).__name__ in ("ndarray", "EagerTensor", "ResourceVariable"):
            shape = [int(one) for one in value.shape]
            if len(shape) in (1, 2):
                found[name] = shape
    return found


def _read(function: Any) -> dict[str, Any]:
    """What a function reads from around it: of its closure, of its module, and of the object that it is a method of."""
    owner, own = getattr(function, "__self__", None), getattr(function, "__func__", function)
    if not isinstance(own, types.FunctionType):
        return {}
    names = own.__code__.co_names
    values = {name: own.__globals__[name] for name in names if name in own.__globals__}
    held = getattr(owner, "__dict__", {})
    values.update({name: held[name] for name in names if name in held})
    for name, cell in zip(own.__code__.co_freevars, own.__closure__ or ()):
        with contextlib.suppress(ValueError):  # not filled yet
            values[name] = cell.cell_contents
    return values


def _name(source: Any) -> str:
    return str(getattr(source, "path", None) or getattr(source, "name", None) or "a tensor").removesuffix(":0")


def _ancestors(ends: list[Any], leave_out: Collection[str] = (), farthest: int = _FARTHEST) -> list[Any]:
    """An op and all before it, the farthest left out; nothing before ops of some types."""
    found: list[Any] = []
    seen: set[int] = set()
    todo = deque(ends)
    while todo and len(found) < farthest:
        op = todo.popleft()
        if id(op) not in seen:
            seen.add(id(op))
            found.append(op)
            todo.extend(one.op for one in op.inputs if op.type not in leave_out)
    return found


def _terms(ends: list[Any], wanted: set[int]) -> list[Any]:
    """The numpy_functions of a loss that are terms of it: what they give is only added, and scaled by what is fixed.

    Weights, masks and indices that a numpy_function computes are meant to have no gradient; a term is not, unless
    the user gave it one.
    """
    found: list[Any] = []
    seen: set[int] = set()
    todo = deque(ends)
    while todo and len(seen) < _FARTHEST:
        op = todo.popleft()
        if id(op) in seen:
            continue
        seen.add(id(op))
        if "_gradient_op_type" in op.node_def.attr:  # of @tf.custom_gradient, or of gradient_override_map
            continue
        if op.type in _NO_GRADIENT:
            found.append(op)
        elif op.type in _KEEPS_TERMS:
            todo.extend(one.op for one in op.inputs if one.dtype.is_floating)
        elif op.type in _SCALES:
            one, other = (each.op for each in op.inputs)
            todo.extend([one] if _fixed(other, wanted) else [])
            todo.extend([other] if op.type == "Mul" and _fixed(one, wanted) else [])
    return found


def _fixed(op: Any, wanted: set[int]) -> bool:
    """Whether the values of some variables do not matter to an op."""
    return not any(id(one) in wanted or one.type in PYFUNC_OPS for one in _ancestors([op], _SIZES))


def _forward(ops: list[Any]) -> dict[int, list[Any]]:
    """By the id of an op, the ops that it is an input of."""
    found: dict[int, list[Any]] = {}
    for op in ops:
        for one in op.inputs:
            found.setdefault(id(one.op), []).append(op)
    return found


def _walls(ends: list[Any], wanted: set[int]) -> Iterator[tuple[int, Any]]:
    """(id of a wanted op, an op that moves in steps) for each that has no other way to the loss."""
    ops = _ancestors(ends)
    forward, last = _forward(ops), {id(one) for one in ends}
    for start in (op for op in ops if id(op) in wanted):
        walls: list[Any] = []
        seen, todo = {id(start)}, deque([start])
        through = False
        while todo and not through:
            op = todo.popleft()
            through = id(op) in last
            for further in forward.get(id(op), ()):
                if id(further) in seen:
                    continue
                seen.add(id(further))
                of_data = _OF_DATASETS in further.type
                if (
                    of_data
                    or further.type in _FLAT
                    or (further.type == "Cast" and not further.outputs[0].dtype.is_floating)
                ):
                    walls.append(further)
                elif further.type not in _SIZES:
                    todo.append(further)
        if not through:
            yield from ((id(start), one) for one in walls)


def cuts(ends: list[Any], wanted: set[int], farthest: int = _FARTHEST) -> list[tuple[int, str, list[str]]]:
    """(id of a wanted op, token, types of the ops from there to the loss) for each that a node cuts off.

    A way through a `tf.stop_gradient` is cut on purpose, before a node or behind it.
    """
    ops = _ancestors(ends, _STOPS, farthest)
    forward = _forward(ops)
    found = []
    for start in (op for op in ops if id(op) in wanted):
        came: dict[int, Any] = {id(start): None}
        todo, cut = deque([start]), None
        while todo:
            op = todo.popleft()
            if op.type in PYFUNC_OPS and _cuts_here(op, came[id(op)]):
                cut = op
                break
            for further in forward.get(id(op), ()):
                if id(further) not in came and further.type not in _STOPS:
                    came[id(further)] = op
                    todo.append(further)
        if cut is None:
            continue
        path, op = [], cut
        while op is not None:
            path.append(op.type)
            op = came[id(op)]
        found.append((id(start), token_of(cut), path[::-1][-_LONGEST:]))
    return found


def _cuts_here(op: Any, before: Any) -> bool:
    """numpy_function always, py_function where what comes in is not a floating-point number."""
    if op.type in _NO_GRADIENT:
        return True
    return before is not None and all(not one.dtype.is_floating for one in op.inputs if one.op is before)
