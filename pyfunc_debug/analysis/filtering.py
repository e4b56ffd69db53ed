"""Conditions over a recording: the expressions of breakpoints, held against what was kept of each call."""

from __future__ import annotations

import builtins
from collections.abc import Container, Iterable, Iterator
from typing import Any

from pyfunc_debug.analysis.kept_values import KeptValue
from pyfunc_debug.errors import BadOptionError, NotKeptError
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Call, Value
from pyfunc_debug.stops.conditions import NO_SCOPE, Condition, ConditionCall, bind

_ALWAYS = {"call", "inputs", "np", "tf", "nan", "inf", "shape", "changed"}


class Filter:
    """The calls for which a condition holds.

    Args:
      reader: The recording.
      text: The condition, as of a breakpoint: it sees inputs and outputs by their names, `inputs`, `outputs` (also
        `out`), `dy` of a gradient call, `call`, `np`.

    Attributes:
      matched: How many calls it held for so far.
      judged: How many calls it could be evaluated for.
      undecided: For how many not, although they have what it names.
      why: Why not, of the first of them.

    Raises:
      BadOptionError: it is not a Python expression.
    """

    def __init__(self, reader: Reader, text: str) -> None:
        self._condition = Condition(text)
        self._bodies = {node.id: node.body for node in reader.nodes()}
        self._threads = {thread.id: thread.name for thread in reader.threads()}
        self._seen: dict[str, None] = {}
        self.matched = 0
        self.judged = 0
        self.undecided = 0
        self.why = ""

    def holds(self, call: Call) -> bool:
        """Whether it holds for a call; False, and counted, where that cannot be said."""
        values = self._names(call)
        if self._missing(values):
            self._seen.update(dict.fromkeys(values))
            return False
        try:
            names, _ = self._condition.bind(values, lambda: NO_SCOPE, (call.node, call.kind))
            found = self._condition.holds(names)
        except Exception as error:
            self.undecided += 1
            reason = str(error) if isinstance(error, NotKeptError) else f"{type(error).__name__}: {error}"
            self.why = self.why or f"Call #{call.id}, {reason}"
            return False
        self.judged += 1
        self.matched += found
        return found

    def _missing(self, known: Container[str]) -> list[str]:
        """What the condition names that is neither among these nor there for every call."""
        return [
            name for name in self._condition.names
            if not (name in known or name in _ALWAYS or hasattr(builtins, name))
        ]  # fmt: skip

    def _names(self, call: Call) -> dict[str, Any]:
        names = {**_bound(call.outputs), **_bound(call.inputs)}
        inputs = tuple(map(KeptValue, call.inputs))
        names["inputs"] = inputs
        if call.outputs:
            names["outputs"] = names.get("out", tuple(map(KeptValue, call.outputs)))
        if "dout" in names:
            names.setdefault("dy", names["dout"])
        if "call" in self._condition.names:
            thread = self._threads.get(call.thread, "")
            names["call"] = ConditionCall(call.id, self._bodies.get(call.node, ""), call.kind, thread, inputs)
        return names

    def among(self, calls: Iterable[Call]) -> Iterator[Call]:
        """Those of the calls for which it holds.

        Raises:
          BadOptionError: no call has what it names.
          NotKeptError: it could be evaluated for none.
        """
        for call in calls:
            if self.holds(call):
                yield call
        self.check()

    def check(self) -> None:
        """Raises what `among` raises at its end, for the calls so far."""
        if self.judged:
            return
        if self.undecided:
            raise NotKeptError(
                f"{self._condition.text} could not be evaluated for any of {self.undecided:,} calls. {self.why}"
            )
        missing = self._missing(self._seen)
        if missing and self._seen:
            raise BadOptionError(f"no call has {missing[0]!r}. There are: {', '.join(self._seen)}, call, np")

    def remark(self) -> str:
        """How many calls could not be judged, and why; empty if all could."""
        if not self.undecided:
            return ""
        return f"{self.undecided:,} calls could not be judged. {self.why}"


def _bound(values: Iterable[Value]) -> dict[str, Any]:
    values = list(values)
    return bind([value.path for value in values], list(map(KeptValue, values)))
