"""A few damaged recordings through every command; `python -m tests.faults files` tries hundreds."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest

import pyfunc_debug as pfd
from pyfunc_debug.pfrec import checks
from tests.faults import files
from tests.limits import HANG_S

ENDLESS = "WITH RECURSIVE a (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT count(*) FROM a"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return files.base(tmp_path_factory.mktemp("whole"))


def test_a_damaged_file_is_one_line_in_every_command(tmp_path):
    counts, wrong = files.run(12, 41, tmp_path)
    assert wrong == []
    assert counts["refused"] > 12


def changed(path, folder, sql):
    copy = folder / "changed.pfrec"
    shutil.copy(path, copy)
    with contextlib.closing(sqlite3.connect(copy)) as db:
        db.executescript(sql)
    return copy


def read(path):
    with contextlib.closing(pfd.open(path)) as recording:
        return recording.ledger(), list(recording.calls())


@pytest.mark.parametrize(("sql", "said"), [
    ("UPDATE call SET node = 999 WHERE id = 3", "the column node of its table call holds what no recording has"),
    ("UPDATE call SET status = 'fine' WHERE id = 3", "the column status of its table call holds what no recording has"),
    ("UPDATE call SET start_ns = 'a'", "the column start_ns of its table call holds what no recording has"),
    ("UPDATE value SET shape = '[[1]]'", "the column shape of its table value holds what no recording has"),
    ("UPDATE stack SET frames = '[[1]]'", "the column frames of its table stack holds what no recording has"),
    ("UPDATE meta SET value = '{' WHERE key = 'state'", "its meta entry state holds what is not JSON"),
    ("ALTER TABLE gil RENAME TO x; CREATE VIEW gil AS SELECT * FROM x",
     "it holds the view gil, which no recording has"),
    ("ALTER TABLE node DROP COLUMN body", "its table node has no column body as a recording has"),
])  # fmt: skip
def test_what_no_recording_has_is_named(whole, tmp_path, sql, said):
    with pytest.raises(pfd.BadRecordingError, match=f"is damaged: {said}$"):
        read(changed(whole[0], tmp_path, sql))


def test_a_recording_is_not_called_damaged(whole):
    for path in whole:
        with contextlib.closing(pfd.open(path)) as recording:
            for table in checks.tables():
                recording.reader.rows(f"SELECT * FROM {table}")


def test_ctrl_c_ends_a_query_and_a_bound_ends_it_without(whole):
    query = [sys.executable, "-m", "pyfunc_debug", "query", whole[0], ENDLESS]
    bound = subprocess.Popen(query, env={**os.environ, "PYFUNC_DEBUG_CPU_S": "1"}, stderr=subprocess.PIPE, text=True)
    first = "WITH RECURSIVE a (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT x FROM a"
    streamed = subprocess.Popen(
        [*query[:-1], "--json", first], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert streamed.stdout.readline() == '[{"x": 1},\n'  # rows come before the last one, which never does
    streamed.send_signal(signal.SIGINT)
    assert (streamed.communicate(timeout=HANG_S)[1], streamed.returncode) == ("", 130)
    said = bound.communicate(timeout=HANG_S)[1]
    assert (bound.returncode, said.count("\n")) == (1, 1)
    assert "gave up on rich.pfrec after 1 s of CPU time" in said
