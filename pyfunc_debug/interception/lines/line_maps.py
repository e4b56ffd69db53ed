"""Which of the user's statements a line of running code is, also in code that AutoGraph generated.

Generated code has more lines than the user's: states of loops, guards of break and return, functions for branches. One
line of it stands for each statement of the user's, and counting that one gives what Python would count in the original.
Tables are kept by the identity of code objects: code objects of different files compare equal, files do not.
"""

from __future__ import annotations

import ast
import dis
import functools
import linecache
import re
import types
from collections import defaultdict
from typing import Any, NamedTuple

from pyfunc_debug.interception.bodies import SourceMaps
from pyfunc_debug.program import syntax
from pyfunc_debug.program.frames import is_generated, is_installed, is_user

_COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
_ENTERS = ("BEFORE_WITH", "BEFORE_ASYNC_WITH", "SETUP_WITH", "SETUP_ASYNC_WITH")
_FLAGS = re.compile(r"(do_return|break_|continue_)")
_ROLES = {
    "if_stmt": ("", "body", "orelse", "state", "state"),
    "for_stmt": ("", "test", "loop", "state", "state"),
    "while_stmt": ("while test", "loop", "state", "state"),
}


class SourceLine(NamedTuple):
    """A statement of the user's, or (`kind` "lambda") a lambda on that line."""

    file: str
    line: int
    kind: str


class Table(NamedTuple):
    """What the lines of one code object stand for. With `repeats`, several of its lines are one statement.

    `entered` says of lines with a `with` statement up to which instruction they are being entered: CPython comes to
    such a line once more when it leaves the block.
    """

    source_lines: dict[int, SourceLine]
    repeats: bool
    entered: dict[int, int]


NOTHING = Table({}, False, {})


class LineTables:
    """Makes a table for each code object once.

    Attributes:
      libraries: Identities of code objects whose lines are never the user's: one look-up in a set.
    """

    def __init__(self, maps: SourceMaps) -> None:
        self._maps = maps
        self._tables: dict[int, tuple[types.CodeType, Any, Table]] = {}
        self.libraries: set[int] = set()

    def of(self, code: types.CodeType) -> Table:
        """The table of a code object; empty when none of its lines are the user's."""
        known = self._tables.get(id(code))
        if known is not None and (known[1] is None or known[1] is self._maps.of(code.co_filename)):
            return known[2]
        source = self._maps.of(code.co_filename) if is_generated(code.co_filename) else None
        try:
            source_lines = _generated_source_lines(code, source) if source is not None else _plain_source_lines(code)
        except (SyntaxError, OSError, RecursionError, ValueError):
            source_lines = {}
        table = Table(source_lines, _repeats(code, source_lines), _entered(code)) if source_lines else NOTHING
        self._tables[id(code)] = (code, source, table)
        if not source_lines and not is_generated(code.co_filename):  # what was generated may yet get its source map
            self.libraries.add(id(code))
        return table

    def counted(self) -> list[types.CodeType]:
        """All code objects with lines of the user's."""
        return [code for code, _, table in list(self._tables.values()) if table.source_lines]


def is_counted(file: str) -> bool:
    """Whether lines of this file are counted: the user's, not those of installed packages or of text run by exec."""
    return is_user(file) and not is_installed(file) and not file.startswith("<string")


def _entered(code: types.CodeType) -> dict[int, int]:
    """By line, the last instruction that enters a `with` block."""
    found: dict[int, int] = {}
    line = 0
    starts = {offset: number for offset, _, number in code.co_lines() if number}
    for one in dis.get_instructions(code):
        line = starts.get(one.offset, line)
        if one.opname in _ENTERS or (one.opname == "LOAD_SPECIAL" and "__enter__" in one.argrepr):
            found[line] = one.offset
    return found


def _repeats(code: types.CodeType, source_lines: dict[int, SourceLine]) -> bool:
    if is_generated(code.co_filename) or len(set(source_lines.values())) < len(source_lines):
        return True
    comprehensions = statements(code.co_filename)[1]  # inlined since 3.12: they jump back on their own line
    return any(source_line.line in comprehensions for source_line in source_lines.values())


@functools.lru_cache(maxsize=512)
def statements(file: str) -> tuple[dict[int, int], frozenset[int]]:
    """For each line of a file the first line of its innermost statement, and the lines with comprehensions."""
    first: dict[int, int] = {}
    comprehensions: set[int] = set()

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                comprehensions.add(_statement_line(child, first))
            if isinstance(child, (ast.stmt, ast.ExceptHandler)):
                body = getattr(child, "body", None)
                last = body[0].lineno - 1 if isinstance(body, list) and body else child.end_lineno
                start = min([child.lineno, *(one.lineno for one in getattr(child, "decorator_list", ()))])
                for line in range(start, max(last or child.lineno, child.lineno) + 1):
                    first[line] = child.lineno
            visit(child)

    try:
        visit(syntax.parse("".join(linecache.getlines(file))))
    except (SyntaxError, ValueError):
        return {}, frozenset()
    return first, frozenset(comprehensions)


@functools.lru_cache(maxsize=512)
def loops_left(file: str) -> frozenset[int]:
    """Lines of a file where loops begin that a `break` or a `return` may leave."""
    found: set[int] = set()

    def leaves(node: ast.AST, own: bool) -> bool:
        """Whether a loop is left by something in this node; `own`: not by a `break` of a loop inside it."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return False
        own = own and not isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        return (
            isinstance(node, ast.Return)
            or (own and isinstance(node, ast.Break))
            or any(leaves(child, own) for child in ast.iter_child_nodes(node))
        )

    try:
        tree = syntax.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return frozenset()
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and any(leaves(child, True) for child in node.body):
            found.add(node.lineno)
    return frozenset(found)


def _statement_line(node: ast.expr, first: dict[int, int]) -> int:
    return first.get(node.lineno, node.lineno)


def _plain_source_lines(code: types.CodeType) -> dict[int, SourceLine]:
    """Code that runs as the user wrote it."""
    file = code.co_filename
    if not is_counted(file) or code.co_name == "<module>" or code.co_name in _COMPREHENSIONS or is_generated(file):
        return {}
    if code.co_name == "<lambda>":
        return {line: SourceLine(file, line, "lambda") for line in _code_lines(code)}
    first = statements(file)[0]
    return {line: SourceLine(file, first.get(line, line), "line") for line in _code_lines(code)}


def _code_lines(code: types.CodeType) -> list[int]:
    return [line for _, _, line in code.co_lines() if line]


# -- generated code ---------------------------------------------------------------------------------------------------


class _Module(NamedTuple):
    """What AutoGraph's own functions and lines in one generated file are for.

    `roles` are functions passed to its statements, by name; `headers` the line of that statement. Of `lambdas` on a
    line, sorted by column, each is "user" (the user wrote it), "test" (the test of a while loop) or "" (neither).
    """

    roles: dict[str, str]
    headers: dict[str, int]
    dead: frozenset[int]
    lambdas: dict[int, list[tuple[int, str]]]


def _calls(node: Any, *names: str) -> bool:
    """Whether a node calls `ag__.NAME`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return getattr(node.func.value, "id", "") == "ag__" and node.func.attr in names


@functools.lru_cache(maxsize=512)
def _module(file: str) -> _Module:
    with open(file, encoding="utf-8") as text:
        tree = syntax.parse(text.read())
    roles: dict[str, str] = {}
    headers: dict[str, int] = {}
    dead: set[int] = set()
    written: dict[int, str] = {}
    nodes = list(ast.walk(tree))
    for node in nodes:
        if _calls(node, *_ROLES):
            _statement(node, roles, headers, dead)
    for node in nodes:
        _other(node, roles, dead, written)
    lambdas: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for node in nodes:
        if isinstance(node, ast.Lambda):
            lambdas[node.lineno].append((node.col_offset, written.get(id(node), "")))
    return _Module(roles, headers, frozenset(dead), {line: sorted(found) for line, found in lambdas.items()})


def _statement(node: Any, roles: dict[str, str], headers: dict[str, int], dead: set[int]) -> None:
    """`ag__.if_stmt(...)` and its like: what the functions given to it are for."""
    kind = node.func.attr
    guard = kind == "if_stmt" and _calls(node.args[0], "not_") and isinstance(node.args[0].args[0], ast.Name)
    if guard or kind == "while_stmt":  # `if not do_return_:`; the header of a while loop is its test
        dead.add(node.lineno)
    for role, argument in zip(_ROLES[kind], node.args):
        name = getattr(argument, "id", None)
        if name and role:
            roles[name], headers[name] = role, node.lineno


def _other(node: Any, roles: dict[str, str], dead: set[int], written: dict[int, str]) -> None:
    """Lines that stand for no statement of the user's, and lambdas that do."""
    if isinstance(node, ast.Try):
        dead.add(node.lineno)
    elif isinstance(node, ast.Assign):
        name = getattr(node.targets[0], "id", "")
        value = node.value
        if _calls(value, "Undefined") or (
            isinstance(value, ast.Constant) and value.value is False and _FLAGS.match(name)
        ):
            dead.add(node.lineno)
    elif isinstance(node, ast.FunctionDef):
        role = roles.get(node.name)
        if role is not None:
            dead.add(node.lineno)
        if node.name == "inner_factory":
            for statement in node.body:
                if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda):
                    written[id(statement.value)] = "user"
        if role == "while test" and isinstance(node.body[-1], ast.Return):
            returned: Any = node.body[-1].value
            if _calls(returned, "and_") and _calls(getattr(returned.args[0], "body", None), "not_"):
                written[id(returned.args[1])] = "test"  # a loop with break: `and_(lambda: not break_, lambda: test)`
                dead.add(returned.lineno)
    elif _calls(node, "autograph_artifact") and node.args and isinstance(node.args[0], ast.Lambda):
        written[id(node.args[0])] = "user"


def _generated_source_lines(code: types.CodeType, source: tuple[dict[int, int], str, int]) -> dict[int, SourceLine]:
    """One line for each statement that the code object stands for."""
    lines, file, shift = source
    module = _module(code.co_filename)
    name = code.co_name
    role = module.roles.get(name)
    if (
        name in ("outer_factory", "inner_factory", *_COMPREHENSIONS)
        or role in ("state", "test")
        or not is_counted(file)
    ):
        return {}
    dead: frozenset[int] | tuple[()] = module.dead
    kind = "line"
    if name == "<lambda>":
        written = _lambda_kind(code, module)
        if not written:
            return {}
        dead, kind = (), ("line" if written == "test" else "lambda")
    first = statements(file)[0]
    header = module.headers.get(name)
    source_lines: dict[int, SourceLine] = {}
    for line in _code_lines(code):
        if line not in lines or line in dead or (line == code.co_firstlineno and name != "<lambda>"):
            continue
        original = lines[line] + shift
        if role in ("body", "orelse") and header in lines and lines[header] + shift == original:
            continue  # `elif` and one-line branches repeat their header's line
        source_line = SourceLine(file, first.get(original, original), kind)
        if source_line not in source_lines.values():
            source_lines[line] = source_line
    return source_lines


def _lambda_kind(code: types.CodeType, module: _Module) -> str:
    candidates = module.lambdas.get(code.co_firstlineno, [(0, "user")])
    column = 0
    if hasattr(code, "co_positions"):  # Python 3.11: distinguishes lambdas of one line
        columns = [spot[2] for spot in code.co_positions() if spot[0] == code.co_firstlineno and spot[2]]
        column = min(columns, default=0)
    before = [written for start, written in candidates if start <= column]
    return before[-1] if before else candidates[0][1]
