"""A program whose own threads are inside SQLite when it forks: SQLite's locks stay taken in its children."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests import forked

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PROGRAM = r"""
import os, sqlite3, threading
import tensorflow as tf

def work():
    while True:
        with sqlite3.connect(":memory:") as connection:
            connection.execute("SELECT randomblob(10)").fetchall()

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
children = []
for _ in range(12):
    pid = os.fork()
    if not pid:
        os.write(1, b"%d\n" % int(tf.numpy_function(lambda x: x + 1, [6], tf.int64)))
        os._exit(0)
    children.append(pid)
for one in children:
    os.waitpid(one, 0)
print("children", *children)
"""


def test_children_that_cannot_use_it_run_on_and_it_is_said_that_they_are_not_recorded(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = forked.run(
        "-m", "pyfunc_debug", "record", "--processes", "-o", "run", "train.py", cwd=tmp_path, env=environment
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *numbers, last = done.stdout.split("children")
    children = {int(one) for one in last.split()}
    assert "".join(numbers).split() == ["7"] * len(children)
    said = {int(one) for one in re.findall(r"process (\d+) is not recorded: a thread of its parent was", done.stderr)}
    recorded = {int(path.name.split("-")[-2]) for path in (tmp_path / "run").glob("*.pfrec")}
    assert said
    assert said | recorded >= children
    assert not said & recorded
