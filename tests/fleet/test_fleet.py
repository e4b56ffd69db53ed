"""Questions over the exports of many jobs: true, and the same from every engine."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import textwrap
from pathlib import Path

import pytest

from pyfunc_debug import fleet
from pyfunc_debug.cli import main
from pyfunc_debug.errors import BadOptionError
from tests import forked
from tests.job.test_job_ledger import recorded

ROOT = Path(__file__).parents[2]
VERSIONS = """
    import random, sys
    import tensorflow as tf
    import pyfunc_debug as pfd

    def changed(x):
        return x * {factor}

    def same(x):
        return x + 1{comment}

    def drawn(x):
        return x + random.random(){comment}

    with pfd.record(sys.argv[1]):
        for x in [0.0, 1.0, 2.0, 3.0] * 2:
            for body in (changed, same, drawn):
                tf.numpy_function(body, [tf.constant(x, tf.float64)], tf.float64)
"""
START_NS = 1_790_000_000_000_000_000


def simulated(lake: Path, jobs: int, processes: int, calls: int) -> None:
    """A fleet: in each job worker-1 takes five times as long in `decode`, and worker-2 gives the first NaN."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    chance = random.Random(7)
    bodies = ["decode", "augment", "π"] * calls
    for job in range(jobs):
        for process in range(processes):
            folder = lake / f"job={job}" / "calls" / f"process={process}"
            folder.mkdir(parents=True)
            slow = [5.0 if process == 1 and body == "decode" else 1.0 for body in bodies]
            nan = [None if body == "π" else 0 for body in bodies]
            if process in (2, 3):
                nan[3 * process] = 4
            times = pa.array([START_NS + 1000 * one for one in range(len(bodies))], pa.timestamp("ns", "UTC"))
            columns = {
                "body": bodies,
                "kind": ["gradient" if one % 5 == 4 else "forward" for one in range(len(bodies))],
                "status": ["error" if one == 7 else "ok" for one in range(len(bodies))],
                "ms": [None, *(ms * (1 + chance.randrange(10**5) / 10**6) for ms in slow[1:])],
                "nan": pa.array(nan, pa.int64()),
                "time": times,
            }  # fmt: skip
            pq.write_table(pa.table(columns), folder / f"host-{process}-worker-{process}.parquet")


def versions(lake: Path, jobs: int, processes: int, calls: int) -> None:
    """Outcomes of bodies in two versions, the second in every other job; one of the bodies is not steady.

    Neither jobs nor processes are named in the order of their folders.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    chance = random.Random(11)
    for job in range(jobs):
        for process in range(processes):
            name = f"{'a-' if job % 3 else 'a'}{job}"
            folder = lake / f"job={name}" / "calls" / f"process={process}"
            folder.mkdir(parents=True)
            given = [chance.randrange(5) for _ in range(calls)]
            code = job % 2
            columns = {
                "body": ["changed", "same", "drawn"] * calls,
                "kind": ["forward"] * (3 * calls),
                "status": ["ok" if one % 7 else "error" for one in range(3 * calls)],
                "id": list(range(3 * calls)),
                "input_digest": [f"in{one}" if one else None for one in given for _ in range(3)],
                "code": [f"version{code}"] * (3 * calls),
                "output_digest": [
                    text for one in given for text in (f"{one * code}", f"{one}", f"{chance.randrange(10)}")
                ],
            }  # fmt: skip
            pq.write_table(pa.table(columns), folder / f"host-{processes - process}-worker.parquet")


def check_versions(lake: Path, *engines: str) -> None:
    """All engines name the same first call of each outcome."""
    rows = fleet.outcomes(lake)
    for engine in engines:
        assert fleet.outcomes(lake, engine=engine) == rows, engine
    found = {one.body: (one.changed, one.unsteady) for one in fleet.changes(rows)}
    assert found["changed"][0] == 4
    assert "same" not in found


def check(lake: Path, jobs: int, processes: int) -> None:
    """Both engines say the same, and what was simulated."""
    rows = fleet.sums(lake)
    assert rows == fleet.sums(lake, engine="dask")
    assert len(rows) == jobs * processes * 3
    assert [(one.job, one.process, one.body) for one in fleet.stragglers(rows)] == [
        (str(job), "host-1-worker-1", "decode") for job in sorted(range(jobs), key=lambda job: _order(rows, job))
    ]
    nans = [(one.job, one.process, one.first_nan_ns) for one in fleet.first_nan(rows)]
    assert nans == [(job, "host-2-worker-2", START_NS + 6000) for job in sorted(map(str, range(jobs)))]
    first = fleet.slowest(rows)[0]
    assert (first.body, first.jobs) == ("decode", jobs)


def _order(rows: list[fleet.Sums], job: int) -> float:
    return -next(one.times for one in fleet.stragglers(rows) if one.job == str(job))


def test_every_engine_gives_the_same_true_answers(tmp_path):
    pytest.importorskip("duckdb")
    pytest.importorskip("dask")
    simulated(tmp_path / "sums", jobs=3, processes=8, calls=20)
    check(tmp_path / "sums", 3, 8)
    versions(tmp_path / "versions", jobs=4, processes=12, calls=20)
    check_versions(tmp_path / "versions", "dask")


def test_one_long_call_makes_no_straggler():
    def third(total_ns, max_ns):
        sums = ("a", 10**7, 10**6), ("b", 10**7, 10**6), ("c", total_ns, max_ns)
        rows = [fleet.Sums("job", process, "body", 10, 0, total, most, 0, None) for process, total, most in sums]
        return [(one.process, one.mean_ns) for one in fleet.stragglers(rows)]

    assert third(10**7 + 5 * 10**8, 5 * 10**8) == []
    assert third(8 * 10**7, 8 * 10**6) == [("c", 8 * 10**6)]


def test_a_job_is_exported_as_a_folder_and_asked(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    for number, ms in enumerate((1.0, 1.0, 8.0)):
        path = recorded(tmp_path / "run" / f"h-{number}-worker-{number}.pfrec", f"worker-{number}", ms)
        with contextlib.closing(sqlite3.connect(path)) as file, file:
            clock = json.dumps({"monotonic_ns": 0, "wall_ns": START_NS})
            file.execute("REPLACE INTO meta VALUES ('clock', ?)", (clock,))
    assert main(["export", "run", "--format", "parquet", "-o", "lake/job=monday"]) == 0
    rows = fleet.sums("lake")
    assert [(one.job, one.process, one.calls, one.total_ns) for one in rows] == [
        ("monday", f"h-{number}-worker-{number}", 10, ms * 10**7) for number, ms in enumerate((1, 1, 8))
    ]
    (straggler,) = fleet.stragglers(rows)
    assert (straggler.process, straggler.times) == ("h-2-worker-2", pytest.approx(8))


@pytest.mark.slow
def test_a_body_that_gives_something_else_for_equal_input_since_its_text_changed_is_found(tmp_path, monkeypatch):
    """Two jobs of real recordings: `changed` is another function in the second, `same` only looks so, `drawn` draws."""
    pytest.importorskip("duckdb")
    pytest.importorskip("dask")
    monkeypatch.chdir(tmp_path)
    for job, factor, comment in (("monday", 2, ""), ("tuesday", 3, "  # the same")):
        (tmp_path / "train.py").write_text(textwrap.dedent(VERSIONS.format(factor=factor, comment=comment)))
        done = forked.run("train.py", f"{job}.pfrec", cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr[-2000:]
        assert main(["export", f"{job}.pfrec", "--format", "parquet", "-o", f"lake/job={job}"]) == 0
    rows = fleet.outcomes("lake")
    assert rows == fleet.outcomes("lake", engine="dask")
    assert {row.body for row in rows} == {"changed", "same", "drawn"}
    assert len({row.code for row in rows if row.body == "same"}) == 2
    (found,) = fleet.changes(rows)
    assert (found.body, found.inputs, found.changed, found.unsteady) == ("changed", 4, 3, 0)  # 0 * 2 is 0 * 3
    assert [(job, process) for job, process, _ in found.calls] == [("monday", "monday"), ("tuesday", "tuesday")]


def test_what_cannot_be_asked_is_said(tmp_path):
    with pytest.raises(BadOptionError, match="export run/ --format parquet"):
        fleet.sums(tmp_path)
    with pytest.raises(BadOptionError, match="duckdb, dask"):
        fleet.sums(tmp_path, engine="hive")
