"""Fixes as whole lines of the user's file: which lines they replace, or above which one they go.

Read from the source as it was recorded. Each function gives "" where that cannot be said in whole lines.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TypeVar

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Definition, Facts, makes_node
from pyfunc_debug.doctor.failures.ops.body_in_ops import body_in_ops
from pyfunc_debug.doctor.failures.ops.slopes import NAME, helper, sloped
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.pastes.finite_slopes import bounded
from pyfunc_debug.doctor.failures.reading.nodes import argument as argument  # for the rules, too
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Source, indent_of, parsed
from pyfunc_debug.doctor.failures.reading.symbols import Described
from pyfunc_debug.records import Node

MOST = 3
"""More places than these are not a paste."""
_GENERATOR = "from_generator"
_Tree = TypeVar("_Tree", bound=ast.AST)


def written(*edits: Edit | None) -> str:
    """Edits as text, the last lines first, and what goes above a line behind its own edit.

    The numbers of the others stay right while one pastes.
    """
    if None in edits:
        return ""
    known = _joined(sorted((one for one in edits if one is not None), key=lambda one: (-one.first, -one.last)))
    return "\n".join("\n".join((one.instruction(), *one.lines)) for one in known)


def _joined(edits: list[Edit]) -> list[Edit]:
    """The same edits, and one for those that replace lines next to each other."""
    found: list[Edit] = []
    for one in edits:
        below = found[-1] if found else None
        if below is not None and one.file == below.file and one.first <= one.last == below.first - 1 <= below.last - 1:
            found[-1] = Edit(one.file, one.first, below.last, (*one.lines, *below.lines))
        else:
            found.append(one)
    return found


def source(facts: Facts, file: str | None) -> Source:
    """A file of the user's as it was recorded."""
    return parsed("\n".join(facts.source(file)))


def replaced(facts: Facts, file: str | None, pieces: Mapping[ast.expr, str]) -> Edit | None:
    """The line that holds some expressions, with other text in their places. Positions count, not identities."""
    if file is None or not pieces or not facts.source(file):
        return None
    found = source(facts, file).replaced(dict(pieces))
    return edit_of(file, found)


def call_replaced(facts: Facts, file: str | None, line: int, text: str, new: str) -> Edit | None:
    """A call on a line, given as `ast.unparse` writes it, with other text in its place."""
    calls = [one for one in around(facts.tree(file), line, ast.Call) if ast.unparse(one) == text]
    return replaced(facts, file, {calls[0]: new}) if len(calls) == 1 else None


def above(facts: Facts, file: str | None, line: int, *texts: str) -> Edit | None:
    """Lines that go before one, indented as it is."""
    lines = facts.source(file)
    if file is None or not 0 < line <= len(lines):
        return None
    return Edit(file, line, line - 1, tuple(f"{indent_of(lines[line - 1])}{text}" for text in texts))


def behind(file: str, statement: ast.stmt, *texts: str) -> Edit:
    """Lines that go behind a statement, indented as it is."""
    end = statement.end_lineno or statement.lineno
    return Edit(file, end + 1, end, tuple(f"{' ' * statement.col_offset}{text}" for text in texts))


def beginning(function: Definition) -> int | None:
    """The line at which a function's first statement begins, after its docstring; None for a lambda."""
    if isinstance(function, ast.Lambda):
        return None
    first = function.body[0]
    doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    statement = function.body[1] if doc and len(function.body) > 1 else first
    return None if statement.lineno == function.lineno else statement.lineno


def with_default(
    file: str, lines: Sequence[str], function: ast.FunctionDef | ast.AsyncFunctionDef, added: str
) -> Edit | None:
    """The `def` line with one more parameter and its default; None where it is written over several lines.

    Args:
      file: The file.
      lines: Its lines.
      function: The function.
      added: The parameter, `x=x`.
    """
    header = lines[function.lineno - 1].rstrip()
    if f"{function.name}():" in header:
        header = header.replace("()", f"({added})", 1)
    elif header.endswith("):"):
        header = f"{header.removesuffix('):')}, {added}):"
    else:
        return None
    return Edit(file, function.lineno, function.lineno, (header,))


def returns(function: Definition) -> list[ast.expr]:
    """What a function returns, each `return` once."""
    if isinstance(function, ast.Lambda):
        return [function.body]
    every = [one for one in code.own_nodes(function) if isinstance(one, ast.Return)]
    return [one.value for one in every if one.value is not None]


def returning(facts: Facts, node: Node, make: Callable[[ast.expr, str], str | None]) -> str:
    """A body's `return` lines with other values.

    Args:
      facts: The recording.
      node: A node of the body.
      make: Gets an expression and its text; gives the new text, None if it has none.
    """
    function = facts.function(node)
    values = returns(function) if function is not None else []
    if not 0 < len(values) <= MOST:
        return ""
    text = source(facts, node.file)
    pieces = {value: make(value, text.text(value)) for value in values}
    return written(*(None if new is None else replaced(facts, node.file, {old: new}) for old, new in pieces.items()))


def text_of(facts: Facts, file: str | None, node: ast.AST) -> str:
    """An expression as it is written."""
    return source(facts, file).text(node)


def module(facts: Facts, file: str | None, name: str) -> str | None:
    """How a file calls a module: `np`; None where it does not import it."""
    every = imports(source(facts, file)).items()
    return next((short for short, full in every if full in (name, f"{name}.compat.v2")), None)


def call_of(facts: Facts, node: Node) -> tuple[str, ast.Call] | None:
    """The call of py_function that made a node, and its file; None where a line holds several that may be it."""
    for frame in reversed(node.stack):
        tree = facts.tree(frame.file)
        calls = [one for one in around(tree, frame.line, ast.Call) if makes_node(one)]
        if not calls and frame.function == "<lambda>":  # AutoGraph knows only the line on which a lambda begins
            begun = [one for one in walk(tree, ast.Lambda) if one.lineno == frame.line]
            calls = [part for one in begun for part in ast.walk(one) if isinstance(part, ast.Call) and makes_node(part)]
        if not calls and tree is not None:
            mapped = source(facts, frame.file).mapped
            calls = [one for one, _ in mapped if one.lineno <= frame.line <= (one.end_lineno or 0)]
        if calls:
            return (frame.file, calls[0]) if len(calls) == 1 else None
    return None


def dataset_call(facts: Facts, node: Node) -> tuple[str, ast.Call] | None:
    """The user's call of from_generator that made a node, and its file; None where a line holds several or none."""
    for frame in reversed(node.stack):
        calls = [
            one for one in around(facts.tree(frame.file), frame.line, ast.Call) if last_name(one.func) == _GENERATOR
        ]
        if len(calls) == 1:
            return frame.file, calls[0]
    return None


def with_tout(facts: Facts, node: Node, tout: str) -> str:
    """The call of py_function with another Tout."""
    found = call_of(facts, node)
    given = None if found is None else argument(found[1], 2, "Tout")
    return "" if found is None or given is None else written(replaced(facts, found[0], {given: tout}))


def walk(tree: ast.AST | None, kind: type[_Tree]) -> Iterator[_Tree]:
    """Nodes of one kind in a tree."""
    for one in code.all_nodes(tree) if tree is not None else ():
        if isinstance(one, kind):
            yield one


def around(tree: ast.AST | None, line: int, kind: type[_Tree]) -> list[_Tree]:
    """Nodes of one kind that hold a line, outermost first."""
    return [one for one in walk(tree, kind) if first_line(one) <= line <= (getattr(one, "end_lineno", None) or 0)]


def first_line(node: ast.AST) -> int:
    """The line that a statement begins on, decorators included."""
    own = int(getattr(node, "lineno", 0))
    return min([own, *(int(one.lineno) for one in getattr(node, "decorator_list", ()))])


def scope_of(facts: Facts, file: str | None, function: ast.AST) -> ast.AST | None:
    """Where a function's name is known: the function around it, or else the file."""
    around_it = source(facts, file).parent(function)
    return around_it if isinstance(around_it, ast.FunctionDef) else facts.tree(file)


def run_sites(facts: Facts, function: int) -> list[tuple[str, int]]:
    """The user's lines that called a function: a tape runs it backward from another line."""
    rows = facts.reader.rows(
        "SELECT DISTINCT s.frames FROM run r JOIN stack s ON s.id = r.site WHERE r.function = ? AND r.kind = 'forward'",
        (function,),
    )
    return list(dict.fromkeys((file, line) for (frames,) in rows for file, line, *_ in json.loads(frames)[-1:]))


def keras_sites(facts: Facts) -> list[tuple[str, int]]:
    """The user's lines at which Keras 3 ran a step of a model, as `fit` does."""
    functions = [one.id for one in facts.functions.values() if one.name.startswith("TensorFlowTrainer.")]
    return [site for one in functions for site in run_sites(facts, one)]


def assigned(tree: ast.AST | None, name: str) -> list[ast.expr]:
    """What the assignments of a file give to a name alone, in the order of the source."""
    return [
        one.value for one in walk(tree, ast.Assign) if [ast.unparse(target) for target in one.targets] == [name]
    ]  # fmt: skip


def behind_name(tree: ast.AST | None, value: ast.expr) -> ast.expr:
    """What a name stands for that one assignment of a file gives a value; other expressions as they are."""
    made = assigned(tree, value.id) if isinstance(value, ast.Name) else []
    return made[0] if len(made) == 1 else value


def call_at(facts: Facts, file: str, line: int, name: str) -> ast.Call | None:
    """The one call of a function or method of a name on a line."""
    found = [one for one in around(facts.tree(file), line, ast.Call) if last_name(one.func) == name]
    return found[0] if len(found) == 1 else None


def end_of(call: ast.Call) -> ast.expr:
    """The place behind a call, for what is asked of its result."""
    place = ast.Name("behind", ast.Load())
    place.lineno = place.end_lineno = call.end_lineno or call.lineno
    place.col_offset = place.end_col_offset = call.end_col_offset or 0
    return place


def last_name(node: ast.expr) -> str:
    """`Pool` of `mp.Pool`: how a function or method is called, without where it comes from."""
    return ast.unparse(node).rpartition(".")[2]


def lines_of(facts: Facts, file: str | None, line: int) -> tuple[str, list[str]] | None:
    """Indentation and lines of the simple statement that begins on a line; None where there is no such statement."""
    found = source(facts, file).statement(line)
    if found is None or found.lineno != line or hasattr(found, "body"):
        return None
    texts = facts.source(file)[line - 1 : found.end_lineno or line]
    return indent_of(texts[0]), texts


def indent(facts: Facts, file: str | None, line: int) -> str | None:
    """The indentation of a statement, or of its header, that is one line; None where it is none."""
    own = source(facts, file)
    found = own.statement(line)
    return indent_of(own.lines[line - 1]) if found is not None and own.span(found) == (line, line) else None


def all_replaced(facts: Facts, file: str | None, pieces: Mapping[ast.expr, str]) -> str:
    """Several expressions with other text in their places; those that share lines in one edit."""
    return written(*each_replaced(facts, file, pieces))


def differentiated(facts: Facts, file: str, pieces: Mapping[ast.expr, str]) -> str:
    """The same of what is differentiated: with bounds where a gradient at 0 would be NaN."""
    own = source(facts, file)
    spot = Spot(file, 1, {}, {name: ModuleType(full) for name, full in imports(own).items()}, "")
    edits = each_replaced(facts, file, pieces)
    return written(*(None if one is None else bounded(one, own, spot, around=False) for one in edits))


def each_replaced(facts: Facts, file: str | None, pieces: Mapping[ast.expr, str]) -> list[Edit | None]:
    """The edits of `all_replaced`; None for one that cannot be made."""
    groups: list[dict[ast.expr, str]] = []
    end = -1
    for node, text in sorted(pieces.items(), key=lambda one: one[0].lineno):
        if node.lineno > end:
            groups.append({})
        groups[-1][node] = text
        end = max(end, node.end_lineno or node.lineno)
    return [replaced(facts, file, group) for group in groups]


def by_differences(facts: Facts, node: Node) -> str:
    """The call with a gradient by differences, and the function that it needs; "" where these would be none."""
    made = call_of(facts, node)
    rows = facts.reader.rows(
        "SELECT dtype FROM static_shape WHERE node = ? AND role = 'input' ORDER BY position", (node.id,)
    )
    if made is None:
        return ""
    file, call = made
    own, names = source(facts, file), {name: module(facts, file, name) for name in ("tensorflow", "numpy")}
    text = sloped(facts.function(node), call, own, [dtype for (dtype,) in rows])
    if text is None or None in names.values():
        return ""
    top = [
        one for one in ast.iter_child_nodes(own.tree) if first_line(one) <= call.lineno <= getattr(one, "end_lineno", 0)
    ]
    there = any(isinstance(one, ast.FunctionDef) and one.name == NAME for one in walk(own.tree, ast.FunctionDef))
    lines = helper(str(names["tensorflow"]), str(names["numpy"]))
    edits = [replaced(facts, file, {call: text})]
    edits += [] if there or not top else [above(facts, file, first_line(top[0]), *lines)]
    return written(*edits)


def in_ops(facts: Facts, node: Node, assumed: str = "") -> dict[ast.expr, str] | None:
    """Expressions of a body, and what they are in TensorFlow's ops; None where some of it has no such op.

    Args:
      facts: The recording.
      node: The body's node.
      assumed: The dtype of inputs of a body that was never called; "" where nothing is known of them.
    """
    function = facts.function(node)
    if function is None or node.file is None:
        return None
    body = (node.file, node.line, node.body)  # another trace's node of it may be the one that was called
    first = facts.calls_of(one for one in facts.nodes.values() if (one.file, one.line, one.body) == body).first
    rows = facts.reader.rows(
        "SELECT path, dtype, shape FROM value WHERE call = ? AND role = 'input' ORDER BY position", (first,)
    )
    given = {path: Described(dtype, tuple(json.loads(shape)) if shape else None) for path, dtype, shape in rows}
    if not given:  # never called: as it was known at trace
        rows = facts.reader.rows(
            "SELECT dtype, shape FROM static_shape WHERE node = ? AND role = 'input' ORDER BY position", (node.id,)
        )
        known = [Described(dtype, tuple(json.loads(shape)) if shape else None) for dtype, shape in rows]
        given = dict(zip(node.paths, known)) if len(known) == len(node.paths) else {}
    if not given and assumed:
        given = {path: Described(assumed, None) for path in node.paths}
    modules = {short: ModuleType(full) for short, full in imports(source(facts, node.file)).items()}
    spot = Spot(node.file, function.lineno, given, modules, "")
    return body_in_ops(function, spot) if given else None
