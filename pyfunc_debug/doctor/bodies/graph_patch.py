"""The patch that makes graph code of a body: its call sites, NumPy's name in it, AutoGraph where it has branches."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyfunc_debug.doctor.bodies.replacement import call_at, direct_call, imports
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Function, Source, indent_of, read
from pyfunc_debug.program import syntax

_PORTED = "tnp"


class Site(NamedTuple):
    """A line of the user's that may call py_function."""

    file: str
    line: int


def patch(
    file: str | None, function: Function | None, numpy: Mapping[str, str], sites: Sequence[Site],
    casts: Sequence[str], branches: bool,
) -> str:  # fmt: skip
    """A unified diff for `git apply` and `patch -p1`; empty where it cannot be made.

    Where the program uses the body for something else too, the graph code gets a function of its own next to it.

    Args:
      file: The body's file.
      function: Its syntax tree.
      numpy: Names in it that stand for NumPy ("" for the module itself).
      sites: The user's lines of its nodes; those that do not call py_function are left out.
      casts: Dtypes that its results are cast to, one a result; "" for one that is left as it is.
      branches: Whether AutoGraph must convert it, which a tf.function does everywhere.
    """
    places = [site for site in dict.fromkeys(sites) if call_at(read(site.file), site.line) is not None]
    if file is None or function is None or not places:
        return ""
    edits: dict[str, list[tuple[int, int, list[str]]]] = {}
    source = read(file)
    tf = next((name for name, module in imports(source).items() if module == "tensorflow"), None)
    called: str | None = None
    if isinstance(function, ast.Lambda):
        called = _renamed(source, function, numpy)
        called = f"{tf or 'tf'}.function({called})" if branches else called
    elif numpy or branches:
        called = _body(source, function, numpy, branches, tf or "tf", _elsewhere(file, function, places), edits, file)
    kinds = tuple(f"{tf or 'tf'}.{one}" if one else "" for one in casts)
    for place in places:
        edit = direct_call(place, called, kinds)
        if edit is None:
            return ""
        edits.setdefault(edit.file, []).append((edit.first, edit.last, list(edit.lines)))
    if numpy:
        if tf is None:
            return ""
        after = _last_import(source)
        edits.setdefault(file, []).append((after + 1, after, [f"{_PORTED} = {tf}.experimental.numpy"]))
    return "".join(_diff(name, changed) for name, changed in edits.items())


def _elsewhere(file: str, function: ast.FunctionDef | ast.AsyncFunctionDef, places: Sequence[Site]) -> bool:
    """Whether the body's file reads its name somewhere else than where it is handed to py_function."""
    source = read(file)
    handed = set()
    for place in places:
        call = call_at(read(place.file), place.line)
        given = None if call is None else argument(call, 0, "func")
        if given is not None:
            handed.add((place.file, given.lineno, given.col_offset))
    reads = [
        one for one in ast.walk(source.tree)
        if (isinstance(one, ast.Name) and one.id == function.name and isinstance(one.ctx, ast.Load))
        or (isinstance(one, ast.Attribute) and one.attr == function.name)
    ]  # fmt: skip
    return any((file, one.lineno, one.col_offset) not in handed for one in reads) or bool(function.decorator_list)


def _body(
    source: Source, function: ast.FunctionDef | ast.AsyncFunctionDef, numpy: Mapping[str, str], branches: bool, tf: str,
    beside: bool, edits: dict[str, list[tuple[int, int, list[str]]]], file: str,
) -> str | None:  # fmt: skip
    """Adds the edits of the body; returns the name to call, where it is another one."""
    first, last = function.lineno, function.end_lineno or function.lineno
    lines = _replaced_names(source, function, numpy)
    indent = indent_of(lines[0])
    head = [f"{indent}@{tf}.function"] if branches else []
    if not beside:
        changed = [*head, *lines]
        edits.setdefault(file, []).append((first, last, changed))
        return None
    name = f"{function.name}_in_graph"
    lines[0] = lines[0].replace(f"def {function.name}(", f"def {name}(", 1)
    blank = ["", ""] if not indent else [""]
    edits.setdefault(file, []).append((last + 1, last, [*blank, *head, *lines]))
    return f"self.{name}" if _is_method(source, function) else name


def _is_method(source: Source, function: ast.AST) -> bool:
    return isinstance(source.parent(function), ast.ClassDef)


def _replaced_names(source: Source, function: Function, numpy: Mapping[str, str]) -> list[str]:
    """A function's lines, with NumPy's names written as those of tf.experimental.numpy."""
    first, last = function.lineno, function.end_lineno or function.lineno
    lines = [line.encode() for line in source.lines[first - 1 : last]]
    inside = [one for part in ast.iter_child_nodes(function) for one in ast.walk(part)]
    found = [one for one in inside if isinstance(one, ast.Name) and one.id in numpy]
    for one in sorted(found, key=lambda one: (one.lineno, one.col_offset), reverse=True):
        if not first <= one.lineno <= last or one.lineno - first >= len(lines):
            continue
        line = lines[one.lineno - first]
        real = numpy[one.id]
        text = f"{_PORTED}.{real}" if real else _PORTED
        lines[one.lineno - first] = line[: one.col_offset] + text.encode() + line[one.end_col_offset :]
    return [line.decode() for line in lines]


def _renamed(source: Source, function: ast.Lambda, numpy: Mapping[str, str]) -> str:
    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id not in numpy:
                return node
            return syntax.expression(f"{_PORTED}.{numpy[node.id]}" if numpy[node.id] else _PORTED)

    tree = ast.Expression(syntax.expression(ast.unparse(function)))
    return ast.unparse(ast.fix_missing_locations(Names().visit(tree)))


def _last_import(source: Source) -> int:
    """The last line of the imports at the top of a file."""
    last = 0
    for one in source.tree.body:
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            last = one.end_lineno or one.lineno
        elif not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)) and last:
            break
    return last


def _diff(file: str, edits: Sequence[tuple[int, int, list[str]]]) -> str:
    before = read(file).lines
    after = list(before)
    for first, last, lines in sorted(edits, key=lambda one: (one[0], one[1]), reverse=True):
        after[first - 1 : last] = lines
    name = _shown(file)
    made = difflib.unified_diff(
        [f"{line}\n" for line in before], [f"{line}\n" for line in after], f"a/{name}", f"b/{name}"
    )
    return "".join(made)


def _shown(file: str) -> str:
    try:
        near = os.path.relpath(file)
    except ValueError:  # another drive
        return file.lstrip("/")
    return file.lstrip("/") if near.startswith("..") else near


__all__ = ["Site", "patch"]
