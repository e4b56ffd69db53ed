"""Answers to what a panel asks about a recording: plain JSON values and arrays.

The notebook's panel asks over messages while the recording grows; the HTML report asks once and embeds what it got.
One `Answers` belongs to one thread.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from pyfunc_debug.analysis.clocks import ProcessClock, process_clock
from pyfunc_debug.analysis.columns import Array, Columns
from pyfunc_debug.analysis.contention import grade_of
from pyfunc_debug.analysis.facts import ProgramFacts, read_facts
from pyfunc_debug.analysis.footer import is_interrupted, own_cost, unfinished
from pyfunc_debug.analysis.ledger import Ledger, ledger_of
from pyfunc_debug.errors import BadOptionError, BadRecordingError
from pyfunc_debug.gil import RESOLUTION_NS
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.redaction import holds
from pyfunc_debug.records import Finding
from pyfunc_debug.report import calls, contention, ledger, looks, sources, timeline, traces
from pyfunc_debug.report.colours import coloured_lines
from pyfunc_debug.report.first_call import first_call, look_now
from pyfunc_debug.report.folds import Folds, folds, stops
from pyfunc_debug.report.sieve import Sieve
from pyfunc_debug.report.threads import threads

Json = dict[str, Any]
Answer = tuple[Any, dict[str, Array]]


class Answers:
    """Answers from one recording.

    The file is open only inside `reading()`: a reader that stays would keep the writer from folding its log back.

    Args:
      path: The recording.
      name: What to call it; by default the file's name.
      findings: What the doctor says, asked once after the recording ended; None if it never looks.

    Raises:
      BadRecordingError: the file is missing, damaged, too new, or something else.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        findings: Callable[[], Sequence[Finding] | None] | None = None,
    ) -> None:
        self._reader = Reader(path)
        self.path = self._reader.path
        self.name = name or self._reader.name
        self.facts = ProgramFacts()
        self.columns = Columns(0)
        self.revision = 0
        self._lent: sqlite3.Connection | None = None
        self._find = findings
        self._findings: Sequence[Finding] | None = None
        self._stamp: tuple[Any, ...] = ()
        self._ended = False
        self._ledger: Ledger | None = None
        self._rows: list[Json] | None = None
        self._extent: tuple[int, int] | None = None
        self._folds: Folds | None = None
        self._sieve: Sieve | None = None  # of the panel's filter
        self._ready = False
        with self.reading():
            self.facts = read_facts(self._reader)
            self.columns = Columns(self.facts.origin_ns or self._first_ns())
            self._ready = True
            self.refresh()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Answers]:
        """Opens the file for the questions of a `with` block, and looks what is new first."""
        try:
            with self._reader.lent() as self._lent:
                if self._ready:
                    self.refresh()
                yield self
        except sqlite3.DatabaseError as error:
            raise BadRecordingError(f"the recording {self.name} cannot be read: {error}") from error
        finally:
            self._lent = None
            self._reader.release()

    @property
    def connection(self) -> sqlite3.Connection:
        """The open file."""
        if self._lent is None:
            raise BadRecordingError("ask inside `with answers.reading():`")
        return self._lent

    def _first_ns(self) -> int:
        # A recording without clock anchors: then the first thing that happened is 0.
        row = self.connection.execute(
            "SELECT min(t) FROM (SELECT min(start_ns) AS t FROM call UNION ALL SELECT min(start_ns) FROM run"
            " UNION ALL SELECT min(start_ns) FROM trace)"
        ).fetchone()
        return int(row[0] or 0)

    def changed(self) -> bool:
        """Whether the file was written to since the last look. Cheap: opens nothing."""
        return self._file_stamp() != self._stamp

    def _file_stamp(self) -> tuple[Any, ...]:
        stamp: list[Any] = []
        for suffix in ("", "-wal"):
            try:
                status = os.stat(self.path + suffix)
                stamp += [status.st_mtime_ns, status.st_size]
            except OSError:
                stamp += [None, None]
        return tuple(stamp)

    def refresh(self) -> bool:
        """Looks for new data.

        Returns:
          Whether the revision changed.
        """
        stamp = self._file_stamp()
        if stamp == self._stamp:
            return False
        self.connection.execute("BEGIN")
        try:
            self.facts = read_facts(self._reader)
            ended = not self.facts.recording
            self.columns.refresh(self.connection, final=ended and not self._ended)
        finally:
            self.connection.execute("COMMIT")
        self._stamp = stamp
        if self._find is not None and ended and not self._ended:
            self._findings = self._find()
        self._ended = ended
        self._ledger = self._rows = self._extent = self._folds = None
        self.revision += 1
        return True

    @property
    def findings(self) -> Sequence[Finding] | None:
        """What the doctor says; None if it did not look."""
        return self._findings

    def use_findings(self, findings: Sequence[Finding] | None) -> None:
        """Shows these findings from now on."""
        self._findings = findings
        self._rows = None

    def ask(self, method: str, params: Json) -> Answer:
        """Answers one question.

        Args:
          method: `overview`, `ledger`, `timeline`, `calls`, `call`, `value`, `compare`, `source`, `findings`, `gil` or
        `traces`.
          params: Its parameters, as the front end sends them.

        Raises:
          BadOptionError: there is no such question, or its parameters make no sense.
        """
        handler = self._questions.get(method)
        if handler is None:
            raise BadOptionError(f"the panel asked for {method!r}, which this version does not know: reload the page")
        try:
            inspect.signature(handler).bind(self, **params)
        except TypeError as error:
            raise BadOptionError(
                f"the panel asked for {method!r} in a way this version does not know ({error})"
            ) from error
        return handler(self, **params)

    def clock(self) -> ProcessClock:
        """What the recording says of its machine's clocks."""
        return process_clock(self._reader)

    def extent(self) -> tuple[int, int]:
        """First and last time of the recording in ns since its origin."""
        if self._extent is None:
            self._extent = timeline.extent(self.connection, self.facts, self.columns)
        return self._extent

    def ledger(self) -> Ledger:
        """The ledger: the one of the terminal."""
        if self._ledger is None:
            self._ledger = ledger_of(self._reader, self.facts, self.columns)
        return self._ledger

    def rows(self) -> list[Json]:
        """Rows of the ledger as the panel shows them."""
        if self._rows is None:
            self._rows = ledger.rows(self.connection, self.ledger(), self.facts, self.columns, self._findings)
        return self._rows

    def durations(self) -> dict[str, Array]:
        """Durations of the calls or runs of each row, by its key."""
        return ledger.durations_of(self.connection, self.ledger(), self.facts, self.columns)

    def overview(self, *, width: int = 640) -> Answer:
        """The header's facts and the minimap."""
        known = self.facts
        start, end = self.extent()
        meta = known.meta
        users = [key for key in known.groups if known.nodes[key].origin == "user"]
        dropped = self.connection.execute("SELECT sum(calls) FROM dropped").fetchone()[0] or 0
        grades = self.columns.grades
        newest = self.connection.execute("SELECT max(id) FROM run").fetchone()[0]
        folds = self.folds()
        answer = {
            "name": self.name,
            "state": state(self.path, meta),
            "unfinished": unfinished(self.path, meta),
            "revision": self.revision,
            "start_ns": start,
            "end_ns": end,
            "wall_ns": known.wall_ns,
            "calls": len(self.columns) + int(dropped),
            "dropped": int(dropped),
            "errors": int((self.columns.status == 1).sum()),
            "running": int((self.columns.end < 0).sum()),
            "runs": newest or 0,
            "nodes": len(users),
            "functions": sum(f.origin == "user" for f in known.functions.values()),
            "findings": None if self._findings is None else len(self._findings),
            "gil": grades[0] if len(grades) == 1 else "mixed" if grades else None,
            "resolution_ns": max((RESOLUTION_NS[grade_of(grade)] for grade in grades), default=0),
            "split": self.columns.split,
            "cost": cost(meta),
            "options": _options(meta),
            "versions": meta.get("versions") if isinstance(meta.get("versions"), dict) else {},
            "lost": meta.get("dropped"),
            "pid": meta.get("pid"),
            "holds": holds(meta),
            "threads": threads(self.connection, known, self.columns),
            # Of a recording that grows the worst call is not known yet.
            "first": look_now(known, self.columns)
            if known.recording
            else first_call(self.connection, known, self.columns),
            "names": {str(i): known.label(i) for i in known.nodes},
            "groups": {str(i): key for i, key in known.group_of.items()},
            "stops": stops(self.columns),
            "folds": folds,
        }
        errors = self.columns.start[self.columns.status == 1][:200].astype(np.float64)
        waiting = timeline.overview(self.columns, start, end, min(width, 2000), folds)
        return answer, {"waiting": waiting, "errors": errors}

    def folds(self) -> Folds:
        """What the axis of time leaves out."""
        if self._folds is None:
            self._folds = folds(self.columns, self.facts)
        return self._folds

    def _timeline(self, *, start_ns: float, end_ns: float, width: int = 640) -> Answer:
        return timeline.viewport(self.connection, self.facts, self.columns, start_ns, end_ns, width, self.folds())

    def _calls(self, *, condition: str | None = None, **params: Any) -> Answer:
        if not condition:
            self._sieve = None
            return calls.page(self.connection, self.columns, **params), {}
        wanted = (condition, params.get("nodes"))
        if self._sieve is None or self._sieve.wanted != wanted:
            self._sieve = Sieve(self._reader, *wanted)
        more = self._sieve.shake()
        page = calls.page(self.connection, self.columns, **params, only=self._sieve.passed())
        return {**page, "more": more, "remark": self._sieve.filter.remark()}, {}

    def _call(self, *, id: int) -> Answer:
        return calls.detail(self.connection, self.facts, self.columns, int(id)), {}

    def _value(self, *, call: int, side: str, position: int) -> Answer:
        return looks.look(self.connection, int(call), side, int(position)), {}

    def _compare(self, *, left: int, right: int) -> Answer:
        return looks.side_by_side(self.connection, int(left), int(right)), {}

    def _source(self, *, file: str) -> Answer:
        return sources.page(self.connection, self.facts, self.rows(), file, self._findings), {}

    def _show_ledger(self) -> Answer:
        return {
            "rows": self.rows(),
            "files": [[file, self.facts.file_name(file)] for file in sources.files(self.connection)],
        }, {}

    def _show_findings(self) -> Answer:
        return {"findings": findings_json(self._findings, self.facts, self.connection)}, {}

    def _traces(self, *, function: int) -> Answer:
        return traces.page(self.connection, self.facts, self.columns, int(function)), {}

    def _gil(self) -> Answer:
        page = contention.page(
            self.connection, self.facts, self.columns, self.rows(), *self.extent(), folds=self.folds()
        )
        return page, {}

    _questions: ClassVar[dict[str, Callable[..., Answer]]] = {
        "overview": overview,
        "ledger": _show_ledger,
        "timeline": _timeline,
        "calls": _calls,
        "call": _call,
        "value": _value,
        "compare": _compare,
        "source": _source,
        "findings": _show_findings,
        "gil": _gil,
        "traces": _traces,
    }


def state(path: str, meta: Json) -> str:
    """`recording`, `complete`, `stopped early`, or `interrupted`: the program ended without finishing the recording."""
    return "interrupted" if is_interrupted(path, meta) else str(meta.get("state", "unknown"))


def cost(meta: Json) -> float | None:
    """The recorder's own cost as a fraction of the recorded time; None while it is not known."""
    measured = own_cost(meta)
    return measured.share if measured is not None else None


def _options(meta: Json) -> Json:
    options = meta.get("options")
    if not isinstance(options, dict):
        return {}
    values = options.get("values")
    if isinstance(values, dict):
        rules = [f"{pattern}: {policy}" for pattern, policy in values.items() if pattern != "*"]
        options = {**options, "values": ", ".join([str(values.get("*", "summary")), *rules])}
    return options


def findings_json(
    findings: Sequence[Finding] | None, known: ProgramFacts, connection: sqlite3.Connection
) -> list[Json] | None:
    """Findings as the front end reads them; those about values with the inputs of their first call."""
    if findings is None:
        return None
    result = []
    for finding in findings:
        item = finding.as_dict()
        item["calls"] = list(finding.calls)[:50]
        item["count"] = len(finding.calls)
        item["code"] = coloured_lines(finding.fix.splitlines())
        item["place"] = known.source_line(finding.file, finding.line)
        item["name"] = known.label(finding.node) if finding.node is not None else None
        item["group"] = known.group_of.get(finding.node) if finding.node is not None else None
        item["inputs"] = looks.inputs_of(connection, finding.calls[0]) if looks.pictured(finding) else []
        result.append(item)
    return result
