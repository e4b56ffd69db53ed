"""Names that a paste breaks: one of `main()` read in another function, `self` outside of a method, a lost function."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator, Sequence
from contextlib import suppress

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, applied
from pyfunc_debug.doctor.failures.reading.source import dotted, parsed


def breaks_names(edit: Edit, lines: Sequence[str]) -> bool:
    """Whether an edit reads a name that nothing binds, or an attribute of another class, or loses a definition."""
    after = applied([edit], lines)
    if _unbound(after) - _unbound(lines) or not _defined(lines) <= _defined(after) or _early(after) - _early(lines):
        return True
    before, now = _of_self(lines, ast.Attribute), _of_self(after, ast.Attribute)
    for kind, read in now.items():
        others = {name for other, names in before.items() if other != kind for name in names}
        own = before.get(kind, set()) | _of_self(after, ast.Store).get(kind, set())
        if read & others - own:
            return True
    return False


def _early(lines: Sequence[str]) -> set[str]:
    """The names that a text reads, outside of functions, above the first line that gives them a value."""
    first: dict[str, int] = {}
    read: list[ast.Name] = []
    waiting: list[ast.AST] = list(parsed("\n".join(lines)).tree.body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            first[one.id] = min(one.lineno, first.get(one.id, one.lineno))
        elif isinstance(one, ast.Name):
            read.append(one)
        waiting += ast.iter_child_nodes(one)
    return {one.id for one in read if one.lineno < first.get(one.id, 0)}


def _of_self(lines: Sequence[str], what: type[ast.AST]) -> dict[str, set[str]]:
    """The attributes of `self` in each class of a text, with its methods: all, or those that are stored."""
    found: dict[str, set[str]] = {}
    for kind in (one for one in ast.walk(parsed("\n".join(lines)).tree) if isinstance(one, ast.ClassDef)):
        asked = [one for one in ast.walk(kind) if isinstance(one, ast.Attribute) and dotted(one.value) == "self"]
        names = {one.attr for one in asked if isinstance(one, what) or isinstance(one.ctx, what)}
        found[kind.name] = names | {one.name for one in kind.body if isinstance(one, ast.FunctionDef)}
    return found


def _defined(lines: Sequence[str]) -> set[str]:
    """The functions and classes of a text."""
    tree = parsed("\n".join(lines)).tree
    return {one.name for one in ast.walk(tree) if isinstance(one, (ast.FunctionDef, ast.ClassDef))}


def _unbound(lines: Sequence[str]) -> set[tuple[str, str]]:
    """The names that a text reads and does not bind, with the scopes that do; none of a text that does not parse."""
    with suppress(SyntaxError, ValueError):
        table = symtable.symtable("\n".join(lines), "<pasted>", "exec")
        bound = {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
        bound |= {one.get_name() for one in table.get_children() if one.get_type() != "module"}
        scopes = list(_scopes(table))
        bound |= {
            one.get_name() for scope in scopes for one in scope.get_symbols()
            if one.is_declared_global() and one.is_assigned()
        }  # fmt: skip
        return {
            (scope.get_name(), one.get_name()) for scope in scopes for one in scope.get_symbols()
            if one.is_referenced() and (scope is table or one.is_global())
            and one.get_name() not in bound and not hasattr(builtins, one.get_name())
        }  # fmt: skip
    return set()


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for one in table.get_children():
        yield from _scopes(one)
