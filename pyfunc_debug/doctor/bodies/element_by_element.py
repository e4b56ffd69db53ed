"""What in a body goes through its data one by one, with the GIL: loops, and Python's own functions of arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.replacement import definition, imports
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, read
from pyfunc_debug.records import Node

_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OF_NUMBERS = ("min", "max", "sum", "any", "all")
"""Of an array of whole numbers with one axis its methods give the same; of others, NaN or a second axis may differ."""
_INDICES = ("numpy.where", "numpy.nonzero")
"""They give a tuple of arrays of whole numbers, one for each axis."""
_FLAT = ("numpy.flatnonzero",)
_MOST = 6


@dataclass(frozen=True)
class Slow:
    """What a body does element by element.

    Attributes:
      loops: Whether it has a loop or a comprehension.
      builtins: Calls as `min(xs)` of an array, with the same as the array's method.
    """

    loops: bool = False
    builtins: dict[ast.expr, str] = field(default_factory=dict)


def of_node(facts: Facts, node: Node) -> Slow:
    """What the source of a node's body shows; nothing where it is not there."""
    function = definition(node.file, node.line)
    if function is None or node.file is None:
        return Slow()
    source = read(node.file)
    loops = any(isinstance(one, _LOOPS) for one in ast.walk(function))
    return Slow(loops, dict(_builtins(function, source)))


def instead(facts: Facts, node: Node, verb: str = "in") -> str:
    """What makes such a body faster: `NumPy on whole arrays or tf.* in place of the Python loops in augment`."""
    found = of_node(facts, node)
    name = facts.name(node)
    if found.builtins and not found.loops and node.file is not None:
        source = pastes.source(facts, node.file)
        pairs = [f"{new} in place of {source.text(one)}" for one, new in found.builtins.items()]
        more = len(pairs) - _MOST // 2
        return f"{', '.join(pairs[: _MOST // 2])}{f' and {more} more' if more > 0 else ''} {verb} {name}"
    what = "the Python loops" if found.loops or definition(node.file, node.line) is None else "plain Python"
    return f"NumPy on whole arrays or tf.* in place of {what} {verb} {name}"


def pasted(facts: Facts, node: Node) -> str:
    """The lines that have them, with the array's methods; "" for none, and where loops stand beside them."""
    found = of_node(facts, node)
    if found.loops or not found.builtins:
        return ""
    return pastes.all_replaced(facts, node.file, found.builtins)


def _builtins(function: Function, source: Source) -> Iterator[tuple[ast.expr, str]]:
    """Calls of Python's functions that are given one array of indices, in a body and its file."""
    known = imports(source)
    whole = _index_arrays(function, known)
    stored = [one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    defined = {one.name for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef)} | set(stored)
    for call in ast.walk(function):
        if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
            continue
        name, value = dotted(call.func), call.args[0]
        if name not in _OF_NUMBERS or name in defined or name in known or not isinstance(value, ast.Name):
            continue
        if stored.count(value.id) == 1 and value.id in whole:
            yield call, f"{value.id}.{name}()"


def _index_arrays(function: Function, known: dict[str, str]) -> set[str]:
    """Names of `xs, ys = np.where(mask)` and of `xs = np.flatnonzero(mask)`."""
    found: set[str] = set()
    for one in ast.walk(function):
        if not isinstance(one, ast.Assign) or len(one.targets) != 1:
            continue
        target, value = one.targets[0], one.value
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):  # np.where(mask)[0]
            made, target = _made_by(value.value, known), ast.Tuple([target], ast.Store())
        else:
            made = _made_by(value, known)
        if made in _INDICES and isinstance(target, (ast.Tuple, ast.List)):
            found |= {part.id for part in target.elts if isinstance(part, ast.Name)}
        elif made in _FLAT and isinstance(target, ast.Name):
            found.add(target.id)
    return found


def _made_by(value: ast.expr, known: dict[str, str]) -> str:
    """`numpy.where` of `np.where(mask)`; "" of other calls, and of those with more arguments."""
    if not isinstance(value, ast.Call) or len(value.args) != 1 or value.keywords:
        return ""
    first, _, rest = dotted(value.func).partition(".")
    return ".".join(filter(None, (known.get(first, ""), rest)))
