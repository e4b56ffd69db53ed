"""Pastes for bodies that draw through pyplot: a figure of each call's own, or a lock around each call."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.current_figures import OF_AXES, OF_FIGURE, SET, Body, pyplot_name
from pyfunc_debug.doctor.bodies.decorated import decorator
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of

_HARMLESS = frozenset(("Circle", "Normalize", "Polygon", "Rectangle", "cm", "colormaps", "get_cmap", "imread"))
"""What pyplot has that draws nothing, and asks for no figure."""
_WORDS = frozenset(
    ("figsize", "dpi", "facecolor", "edgecolor", "frameon", "linewidth", "tight_layout", "constrained_layout", "layout")
)
"""Words of `plt.figure` that `Figure` has too."""
_OTHER_AXES = frozenset(("add_subplot", "add_axes", "gca", "subplots", "add_gridspec", "sca", "clf", "clear"))
_FIGURE = "from matplotlib.figure import Figure"
_CANVAS = "from matplotlib.backends.backend_agg import FigureCanvasAgg"
_GONE = "\0"
_LOCK = (
    "pyplot_lock = threading.RLock()", "", "", "def one_at_a_time(function):", "    @functools.wraps(function)",
    "    def locked(*args, **words):", "        with pyplot_lock:", "            return function(*args, **words)", "",
    "    return locked", "", "",
)  # fmt: skip


def with_own_figures(facts: Facts, bodies: Sequence[Body]) -> tuple[list[Edit], list[Body]]:
    """Bodies with a figure of each call's own, and their imports; and the bodies of which it is not certain."""
    edits, rest, needed = list[Edit](), list[Body](), dict[str, dict[str, int]]()
    for body in bodies:
        found = _with_own_figure(facts, body)
        if found is None:
            rest.append(body)
            continue
        edits.append(found[0])
        lines, top = needed.setdefault(found[0].file, {}), _top(facts, found[0].file, body.function)
        for line in found[1]:
            lines[line] = min(top, lines.get(line, top))
    for file, lines in needed.items():
        there = {line.strip() for line in facts.source(file)}
        missing = [line for line in lines if line not in there]
        above = pastes.above(facts, file, min(lines.values()), *missing, "", "") if missing else None
        edits += [] if above is None else [above]
    return edits, rest


def _with_own_figure(facts: Facts, body: Body) -> tuple[Edit, list[str]] | None:
    """A body's lines with the methods of a figure that it makes, and its imports; None where a line is not certain."""
    function, file = body.function, body.nodes[0].file
    if (
        not isinstance(function, ast.FunctionDef)
        or file is None
        or any(one.holder is not function for one in body.drawn)
    ):
        return None
    own = pastes.source(facts, file)
    known, every = imports(own), list(code.own_nodes(function))
    named = [(one, name) for one in every if isinstance(one, ast.Call) and (name := pyplot_name(one, known))]
    made = [one for one, name in named if name == "figure"]
    maker = own.statement(made[0].lineno) if len(made) == 1 else None
    if maker is None or not _is_plain(made[0], maker) or not _all_named(every, named, known):
        return None
    fig = maker.targets[0].id if isinstance(maker, ast.Assign) and isinstance(maker.targets[0], ast.Name) else ""
    fig = fig or own.unused_name("fig")
    if _asks_for_axes(every, fig) or not _behind(own, maker, [one for one, _ in named if one is not made[0]]):
        return None
    ax = own.unused_name("ax")
    canvas = any(isinstance(one, ast.Attribute) and one.attr == "canvas" for one in every)
    head = "" if isinstance(maker, ast.Assign) else f"{fig} = "
    lines = [f"{head}Figure({own.arguments(made[0])})", *([f"FigureCanvasAgg({fig})"] if canvas else [])]
    indent = indent_of(own.lines[maker.lineno - 1])
    pieces: dict[ast.expr, str] = {made[0]: f"\n{indent}".join((*lines, f"{ax} = {fig}.subplots()"))}
    for call, name in named:
        if call is not made[0] and name not in _HARMLESS:
            text = _translated(own, call, name, fig, ax)
            if text is None:
                return None
            pieces[call.func if text != _GONE and name not in ("gca", "gcf", "colorbar") else call] = text
    if any(one is not other and one in ast.walk(other) for one in pieces for other in pieces):
        return None  # `plt.imshow(plt.gca()...)`
    edit = _edit(own, file, pieces)
    return None if edit is None else (edit, [_FIGURE, *([_CANVAS] if canvas else [])])


def _is_plain(made: ast.Call, maker: ast.stmt) -> bool:
    """Whether a statement is `fig = plt.figure(figsize=...)`, or `plt.figure()` alone."""
    alone = isinstance(maker, ast.Expr) and maker.value is made
    given = isinstance(maker, ast.Assign) and maker.value is made and len(maker.targets) == 1
    named = isinstance(maker, ast.Assign) and isinstance(maker.targets[0], ast.Name)
    return (alone or (given and named)) and not made.args and all(word.arg in _WORDS for word in made.keywords)


def _all_named(every: Sequence[ast.AST], named: Sequence[tuple[ast.Call, str]], known: dict[str, str]) -> bool:
    """Whether a function uses pyplot in no other way than by the calls that are known; `plt.cm.viridis` is none."""
    if any(isinstance(one, (ast.FunctionDef, ast.Lambda)) for one in every):
        return False  # which may draw, too
    heads = {name for name, full in known.items() if "pyplot" in full or "pylab" in full}
    within = {id(part) for one, _ in named for part in ast.walk(one.func)}
    for one in every:
        if isinstance(one, ast.Attribute) and dotted(one.value) in heads and one.attr in _HARMLESS:
            within |= {id(part) for part in ast.walk(one)}
    # what libraries draw, as seaborn and pandas do, goes to the current axes, and cannot be seen here
    foreign = {name for name, full in known.items() if full.partition(".")[0] in ("seaborn", "librosa", "pandas")}
    return not any(isinstance(one, ast.Name) and (one.id in foreign or (one.id in heads and id(one) not in within))
                   for one in every)  # fmt: skip


def _asks_for_axes(every: Sequence[ast.AST], fig: str) -> bool:
    """Whether a figure is asked for axes of its own, which are then the current ones, or is made again."""
    stored = [one for one in every if isinstance(one, ast.Name) and one.id == fig and isinstance(one.ctx, ast.Store)]
    asked = [
        one for one in every if isinstance(one, ast.Attribute) and one.attr in _OTHER_AXES and dotted(one.value) == fig
    ]
    return len(stored) > 1 or bool(asked)


def _behind(own: Source, maker: ast.stmt, calls: Sequence[ast.Call]) -> bool:
    """Whether all calls stand in the statements behind one, in its block."""
    block = own.block(maker) or []
    rest = block[block.index(maker) + 1 :] if maker in block else []
    inside = {id(part) for one in rest for part in ast.walk(one)}
    return all(id(one) in inside for one in calls)


def _translated(own: Source, call: ast.Call, name: str, fig: str, ax: str) -> str | None:
    """What stands in the place of a call's function; of the whole call where it goes, or asks for figure or axes."""
    statement = own.statement(call.lineno)
    alone = isinstance(statement, ast.Expr) and statement.value is call
    if name in OF_AXES:
        return f"{ax}.{name}"
    if name in OF_FIGURE:
        return f"{fig}.{name}"
    if name in SET:
        plain = name not in ("xticks", "yticks") or (len(call.args) in (1, 2) and not call.keywords)
        return f"{ax}.set_{name}" if alone and (call.args or call.keywords) and plain else None
    if name in ("gca", "gcf") and not call.args and not call.keywords:
        return ax if name == "gca" else fig
    if name == "colorbar" and len(call.args) == 1 and not any(word.arg in ("ax", "cax") for word in call.keywords):
        return f"{fig}.colorbar({own.arguments(call)}, ax={ax})"
    closed = [own.text(one) for one in call.args]
    if name == "close" and alone and not call.keywords and closed in ([], [fig], ["'all'"], ['"all"']):
        return _GONE
    return None


def _edit(own: Source, file: str, pieces: dict[ast.expr, str]) -> Edit | None:
    first, last, lines = own.kept_lines(pieces)
    kept = []
    for line in "\n".join(lines).split("\n"):
        if _GONE not in line:
            kept.append(line)
        elif not line.strip().startswith(_GONE) or line.strip().removeprefix(_GONE).lstrip()[:1] not in ("", "#"):
            return None
    for one, text in pieces.items():
        statement = own.statement(one.lineno) if text == _GONE else None
        if statement is not None and len(own.block(statement) or [0, 0]) < 2:
            return None  # a block of nothing
    return Edit(file, first, last, tuple(kept))


def _top(facts: Facts, file: str, function: ast.AST) -> int:
    """The line on which the outermost function or class around a function begins."""
    line = pastes.first_line(function)
    outer = [
        one for one in pastes.around(facts.tree(file), line, ast.stmt)
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]  # fmt: skip
    return pastes.first_line(outer[0]) if outer else line


def with_lock(facts: Facts, bodies: Sequence[Body]) -> list[Edit] | None:
    """Functions below a decorator that lets one call at a time draw; None for lambdas, and below other decorators."""
    places: dict[str, dict[int, ast.FunctionDef]] = {}
    for body in bodies:
        function, file = body.function, body.nodes[0].file
        if isinstance(function, ast.Lambda):  # what it calls
            function, file = body.drawn[0].holder, body.drawn[0].file
            if any(one.holder is not function for one in body.drawn):
                return None
        if not isinstance(function, ast.FunctionDef) or file is None or function.decorator_list or decorator(function):
            return None
        places.setdefault(file, {})[function.lineno] = function
    if len(places) != 1:
        return None
    ((file, functions),) = places.items()
    top = min(_top(facts, file, one) for one in functions.values())
    modules = [one for one in ("functools", "threading") if pastes.module(facts, file, one) != one]
    text = (*(f"import {one}" for one in modules), *([""] if modules else []), *_LOCK)
    edits = []
    for line in functions:
        indent = indent_of(facts.source(file)[line - 1])
        above = text if line == top else ()
        edits.append(Edit(file, line, line - 1, (*above, f"{indent}@one_at_a_time")))
    if top not in functions:
        edits.append(Edit(file, top, top - 1, text))
    return edits
