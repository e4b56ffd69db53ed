"""Work for forked processes that calls TensorFlow: the cause of the waiting is named, and how to spawn them."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, call, node, written

BARE = """import multiprocessing as mp
import tensorflow as tf

def features(x):
    return tf.reduce_mean(x).numpy()

pool = mp.Pool(2)

def bad(x):
    return pool.apply(features, (x,))
"""
GUARDED = """import multiprocessing
import tensorflow as tf
from concurrent.futures import ProcessPoolExecutor

def resized(image):
    small = tf.image.resize(image, [8, 8])
    return small.numpy()

def main():
    with ProcessPoolExecutor(max_workers=2) as workers:
        def bad(x):
            return workers.submit(resized, x).result()

if __name__ == "__main__":
    main()
"""
ASKED = """import multiprocessing as mp
import tensorflow as tf

def one(x):
    return tf.add(x, 1)

if __name__ == "__main__":
    pool = mp.get_context("fork").Pool(processes=2)
    waiting = pool.map_async(one, [1, 2])
    def bad(x):
        return waiting.get()
"""


def finding(tmp_path, source, line, what="the result of a multiprocessing pool"):
    frames = [[FILE, line, "bad", source.split("\n")[line - 1].strip()]]
    facts = {"age_s": 31.0, "what": what, "pool": 0, "lock": False, "frames": frames}
    notice = {"rule": "hang", "node": 1, "call": 1, "facts": json.dumps(facts)}
    rows = {"node": [node()], "call": [call(1, status="running")], "notice": [notice]}
    (found,) = Recording(written(tmp_path / "a.pfrec", source, **rows)).findings(select=["hang", "doctor-trouble"])
    return found


def test_without_a_guard_a_spawned_process_would_run_the_program_again_so_words_say_it(tmp_path):
    found = finding(tmp_path, BARE, 10)
    assert "features calls TensorFlow (train.py:5), in a process that was forked (train.py:7) from this one" in (
        found.message
    )
    assert found.fix.startswith(
        "use NumPy alone in features; or make the pool before the first operation of TensorFlow"
    )


@pytest.mark.parametrize(
    ("source", "line", "what", "new"),
    [
        (GUARDED, 12, "the result of a future",
         'with ProcessPoolExecutor(max_workers=2, mp_context=multiprocessing.get_context("spawn")) as workers:'),
        (ASKED, 11, "the result of a multiprocessing pool", 'pool = mp.get_context("spawn").Pool(processes=2)'),
        (BARE.replace("pool = mp", 'if __name__ == "__main__":\n    pool = mp'), 11,
         "the result of a multiprocessing pool", 'pool = mp.get_context("spawn").Pool(2)'),
    ],
)  # fmt: skip
def test_the_pools_line_is_pasted_with_processes_that_are_spawned(tmp_path, source, line, what, new):
    found = finding(tmp_path, source, line, what)
    assert "calls TensorFlow" in found.message
    mended = pasted(source, found.fix)
    assert new in mended
    compile(mended, "train.py", "exec")


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("tf.reduce_mean(x).numpy()", "x.mean()"),  # the work is NumPy's
        ("pool = mp.Pool(2)", 'pool = mp.get_context("spawn").Pool(2)'),
        ("pool = mp.Pool(2)", 'mp.set_start_method("forkserver"); pool = mp.Pool(2)'),
        ("pool.apply(features, (x,))", "pool.apply(other.features, (x,))"),  # its code is elsewhere
        ("pool.apply(features, (x,))", "pool.apply(len, (x,))"),
        ("pool = mp.Pool(2)", "from multiprocessing.dummy import Pool; pool = Pool(2)"),
    ],
)
def test_nothing_is_said_of_forks_where_it_only_looks_so(tmp_path, was, now):
    assert "forked" not in finding(tmp_path, BARE.replace(was, now), 10).message


def test_another_wait_has_nothing_to_do_with_it(tmp_path):
    assert "forked" not in finding(tmp_path, BARE, 10, "an item of a queue").message
