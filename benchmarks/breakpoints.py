"""What breakpoints cost: ratios to the program without us, in one process, in short mirrored rounds, beside a null.

    python benchmarks/breakpoints.py [--seconds 75] [--only loop recorded hooks stops] [--cores]

`loop`: a tight graph loop of empty bodies, with breakpoints that are armed and not hit, and with logpoints. `recorded`:
the same while recording, in ratio to recording alone. `hooks`: what our hooks of one call take without TensorFlow.
`stops`: how long a stop that is answered at once takes, and a body that runs until a pause holds it.
The null is a second run of the base. Times are CPU time of the process on one core; `--cores`: on all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyfunc_debug as pfd
from benchmarks.rounds import mirrored, ratio

CALLS, WARM = 200, 20
Variants = dict[str, Callable[[], AbstractContextManager[Any]]]
"""What to be in while the loop runs; it may give another loop to run."""


def body(x):
    y = x
    return y


def loops():
    """A loop in a graph whose body does nothing, of each kind of node."""
    import tensorflow as tf

    for make in (tf.py_function, tf.numpy_function):

        def traced(make=make) -> Callable[[int], float]:
            @tf.function
            def run(x, count):
                for _ in tf.range(count):
                    x = tf.ensure_shape(make(body, [x], tf.float32), [])
                return x

            def once(calls: int) -> float:
                x, count = tf.constant(1.0), tf.constant(calls)
                start = time.process_time()
                run(x, count)
                return time.process_time() - start

            once(1)
            return once

        yield "py_function" if make is tf.py_function else "numpy_function", traced(), traced


@contextlib.contextmanager
def armed(where: str, **options: Any) -> Iterator[None]:
    """A breakpoint that stops no call."""
    one = pfd.break_on(where, **options)
    try:
        yield
    finally:
        assert not one.outcomes["stopped"], one
        one.remove()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What logpoints write to stderr goes to a file."""
    with tempfile.TemporaryFile("w") as file, contextlib.redirect_stderr(file):
        yield


def compared(once: Callable[[int], float], variants: Variants, seconds: float, base: str = "stock") -> None:
    """Prints the ratio of each variant to the base, with its interval; of the base once more, too."""
    first = variants.pop(base, contextlib.nullcontext)
    variants = {base: first, f"{base} again": first, **variants}

    def stretch(variant: Callable[[], AbstractContextManager[Any]]) -> tuple[float]:
        with variant() as another:
            loop = another or once
            loop(WARM)
            return (loop(CALLS),)

    taken = mirrored({name: functools.partial(stretch, one) for name, one in variants.items()}, seconds)
    print(f"  {len(taken[base]):,} rounds; ratio of CPU time, and its 95 % interval")
    for name, spent in taken.items():
        each = statistics.median(one[0] for one in spent) / (2 * CALLS) * 1e6
        print(f"  {name:<42} {each:7.2f} us a call   {ratio(spent, taken[base])}", flush=True)


def _line() -> str:
    return f"{Path(__file__).name}:{body.__code__.co_firstlineno + 2}"


def loop(seconds: float) -> None:
    """Breakpoints alone."""
    for name, once, traced in loops():
        with armed("another"):
            made = traced()

        @contextlib.contextmanager
        def traced_armed(made: Any = made) -> Iterator[Callable[[int], float]]:
            """The loop in a graph that was traced while a breakpoint was armed: its nodes are made by us."""
            with armed("another"):
                yield made

        print(f"loops of {CALLS} empty bodies, {name}, one number in and out, without a recording")
        cheap: Variants = {
            "armed, another node": lambda: armed("another"),
            "armed, another node; traced while armed": traced_armed,
            "not armed; traced while armed": lambda made=made: contextlib.nullcontext(made),
            "armed, a gradient of this node": lambda: armed("body", when="gradient"),
        }
        dear: Variants = {
            "armed, an error of this node": lambda: armed("body", when="error"),
            "armed, a line elsewhere": lambda: armed("elsewhere.py:1"),
            "condition: x.shape.rank > 3, not met": lambda: armed("body", condition="x.ndim > 3"),
            "a line of this body, condition not met": lambda: armed(_line(), condition="y > 3"),
            "log: x": lambda: armed("body", log="x"),
            "log: x.shape, x.max()": lambda: armed("body", log="x.shape, x.max()"),
            "log at a line: y": lambda: armed(_line(), log="y"),
        }
        with quiet():
            compared(once, cheap, seconds * 0.7)
            compared(once, dear, seconds * 0.3)


def recorded(seconds: float) -> None:
    """Breakpoints beside a recording."""
    for name, once, _ in loops():
        print(f"the same, {name}, while recording (values=none), in ratio to recording alone")

        def recording(where: str = "", once: Callable[[int], float] = once, **options: Any) -> Callable[[], Any]:
            @contextlib.contextmanager
            def both() -> Iterator[None]:
                stop = armed(where, **options) if where else contextlib.nullcontext()
                with pfd.record(values="none", gil=False, budget="64MB"), stop:
                    yield

            return both

        variants = {
            "recorded": recording(), "armed, another node": recording("another"),
            "log: x.shape, x.max()": recording("body", log="x.shape, x.max()"),
            "keep='locals'": recording("body", keep="locals"),
        }  # fmt: skip
        with quiet():
            compared(once, variants, seconds, "recorded")


def _hook_us(token: str, args: list[Any]) -> float:
    """What the hooks of one call take, alone: the best of several, on this thread's own clock."""
    from pyfunc_debug.switchboard import board

    best = float("inf")
    for _ in range(7):
        enter, leave, _ = board.relay.path
        start = time.thread_time_ns()
        for _ in range(5000):
            leave(enter(token, args), None)
        best = min(best, (time.thread_time_ns() - start) / 5000)
    return best / 1000


def hooks(seconds: float) -> None:
    """Prints what the hooks take without TensorFlow around them: steadier than the loop."""
    import tensorflow as tf

    _, once, _ = next(loops())
    args = [tf.constant(1.0)]
    with pfd.record(values="none", gil=False, budget="64MB") as recording:
        once(1)
        token = next(node.token for node in recording.nodes() if node.token is not None)
        found = {"recording": _hook_us(token, args)}
        for name, where, condition in (
            ("armed, another node", "another", None), ("condition not met", "body", "x.ndim > 3"),
        ):  # fmt: skip
            with armed(where, condition=condition):
                found[name] = _hook_us(token, args)
    for name, microseconds in found.items():
        print(f"{name:22s} {microseconds:6.2f} us in our hooks ({microseconds - found['recording']:+.2f})")


def _print(name: str, spent: list[float]) -> None:
    low, middle, high = statistics.quantiles(spent, n=4)
    print(f"  {name:<42} {middle * 1e3:7.2f} ms   (quartiles {low * 1e3:.2f} {high * 1e3:.2f}, {len(spent)} times)")


def stops(seconds: float) -> None:
    """How long a stop takes that is answered at once, and a pause from the request to the prompt (wall time)."""
    import tensorflow as tf

    from pyfunc_debug.switchboard import board

    print("a call that stops, and a body that is paused")
    call = tf.function(lambda x: tf.py_function(body, [x], tf.float32))

    def timed() -> float:
        start = time.perf_counter()
        call(tf.constant(1.0))
        return time.perf_counter() - start

    timed()
    times: dict[str, list[float]] = {"stock": [], "stopped, `c`": [], "stopped, `n`, `n`, `c`": []}
    for _ in range(150):
        times["stock"].append(timed())
        for name, lines in (("stopped, `c`", ["c"]), ("stopped, `n`, `n`, `c`", ["n", "n", "c"])):
            one = pfd.break_on("body")
            with pfd.answers(*lines):
                times[name].append(timed())
            assert one.outcomes["stopped"] == 1
            one.remove()
    runs, state = threading.Event(), {"on": True, "asked": 0.0}

    def busy(x):
        count = 0
        runs.set()
        while state["on"]:
            count += 1
        return x

    def answer(ask, stop, prompt):
        state.update(on=False, asked=time.perf_counter())
        return ask(stop, prompt)

    turn = tf.function(lambda x: tf.py_function(busy, [x], tf.float32))
    times["paused: from the request to the prompt"] = paused = []
    with pfd.record(values="none", gil=False, budget="64MB"):
        for _ in range(15):
            state["on"] = True
            runs.clear()
            with pfd.answers("c") as dialogue:
                dialogue.ask = functools.partial(answer, dialogue.ask)
                thread = threading.Thread(target=turn, args=(tf.constant(1.0),))
                thread.start()
                runs.wait()
                start = time.perf_counter()
                assert board.pause()
                thread.join()
            paused.append(state["asked"] - start)
    for name, spent in times.items():
        _print(name, spent)


PARTS = {"loop": loop, "recorded": recorded, "hooks": hooks, "stops": stops}


def main() -> None:
    """Runs the parts that are asked for, and says on what."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=75, help="for each kind of node")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--cores", action="store_true")
    options = parser.parse_args()
    if not options.cores:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before TensorFlow makes its pools
    import tensorflow as tf

    print(
        f"TensorFlow {tf.__version__}, Python {platform.python_version()}, {len(os.sched_getaffinity(0))} core(s), "
        f"load {os.getloadavg()[0]:.1f}"
    )
    for part in options.only:
        start = time.perf_counter()
        PARTS[part](options.seconds)
        print(f"{part}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
