"""What recording costs: ratios to the program without us, in one process, interleaved, medians, beside an A/A null.

    python benchmarks/recording.py [--rounds 15] [--only loop data million] [--core 1]

`loop`: a tight graph loop of empty bodies. `data`: a tf.data pipeline of bodies that take 1 ms, on 64 kB and 1 MB.
`million`: a recording of a million calls: opening it, its ledger, and the memory of the recorder meanwhile.
`--core`: all on this core alone, where the loop's ratios repeat: on several, TensorFlow passes it to and fro.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import pyfunc_debug as pfd


def interleaved(program, variants, rounds):
    """Median ratio of each variant to stock, of times taken in turns; the second stock is the null."""
    times = {name: [] for name in ("stock", "stock again", *variants)}
    for turn in range(rounds + 1):
        for name in times:
            if name.startswith("stock"):
                spent = program()
            else:
                with pfd.record(**variants[name]):
                    program(warm=True)
                    spent = program()
            if turn:  # the first round warms up
                times[name].append(spent)
    base = times["stock"]
    for name, spent in times.items():
        ratios = [one / other for one, other in zip(spent, base)]
        quartiles = statistics.quantiles(ratios, n=4)
        print(
            f"  {name:<24} {statistics.median(spent) * 1e3:9.1f} ms   ratio {statistics.median(ratios):.3f}"
            f"   (quartiles {quartiles[0]:.3f} {quartiles[2]:.3f})",
            flush=True,
        )


def loop(rounds, calls=3000):
    """A loop in a graph whose body does nothing."""
    import tensorflow as tf

    for make in (tf.py_function, tf.numpy_function):

        @tf.function
        def run(count, make=make):
            total = tf.constant(0.0)
            while count > 0:
                total = tf.ensure_shape(make(lambda x: x, [total], tf.float32), [])
                count -= 1
            return total

        def program(warm=False, run=run):
            start = time.perf_counter()
            run(tf.constant(100 if warm else calls))
            return time.perf_counter() - start

        program(warm=True)
        name = "py_function" if make is tf.py_function else "numpy_function"
        print(f"loop of {calls:,} empty bodies, {name}, one number in and out")
        variants = {
            f"values={values}": {"values": values, "gil": False} for values in ("none", "shape", "summary", "full")
        }
        interleaved(program, {**variants, "summary and GIL": {"values": "summary"}}, rounds)


def data(rounds, elements=200):
    """A pipeline whose bodies compute for a millisecond, with Python and NumPy in turns as bodies do."""
    import tensorflow as tf

    for nbytes in (64 << 10, 1 << 20):
        source = np.random.default_rng(0).random(nbytes // 4).astype(np.float32)

        def body(x):
            end = time.perf_counter() + 1e-3
            while time.perf_counter() < end:
                np.add(x[:4096], 1)
            return x

        for parallel in (None, 2):
            pipeline = (
                tf.data.Dataset.from_tensors(source)
                .repeat(elements)
                .map(lambda x: tf.numpy_function(body, [x], tf.float32), num_parallel_calls=parallel)
            )

            def program(warm=False, pipeline=pipeline):
                start = time.perf_counter()
                for _ in pipeline.take(5 if warm else elements):
                    pass
                return time.perf_counter() - start

            program(warm=True)
            print(f"tf.data, {elements} elements of {nbytes >> 10} kB, bodies of 1 ms, parallel calls: {parallel}")
            variants = {
                "summary": {"gil": False},
                "none": {"values": "none", "gil": False},
                "sampled 1/100": {"sample": "1/100"},
            }
            interleaved(program, variants, rounds)


def million(calls=1_000_000):
    """A million calls through the recorder itself; the program that makes them would only be slower."""
    from pyfunc_debug.events import Body, NodeFacts
    from pyfunc_debug.recorder import Budget, Recorder
    from pyfunc_debug.values import Policies

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "million.pfrec")
        recorder = Recorder(path, Policies("none"), Budget(10**9), {})
        body = Body("body", None, None, ("x",), False)
        recorder.node_made(
            NodeFacts("t", "py_function", body, None, None, None, (), (), ("x",), ("out",), False, None, None)
        )
        memory = []
        start = time.perf_counter()
        for number in range(1, calls + 1):
            recorder.leave(recorder.enter("t", ()), None)
            if number % 50_000 == 0:
                recorder.flush()
                memory.append(resident())
        recorder.close({})
        print(f"{calls:,} calls recorded in {time.perf_counter() - start:.1f} s, {os.path.getsize(path) / 1e6:.0f} MB")
        print(f"  memory after {calls // 20:,}, half and all: {memory[0]:.0f} {memory[9]:.0f} {memory[-1]:.0f} MB")
        start = time.perf_counter()
        recording = pfd.open(path)
        opened, cpu = time.perf_counter(), time.process_time()
        recording.ledger()
        spent, cpu = time.perf_counter() - opened, time.process_time() - cpu
        print(f"  open {opened - start:.3f} s, ledger {spent:.2f} s ({cpu:.2f} s CPU)", flush=True)
        recording.close()


def main():
    """Runs the benchmarks and says on what machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", default=["loop", "data", "million"])
    parser.add_argument("--core", type=int)
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    import tensorflow as tf

    print(
        f"TensorFlow {tf.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}"
    )
    if "million" in options.only:
        million()
    if "loop" in options.only:
        loop(options.rounds)
    if "data" in options.only:
        data(options.rounds)


if __name__ == "__main__":
    main()
