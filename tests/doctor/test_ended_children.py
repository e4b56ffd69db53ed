"""A line that waits for a process that has ended says so: which, how it ended, and a wait that ends to paste."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.pasting import pasted
from tests.doctor.recordings import FILE, call, node, written
from tests.limits import HANG_S

PROGRAM = """
import multiprocessing, os, signal, threading, time
import pyfunc_debug as pfd

def work(results):
    BODY

def give(results):
    while not recording.findings(select=["hang"]):
        time.sleep(0.1)
    results.put(0)

if __name__ == "__main__":
    multiprocessing.set_start_method("METHOD")
    results = multiprocessing.Queue()
    with pfd.record("a.pfrec", hang_after=1.0) as recording:
        worker = multiprocessing.Process(target=work, args=(results,))
        worker.start()
        threading.Thread(target=give, args=(results,)).start()
        results.get()
        worker.join()
"""
POOL = """
import os, signal, sys, threading, time
from multiprocessing import Pool
import pyfunc_debug as pfd

def work(number):
    if number == 2:
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
    return number

def end():
    while not recording.findings(select=["hang"]):
        time.sleep(0.1)
    recording.stop()
    pool.terminate()
    os._exit(0)

if __name__ == "__main__":
    with pfd.record("a.pfrec", hang_after=1.0) as recording:
        pool = Pool(2)
        threading.Thread(target=end, daemon=True).start()
        print(pool.map(work, range(4), chunksize=1))
"""
WAITS = """import multiprocessing as mp

def load(out):
    out.put(1)

def bad(x):
    out = mp.Queue()
    workers = [mp.Process(target=load, args=(out,)) for _ in range(2)]
    worker = workers[0]
    got = out.get()
    return got
"""


def run(tmp_path, source):
    (tmp_path / "program.py").write_text(source)
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True, timeout=HANG_S, capture_output=True)
    return Recording(str(tmp_path / "a.pfrec")).findings(select=["hang", "doctor-trouble"])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("{}[3]", "ended with exit code 1"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL"),
        ("pass", "ended with exit code 0"),
    ],
)
def test_the_main_thread_that_waits_for_it_is_told(tmp_path, method, body, how):
    source = PROGRAM.replace("BODY", body).replace("METHOD", method)
    (found,) = run(tmp_path, source)
    assert "nothing moved in the main thread for " in found.message
    assert re.search(rf"waited for data from another process. Process-1 \(process \d+\) {how}", found.message)
    assert found.line == 20
    assert "                if worker.exitcode is not None:" in found.fix
    compile(pasted(source, found.fix), "program.py", "exec")


@pytest.mark.slow
def test_a_pool_that_lost_a_process_is_told(tmp_path):
    (found,) = run(tmp_path, POOL)
    assert "a process of the pool died at work" in found.message
    assert found.fix.endswith("print(pool.map_async(work, range(4), chunksize=1).get(timeout=60))")


@pytest.mark.slow
@pytest.mark.parametrize(
    "before",
    [
        "",
        "with multiprocessing.Pool(2) as pool: pool.map(abs, [1, 2])",
        "over = multiprocessing.Process(target=os._exit, args=(3,)); over.start(); over.join()",
        "over = multiprocessing.Process(target=time.sleep, args=(60,)); over.start(); over.terminate(); over.join()",
    ],
)
def test_a_process_that_lives_is_not_told(tmp_path, before):
    source = PROGRAM.replace("worker = ", f"{before}\n        worker = ")
    source = source.replace("BODY", "time.sleep(4); results.put(1)").replace("METHOD", "fork")
    source = source.replace("    while not recording.findings", "    return\n    while not recording.findings")
    assert run(tmp_path, source) == []


def finding(tmp_path, source, ended, alive=0, what="data from another process", line=10):
    facts = {
        "age_s": 31.0, "what": what, "pool": 0, "lock": True, "frames": [[FILE, line, "bad", "got = out.get()"]],
        "ended": [{"name": "Process-1", "process": 7, "failed": True, "among": False, "variable": "", **ended}],
        "alive": alive,
    }  # fmt: skip
    notice = {"rule": "hang", "node": 1, "call": 1, "facts": json.dumps(facts)}
    rows = {"node": [node()], "call": [call(1, status="running")], "notice": [notice]}
    (found,) = Recording(written(tmp_path / "a.pfrec", source, **rows)).findings(select=["hang", "doctor-trouble"])
    return found


@pytest.mark.parametrize(
    ("ended", "asked"),
    [
        ({"variable": "worker"}, "if worker.exitcode is not None:"),
        ({"variable": "workers", "among": True}, "if any(one.exitcode for one in workers) or not any("),
    ],
)
@pytest.mark.parametrize(
    ("first", "empty"),
    [
        ("import queue\n", "except queue.Empty:"),
        ("from queue import Empty\n", "except Empty:"),
        ("", "except queue.Empty:"),
        ("queue = 1\n", "except Empty:"),
    ],
)
def test_the_wait_looks_at_the_users_own_process(tmp_path, ended, asked, first, empty):
    source = first + WAITS
    found = finding(tmp_path, source, {"how": "ended with exit code 1", **ended}, line=10 + bool(first))
    assert "No process is left" in found.message
    mended = pasted(source, found.fix)
    compile(mended, "train.py", "exec")
    assert asked in mended
    assert empty in mended


def test_where_no_variable_holds_the_process_only_the_cause_is_said(tmp_path):
    found = finding(tmp_path, WAITS, {"how": "was killed by SIGKILL"}, alive=1)
    assert "Process-1 (process 7) was killed by SIGKILL" in found.message
    assert "No process is left" not in found.message
    assert "exitcode" not in found.fix


def test_a_process_that_ended_and_was_waited_for_is_known_by_its_code():
    from pyfunc_debug.program import children

    pid = os.fork()
    if not pid:
        os._exit(3)
    process = type("Popen", (), {"pid": pid, "returncode": None})
    while children._code(process) is None:
        pass
    assert children._code(process) == 3
    assert os.waitpid(pid, 0) == (pid, 3 << 8), "it was not waited for"
    assert children._words(-signal.SIGTERM) == "was killed by SIGTERM"
