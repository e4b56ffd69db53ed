"""What the GIL did in a recording, as text for a terminal of 80 columns and as plain values for JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from pyfunc_debug.analysis.contention import Contention, grade_of, over_time, wait_text
from pyfunc_debug.analysis.inputs import make_loops
from pyfunc_debug.analysis.stages import StageAnswer
from pyfunc_debug.analysis.tables import least_width, render
from pyfunc_debug.gil import RESOLUTION_NS, WORDS
from pyfunc_debug.gil.blame import thread_name
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.program.printable import printable

_BARS = "▁▂▃▄▅▆▇█"
_HOLDERS = 4
_BUCKETS = 60


def gil_text(
    reader: Reader, contention: Contention, stages: list[StageAnswer], width: int = 80, color: bool = False
) -> str:
    """One sentence a node, contention over time, who waited for whom, the longest waits, and tf.data's stages.

    Args:
      reader: The recording.
      contention: Its GIL.
      stages: Its tf.data stages.
      width: Columns of the terminal.
      color: Whether the terminal shows colours.
    """
    head = f"GIL: {WORDS[contention.grade]} ({contention.grade}; {contention.why})"
    parts = [_wrapped([head, "", *(one.sentence for one in contention.nodes), *contention.process], width)]
    if any(one.measured for one in contention.nodes):
        parts += [_over_time(reader), _matrix(contention, width, color), _worst(reader, contention, width, color)]
    parts += _stages(reader, stages, width)
    return "\n\n".join(part for part in parts if part)


def _over_time(reader: Reader) -> str:
    buckets = over_time(reader, _BUCKETS)
    if not buckets:
        return ""
    highest = max(waiting for _, waiting in buckets)
    if not highest:
        return ""
    marks = "".join(
        " " if not waiting else _BARS[min(len(_BARS) - 1, int(waiting / highest * len(_BARS)))]
        for _, waiting in buckets
    )
    return f"calls waiting, over time (highest bar {highest:.2g})\n{marks.rstrip()}"


def _matrix(contention: Contention, width: int, color: bool) -> str:
    if not contention.matrix:
        return ""
    holders: Counter[str] = Counter()
    waiters: Counter[str] = Counter()
    for (waiter, holder), ns in contention.matrix.items():
        waiters[waiter] += ns
        holders[holder] += ns
    ranked = [holder for holder, _ in holders.most_common()]
    for most in range(
        min(_HOLDERS, len(ranked)), 0, -1
    ):  # fewer columns where the terminal is too narrow for the digits
        shown = ranked[:most]
        rest = len(ranked) > most
        table = _table("ms waited", *map(thread_name, shown), *(["others"] if rest else []), "all")
        for waiter, total in waiters.most_common():
            own = [contention.matrix.get((waiter, holder), 0) for holder in shown]
            cells = [*own, *([total - sum(own)] if rest else []), total]
            table.add_row(waiter, *(f"{ns / 1e6:,.1f}" if ns else "0" for ns in cells))
        if least_width(table) <= width:
            break
    return f"{render(table, max(width, least_width(table)), color)}\nrows waited while columns ran"


def _worst(reader: Reader, contention: Contention, width: int, color: bool) -> str:
    if not contention.worst:
        return "no call waited for the GIL for longer than the noise of the measurement"
    bodies = {node.id: node.body for node in reader.nodes()}
    grades = dict(
        reader.rows(
            f"SELECT call, grade FROM gil WHERE call IN ({','.join(str(one.call) for one in contention.worst)})"
        )
    )
    table = _table("longest waits", "before", "inside")
    table.add_column("who ran meanwhile, ms", overflow="fold", ratio=1)
    for one in contention.worst:
        grade = grade_of(grades.get(one.call, ""))
        who = ", ".join(
            f"{thread_name(label)} {ns / 1e6:.2f}" for label, ns in sorted(one.blame, key=lambda item: -item[1])[:2]
        )
        inside = "-" if one.reacquire_ns is None else wait_text(one.reacquire_ns, grade)
        table.add_row(f"{bodies.get(one.node, '')} #{one.call}", wait_text(one.wait_ns, grade), inside, who)
    return render(table, max(width, least_width(table)), color)


def _stages(reader: Reader, stages: list[StageAnswer], width: int) -> list[str]:
    loops = [loop.sentence for loop in make_loops(reader)]
    parts = [_wrapped(loops, width)] if loops else []
    if stages:
        known = all(stage.setting is not None for stage in stages)
        head = f"what would help: at most this much faster than {'now' if known else 'num_parallel_calls=1'}"
        note = "what a body does in C (BLAS, memory) cannot be seen: real gains are smaller"
        parts.append(_wrapped([head, *map(str, stages), note], width))
    return parts


def _wrapped(texts: list[str], width: int) -> str:
    """Lines folded at a width, what follows the first indented."""
    lines = [line for text in texts for line in (printable(text).split("\n") if text else [""])]
    return "\n".join(
        textwrap.fill(line, width, initial_indent=" " * _indent(line), subsequent_indent=" " * (_indent(line) + 2))
        for line in lines
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", overflow="fold")
    return table


def as_dict(contention: Contention, stages: list[StageAnswer]) -> dict[str, Any]:
    """The same for JSON: times in ns, None for what is not known; numbers below `resolution_ns` are noise."""
    return {
        "grade": contention.grade,
        "why": contention.why,
        "resolution_ns": RESOLUTION_NS[contention.grade],
        "nodes": [
            {
                "id": one.node.id, "body": one.node.body, "grade": one.grade, "sentence": one.sentence,
                "calls": one.calls, "measured": one.measured, "wait_ns": one.wait_ns if one.measured else None,
                "worst_ns": one.worst_ns if one.measured else None, "held_ns": one.held_ns,
                "released_ns": one.released_ns, "reacquire_ns": one.reacquire_ns, "held_share": one.held_share,
                "held_samples": one.held_samples,
            }
            for one in contention.nodes
        ],
        "matrix": [{"waited": waiter, "ran": holder, "ns": ns} for (waiter, holder), ns in contention.matrix.items()],
        "worst": [
            {"call": one.call, "node": one.node, "wait_ns": one.wait_ns, "reacquire_ns": one.reacquire_ns,
             "blame": [list(entry) for entry in one.blame]}
            for one in contention.worst
        ],
        "stages": [
            {
                "node": one.contention.node.id, "function": one.function, "at_once": one.at_once,
                "present": None if one.setting is None else one.setting.parallel, "pool": one.pool,
                "without": dict(one.without), "cures": list(one.cures),
                "python_share": one.python_share, "wait_share": one.wait_share, "pool_share": one.pool_share,
                "at_most": [{"num_parallel_calls": c.calls, "speedup": c.speedup, "why": c.why} for c in one.ceilings],
            }
            for one in stages
        ],
        "process": list(contention.process),
    }  # fmt: skip
