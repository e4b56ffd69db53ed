"""Bodies that draw through pyplot's current figure, which a process has once, and their calls that ran side by side."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Node

OF_AXES = frozenset(
    ("annotate", "arrow", "axhline", "axhspan", "axis", "axvline", "axvspan", "bar", "barh", "boxplot", "contour",
     "contourf", "errorbar", "eventplot", "fill", "fill_between", "grid", "hexbin", "hist", "hist2d", "hlines",
     "imshow", "legend", "loglog", "margins", "pcolor", "pcolormesh", "pie", "plot", "quiver", "scatter", "semilogx",
     "semilogy", "specgram", "stackplot", "stem", "step", "text", "tick_params", "violinplot", "vlines")
)  # fmt: skip
"""What pyplot asks of the current axes by the same name."""
SET = frozenset(("title", "xlabel", "ylabel", "xlim", "ylim", "xscale", "yscale", "xticks", "yticks"))
"""What axes have as `set_title`, ..."""
OF_FIGURE = frozenset(("savefig", "suptitle", "tight_layout", "subplots_adjust"))
_OTHERS = frozenset(
    ("axes", "box", "cla", "clabel", "clf", "clim", "colorbar", "delaxes", "draw", "figtext", "gca", "gcf", "gci",
     "locator_params", "matshow", "minorticks_on", "polar", "psd", "rgrids", "sca", "sci", "set_cmap", "spy",
     "streamplot", "subplot", "subplot2grid", "table", "thetagrids", "ticklabel_format", "tricontour", "tricontourf",
     "triplot", "twinx", "twiny")
)  # fmt: skip
_BEGUN = frozenset(("figure", "subplots", "subplot_mosaic", "clf", "cla", "close", "matshow"))
"""What makes, clears or closes a figure."""
_PYPLOT = ("matplotlib.pyplot", "matplotlib.pylab", "pylab")
_ROWS = 20_000
_LOCKS = re.compile(r"(?<![bc])lock|semaphore|mutex", re.I)
"""Not a block, and not a clock."""


@dataclass(frozen=True)
class Drawn:
    """A call of pyplot's that draws into the current figure, or asks for it.

    Attributes:
      file: Where it stands.
      name: What it calls: "hist".
      holder: The function that it stands in.
    """

    file: str
    call: ast.Call
    name: str
    holder: Definition


@dataclass(frozen=True)
class Body:
    """A body that draws through pyplot.

    Attributes:
      function: Its definition.
      drawn: Where it draws, in the order in which its source is read.
      calls: How many calls it had.
      beside: Those that ran while a call that draws so ran in another thread; the first with that one.
    """

    nodes: list[Node]
    function: Definition
    drawn: list[Drawn]
    calls: int = 0
    beside: tuple[int, ...] = ()


def pyplot_name(call: ast.Call, known: dict[str, str]) -> str:
    """`hist` of `plt.hist(h)`; "" for other calls.

    Args:
      call: The call.
      known: What its file imports.
    """
    head, _, rest = dotted(call.func).partition(".")
    module, _, name = f"{known.get(head, '')}.{rest}".rstrip(".").rpartition(".")
    return name if module in _PYPLOT else ""


def bodies(facts: Facts) -> list[Body]:
    """Bodies that draw through the current figure, without those that mention a lock."""
    if not any("pyplot" in line or "pylab" in line for file in _files(facts) for line in facts.source(file)):
        return []
    groups: dict[tuple[str, str | None, int | None], list[Node]] = {}
    for group in facts.lines:
        for node in group:
            groups.setdefault((node.body, node.file, node.line), []).append(node)
    found = []
    for (_, file, _), nodes in groups.items():
        function = facts.function(nodes[0])
        if function is None or file is None:
            continue
        parts = list(reached(facts, file, function))
        drawn = [one for where, part in parts for one in _drawn(facts, where, part)]
        if drawn and not any(_locked(facts, where, part) for where, part in parts):
            found.append(Body(nodes, function, drawn))
    return found


def kept_drawing(facts: Facts, node: Node) -> Drawn | None:
    """Where a body first draws into a current figure that it neither makes, clears nor closes: drawings add up."""
    function = facts.function(node)
    if function is None or node.file is None:
        return None
    parts = list(reached(facts, node.file, function))
    for file, part in parts:
        known = imports(pastes.source(facts, file))
        called = {pyplot_name(one, known) for one in ast.walk(part) if isinstance(one, ast.Call)}
        if called & _BEGUN:
            return None
    every = [one for file, part in parts for one in _drawn(facts, file, part)]
    return next((one for one in every if one.name in OF_AXES), None)


def side_by_side(facts: Facts) -> list[Body]:
    """Those of which calls ran while others, or calls of another of them, ran in another thread."""
    known = bodies(facts)
    of = {node.id: place for place, body in enumerate(known) for node in body.nodes}
    if not of:
        return []
    rows = facts.reader.rows(
        f"SELECT id, node, thread, start_ns, end_ns FROM call WHERE node IN ({', '.join('?' * len(of))}) "
        f"AND kind = 'forward' AND end_ns IS NOT NULL ORDER BY start_ns, id LIMIT {_ROWS}",
        list(of),
    )
    beside: dict[int, dict[int, None]] = {}
    counts: dict[int, int] = {}
    running: list[tuple[int, int, int, int]] = []
    for call, node, thread, start, end in rows:
        counts[of[node]] = counts.get(of[node], 0) + 1
        running = [one for one in running if one[0] > start]
        for _, other, its_node, its_thread in running:
            if thread != its_thread:
                beside.setdefault(of[its_node], {})[other] = None
                beside.setdefault(of[node], {})[call] = None
        running.append((end, call, node, thread))
    return [
        Body(body.nodes, body.function, body.drawn, counts[place], tuple(beside[place]))
        for place, body in enumerate(known) if place in beside
    ]  # fmt: skip


def _files(facts: Facts) -> list[str]:
    return [*facts.files, *facts.imported]


def _drawn(facts: Facts, file: str, function: Definition) -> Iterator[Drawn]:
    known, own = imports(pastes.source(facts, file)), set(code.parameters(function))
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Call) or code.root(one.func) in own:
            continue
        name = pyplot_name(one, known)
        numbered = name == "figure" and (one.args or any(word.arg == "num" for word in one.keywords))
        if numbered or name in OF_AXES or name in SET or name in OF_FIGURE or name in _OTHERS:
            yield Drawn(file, one, name, function)


def reached(facts: Facts, file: str, function: Definition, depth: int = 3) -> Iterator[tuple[str, Definition]]:
    """A function, functions inside it, and those of the user's files that it calls."""
    todo, seen = [(file, function, depth)], set[int]()
    while todo:
        where, one, left = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield where, one
        for part in code.own_nodes(one):
            if isinstance(part, (ast.FunctionDef, ast.Lambda)):
                todo.append((where, part, left))
            elif isinstance(part, ast.Call) and left:
                found = _called(facts, where, part, code.parameters(one))
                todo += [] if found is None else [(*found, left - 1)]


def _called(facts: Facts, file: str, call: ast.Call, given: Sequence[str]) -> tuple[str, ast.FunctionDef] | None:
    """The function of the user's that a call calls, by its name, and its file."""
    name = dotted(call.func)
    head, _, last = name.rpartition(".")
    known = imports(pastes.source(facts, file))
    if name and not head and name not in given and name not in known:
        return _defined(facts, file, name)
    if head in ("self", "cls"):
        return _defined(facts, file, last)
    module, _, rest = (f"{known[head]}.{last}" if head in known else known.get(name, "")).rpartition(".")
    path = os.sep + module.strip(".").replace(".", os.sep) + ".py"
    for one in _files(facts) if module else ():
        if one.endswith(path):
            return _defined(facts, one, rest)
    return None


def _defined(facts: Facts, file: str, name: str) -> tuple[str, ast.FunctionDef] | None:
    found = [one for one in pastes.walk(facts.tree(file), ast.FunctionDef) if one.name == name]
    return (file, found[0]) if len(found) == 1 else None


def _locked(facts: Facts, file: str, function: Definition) -> bool:
    """Whether a function, or a decorator of the user's above it, mentions a lock, or something made as one."""
    above = [
        code.root(one.func if isinstance(one, ast.Call) else one) for one in getattr(function, "decorator_list", ())
    ]
    parts: list[ast.AST] = [function]
    for name in above:
        defined = _defined(facts, file, name or "")
        parts += [] if defined is None else [defined[1]]
    made = {
        ast.unparse(target)
        for one in pastes.walk(facts.tree(file), ast.Assign)
        if isinstance(one.value, ast.Call) and _LOCKS.search(pastes.last_name(one.value.func))
        for target in one.targets
    }
    for part in parts:
        lines = facts.code(file)[part.lineno - 1 : part.end_lineno] if isinstance(part, ast.stmt | ast.expr) else []
        if any(_LOCKS.search(line) or any(re.search(rf"\b{re.escape(one)}\b", line) for one in made) for line in lines):
            return True
    return any(name is not None and _LOCKS.search(name) for name in above)
