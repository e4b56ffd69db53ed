"""The ledger of a job's folder: 100 files of 10,000 calls, 8 files of a million, completed and of killed processes.

    python benchmarks/job.py [--share 1.0]

A process records 10,000 calls with GIL timing and ends, another one is killed; their files are copied, and for the
large ones their calls multiplied. Each folder is read twice by a process of its own: what a killed process left beside
its file is put into it the first time.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyfunc_debug as pfd

_SUMS = ("calls", "errors", "total_ns", "measured", "wait_ns", "held_ns", "released_ns", "reacquire_ns")


def record(path, how):
    """10,000 calls of three bodies; then the process ends, or dies."""
    import tensorflow as tf

    @tf.function
    def loop(x):
        for _ in tf.range(3334):
            tf.numpy_function(lambda v: v + 1, [x], tf.float32)
            tf.numpy_function(lambda v: v + 2, [x], tf.float32)
            tf.py_function(lambda v: v + 3, [x], tf.float32)

    with pfd.record(path, values="none") as recording:
        loop(tf.constant(1.0))
        if how == "killed":
            recording.sql("SELECT 1")  # what was called is in the file, or beside it
            os.kill(os.getpid(), signal.SIGKILL)


def multiply(path, times):
    """Makes each call so many calls; those that the ring knows keep their numbers."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA synchronous = OFF")
        newest = db.execute("SELECT max(id) FROM call").fetchone()[0]
        for table, number in (("call", "id"), ("gil", "call")):
            others = ", ".join(name for _, name, *_ in db.execute(f"PRAGMA table_info({table})") if name != number)
            for one in range(1, times):
                db.execute(
                    f"INSERT INTO {table} ({number}, {others}) SELECT {number} + {one * newest}, {others} FROM {table} "
                    f"WHERE {number} <= {newest}"
                )
        db.execute(f"UPDATE summary SET {', '.join(f'{name} = {name} * {times}' for name in _SUMS)}")
        db.commit()


def read(folder):
    """Prints what the folder's ledger takes, the first time and again."""
    for when in ("first", "again"):
        start, cpu = time.perf_counter(), time.process_time()
        ledger = pfd.open(folder).ledger()
        spent = f"{time.perf_counter() - start:6.2f} s, CPU {time.process_time() - cpu:6.2f} s"
        calls = sum(process.calls for process in ledger.processes)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"  {when}: {spent}, {calls:,} calls, {peak:.0f} MB at most", flush=True)


def main():
    """Makes the folders one after the other, and reads them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        record(*options.child[1:]) if options.child[0] == "record" else read(options.child[1])
        return
    this = [sys.executable, __file__, "--child"]
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        for how in ("completed", "killed"):
            one = os.path.join(folder, f"{how}.pfrec")
            subprocess.run([*this, "record", one, how], check=how == "completed")
            for files, times in ((100, 1), (8, 100)):
                multiply(one, max(1, int(times * options.share)))
                job = os.path.join(folder, f"{how}-{files}")
                os.mkdir(job)
                for number in range(files):
                    for suffix in ("", "-wal", "-ring"):
                        if os.path.exists(one + suffix):
                            shutil.copyfile(one + suffix, os.path.join(job, f"host-{number}-worker.pfrec{suffix}"))
                print(f"{files} files, {how}", flush=True)
                subprocess.run([*this, "read", job], check=True)
                shutil.rmtree(job)


if __name__ == "__main__":
    main()
