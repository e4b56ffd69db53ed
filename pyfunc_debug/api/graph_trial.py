"""A body and its graph code on the same inputs: values, gradients and time compared."""

from __future__ import annotations

import ast
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pyfunc_debug.api import graph_code as code
from pyfunc_debug.api.foreign_calls import foreign_calls
from pyfunc_debug.api.graph_timing import Measured, Staying, measure, measure_alone, measure_staying
from pyfunc_debug.doctor.bodies.replacement import obstacles
from pyfunc_debug.doctor.failures.reading.source import Function
from pyfunc_debug.program.python_state import changes, fingerprints
from pyfunc_debug.records import Node

FASTER = 1.05
"""Less is noise."""
_LEAST = 3
"""How many inputs are tried whatever that takes."""


class Given(NamedTuple):
    """Inputs of a body.

    Attributes:
      where: In words: "in call #17".
      arrays: The inputs.
      outputs: What it returned for them, where that was kept in full.
    """

    where: str
    arrays: list[Any]
    outputs: list[Any] | None = None


class Trial:
    """One body, tried.

    Args:
      tf: TensorFlow.
      function: The body.
      eager: Whether it is given tensors.
      node: Its node.
      given: Inputs to try it on.
      definition: Its syntax tree, if its source is there.
      twice: How many of them are replayed a second time, changed, and differentiated.
      until_ns: When to stop comparing, on the monotonic clock; None for never.
    """

    def __init__(
        self, tf: Any, function: Any, eager: bool, node: Node, given: Sequence[Given], definition: Function | None,
        twice: int = 20, until_ns: int | None = None,
    ) -> None:  # fmt: skip
        self._tf = tf
        self._function = function
        self._eager = eager
        self._node = node
        self._recorded = given
        self._inputs = [one.arrays for one in given]
        self._twice = twice
        self._until_ns = until_ns
        self._lines = code.LinesRun(code.code_of(function))
        self._graph: Any = None
        self.casts: list[str] = []
        self.calls = 0
        self.changed = 0
        self.difference = 0.0
        self.gradients = 0
        self.new_gradients: set[str] = set()
        self._state: tuple[str, ...] = ()
        self.definition = definition
        made_of = code.code_of(function)
        self._converted = made_of is not None and made_of.co_filename != node.file
        self.branches = definition is not None and _branches(definition)

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

    def compare(self, locate: Any, graph_code: Any = None, casts: Sequence[str] = ()) -> str:
        """Why graph code does not do the same; empty if it does in all that is tried.

        Args:
          locate: The user's line for a line of AutoGraph's.
          graph_code: What is tried in the body's place; None for the body itself, with NumPy's names bound to
            TensorFlow's.
          casts: Dtypes that its results are cast to; empty for those that differ from the declared ones.
        """
        tf = self._tf
        specs = code.merged_specs(self._inputs, tf)
        if specs is None:
            return "its calls get inputs of different dtypes or ranks: one graph does not serve them"
        before = fingerprints(self._function)
        expected: list[list[Any]] = []
        for number, one in enumerate(self._recorded):
            if self._is_late(number):
                break
            found = self._python(one.arrays, lines=True)
            if number == 0 and (moved := changes(before, fingerprints(self._function))):
                return f"a call changes Python state ({', '.join(moved)}), which graph code would do once, at trace"
            unlike = self._unsteady(one, found, number)
            if unlike:
                return unlike
            expected.append(found)
        self._state = tuple(fingerprints(self._function))
        try:
            self._graph = code.traced(
                graph_code or code.as_graph_code(self._function, tf), specs, tf, locate, self.definition,
                self._converted or graph_code is not None,
            )  # fmt: skip
        except code.ObstacleError as obstacle:
            return str(obstacle)
        self.casts = list(casts) or self._needed_casts()
        for one, wanted in zip(self._recorded, expected):
            if self._is_late(self.calls):
                break
            why = self._differs(one.arrays, wanted, one.where)
            if why:
                return why
            self.calls += 1
        return self._changed_inputs() or self._gradients()

    def _is_late(self, done: int) -> bool:
        """Whether there is no time for more; a few are always tried."""
        return self._until_ns is not None and done >= _LEAST and time.monotonic_ns() > self._until_ns

    def _unsteady(self, given: Given, found: Sequence[Any], number: int) -> str:
        """Why replays cannot be compared; empty if the body gives again what was recorded."""
        if given.outputs is not None:
            same = code.outcome(given.outputs, found, self._node.out_paths)
            if same.unlike:
                return f"it no longer returns what it returned {given.where}: {same.unlike}"
        if number < self._twice:
            same = code.outcome(found, self._python(given.arrays), self._node.out_paths)
            if same.unlike:
                return f"it gives something else each time for the inputs {given.where}, so nothing can be compared"
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
        for number, arrays in enumerate(self._inputs[: self._twice]):
            if self._is_late(number):
                break
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
        for number, given in enumerate(self._recorded[: self._twice]):
            if self._is_late(number):
                break
            tensors = [tf.constant(one) for one in given.arrays]
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
                    return f"graph code does not do the same {given.where}: {result.unlike}"
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

    def measure_alone(self, budget_ns: int) -> Measured:
        """Both sides alone, within a budget."""
        return measure_alone(
            self._tf, self._function, self._eager, self._node.tout, self._as_graph, self._sample(), budget_ns
        )

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


def _branches(function: Any) -> bool:
    """Whether a function has branches or loops, which AutoGraph must convert."""
    kinds = (ast.If, ast.For, ast.While, ast.IfExp, ast.BoolOp, ast.Assert, ast.Not, ast.ListComp)
    return any(isinstance(one, kinds) for one in ast.walk(function))


def _dense(gradient: Any, tf: Any) -> Any:
    return tf.convert_to_tensor(gradient).numpy()


def said(
    on: str, difference: float, changed: int, gradients: int | None, new_gradients: Sequence[str],
    speeds: Sequence[tuple[Measured | None, str]],
) -> str:  # fmt: skip
    """What graph code and Python had in common.

    Args:
      on: What was compared: "200 calls".
      difference: The largest difference of any element.
      changed: How many more, with changed inputs.
      gradients: Of how many the gradients were compared and equal.
      new_gradients: Inputs that have a gradient as graph code only.
      speeds: What was measured, and where.
    """
    apart = f"max difference {difference:.0e}" if difference else "no bit differs"
    text = f"same on {on} ({apart})"
    if changed:
        text += f" and on {changed} with changed inputs"
    if new_gradients:
        text += f", {', '.join(new_gradients)} had no gradient and gets one"
    elif gradients:
        text += ", gradients equal"
    return text + "".join(f", x{one.ratio:.1f} {_speed(one)} {where}" for one, where in speeds if one is not None)


def _speed(one: Measured) -> str:
    return "faster" if one.ratio >= 1 else "as fast"
