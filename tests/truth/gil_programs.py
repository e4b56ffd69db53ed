"""Random programs whose use of the GIL is known, and what must hold of every number that a recording gives of them.

    python -m tests.truth.gil_programs --programs 300 --seed 7

Bodies spin, sleep, hold the GIL in C (`ctypes.PyDLL`), let it go in C (`ctypes.CDLL`), multiply matrices, call other
bodies, raise; as py_function and numpy_function; eagerly, in a tf.function, in Dataset.map with parallel calls, in a v1
Session. They note what they held and released themselves.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.analysis import gil_text
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.gil import RESOLUTION_NS, native, opstart
from pyfunc_debug.report.answers import Answers
from tests.truth.command import arguments

HOLD = ctypes.PyDLL(None).usleep  # keeps the GIL, without a CPU
RELEASE = ctypes.CDLL(None).usleep
_MATRIX = np.random.default_rng(0).normal(size=(120, 120))
STEPS = ("spin", "sleep", "hold", "release", "numpy", "nested")
MODES = ("eager", "function", "data", "session")


@dataclass
class Noted:
    """One step of a body, by its own clock. `thread` is the system's number; `least_ns` is what was asked for."""

    thread: int
    start_ns: int
    end_ns: int
    kind: str
    least_ns: int


@dataclass
class Program:
    """A random program. `quiet`: the interpreter takes the GIL from nobody, so the bodies' clocks are the truth."""

    number: int
    mode: str
    kind: str
    grade: str
    bodies: list[list[tuple[str, int]]]
    calls: int
    parallel: int
    raises: bool
    quiet: bool
    noted: list[Noted] = field(default_factory=list)

    def __str__(self) -> str:
        steps = "; ".join(" ".join(f"{kind}:{us}" for kind, us in body) for body in self.bodies)
        extra = f"{' raises' if self.raises else ''}{' quiet' if self.quiet else ''}"
        return f"program {self.number}: {self.kind}, {self.mode} x{self.calls}, {self.parallel} parallel, {self.grade}{extra}: {steps}"  # noqa: E501


def make(random_: random.Random, number: int) -> Program:
    """The next program; sleeping bodies in parallel are frequent, because they went wrong first."""
    kind = random_.choice(["py_function", "numpy_function"])
    mode = random_.choice(MODES if kind == "py_function" else MODES[1:])  # an eager numpy_function runs without an op
    quiet = random_.random() < 0.4
    steps = [step for step in STEPS if not quiet or step in ("hold", "release", "sleep")]
    bodies = [
        [(random_.choice(steps), random_.randint(2000, 5000) if quiet else random_.randint(50, 3000))
         for _ in range(random_.randint(1, 3))]
        for _ in range(1 if mode == "data" else random_.randint(1, 3))
    ]  # fmt: skip
    grade = random_.choices(["native", "op-start", "bound"], [20, 1, 1])[0]
    return Program(
        number, mode, kind, grade, bodies, random_.randint(2, 12), random_.randint(1, 4), random_.random() < 0.15, quiet
    )


def _body(program: Program, steps: list[tuple[str, int]], deep: bool = False) -> Callable[..., object]:
    def nested(us: int) -> None:
        inner = _body(program, [("hold", us), ("sleep", us)], deep=True)
        if us % 2 or program.mode != "eager":  # a graph inside a body of a graph may find no free thread: stock hangs
            tf.py_function(inner, [tf.constant(1.0)], tf.float32)
        else:
            tf.function(lambda x: tf.numpy_function(inner, [x], tf.float32))(tf.constant(1.0))

    work: dict[str, Callable[[int], object]] = {
        "spin": _spin, "sleep": lambda us: time.sleep(us / 1e6), "hold": HOLD, "release": RELEASE,
        "numpy": lambda us: [_MATRIX @ _MATRIX for _ in range(us // 300)], "nested": nested,
    }  # fmt: skip

    def body(x):
        for kind, us in steps:
            start = time.monotonic_ns()
            work[kind](us)
            end = time.monotonic_ns()
            # Not of a sleep: CPython works out when it ends before it lets the GIL go.
            least = us * 1000 if kind in ("hold", "release") else 0
            program.noted.append(Noted(threading.get_native_id(), start, end, kind, least))
        if program.raises and not deep and len(program.noted) % 3 == 0:
            raise ValueError("as the program wants it")
        return x

    return body


def _spin(us: int) -> None:
    until = time.monotonic_ns() + us * 1000
    while time.monotonic_ns() < until:
        pass


def run(program: Program) -> None:
    """Runs it once."""
    wrap = tf.py_function if program.kind == "py_function" else tf.numpy_function
    bodies = [_body(program, steps) for steps in program.bodies]
    stateless = {"stateful": False} if program.kind == "numpy_function" else {}
    if program.mode == "eager":
        for _ in range(program.calls):
            for body in bodies:
                with contextlib.suppress(tf.errors.OpError):
                    wrap(body, [tf.constant(1.0)], tf.float32)
    elif program.mode == "function":
        step = tf.function(lambda x: [wrap(body, [x], tf.float32, **stateless) for body in bodies])
        for i in range(program.calls):
            with contextlib.suppress(tf.errors.OpError):
                step(tf.constant(float(i)))
    elif program.mode == "data":
        data = tf.data.Dataset.range(program.calls * 2).map(
            lambda i: wrap(bodies[0], [i], tf.int64), num_parallel_calls=program.parallel
        )
        options = tf.data.Options()
        options.threading.private_threadpool_size = program.parallel
        iterator = iter(data.with_options(options))
        for _ in range(program.calls * 2):
            with contextlib.suppress(tf.errors.OpError, StopIteration):
                next(iterator)
    else:
        with tf.Graph().as_default() as graph:
            x = tf.compat.v1.placeholder(tf.float32, [])
            outputs = [wrap(body, [x + float(i)], tf.float32, **stateless) for i, body in enumerate(bodies)]
        config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=program.parallel, use_per_session_threads=True)
        with contextlib.closing(tf.compat.v1.Session(graph=graph, config=config)) as session:
            for _ in range(program.calls):
                with contextlib.suppress(tf.errors.OpError):
                    session.run(outputs, {x: 1.0})


@contextlib.contextmanager
def at_grade(grade: str) -> Iterator[None]:
    """Recordings in this block are of this grade at best."""

    def absent(*_: object) -> None:
        raise native.AbsentError("left out, in this program")

    with contextlib.ExitStack() as stack:
        if grade != "native":
            stack.enter_context(mock.patch.object(native, "load", absent))
        if grade == "bound":
            stack.enter_context(mock.patch.object(opstart.OpStartProbe, "start", absent))
        yield


def recorded(program: Program, folder: str) -> Recording:
    """The recording of one run, closed and opened again."""
    path = os.path.join(folder, f"{program.number}.pfrec")
    interval = sys.getswitchinterval()
    if program.quiet:
        sys.setswitchinterval(30)
    try:
        with at_grade(program.grade), pfd.record(path) as recording:
            run(program)
    finally:
        sys.setswitchinterval(interval)
    recording.close()
    return pfd.open(path)


# What must hold ------------------------------------------------------------------------------------------------------


def breaches(program: Program, recording: Recording) -> list[str]:
    """What is impossible in the file, the calls, the panel, the report's ledger or the terminal's text; nothing should be."""  # noqa: E501
    found = [*_of_calls(recording), *_of_answers(recording), *_of_panel(recording)]
    if program.grade == "native":
        found += _of_truth(program, recording)
    return [f"{one}  in {program}" for one in found]


def _of_calls(recording: Recording) -> Iterator[str]:
    by_thread: dict[int, list[tuple[int, int, int, int]]] = {}
    for call in recording.calls():
        gil = call.gil
        if gil is None or call.end_ns is None:
            continue
        parts = (gil.held_ns, gil.released_ns, gil.reacquire_ns)
        if any(ns is not None and ns < 0 for ns in (gil.wait_ns, *parts)):
            yield f"call {call.id} has a part below 0: {gil}"
        if None not in parts and sum(ns for ns in parts if ns is not None) != call.duration_ns:
            yield f"call {call.id} took {call.duration_ns} ns, its parts {parts}"
        if None in parts and gil.grade == "native":
            yield f"call {call.id} is measured without its parts"
        waited = (gil.wait_ns or 0) + (gil.reacquire_ns or 0)
        blamed = sum(ns for _, ns in gil.blame)
        if blamed > waited + RESOLUTION_NS[gil.grade]:
            yield f"call {call.id} waited {waited} ns and blames {blamed}"
        by_thread.setdefault(call.thread, []).append(
            (call.start_ns - (gil.wait_ns or 0), call.start_ns, call.end_ns, call.id)
        )
    for calls in by_thread.values():
        open_calls: list[tuple[int, int, int, int]] = []
        for one in sorted(calls, key=lambda item: item[1]):
            while open_calls and open_calls[-1][2] <= one[1]:
                last = open_calls.pop()
                if one[0] < last[2] - 50_000:
                    yield f"call {one[3]} waits while call {last[3]} of its thread still runs"
            if open_calls and one[2] > open_calls[-1][2]:
                yield f"calls {open_calls[-1][3]} and {one[3]} of one thread overlap"
            open_calls.append(one)


def _of_answers(recording: Recording) -> Iterator[str]:
    contention = recording.contention()
    for one in contention.nodes:
        parts = (one.held_ns, one.released_ns, one.reacquire_ns)
        known = [ns for ns in parts if ns is not None]
        if known and sum(known) != one.body_ns:
            yield f"the parts of node {one.node.id} sum to {sum(known)} of {one.body_ns} ns"
        for name in ("wait_share", "held_share"):
            share = getattr(one, name)
            if share is not None and not 0 <= share <= 1:
                yield f"{name} of node {one.node.id} is {share}"
    stages = recording.stages()
    for stage in stages:
        shares = (stage.python_share, stage.wait_share, stage.pool_share)
        if None not in shares and abs(sum(share for share in shares if share is not None) - 1) > 1e-6:
            yield f"the shares of {stage.function} sum to {shares}"
    for width in (70, 80):
        for text in (gil_text.gil_text(recording.reader, contention, stages, width), str(recording.ledger())):
            if "nan" in text.lower().split() or "-0" in text.split():
                yield f"the terminal reads\n{text}"


def _of_panel(recording: Recording) -> Iterator[str]:
    answers = Answers(recording.path)
    with answers.reading():
        shown = answers.ask("calls", {"limit": 1000})[0]["rows"]
        for row in shown:
            parts = [row[f"{name}_ns"] for name in ("wait", "held", "released")]
            if any(ns is not None and ns < 0 for ns in parts):
                yield f"the panel shows call {row['id']} with {parts}"
            inside = sum(ns or 0 for ns in parts[1:])
            if row["duration_ns"] is not None and inside > row["duration_ns"] + 1000:
                yield f"the panel shows call {row['id']} of {row['duration_ns']} ns with {parts}"
            detail = answers.ask("call", {"id": row["id"]})[0]["gil"]
            known = detail is not None and detail["held_ns"] is not None
            if known and sum(detail[f"{name}_ns"] for name in ("held", "released", "reacquire")) != row["duration_ns"]:
                yield f"the panel's call {row['id']} of {row['duration_ns']} ns has {detail}"
        for row in answers.ask("ledger", {})[0]["rows"]:
            parts = row.get("parts")
            if not parts or parts["held_ns"] is None:
                continue
            inside = parts["held_ns"] + parts["released_ns"] + parts["inside_ns"]
            if inside > parts["body_ns"] + 1e-6 * parts["body_ns"] + 1000:
                yield f"the ledger's row {row['name']} is {parts}"
        start, end = answers.extent()
        drawn, arrays = answers.ask("timeline", {"start_ns": start, "end_ns": end})
        if drawn["mode"] == "calls":
            inside = (
                np.nan_to_num(arrays["held"]) + np.nan_to_num(arrays["released"]) + np.nan_to_num(arrays["reacquire"])
            )
            if (inside > np.nan_to_num(arrays["end"] - arrays["start"], nan=np.inf) + 1000).any():
                yield "the timeline draws more inside a call than it took"
        answers.ask("gil", {})


def _of_truth(program: Program, recording: Recording) -> Iterator[str]:
    """Known holds and releases, by what they took at least: true however busy the machine is."""
    for call, steps in matched(program, recording):
        gil = call.gil
        held = sum(step.least_ns for step in steps if step.kind == "hold")
        let_go = sum(step.least_ns for step in steps if step.kind == "release")
        if gil.held_ns < held:
            yield f"call {call.id} held the GIL for {held} ns at least, and {gil.held_ns} are told"
        if gil.released_ns + gil.reacquire_ns < let_go:
            yield f"call {call.id} let the GIL go for {let_go} ns at least, and {gil} is told"


def matched(program: Program, recording: Recording) -> list[tuple[pfd.Call, list[Noted]]]:
    """Measured calls, each with the steps that ran inside it: also those of a call inside it."""
    native_ids = {thread.id: thread.native_id for thread in recording.reader.threads()}
    found = []
    for call in recording.calls():
        if call.gil is not None and call.gil.held_ns is not None:
            inside = [
                step
                for step in program.noted
                if step.thread == native_ids[call.thread]
                and call.start_ns <= step.start_ns
                and step.end_ns <= (call.end_ns or 0)
            ]
            found.append((call, inside))
    return found


def error(program: Program, recording: Recording) -> tuple[float, float] | None:
    """How far held and released are from the bodies' clocks, as shares of the calls' time; of quiet programs only."""
    if not program.quiet or program.grade != "native":
        return None
    total = off_held = off_gone = 0
    for call, steps in matched(program, recording):
        holds = sum(step.end_ns - step.start_ns for step in steps if step.kind == "hold")
        others = sum(step.end_ns - step.start_ns for step in steps if step.kind != "hold")
        rest = (call.duration_ns or 0) - holds - others  # Python around the steps: held, or waited
        gone = call.gil.released_ns + call.gil.reacquire_ns
        total += call.duration_ns or 0
        off_held += max(0, holds - call.gil.held_ns, call.gil.held_ns - holds - rest)
        off_gone += max(0, others - gone, gone - others - rest)
    return (off_held / total, off_gone / total) if total else None


def generate(seed: int, count: int) -> Iterator[Program]:
    random_ = random.Random(seed)
    for number in itertools.islice(itertools.count(1), count):
        yield make(random_, number)


def main() -> int:
    """The command."""
    given = arguments(__doc__, count=300)
    wrong: list[str] = []
    far: list[str] = []
    errors: list[tuple[float, float]] = []
    calls = measured = broken = 0
    with tempfile.TemporaryDirectory() as folder:
        for program in generate(given.seed, given.programs):
            recording = recorded(program, folder)
            wrong += breaches(program, recording)
            own = error(program, recording)
            if own is not None:
                errors.append(own)
                if max(own) > 0.05:
                    far.append(f"held off by {own[0]:.1%}, released by {own[1]:.1%}  in {program}")
            known = [call.gil is not None for call in recording.calls()]
            calls += len(known)
            measured += sum(known)
            broken += recording.meta["gil"]["broken"]
            recording.close()
    print("\n".join(wrong + far))
    held, released = np.array(errors or [(0.0, 0.0)]).T
    print(
        f"{given.programs} programs, {calls:,} calls, {measured:,} measured, {broken} counted as broken\n"
        f"impossible numbers: {len(wrong)}\n"
        f"known holds and releases ({len(errors)} programs): {len(far)} further off than 5 %; "
        f"median {np.median(held):.2%} and {np.median(released):.2%}, worst {held.max():.2%} and {released.max():.2%}"
    )
    return 1 if wrong or far else 0


if __name__ == "__main__":
    sys.exit(main())
