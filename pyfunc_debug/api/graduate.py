"""`graduate()`: does a body need Python at all? It is tried as graph code on the recorded inputs, call by call."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.api import graph_code as code
from pyfunc_debug.api.graph_timing import Measured, Staying
from pyfunc_debug.api.graph_trial import FASTER, Given, Trial, said
from pyfunc_debug.api.isolation import as_before
from pyfunc_debug.api.live import LiveRecording, latest
from pyfunc_debug.api.replay import whole_inputs
from pyfunc_debug.doctor.bodies.graph_patch import Site, patch
from pyfunc_debug.doctor.bodies.replacement import definition_of, lambda_at
from pyfunc_debug.doctor.failures.reading.source import Function
from pyfunc_debug.errors import BadOptionError, NotKeptError, RecordingBusyError
from pyfunc_debug.records import Call, Node


@dataclass(frozen=True)
class Graduation:
    """The result of trying a body as graph code.

    Attributes:
      body: The body's name.
      ok: Whether graph code gave the same in everything that was tried.
      why: The obstacle, with its line, where it did not; empty otherwise.
      calls: Recorded calls that were compared.
      changed: Calls with changed inputs that were compared.
      difference: The largest difference of any element.
      gradients: Calls whose gradients were compared and equal; None for a numpy_function, which has none.
      new_gradients: Inputs that have a gradient as graph code and had none before, when TensorFlow used zeros.
      alone: Time of a call in a tf.function, in Python and as graph code, in ns; None where it was not measured.
      in_map: Time of an element in `Dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE)`, likewise.
      mapped: Whether the program calls it in a map: then that time decides, else the other.
      caveats: What was not tried, a sentence each.
      patch: A unified diff that `git apply` or `patch -p1` takes, relative to the current folder; empty without one.
      staying: For a body that needs Python: the ways to call it, measured.
    """

    body: str
    ok: bool
    why: str
    calls: int = 0
    changed: int = 0
    difference: float = 0.0
    gradients: int | None = None
    new_gradients: tuple[str, ...] = ()
    alone: Measured | None = None
    in_map: Measured | None = None
    mapped: bool = False
    caveats: tuple[str, ...] = ()
    patch: str = ""
    staying: Staying | None = None

    def __bool__(self) -> bool:
        return self.ok

    @property
    def sentence(self) -> str:
        """The answer."""
        if not self.ok:
            return f"no: {self.why}"
        text = said(
            f"{self.calls:,} call{'' if self.calls == 1 else 's'}", self.difference, self.changed, self.gradients,
            self.new_gradients, ((self.alone, "alone"), (self.in_map, "in a map with AUTOTUNE")),
        )  # fmt: skip
        where = self.in_map if self.mapped else self.alone
        if where is not None and where.ratio < FASTER:
            return f"{text}: no faster where it is used, so all it brings is a graph that can be saved and compiled"
        return f"{text}{': paste this' if self.patch else ''}"

    def __str__(self) -> str:
        lines = [f"{self.body}: {self.sentence}"]
        lines += [f"  {one}" for one in self.caveats]
        if self.staying is not None:
            lines += [f"  {one}" for one in self.staying.sentences]
        text = "\n".join(part for line in lines for part in textwrap.wrap(line, 100, subsequent_indent="    "))
        return f"{text}\n{self.patch}" if self.patch else text


def graduate(what: Any, recording: LiveRecording | None = None, *, calls: int = 200) -> Graduation:
    """Tries a body as graph code on its recorded inputs and compares values, gradients and time.

    A body of TensorFlow ops is traced as it is; in a body that uses NumPy, `np` stands for tf.experimental.numpy. The
    body runs again, with all its effects, several times for each compared call, and many times for the measurement: a
    body that changes Python state or draws random numbers is left alone, and that is the answer.

    Args:
      what: A Call, a node of the recording (its name, a glob, its number or a Node), or the body itself.
      recording: A finished recording of this process with values="full"; by default the latest.
      calls: How many recorded calls to compare at most, evenly spread.

    Returns:
      The answer: prints as a sentence with a patch, and is true if graph code did the same.

    Raises:
      BadOptionError: no such node, or the recording was not made in this process.
      NotKeptError: the inputs were not kept in full, or the body does not exist any more.
      RecordingBusyError: it is still recording: stop it first, for the trial makes calls of its own.

    Example:
      with pfd.record(values="full") as recording:
          train(dataset)
      print(pfd.graduate("augment"))
    """
    found, nodes, body = _subject(what, recording)
    if found.state == "recording":
        raise RecordingBusyError("stop the recording first: graduate() runs the body many times, and measures it")
    import tensorflow as tf

    from pyfunc_debug.interception.rerun import body_function, user_line

    registered = next((one for one in (body_function(node.token) for node in nodes if node.token) if one), None)
    node = nodes[0]
    if registered is None and body is None:
        raise NotKeptError(
            f"{node.body} does not exist any more in this process: keep the tf.function or the dataset that uses it "
            "alive, or pass the function itself"
        )
    function = body if registered is None else registered[0]
    eager = node.kind == "py_function" if registered is None else registered[1]
    recorded = _kept_calls(found, nodes, calls, what if isinstance(what, Call) else None)
    trial = Trial(tf, function, eager, node, [_given(call) for call in recorded], _definition(function, node))
    if not tf.executing_eagerly():
        raise BadOptionError("graduate() cannot run inside of a tf.function or a graph: call it outside")
    with as_before(tf, function):
        why = trial.refused() or trial.compare(user_line)
        if why:
            return Graduation(node.body, False, why, trial.calls, trial.changed, staying=trial.stay())
        alone, in_map = trial.measure()
        sites = [Site(one.file, one.line) for node in nodes for one in reversed(node.stack)]
        text = patch(node.file, trial.definition, code.numpy_names(function), sites, trial.casts, trial.branches)
        return Graduation(
            node.body, True, "", trial.calls, trial.changed, trial.difference, trial.gradients if eager else None,
            tuple(sorted(trial.new_gradients)), alone, in_map, _in_map(found, nodes), trial.caveats(text), text,
        )  # fmt: skip


def _subject(what: Any, recording: LiveRecording | None) -> tuple[LiveRecording, list[Node], Any]:
    """The recording, the nodes of one body, and the body if it was given."""
    found = recording if recording is not None else latest()
    if found is None:
        raise BadOptionError('there is no recording in this process: make one with pyfunc_debug.record(values="full")')
    if not isinstance(found, LiveRecording):
        raise BadOptionError("the recording was made by another process: its bodies are not here")
    if isinstance(what, Call):
        if found.call(what.id) != what:
            raise BadOptionError("the call is not of this process' latest recording: pass its recording as well")
        what = what.node
    every = [node for node in found.nodes() if node.origin == "user"]
    if callable(what) and not isinstance(what, (str, int)):
        made_of = code.code_of(what)
        place = None if made_of is None else (made_of.co_filename, made_of.co_firstlineno)
        nodes = [node for node in every if (node.file, node.line) == place]
        if not nodes:
            name = getattr(what, "__name__", repr(what))
            raise BadOptionError(f"{name} was not called as a body in this recording")
        return found, nodes, what
    ids = set(found.node_ids(what))
    nodes = [node for node in every if node.id in ids]
    if not nodes:
        raise BadOptionError("these nodes are TensorFlow's own")
    first = nodes[0]
    return found, [one for one in nodes if (one.file, one.line, one.body) == (first.file, first.line, first.body)], None


def _kept_calls(recording: LiveRecording, nodes: Sequence[Node], most: int, only: Call | None) -> list[Call]:
    """Calls whose inputs were kept in full, evenly spread."""
    every: list[Call] = []
    problem: NotKeptError | None = None
    for node in nodes:
        for call in recording.calls(node, "ok"):
            if call.kind != "forward":
                continue
            try:
                whole_inputs(call)
            except NotKeptError as error:
                problem = problem or error
                continue
            every.append(call)
    if not every:
        raise problem or NotKeptError(f"{nodes[0].body} was not called in this recording: there are no inputs to try")
    step = max(1, len(every) // max(1, most))
    chosen = every[::step][:most]
    return [only, *chosen] if only is not None and only not in chosen else chosen


def _given(call: Call) -> Given:
    full = all(value.kept == "full" for value in call.outputs)
    return Given(f"in call #{call.id}", whole_inputs(call), [one.array() for one in call.outputs] if full else None)


def _definition(function: Any, node: Node) -> Function | None:
    """The syntax tree of a body, if its source is there."""
    made_of = code.code_of(function)
    found: Function | None = None
    if made_of is not None and made_of.co_name == "<lambda>":
        written = (lambda_at((one.file, one.line)) for one in reversed(node.stack))
        found = next((one for one in written if one is not None), None)
    if found is None and made_of is not None and node.file is not None and node.line is not None:
        found = definition_of(made_of, node.file, node.line)
    return found


def _in_map(recording: LiveRecording, nodes: Sequence[Node]) -> bool:
    """Whether a tf.data function holds one of the nodes."""
    holding = {node.function for node in nodes}
    return any(one.id in holding and one.kind == "tf.data" for one in recording.functions())
