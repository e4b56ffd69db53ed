"""What the breakpoints want of one node, worked out once and not at each of its calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from pyfunc_debug.events import NodeFacts
from pyfunc_debug.stops.conditions import bind
from pyfunc_debug.stops.rules import Breakpoint, length, same_file


class Plan:
    """The breakpoints that name a node, by the moment at which they stop its calls.

    Attributes:
      facts: The node; `forward` is the node whose gradient it is, if it is one.
      body: What prompts call it.
      starts, lines, after, errors: Breakpoints that stop a call as it begins, at a line, as it ends, at an error.
      numbers: Numbers its calls where nobody records them.
    """

    __slots__ = (
        "_names", "after", "body", "elements", "errors", "facts", "forward", "lines", "numbers", "starts", "watches",
    )  # fmt: skip

    def __init__(
        self, facts: NodeFacts | None, forward: NodeFacts | None, body: str, rules: Iterable[Breakpoint],
        numbers: Iterator[int],
    ) -> None:  # fmt: skip
        self.facts = facts
        self.forward = forward
        self.body = body
        self.numbers = numbers
        self.starts: list[Breakpoint] = []
        self.lines: list[Breakpoint] = []
        self.after: list[Breakpoint] = []
        self.errors: list[Breakpoint] = []
        for rule in rules:
            if rule.when == "error":
                self.errors.append(rule)
            elif rule.file is None or (self.at_line(rule) and not (forward is not None and rule.when == "before")):
                (self.after if rule.when == "after" else self.starts).append(rule)
            elif rule.when == "before":
                self.lines.append(rule)
        self.elements = facts is not None and facts.body.elements in ("own", "another's")
        """Whether this is TensorFlow's node that takes the elements of a user's generator."""
        self.watches = bool(self.lines or self.after or self.errors)
        """Whether a call is to be watched even if no breakpoint stops its beginning."""
        paths = facts.paths if facts is not None and forward is None else ()
        self._names = paths if all(path.isidentifier() for path in paths) else None

    def __bool__(self) -> bool:
        return bool(self.starts) or self.watches

    @property
    def scope_token(self) -> str:
        """The node whose body's names a condition sees: of a gradient the forward one."""
        facts = self.forward or self.facts
        return facts.token if facts is not None else ""

    def input_names(self, count: int) -> tuple[str, ...]:
        """A name for each argument."""
        if self.facts is not None and self.facts.gradient_of is not None:
            return ("dy",) if count == 1 else tuple(f"dy[{index}]" for index in range(count))
        paths = self.facts.paths if self.facts is not None else ()
        return tuple(itertools.islice(itertools.chain(paths, (f"in[{n}]" for n in range(len(paths), count))), count))

    def names(self, args: Any) -> dict[str, Any]:
        """The values of a call by the names that its condition and its prompt use."""
        if self._names is not None and len(self._names) == len(args):
            return {"inputs": args, **dict(zip(self._names, args))}
        return {"inputs": args, **bind(self.input_names(len(args)), args)}

    def at_line(self, rule: Breakpoint) -> bool:
        """Whether a `file.py:line` names this node: where it was put into its graph, or where the body begins.

        For what is not a line of the body (its end, its error, its gradient) any line of the body names it as well.
        """
        facts = self.forward or self.facts
        if facts is None or rule.file is None or rule.line is None:
            return False
        sites = [(frame.file, frame.line) for frame in facts.stack[-1:]]
        if facts.site is not None:
            sites.append(facts.site[:2])
        file, first = facts.body.file, facts.body.line
        if file is not None and first is not None:
            end = first if rule.when == "before" else first + length(file, first) - 1
            if first <= rule.line <= end and same_file(rule.file, file):
                return True
        return any(line == rule.line and same_file(rule.file, site) for site, line in sites)
