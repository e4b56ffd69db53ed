"""Runs of tf.functions counted from the first: what makes "the same step" of two processes the same."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from pyfunc_debug.pfrec import Reader

Step = tuple[str, str | None, int | None, int | None]
"""A tf.function object: name, file, line, and its number among those of one Python function."""


@dataclass(frozen=True)
class FirstRuns:
    """The runs of a tf.function object since its first graph trace, up to the first that failed.

    Attributes:
      traces: Its graph traces.
      runs: Number, begin and end (-1: never) of each, ns.
    """

    traces: tuple[int, ...]
    runs: tuple[tuple[int, int, int], ...]


def first_runs(reader: Reader, among: Container[int] | None = None) -> dict[Step, FirstRuns]:
    """The runs that can be counted off against those of another process.

    Left out are functions that ran before the recording, that ran on several threads, and recordings that lost runs.

    Args:
      reader: The recording.
      among: Only functions all of whose graph traces are among these.
    """
    if (reader.meta.get("dropped") or {}).get("runs"):
        return {}
    traces: dict[tuple[int, int | None], list[tuple[int, int]]] = {}
    every = "SELECT id, function, object, ordinal FROM trace WHERE error IS NULL"
    for number, function, made, ordinal in reader.rows(every):
        traces.setdefault((function, made), []).append((number, ordinal))
    found: dict[Step, FirstRuns] = {}
    for (function, made), own in traces.items():
        if min(ordinal for _, ordinal in own) != 1 or (among is not None and any(one not in among for one, _ in own)):
            continue
        marks = ", ".join(str(number) for number, _ in own)
        runs = reader.rows(
            "SELECT id, start_ns, ifnull(start_ns + duration_ns, -1), error IS NOT NULL, thread FROM run "
            f"WHERE kind = 'forward' AND trace IN ({marks}) ORDER BY start_ns"
        )
        failed = next((index for index, run in enumerate(runs) if run[3]), len(runs))
        named = reader.rows("SELECT name, file, line FROM function WHERE id = ?", (function,))
        if runs[:failed] and named and len({run[4] for run in runs}) == 1:
            step = (*named[0], made)
            found[step] = FirstRuns(tuple(one for one, _ in own), tuple(run[:3] for run in runs[:failed]))
    return found
