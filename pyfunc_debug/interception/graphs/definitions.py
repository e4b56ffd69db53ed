"""The definition in a file that compiled to a code object: found only where the file is still the one that ran."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Iterator

from pyfunc_debug.program import syntax
from pyfunc_debug.program.file_lines import current_lines


def definition(code: types.CodeType) -> ast.FunctionDef | ast.Lambda | None:
    """The definition that compiled to a code object; None if its file has changed since, or has none such."""
    text = "".join(current_lines(code.co_filename))
    parsed = _parsed(text, code.co_filename) if text else None
    if parsed is None:
        return None
    tree, module = parsed
    if not any(_same(one, code) for one in _codes(module)):
        return None
    found = [node for node in ast.walk(tree) if _begins(node) == code.co_firstlineno and _name(node) == code.co_name]
    node = found[0] if len(found) == 1 else None  # two lambdas in a line cannot be distinguished by their lines
    return node if isinstance(node, (ast.FunctionDef, ast.Lambda)) else None


@functools.lru_cache(maxsize=16)
def _parsed(text: str, file: str) -> tuple[ast.Module, types.CodeType] | None:
    try:
        tree = syntax.parse(text, file)
        return tree, compile(text, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _same(one: types.CodeType, other: types.CodeType) -> bool:
    same = (one.co_name, one.co_firstlineno, one.co_names) == (other.co_name, other.co_firstlineno, other.co_names)
    return same and one.co_code == other.co_code and _plain_constants(one) == _plain_constants(other)


def _plain_constants(code: types.CodeType) -> list[str]:
    return [repr(constant) for constant in code.co_consts if not isinstance(constant, types.CodeType)]


def _begins(node: ast.AST) -> int | None:
    if isinstance(node, ast.FunctionDef):
        return min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return node.lineno if isinstance(node, ast.Lambda) else None


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.FunctionDef):
        return node.name
    return "<lambda>" if isinstance(node, ast.Lambda) else None
