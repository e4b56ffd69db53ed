"""Variables that an optimizer of TensorFlow 1 leaves out in silence, because a numpy_function cuts their gradient.

`minimize` asks `tf.gradients` for every variable, gets None for some, and makes a step for the others. Whether nothing
else trains them is looked at when a session makes that step: then the graph is whole.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.events import Notice, Observer
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.gradients.cut import cuts
from pyfunc_debug.interception.names import TensorFlowNames
from pyfunc_debug.program.frames import own_frame

VARIABLES = frozenset({"VarHandleOp", "Variable", "VariableV2"})
CHANGES = ("Apply", "AssignAdd", "AssignSub", "Scatter")
"""In the types of ops that move a variable from where it is."""
_SETS = frozenset({"Assign", "AssignVariableOp"})
_FARTHEST = 10_000
"""How many ops are looked at, once a graph."""
_MOST_FETCHES = 50
"""Of a graph, that are looked at."""
TRAINABLE = "trainable_variables"


@dataclass(frozen=True)
class _Left:
    """Variables that got None for a loss.

    Attributes:
      by_node: By the token of the node that cuts them off: their names, and the types of the ops on the way.
      given: Names of the variables that got a gradient.
      site: The user's file and line that asked.
    """

    by_node: dict[str, tuple[list[str], list[str]]]
    given: frozenset[str]
    site: tuple[str, int]


class _Asked:
    """What a graph's losses left out, until it is noticed.

    Attributes:
      fetches: Names of the fetches that were looked at.
    """

    def __init__(self) -> None:
        self.left: list[_Left] = []
        self.fetches: set[str] = set()


class Minimized:
    """Watches `tf.gradients` and what sessions train. A run of a graph without a cut costs a look into a dict.

    Args:
      names: TensorFlow's.
      observer: Who is notified.
      user_line: Gives the user's file and line for one of AutoGraph's code.
    """

    def __init__(
        self, names: TensorFlowNames, observer: Observer, user_line: Callable[[str, int], tuple[str, int]]
    ) -> None:
        self._names = names
        self._observer = observer
        self._user_line = user_line
        self._asked: weakref.WeakKeyDictionary[Any, _Asked] = weakref.WeakKeyDictionary()

    def helper(self, original: Any) -> Any:
        """The replacement of `gradients_util._GradientsHelper`."""

        def _GradientsHelper(ys: Any, xs: Any, *args: Any, **options: Any) -> Any:  # noqa: N802 - its name is shown
            try:
                found = original(ys, xs, *args, **options)
            except BaseException as error:
                drop_our_frame(error)
                raise
            try:
                if options.get("stop_gradients") is None:
                    self._look(ys, xs, found, sys._getframe(1))
            except Exception as trouble:
                self._observer.trouble("looking for variables without a gradient", trouble)
            return found

        return _GradientsHelper

    def fetched(self, graph: Any, fetches: Any) -> None:
        """A session ran a graph for fetches: if they hold a step, what it left out is noticed."""
        asked = self._asked.get(graph)
        if asked is None or not asked.left or len(asked.fetches) >= _MOST_FETCHES:
            return
        for one in self._names.nest.flatten(fetches):
            name = str(getattr(one, "name", one))
            if name not in asked.fetches and len(asked.fetches) < _MOST_FETCHES:
                asked.fetches.add(name)
                element = graph.as_graph_element(one, allow_tensor=True, allow_operation=True)
                moved = _moved(getattr(element, "op", element))
                for left in [each for each in asked.left if each.given & moved]:
                    asked.left.remove(left)
                    self._tell(graph, left)

    def _look(self, ys: Any, xs: Any, found: Any, frame: types.FrameType) -> None:
        flat = self._names.nest.flatten
        ends = [one.op for one in flat(ys) if hasattr(one, "graph") and hasattr(one, "op")]
        if not ends or isinstance(ends[0].graph, self._names.func_graph_type):
            return
        graph, given, missing = ends[0].graph, set[str](), dict[int, str]()
        trained = {one.op.name for one in graph.get_collection(TRAINABLE)}
        for source, gradient in zip(xs if isinstance(xs, (list, tuple)) else [xs], found):
            op: Any = getattr(getattr(source, "handle", source), "op", None)
            if op is not None and op.type in VARIABLES and op.name in trained:
                if gradient is None:
                    missing[id(op)] = op.name
                else:
                    given.add(op.name)
        user = own_frame(frame) if missing and given else None
        if user is None:
            return
        by_node: dict[str, tuple[list[str], list[str]]] = {}
        for key, token, path in cuts(ends, set(missing), _FARTHEST):
            by_node.setdefault(token, ([], path))[0].append(missing[key])
        if by_node:
            site = self._user_line(user.f_code.co_filename, user.f_lineno)
            self._asked.setdefault(graph, _Asked()).left.append(_Left(by_node, frozenset(given), site))

    def _tell(self, graph: Any, left: _Left) -> None:
        """Notices those that nothing else moves."""
        for token, (names, path) in left.by_node.items():
            still = [name for name in names if not _is_moved(graph.get_operation_by_name(name))]
            if still:
                self._observer.notice(
                    Notice.CUT_GRADIENT, token, None, variables=still, path=path, file=left.site[0], line=left.site[1],
                    count=len(left.given) + sum(len(one) for one, _ in left.by_node.values()), sources=[left.site[0]],
                )  # fmt: skip


def ops_before(ends: Iterable[Any], farthest: int, fed: Collection[str] = ()) -> Iterator[Any]:
    """Ops and those that run before them, the nearest first.

    Args:
      ends: The ops.
      farthest: How many ops are looked at.
      fed: Names of tensors that are fed: what would make these does not run.
    """
    todo = deque(ends)
    seen = set(todo)
    while todo and len(seen) < farthest:
        op = todo.popleft()
        yield op
        for one in (*op.control_inputs, *(each.op for each in op.inputs if each.name not in fed)):
            if one not in seen:
                seen.add(one)
                todo.append(one)


def _moved(fetched: Any) -> set[str]:
    """Names of the variables that a run moves, if it is asked for this op."""
    return {
        op.inputs[0].op.name
        for op in ops_before([fetched], _FARTHEST)
        if any(one in op.type for one in CHANGES) and len(op.inputs)
    }


def _is_moved(variable: Any) -> bool:
    """Whether an op of the graph moves a variable, or sets it to what others hold, as a target network's."""
    return any(
        any(one in op.type for one in CHANGES)
        or (
            op.type in _SETS and op.name != f"{variable.name}/Assign"  # not the initializer
            and any(one.type in VARIABLES for one in ops_before([op.inputs[1].op], _FARTHEST))
        )
        for op in variable.outputs[0].consumers()
    )  # fmt: skip
