"""Programs with very many nodes, functions and threads, recursive or endless: time and memory with us and without.

    python benchmarks/scale.py [--only nodes functions threads recursion anew endless calls] [--share 1.0] [--again 1]

Each program runs in a process of its own, stock and recorded in turns, twice; `--share 0.1`: ten times smaller. Memory
is that after the first time, when all is written, and after a second time in the same process (`--again 9`: after nine
more), and so are the blocks that Python's allocator has given out: memory that is free again is not in them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def node(x):
    """A node whose body does next to nothing."""
    import tensorflow as tf

    return tf.numpy_function(lambda value: value + 1, [x], tf.float32)


def nodes(share):
    """One graph of 10,000 nodes, run twice."""
    import tensorflow as tf

    @tf.function(autograph=False)
    def graph(x):
        return tf.add_n([node(x) for _ in range(int(10_000 * share))])

    for _ in range(2):
        graph(tf.constant(1.0))


def functions(share):
    """2,000 tf.functions of one node, each run three times."""
    import tensorflow as tf

    for _ in range(int(2000 * share)):
        function = tf.function(lambda x: node(x), autograph=False)
        for _ in range(3):
            function(tf.constant(1.0))


def threads(share):
    """500 threads that call one function a hundred times each."""
    import tensorflow as tf

    function = tf.function(node, autograph=False)
    function(tf.constant(1.0))

    def work():
        for _ in range(100):
            function(tf.constant(1.0))

    several = [threading.Thread(target=work) for _ in range(int(500 * share))]
    for one in several:
        one.start()
    for one in several:
        one.join()


def recursion(share):
    """Bodies that call their tf.function again, 100 deep, 30 times."""
    import tensorflow as tf

    def body(depth):
        return function(tf.constant(depth - 1)).numpy() if depth > 0 else depth

    @tf.function(autograph=False)
    def function(depth):
        return tf.numpy_function(body, [depth], tf.int32)

    for _ in range(int(30 * share) or 1):
        function(tf.constant(100))


def anew(share):
    """A new eager numpy_function for each of 20,000 calls."""
    import tensorflow as tf

    for _ in range(int(20_000 * share)):
        node(tf.constant(1.0))


def endless(share):
    """A body that does not return while another one is called 50,000 times."""
    import tensorflow as tf

    end, begun = threading.Event(), threading.Event()

    def body(x):
        begun.set()
        end.wait()
        return x

    waiting = threading.Thread(target=lambda: tf.numpy_function(body, [tf.constant(1.0)], tf.float32))
    waiting.start()
    begun.wait()
    function = tf.function(node, autograph=False)
    for _ in range(int(50_000 * share)):
        function(tf.constant(1.0))
    end.set()
    waiting.join()


def calls(share):
    """100,000 calls of one node, in a loop of the graph."""
    import tensorflow as tf

    @tf.function
    def loop(x):
        for _ in tf.range(int(100_000 * share)):
            node(x)

    loop(tf.constant(1.0))


PROGRAMS = {one.__name__: one for one in (nodes, functions, threads, recursion, anew, endless, calls)}


def resident():
    """Memory of this process in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def child(name, share, again, recorded):
    """Runs one program and prints what it took."""
    import tensorflow as tf

    import pyfunc_debug as pfd

    tf.config.threading.set_inter_op_parallelism_threads(256)  # each level of a recursion holds one
    tf.function(node)(tf.constant(1.0))
    with tempfile.TemporaryDirectory() as folder:
        recorder = pfd.record(os.path.join(folder, "a.pfrec")) if recorded else None
        if recorder is not None:
            recorder.start()
        blocks, memory, start, cpu = sys.getallocatedblocks(), resident(), time.perf_counter(), time.process_time()
        PROGRAMS[name](share)
        found: dict[str, float] = {"s": time.perf_counter() - start, "cpu": time.process_time() - cpu}
        for when in ("mb", "again"):
            for _ in range(again if when == "again" else 0):
                PROGRAMS[name](share)
            if recorder is not None:
                list(recorder.sql("SELECT 1"))  # all that is queued is written first
            found[when] = resident() - memory
            found[f"{when} blocks"] = sys.getallocatedblocks() - blocks
        if recorder is not None:
            recorder.stop()
            with contextlib.closing(pfd.open(os.path.join(folder, "a.pfrec"))) as recording:
                dropped = (recording.meta.get("dropped") or {}).get("calls")
                found |= {"calls": recording.reader.counts()["call"], "lost": dropped}
    print(json.dumps(found))


def main():
    """Prints a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--again", type=int, default=1)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child[0], options.share, options.again, options.child[1] == "recorded")
        return
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, share {options.share}")
    for name in options.only:
        print(f"{name}: {PROGRAMS[name].__doc__}", flush=True)
        for how in ("stock", "recorded") * 2:
            amount = ["--share", str(options.share), "--again", str(options.again)]
            command = [sys.executable, __file__, *amount, "--child", name, how]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"  {how:<9} ended with {done.returncode}: {done.stderr[-300:]}")
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            stored = f", {found['calls']:,} calls stored, {found['lost']} lost" if "calls" in found else ""
            print(
                f"  {how:<9} {found['s']:7.2f} s, CPU {found['cpu']:7.2f} s, {found['mb']:+5.0f} MB, then "
                f"{found['again']:+5.0f} MB, {found['mb blocks']:+,} blocks, then {found['again blocks']:+,}{stored}",
                flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
