"""Conditions of breakpoints: Python expressions that see what the body sees, with tensors as NumPy arrays."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.program import syntax
from pyfunc_debug.stops import presets

Scope = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The names of a body's closure, defaults and object, and those of its module."""
NO_SCOPE: Scope = ({}, {})

_MODULES = {"np": "numpy", "tf": "tensorflow"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_PRESETS: dict[str, Callable[..., Any]] = {"nan": presets.nan, "inf": presets.inf, "shape": presets.shape}
_CHANGED = "changed"


class Condition:
    """A condition, compiled once.

    Args:
      text: The expression.
      option: What it was given as.

    Attributes:
      text: The expression.
      names: The names that it reads.

    Raises:
      BadOptionError: it is not a Python expression.
    """

    def __init__(self, text: str, option: str = "condition") -> None:
        self.text = text
        try:
            tree = ast.Expression(syntax.expression(text.strip(), "<condition>"))
            self._presets = _number_changes(tree)
            self._code = compile(tree, "<condition>", "eval")
        except (SyntaxError, ValueError) as error:
            why = error.msg if isinstance(error, SyntaxError) else error  # not the place: it is one line of ours
            raise BadOptionError(f"{option}={text!r} is not a Python expression: {why}") from None
        read = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
        self.names = tuple(dict.fromkeys(read))
        self._changes = presets.Changes()

    def bind(
        self, values: Mapping[str, Any], scope: Callable[[], Scope], node: Hashable = None
    ) -> tuple[dict[str, Any], bool]:
        """The values of the names that the expression reads.

        Where it calls nan, inf, shape or changed these are ours, unless the program has a function of that name.

        Args:
          values: The call's own names.
          scope: Finds the names around the body; asked only for what is not in `values`.
          node: The call's node: `changed` compares calls of one node.

        Returns:
          The names for `holds`, and whether one is an object of the program's own, which may run any code.
        """
        from pyfunc_debug.stops.numpy_view import numpy_view

        found: dict[str, Any] = {"__builtins__": builtins}
        around: Scope | None = None
        foreign = False
        for name in self.names:
            if name in values:
                found[name] = numpy_view(values[name])
                continue
            if around is None:
                around = scope()
            if name in around[0]:
                value = around[0][name]
            elif name in around[1]:
                value = around[1][name]
            else:
                module = sys.modules.get(_MODULES.get(name, ""))
                if module is not None:
                    found[name] = module
                continue
            found[name] = value = numpy_view(value, containers=False)
            foreign = foreign or not (isinstance(value, _PLAIN) or hasattr(value, "__array__") or _is_library(value))
        for name in self._presets:
            own = found.get(name)
            if not callable(own):
                found[name] = self._changes.of(node) if name == _CHANGED else _PRESETS[name]
            elif name == _CHANGED:
                found[name] = lambda value, place, own=own: own(value)
        return found, foreign

    def holds(self, names: dict[str, Any]) -> bool:
        """Evaluates it; an array with several elements has no truth value and raises."""
        return bool(self.value(names))

    def value(self, names: dict[str, Any]) -> Any:
        """What the expression is worth."""
        return eval(self._code, names)  # the user's own expression, typed by them


def _number_changes(tree: ast.Expression) -> set[str]:
    """The presets that an expression calls; each `changed(x)` becomes `changed(x, 1)`, with the number of its place."""
    called = set()
    for place, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in (*_PRESETS, _CHANGED):
            called.add(node.func.id)
            if node.func.id == _CHANGED:
                if len(node.args) != 1 or node.keywords:
                    raise BadOptionError("changed takes one value, as in changed(x)")
                node.args.append(ast.copy_location(ast.Constant(place), node))
    return called


def _is_library(value: Any) -> bool:
    return any(value is sys.modules.get(name) for name in (*_MODULES.values(), "math"))


def expressions(text: str, option: str) -> list[Condition]:
    """The expressions of `x.shape, x.max()`, each by itself.

    Raises:
      BadOptionError: it is not a Python expression.
    """
    text = text.strip()
    whole = Condition(text, option)
    tree = syntax.expression(text, f"<{option}>")
    if not isinstance(tree, ast.Tuple) or text.startswith("("):
        return [whole]
    return [Condition(ast.get_source_segment(text, one) or ast.unparse(one), option) for one in tree.elts]


class ConditionCall:
    """`call` in a condition: its number, its body's name, "forward" or "gradient", its thread's name, its inputs."""

    __slots__ = ("_inputs", "id", "kind", "node", "thread")

    def __init__(self, number: int | None, node: str, kind: str, thread: str, inputs: Any) -> None:
        self.id = number
        self.node = node
        self.kind = kind
        self.thread = thread
        self._inputs = inputs

    @property
    def inputs(self) -> Any:
        """What TensorFlow passed to the body."""
        from pyfunc_debug.stops.numpy_view import numpy_view

        return numpy_view(self._inputs)


# -- names of inputs --------------------------------------------------------------------------------------------------


def bind(names: Iterable[str], values: Any) -> dict[str, Any]:
    """Values of a call by the names of its inputs: `x`, or a tuple `args` for `args[0]`, `args[1]`."""
    bound: dict[str, Any] = {}
    for name, value in zip(names, values):
        if name.isidentifier():
            bound[name] = value
        else:
            first = re.match(r"\w+", name)
            if first is not None:
                bound[first.group()] = (*bound.get(first.group(), ()), value)
    return bound


def bind_back(bound: dict[str, Any], names: Iterable[str]) -> list[Any]:
    """The values behind `bind`'s names, in the order of the inputs; None where one is missing."""
    values = []
    for name in names:
        found = bound.get(name)
        if found is None and (part := re.fullmatch(r"(\w+)\[(\d+)\]", name)):
            several, index = bound.get(part.group(1)), int(part.group(2))
            found = several[index] if isinstance(several, (tuple, list)) and index < len(several) else None
        values.append(found)
    return values
