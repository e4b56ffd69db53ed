"""What a breakpoint costs: armed but not hit, against recording alone, in one tight loop; and a condition on inputs.

python benchmarks/breakpoints.py
"""

from __future__ import annotations

import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import pyfunc_debug as pfd

CALLS = 2000
ROUNDS = 9


def body(x):
    return x


@tf.function
def loop(x):
    for _ in tf.range(CALLS):
        x = tf.ensure_shape(tf.py_function(body, [x], tf.float32), [])
    return x


def once() -> float:
    """CPU seconds of the process a call: other programs on the machine do not count."""
    start = time.process_time()
    loop(tf.constant(1.0))
    return (time.process_time() - start) / CALLS


def main() -> None:
    """Prints medians over interleaved rounds: the machine's moods hit all alike."""
    once()
    breaks: dict[str, dict[str, str] | None] = {
        "recording": None,
        "armed, another node": {"where": "another_body"},
        "condition: False": {"where": "body", "condition": "False"},
        "condition: x.shape.rank > 3": {"where": "body", "condition": "x.shape.rank > 3"},
        "condition: float(x) > 3": {"where": "body", "condition": "float(x) > 3"},
    }
    times: dict[str, list[float]] = {"off": [], **{name: [] for name in breaks}}
    for turn in range(ROUNDS):
        times["off"].append(once())
        # In another order each time: the recorder's thread still writes the calls of the loop before.
        names = list(breaks)[turn % len(breaks) :] + list(breaks)[: turn % len(breaks)]
        with pfd.record(values="none", gil=False):
            once()
            for name in names:
                options = breaks[name]
                one = pfd.break_on(**options) if options is not None else None
                times[name].append(once())
                if one is not None:
                    assert one.hits == 0
                    one.remove()
    base = statistics.median(times["recording"])
    for name, values in times.items():
        middle = statistics.median(values)
        print(f"{name:28s} {middle * 1e6:7.2f} us a call  x{middle / base:.3f}  {(middle - base) * 1e6:+6.2f} us")


def _hook_us(token: str, args: list) -> float:
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


def hooks() -> None:
    """Prints what the hooks take without TensorFlow around them: steadier than the loop."""
    once()
    args = [tf.constant(1.0)]
    with pfd.record(values="none", gil=False, budget="64MB") as recording:
        once()
        token = next(node.token for node in recording.nodes() if node.token is not None)
        found = {"recording": _hook_us(token, args)}
        for name, where, condition in (
            ("armed, another node", "another_body", None),
            ("condition not met", "body", "x.shape.rank > 3"),
        ):
            one = pfd.break_on(where, condition=condition)
            found[name] = _hook_us(token, args)
            assert one.hits == 0
            one.remove()
    for name, microseconds in found.items():
        print(f"{name:22s} {microseconds:6.2f} us in our hooks ({microseconds - found['recording']:+.2f})")


if __name__ == "__main__":
    hooks()
    main()
