"""Functions whose graph could not be built: an exception left them while TensorFlow traced them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyfunc_debug.doctor.bodies import times
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Function, GraphTrace

NAMES = ("trace-failed",)
_SYMBOLIC = re.compile(
    r"symbolic|SymbolicTensor|KerasTensor|'(?:Eager)?Tensor' object|[Ee]ager (?:execution|mode)|Graph execution"
    r"|[Uu]nknown (?:rank|shape|dimension|\w*TensorShape)|unknown TensorShape|as_list\(\)|as a Python `?bool"
)
"""What is said where a line met a tensor without its value or its shape: nothing else is cured by running eagerly."""
_GENERATED = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>\S+) +\*$', re.MULTILINE)
"""A frame in AutoGraph's words, of code that it converted."""
_ENDED = ("KeyboardInterrupt", "SystemExit")
"""The program was ended while it happened to trace."""
_LONGEST = 100
"""Of an exception's text: all of it stands in the traceback."""
_OF_THE_OP = re.compile(r" for '\{\{node|, see https?://|\. See https?://| \[Op:")
"""Where TensorFlow's words about its own op begin, behind what happened."""
_KEPT = 2000
"""Characters of a message that older recordings hold: the last word may be cut."""
_THEN = (
    ". At that time there is no data yet: tensors are symbolic, and the line runs once for each graph, not for each "
    "element"
)
_WHILE = {"tf.data": "while the dataset was built", "tf.function": "while TensorFlow traced it"}

_STAGING = "StagingError"
"""The exception of AutoGraph in the place of one that it does not know how to raise again: an OSError."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function and exception type; of traces in each other, the innermost that is the user's."""
    noticed = {one["trace"]: one for _, _, one in facts.notices["trace-failed"]}
    explained = [str(one["error"]) for _, _, one in facts.notices["failure"]]
    failed = [
        trace
        for trace in facts.traces
        if trace.error and trace.error not in _ENDED and facts.functions[trace.function].origin == "user"
    ]
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
        message = str(failure.get("message", ""))
        file, line = _line(function, failure.get("frames") or _named(message))
        kinds = [one.partition(": ")[::2] for one in explained]
        if any(error in (kind, _STAGING) and _same(words, message) for kind, words in kinds):
            continue  # failed_programs says more
        text = facts.line(file, line)
        symbolic = bool(_SYMBOLIC.search(_message(message, error or "")))
        often = "" if len(traces) == 1 else f" {times(len(traces))}"
        yield Finding(
            "trace-failed", "note" if handled else "error", None, (),
            f"{function.name} raised {error}{often} {_WHILE.get(function.kind, 'while it was built')}: "
            f"{_message(message, error or '')}{_THEN if symbolic else ''}",
            _fix(function, error or "", message, _code(facts, file, line)) if symbolic else "", file, line,
            evidence=(f"{text}{_held(facts, file, line)}",) if text else (),
        )  # fmt: skip


def _code(facts: Facts, file: str | None, line: int | None) -> str:
    """A line without its comment; empty if it is not known."""
    lines = facts.code(file)
    return lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else ""


def _held(facts: Facts, file: str | None, line: int | None) -> str:
    """What the names in the line stood for, of the exception that reached the user."""
    for _, _, one in facts.notices["failed-line"]:
        if (one["file"], one["line"]) == (file, line):
            return ", where " + ", ".join(f"{name} is {what}" for name, what in one["held"])
    return ""


def _line(function: Function, frames: list[list[object]]) -> tuple[str | None, int | None]:
    """The innermost line in the function's own file, else the innermost."""
    own = [frame for frame in frames if frame[0] == function.file] or frames
    if not own:
        return function.file, function.line
    file, line = own[-1][:2]
    return str(file), int(str(line))


def _named(message: str) -> list[list[object]]:
    """The frames that AutoGraph names: what it raises itself has none of the user's in its traceback."""
    return [[found["file"], int(found["line"]), found["name"]] for found in _GENERATED.finditer(message)]


def _same(told: str, message: str) -> bool:
    """Whether an explained exception is the one of a trace, of which the end may be missing in the recording."""
    if not told or told[:200] in message:
        return bool(told)
    last = message.rstrip().rpartition("\n")[2].partition(": ")[2]
    return len(message) >= _KEPT and bool(last) and told.startswith(last[:200])


def _message(message: str, error: str) -> str:
    """The exception's own words, up to the end of the first line: AutoGraph puts a traceback before them."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    own = next((line for line in reversed(lines) if line.startswith(f"{error}:")), lines[0] if lines else "no message")
    own, ended = own.removeprefix(f"{error}:").strip(), own != lines[-1]
    text = _OF_THE_OP.split(own)[0]
    return _cut(text, len(message) >= _KEPT and not ended and text == own)


def _cut(text: str, unended: bool) -> str:
    """A text up to the end of a sentence, or else of a word, without its last dot."""
    if len(text) <= _LONGEST and not unended:
        return text.rstrip(".")
    start = text[:_LONGEST]
    sentence = max(start.rfind(end) for end in (". ", "! ", "? "))
    if sentence > _LONGEST // 5:
        return start[:sentence]
    return f"{start.rpartition(' ')[0] or start} ..."


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
