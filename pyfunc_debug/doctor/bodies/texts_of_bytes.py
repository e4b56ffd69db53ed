"""`str(line)` of bytes: it gives "b'...'", with the b and the quotes, of which a slice by hand easily cuts too much.

So do f-strings, `%`, `format`, and the rows that `csv` writes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.bodies.text_inputs import helper_of
from pyfunc_debug.doctor.facts import Definition
from pyfunc_debug.doctor.failures.reading.source import dotted

_SAMPLE = "0123456789 abcdefgh"
_DEEPEST = 3
_SHOWS = ("print", "info", "debug", "warning", "error", "write", "type", "isinstance", "repr", "hash")
"""Functions for which it is a text to be shown."""


@dataclass(frozen=True)
class Made:
    """A text that is made of bytes.

    Attributes:
      call: `str(line)`; of an f-string and the like what it puts into the text.
      inner: The bytes in it.
      given: What it is made of, as a parameter of the body.
      lines: The statements that make it and cut it, where they follow each other; empty where it is part of another.
      name: The name that they give it; "" likewise.
      slices: What cuts parts of it off, one after the other.
    """

    call: ast.expr
    inner: ast.expr
    given: str
    lines: tuple[ast.stmt, ...]
    name: str
    slices: tuple[ast.expr, ...]

    def of(self, text: str) -> str:
        """What is made of a text, where bytes are given for it."""
        left = str(text.encode())
        for one in self.slices:
            left = _cut(one, self.name, left) or ""
        return left


def made(function: Definition, strings: Mapping[str, bool], eager: bool, tree: ast.Module | None) -> Iterator[Made]:
    """Each such text in a body, and in functions of its file that it gives its bytes to, where no slice makes it right.

    Args:
      function: The body.
      strings: Its parameters that are bytes, or tensors of them, and whether each is an array.
      eager: Whether they are tensors.
      tree: The file.
    """
    yield from _made(function, {one: one for one in strings}, eager, tree, _DEEPEST)


def _made(
    function: Definition, roots: dict[str, str], eager: bool, tree: ast.Module | None, depth: int
) -> Iterator[Made]:
    parents = {part: one for one in ast.walk(function) for part in ast.iter_child_nodes(one)}
    roots = {one: given for one, given in roots.items() if one in code.parameters(function)}
    tensors = set(roots) if eager else set()

    def root(node: ast.AST | None) -> str | None:
        if isinstance(node, ast.Name):
            return roots.get(node.id)
        if isinstance(node, ast.Subscript):
            return root(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy":
            return root(node.func.value)
        return None

    for node in code.own_nodes(function):
        for loop in (node,) if isinstance(node, ast.For) else getattr(node, "generators", ()):
            if isinstance(loop.target, ast.Name) and (given := root(loop.iter)) is not None:
                roots[loop.target.id] = given
        for one in _put(node, parents, function):
            given = root(one)
            if given is not None and not (isinstance(one, ast.Name) and one.id in tensors):
                yield Made(one, one, given, (), "", ())
        if isinstance(node, ast.Call) and dotted(node.func) == "str" and len(node.args) == 1 and not node.keywords:
            given = root(node.args[0])
            if given is not None and not (isinstance(node.args[0], ast.Name) and node.args[0].id in tensors):
                found = _found(node, given, function, parents)
                if found is not None:
                    yield found
        if isinstance(node, ast.Call) and depth and (helper := helper_of(node, tree)) not in (None, function):
            assert helper is not None
            inner = {
                name: given for name, one in zip(code.parameters(helper), node.args) if (given := root(one)) is not None
            }
            yield from _made(helper, inner, False, tree, depth - 1) if inner and not eager else ()
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            given = root(node.value)
            if given is not None:
                roots[node.targets[0].id] = given
                tensors.discard(node.targets[0].id)
            elif not (isinstance(node.value, ast.Call) and dotted(node.value.func) == "str"):
                roots.pop(node.targets[0].id, None)


def _found(call: ast.Call, given: str, function: Definition, parents: Mapping[ast.AST, ast.AST]) -> Made | None:
    parent = parents.get(call)
    if isinstance(parent, ast.Subscript):
        found = Made(call, call.args[0], given, (), "", (parent.slice,))
        return None if _cut(parent.slice, "", _SAMPLE) is None or found.of(_SAMPLE) == _SAMPLE else found
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name):
        return None if _is_shown(call, parents) else Made(call, call.args[0], given, (), "", ())
    name = parent.targets[0].id
    lines: list[ast.stmt] = [parent]
    slices: list[ast.expr] = []
    for statement in _behind(parent, parents):
        value = statement.value if isinstance(statement, ast.Assign) else None
        again = isinstance(statement, ast.Assign) and [ast.unparse(one) for one in statement.targets] == [name]
        if not again or not isinstance(value, ast.Subscript) or ast.unparse(value.value) != name:
            break
        if _cut(value.slice, name, _SAMPLE) is None:
            break
        lines.append(statement)
        slices.append(value.slice)
    found = Made(call, call.args[0], given, tuple(lines), name, tuple(slices))
    inside = {part for line in lines for part in ast.walk(line)}
    used = [
        one for one in code.own_nodes(function)
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) and one not in inside
    ]  # fmt: skip
    right = found.of(_SAMPLE) == _SAMPLE or not used or all(_is_shown(one, parents) for one in used)
    return None if right else found


def _put(node: ast.AST, parents: Mapping[ast.AST, ast.AST], function: Definition) -> list[ast.expr]:
    """What an f-string, `%`, `format` or a row of `csv` puts into a text that is kept: returned, written, looked up."""
    parts: list[ast.expr] = []
    if isinstance(node, ast.JoinedStr):
        values = [one for one in node.values if isinstance(one, ast.FormattedValue)]
        parts = [one.value for one in values if one.conversion == -1 and one.format_spec is None]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
        parts = list(node.right.elts) if isinstance(node.right, ast.Tuple) else [node.right]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "format" and _is_text(node.func.value):
            parts = list(node.args)
        elif (
            node.func.attr in ("writerow", "writerows")
            and node.args
            and isinstance(node.args[0], (ast.List, ast.Tuple))
        ):
            return list(node.args[0].elts)
    return [] if not parts or _only_shown(node, parents, function) else parts


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _only_shown(node: ast.AST, parents: Mapping[ast.AST, ast.AST], function: Definition) -> bool:
    """Whether a text, or the name that it is given, is only shown; what is written into a file is not."""
    parent = parents.get(node)
    if isinstance(parent, ast.Call) and node in parent.args and dotted(parent.func).rpartition(".")[2] == "write":
        return dotted(parent.func).startswith("sys.")
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or not isinstance(parent.targets[0], ast.Name):
        return not isinstance(parent, (ast.Return, ast.Yield, ast.Tuple, ast.Subscript, ast.Call)) or _is_shown(
            node, parents
        )
    uses = [
        one for one in code.own_nodes(function)
        if isinstance(one, ast.Name) and one.id == parent.targets[0].id and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    return all(_only_shown(one, parents, function) for one in uses)


def _behind(statement: ast.stmt, parents: Mapping[ast.AST, ast.AST]) -> list[ast.stmt]:
    """The statements of its block that follow one."""
    for _, block in ast.iter_fields(parents[statement]):
        if isinstance(block, list) and statement in block:
            return block[block.index(statement) + 1 :]
    return []


def _cut(part: ast.expr, name: str, text: str) -> str | None:
    """What a slice leaves of a text, with whole numbers and its length as bounds; None of other slices."""
    if not isinstance(part, ast.Slice) or part.step is not None:
        return None
    bounds = [None if one is None else _number(one, name, text) for one in (part.lower, part.upper)]
    if any(bound is None and one is not None for bound, one in zip(bounds, (part.lower, part.upper))):
        return None
    return text[bounds[0] : bounds[1]]


def _number(node: ast.expr, name: str, text: str) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand, name, text)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = _number(node.left, name, text), _number(node.right, name, text)
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else left - right
    return len(text) if isinstance(node, ast.Call) and ast.unparse(node) == f"len({name})" else None


def _is_shown(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a text is only shown, or looked into for a word, which a b before it does not change."""
    parent = parents.get(node)
    if isinstance(parent, ast.Compare):
        return node in parent.comparators and all(isinstance(one, (ast.In, ast.NotIn)) for one in parent.ops)
    if isinstance(parent, (ast.FormattedValue, ast.JoinedStr, ast.Raise, ast.Expr, ast.Assert)):
        return True
    if isinstance(parent, ast.Call) and node in parent.args:
        name = dotted(parent.func).rpartition(".")[2]
        return name in _SHOWS or name.endswith(("Error", "Exception", "Warning"))
    return isinstance(parent, ast.BinOp) and _is_shown(parent, parents)
