"""A closer look at values: one of them large, a scalar over the calls of its node, two calls side by side."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import Array
from pyfunc_debug.records import Finding
from pyfunc_debug.report.pictures import LARGE, Elements, difference, elements, frames, picture, png, small_table

Json = dict[str, Any]
_POINTS = 120
_MAX_VALUES = 64
_FEW_VALUES = 4
_ABOUT_VALUES = ("nan-born", "inf-born", "range-jump", "saturated", "constant-output")
ROLES = {"input": "in", "output": "out"}
_COLUMNS = "role, position, path, dtype, shape, text, mean, note, kept, blob"


def look(connection: sqlite3.Connection, call: int, side: str, position: int) -> Json | None:
    """One value, as large as a person wants to see it; None if the recording does not hold it.

    Args:
      connection: The recording, open for reading.
      call: The call.
      side: `in` or `out`.
      position: Which of them.

    Returns:
      `text`, and where available: a `picture`, `frames` (the first of `count` images of a batch), and
      the elements as a `table` of texts.
    """
    role = next((role for role, name in ROLES.items() if name == side), side)
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM value WHERE call = ? AND role = ? AND position = ?", (call, role, position)
    ).fetchone()
    if row is None:
        return None
    value = dict(zip(_COLUMNS.split(", "), row, strict=True))
    kept = elements(connection, value["blob"]) if value["blob"] and value["kept"] == "full" else None
    shown, count = frames(kept) if kept is not None else ([], 0)
    return {
        "path": value["path"],
        "dtype": value["dtype"],
        "shape": json.loads(value["shape"]) if value["shape"] else None,
        "text": value["text"],
        "kept": value["kept"],
        "picture": picture(kept, LARGE) if kept is not None else None,
        "frames": shown,
        "count": count,
        "table": small_table(kept) if kept is not None else None,
    }


def pictured(finding: Finding) -> bool:
    """Whether a finding is about values that its calls made, and is shown with what they were given."""
    return finding.rule in _ABOUT_VALUES and bool(finding.calls)


def inputs_of(connection: sqlite3.Connection, call: int) -> list[Json]:
    """The first inputs of a call, small: `path`, `text`, `histogram` with `min` and `max`, and a `picture` or None."""
    rows = connection.execute(
        "SELECT path, text, min, max, histogram, kept, blob FROM value WHERE call = ? AND role = 'input' "
        "ORDER BY position LIMIT ?", (call, _FEW_VALUES),
    )  # fmt: skip
    found = []
    for path, text, low, high, counts, how, blob in rows.fetchall():
        kept = elements(connection, blob) if blob and how == "full" else None
        found.append({
            "path": path, "text": text, "min": low, "max": high, "histogram": json.loads(counts) if counts else [],
            "picture": picture(kept) if kept is not None else None,
        })  # fmt: skip
    return found


def thumbnails(connection: sqlite3.Connection, finding: Finding) -> list[tuple[str, bytes]]:
    """What the first call of a finding about values was given: captions and PNG files of what has a picture."""
    if not pictured(finding):
        return []
    call = finding.calls[0]
    found = inputs_of(connection, call)
    return [(f"{one['path']} of call #{call}", png(one["picture"])) for one in found if one["picture"]]


def evenly(ids: Array) -> list[int]:
    """As many calls of these as a line over them has points, evenly spaced."""
    if not len(ids):
        return []
    return list(ids[np.unique(np.linspace(0, len(ids) - 1, min(_POINTS, len(ids))).astype(np.int64))].tolist())


def trends(connection: sqlite3.Connection, ids: Array, scalars: Sequence[tuple[str, int]]) -> dict[str, Json]:
    """Scalars over the calls of a node: numbers of at most 120 calls, evenly spaced, and their values.

    Args:
      connection: The recording, open for reading.
      ids: The calls of the node, in their order.
      scalars: Role and position of the values in question.
    """
    if not scalars or len(ids) < 3:
        return {}
    picked = evenly(ids)
    found: dict[str, Json] = {}
    rows = connection.execute(
        f"SELECT call, role, position, mean FROM value WHERE call IN ({','.join(map(str, picked))}) "
        "AND mean IS NOT NULL ORDER BY call"
    )
    wanted = set(scalars)
    for call, role, position, mean in rows:
        if (role, position) in wanted and np.isfinite(mean):
            one = found.setdefault(f"{ROLES[role]}:{position}", {"ids": [], "values": []})
            one["ids"].append(call)
            one["values"].append(mean)
    return {key: one for key, one in found.items() if len(one["ids"]) > 2}


def side_by_side(connection: sqlite3.Connection, left: int, right: int) -> Json | None:
    """Two calls value by value; None if the recording does not hold both.

    Returns:
      `left` and `right`, and `rows`: `role`, `path`, the two values' `text` and `picture`, whether they are `equal`
      (None: not known), the `largest` absolute difference, and the difference as a `picture`.
    """
    sides = [_values(connection, call) for call in (left, right)]
    known = connection.execute("SELECT count(*) FROM call WHERE id IN (?, ?)", (left, right)).fetchone()[0]
    if known < len({left, right}):
        return None
    keys = list(dict.fromkeys([*sides[0], *sides[1]]))
    return {"left": left, "right": right, "rows": [_row(connection, key, *sides) for key in keys]}


def _values(connection: sqlite3.Connection, call: int) -> dict[tuple[str, int], Json]:
    # A file of version 1 has no digests.
    digest = "digest" if connection.execute("PRAGMA user_version").fetchone()[0] >= 2 else "NULL"
    names = [*_COLUMNS.split(", "), "digest"]
    rows = connection.execute(
        f"SELECT {_COLUMNS}, {digest} FROM value WHERE call = ? ORDER BY role, position LIMIT ?", (call, _MAX_VALUES)
    )
    return {(row[0], row[1]): dict(zip(names, row, strict=True)) for row in rows}


def _row(
    connection: sqlite3.Connection,
    key: tuple[str, int],
    left: dict[tuple[str, int], Json],
    right: dict[tuple[str, int], Json],
) -> Json:
    pair = [left.get(key), right.get(key)]
    kept = [
        elements(connection, value["blob"]) if value and value["blob"] and value["kept"] == "full" else None
        for value in pair
    ]
    both = [value for value in pair if value is not None]
    equal = None
    if len(both) < 2 or (both[0]["dtype"], both[0]["shape"]) != (both[1]["dtype"], both[1]["shape"]):
        equal = False
    elif (both[0]["blob"] and both[0]["blob"] == both[1]["blob"]) or (
        both[0]["digest"] and both[0]["digest"] == both[1]["digest"]
    ):
        equal = True
    elif all(one is not None for one in kept) or (both[0]["digest"] and both[1]["digest"]):
        equal = False
    largest = difference(kept[0], kept[1]) if kept[0] is not None else None
    return {
        "role": ROLES[key[0]],
        "path": both[0]["path"],
        "texts": [value["text"] if value else None for value in pair],
        "pictures": [picture(one) if one is not None else None for one in kept],
        "equal": equal,
        "largest": largest,
        "difference": _gap(*kept) if largest else None,
    }


def _gap(left: Elements | None, right: Elements | None) -> Json | None:
    """What the left has more than the right, as a picture."""
    if left is None or right is None or left.array is None or right.array is None:
        return None
    if left.array.dtype.kind not in "biuf" or right.array.dtype.kind not in "biuf":
        return None
    with np.errstate(all="ignore"):
        return picture(Elements(left.array.astype(np.float64) - right.array.astype(np.float64)))
