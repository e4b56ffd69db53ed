"""Functions whose graph could not be built: an exception left them while TensorFlow traced them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import times
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.text import held_names
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

_SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda, ast.Await, ast.NamedExpr)
"""What has names of its own, or gives them outwards."""
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
            _fix(facts, function, error or "", message, file, line) if symbolic else "", file, line,
            evidence=(f"{text}{_held(facts, file, line)}",) if text else (),
        )  # fmt: skip


def _held(facts: Facts, file: str | None, line: int | None) -> str:
    """What the names in the line stood for, of the exception that reached the user."""
    for _, _, one in facts.notices["failed-line"]:
        if (one["file"], one["line"]) == (file, line) and one["held"]:
            return f", where {held_names(one['held'])}"
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


def _fix(facts: Facts, function: Function, error: str, message: str, file: str | None, line: int | None) -> str:
    if error == "AttributeError" and "'numpy'" in message:
        return _with_data(facts, file, line) or (
            "put what needs values into a function of its own, which takes the tensors and returns the result, and "
            "call it here by tf.py_function(f, [tensors], Tout); or compute with TensorFlow's ops"
        )
    if function.kind == "tf.data":
        return "tf.data.experimental.enable_debug_mode()  # before the dataset: the function then runs with data"
    return "tf.config.run_functions_eagerly(True)  # before the call: the function then runs with data, line by line"


def _with_data(facts: Facts, file: str | None, line: int | None) -> str:
    """The line as a function and its call; "" where its names or its result would not be those of the lines around."""
    own = pastes.source(facts, file)
    statement = own.statement(line or 0)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(statement, ast.Return) and not isinstance(target, ast.Name):
        return ""
    value = getattr(statement, "value", None)
    if statement is None or value is None or any(isinstance(one, _SCOPES) for one in ast.walk(value)):
        return ""
    asked = [
        one.func.value for one in ast.walk(value)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "numpy"
    ]  # fmt: skip
    scope = own.function(statement.lineno)
    names = list(dict.fromkeys(one.id for one in asked if isinstance(one, ast.Name)))
    if not names or len([one for one in asked if isinstance(one, ast.Name)]) < len(asked) or scope is None:
        return ""
    tf = pastes.module(facts, file, "tensorflow") or "tf"
    if isinstance(target, ast.Name) and not _used_by_ops(own, scope, target, tf):
        return ""
    given, text = ", ".join(names), own.text(value)
    if "\n" in text or isinstance(scope, ast.Lambda):
        return ""
    new = f"{tf}.py_function(with_data, [{given}], Tout={names[0]}.dtype)"
    head = "return" if target is None else f"{own.text(target)} ="
    return (
        f"def with_data({given}):  # runs with each element: here .numpy() works\n"
        f"    return {text}\n"
        f"{head} {new}  # in place of this line; Tout is the dtype of what with_data returns"
    )


def _used_by_ops(source: Source, scope: ast.AST, target: ast.Name, tf: str) -> bool:
    """Whether all uses of a name take a tensor: it is returned, computed with, or given to TensorFlow."""
    uses = [one for one in ast.walk(scope) if isinstance(one, ast.Name) and one.id == target.id and one is not target]
    for one in uses:
        around = source.parent(one)
        op = isinstance(around, ast.Call) and ast.unparse(around.func).startswith(f"{tf}.")
        if isinstance(one.ctx, ast.Store) or not (op or isinstance(around, (ast.Return, ast.BinOp, ast.Tuple))):
            return False
    return True
