"""A session of TensorFlow 1 that is closed, of another graph, or asked for other than tensors; `eval()` without one."""

from __future__ import annotations

import ast
import difflib
import re
from typing import Any

from pyfunc_debug.doctor.failures.graphs.uninitialized import session_of
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_symbolic, lookup

RULE = "session-feed"
_CLOSED = "Attempted to use a closed Session"
_EMPTY = re.compile(r"The Session graph is empty|is not an element of this graph")
_NO_NAME = re.compile(r"[Tt]he name '([^':]+)(:\d+)?' refers to (?:a Tensor|an Operation) which does not exist")
_KIND = re.compile(r"^(?:Argument `fetch`|Fetch argument) .*has invalid type \"(\w+)\"", re.DOTALL)
_NO_SESSION = "No default session is registered"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one of these is why a run failed."""
    spot, statement, said = situation.last, situation.statement, situation.message
    if spot is None or statement is None or situation.body:
        return None
    if _NO_SESSION in said:
        return _without_session(spot, statement)
    runs = [(one, held) for one in calls(statement) if (held := session_of(one, spot)) is not None]
    if len(runs) != 1 or type(runs[0][1].graph).__name__ == "FuncGraph":
        return None
    run, session = runs[0]
    name = spot.source.text(run.func.value) if isinstance(run.func, ast.Attribute) else ""
    if _CLOSED in said:
        return _closed(spot, statement, name)
    wanted = argument(run, 0, "fetches")
    if wanted is None:
        return None
    if _EMPTY.search(said):
        return _of_other_graph(spot, wanted, session, name)
    missing, kind = _NO_NAME.search(said), _KIND.search(said)
    if missing is not None:
        return _misspelled(spot, wanted, session.graph, missing[1])
    return _of_kind(spot, wanted, kind[1]) if kind is not None else None


def _told(spot: Spot, cause: str, pieces: dict[ast.expr, str], advice: str) -> Explanation:
    edit = edit_of(spot.file, spot.source.replaced(pieces)) if pieces else None
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else advice)


def _without_session(spot: Spot, statement: ast.stmt) -> Explanation | None:
    found = [
        one for one in calls(statement)
        if isinstance(one.func, ast.Attribute) and one.func.attr in ("eval", "run") and (
            is_symbolic(held := lookup(one.func.value, spot)) or type(held).__name__ == "Operation")
        and not any(word.arg == "session" for word in one.keywords)
    ]  # fmt: skip
    if not found:
        return None
    graph = lookup(found[0].func.value, spot).graph  # type: ignore[attr-defined]
    if type(graph).__name__ != "Graph":
        return None  # what a function is traced into: no session runs it
    names = [
        name for name, one in {**spot.module, **spot.variables}.items()
        if type(one).__name__ in ("Session", "InteractiveSession") and one.graph is graph
    ]  # fmt: skip
    text = spot.source.text(found[0].func)
    pieces: dict[ast.expr, str] = {}
    if len(names) == 1:
        pieces = {one: spot.source.with_argument(one, f"session={names[0]}") for one in found}
    cause = (
        f"{text} takes the default session, and there is none here: a session is the default in its own `with` block."
    )
    return _told(spot, cause, pieces, f"Write {text}(session=sess) with the session of its graph.")


def _closed(spot: Spot, statement: ast.stmt, name: str) -> Explanation:
    tree, function = spot.source.tree, spot.function
    set_at = max((line for line in _set_at(tree, name) if line < statement.lineno), default=0)
    blocks = [
        one for one in ast.walk(tree)
        if isinstance(one, ast.With) and (one.end_lineno or one.lineno) < statement.lineno and one.lineno == set_at
        and any(
            dotted(item.optional_vars) == name and "as_default" not in ast.unparse(item.context_expr)
            for item in one.items
        ) and spot.source.function(one.lineno) is function
    ]  # fmt: skip
    closes = [one for one in calls(tree) if dotted(one.func) == f"{name}.close" and set_at < one.lineno < spot.line]
    if blocks and not closes:
        cause = f"{name} is closed: the `with` of line {blocks[-1].lineno} closes it at the end of its block."
        return _told(spot, cause, {}, f"Move this line into the block, behind line {blocks[-1].end_lineno}.")
    where = f" (line {closes[-1].lineno} closes it)" if len(closes) == 1 and not blocks else ""
    return _told(spot, f"{name} is closed{where}: a closed session runs nothing.", {}, "Close it behind the last run.")


def _set_at(tree: ast.AST, name: str) -> list[int]:
    """The lines that set a name or an attribute."""
    found = [one for one in ast.walk(tree) if isinstance(one, (ast.Name, ast.Attribute)) and dotted(one) == name]
    return [one.lineno for one in found if isinstance(one.ctx, ast.Store)]


def _of_other_graph(spot: Spot, wanted: ast.expr, session: Any, name: str) -> Explanation | None:
    """A tensor of one graph, and a session of another."""
    for one in ast.walk(wanted):
        tensor = lookup(one, spot) if isinstance(one, (ast.Name, ast.Attribute)) else None
        graph = getattr(tensor, "graph", None) if is_symbolic(tensor) else None
        if graph is None or graph is session.graph or type(graph).__name__ != "Graph":
            continue
        text = spot.source.text(one)
        cause = (
            f"{text} is of another graph than {name}: a session runs the graph that was the default where it was made, "
            "or that it was given."
        )
        made = [
            call for call in calls(spot.source.tree)
            if dotted(call.func).rpartition(".")[2] in ("Session", "InteractiveSession")
        ]  # fmt: skip
        known = [key for key, value in {**spot.module, **spot.variables}.items() if value is graph]
        if len(made) != 1:
            return _told(spot, cause, {}, f"Make it as Session(graph={text}.graph).")
        new = f"graph={known[0] if known else f'{text}.graph'}"
        given = next((word.value for word in made[0].keywords if word.arg == "graph"), None)
        pieces: dict[ast.expr, str] = {}
        function = spot.source.function(made[0].lineno)
        if known and function is spot.source.function(spot.line) and not made[0].args:
            pieces = {made[0]: spot.source.with_argument(made[0], new)} if given is None else {given: known[0]}
        told = _told(spot, cause, pieces, f"Make the session of line {made[0].lineno} with {new}.")
        return told
    return None


def _misspelled(spot: Spot, wanted: ast.expr, graph: Any, name: str) -> Explanation | None:
    texts = [
        one for one in ast.walk(wanted)
        if isinstance(one, ast.Constant) and type(one.value) is str and one.value.partition(":")[0] == name
    ]  # fmt: skip
    if not texts:
        return None
    near = difflib.get_close_matches(name, [one.name for one in graph.get_operations()], 3)
    said = f"The graph has no op of the name {name}"
    if not near:
        return _told(spot, f"{said}.", {}, "Give the op a name, or fetch the tensor itself.")
    end = str(texts[0].value).partition(":")[2]
    pieces: dict[ast.expr, str] = dict.fromkeys(texts, f'"{near[0]}{":" + end if end else ""}"')
    return _told(spot, f"{said}; it has {near[0]}.", pieces, f"Fetch {near[0]}.")


def _of_kind(spot: Spot, wanted: ast.expr, kind: str) -> Explanation | None:
    """An optimizer, a saver, a function, ...: an object that is not a tensor."""
    found = [
        one for one in ast.walk(wanted) if isinstance(one, (ast.Name, ast.Attribute))
        and (held := lookup(one, spot)) is not None and type(held).__name__ == kind
        and (type(held).__module__.startswith("tensorflow.") or kind in ("function", "method"))
    ]  # fmt: skip
    if not found:
        return None
    text = spot.source.text(found[0])
    cause = f"{text} is a {kind}, and a run fetches tensors and ops."
    made = [
        dotted(one.targets[0]) for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and dotted(one.targets[0])
        and dotted(one.value.func) in (f"{text}.minimize", f"{text}.apply_gradients")
    ]  # fmt: skip
    if len(set(made)) == 1:
        return _told(spot, f"{cause} {made[0]} is the op that it made.", {found[0]: made[0]}, "")
    if kind.endswith("Optimizer"):
        return _told(spot, cause, {}, f"Fetch the op that {text}.minimize(loss) gives.")
    return _told(spot, cause, {}, f"Fetch what {text} makes, or leave it out.")
