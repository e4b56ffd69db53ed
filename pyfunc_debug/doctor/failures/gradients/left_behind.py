"""Where the value that a tape differentiates left TensorFlow: followed through the source, from the model to the loss.

Nothing is run. A value is live while it may have a gradient, and is cut by the first call that makes a number or an
array of NumPy's of it. Where something live is added to it again, it is live.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.reading.nodes import NODE_CALLS
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import asked_of_tape, dotted, parameters, tapes_around
from pyfunc_debug.doctor.failures.reading.symbols import lookup, root_is

_NUMBERS = {"float", "int", "bool", "complex"}
_ASKS = {"numpy", "item", "tolist"}
_PREDICTS = {"predict", "predict_on_batch"}
_GROW = {"append", "extend", "add", "insert"}
_STATIC = {"shape", "dtype", "ndim", "name"}
_OUTSIDE = ("numpy", "math", "scipy", "sklearn", "pandas", "statistics", "cv2", "random")
_TENSORFLOW = ("tensorflow", "keras", "tf_keras")
_DEEPEST = 3
_WHOLE = re.compile(r"u?int\d+|bool")
_STEPS = {"round", "rint", "floor", "ceil", "sign", "argmax", "argmin", "argsort"}
"""Ops that give places, or whole numbers: no small change of their input changes them."""

_State = ast.Call | bool
"""True: live. A call: what cut it. False: neither."""


@dataclass(frozen=True)
class Cut:
    """Where a loss left TensorFlow.

    Attributes:
      call: The call that took it out.
      inner: What it was given, which has a gradient; of a model's prediction, what the model is given.
      predicts: Whether it is a model's prediction.
      walls: Calls after it that take no tensor, or give no gradient either.
    """

    call: ast.Call
    inner: ast.expr | None
    walls: tuple[ast.Call, ...]
    predicts: bool = False


class _UnknownError(Exception):
    """It goes through something that others explain."""


def left_behind(spot: Spot, block: ast.With, asked_for: Iterable[str] = ()) -> Cut | None:
    """What cut all that a tape is asked to differentiate; None where some of it may have a gradient, or is not known.

    Args:
      spot: A frame of the file, which knows its module.
      block: `with tf.GradientTape() as tape:`.
      asked_for: Names of what the gradients are for, where no frame knows what they are.
    """
    source = spot.source
    function = next((one for one in source.around(block) if isinstance(one, ast.FunctionDef)), None)
    asked = asked_of_tape(source, block)
    if len(asked) != 1:
        return None
    trace = _Trace(spot)
    states: dict[str, _State] = dict.fromkeys(parameters(function), False) if function is not None else {}
    trace.variables = frozenset(asked_for)
    states |= dict.fromkeys(asked_for, True)
    try:
        trace.statements(function.body if function is not None else block.body, states)
        found = trace.expression(asked[0], states)
    except _UnknownError:
        return None
    if not isinstance(found, ast.Call):
        return None
    own = found.func
    by_method = isinstance(own, ast.Attribute) and own.attr in _ASKS and not found.args
    inner = own.value if by_method and isinstance(own, ast.Attribute) else found.args[0] if found.args else None
    predicts = isinstance(own, ast.Attribute) and own.attr in _PREDICTS
    later = {one for one in ast.walk(function or block) if getattr(one, "lineno", 0) > asked[0].lineno}
    return Cut(found, inner, tuple(one for one in trace.walls if one not in later), predicts)


def constant_under_a_tape(spot: Spot, value: ast.expr) -> bool:
    """Whether `.numpy()` takes weights for a loss out of a tape's sight, while the loss has its gradient beside them.

    They are constants for the tape then, and have to be constants in a graph, too.
    """
    taken = any(isinstance(one, ast.Attribute) and one.attr == "numpy" for one in ast.walk(value))
    for block in tapes_around(spot.source, spot.line) if taken else ():
        asked = asked_of_tape(spot.source, block)
        function = next((one for one in spot.source.around(block) if isinstance(one, ast.FunctionDef)), None)
        if len(asked) != 1 or function is None:
            continue
        trace = _Trace(spot)
        states: dict[str, _State] = dict.fromkeys(parameters(function), False)
        try:
            trace.statements(function.body, states)
            cut, whole = trace.expression(value, states), trace.expression(asked[0], states)
        except _UnknownError:
            continue
        if isinstance(cut, ast.Call) and whole is True:
            return True
    return False


def live_statements(spot: Spot, block: ast.With) -> list[ast.stmt] | None:
    """Assignments beside a tape's block, and in it, of what may have a gradient; None where that is not known."""
    function = next((one for one in spot.source.around(block) if isinstance(one, ast.FunctionDef)), None)
    around = function or spot.source.parent(block)
    trace = _Trace(spot)
    states: dict[str, _State] = dict.fromkeys(parameters(function), False) if function is not None else {}
    try:
        trace.statements(getattr(around, "body", []), states)
    except _UnknownError:
        return None
    return trace.live


class Liveness(dict[str, "_State"]):
    """Which names may have a gradient after some statements, one after the other."""

    def __init__(self, spot: Spot) -> None:
        super().__init__()
        self._trace = _Trace(spot)

    def after(self, statements: list[ast.stmt]) -> bool:
        """Goes through statements; False where one leads through what others explain."""
        try:
            self._trace.statements(statements, self)
        except _UnknownError:
            return False
        return True

    def of(self, node: ast.expr) -> bool:
        """Whether an expression may have a gradient."""
        try:
            return self._trace.expression(node, self) is not False
        except _UnknownError:
            return True


def _together(states: Iterable[_State]) -> _State:
    every = list(states)
    return True if True in every else next((one for one in every if isinstance(one, ast.Call)), False)


class _Trace:
    def __init__(self, spot: Spot) -> None:
        self._spot = spot
        self._functions = {one.name: one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef)}
        self._lists: set[str] = set()
        self._depth = 0
        self.variables: frozenset[str] = frozenset()
        self.walls: list[ast.Call] = []
        self.live: list[ast.stmt] = []

    def statements(self, body: list[ast.stmt], states: dict[str, _State]) -> _State:
        """Goes through statements; gives what is returned."""
        result: _State = False
        for one in body:
            if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
                continue
            value = getattr(one, "value", None)
            if isinstance(one, ast.Return):
                result = _together([result, self.expression(one.value, states)]) if one.value else result
            elif isinstance(one, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and isinstance(value, ast.expr):
                state = self.expression(value, states)
                self.live += [one] if state is True else []
                targets = one.targets if isinstance(one, ast.Assign) else [one.target]
                for target in targets:
                    self._bind(target, state, states, added=isinstance(one, ast.AugAssign))
            elif isinstance(one, ast.Expr):
                self.expression(one.value, states)
            elif isinstance(one, ast.For):
                self._bind(one.target, self.expression(one.iter, states), states)
            for part in ("body", "orelse", "finalbody"):
                inside = getattr(one, part, None)
                if isinstance(inside, list):
                    result = _together([result, self.statements(inside, states)])
        return result

    def _bind(self, target: ast.expr, state: _State, states: dict[str, _State], added: bool = False) -> None:
        for one in ast.walk(target):
            if isinstance(one, ast.Name):
                whole = one is target and not added
                if one.id in self.variables and not self._depth:
                    continue
                states[one.id] = state if whole else _together([state, states.get(one.id, False)])

    def expression(self, node: ast.expr, states: dict[str, _State]) -> _State:
        """What becomes of an expression."""
        if isinstance(node, ast.Name):
            if node.id in states:
                return states[node.id]
            return _is_variable(self._spot.value(node.id))
        if isinstance(node, ast.Attribute):
            if node.attr in _STATIC:
                return False
            return _is_variable(lookup(node, self._spot)) or self.expression(node.value, states)
        if isinstance(node, ast.Call):
            return self._call(node, states)
        if isinstance(node, ast.Lambda):
            return False
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            inside = dict(states)
            for loop in node.generators:
                self._bind(loop.target, self.expression(loop.iter, inside), inside)
            return self.expression(node.elt, inside)
        return _together(
            self.expression(one, states) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)
        )

    def _call(self, node: ast.Call, states: dict[str, _State]) -> _State:
        func, name = node.func, dotted(node.func)
        given = _together(self.expression(one, states) for one in [*node.args, *(one.value for one in node.keywords)])
        if isinstance(func, ast.Name) and func.id in _NUMBERS:
            return node if given is True else given
        if is_outside(func, self._spot):
            if isinstance(given, ast.Call):
                self.walls.append(node)
            return node if given is True else given
        if any(root_is(func, self._spot, one) for one in _TENSORFLOW):
            return self._of_tensorflow(node, name.rpartition(".")[2], given)
        own = self._functions.get(name.removeprefix("self."))
        if own is not None and self._depth < _DEEPEST:
            return self._own(node, own, states)
        if isinstance(func, ast.Attribute):
            owner = self.expression(func.value, states)
            if func.attr in _PREDICTS and self._is_model(func.value, states):
                return node
            if func.attr in _ASKS:
                return node if owner is True else owner
            if func.attr in _GROW and isinstance(func.value, ast.Name):
                self._lists.add(func.value.id)
                states[func.value.id] = _together([given, states.get(func.value.id, False)])
                return False
            given = _together([given, owner])
        return True if self._is_model(func, states) else given

    def _of_tensorflow(self, node: ast.Call, name: str, given: _State) -> _State:
        if name in NODE_CALLS and given:
            if name == "py_function" and self._is_in_ops(node):
                return given
            raise _UnknownError
        if given is True and (name == "stop_gradient" or moves_in_steps(node)):
            return node
        first = node.args[0] if node.args else None
        packed = isinstance(first, (ast.List, ast.ListComp)) or dotted(first) in self._lists if first else False
        if isinstance(given, ast.Call) and (name == "Variable" or (name == "constant" and packed)):
            self.walls.append(node)
        return given

    def _is_in_ops(self, node: ast.Call) -> bool:
        """Whether the body of a py_function computes by operators and TensorFlow's ops alone: it has a gradient."""
        func = node.args[0] if node.args else None
        body = self._functions.get(func.id) if isinstance(func, ast.Name) else func
        if not isinstance(body, (ast.Lambda, ast.FunctionDef)):
            return False
        calls = [one for one in ast.walk(body) if isinstance(one, ast.Call)]
        return all(any(root_is(one.func, self._spot, each) for each in _TENSORFLOW) for one in calls) and not any(
            isinstance(one, (ast.Global, ast.Nonlocal)) or (isinstance(one, ast.Attribute) and one.attr in _ASKS)
            for one in ast.walk(body)
        )

    def _own(self, node: ast.Call, function: ast.FunctionDef, states: dict[str, _State]) -> _State:
        """A function of the same file, with what it is given."""
        names = parameters(function)
        inside: dict[str, _State] = dict.fromkeys(names, False)
        for name, one in zip(names, node.args):
            inside[name] = self.expression(one, states)
        for keyword in node.keywords:
            if keyword.arg in inside:
                inside[str(keyword.arg)] = self.expression(keyword.value, states)
        self._depth += 1
        try:
            return self.statements(function.body, inside)
        finally:
            self._depth -= 1

    def _is_model(self, func: ast.expr, states: dict[str, _State]) -> bool:
        """Whether something that is called has variables: a model or a layer, also one that was passed in."""
        if not isinstance(func, (ast.Name, ast.Attribute)) or "loss" in dotted(func).lower():
            return False
        value: Any = lookup(func, self._spot)
        if value is not None:
            kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__]
            return any(kind.startswith(_TENSORFLOW) and kind.endswith((".Layer", ".Module")) for kind in kinds)
        return (isinstance(func, ast.Name) and func.id in states) or dotted(func).startswith("self.")


def moves_in_steps(call: ast.Call) -> bool:
    """Whether an op of TensorFlow's gives places or whole numbers, which have no gradient: `tf.cast(x, tf.int32)`."""
    name = dotted(call.func).rpartition(".")[2]
    if name == "cast" and call.args and isinstance(call.args[0], ast.Compare):
        return True
    if name in ("cast", "saturate_cast"):
        kinds = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "dtype")]
        texts = [getattr(one, "value", None) if isinstance(one, ast.Constant) else dotted(one) for one in kinds]
        return any(_WHOLE.fullmatch(str(one).rpartition(".")[2]) for one in texts)
    return name in _STEPS


def is_outside(func: ast.expr, spot: Spot) -> bool:
    """Whether a function is Python's, NumPy's, SciPy's or the like, also one imported by its own name."""
    if any(root_is(func, spot, one) for one in _OUTSIDE):
        return True
    value = lookup(func, spot) if isinstance(func, ast.Name) else None
    home = type(value).__module__ if type(value).__name__ == "ufunc" else getattr(value, "__module__", "")
    return callable(value) and str(home).partition(".")[0] in _OUTSIDE


def _is_variable(value: Any) -> bool:
    """Whether it is a trainable variable, or a list of them."""
    if isinstance(value, (list, tuple)):
        return any(map(_is_variable, value))
    return "Variable" in type(value).__name__ and bool(getattr(value, "trainable", True))


__all__ = ["Cut", "Liveness", "constant_under_a_tape", "is_outside", "left_behind", "live_statements", "moves_in_steps"]
