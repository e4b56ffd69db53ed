"""Bodies under their names in TensorFlow's profiler: XProf and TensorBoard show of a call only the op, PyFunc.

While a session runs that the program started, or somebody from afar, each call is an event of its own there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyfunc_debug.interception.bodies import SourceMaps, find_body
from pyfunc_debug.interception.graphs.nodes import gradient_of
from pyfunc_debug.interception.names import TensorFlowNames, private
from pyfunc_debug.places import source_line
from pyfunc_debug.profiler.session import ours_is_open

_MOST = 10_000
"""Names that are kept: every eager call has a token of its own."""


class Annotations:
    """Makes the events.

    Args:
      names: TensorFlow's.
      maps: Lead from AutoGraph's lines to the user's.
      trouble: Told of what went wrong.

    Attributes:
      wanted: Whether a session runs, asked before each call: 16 ns.
      level: The address where C++ knows that, or 0: `private.profiling_level`.
    """

    def __init__(self, names: TensorFlowNames, maps: SourceMaps, trouble: Callable[[str, BaseException], None]) -> None:
        self._names = names
        self._maps = maps
        self._trouble = trouble
        self._known: dict[str, tuple[str, str]] = {}
        self.wanted: Callable[[], bool] = private.profiling(names.profiler_trace)
        self.level = private.profiling_level(names.profiler_trace)

    def begin(self, token: str, function: Any = None) -> Any:
        """Begins the event of a call. Raises nothing: the program goes on without it.

        Args:
          token: The node's.
          function: What is called, where TensorFlow does not register it.

        Returns:
          What `end` takes; None for sessions of our own.
        """
        if ours_is_open():
            return None
        try:
            known = self._known.get(token)
            if known is None:
                if len(self._known) > _MOST:
                    self._known.clear()
                known = self._known[token] = self._name(function or self._names.registry.get(token))
            name, line = known
            return self._names.profiler_trace.Trace(name, line=line)
        except Exception as error:
            self._trouble("naming a call in the profiler", error)
            return None

    def end(self, event: Any) -> None:
        """Ends it."""
        if event is not None:
            event.__exit__(None, None, None)

    def _name(self, function: Any) -> tuple[str, str]:
        if function is None:
            return "py_function of another process", ""
        if isinstance(function, self._names.eager_func_type) and private.is_gradient(function):
            forward = self._names.registry.get(gradient_of(function, self._names))
            return "gradient of " + (self._name(forward)[0] if forward is not None else "a py_function"), ""
        body = find_body(function, self._names, self._maps)
        return body.name, source_line(body.file, body.line)
