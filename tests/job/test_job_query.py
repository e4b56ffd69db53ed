"""SQL over several recordings: the same answers from both engines, and nothing but reading."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sqlite3
import subprocess
import sys

import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.analysis import job_duckdb, job_sql, job_tables
from pyfunc_debug.cli import main
from pyfunc_debug.errors import BadOptionError
from tests.job.test_job_ledger import recorded

ON = "ON n.id = c.node AND n.recording = c.recording"
QUESTIONS = (
    "SELECT recording, count(*), sum(end_ns - start_ns), avg(cpu_ns), 7 / 2 FROM call GROUP BY 1 ORDER BY 1",
    f"SELECT c.recording, n.body, c.status, count(*) FROM call c JOIN node n {ON} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    "SELECT * FROM value ORDER BY recording, call, role, position",
    "SELECT * FROM call ORDER BY recording, id",
    "WITH one AS (SELECT DISTINCT type, message FROM failure) SELECT * FROM one ORDER BY message",
    "SELECT recording, key, value FROM meta WHERE key IN ('pid', 'state') ORDER BY 1, 2",
    "SELECT call, nan, mean FROM value ORDER BY mean, call, recording, role",
    "SELECT 'it''s' AS a, NULL AS b, length(text) FROM source ORDER BY 3",
)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Two real recordings: strings, a NaN, a body that fails."""
    folder = tmp_path_factory.mktemp("run")

    def root(x):
        if x < 0:
            raise ValueError(f"{x} has no root")
        return math.sqrt(x)

    for number, inputs in enumerate([(1.0, 4.0, math.nan), (9.0, -1.0)]):
        with pfd.record(folder / f"{number}.pfrec"):
            for x in inputs:
                with contextlib.suppress(ValueError):
                    tf.numpy_function(root, [tf.constant(x, tf.float64)], tf.float64)
            tf.numpy_function(lambda text: text + b"\xff", [tf.constant(["a", "b"])], tf.string)
    return folder


def test_both_engines_give_the_same_answers_from_real_recordings(job):
    opened = pfd.open(job)
    for sql in QUESTIONS:
        first, second = opened.sql(sql, "sqlite"), opened.sql(sql, "duckdb")
        assert first, sql
        assert [list(row.values()) for row in first] == [list(row.values()) for row in second], sql
    of_one = pfd.open(job / "0.pfrec").sql("SELECT * FROM value ORDER BY call, role, position")
    of_all = opened.sql("SELECT * FROM value ORDER BY recording, call, role, position")
    assert [
        {"process": row["process"], "recording": str(job / "0.pfrec"), **one} for row, one in zip(of_all, of_one)
    ] == [row for row in of_all if row["recording"].endswith("0.pfrec")]


def test_a_folder_files_and_a_pattern_are_asked_and_stderr_says_who_answers(job, capsys, monkeypatch):
    sql = "SELECT recording, count(*) AS calls FROM call GROUP BY recording ORDER BY recording"
    rows = f"recording,calls\n{job}/0.pfrec,4\n{job}/1.pfrec,3\n"
    for files in ([str(job)], [f"{job}/*.pfrec"], [f"{job}/0.pfrec", f"{job}/1.pfrec"]):
        assert main(["query", *files, sql]) == 0
        out, err = capsys.readouterr()
        assert (out, err.split(",")[0]) == (rows, "pyfunc-debug: SQLite answers")
    monkeypatch.setattr(job_sql, "LARGE_BYTES", 1)
    assert main(["query", str(job), sql]) == 0
    out, err = capsys.readouterr()
    assert (out, err.split(",")[0]) == (rows, "pyfunc-debug: DuckDB answers")
    assert main(["query", str(job), "SELECT date '2026-11-23' AS d, [1.5] AS l", "--json", "--engine", "duckdb"]) == 0
    assert capsys.readouterr().out == '[{"d": "2026-11-23", "l": [1.5]}]\n'
    assert main(["query", f"{job}/0.pfrec", f"{job}/1.pfrec"]) == 2  # the SELECT is missing
    capsys.readouterr()
    assert main(["query", str(job), "--engine", "sqlite", sql]) == 0  # an option between them
    assert capsys.readouterr().out == rows
    with pytest.raises(SystemExit):
        main(["query", str(job), "--engin", "sqlite", "--what", sql])


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_damage_that_only_a_query_meets_is_the_recordings(engine, tmp_path, capsys):
    """In the middle of many rows: of one file those before it are printed, of several it is left out."""
    paths = [recorded(tmp_path / f"{name}.pfrec", f"worker-{name}", 1.0, calls=3000) for name in "ab"]
    with contextlib.closing(sqlite3.connect(paths[0])) as db:
        size = db.execute("PRAGMA page_size").fetchone()[0]
        root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'call'").fetchone()[0]
    with open(paths[0], "r+b") as file:  # https://sqlite.org/fileformat2.html#b_tree_pages
        file.seek((root - 1) * size)
        page = file.read(size)
        assert page[0] == 5, "a page that only leads to others"
        middle = int.from_bytes(page[3:5], "big") // 2
        cell = int.from_bytes(page[12 + 2 * middle :][:2], "big")
        file.seek((int.from_bytes(page[cell:][:4], "big") - 1) * size)
        file.write(b"\xa5" * size)
    sql = "SELECT count(*), sum(end_ns) > 0 FROM call"
    assert main(["query", str(tmp_path), "--engine", engine, "--format", "tsv", sql]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[1].split("\t")[0] == "3000"
    assert "left out: the recording a.pfrec is damaged" in err
    assert main(["query", paths[0], "SELECT id, start_ns, end_ns FROM call"]) == 1
    out, err = capsys.readouterr()
    assert 1 < len(out.splitlines()) < 3000
    assert err == "pyfunc-debug: the recording a.pfrec is damaged: database disk image is malformed\n"


def test_duckdb_keeps_the_tables_of_completed_recordings_until_these_change(tmp_path, monkeypatch):
    path = recorded(tmp_path / "a.pfrec", "worker-0", 1.0)
    recorded(tmp_path / "b.pfrec", "worker-1", 1.0)
    job, sql = pfd.open(tmp_path), "SELECT process, count(*) AS calls FROM call GROUP BY process ORDER BY process"
    read, rows = [], [{"process": "worker-0", "calls": 10}, {"process": "worker-1", "calls": 10}]
    true_pages = job_duckdb.pages
    monkeypatch.setattr(job_duckdb, "pages", lambda *where: read.append(where) or true_pages(*where))
    assert job.sql(sql, "duckdb") == job.sql(sql, "duckdb") == rows
    assert len(read) == 2
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM gil")
        file.execute("DELETE FROM call WHERE id > 7")
    assert job.sql(sql, "duckdb") == [{**rows[0], "calls": 7}, rows[1]]
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE meta SET value = '\"recording\"' WHERE key = 'state'")
    before = len(read)
    assert job.sql(sql, "duckdb") == job.sql(sql, "duckdb") == [{**rows[0], "calls": 7}, rows[1]]
    assert len(read) == before + 2  # it may grow: each time


def test_a_file_of_an_older_version_has_null_where_it_has_no_column(tmp_path):
    with contextlib.closing(sqlite3.connect(recorded(tmp_path / "a.pfrec", "old", 1.0))) as file, file:
        file.execute("INSERT INTO value (call, role, position, path, dtype, text, note, kept) "
                     "VALUES (1, 'input', 0, 'x', 'float32', '', '', '')")  # fmt: skip
        file.execute("ALTER TABLE value DROP COLUMN digest")
        file.execute("DROP TABLE static_shape")
        file.execute("PRAGMA user_version = 1")
    recorded(tmp_path / "b.pfrec", "new", 1.0)
    sql = "SELECT v.process, v.digest, (SELECT count(*) FROM static_shape) AS shapes FROM value v"
    for engine in job_sql.ENGINES:
        assert pfd.open(tmp_path).sql(sql, engine) == [{"process": "old", "digest": None, "shapes": 0}]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM call", "CREATE TABLE t (x INTEGER)", "SELECT 1; DROP TABLE call", "SELECT nothing FROM call",
        "SELECT * FROM read_text('{secret}')", "SELECT * FROM '{secret}'", "ATTACH '{new}' AS other",
        "COPY (SELECT 1) TO '{new}'", "SELECT * FROM opened", "SELECT * FROM glob('/*')",
    ],
)  # fmt: skip
def test_neither_engine_does_more_than_read_the_recordings(job, tmp_path, sql):
    secret, new = tmp_path / "secret.csv", tmp_path / "new"
    secret.write_text("a,b\n1,2\n")
    opened = pfd.open(job)
    for engine in job_sql.ENGINES:
        with pytest.raises(BadOptionError, match="bad query"):
            opened.sql(sql.format(secret=secret, new=new), engine)
    assert os.listdir(tmp_path) == ["secret.csv"]


COMPUTES_FOR_HOURS = "SELECT range AS x FROM range(1000000000000) WHERE x < 10000 OR x = 999999999999"


def test_duckdb_computes_no_further_for_rows_that_nobody_takes(job):
    """It would go on in the background until the result is full, and closing would wait for that."""
    rows = job_duckdb.by_duckdb(job_tables.sources(sorted(str(one) for one in job.glob("*.pfrec"))), COMPUTES_FOR_HOURS)
    assert [next(rows) for _ in range(9500)][-1] == (9498,)
    rows.close()


@pytest.mark.slow
def test_ctrl_c_ends_a_query_that_duckdb_is_in(job):
    with subprocess.Popen(
        [sys.executable, "-m", "pyfunc_debug", "query", str(job), COMPUTES_FOR_HOURS, "--engine", "duckdb"],
        stdout=subprocess.PIPE,
    ) as query:
        assert query.stdout.readline() == b"x\n"
        query.send_signal(signal.SIGINT)
        query.stdout.read()
    assert query.returncode == 130
