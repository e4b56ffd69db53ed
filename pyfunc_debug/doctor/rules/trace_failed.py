"""Functions whose graph could not be built: an exception left them while TensorFlow traced them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyfunc_debug.doctor.bodies import times
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Function, GraphTrace

NAMES = ("trace-failed",)
_WHILE = {"tf.data": "while the dataset was built", "tf.function": "while TensorFlow traced it"}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function and exception type; of traces in each other, the innermost that is the user's."""
    noticed = {one["trace"]: one for _, _, one in facts.notices["trace-failed"]}
    explained = [one["error"].partition(": ")[2] for _, _, one in facts.notices["failure"]]
    failed = [trace for trace in facts.traces if trace.error and facts.functions[trace.function].origin == "user"]
    outer = {trace.parent for trace in failed}
    groups: dict[tuple[int, str | None], list[GraphTrace]] = {}
    for trace in failed:
        if trace.id not in outer:
            groups.setdefault((trace.function, trace.error), []).append(trace)
    ended = facts.meta.get("ended")
    handled = isinstance(ended, dict) and ended.get("error") is None
    traced = {trace.function for trace in facts.traces if not trace.error}
    for (number, error), traces in groups.items():
        if handled and number in traced:
            continue  # the program tried something else, and its function works
        function = facts.functions[number]
        failure = noticed.get(traces[-1].id, {})
        file, line = _line(function, failure.get("frames") or [])
        if any(text and text[:200] in str(failure.get("message", "")) for text in explained):
            continue  # failed_programs says more
        text = facts.line(file, line)
        yield Finding(
            "trace-failed", "note" if handled else "error", None, (),
            f"{function.name} raised {error} {times(len(traces))} {_WHILE.get(function.kind, 'while it was built')}: "
            f"{_message(str(failure.get('message', '')), error or '')}. At that time there is no data yet: tensors are "
            "symbolic, and the line runs once for each graph, not for each element",
            _fix(function, error or "", str(failure.get("message", "")), _code(facts, file, line)), file, line,
            evidence=(*((f"the line: {text}",) if text else ()), *_held(facts, file, line)),
        )  # fmt: skip


def _code(facts: Facts, file: str | None, line: int | None) -> str:
    """A line without its comment; empty if it is not known."""
    lines = facts.code(file)
    return lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else ""


def _held(facts: Facts, file: str | None, line: int | None) -> tuple[str, ...]:
    """What the names in the line stood for, of the exception that reached the user."""
    for _, _, one in facts.notices["failed-line"]:
        if (one["file"], one["line"]) == (file, line):
            return ("in it " + ", ".join(f"{name} is {what}" for name, what in one["held"]),)
    return ()


def _line(function: Function, frames: list[list[object]]) -> tuple[str | None, int | None]:
    """The innermost line in the function's own file, else the innermost."""
    own = [frame for frame in frames if frame[0] == function.file] or frames
    if not own:
        return function.file, function.line
    file, line = own[-1][:2]
    return str(file), int(str(line))


def _message(message: str, error: str) -> str:
    """The exception's own words: AutoGraph puts a traceback before them."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    own = next((line for line in reversed(lines) if line.startswith(f"{error}:")), lines[0] if lines else "no message")
    return own.removeprefix(f"{error}:").strip().rstrip(".")[:300]


def _fix(function: Function, error: str, message: str, text: str) -> str:
    numpy = re.search(r"([A-Za-z_][\w.]*)\.numpy\(\)", text)
    if error == "AttributeError" and "numpy" in message and numpy is not None:
        name = numpy[1]
        return (
            f"def with_data({name.replace('.', '_')}):  # runs with each element: here .numpy() works\n"
            f"    {text.replace(name, name.replace('.', '_'))}\n"
            f"tf.py_function(with_data, [{name}], Tout=tf.float32)  # in place of this line; Tout is its dtype"
        )
    if function.kind == "tf.data":
        return "tf.data.experimental.enable_debug_mode()  # before the dataset: the function then runs with data"
    return "tf.config.run_functions_eagerly(True)  # before the call: the function then runs with data, line by line"
