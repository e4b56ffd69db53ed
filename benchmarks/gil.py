"""What the GIL probe costs, whether programs still exit as they did, and how good the what-if ceiling is.

    python benchmarks/gil.py cost | exits [--runs 50] | whatif

Each compares within one run, alternating, because machines drift. Numbers go into docs/gil.md with the machine's name.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import os
import statistics
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug import gil
from pyfunc_debug.gil import native, opstart


def loop(calls: int) -> Callable[[], float]:
    """Runs a tight loop of numpy_function calls in one graph; gives us of CPU a call, of all threads of the process."""

    def body(x):
        return x

    @tf.function
    def run(x):
        for _ in tf.range(calls):
            x = tf.ensure_shape(tf.numpy_function(body, [x], tf.float32), [])
        return x

    one = tf.constant(1.0)
    run(one)

    def timed() -> float:
        start = time.process_time()
        run(one)
        return (time.process_time() - start) / calls * 1e6

    return timed


def cost(rounds: int = 9, calls: int = 2000) -> None:
    """CPU us a call: stock; the probe alone; recording without and with it (writer included), by grade."""
    # On one core: on several, idle threads of TensorFlow's pool spin, and a call that is a bit later counts threefold.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    timed = loop(calls)
    load = native.load
    opstart.FIRST_S = 60.0  # one window for each round: what a call costs inside

    def absent():
        raise native.AbsentError("switched off by the benchmark")

    def probed() -> float:
        probe = gil.open_probe("native")
        probe.start()
        try:
            return timed()
        finally:
            probe.stop()

    def windowed() -> float:
        probe = gil.open_probe("op-start", canary=False)
        probe.start()
        try:
            return timed()
        finally:
            probe.stop()

    def recorded(measure: bool, without_native: bool = False) -> float:
        native.load = absent if without_native else load
        try:
            with pfd.record(values="none", gil=measure) as recording:
                timed()  # meets the nodes
                return timed()
        finally:
            native.load = load
            recording.close()

    ways = {
        "stock": timed,
        "native probe alone": probed,
        "op-start probe alone": windowed,
        "recording, gil=False": lambda: recorded(False),
        "recording, native": lambda: recorded(True),
        "recording, op start": lambda: recorded(True, without_native=True),
    }
    found = collections.defaultdict(list)
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    pairs = {
        "native probe alone": "stock", "op-start probe alone": "stock",
        "recording, native": "recording, gil=False", "recording, op start": "recording, gil=False",
    }  # fmt: skip
    for name, times in found.items():
        line = f"{name:24} {statistics.median(times):7.1f} CPU us/call  (least {min(times):.1f})"
        if name in pairs:
            over = [a - b for a, b in zip(times, found[pairs[name]], strict=True)]
            line += f"   over {pairs[name]}: median {statistics.median(over):+.2f}, "
            line += f"least {min(times) - min(found[pairs[name]]):+.2f} us"
        print(line, flush=True)


EXIT = """
    import os, sys, threading, time
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    import pyfunc_debug as pfd
    from pyfunc_debug import gil
    way = sys.argv[1]
    if way == "record":
        pfd.record().start()
    elif way != "stock":
        probe = gil.open_probe(way)
        probe.start()
        assert probe.grade == way, probe.why
    def body(x):
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            pass
        return x
    @tf.function
    def run(x):
        for i in tf.range(100000):
            x = tf.ensure_shape(tf.numpy_function(body, [x], tf.float32), [])
        return x
    for _ in range(3):
        threading.Thread(target=run, args=[tf.constant(1.0)], daemon=True).start()
    time.sleep(0.5)
"""


def exits(runs: int) -> None:
    """How programs end that exit while daemon threads run bodies: stock beside ours."""
    ways = ["stock", "native", "op-start", "record"]
    ends: dict[str, collections.Counter[str]] = {way: collections.Counter() for way in ways}
    for run in range(1, runs + 1):
        for way in ways:
            try:
                done = subprocess.run(
                    [sys.executable, "-c", textwrap.dedent(EXIT), way], capture_output=True, timeout=90
                )
                end = str(done.returncode)
            except subprocess.TimeoutExpired:
                end = "hung"
            ends[way][end] += 1
        if run % 5 == 0 or run == runs:
            for way, found in ends.items():
                print(f"{way:10} exit codes of {run} runs: {dict(found)}", flush=True)


hold = ctypes.PyDLL(None).usleep
release = ctypes.CDLL(None).usleep


def spin(seconds: float) -> None:
    """Runs Python for some CPU time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


matrix = np.ones((256, 256), np.float32)
large = np.ones(400_000, np.float32)
KINDS: dict[str, Callable[[], object]] = {
    "spin": lambda: spin(0.004),
    "C that holds": lambda: hold(4000),
    "sleep": lambda: release(4000),
    "spin 2, sleep 2": lambda: (spin(0.002), release(2000)),
    "matmul": lambda: [matrix @ matrix for _ in range(6)],
    "numpy": lambda: [np.sin(large) for _ in range(2)],
    "hold 1, sleep 3": lambda: (hold(1000), release(3000)),
}


def dataset(work: Callable[[], object], pool: int, elements: int) -> Callable[[int], tf.data.Dataset]:
    """Makes datasets with a private pool by num_parallel_calls."""

    def body(i):
        work()
        return i

    def make(calls: int) -> tf.data.Dataset:
        found = tf.data.Dataset.range(elements).map(
            lambda i: tf.numpy_function(body, [i], tf.int64), num_parallel_calls=calls
        )
        options = tf.data.Options()
        options.threading.private_threadpool_size = pool
        options.autotune.enabled = False
        return found.batch(elements).with_options(options)

    return make


def whatif(elements: int = 48, repeat: int = 3) -> None:
    """The ceiling beside what is measured: seven kinds of body, n of 1, 2, 4, 8, pools of 2 and 8."""
    worst, over = 0.0, []
    for name, work in KINDS.items():
        for pool in (2, 8):
            make = dataset(work, pool, elements)
            with pfd.record(values="none") as recording:
                for _ in make(1):
                    pass
            [stage] = recording.stages(pool=pool)
            recording.close()
            cells = []
            best = dict.fromkeys((1, 2, 4, 8), float("inf"))
            for _ in range(repeat):
                for n in best:
                    start = time.perf_counter()
                    for _ in make(n):
                        pass
                    best[n] = min(best[n], time.perf_counter() - start)
            for one in stage.ceilings:
                measured = best[1] / best[one.calls]
                worst = max(worst, measured / one.speedup)
                over.append(one.speedup / measured)
                cells.append(f"n={one.calls}: {measured:.2f} of {one.speedup:.2f}")
            print(f"{name:16} pool {pool}  " + "   ".join(cells), flush=True)
    print(f"measured / ceiling: at most {worst:.2f} (1.10 allowed); the ceiling is {statistics.median(over):.2f} x the")
    print(f"measured in the median, at most {max(over):.2f} x; threads left: {threading.active_count()}")


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["cost", "exits", "whatif"])
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, TensorFlow {tf.__version__}, {os.cpu_count()} cores, "
          f"load {os.getloadavg()[0]:.1f}", flush=True)  # fmt: skip
    {"cost": cost, "exits": lambda: exits(options.runs), "whatif": whatif}[options.what]()


if __name__ == "__main__":
    main()
