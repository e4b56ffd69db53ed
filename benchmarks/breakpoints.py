"""What breakpoints cost: ratios to the program without us, in one process, in turns, medians, beside a null.

    python benchmarks/breakpoints.py [--rounds 15] [--only loop recorded hooks stops] [--cores]

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

CALLS = 2000
Variants = dict[str, Callable[[], AbstractContextManager[Any]]]
"""What to be in while the loop runs; it may give another loop to run."""


def body(x):
    y = x
    return y


def loops():
    """A loop in a graph whose body does nothing, of each kind of node."""
    import tensorflow as tf

    for make in (tf.py_function, tf.numpy_function):

        def traced(make=make) -> Callable[[], float]:
            @tf.function
            def run(x):
                for _ in tf.range(CALLS):
                    x = tf.ensure_shape(make(body, [x], tf.float32), [])
                return x

            def once() -> float:
                start = time.process_time()
                run(tf.constant(1.0))
                return time.process_time() - start

            once()
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


def interleaved(once: Callable[[], float], variants: Variants, rounds: int, base: str = "stock") -> None:
    """Prints the median ratio of each variant to the base, of times taken in turns."""
    variants = {base: variants.pop(base, contextlib.nullcontext), f"{base} again": variants.pop(
        f"{base} again", contextlib.nullcontext), **variants}  # fmt: skip
    times: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds + 1):
        names = list(variants)[turn % len(variants) :] + list(variants)[: turn % len(variants)]
        for name in names:
            with variants[name]() as another:
                spent = (another or once)()
            if turn:  # the first round warms up
                times[name].append(spent)
    for name, spent_ in times.items():
        ratios = [one / other for one, other in zip(spent_, times[base])]
        low, _, high = statistics.quantiles(ratios, n=4)
        middle, ratio = statistics.median(spent_) / CALLS * 1e6, statistics.median(ratios)
        print(
            f"  {name:<42} {middle:7.2f} us a call   ratio {ratio:.3f}   (quartiles {low:.3f} {high:.3f})", flush=True
        )


def _line() -> str:
    return f"{Path(__file__).name}:{body.__code__.co_firstlineno + 2}"


def loop(rounds: int) -> None:
    """Breakpoints alone."""
    for name, once, traced in loops():
        made: list[Callable[[], float]] = []

        @contextlib.contextmanager
        def traced_armed(where: str, made: Any = made, traced: Any = traced) -> Iterator[Callable[[], float]]:
            """The loop in a graph that was traced while a breakpoint was armed: its nodes are made by us."""
            with armed(where):
                if not made:
                    made.append(traced())
                yield made[0]

        print(f"loop of {CALLS:,} empty bodies, {name}, one number in and out, without a recording")
        variants: Variants = {
            "armed, another node": lambda: armed("another"),
            "armed, another node; traced while armed": lambda: traced_armed("another"),
            "not armed; traced while armed": lambda made=made: contextlib.nullcontext(made[0]),
            "armed, a line elsewhere": lambda: armed("elsewhere.py:1"),
            "armed, a gradient of this node": lambda: armed("body", when="gradient"),
            "armed, an error of this node": lambda: armed("body", when="error"),
            "condition: x.shape.rank > 3, not met": lambda: armed("body", condition="x.ndim > 3"),
            "a line of this body, condition not met": lambda: armed(_line(), condition="y > 3"),
            "log: x": lambda: armed("body", log="x"),
            "log: x.shape, x.max()": lambda: armed("body", log="x.shape, x.max()"),
            "log at a line: y": lambda: armed(_line(), log="y"),
        }
        with quiet():
            interleaved(once, variants, rounds)


def recorded(rounds: int) -> None:
    """Breakpoints beside a recording."""
    for name, once, _ in loops():
        print(f"the same, {name}, while recording (values=none), in ratio to recording alone")

        def recording(where: str = "", once: Callable[[], float] = once, **options: Any) -> Callable[[], Any]:
            @contextlib.contextmanager
            def both() -> Iterator[None]:
                with pfd.record(values="none", gil=False, budget="64MB"):
                    once()
                    with armed(where, **options) if where else contextlib.nullcontext():
                        yield

            return both

        variants = {
            "recorded": recording(), "recorded again": recording(), "armed, another node": recording("another"),
            "log: x.shape, x.max()": recording("body", log="x.shape, x.max()"),
            "keep='locals'": recording("body", keep="locals"),
        }  # fmt: skip
        with quiet():
            interleaved(once, variants, rounds, "recorded")


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


def hooks(rounds: int) -> None:
    """Prints what the hooks take without TensorFlow around them: steadier than the loop."""
    import tensorflow as tf

    _, once, _ = next(loops())
    args = [tf.constant(1.0)]
    with pfd.record(values="none", gil=False, budget="64MB") as recording:
        once()
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


def stops(rounds: int) -> None:
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
    for _ in range(10 * rounds):
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
        for _ in range(rounds):
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
    parser.add_argument("--rounds", type=int, default=15)
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
        PARTS[part](options.rounds)
        print(f"{part}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
