"""What the GIL tab shows: waits over time, who waited behind whom, and sums a node. Only what was measured."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfunc_debug.report.columns import Columns
from pyfunc_debug.report.facts import Facts
from pyfunc_debug.report.timeline import binned, overview

Json = dict[str, Any]
# Unpacking the blame of more calls than this would be felt in the recorded program.
MAX_BLAME = 200_000
_HOLDERS = 4
_CALL = re.compile(r"\s*\(?#\d+\)?$")


def page(
    connection: sqlite3.Connection,
    facts: Facts,
    columns: Columns,
    ledger: Sequence[Json],
    start: int,
    end: int,
    width: int = 320,
) -> Json:
    """Contention over the recording; `grade` is None when nothing was measured."""
    grades = [g for (g,) in connection.execute("SELECT DISTINCT grade FROM gil") if g != "none"]
    if not grades:
        return {"grade": None, "nodes": [], "holders": [], "series": None, "blame_of": 0}
    nodes: list[Json] = [
        {"key": item["key"], "name": _name(item, ledger), "calls": item["stored"], **item["parts"], "blame": {}}
        for item in ledger
        if item["type"] == "node" and item["parts"]
    ]
    blame, counted = _blame(connection, facts)
    totals: dict[str, float] = {}
    for node in nodes:
        node["blame"] = blame.get(node["key"], {})
        for holder, ns in node["blame"].items():
            totals[holder] = totals.get(holder, 0) + ns
    shown = sorted(totals, key=lambda holder: -totals[holder])[:_HOLDERS]
    for node in nodes:
        rest = sum(ns for holder, ns in node["blame"].items() if holder not in shown)
        node["blame"] = {holder: node["blame"][holder] for holder in shown if holder in node["blame"]}
        if rest:
            node["blame"]["others"] = rest
    waiting = overview(columns, start, end, width)
    places = np.arange(len(columns))
    threads = np.unique(columns.thread).tolist()
    held: list[float] | None = None
    if threads and columns.split:
        parts = binned(columns, places, threads, start, end, width)
        held = [round(float(min(x, 1.0)), 3) for x in parts[:, 0].sum(0) + parts[:, 1].sum(0)]
    return {
        "grade": grades[0] if len(grades) == 1 else "mixed",
        "grades": grades,
        "nodes": sorted(nodes, key=lambda node: -float(node["wait_ns"])),
        "holders": shown + (["others"] if any("others" in node["blame"] for node in nodes) else []),
        "blame_of": counted,
        "series": {
            "start_ns": start,
            "end_ns": end,
            "waiting": [round(float(x), 3) for x in waiting],
            "held": held,
        },
    }


def _name(item: Json, ledger: Sequence[Json]) -> str:
    if item["call_kind"] == "forward":
        return str(item["name"])
    return "∇ " + next((str(other["name"]) for other in ledger if other["key"] == item["parent"]), "")


def _blame(connection: sqlite3.Connection, facts: Facts) -> tuple[dict[str, dict[str, float]], int]:
    newest = connection.execute("SELECT max(call) FROM gil").fetchone()[0] or 0
    found = connection.execute(
        "SELECT call.node, call.kind, json_extract(b.value, '$[0]'), sum(json_extract(b.value, '$[1]'))"
        " FROM gil JOIN call ON call.id = gil.call, json_each(gil.blame) AS b"
        " WHERE gil.call > ? AND gil.blame <> '[]' GROUP BY 1, 2, 3",
        (newest - MAX_BLAME,),
    )
    result: dict[str, dict[str, float]] = {}
    for node, kind, holder, ns in found:
        row = result.setdefault(f"n{facts.group_of.get(node, node)}" + ("g" if kind == "gradient" else ""), {})
        # Holders are named with their call, `log_huber (#168)`: the sum is over bodies.
        body = _CALL.sub("", str(holder))
        row[body] = row.get(body, 0.0) + float(ns)
    return result, min(newest, MAX_BLAME)
