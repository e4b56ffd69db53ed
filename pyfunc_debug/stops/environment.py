"""What breakpoints ask of the rest of the package, without importing it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from pyfunc_debug.events import NO_STATEMENTS, NodeFacts, Notice, Statements
from pyfunc_debug.stops.conditions import NO_SCOPE, Scope


class Environment:
    """What the observer asks of the rest of the package. The switchboard fills it in; each default does without."""

    def older_node(self, token: str, arguments: int) -> NodeFacts | None:
        """Describes a node that was made before."""
        return None

    def locate_node(self, node: NodeFacts) -> NodeFacts:
        """Adds op, graph and call site to an older node. Slow."""
        return node

    def user_line(self, file: str, line: int) -> tuple[str, int]:
        """The user's line for a line that may be generated."""
        return file, line

    def converted(self) -> dict[tuple[str, int], str]:
        """By file and first line, the names of the user's functions that became graphs."""
        return {}

    def statements(self, code: CodeType) -> Statements:
        """What the lines of generated code stand for."""
        return NO_STATEMENTS

    def scope(self, token: str) -> Scope:
        """The names around the body of a node, for conditions."""
        return NO_SCOPE

    def evaluation(self) -> contextlib.AbstractContextManager[Any]:
        """Makes tf.functions run eagerly on this thread: all of TensorFlow's threads may be parked at stops."""
        return contextlib.nullcontext()

    def replace_outputs(self, outputs: Any, value: Any) -> Any:
        """`value` in the form of `outputs`, which TensorFlow expects."""
        return outputs

    def replace_inputs(self, inputs: Any, values: list[Any]) -> None:
        """Makes the body that is about to run get `values`. Raises where that cannot be."""
        inputs[:] = values

    def note(self, rule: Notice, token: str | None, call: int | None, **facts: Any) -> None:
        """Something for the recording."""

    def records(self) -> bool:
        """Whether there is a recording that gets what is noted."""
        return False

    def trouble(self, where: str, error: BaseException) -> None:
        """Something of ours failed; the program went on."""

    def number(self, numbers: Iterator[int]) -> int | None:
        """The number of the call that this thread is in, the same each time, where it has none in a recording.

        None where others have: it would be taken for one of them.
        """
        return next(numbers)

    def running(self) -> dict[int, list[FrameType]]:
        """By thread, the user's frames in the body that it runs, outermost first."""
        return {}

    def attach_debugger(self) -> bool:
        """Lets an attached IDE (debugpy) trace this thread; whether there is one."""
        return False

    def debugger_attached(self) -> bool:
        """Whether an IDE is attached."""
        return False

    def keep_debugger_off(self, on: bool) -> None:
        """Has an attached IDE leave this thread's trace function as it is, or not (Python 3.11 and older)."""

    def let_coverage_see(self) -> None:
        """Lets coverage.py count the lines that this thread runs."""

    def hold_in_debugger(
        self, frame: FrameType, error: BaseException | None = None, place: tuple[str, int] | None = None
    ) -> bool:
        """Stops in the attached IDE, here; whether it goes on with a step."""
        return False
