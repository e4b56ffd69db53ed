"""Lines of the user's that AutoGraph joined: it writes each statement on one line, with the lambdas in it.

The statement is taken back to what the user wrote and compared with the user's own. Where both are the same, each
lambda of the generated line is known to be one of the user's, or a part of a conditional expression, `and` or `or`,
and has its lines. Where they are not, a lambda stands for all lines of its statement.
"""

from __future__ import annotations

import ast
import functools
import linecache
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyfunc_debug.events import Statements
from pyfunc_debug.interception.lines.line_maps import statements
from pyfunc_debug.program import syntax

_COMPARED = {"eq": ast.Eq, "not_eq": ast.NotEq}


class _Lambda(NamedTuple):
    """A lambda of generated code: where its body begins, its constants, parameters, names, and those inside it, too."""

    column: int
    constants: frozenset[str]
    parameters: tuple[str, ...]
    own: frozenset[str]
    every: frozenset[str]


class _Piece(NamedTuple):
    """What one lambda of generated code stands for: the line that Python comes to first, and all of them."""

    generated: _Lambda
    line: int
    lines: frozenset[int]
    own: bool  # the user wrote this lambda


def with_joined(code: types.CodeType, known: dict[int, int], source: tuple[dict[int, int], str, int]) -> Statements:
    """What the lines of generated code stand for, with the lines that were joined into them.

    Args:
      code: The generated code.
      known: By line that begins a statement of the user's: the user's line.
      source: Its source map, see `SourceMaps.of`.
    """
    lines, file, shift = source
    if code.co_name != "<lambda>":
        joined = {line: _rest(code.co_filename, line, file, at) for line, at in known.items()}
        return Statements(known, {line: found for line, found in joined.items() if found}, False)
    line = code.co_firstlineno
    if line not in lines:
        return Statements(known, {}, not known)
    at = lines[line] + shift
    pieces = _pieces(code.co_filename, line, file, at)
    meant = _meant(code, pieces)
    if meant is None:
        whole = _rest(code.co_filename, line, file, at) if not pieces else _span(file, at)
        return Statements(known, {one: whole for one in known if whole}, not known)
    if not meant.lines:
        return Statements(known, {}, not meant.own)
    return Statements({line: meant.line}, {line: meant.lines - {meant.line}}, not meant.own)


def _span(file: str, line: int) -> frozenset[int]:
    """All lines of the statement that a line is in."""
    first = statements(file)[0]
    start = first.get(line, line)
    return frozenset(one for one, begins in first.items() if begins == start)


def _rest(generated: str, line: int, file: str, at: int) -> frozenset[int]:
    """The lines of a statement without those that its lambdas have, and without its first."""
    taken = {one for piece in _pieces(generated, line, file, at) for one in piece.lines}
    return _span(file, at) - taken - {statements(file)[0].get(at, at)}


@functools.lru_cache(maxsize=512)
def _pieces(generated: str, line: int, file: str, at: int) -> tuple[_Piece, ...]:
    """What the lambdas on a generated line stand for; none where that line is not what the user wrote."""
    if len(_span(file, at)) < 2:
        return ()
    try:
        first = statements(file)[0].get(at, at)
        theirs = [_Spread().visit(_copy(one)) for one in _expressions(file, first)]
        for ours in _roots(generated, line):
            plain = _Undone().visit(ours)
            same = [one for one in theirs if ast.dump(one) == ast.dump(plain)]
            if len(same) > 1:  # lambdas given to several calls in a row
                same = [one for one in same if one.of.lineno <= at <= one.of.end_lineno]
            if len(same) == 1:
                return _paired(plain, same[0], first)
    except (SyntaxError, OSError, RecursionError, ValueError):
        pass
    return ()


def _roots(generated: str, line: int) -> Iterator[Any]:
    """The expression of a generated statement, with what `_seen` says of its lambdas."""
    with open(generated, encoding="utf-8") as text:
        tree = syntax.parse(text.read())  # again each time: it is going to be changed
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            node.seen = _seen(node)  # type: ignore[attr-defined]  # nodes take any
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno == line:
            value = getattr(node, "value", None)
            if _of_autograph(value) in ("if_stmt", "for_stmt"):
                value = value.args[0]  # type: ignore[union-attr]  # _of_autograph says that it is a call
            if value is not None:
                yield value


def _expressions(file: str, line: int) -> Iterator[ast.expr]:
    """What AutoGraph may have converted of a statement: its expression, and lambdas in it."""
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.stmt) and node.lineno == line:
            for name in ("value", "test", "iter"):
                root = getattr(node, name, None)
                if isinstance(root, ast.expr):
                    yield root
                    yield from (one for one in ast.walk(root) if isinstance(one, ast.Lambda) and one is not root)


@functools.lru_cache(maxsize=32)
def _tree(file: str) -> ast.Module:
    try:
        return syntax.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _copy(node: Any) -> Any:
    """A copy of a tree; `of` of each node is the one it was made of."""
    if isinstance(node, list):
        return [_copy(one) for one in node]
    if not isinstance(node, ast.AST):
        return node
    made = type(node)(**{name: _copy(value) for name, value in ast.iter_fields(node)})
    made.of = node  # type: ignore[attr-defined]  # nodes take any
    return made


def _of_autograph(node: Any) -> str:
    """NAME of a call of `ag__.NAME`."""
    function = node.func if isinstance(node, ast.Call) else None
    ours = isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "ag__"
    return function.attr if ours else ""  # type: ignore[union-attr]  # an Attribute


class _Undone(ast.NodeTransformer):
    """Takes back what AutoGraph made of an expression.

    Of a node that AutoGraph made a lambda of, `part` is what `_seen` says of that; `emptied` are lambdas around it.
    """

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name, given = _of_autograph(node), node.args
        if name in ("ld", "autograph_artifact"):
            return given[0]
        if name == "with_function_scope":
            scoped: Any = given[0]  # AutoGraph's lambda in the user's
            scoped.body.emptied = [scoped.seen]
            return scoped.body
        if name == "converted_call":
            return ast.Call(given[0], _positional(given[1]), list(getattr(given[2], "keywords", ())))
        if name == "if_exp":
            return ast.IfExp(given[0], _part(given[1]), _part(given[2]))
        if name in ("and_", "or_"):
            return _both(ast.And() if name == "and_" else ast.Or(), [_part(one) for one in given])
        if name == "not_":
            return ast.UnaryOp(ast.Not(), given[0])
        if name in _COMPARED:
            return ast.Compare(given[0], [_COMPARED[name]()], [given[1]])
        return node


def _positional(given: Any) -> list[ast.expr]:
    """Arguments: a tuple, or the sum of tuples that AutoGraph makes of `*args`."""
    if isinstance(given, ast.BinOp):
        return _positional(given.left) + _positional(given.right)
    if isinstance(given, ast.Tuple):
        return list(given.elts)
    inner = given.args[0] if isinstance(given, ast.Call) and getattr(given.func, "id", "") == "tuple" else given
    return [ast.Starred(inner, ast.Load())]


def _part(made: Any) -> Any:
    body = made.body
    if hasattr(body, "part"):  # a lambda around a lambda: only the inner one runs code of the user's
        body.emptied = [*getattr(body, "emptied", ()), made.seen]
    else:
        body.part = made.seen
    return body


def _both(operator: ast.boolop, values: list[Any]) -> Any:
    """`and` of `and` is one: so the user wrote it, and a comparison with several parts becomes the same."""
    flat: list[Any] = []
    emptied: list[Any] = []
    for one in values:
        if isinstance(one, ast.BoolOp) and type(one.op) is type(operator):
            flat += one.values
            emptied += [*getattr(one, "emptied", ()), *([one.part] if hasattr(one, "part") else [])]
        else:
            flat.append(one)
    made: Any = ast.BoolOp(operator, flat)
    made.emptied = emptied
    return made


class _Spread(ast.NodeTransformer):
    """What the user wrote, in the form that `_Undone` gives: `a < b < c` is `a < b and b < c`."""

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        return self._of(node, _both(node.op, node.values))

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        lefts = [node.left, *node.comparators]
        pairs = [ast.Compare(left, [op], [right]) for left, op, right in zip(lefts, node.ops, node.comparators)]
        return self._of(node, ast.BoolOp(ast.And(), [self._of(node, one) for one in pairs]))

    @staticmethod
    def _of(node: Any, made: Any) -> Any:
        made.of = node.of
        return made


class _Owner:
    """A lambda of generated code, or the statement around all of them, with the lines whose code it runs."""

    def __init__(self, generated: _Lambda | None, theirs: Any = None, around: _Owner | None = None) -> None:
        self.generated = generated
        self.first = _first(theirs) if theirs is not None else 0
        self.around = around  # of a part: what it is a part of
        self.lines: set[int] = set()

    def piece(self) -> _Piece:
        """With what it is a part of it shares no lines: a breakpoint stops once."""
        lines, around = set(self.lines), self.around
        while around is not None:
            lines -= around.lines
            around = around.around
        line = self.first if self.first in lines else min(lines, default=0)
        return _Piece(self.generated, line, frozenset(lines), self.around is None)  # type: ignore[arg-type]


def _paired(ours: Any, theirs: Any, first: int) -> tuple[_Piece, ...]:
    """The lambdas of two trees of the same form, in a statement that begins on line `first`."""
    root = _Owner(None)
    root.lines.add(first)
    owners: list[_Owner] = []
    spans: list[tuple[_Owner, set[int]]] = []

    def gather(one: Any, other: Any, owner: _Owner) -> None:
        owners.extend(_Owner(made, around=owner) for made in getattr(one, "emptied", ()))
        if hasattr(one, "part"):
            owner = _Owner(one.part, other, owner)
            owners.append(owner)
        user: Any = getattr(other, "of", None)
        if isinstance(other, (ast.IfExp, ast.BoolOp)):  # they run no code but that of what they are made of
            owner.lines.add(_first(other))
        elif hasattr(user, "lineno"):
            owner.lines.add(user.lineno)
        body, inner = getattr(one, "body", None), owner
        if isinstance(one, ast.Lambda):
            inner = _Owner(one.seen, other.body)  # type: ignore[attr-defined]  # set by _roots
            owners.append(inner)
            spans.append((inner, set(range(user.lineno + 1, user.end_lineno + 1))))
        for child, their_child in zip(ast.iter_child_nodes(one), ast.iter_child_nodes(other)):
            gather(child, their_child, inner if child is body else owner)

    gather(ours, theirs, root)
    run = root.lines.union(*(owner.lines for owner in owners))
    for owner, span in reversed(spans):  # brackets and comments: of the innermost lambda around them
        owner.lines |= span - run
        run |= span
    return tuple(owner.piece() for owner in owners)


def _first(node: Any) -> int:
    """The line that Python comes to first in an expression of the user's."""
    while not isinstance(node, ast.Lambda):
        inner = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        if hasattr(node, "generators"):
            node = node.generators[0].iter
        elif inner:
            node = inner[0]
        else:
            break
    return int(node.of.lineno)


def _seen(node: ast.Lambda) -> _Lambda:
    """What tells a lambda of generated code from others; asked before anything in it is taken back."""
    every: set[str] = set()
    own: set[str] = set()
    constants: set[str] = set()

    def names(one: Any, direct: bool) -> None:
        name = getattr(one, "id", None) or getattr(one, "attr", None)
        if name is not None:
            every.add(name)
            if direct:
                own.add(name)
        if direct and isinstance(one, ast.Constant):
            constants.add(repr(one.value))
        direct = direct and not isinstance(one, ast.Lambda) and not hasattr(one, "generators")
        for child in ast.iter_child_nodes(one):
            names(child, direct)

    names(node.body, True)
    parameters = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    return _Lambda(node.body.col_offset, frozenset(constants), tuple(parameters), frozenset(own), frozenset(every))


def _meant(code: types.CodeType, pieces: tuple[_Piece, ...]) -> _Piece | None:
    """The lambda that a code object is; None where that cannot be told, and several as one where they are alike."""
    parameters = code.co_varnames[: code.co_argcount]
    names = {*code.co_names, *code.co_freevars}
    there = names.union(code.co_varnames, code.co_cellvars)
    found = [
        one
        for one in pieces
        if one.generated.parameters == parameters
        and one.generated.own <= there
        and names <= one.generated.every.union(parameters)
    ]
    if len(found) > 1 and hasattr(code, "co_positions"):  # since Python 3.11
        columns = [spot[2] for spot in code.co_positions() if spot[2] and spot[0] == code.co_firstlineno]
        found = [one for one in found if one.generated.column == min(columns, default=0)]
    if len(found) > 1:
        constants = {repr(one) for one in code.co_consts}
        found = [one for one in found if one.generated.constants <= constants] or found
    if not found:
        return None
    line = min((one.line for one in found if one.lines), default=0)
    return found[0]._replace(line=line, lines=frozenset().union(*(one.lines for one in found)))
