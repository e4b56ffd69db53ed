"""`graduate()`: does a body need Python at all? It is tried as graph code on the recorded inputs, call by call."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.api import graph_code as code
from pyfunc_debug.api.foreign_calls import foreign_calls
from pyfunc_debug.api.graph_timing import Measured, Staying, measure, measure_staying
from pyfunc_debug.api.isolation import as_before
from pyfunc_debug.api.live import LiveRecording, latest
from pyfunc_debug.api.replay import whole_inputs
from pyfunc_debug.doctor.failures.source import Function
from pyfunc_debug.doctor.graph_patch import Site, patch
from pyfunc_debug.doctor.replacement import definition_of, lambda_at, obstacles
from pyfunc_debug.errors import BadOptionError, NotKeptError, RecordingBusyError
from pyfunc_debug.program.python_state import changes, fingerprints
from pyfunc_debug.records import Call, Node

_FASTER = 1.05
"""Less is noise."""
_TWICE = 20
"""How many calls are replayed a second time, changed, and differentiated."""


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
        apart = f"max difference {self.difference:.0e}" if self.difference else "no bit differs"
        parts = [f"same on {self.calls:,} call{'' if self.calls == 1 else 's'} ({apart})"]
        if self.changed:
            parts.append(f"and on {self.changed} with changed inputs")
        text = " ".join(parts)
        if self.new_gradients:
            text += f", {', '.join(self.new_gradients)} had no gradient and gets one"
        elif self.gradients:
            text += ", gradients equal"
        speeds = ((self.alone, "alone"), (self.in_map, "in a map with AUTOTUNE"))
        text += "".join(f", x{one.ratio:.1f} {_speed(one)} {where}" for one, where in speeds if one is not None)
        where = self.in_map if self.mapped else self.alone
        if where is not None and where.ratio < _FASTER:
            return f"{text}: no faster where it is used, so all it brings is a graph that can be saved and compiled"
        return f"{text}{': paste this' if self.patch else ''}"

    def __str__(self) -> str:
        lines = [f"{self.body}: {self.sentence}"]
        lines += [f"  {one}" for one in self.caveats]
        if self.staying is not None:
            lines += [f"  {one}" for one in self.staying.sentences]
        text = "\n".join(part for line in lines for part in textwrap.wrap(line, 100, subsequent_indent="    "))
        return f"{text}\n{self.patch}" if self.patch else text


def _speed(one: Measured) -> str:
    return "faster" if one.ratio >= 1 else "as fast"


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
    trial = _Trial(tf, function, eager, node, recorded)
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


class _Trial:
    """One body, tried."""

    def __init__(self, tf: Any, function: Any, eager: bool, node: Node, recorded: Sequence[Call]) -> None:
        self._tf = tf
        self._function = function
        self._eager = eager
        self._node = node
        self._recorded = recorded
        self._inputs = [whole_inputs(call) for call in recorded]
        self._lines = code.LinesRun(code.code_of(function))
        self._graph: Any = None
        self.casts: list[str] = []
        self.calls = 0
        self.changed = 0
        self.difference = 0.0
        self.gradients = 0
        self.new_gradients: set[str] = set()
        self._state: tuple[str, ...] = ()
        self.definition: Function | None = None
        made_of = code.code_of(function)
        if made_of is not None and made_of.co_name == "<lambda>":
            written = (lambda_at((one.file, one.line)) for one in reversed(node.stack))
            self.definition = next((one for one in written if one is not None), None)
        if self.definition is None and made_of is not None and node.file is not None and node.line is not None:
            self.definition = definition_of(made_of, node.file, node.line)
        self._converted = made_of is not None and made_of.co_filename != node.file
        self.branches = self.definition is not None and _branches(self.definition)

    # -- Python's side ------------------------------------------------------------------------------------------------

    def _given(self, arrays: Sequence[Any]) -> list[Any]:
        """What the body gets of TensorFlow: eager tensors, or arrays of its own (py_func.cc)."""
        return [self._tf.constant(one) if self._eager else np.array(one)[()] for one in arrays]

    def _python(self, arrays: Sequence[Any], lines: bool = False) -> list[Any]:
        given = self._given(arrays)
        found = self._lines(self._function, *given) if lines else self._function(*given)
        return code.flat(found, self._tf, self._node.tout, self._eager)

    def refused(self) -> str:
        """Why the body is not even tried; empty if it is."""
        node = self._node
        if any("." in path for path in (*node.paths, *node.out_paths)):
            return "its inputs or outputs are ragged or sparse, which is not tried"
        if self.definition is None:
            return f"the source of {node.body} cannot be read, so nobody can say what else it does"
        modules = ("numpy", "math", "functools", "itertools", "operator", "collections")
        for one in obstacles(node.file or "", self.definition, modules):
            return f"line {one.line} {one.why}"
        for call, text in foreign_calls(self._function, self.definition):
            return f"line {call} calls {text}(): what that does outside of the body, graph code would do once, at trace"
        return ""

    # -- comparing ----------------------------------------------------------------------------------------------------

    def compare(self, locate: Any) -> str:
        """Why graph code does not do the same; empty if it does in all that is tried."""
        tf = self._tf
        specs = code.merged_specs(self._inputs, tf)
        if specs is None:
            return "its calls get inputs of different dtypes or ranks: one graph does not serve them"
        before = fingerprints(self._function)
        expected = []
        for number, (call, arrays) in enumerate(zip(self._recorded, self._inputs)):
            found = self._python(arrays, lines=True)
            if number == 0 and (moved := changes(before, fingerprints(self._function))):
                return f"a call changes Python state ({', '.join(moved)}), which graph code would do once, at trace"
            unlike = self._unsteady(call, arrays, found, number)
            if unlike:
                return unlike
            expected.append(found)
        self._state = tuple(fingerprints(self._function))
        try:
            self._graph = code.traced(
                code.as_graph_code(self._function, tf), specs, tf, locate, self.definition, self._converted
            )
        except code.ObstacleError as obstacle:
            return str(obstacle)
        self.casts = self._needed_casts()
        for call, arrays, wanted in zip(self._recorded, self._inputs, expected):
            why = self._differs(arrays, wanted, f"in call #{call.id}")
            if why:
                return why
            self.calls += 1
        return self._changed_inputs() or self._gradients()

    def _unsteady(self, call: Call, arrays: Sequence[Any], found: Sequence[Any], number: int) -> str:
        """Why replays cannot be compared; empty if the body gives again what was recorded."""
        if all(value.kept == "full" for value in call.outputs):
            same = code.outcome([value.array() for value in call.outputs], found, self._node.out_paths)
            if same.unlike:
                return f"it no longer returns what call #{call.id} returned: {same.unlike}"
        if number < _TWICE:
            same = code.outcome(found, self._python(arrays), self._node.out_paths)
            if same.unlike:
                return (
                    f"it gives something else each time for the inputs of call #{call.id}, so nothing can be compared"
                )
        return ""

    def _needed_casts(self) -> list[str]:
        outputs = self._tf.nest.flatten(self._graph.get_concrete_function().structured_outputs)
        found = [
            declared if getattr(getattr(one, "dtype", None), "name", None) not in (None, declared) else ""
            for one, declared in zip(outputs, self._node.tout)
        ]
        return found if any(found) else []

    def _as_graph(self, *tensors: Any) -> list[Any]:
        found = self._tf.nest.flatten(self._graph(*tensors))
        if self.casts:
            found = [self._tf.cast(one, kind) if kind else one for one, kind in zip(found, self.casts)]
        return list(found)

    def _differs(self, arrays: Sequence[Any], expected: Sequence[Any], where: str) -> str:
        try:
            found = [one.numpy() for one in self._as_graph(*map(self._tf.constant, arrays))]
        except self._tf.errors.OpError as error:
            return f"graph code fails {where}: {str(error).strip().splitlines()[0][:160]}"
        result = code.outcome(expected, found, self._node.out_paths)
        if result.unlike:
            return f"graph code does not do the same {where}: {result.unlike}"
        self.difference = max(self.difference, result.difference)
        return ""

    def _changed_inputs(self) -> str:
        generator = np.random.default_rng(0)
        for arrays in self._inputs[:_TWICE]:
            for kind in range(code.KINDS):
                other = code.perturbed(arrays, kind, generator)
                try:
                    with np.errstate(all="ignore"):
                        wanted = self._python(other, lines=True)
                except Exception:  # the body does not take such inputs: what graph code does with them says nothing
                    continue
                why = self._differs(other, wanted, "with changed inputs")
                if why:
                    return why
                self.changed += 1
        return ""

    def _gradients(self) -> str:
        if not self._eager:
            return ""
        tf = self._tf
        generator = np.random.default_rng(1)
        for call, arrays in list(zip(self._recorded, self._inputs))[:_TWICE]:
            tensors = [tf.constant(one) for one in arrays]
            floats = [index for index, one in enumerate(tensors) if one.dtype.is_floating or one.dtype.is_complex]
            if not floats:
                return ""
            pair = []
            seeds: list[Any] = []
            for run in (self._differentiable, self._as_graph):
                with tf.GradientTape() as tape:
                    tape.watch([tensors[index] for index in floats])
                    found = [one for one in run(*tensors) if one.dtype.is_floating or one.dtype.is_complex]
                if not seeds:
                    seeds = [tf.constant(generator.standard_normal(one.shape), one.dtype) for one in found]
                if not found:
                    return ""
                pair.append(tape.gradient(found, [tensors[index] for index in floats], output_gradients=seeds))
            if all(one is None for one in (*pair[0], *pair[1])):
                continue
            for index, one, other in zip(floats, *pair):
                path = self._node.paths[index] if index < len(self._node.paths) else f"in[{index}]"
                if one is None and other is None:
                    continue
                if one is None:
                    self.new_gradients.add(path)
                    continue
                if other is None:
                    return f"graph code has no gradient for {path}"
                result = code.outcome([_dense(one, tf)], [_dense(other, tf)], [f"the gradient of {path}"])
                if result.unlike:
                    return f"graph code does not do the same in call #{call.id}: {result.unlike}"
            self.gradients += 1
        return ""

    def _differentiable(self, *tensors: Any) -> list[Any]:
        """The body's results as tensors, as EagerFunc makes them: NumPy arrays are cut off from the tape."""
        found = self._function(*tensors)
        parts = [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]
        return [self._tf.convert_to_tensor(one, kind) for one, kind in zip(parts, self._node.tout)]

    # -- time ---------------------------------------------------------------------------------------------------------

    def _sample(self) -> Sequence[Any]:
        return self._inputs[len(self._inputs) // 2]

    def measure(self) -> tuple[Measured, Measured]:
        """Both sides alone, and in a map."""
        return measure(self._tf, self._function, self._eager, self._node.tout, self._as_graph, self._sample())

    def stay(self) -> Staying | None:
        """The ways to call Python, measured; None where the body may not run again for it."""
        if self.refused_for_effects():
            return None
        arrays = [list(one) for one in self._inputs if [a.shape for a in one] == [a.shape for a in self._sample()]]
        return measure_staying(self._tf, self._function, self._eager, self._node.tout, arrays)

    def refused_for_effects(self) -> bool:
        """Whether the body does something outside of itself, so that running it often does harm."""
        return self.definition is None or any(
            one.effect for one in obstacles(self._node.file or "", self.definition, ("numpy", "math"))
        )

    def caveats(self, text: str) -> tuple[str, ...]:
        """What was not tried."""
        found = []
        missed = [] if self._converted else self._lines.missed()
        if self._converted and self.branches:
            found.append("whether each of its lines ran is not known, because AutoGraph rewrote the body")
        if missed:
            some = ", ".join(map(str, missed[:6])) + (", ..." if len(missed) > 6 else "")
            found.append(
                f"line{'' if len(missed) == 1 else 's'} {some} never ran, with recorded or changed inputs: not compared"
            )
        if self._state:
            names = ", ".join(self._state[:5])
            found.append(
                f"graph code keeps {names} as {'it is' if len(self._state) == 1 else 'they are'} when it is traced"
            )
        if not self._eager:
            found.append("a numpy_function has no gradient; graph code has one")
        if not text:
            found.append("there is no patch, because the call of py_function is not written where the node was made")
        return tuple(found)


def _in_map(recording: LiveRecording, nodes: Sequence[Node]) -> bool:
    """Whether a tf.data function holds one of the nodes."""
    holding = {node.function for node in nodes}
    return any(one.id in holding and one.kind == "tf.data" for one in recording.functions())


def _branches(function: Any) -> bool:
    """Whether a function has branches or loops, which AutoGraph must convert."""
    import ast

    kinds = (ast.If, ast.For, ast.While, ast.IfExp, ast.BoolOp, ast.Assert, ast.Not, ast.ListComp)
    return any(isinstance(one, kinds) for one in ast.walk(function))


def _dense(gradient: Any, tf: Any) -> Any:
    return tf.convert_to_tensor(gradient).numpy()
