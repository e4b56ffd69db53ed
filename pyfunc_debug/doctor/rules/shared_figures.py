"""Calls that draw through pyplot at the same time: its current figure is one for the whole process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies import own_figures
from pyfunc_debug.doctor.bodies.current_figures import Body, side_by_side
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.rules.nondeterminism import unequal
from pyfunc_debug.records import Finding

NAMES = ("shared-state",)
_SHOWN = 3


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all bodies that do so."""
    bodies = side_by_side(facts)
    if not bodies:
        return
    drawn = [one for body in bodies for one in body.drawn]
    first, calls = drawn[0], sum(body.calls for body in bodies)
    beside = [call for body in bodies for call in body.beside]
    names = list(dict.fromkeys(facts.name(body.nodes[0]) for body in bodies))
    shown = list(dict.fromkeys(pastes.text_of(facts, one.file, one.call.func) for one in drawn))
    every = [node.id for body in bodies for node in body.nodes]
    pair = next((found for body in bodies if (found := _unequal(facts, body)) is not None), None)
    more = ", ..." if len(shown) > _SHOWN else ""
    verb = "draws" if len(names) == 1 else "draw"
    message = (
        f"{' and '.join(names[:_SHOWN])} {verb} through pyplot ({', '.join(shown[:_SHOWN])}{more})"
        f", which keeps one current figure for the whole process. {len(beside):,} of {calls:,} calls ran while "
        "another one did, in another thread: what one draws can land in the other's figure, or is lost"
    )
    if pair is not None:
        message += f". For equal inputs, calls #{pair[0]} and #{pair[1]} gave different outputs"
    fix, own = _fix(facts, bodies)
    also = "or keep pyplot, and let one call at a time draw: a lock around all that the body does"
    lines = (f"line {one.call.lineno}: {facts.line(one.file, one.call.lineno)}" for one in drawn[:_SHOWN])
    yield Finding(
        NAMES[0], "warning", bodies[0].nodes[0].id, (pair[:2] if pair is not None else tuple(beside[:2])),
        message, fix, first.file, first.call.lineno, several(every), (*lines, *([also] if own else [])),
        confidence="measured" if pair is not None else "likely",
    )  # fmt: skip


def _unequal(facts: Facts, body: Body) -> tuple[int, int, bool] | None:
    """Two calls of a body with equal inputs and unequal outputs, where nothing else in its source says why."""
    tree = facts.tree(body.nodes[0].file)
    if tree is None or code.is_random(body.function, tree) or code.impure(body.function) is not None:
        return None
    return next((found for node in body.nodes if (found := unequal(facts, node)) is not None), None)


def _fix(facts: Facts, bodies: Sequence[Body]) -> tuple[str, bool]:
    """What to paste, and whether it is a figure of each call's own."""
    edits, rest = own_figures.with_own_figures(facts, bodies)
    locked = own_figures.with_lock(facts, rest) if rest else []
    if locked is None or _meet(edits, locked):
        return (
            "from matplotlib.figure import Figure\nfig = Figure()\nax = fig.subplots()  # then ax.hist, ax.set_title, "
            "..., fig.savefig in place of plt.hist, plt.title, ...: each call has its own"
        ), False
    return pastes.written(*edits, *locked), not rest


def _meet(edits: Sequence[Edit], others: Sequence[Edit]) -> bool:
    """Whether two edits go to one place."""
    return any(one.file == other.file and one.first == other.first for one in edits for other in others)
