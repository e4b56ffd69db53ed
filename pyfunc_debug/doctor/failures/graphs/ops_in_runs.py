"""A body that makes an op for a session's run: `sess.run(it.get_next())`, `sess.run(tf.add(x, 1))`.

A body runs in a thread of TensorFlow's. There no graph of the program is the default one, so the op goes to another
graph than that of the session (tensorflow/python/framework/ops.py).
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.code import local_names
from pyfunc_debug.doctor.failures.graphs.uninitialized import session_of
from pyfunc_debug.doctor.failures.pastes.body_edits import is_generator
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_symbolic, lookup

RULE = "session-feed"
_SAID = re.compile(
    r"is out of scope|is not an element of this graph|Tensor\.graph is undefined when eager|must be from the same graph"
)
_NAMES = {"get_next": "next_element"}
"""What an op that is made is called, where it has no name."""
_MOST = 12
"""Lines that one paste changes."""


@dataclass(frozen=True)
class _Made:
    """An op that a body makes.

    Attributes:
      spot: The body's frame.
      function: The body.
      session: The session's text.
      graph: Its graph.
      value: What makes the op.
      kept: The statement that gives it a name; None where it stands in the run itself.
      run: The statement that runs it.
    """

    spot: Spot
    function: Function
    session: str
    graph: Any
    value: ast.Call
    kept: ast.Assign | None
    run: ast.stmt

    @property
    def name(self) -> str:
        """The name for it."""
        if self.kept is not None:
            return dotted(self.kept.targets[0])
        return self.spot.source.unused_name(_NAMES.get(dotted(self.value.func).rpartition(".")[2], "made"))


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body made an op for a session that has another graph."""
    made = _made(situation) if situation.body and _SAID.search(situation.message) else None
    if made is None or _of_another(made):
        return None
    spot, source = made.spot, made.spot.source
    text, name = short(source.text(made.value), 40), getattr(made.function, "name", "the lambda")
    cause = (
        f"`{text}` makes an op, and {name} runs in a thread of TensorFlow's: there the op goes to another graph than "
        f"{made.session} has."
    )
    inside = (set(names(made.value)) & local_names(made.function)) - {"self"}
    edit = None if inside else _outside(made)
    if edit is not None:
        cause += f" Make it once, outside of {name}: each run computes it."
        return Explanation(RULE, spot.file, made.value.lineno, cause, edit, "", "likely")
    edit = _under_graph(made, moved=not inside)
    advice = f"Make it outside of {name}, and run what you made; what {name} has is fed to a placeholder."
    if edit is not None:
        cause += f" Under {made.session}'s graph it can run."
        if not is_generator(made.function) or inside:
            cause += " Each call adds its op to the graph: made once, outside, with a placeholder, it is faster."
    return Explanation(RULE, spot.file, made.value.lineno, cause, edit, "" if edit else advice, "likely")


def _of_another(made: _Made) -> bool:
    """Whether the op is of tensors that the session's graph does not have: it could not run it anywhere."""
    known = [lookup(one, made.spot) for one in ast.walk(made.value) if isinstance(one, (ast.Name, ast.Attribute))]
    graphs = [one.graph for one in known if is_symbolic(one) and type(one.graph).__name__ == "Graph"]
    return any(one is not made.graph for one in graphs)


def _made(situation: Situation) -> _Made | None:
    """The op that a body's frame makes for a run of a session, if it is one."""
    for spot in reversed(situation.spots):
        function, statement = spot.function, spot.statement
        if function is None or statement is None:
            continue
        for run in calls(function):
            session = session_of(run, spot)
            fetched = argument(run, 0, "fetches") if session is not None else None
            holder = spot.source.statement(run.lineno)
            if fetched is None or holder is None or not isinstance(run.func, ast.Attribute):
                continue
            if type(session.graph).__name__ != "Graph":
                continue
            text, parts = spot.source.text(run.func.value), getattr(fetched, "elts", [fetched])
            ops = [one for one in parts if isinstance(one, ast.Call)]
            if holder is statement and len(ops) == 1:
                return _Made(spot, function, text, session.graph, ops[0], None, holder)
            kept = [found for one in parts if (found := _assigned(one, function)) is not None]
            if len(ops) + len(kept) == 1 and kept and statement in (holder, kept[0]):
                value = kept[0].value
                assert isinstance(value, ast.Call)
                if session_of(value, spot) is None:
                    return _Made(spot, function, text, session.graph, value, kept[0], holder)
    return None


def _assigned(node: ast.expr, function: Function) -> ast.Assign | None:
    """The only assignment of a call to a name of a function."""
    found = [
        one for one in ast.walk(function)
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
        and isinstance(node, ast.Name) and one.targets[0].id == node.id
    ]  # fmt: skip
    stored = [
        one for one in ast.walk(function)
        if isinstance(one, ast.Name) and isinstance(node, ast.Name) and one.id == node.id
        and not isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    return found[0] if len(found) == len(stored) == 1 and isinstance(found[0].value, ast.Call) else None


def _outside(made: _Made) -> Edit | None:
    """The op above the body's definition, where its names are known there, in the same graph."""
    source = made.spot.source
    above = made.function if isinstance(made.function, ast.FunctionDef) else made.run
    if "self" in names(made.value) or not isinstance(above, ast.stmt) or made.function not in ast.walk(above):
        return None
    first = min([above.lineno, *(one.lineno for one in getattr(above, "decorator_list", []))])
    around = list(source.around(above))
    if isinstance(next(iter(around), None), ast.ClassDef):
        return None
    blocks = {id(one) for one in around if isinstance(one, ast.With)}
    for name in set(names(made.value)):
        set_at = [one for one in ast.walk(source.tree) if _sets(one, name)]
        if any(isinstance(one, (ast.Import, ast.ImportFrom)) for one in set_at):
            continue
        outer = [one for one in set_at if not isinstance(one, ast.arg)]
        if len(set_at) != len(outer) or len(outer) != 1 or getattr(outer[0], "lineno", first) >= first:
            return None
        if (
            not isinstance(outer[0], ast.FunctionDef)
            and not {id(one) for one in source.around(outer[0]) if isinstance(one, ast.With)} <= blocks
        ):
            return None  # the graph may be another one
    others = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Name) and one.id == made.name and one not in ast.walk(made.function)
    ]  # fmt: skip
    if others or made.run.lineno - first >= _MOST:
        return None
    line = f"{indent_of(source.lines[first - 1])}{made.name} = {source.text(made.value)}"
    return _moved(made, Edit(made.spot.file, first, first - 1, tuple(line.split("\n"))))


def _sets(node: ast.AST, name: str) -> bool:
    """Whether a node gives a name a value."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any((one.asname or one.name.partition(".")[0]) == name for one in node.names)
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name == name
    if isinstance(node, ast.arg):
        return node.arg == name
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _moved(made: _Made, there: Edit) -> Edit | None:
    """The op's lines at another place, and the run with its name."""
    source, file = made.spot.source, made.spot.file
    if made.kept is None:
        here = edit_of(file, source.replaced({made.value: made.name}))
    else:
        first, last = source.span(made.kept)
        if len(source.block(made.kept) or []) < 2:
            return None
        here = Edit(file, first, last, ())
    if here is not None and here.first == there.first:
        return Edit(file, here.first, here.last, (*there.lines, *here.lines))
    return together([there, here], source.lines) if here is not None else None


def _under_graph(made: _Made, moved: bool) -> Edit | None:
    """The op under the session's graph, in the body: above the loops of a generator if `moved`."""
    source, file = made.spot.source, made.spot.file
    if isinstance(made.function, ast.Lambda) or made.run.lineno != source.span(made.run)[0]:
        return None
    statement = made.kept if made.kept is not None else made.run
    if made.kept is None and isinstance(made.run, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
        return None
    top: ast.stmt = statement
    for one in source.around(statement) if moved else ():
        if one is made.function:
            break
        if isinstance(one, (ast.For, ast.While)):
            top = one
    blanks = indent_of(source.lines[top.lineno - 1])
    lines = (
        f"{blanks}with {made.session}.graph.as_default():",
        f"{blanks}    {made.name} = {source.text(made.value)}",
    )
    if made.run.lineno - top.lineno >= _MOST or "\n" in source.text(made.value):
        return None
    if made.kept is not None and top is statement:
        return Edit(file, *source.span(statement), lines)
    return _moved(made, Edit(file, top.lineno, top.lineno - 1, lines))
