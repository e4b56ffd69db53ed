"""Damages recordings in every way that a disk or a person may, and reads them by every command."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import shutil
import signal
import sqlite3
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyfunc_debug as pfd
from pyfunc_debug.cli import main
from pyfunc_debug.pfrec import checks
from tests.doctor import recordings as notices
from tests.report import recordings

LONGEST_S = 50.0
"""CPU time that one file may take in all commands together."""
HOSTILE: list[Any] = [
    None, "", "x", "\x1b[2J\u202e", "[]", "{}", "[[]]", "[1]", "[[1, 2]]", '{"a": [1]}', "[" * 5000, "9" * 6000, "NaN",
    "[1e999]", "null", '"text"', b"", b"\xff\xfe", b"\x00" * 100, 0, -1, 1, 7, 2**31, 2**62, -(2**63), 2**63 - 1, 1.5,
    float("inf"), 1e308, "ok", "error", "running", "float32", "object", "__class__", "[1000000000000, 1000000000000]",
    "[-1]", '[["f.py", 1, "g", "x"]]', '[["f.py", 99999999999, "g", "x"]]', '{"start_ns": 5, "end_ns": null}',
    '{"start_ns": "a"}', '{"spans": [[1, 2]], "start_ns": 1}', "complete", '"recording"', "[null, 3]", "a" * 100_000,
]  # fmt: skip
RULES = ["stop", "held", "hang", "failure", "wrong-tape", "memory", "none-gradient", "trace-failed", "stale-closure"]


def base(folder: Path) -> list[Path]:
    """Whole recordings with something in most tables."""
    rich = recordings.small(folder / "rich.pfrec", steps=12)
    recordings.count_lines(rich)
    with contextlib.closing(sqlite3.connect(rich)) as db:
        for number, rule in enumerate(RULES, 1000):
            facts = (
                '{"start_ns": 5, "end_ns": 9, "spans": [[5, 6, 9]], "held_ns": 3, "why": "x", "name": "x", '
                '"file": "a.py", "line": 1, "then": "1", "now": "2", "trace": 1}'
            )
            db.execute("INSERT INTO notice VALUES (?, ?, 1, 1, ?)", (number, rule, facts))
        db.commit()
    poor = Path(notices.written(folder / "poor.pfrec", "x = 1\n", node=[notices.node()], call=[notices.call(1)]))
    return [rich, poor]


def damage(path: Path, chance: random.Random) -> str:
    """Damages a file; says how."""
    how = chance.choice([_bits, _bytes, _cut, _cells, _cells, _cells, _cells, _tables, _meta])
    return f"{how.__name__}: {how(path, chance)}"


def _bits(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    places = [chance.randrange(len(data) * 8) for _ in range(chance.choice([1, 10, 100, 1000]))]
    for place in places:
        data[place // 8] ^= 1 << place % 8
    path.write_bytes(data)
    return f"{len(places)} flipped"


def _bytes(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    start = chance.choice([chance.randrange(len(data)), chance.randrange(200)])
    length = chance.choice([1, 16, 4096])
    data[start : start + length] = chance.choice([bytes(length), b"\xff" * length, chance.randbytes(length)])
    path.write_bytes(data)
    return f"{length} at {start}"


def _cut(path: Path, chance: random.Random) -> str:
    size = chance.randrange(path.stat().st_size)
    os.truncate(path, size)
    return f"to {size}"


def _cells(path: Path, chance: random.Random) -> str:
    done = []
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        for _ in range(chance.choice([1, 1, 1, 3])):
            table = chance.choice(sorted(checks.tables()))
            column = chance.choice(checks.tables()[table]).name
            value = chance.choice(HOSTILE)
            where = chance.choice(["", "LIMIT 1"])
            key = "id" if any(one.name == "id" for one in checks.tables()[table]) else column
            rows = f"WHERE {key} IN (SELECT {key} FROM {table} {where})"
            db.execute("PRAGMA ignore_check_constraints = ON")
            with contextlib.suppress(sqlite3.Error):
                db.execute(f"UPDATE OR REPLACE {table} SET {column} = ? {rows}", (value,))
            done.append(f"{table}.{column} = {value!r:.40} {where}")
    return "; ".join(done)


def _tables(path: Path, chance: random.Random) -> str:
    table = chance.choice(sorted(checks.tables()))
    column = chance.choice(checks.tables()[table]).name
    endless = "WITH RECURSIVE a (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT x FROM a"
    sql = chance.choice(
        [
            f"DROP TABLE {table}", f"DELETE FROM {table}", f"ALTER TABLE {table} RENAME COLUMN {column} TO other",
            f"ALTER TABLE {table} RENAME TO other; CREATE VIEW {table} AS SELECT * FROM other",
            f"ALTER TABLE {table} RENAME TO other; CREATE VIEW {table} AS {endless}",
            f"CREATE VIEW more AS {endless}", f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN SELECT 1; END",
            f"ALTER TABLE {table} RENAME TO other; CREATE VIRTUAL TABLE {table} USING fts5(a)",
            "PRAGMA user_version = 1", "PRAGMA user_version = -7", "PRAGMA application_id = 1",
            f"CREATE INDEX odd ON {table} (abs({column}))", "PRAGMA writable_schema = ON; "
            f"UPDATE sqlite_master SET sql = 'CREATE TABLE {table} (x)' WHERE name = '{table}'",
        ]
    )  # fmt: skip
    with contextlib.closing(sqlite3.connect(path)) as db, contextlib.suppress(sqlite3.Error):
        db.executescript(sql)
    return sql


def _meta(path: Path, chance: random.Random) -> str:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        keys = [key for (key,) in db.execute("SELECT key FROM meta")] + ["death", "gil", "inputs", "cost", "ended"]
        key, value = chance.choice(keys), chance.choice(HOSTILE)
        text = str(value) if chance.random() < 0.7 else '{"a": 1, "frames": [[1]], "running": [5], "grade": 3}'
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, text))
    return f"{key} = {text!r:.40}"


def read(path: Path, other: Path, html: Path) -> Counter[str]:
    """What each command made of a file: `done`, `refused`, `net` (refused by the last resort).

    Raises:
      AssertionError: more than one line was said.
      Exception: one that should not have come.
    """
    found: Counter[str] = Counter()
    file = str(path)
    for command in (
        ["show", file], ["show", file, "--json"], ["show", file, "--node", "*"], ["show", file, "--call", "1"],
        ["show", file, "--gil"], ["show", file, "--source", "augment"], ["show", file, "--function", "train_step"],
        ["doctor", file], ["doctor", file, "--json"], ["report", file, "-o", str(html)],
        ["query", file, "SELECT * FROM call, node LIMIT 200"],
    ):  # fmt: skip
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(command)
        said = err.getvalue()
        if code and said:
            assert said.count("\n") == 1, said
        assert not re.search("[\x1b\x07\u202e]", out.getvalue() + said)
        found["net" if "something that cannot be read" in said else "refused" if said else "done"] += 1
    for ask in _QUESTIONS:
        try:
            recording = pfd.open(file)
            try:
                ask(recording, other)
            finally:
                recording.close()
            said = ""
        except pfd.PyfuncDebugError as error:
            said = str(error)
        assert "\n" not in said
        found["refused" if said else "done"] += 1
    return found


_QUESTIONS: Sequence[Callable[[Any, Path], object]] = (
    lambda recording, other: [(call.inputs, call.failure) for call in recording.calls()],
    lambda recording, other: [
        value.array() for call in recording.calls() for value in (*call.inputs, *call.outputs) if value.kept
    ],
    lambda recording, other: str(recording.diff(str(other))),
    lambda recording, other: (repr(recording), recording.functions(), recording.sql("SELECT * FROM value LIMIT 9")),
)


class _TooLong(BaseException):
    pass


def _stop(number: int, frame: Any) -> None:
    raise _TooLong


def run(files: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Damages and reads so many files.

    Returns:
      What commands made of them, and what went wrong.
    """
    whole = base(folder)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    longest = 0.0
    before = signal.signal(signal.SIGPROF, _stop)
    try:
        for number in range(files):
            chance = random.Random(f"{seed} {number}")
            path = folder / f"{number}.pfrec"
            shutil.copy(chance.choice(whole), path)
            how = damage(path, chance)
            start = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
            try:
                counts += read(path, whole[0], folder / "report.html")
            except (Exception, _TooLong, KeyboardInterrupt) as error:
                place = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(
                    traceback.extract_tb(error.__traceback__)[-3:]))  # fmt: skip
                wrong.append(f"file {number} of seed {seed} ({how}): {type(error).__name__}: {error!s:.80} at {place}")
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            longest = max(longest, time.process_time() - start)
            path.unlink(missing_ok=True)
    finally:
        signal.signal(signal.SIGPROF, before)
    counts["longest ms"] = int(longest * 1000)
    return counts, wrong
