"""What the breakpoints ask of this process: of interception, of TensorFlow's types, and of an IDE's debugger."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from pyfunc_debug.events import NO_STATEMENTS, NodeFacts, Notice, Statements, Taken
from pyfunc_debug.places import file_label
from pyfunc_debug.program.covered import let_coverage_see
from pyfunc_debug.program.frames import is_user
from pyfunc_debug.program.garbage import no_search
from pyfunc_debug.program.pools import Iterated, Pool, pool_of
from pyfunc_debug.stops import Environment, Stop
from pyfunc_debug.stops.conditions import NO_SCOPE, Scope
from pyfunc_debug.switchboard.attached import attached, hold, keep_off, show_this_thread

if TYPE_CHECKING:  # loading the notebook extension must not import NumPy
    from pyfunc_debug.interception import Interception
    from pyfunc_debug.switchboard.relay import Relay


class ProcessEnvironment(Environment):
    """What the breakpoints ask of this process.

    Attributes:
      interception: The one that is on, or None.
      observer: To whom notices and troubles are reported.
    """

    interception: Interception | None = None
    observer: Relay

    def older_node(self, token: str, arguments: int) -> NodeFacts | None:
        interception = self.interception
        return interception.older_node(token, arguments) if interception is not None else None

    def locate_node(self, node: NodeFacts) -> NodeFacts:
        interception = self.interception
        return interception.locate_node(node) if interception is not None else node

    def pool_of(self, stop: Stop) -> Pool | None:
        """The thread pool that a stop's call runs on."""
        inputs = self.interception.inputs if self.interception is not None else None
        token = stop.node.token if stop.node is not None else ""
        loops = inputs.over(token) if inputs is not None else ()
        known = [Iterated(f"{file_label(site[0])}:{site[1]}" if site else "", pool) for site, pool in loops]
        return pool_of(stop.native_id, known)

    def user_line(self, file: str, line: int) -> tuple[str, int]:
        interception = self.interception
        if interception is not None:
            return interception.user_line(file, line)
        from pyfunc_debug.interception.rerun import user_line  # for a post-mortem later

        return user_line(file, line)

    def converted(self) -> dict[tuple[str, int], str]:
        interception = self.interception
        return interception.converted() if interception is not None else {}

    def statements(self, code: CodeType) -> Statements:
        interception = self.interception
        return interception.statements(code) if interception is not None else NO_STATEMENTS

    def scope(self, token: str) -> Scope:
        interception = self.interception
        return interception.scope(token) if interception is not None else NO_SCOPE

    def evaluation(self) -> contextlib.AbstractContextManager[Any]:
        from pyfunc_debug.interception.graphs.eagerly import eagerly_if_possible

        return eagerly_if_possible()

    def replace_outputs(self, outputs: Any, value: Any) -> Any:
        """Raises what TensorFlow raises when the value does not fit the node's types."""
        if isinstance(outputs, Taken):
            return Taken(value)
        import numpy as np
        import tensorflow as tf

        many = isinstance(outputs, (list, tuple))
        before = list(outputs) if many else [outputs]
        values = tf.nest.flatten(value, expand_composites=True)
        if len(values) != len(before):
            raise ValueError(f"{len(values)} value(s) for {len(before)} output(s)")
        after = [
            tf.convert_to_tensor(new, dtype=old.dtype) if tf.is_tensor(old) else np.asarray(new, dtype=old.dtype)
            for new, old in zip(values, before)
        ]
        return after if many else after[0]

    def replace_inputs(self, inputs: Any, values: list[Any]) -> None:
        """Raises what TensorFlow raises when a value does not fit, and TypeError for numpy_function's tuple."""
        from pyfunc_debug.interception.calls import innermost_call

        before, after = list(inputs), self.replace_outputs(list(inputs), values)
        call = innermost_call(entered=False)
        whole = call.given if call is not None and call.args is inputs and call.given is not None else inputs
        inputs[:] = after
        for first in range(len(whole) - len(before) + 1) if whole is not inputs else ():
            if all(one is other for one, other in zip(whole[first:], before)):
                whole[first : first + len(before)] = after
                break

    def note(self, rule: Notice, token: str | None, call: int | None, **facts: Any) -> None:
        self.observer.notice(rule, token, call, **facts)

    def records(self) -> bool:
        return self.observer.recorder is not None

    def trouble(self, where: str, error: BaseException) -> None:
        self.observer.trouble(where, error)

    def number(self, numbers: Iterator[int]) -> int | None:
        from pyfunc_debug.interception.calls import innermost_call, keep_ticket

        call = innermost_call()
        if call is None or self.records():
            return None
        number, ticket = self.observer.numbered(call.ticket, numbers)
        if ticket is not call.ticket:
            keep_ticket(ticket)
        return number

    @no_search()
    def running(self) -> dict[int, list[FrameType]]:
        from pyfunc_debug.interception.calls import IN_PROGRESS, bottom_frame, show_shortcuts

        show_shortcuts()
        now = sys._current_frames()
        found = {}
        for ident in [ident for ident, fields in list(IN_PROGRESS.items()) if fields is not None]:
            frame, bottom, stack = now.get(ident), bottom_frame(now.get(ident)), []
            while bottom is not None and frame is not None and frame is not bottom:
                if is_user(frame.f_code.co_filename):
                    stack.append(frame)
                frame = frame.f_back
            if stack:
                found[ident] = stack[::-1]
        now.clear()  # this frame is in it, too: a cycle, which would keep alive what the program's frames hold
        return found

    def attach_debugger(self) -> bool:
        if not attached():
            return False
        if threading.current_thread() is not threading.main_thread():  # which the IDE sees anyway
            show_this_thread()
        return True

    def let_coverage_see(self) -> None:
        let_coverage_see()

    def show_thread(self) -> None:
        """Shows a call that is about to run to the IDE and to coverage."""
        if not self.attach_debugger():
            let_coverage_see()

    def debugger_attached(self) -> bool:
        return attached()

    def keep_debugger_off(self, on: bool) -> None:
        keep_off(on)

    def hold_in_debugger(
        self, frame: FrameType, error: BaseException | None = None, place: tuple[str, int] | None = None
    ) -> bool:
        return hold(frame, error, self.user_line, place)
