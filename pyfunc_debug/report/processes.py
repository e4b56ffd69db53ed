"""Several recordings side by side: their processes in time, one ledger over all, and what the doctor says of each.

Numbers of calls, nodes and threads belong to one recording and are never mixed: rows are the same when they are the
same line of code, and a call is only ever looked at within its own recording.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfunc_debug.analysis.clocks import Clocks, ProcessClock
from pyfunc_debug.analysis.columns import ERROR, Array
from pyfunc_debug.analysis.ledger import times_of
from pyfunc_debug.program.printable import printable
from pyfunc_debug.report import timeline
from pyfunc_debug.report.answers import Answers, cost, findings_json, state

Json = dict[str, Any]
STRIP = 400
"""Columns of a process's strip in time."""
_MAX_ERRORS = 200
_MAX_TRACES = 100
_MAX_FINDINGS = 100
_SPREAD = 20
"""Recordings whose beginnings and ends lie further apart than this many times the longest are not drawn on one axis."""


def names(paths: Sequence[str]) -> list[str]:
    """What to call recordings: their file names, with as much of their folders as distinguishes them."""
    bases = [printable(os.path.splitext(os.path.basename(path))[0]) for path in paths]
    if len(set(bases)) == len(bases):
        return bases
    folder = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])
    return [printable(os.path.splitext(os.path.relpath(path, folder))[0]) for path in paths]


class Processes:
    """Collects recordings one by one, so that only one need be in memory."""

    def __init__(self) -> None:
        self._processes: list[Json] = []
        self._clocks: list[ProcessClock] = []
        self._begins: list[int] = []
        self._arrays: dict[str, Array] = {}
        self._rows: dict[tuple[Any, ...], Json] = {}
        self._by: dict[str, list[Json]] = {}
        self._times: dict[str, list[Array]] = {}
        self._findings: dict[tuple[Any, ...], Json] = {}
        self._everything = 0.0

    def add(self, answers: Answers, first_call: int | None) -> None:
        """Adds a recording.

        Args:
          answers: The recording, open.
          first_call: The call that its own page shows first.
        """
        number = len(self._processes)
        known, columns, meta = answers.facts, answers.columns, answers.facts.meta
        overview, _ = answers.ask("overview", {"width": 16})
        start, end = answers.extent()
        self._clocks.append(answers.clock())
        self._begins.append(columns.origin_ns + start)
        found = answers.findings
        argv = meta.get("argv")
        self._processes.append(
            {
                "name": answers.name,
                "path": answers.path,
                "pid": meta.get("pid"),
                "first_call": first_call,
                "host": meta.get("host"),
                "program": " ".join(map(str, argv))[:300] if isinstance(argv, list) else "",
                "state": state(answers.path, meta),
                "wall_ns": None if known.wall_ns is None else known.wall_ns + start,
                "length_ns": end - start,
                "cost": cost(meta),
                "findings": None if found is None else Counter(finding.severity for finding in found),
                "versions": overview["versions"],
                "traces": [
                    [trace["start_ns"] - start, trace["duration_ns"]]
                    for trace in timeline.traces(known, columns.origin_ns, start, end)[:_MAX_TRACES]
                ],
                **{
                    name: overview[name]
                    for name in ("calls", "dropped", "errors", "runs", "functions", "nodes", "gil", "resolution_ns")
                },
            }
        )
        self._arrays[f"busy{number}"] = timeline.busy(columns, start, end, STRIP)
        self._arrays[f"waiting{number}"] = (
            timeline.overview(columns, start, end, STRIP) if columns.measured else np.zeros(0, np.float32)
        )
        failed = columns.start[columns.status == ERROR][:_MAX_ERRORS] - start
        self._arrays[f"errors{number}"] = failed.astype(np.float64)
        self._everything += float(columns.duration.clip(0).sum() + np.nansum(columns.wait))
        self._add_rows(answers, number)
        self._add_findings(answers, number)

    def _add_rows(self, answers: Answers, number: int) -> None:
        rows = answers.rows()
        durations = answers.durations()
        same: dict[str, tuple[Any, ...]] = {}
        for row in rows:
            parent = same.get(row["parent"]) if row["parent"] else None
            body = answers.facts.nodes[row["nodes"][0]].body if row["type"] == "node" else row["title"]
            identity = (parent, row["type"], body, row["kind"], row["call_kind"], row["file"], row["line"],
                        row.get("site"))  # fmt: skip
            same[row["key"]] = identity
            if identity not in self._rows:
                key = f"r{len(self._rows)}"
                above = self._rows[parent]["key"] if parent is not None else None
                self._rows[identity] = {**row, "key": key, "parent": above, "nodes": [], "why": [], "function": None}
                self._by[key], self._times[key] = [], []
            key = self._rows[identity]["key"]
            self._times[key].append(durations[row["key"]])
            names = ("key", "traced", "runs", "calls", "errors", "mean_ns", "p95_ns", "parts", "severity", "why")
            self._by[key].append({"process": number, "total_ns": row.get("total_ns"), **{n: row[n] for n in names}})

    def _add_findings(self, answers: Answers, number: int) -> None:
        for finding in findings_json(answers.findings, answers.facts, answers.connection) or ():
            identity = (finding["rule"], finding["severity"], finding["file"], finding["line"], finding["name"])
            entry = self._findings.setdefault(
                identity,
                {name: finding[name] for name in ("rule", "severity", "fix", "place")} | {"processes": []},
            )
            entry["processes"].append({"process": number, "calls": finding["calls"][:1], "message": finding["message"]})

    def overview(self, notes: Sequence[str] = ()) -> tuple[Json, dict[str, Array]]:
        """All that the page about all of them embeds.

        Args:
          notes: What to say above it.
        """
        rows = [self._sum(row) for row in self._rows.values()]
        order = {"error": 0, "warning": 1, "note": 2}
        findings = sorted(self._findings.values(), key=lambda finding: order.get(finding["severity"], 3))
        looked = any(process["findings"] is not None for process in self._processes)
        axis, remarks = self._axis()
        more = len(findings) - _MAX_FINDINGS
        if more > 0:
            remarks.append(f"{more} more findings are shown with their recordings only")
        return {
            "processes": self._processes,
            "axis": axis,
            "ledger": {"rows": rows, "files": []},
            "by": self._by,
            "findings": findings[:_MAX_FINDINGS] if looked else None,
            "notes": [*notes, *remarks, *self._versions()],
        }, self._arrays

    def _sum(self, row: Json) -> Json:
        """A row over all processes; what is not known of one of them is not known of all."""
        own = self._by[row["key"]]
        times = np.concatenate(self._times[row["key"]])

        def total(name: str) -> int | None:
            numbers = [one[name] for one in own]
            return None if any(number is None for number in numbers) else sum(numbers)

        severities = [one["severity"] for one in own if one["severity"]]
        parts = [one["parts"] for one in own if one["calls"]]
        totals = [one["total_ns"] for one in own if one["total_ns"] is not None]
        measured = parts and all(part is not None for part in parts)
        return {
            **row,
            **{name: total(name) for name in ("traced", "runs", "calls", "errors")},
            "mean_ns": (together := times_of(times)).mean_ns,
            "p95_ns": together.p95_ns,
            "total_ns": sum(totals) if totals else None,
            "share": sum(totals) / self._everything if row["type"] == "node" and totals and self._everything else None,
            "parts": {name: _add(part[name] for part in parts) for name in parts[0]} if measured else None,
            "severity": min(severities, key=["error", "warning", "note"].index) if severities else None,
            "why": [
                f"{self._processes[one['process']]['name']}: {text}"
                for one in own
                if one["severity"]
                for text in one["why"]
            ][:20],
        }

    def _axis(self) -> tuple[Json, list[str]]:
        """One axis of time for all when their clocks allow it, and what to say about it."""
        clocks = Clocks(self._clocks)
        walls = [clocks.wall_ns(number, begin) for number, begin in enumerate(self._begins)]
        lengths = [process["length_ns"] for process in self._processes]
        own = {"wall_ns": None, "starts": [0] * len(walls), "length_ns": max(lengths)}
        if any(wall is None for wall in walls):
            return own, ["A recording does not say when it began: each strip starts with its own recording"]
        known = [wall for wall in walls if wall is not None]
        starts = [wall - min(known) for wall in known]
        length = max(start + length for start, length in zip(starts, lengths))
        remarks = clocks.remarks()
        if length > _SPREAD * max(lengths):
            return own, ["These recordings are far apart in time: each strip starts with its own recording"]
        if any(clocks.offset(number, begin) is None for number, begin in enumerate(self._begins)) and remarks:
            remarks.append("Where the offset is not known, strips are as far apart as the wall clocks say")
        return {"wall_ns": min(known), "starts": starts, "length_ns": length}, remarks

    def _versions(self) -> list[str]:
        remarks = []
        for name, label in (("tensorflow", "TensorFlow"), ("python", "Python"), ("numpy", "NumPy")):
            found: dict[str, list[str]] = {}
            for process in self._processes:
                found.setdefault(str(process["versions"].get(name, "?")), []).append(process["name"])
            if len(found) > 1:
                parts = (
                    f"{version} ({', '.join(who[:3])}{', ...' if len(who) > 3 else ''})"
                    for version, who in found.items()
                )
                remarks.append(f"Made with several versions of {label}: {'; '.join(parts)}")
        return remarks


def _add(numbers: Any) -> float | None:
    known = list(numbers)
    return None if any(number is None for number in known) else float(sum(known))
