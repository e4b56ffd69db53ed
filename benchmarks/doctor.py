"""The doctor on a recording of a million calls with two million values and a million waits: CPU, time and memory.

    python benchmarks/doctor.py [--calls 1000000]

The file is written as the recorder writes it. Reading checks each table once ("checked"); a recording that this process
writes needs no check.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SOURCE = """import numpy as np
import tensorflow as tf


def logarithm(x):
    return np.log(x)


def squash(x):
    return np.tanh(x)


def step(x):
    return tf.numpy_function(logarithm, [x], tf.float32)
"""
COLUMNS = (
    "call, role, position, path, dtype, shape, nbytes, min, max, mean, std, nan, inf, zeros, sampled, histogram, text, "
    "note, kept, digest"
)


def write(path, count):
    """Four nodes of two functions; a NaN in every 100,000th output; every second input comes again."""
    from tests.doctor.recordings import FILE, THREADS, node, written

    nodes = [
        node(number, body, line, kind="numpy_function", function=function)
        for number, body, line, function in ((1, "logarithm", 5, 1), (2, "squash", 9, 1), (3, "logarithm", 5, 2),
                                             (4, "squash", 9, 2))
    ]  # fmt: skip
    functions = [
        {"id": 1, "name": "step", "kind": "tf.data", "file": FILE, "line": 13, "origin": "user"},
        {"id": 2, "name": "train", "kind": "tf.function", "file": FILE, "line": 13, "origin": "user"},
    ]
    meta = {"clock": {"monotonic_ns": 0, "wall_ns": 0}, "end_ns": count * 60_000, "cores": 2, "versions": {}}
    threads = [*THREADS, {"id": 2, "name": "TF-1", "native_id": 2}]
    written(path, SOURCE, meta, node=nodes, function=functions, thread=threads)
    db = sqlite3.connect(path)
    numbers = range(1, count + 1)
    db.executemany(
        "INSERT INTO call (id, node, kind, thread, start_ns, end_ns, cpu_ns, status) "
        "VALUES (?, ?, 'forward', ?, ?, ?, 40000, 'ok')",
        ((i, 1 + i % 4, 1 + i % 2, i * 60_000, i * 60_000 + 45_000) for i in numbers),
    )
    blame = '[["squash (#{})", {}], ["MainThread", {}]]'
    db.executemany(
        "INSERT INTO gil (call, grade, wait_ns, held_ns, released_ns, reacquire_ns, blame) "
        "VALUES (?, 'native', 60000, 30000, 10000, 5000, ?)",
        ((i, blame.format(max(1, i - 1), 32_000 + i % 977, 28_000 - i % 977)) for i in numbers),
    )
    histogram = json.dumps(list(range(1, 11)))
    db.executemany(
        f"INSERT INTO value ({COLUMNS}) VALUES ({', '.join('?' * 20)})",
        (
            (i, role, 0, path, "float32", "[8]", 32, 0.0, 1.0, 0.5, 0.1, int(role == "output" and i % 100_000 == 0), 0,
             0, None, histogram, "float32[8] x∈[0, 1]", "", "",
             (i * 7919 % (count // 2) if role == "input" else i * 31).to_bytes(16, "little"))
            for i in numbers
            for role, path in (("input", "x"), ("output", "out"))
        ),
    )  # fmt: skip
    db.commit()
    db.close()


def main():
    """Writes the recording and asks the doctor."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000)
    options = parser.parse_args()
    import pyfunc_debug as pfd

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.pfrec"
        write(path, options.calls)
        print(f"{options.calls:,} calls, {os.path.getsize(path) / 1e6:.0f} MB, load {os.getloadavg()[0]:.1f}")
        begun, cpu = time.perf_counter(), time.process_time()
        recording = pfd.open(path)
        for table in ("call", "value", "gil"):
            recording.reader.rows(f"SELECT 1 FROM {table} LIMIT 1")
        checked, checked_cpu = time.perf_counter(), time.process_time()
        found = recording.findings()
        print(
            f"checked {checked - begun:.1f} s ({checked_cpu - cpu:.1f} s CPU), {len(found)} findings in "
            f"{time.perf_counter() - checked:.1f} s ({time.process_time() - checked_cpu:.1f} s CPU), "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most"
        )


if __name__ == "__main__":
    main()
