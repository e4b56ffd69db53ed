"""What the fixture `pyfunc_recording` gives to a test: its recording, with assertions that read well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyfunc_debug.analysis.describe import call_line
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.doctor.text import findings_text
from pyfunc_debug.errors import BadOptionError, NotKeptError
from pyfunc_debug.places import source_line
from pyfunc_debug.records import Call, Value

_SHOWN = 5


class Recorded:
    """The recording of a test, while it is made. Everything that a recording has, and assertions.

    Args:
      recording: It.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recording, name)

    def calls(self, node: str | None = None, status: str | None = None) -> Calls:
        """The calls that have begun so far, as a list with assertions.

        Args:
          node: A glob over body, op name or token.
          status: "ok", "error" or "running".

        Returns:
          The calls, forward and gradient; none if nothing matches.
        """
        what = node or "a py_function"
        try:
            found = list(self._recording.calls(node, status))
        except BadOptionError as error:
            if node is None or "no node matches" not in str(error):
                raise
            return Calls(what, (), str(error))
        return Calls(what, found, "")

    def max_traces(self, function: str, most: int) -> Recorded:
        """Asserts that a tf.function was traced at most so often during the test.

        Args:
          function: Its name, or a glob.
          most: How many graph traces are fine.

        Returns:
          This object.

        Raises:
          AssertionError: there were more; the text says why each graph was traced.
          BadOptionError: no such function was traced or run; the message names the nearest.
        """
        __tracebackhide__ = True
        explanation = self._recording.explain(function)
        functions = self._recording.functions()
        count = len(functions.traces(self._recording.function_id(function)))
        if count > most:
            raise AssertionError(f"{function} was traced {count}x, at most {most}x is wanted\n{explanation}")
        return self

    def no_findings(self, *rules: str) -> Recorded:
        """Asserts that the doctor finds nothing.

        Args:
          rules: Names of rules, or globs: only these. Without, all.

        Returns:
          This object.

        Raises:
          AssertionError: there are findings; the text is theirs.
          BadOptionError: no such rule.
        """
        __tracebackhide__ = True
        findings = self._recording.findings(rules or None, front="shell")
        if findings:
            raise AssertionError(findings_text(findings))
        return self


class Calls(list[Call]):
    """Calls of one body, with assertions; each returns the list, so that one can follow another.

    Args:
      what: What was asked for.
      found: The calls.
      why: Why there are none, if that is known.
    """

    def __init__(self, what: str, found: Iterable[Call], why: str) -> None:
        super().__init__(found)
        self._what = what
        self._why = why

    def ok(self) -> Calls:
        """Asserts that there are calls and that none has failed; one that still runs is fine.

        Raises:
          AssertionError: none, or the first ones that failed with their exceptions.
        """
        __tracebackhide__ = True
        self._any()
        failed = [call for call in self if call.failure is not None]
        if failed:
            raise AssertionError(f"{len(failed)} of {len(self)} calls of {self._what} failed{_lines(failed)}")
        return self

    def times(self, count: int) -> Calls:
        """Asserts how many forward calls have begun.

        Args:
          count: The number that is wanted; 0 for none.

        Raises:
          AssertionError: there are more, or fewer.
        """
        __tracebackhide__ = True
        found = sum(call.kind == "forward" for call in self)
        if found != count:
            why = f": {self._why}" if self._why else ""
            raise AssertionError(f"{self._what} was called {found}x, {count}x is wanted{why}")
        return self

    def failed(self, kind: type[BaseException] | str) -> Calls:
        """Asserts that there are calls, and that each has failed.

        Args:
          kind: The exception's class or its name, as the body raised it.

        Raises:
          AssertionError: none, or the first ones that ended otherwise.
        """
        __tracebackhide__ = True
        self._any()
        name = kind if isinstance(kind, str) else kind.__name__
        others = [call for call in self if call.failure is None or call.failure.type != name]
        if others:
            raise AssertionError(
                f"{len(others)} of {len(self)} calls of {self._what} did not fail with {name}{_lines(others)}"
            )
        return self

    def finite(self) -> Calls:
        """Asserts that there are calls, and that no output or gradient has NaN or Inf in it.

        Raises:
          AssertionError: none, the first ones that have, or one whose values were not read.
        """
        __tracebackhide__ = True
        self._any()
        bad = [call for call in self if any(value.nan or value.inf for value in call.outputs)]
        if bad:
            raise AssertionError(f"{len(bad)} of {len(self)} calls of {self._what} gave NaN or Inf{_lines(bad)}")
        unread = [call for call in self if any(_is_unread(value) for value in call.outputs)]
        if unread:
            raise AssertionError(f"the values of {len(unread)} calls of {self._what} were not read{_lines(unread)}")
        return self

    def gradients_ok(self, most: int = 8) -> Calls:
        """Asserts that recorded gradients are those of finite differences; bodies run again for it.

        Values must be kept: `@pytest.mark.pyfunc_debug(values="full")`.

        Args:
          most: How many calls are checked, evenly spaced: each element that is checked costs two runs of the body.

        Raises:
          AssertionError: a gradient is wrong, or no call was differentiated.
          NotKeptError: values were not kept.
          NotDeterministicError: the body gives something else for the same inputs.
        """
        __tracebackhide__ = True
        differentiated = [call for call in self if call.kind == "forward" and call.gradients]
        if not differentiated:
            raise AssertionError(f"no call of {self._what} was differentiated")
        if not any(value.kept == "full" for value in differentiated[0].outputs):
            raise NotKeptError("values were not kept: mark the test with @pytest.mark.pyfunc_debug(values='full')")
        for call in differentiated[:: max(1, len(differentiated) // most)][:most]:
            checked = call.check_gradient()
            if not checked.ok:
                raise AssertionError(f"a gradient of {self._what} is wrong: {checked}")
        return self

    def _any(self) -> None:
        __tracebackhide__ = True
        if not self:
            raise AssertionError(f"{self._what} was not called{': ' if self._why else ''}{self._why}")


def _is_unread(value: Value) -> bool:
    return value.nan is None and value.dtype.startswith(("float", "bfloat", "half", "double", "complex"))


def _lines(calls: list[Call]) -> str:
    """The first calls, each with where it failed."""
    lines = []
    for call in calls[:_SHOWN]:
        failure, at = call.failure, ""
        if failure is not None and failure.frames:
            last = failure.frames[-1]
            at = f"\n    {source_line(last.file, last.line)}: {failure.type}: {failure.message}"
        lines.append(f"\n  {call_line(call)}{at}")
    more = len(calls) - _SHOWN
    return "".join(lines) + (f"\n  and {more} more" if more > 0 else "")
