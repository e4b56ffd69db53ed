"""A process that was forked after TensorFlow had threads, and stands still in TensorFlow, is told, with a paste."""

from __future__ import annotations

import json

import pytest

from pyfunc_debug.api.recording import Recording
from tests import forked
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, written

HANGS = """
import multiprocessing, os, sys, time
import tensorflow as tf
import pyfunc_debug as pfd

double = tf.function(lambda x: x * 2)

def work(queue):
    queue.put(float(WORK))

if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    double(tf.constant(1.0))
    with pfd.record("a.pfrec", hang_after=1.0) as recording:
        queue = multiprocessing.Queue()
        child = multiprocessing.Process(target=work, args=(queue,), daemon=True)
        child.start()
        END
        child.kill()
"""
UNTIL_TOLD = """while not recording.findings(select=["forked-process"]):
            time.sleep(0.1)"""
FLAT = """import numpy as np
import tensorflow as tf
from multiprocessing import Pool

scale = 2.0
tf.matmul(np.ones((9, 9)), np.ones((9, 9)))


def score(seed):
    return float(tf.reduce_sum(tf.ones([400, 400]) * scale))


pool = Pool(2)
print(pool.map(score, range(4)))
"""
GUARDED = """import multiprocessing as mp
import tensorflow as tf

class Worker(mp.Process):
    def __init__(self, queue):
        super().__init__()
        self.queue = queue

    def run(self):
        self.queue.put(tf.matmul(tf.ones([9, 9]), tf.ones([9, 9])).numpy())

def main():
    queue = mp.Queue()
    Worker(queue).start()
    print(queue.get())

if __name__ == "__main__":
    main()
"""
ASKED = """import tensorflow as tf
from multiprocessing import get_context

def one(x):
    return tf.matmul(x, x)

if __name__ == "__main__":
    with get_context("fork").Pool(processes=2) as pool:
        pool.map(one, [1, 2])
"""
KERAS = """import keras

class Images(keras.utils.PyDataset):
    def __getitem__(self, index):
        return keras.ops.matmul(self.x, self.x)

data = Images(workers=2, use_multiprocessing=True)
model.fit(data, epochs=2)
"""
JOBLIB = """from joblib import Parallel, delayed
import tensorflow as tf
def one(x):
    return tf.matmul(x, x)
out = Parallel(n_jobs=2, backend="multiprocessing")(delayed(one)(x) for x in images)
"""


def run(tmp_path, work, end):
    (tmp_path / "program.py").write_text(HANGS.replace("WORK", work).replace("END", end))
    ran = forked.run("program.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    return Recording(str(tmp_path / "a.pfrec")).findings(select=["forked-process", "doctor-trouble"])


@pytest.mark.slow
def test_a_child_that_never_ends_its_operation_is_told_while_it_stands(tmp_path):
    (found,) = run(tmp_path, "double(tf.constant(3.0))", UNTIL_TOLD)
    assert "Process-1 (process " in found.message
    assert "still in TensorFlow at program.py:9 for" in found.message
    assert "and a forked process has none of them" in found.message
    assert (found.severity, found.line) == ("error", 17)
    mended = pasted((tmp_path / "program.py").read_text(), found.fix)
    assert mended == HANGS.replace("WORK", "double(tf.constant(3.0))").replace("END", UNTIL_TOLD).replace(
        '"fork"', '"spawn"'
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "end"),
    [
        ("tf.constant(3.0) * 2", "queue.get()"),  # runs on the thread that is there
        ("time.sleep(4)", "child.join()"),
        ("sum(range(60_000_000))", "child.join()"),
    ],
)
def test_a_child_that_ends_is_not_told(tmp_path, work, end):
    assert run(tmp_path, work, end) == []


def finding(tmp_path, source, forked, child, function, went_on=False, calls=1):
    lines = source.split("\n")
    facts = {
        "process": 71, "name": "Process-1", "age_s": 27.2, "threads": 2, "threads_here": 0, "went_on": False,
        "forked": [FILE, forked, "<module>", lines[forked - 1].strip()],
        "frames": [[FILE, child, function, lines[child - 1].strip()]],
        "waits": {"what": "another process to end", "frames": [[FILE, forked, "<module>", ""]]},
    }  # fmt: skip
    notices = [{"rule": "forked", "facts": json.dumps({**facts, "process": 71 + n})} for n in range(calls)]
    notices += [{"rule": "forked", "facts": json.dumps({**facts, "went_on": True})}] * went_on
    path = written(tmp_path / "a.pfrec", source, notice=notices)
    (found,) = Recording(path).findings(select=["forked-process", "doctor-trouble"])
    return found


def test_without_a_guard_what_starts_the_program_goes_under_one_and_what_the_process_needs_stays(tmp_path):
    found = finding(tmp_path, FLAT, 13, 10, "score", calls=2)
    assert found.message.startswith("2 forked processes (processes 71, 72) stood still in TensorFlow at train.py:10")
    mended = pasted(FLAT, found.fix)
    compile(mended, "train.py", "exec")
    assert mended == FLAT.replace(
        "tf.matmul(np", 'if __name__ == "__main__":\n    import multiprocessing\n'
        '    multiprocessing.set_start_method("spawn")\n    tf.matmul(np'
    ).replace("pool = Pool(2)\nprint", 'if __name__ == "__main__":\n    pool = Pool(2)\n    print')  # fmt: skip


@pytest.mark.parametrize(
    ("source", "forked", "child", "function", "new"),
    [
        (GUARDED, 14, 10, "run", 'if __name__ == "__main__":\n    mp.set_start_method("spawn")\n    main()'),
        (ASKED, 8, 5, "one", 'with get_context("spawn").Pool(processes=2) as pool:'),
        (KERAS, 8, 5, "__getitem__", "Images(workers=2, use_multiprocessing=False)"),
        (JOBLIB, 5, 4, "one", 'Parallel(n_jobs=2, backend="loky")'),
    ],
)
def test_the_users_own_lines_are_pasted(tmp_path, source, forked, child, function, new):
    mended = pasted(source, finding(tmp_path, source, forked, child, function).fix)
    assert new in mended
    compile(mended, "train.py", "exec")


@pytest.mark.parametrize(
    ("was", "now", "why"),
    [
        ("scale = 2.0\n", "scale = tf.Variable(2.0); scale.assign(3.0)\n", "scale is changed after it was made"),
        ("def score", "if scale:\n  def score", "at the top level of a file only"),
        ("print(pool", 'print("""two\nlines""", pool', "a text of several lines"),
    ],
)
def test_where_it_would_not_run_words_say_what_to_do(tmp_path, was, now, why):
    source = FLAT.replace(was, now)
    source = source.replace("    return float", "      return float") if "if scale" in now else source
    source = source.replace("scale.assign", "\nscale.assign") if "assign" in now else source
    shift = source.count("\n", 0, source.index("return float")) + 1
    pool = source.count("\n", 0, source.index("pool = Pool")) + 1
    found = finding(tmp_path, source, pool, shift, "score")
    assert found.fix.startswith("use NumPy in place of TensorFlow in score; or start its processes before")
    assert why in found.fix


def test_a_process_that_a_thread_of_keras_forked_has_no_line_that_forks(tmp_path):
    facts = {
        "process": 71, "name": "Keras_worker_ForkPoolWorker-1", "age_s": 27.2, "threads": 2, "threads_here": 0,
        "went_on": False, "forked": None, "frames": [[FILE, 5, "__getitem__", ""]], "waits": {},
    }  # fmt: skip
    path = written(tmp_path / "a.pfrec", KERAS, notice=[{"rule": "forked", "facts": json.dumps(facts)}])
    (found,) = Recording(path).findings(select=["forked-process", "doctor-trouble"])
    assert found.line == 5
    assert "use_multiprocessing=False" in pasted(KERAS, found.fix)


def test_a_process_that_went_on_is_a_warning(tmp_path):
    found = finding(tmp_path, FLAT, 13, 10, "score", went_on=True)
    assert found.severity == "warning"
    assert "for 27 s and went on later" in found.message
