"""What recording costs: ratios to the program without us, in one process, interleaved, medians, beside an A/A null.

    python benchmarks/recording.py [--rounds 15] [--seconds 150] [--only loop data always million] [--core 1]

`loop`: a tight graph loop of empty bodies. `data`: a tf.data pipeline of bodies that take 1 ms, on 64 kB and 1 MB.
`always`: the same pipeline beside a sampled recording that stays on, in short turns for `--seconds` with each size,
where half a percent can be seen.
`million`: a recording of a million calls: opening it, its ledger, and the memory of the recorder meanwhile.
`--core`: all on this core alone, where the loop's ratios repeat: on several, TensorFlow passes it to and fro.
"""

from __future__ import annotations

import argparse
import functools
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
from benchmarks.rounds import mirrored, pin, ratio


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


def always(seconds, elements=6, warm=2):
    """A pipeline beside a sampled recording that stays on: what is replaced is put back for every other stretch.

    Bodies do the same work in each call, some 1 ms, on one thread; that, and the one that takes elements, stay on one
    core, the recording's own on another. What is given is that of `benchmarks.rounds`. The recording's own threads work
    in any stretch: what they take is left out of the CPU time of all, and given for itself: with no calls, and with a
    third of them seen.
    """
    import ctypes
    import gc
    import threading

    import tensorflow as tf
    from tensorflow.python.data.ops.iterator_ops import OwnedIterator
    from tensorflow.python.ops.script_ops import FuncRegistry

    def work(x, times):
        for _ in range(times):
            np.add(x[:4096], 1)

    def once(x):
        start = time.process_time()
        work(x, 2000)
        return time.process_time() - start

    where = (FuncRegistry, "__call__"), (OwnedIterator, "_next_internal")
    stock = [getattr(*place) for place in where]

    def own_threads():
        return [one for one in threading.enumerate() if one.name.startswith("pyfunc_debug")]

    def clocks():
        own = sum(time.clock_gettime(time.pthread_getcpuclockid(one.ident)) for one in own_threads())
        return time.perf_counter(), time.process_time() - own, own

    def idle():
        time.sleep(2)
        start = time.process_time()
        time.sleep(5)
        return (time.process_time() - start) / 5

    if sys.platform.startswith("linux"):  # else each large tensor is given back to the kernel, and comes with faults
        libc = ctypes.CDLL(None)
        for option in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            libc.mallopt(option, 1 << 30)
    alone = idle()
    with tempfile.TemporaryDirectory() as folder, pfd.record(os.path.join(folder, "a.pfrec"), sample="1/100"):
        ours = [getattr(*place) for place in where]
        print(f"without calls: {alone * 1e6:.0f} us of CPU a second, with a recording {idle() * 1e6:.0f}", flush=True)
        for nbytes in (64 << 10, 1 << 20):
            source = np.random.default_rng(0).random(nbytes // 4).astype(np.float32)
            times = int(1e-3 * 2000 / min(once(source) for _ in range(9)))

            def body(x, times=times):
                work(x, times)
                return x

            plain = tf.data.Options()
            plain.autotune.enabled = plain.experimental_optimization.inject_prefetch = False  # else it works ahead
            plain.threading.private_threadpool_size = plain.threading.max_intra_op_parallelism = 1
            pipeline = (
                tf.data.Dataset.from_tensors(source)
                .repeat()
                .map(lambda x, body=body: tf.numpy_function(body, [x], tf.float32))
            )
            iterator = iter(pipeline.with_options(plain))
            for _ in range(300):
                next(iterator)
            pin({one.native_id for one in own_threads()})
            gc.collect()
            gc.freeze()

            def stretch(methods, iterator=iterator):
                for place, method in zip(where, methods):
                    setattr(*place, method)
                for _ in range(warm):
                    next(iterator)
                start = clocks()
                for _ in range(elements):
                    next(iterator)
                return [now - then for now, then in zip(clocks(), start)]

            began = clocks()
            variants = {"stock": stock, "stock again": stock, "sampled 1/100": ours}
            taken = mirrored({name: functools.partial(stretch, methods) for name, methods in variants.items()}, seconds)
            ended = clocks()
            for place, method in zip(where, ours):
                setattr(*place, method)
            base = taken["stock"]
            print(f"tf.data, sampled recording always on, {len(base):,} rounds, elements of {nbytes >> 10} kB")
            for name, spent in taken.items():
                each = statistics.median(one[0] for one in spent) / (2 * elements)
                said = (f"{kind} {ratio(spent, base, i)}" for i, kind in enumerate(("ratio", "of CPU time")))
                print(f"  {name:<14} {each * 1e6:7.0f} us an element   {'   '.join(said)}", flush=True)
            mean = (ended[2] - began[2]) / (ended[0] - began[0])
            print(f"  the recording's threads meanwhile: {mean * 1e6:.0f} us of CPU a second", flush=True)
    gc.unfreeze()


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
    parser.add_argument("--only", nargs="+", default=["loop", "data", "always", "million"])
    parser.add_argument("--seconds", type=float, default=150)
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
    if "always" in options.only:
        always(options.seconds)


if __name__ == "__main__":
    main()
