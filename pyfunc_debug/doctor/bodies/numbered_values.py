"""A body that returns numbers for the values of its own input: `pd.factorize(names)`, in each call others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.numbered_words import is_of_input
from pyfunc_debug.doctor.bodies.text_inputs import texts_given
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.records import Node

_SAME = ("astype", "reshape", "to_numpy", "copy", "ravel", "flatten", "tolist")
"""Methods behind which the numbers stand for the same values."""
_MAKE = ("array", "asarray", "int32", "int64", "float32", "expand_dims", "constant", "convert_to_tensor", "Series")
_FIXED = ("categories", "reindex", "CategoricalDtype", "set_categories")
"""Who writes one of these gives all calls the same values."""
_DEEP = 6


@dataclass(frozen=True)
class Numbered:
    """What numbers the values of one call: the expression, the values, and what it does with them."""

    node: ast.expr
    values: ast.expr
    does: str
    columns: bool = False
    decoded: bool = False


def numbered_values(facts: Facts, group: Sequence[Node], functions: Sequence[Definition]) -> Numbered | None:
    """Such an expression, where a function returns what it gives of the texts that the call got.

    Args:
      facts: The recording.
      group: The nodes of a body.
      functions: The body, and the functions of its file that it calls.
    """
    if not texts_given(facts, [one.id for one in group]):
        return None
    for function in functions:
        if any(word in ast.unparse(function) for word in _FIXED):
            continue
        for result in pastes.returns(function):
            for one in result.elts if isinstance(result, (ast.Tuple, ast.List)) else [result]:
                found = _numbered(function, one)
                if found is not None and is_of_input(function, found.values):
                    decoded = any(word in ast.unparse(function) for word in ("decode", "astype(str)"))
                    return replace(found, decoded=decoded)
    return None


def _numbered(function: Definition, node: ast.expr, place: int | None = None, deep: int = _DEEP) -> Numbered | None:
    """Goes back from a result to what made its numbers.

    Args:
      function: The function.
      node: The expression.
      place: Which of its parts is meant, where it gives several.
      deep: How many steps are left.
    """
    if not deep:
        return None
    if isinstance(node, ast.Name):
        made = list(_made(function, node))
        return _numbered(function, made[0][0], made[0][1], deep - 1) if len(made) == 1 else None
    if isinstance(node, ast.Subscript):
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return _numbered(function, node.value, index if isinstance(index, int) else place, deep - 1)
    if isinstance(node, ast.Attribute):
        if node.attr == "codes" and isinstance(node.value, ast.Attribute) and node.value.attr == "cat":
            return Numbered(node, _data(node.value.value), "numbers the values of one call in their order")
        return _numbered(function, node.value, None, deep - 1) if node.attr == "values" else None
    if not isinstance(node, ast.Call):
        return None
    name = pastes.last_name(node.func)
    if name == "factorize" and node.args and place == 0:
        return Numbered(node, node.args[0], "numbers what one call holds: the first is 0 in each, whatever it is")
    if name == "unique" and node.args and place == 1 and argument(node, 2, "return_inverse") is not None:
        return Numbered(node, node.args[0], "numbers what one call holds: the first in the alphabet is 0 in each")
    if name == "get_dummies" and node.args:
        return Numbered(node, node.args[0], "has a column for each value that one call holds", columns=True)
    if isinstance(node.func, ast.Attribute) and name in _SAME:
        return _numbered(function, node.func.value, place, deep - 1)
    return _numbered(function, node.args[0], None, deep - 1) if name in _MAKE and node.args else None


def _made(function: Definition, name: ast.Name) -> Iterator[tuple[ast.expr, int | None]]:
    """What the assignments above a use give a name, and the place of it among several."""
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Assign) or one.lineno >= name.lineno:
            continue
        for target in one.targets:
            if isinstance(target, ast.Name) and target.id == name.id:
                yield one.value, None
            elif isinstance(target, ast.Tuple) and name.id in map(ast.unparse, target.elts):
                yield one.value, [*map(ast.unparse, target.elts)].index(name.id)


def _data(node: ast.expr) -> ast.expr:
    """`names` of `pd.Series(names).astype("category")`."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
            node = node.func.value
        elif node.args:
            node = node.args[0]
        else:
            break
    return node
