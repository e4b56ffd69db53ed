"""What of a function still needs values once one line of it is repaired: found in the source, nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from pyfunc_debug.doctor.failures.graphs.python_objects import TRACKS, changes_of_self
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source, begins, dotted, names, parameters, read
from pyfunc_debug.doctor.failures.reading.symbols import is_symbolic, lookup, root_is
from pyfunc_debug.program.frames import is_installed, is_user

_DEEPEST = 3
_BUILTINS = {"int", "float", "bool", "range", "max", "min", "sorted", "sum", "round", "list", "set", "open", "zip"}
_OF_ARRAYS = ("numpy", "scipy", "cv2", "PIL", "sklearn", "skimage", "librosa", "pandas")
"""Packages that compute with values."""
_STATIC = {"shape", "dtype", "name"}
"""Attributes of a tensor that a graph knows, too."""


def needs_values(source: Source, function: Function, first: int, spot: Spot, tensors: Iterable[str]) -> bool:
    """Whether a function takes the value of a tensor from a line on.

    Args:
      source: The file, as it is after a paste.
      function: The function in it.
      first: The first line that is looked at.
      spot: The frame that knows what names stand for.
      tensors: Names that stand for symbolic tensors there.
    """
    known = next((value for value in spot.variables.values() if is_symbolic(value)), None)
    attributes = set(dir(type(known))) if known is not None else set()
    return _Uses(source, spot, set(tensors), attributes).in_function(function, first)


def symbolic_names(spot: Spot) -> list[str]:
    """The local variables of a frame that are symbolic tensors."""
    return [name for name, value in spot.variables.items() if is_symbolic(value)]


class _Uses:
    def __init__(self, source: Source, spot: Spot, tensors: set[str], attributes: set[str], depth: int = 0) -> None:
        self._source, self._spot, self._tensors, self._depth = source, spot, tensors, depth
        self._attributes = attributes  # of a symbolic tensor; empty: not known

    def in_function(self, function: Function, first: int) -> bool:
        if isinstance(function, ast.Lambda):
            return self._any(function.body)
        inner = [one for one in ast.walk(function) if isinstance(one, ast.FunctionDef) and one is not function]
        for one in own_nodes(function):
            if not isinstance(one, ast.stmt) or one.lineno < first:
                continue
            self._tensors |= {part.name for part in inner if self._tensors.intersection(names(part))}
            if self._statement(one):
                return True
        return False

    def _statement(self, one: ast.stmt) -> bool:
        if isinstance(one, (ast.If, ast.While)):
            return self._any(one.test) or (not self._spot.generated and self._tensor(one.test))
        if isinstance(one, ast.For):
            return self._any(one.iter) or (not self._spot.generated and self._tensor(one.iter))
        value = getattr(one, "value", None)
        if isinstance(value, ast.expr) and self._any(value):
            return True
        if isinstance(one, (ast.Assign, ast.AugAssign)):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            return any(self._stored(target, one.value) for target in targets)
        return False

    def _stored(self, target: ast.expr, value: ast.expr) -> bool:
        made = self._tensor(value)
        if isinstance(target, ast.Subscript):
            array = type(self._spot.value(dotted(target.value))).__name__ == "ndarray"
            return self._tensor(target.value) or (made and array)
        for one in ast.walk(target):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                (self._tensors.add if made else self._tensors.discard)(one.id)
        return False

    def _tensor(self, node: ast.AST) -> bool:
        """Whether an expression holds a tensor, of which more than its shape is asked."""
        if isinstance(node, ast.Attribute) and node.attr in _STATIC:
            return False
        if isinstance(node, ast.Name):
            return node.id in self._tensors
        if isinstance(node, ast.Call) and dotted(node.func) in ("len", "isinstance", "type"):
            return False
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "gradient":
            return False  # of a tape: for a list it is a list of tensors, which `zip(gradients, variables)` takes
        return any(self._tensor(one) for one in ast.iter_child_nodes(node))

    def _any(self, node: ast.expr) -> bool:
        """Whether a part of an expression needs a value."""
        if isinstance(node, ast.Lambda) or (isinstance(node, ast.Call) and _is_python_op(node)):
            return False
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self._tensors:
            return bool(self._attributes) and node.attr not in self._attributes
        if isinstance(node, ast.Subscript) and self._tensor(node.slice) and not self._tensor(node.value):
            held = lookup(node.value, self._spot)
            if isinstance(held, (dict, list, tuple)) or type(held).__name__ == "ndarray":
                return True
        if isinstance(node, ast.Call) and self._call(node):
            return True
        return any(self._any(one) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr))

    def _call(self, node: ast.Call) -> bool:
        given = [*node.args, *(one.value for one in node.keywords)]
        if not any(self._tensor(one) for one in given):
            return False
        if any(root_is(node.func, self._spot, name) for name in ("tensorflow", "keras")):
            return False
        if any(root_is(node.func, self._spot, name) for name in _OF_ARRAYS):
            return True
        if isinstance(node.func, ast.Name):
            home = str(getattr(self._spot.value(node.func.id), "__module__", "")).partition(".")[0]
            if home in _OF_ARRAYS:
                return True
            own = [
                one for one in ast.walk(self._source.tree)
                if isinstance(one, ast.FunctionDef) and one.name == node.func.id
            ]  # fmt: skip
            if len(own) == 1 and self._depth < _DEEPEST:
                tensors = {name for name, one in zip(parameters(own[0]), node.args) if self._tensor(one)}
                inner = Spot(self._spot.file, own[0].lineno, {}, self._spot.module, "", self._spot.generated)
                uses = _Uses(self._source, inner, tensors, self._attributes, self._depth + 1)
                return uses.in_function(own[0], own[0].lineno)
            return node.func.id in _BUILTINS
        return self._method(node)

    def _method(self, node: ast.Call) -> bool:
        """Whether a method of an object of the user's takes the value of a tensor that it is given, or keeps it."""
        found = _own_method(node, self._spot)
        if found is None or self._depth >= _DEEPEST:
            return False
        source, method, file, module = found
        if changes_of_self(method):
            return True  # at trace only
        tensors = {name for name, one in zip(parameters(method), node.args) if self._tensor(one)}
        inner = Spot(file, method.lineno, {}, module, "", self._spot.generated)
        uses = _Uses(source, inner, tensors, self._attributes, self._depth + 1)
        return uses.in_function(method, method.lineno)


def _own_method(node: ast.Call, spot: Spot) -> tuple[Source, ast.FunctionDef, str, dict[str, Any]] | None:
    """The method of the user's that `env.step(action)` calls, where its object is none that TensorFlow tracks."""
    if not isinstance(node.func, ast.Attribute):
        return None
    owner, name = lookup(node.func.value, spot), node.func.attr
    classes = type(owner).__mro__
    if owner is None or any(one.__module__.partition(".")[0] in TRACKS for one in classes):
        return None
    method = next((vars(one)[name] for one in classes if name in vars(one)), None)
    code = getattr(method, "__code__", None)
    if code is None or not is_user(code.co_filename) or is_installed(code.co_filename):
        return None
    file, first = begins(code)
    source = read(file)
    found = source.statement(first)
    if not isinstance(found, ast.FunctionDef) or found.name != name:
        return None
    return source, found, file, getattr(method, "__globals__", {})


def _is_python_op(call: ast.Call) -> bool:
    return dotted(call.func).rpartition(".")[2] in ("py_function", "numpy_function", "py_func")
