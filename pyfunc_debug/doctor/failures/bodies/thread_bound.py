"""What belongs to one thread, in a body: TensorFlow runs bodies and generators on threads of its own.

A connection to SQLite, the event loop of asyncio, handlers of signals and the attributes of a `threading.local`.
"""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "thread-bound"
_SQLITE = "SQLite objects created in a thread can only be used in that same thread"
_LOOP = "There is no current event loop in thread"
_SIGNAL = "signal only works in main thread"
_LOCAL = re.compile(r"'_thread\._local' object has no attribute '(\w+)'")
_THREADS = "TensorFlow runs bodies and generators on threads of its own"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the thread of a body or a generator could not use something."""
    message = situation.message
    if _SQLITE in message:
        return _connection(situation)
    if _LOOP in message:
        return _event_loop(situation)
    if _SIGNAL in message:
        return _handler(situation)
    said = _LOCAL.search(message)
    return _attribute(situation, said[1]) if said else None


def _connection(situation: Situation) -> Explanation | None:
    """Of a connection to SQLite that another thread made."""
    spot = situation.last
    if spot is None:
        return None
    made = [
        (file, source, one) for file, source in situation.sources() for one in calls(source.tree)
        if dotted(one.func) in ("sqlite3.connect", "connect") and one.args
        and all(keyword.arg not in (None, "check_same_thread") for keyword in one.keywords)
    ]  # fmt: skip
    where = f" (line {made[0][2].lineno})" if len(made) == 1 and made[0][0] == spot.file else ""
    cause = f"SQLite lets only the thread that made a connection{where} use it, and {_THREADS}."
    if len(made) != 1:
        return Explanation(RULE, spot.file, spot.line, cause, None, "Make it with check_same_thread=False.")
    file, source, call = made[0]
    edit = edit_of(file, source.replaced({call: source.with_argument(call, "check_same_thread=False")}))
    cause += " check_same_thread=False lets all of them use it. Where they write, hold a lock of yours."
    return Explanation(RULE, spot.file, spot.line, cause, edit)


def _event_loop(situation: Situation) -> Explanation | None:
    """Of `asyncio.get_event_loop()`, which makes a loop on the main thread only."""
    spot = situation.last
    found = [
        one for one in calls(spot.statement)
        if dotted(one.func).rpartition(".")[2] == "get_event_loop" and not one.args
    ] if spot is not None and spot.statement is not None else []  # fmt: skip
    if spot is None or len(found) != 1:
        return None
    cause = f"{dotted(found[0].func)}() gives a loop on the main thread only, and {_THREADS}."
    edit = _run(spot.file, spot.source, found[0])
    if edit is not None:
        return Explanation(RULE, spot.file, spot.line, f"{cause} asyncio.run makes a loop for its call.", edit)
    head = dotted(found[0].func).rpartition(".")[0]
    new = f"{head}.new_event_loop()" if head else ""
    edit = edit_of(spot.file, spot.source.replaced({found[0]: new})) if new else None
    return Explanation(RULE, spot.file, spot.line, cause, edit, "Run what is to be waited for by asyncio.run(...).")


def _run(file: str, source: Source, call: ast.Call) -> Edit | None:
    """`loop = asyncio.get_event_loop()` and `loop.run_until_complete(work)` below it as `asyncio.run(work)`."""
    head = dotted(call.func).rpartition(".")[0]
    outer, statement = source.parent(call), source.statement(call.lineno)
    if isinstance(outer, ast.Attribute):  # asyncio.get_event_loop().run_until_complete(work)
        run = source.parent(outer)
        if outer.attr == "run_until_complete" and isinstance(run, ast.Call) and len(run.args) == 1:
            return edit_of(file, source.replaced({run: f"{head}.run({source.text(run.args[0])})"}))
        return None
    function = source.function(call.lineno)
    if not isinstance(statement, ast.Assign) or statement.value is not call or function is None or not head:
        return None
    name = dotted(statement.targets[0])
    uses = [
        one for one in ast.walk(function)
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    method = source.parent(uses[0]) if len(uses) == 1 else None
    run = source.parent(method) if method is not None else None
    if not isinstance(method, ast.Attribute) or method.attr != "run_until_complete" or not isinstance(run, ast.Call):
        return None
    used = source.statement(run.lineno)
    block = source.block(statement)
    if len(run.args) != 1 or used is None or block is None or used not in block or len(statement.targets) != 1:
        return None
    first, last, lines = source.kept_lines({run: f"{head}.run({source.text(run.args[0])})"})
    above = source.lines[(statement.end_lineno or statement.lineno) : first - 1]
    return Edit(file, statement.lineno, last, (*above, *lines))


def _handler(situation: Situation) -> Explanation | None:
    """Of `signal.signal`, as it is used to end what takes too long."""
    spot = situation.last
    if spot is None:
        return None
    alarm = spot.function is not None and any(
        dotted(one.func).rpartition(".")[2] in ("alarm", "setitimer") for one in calls(spot.function)
    )
    cause = f"Python lets only the main thread set the handler of a signal, and {_THREADS}."
    advice = "Set it outside, on the main thread, before the dataset is read."
    if alarm:
        advice = (
            "For a limit of time, give what may take long a timeout of its own (`requests.get(url, timeout=5)`), or "
            "wait for it with one: `concurrent.futures.ThreadPoolExecutor(1).submit(work, x).result(timeout=5)`."
        )
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _attribute(situation: Situation, attribute: str) -> Explanation | None:
    """Of an attribute that another thread gave a `threading.local`."""
    spot = situation.last
    if spot is None:
        return None
    source = spot.source
    read = [
        dotted(one.value) for one in ast.walk(spot.statement or source.tree)
        if isinstance(one, ast.Attribute) and one.attr == attribute
    ]  # fmt: skip
    name = read[0] if len(set(read)) == 1 else ""
    made = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [name]
        and isinstance(one.value, ast.Call) and dotted(one.value.func) in ("threading.local", "local")
    ]  # fmt: skip
    stored = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and dotted(one.value) == name
    ]  # fmt: skip
    given = [one for one in stored if one.attr == attribute]
    if not name or len(made) != 1 or not given:
        return None
    cause = (
        f"{name} is a threading.local: each thread has attributes of its own in it. Line {given[0].lineno} gave "
        f"{name}.{attribute} to the thread that ran it, and {_THREADS}."
    )
    once = all(source.function(one.lineno) is None for one in stored)
    if not once:
        advice = f"Make {attribute} where it is used, if the thread has none: `if not hasattr({name}, '{attribute}'):`."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    indent = " " * made[0].col_offset
    lines = (
        f"{indent}from types import SimpleNamespace",
        f"{indent}{source.text(made[0].targets[0])} = SimpleNamespace()",
    )
    edit = Edit(spot.file, made[0].lineno, made[0].end_lineno or made[0].lineno, lines)
    return Explanation(RULE, spot.file, spot.line, f"{cause} As nothing changes it, all can share one.", edit)
