"""A graph from a file that calls a Python function of the process that saved it: this one has none of that name."""

from __future__ import annotations

import ast
import re
from types import FunctionType
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.interception.graphs.held import held
from pyfunc_debug.program.frames import is_installed, is_user

RULE = "serialization"
_SAID = re.compile(r"Could not find callback with key=(pyfunc_(\d+))|callback (pyfunc_(\d+)) is not found")
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_LOADS = ("load", "load_model", "import_graph_def", "import_meta_graph", "TFSMLayer")
_OTHERS = ("np", "numpy", "json", "pickle", "yaml", "torch", "joblib", "toml")
"""Modules whose `load` is of something else."""
_NODES = ("py_function", "numpy_function", "py_func")
_LAST = "save up to its inputs, return these, and call the Python function here on them"
_MOST, _WRITTEN = 3, 60
"""Inputs or results of a node that are written out, and letters of their names."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the registry did not have a node's function."""
    text, spot = situation.text, situation.last
    found = _SAID.search(text)
    if spot is None or found is None:
        return None
    token, number = found[1] or found[3], int(found[2] or found[4])
    known = situation.rows("SELECT 1 FROM node WHERE token = ? AND file IS NOT NULL", (token,))
    if known:
        return None
    node = _NODE.search(text)
    name = f" ({node[1]})" if node is not None else ""
    cause = (
        f"This graph comes from a file with a py_function in it{name}. A file holds of its Python only the name "
        f"{token}, and only the process that saved it has a function of that name."
    )
    return (
        _between(situation, spot, cause)
        or (None if _eager(node) else _registered(situation, cause, token, number))
        or _in_two(situation, spot, cause)
        or Explanation(
            RULE, spot.file, spot.line, cause, None,
            f"Where it is saved{_where(spot)}: write what it does with TensorFlow's ops and save again, or "
            f"{_first(situation, token) or _LAST}.",
        )
    )  # fmt: skip


def _first(situation: Situation, token: str) -> str:
    """What to save where the node is the first op on the signature's inputs: nothing stands in front of it."""
    for spot in situation.spots:
        for one in calls(spot.source.tree):
            given = (*one.args, *(part.value for part in one.keywords))
            texts = [part.value for part in given if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            loads = dotted(one.func).rpartition(".")[2] in _LOADS
            takes = next((found for text in texts if loads and (found := _taken_first(text, token))), ())
            if takes:
                keys = " and ".join(f'"{one}"' for one in takes)
                return f"save with what it returns as the input in the place of {keys}; call it here, and feed that"
    return ""


def _taken_first(folder: str, token: str) -> tuple[str, ...]:
    """The inputs that a node of a SavedModel is given, where these are the signature's own."""
    try:
        nodes = held(folder).nodes
    except BadOptionError:
        return ()
    return next((node.takes for node in nodes if node.token == token), ())


def _eager(node: re.Match[str] | None) -> bool:
    """Whether a node calls a py_function, by TensorFlow's name for it: its results are converted as it was made."""
    return node is not None and node[1].rpartition("/")[2].startswith("EagerPyFunc")


def _between(situation: Situation, spot: Spot, cause: str) -> Explanation | None:
    """A session's run in two: what the node was given is fetched, and what its function makes of it is fed."""
    op = getattr(situation.error, "op", None)
    given, made = ([one.name for one in getattr(op, part, ())] for part in ("inputs", "outputs"))
    statement = spot.statement
    if statement is None or hasattr(statement, "body") or not 0 < len(given) <= _MOST or not 0 < len(made) <= _MOST:
        return None
    runs = [
        one for one in calls(statement)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "run" and argument(one, 0, "fetches") is not None
    ]  # fmt: skip
    if len(runs) != 1:
        return None
    run, source = runs[0], spot.source
    fed, fetches = argument(run, 1, "feed_dict"), argument(run, 0, "fetches")
    assert fetches is not None
    session, before = source.text(run.func), "" if fed is None else f", feed_dict={source.text(fed)}"
    function = _function(spot, len(given))
    if function is None:
        return None
    one = len(given) == 1
    what = f'"{given[0]}"' if one else f"[{', '.join(f'{name!r}' for name in given)}]".replace("'", '"')
    called = f"{function}({'given' if one else '*given'})"
    into = {made[0]: called} if len(made) == 1 else {name: f"made[{place}]" for place, name in enumerate(made)}
    feeds = ", ".join(f'"{name}": {text}' for name, text in into.items())
    if isinstance(fed, ast.Dict):
        feeds = ", ".join([*_entries(source.text(fed)), feeds])
    elif fed is not None and not (isinstance(fed, ast.Constant) and fed.value is None):
        feeds = f"**{source.text(fed)}, {feeds}"
    placed = source.replaced({run: f"{session}({source.text(fetches)}, feed_dict={{{feeds}}})"})
    if placed is None or placed[0] != statement.lineno:
        return None
    blanks = indent_of(source.lines[statement.lineno - 1])
    lines = [f"{blanks}given = {session}({what}{before})"]
    lines += [] if len(made) == 1 else [f"{blanks}made = {called}"]
    does = "Fetch what the node was given, call the function here, and feed what it returns."
    edit = Edit(spot.file, placed[0], placed[1], (*lines, placed[2]))
    return Explanation(RULE, spot.file, spot.line, cause, edit, f"{does} {_taken(spot, function)}", "likely")


def _in_two(situation: Situation, spot: Spot, cause: str) -> Explanation | None:
    """The same in words, where the function is not here yet: the graph goes on behind the node with what is fed."""
    op = getattr(situation.error, "op", None)
    given, made = ([one.name for one in getattr(op, part, ())] for part in ("inputs", "outputs"))
    parts = list(dict.fromkeys(given))
    if not 0 < len(parts) <= _MOST or len(made) != 1 or sum(map(len, (*parts, *made))) > _WRITTEN:
        return None
    advice = (
        f"Copy that function here and run twice: fetch what the node was given ({', '.join(parts)}), and feed "
        f"{made[0]} with what it makes of that. Or save again with TensorFlow's ops in its place."
    )
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _entries(text: str) -> list[str]:
    """What stands in a dict's braces."""
    inside = text[1:-1].strip().rstrip(",")
    return [inside] if inside else []


def _registered(situation: Situation, cause: str, token: str, number: int) -> Explanation | None:
    """The function under the name that the file holds: names are given in the order in which they are asked for."""
    if situation.rows("SELECT 1 FROM node WHERE file IS NOT NULL"):
        return None
    for spot in reversed(situation.spots):
        loads = [
            one for one in calls(spot.source.tree)
            if dotted(one.func).rpartition(".")[2] in _LOADS and dotted(one.func).partition(".")[0] not in _OTHERS
        ]  # fmt: skip
        statement = spot.source.statement(loads[0].lineno) if len(loads) == 1 else None
        if statement is None or hasattr(statement, "body") or spot.source.function(statement.lineno) is not None:
            continue
        function, tf = _function(spot, None), alias(spot, "tensorflow")
        if function is None:
            return None
        blanks = indent_of(spot.source.lines[statement.lineno - 1])
        count = "" if number == 0 else f"for _ in range({number + 1}): "
        lines = (
            f"{blanks}with {tf}.Graph().as_default():  # functions get their names, pyfunc_0 first, as they are made",
            f"{blanks}    {count}{tf}.numpy_function({function}, [0.0], {tf}.float32)  # {token}, as in the file",
        )
        edit = Edit(spot.file, statement.lineno, statement.lineno - 1, lines)
        advice = (
            f"Give the function that name before anything else makes one. {_taken(spot, function)} Where no Python "
            "runs, as in a server, save again with TensorFlow's ops in its place."
        )
        return Explanation(RULE, spot.file, spot.line, cause, edit, advice, "likely")
    return None


def _taken(spot: Spot, function: str) -> str:
    made = _bodies(spot)
    why = f"line {made[0].lineno} makes a node of it" if made else "nothing else here calls it"
    return f"{function} is taken for it: {why}."


def _function(spot: Spot, count: int | None) -> str | None:
    """The one function of the user's that makes a node in this file, or that nothing in it calls; None for none.

    `count`: how many inputs it takes.
    """
    read = {one.id for one in ast.walk(spot.source.tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    made = {body.id for one in _bodies(spot) if isinstance(body := argument(one, 0, "func"), ast.Name)}
    found = [
        name for name, value in spot.module.items()
        if (name in made if made else name not in read) and _of_user(value) and (count is None or _takes(value, count))
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _bodies(spot: Spot) -> list[ast.Call]:
    """The calls in a file that make a node of Python."""
    return [one for one in calls(spot.source.tree) if dotted(one.func).rpartition(".")[2] in _NODES]


def _where(spot: Spot) -> str:
    """The line that makes the node, where the program that loads has it as well."""
    made = _bodies(spot)
    return f" (line {made[0].lineno} here)" if len(made) == 1 else ""


def _of_user(value: Any) -> bool:
    file = value.__code__.co_filename if isinstance(value, FunctionType) else ""
    return bool(file) and is_user(file) and not is_installed(file)


def _takes(function: FunctionType, count: int) -> bool:
    code = function.__code__
    return code.co_argcount - len(function.__defaults__ or ()) <= count <= code.co_argcount
