"""Says that XLA was asked to compile Python when the function was traced, before it fails in XLA's own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyfunc_debug.places import source_line
from pyfunc_debug.program.printable import folded, tell

_WIDTH = 80


class CompiledNotices:
    """Says it once for each body and line, however often its function is traced.

    Args:
      say: Tells the user; stderr by default.
    """

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self._say = say or tell
        self._said: set[tuple[object, ...]] = set()

    def say(self, facts: dict[str, Any]) -> None:
        """Tells of one node.

        Args:
          facts: Those of the notice: the `function` for XLA; `kind` and `body` of the node, `file` and `line`.
        """
        body, file, line = facts.get("body"), facts.get("file"), facts.get("line")
        key = (facts["function"], body, file, line)
        if body is None or file is None or key in self._said:
            return
        self._said.add(key)
        name = body.rpartition(".")[2]
        name = "its lambda" if name == "<lambda>" else name
        function = facts["function"].rpartition(".")[2]
        text = (
            f"pyfunc-debug: {source_line(file, line)}: the {facts['kind']} of {name} is in {function}, which "
            f"jit_compile=True asks XLA to compile. XLA cannot compile Python: a run of {function} will fail. Leave "
            f"jit_compile=True out, or call {name} outside of {function}."
        )
        self._say(folded(text, _WIDTH))
