"""`print(loss)` in a function that TensorFlow traces: it shows the name of a tensor, or a text, once, and no value."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.each_time import each_time
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.pastes.printed import quoted, shown
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.graphs.kept_symbols import printed_later
from pyfunc_debug.doctor.rules.keras_state import traced_in_steps
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.records import Finding

NAMES = ("printed-symbol",)
ON_PURPOSE = re.compile(r"trac(?:e|ing)|symbol|graph|shape|dtype|static", re.IGNORECASE)
"""Words of who prints what a graph is made of."""
_ONCE = re.compile(
    r"python|once|first|build|built|compil|eager|effect|creat|made|making|init|summary|layer|model|debug"
)
"""Words, in small letters, of who knows that a line runs while a graph is built."""
_PASTED = 8
"""Lines of a function that are pasted."""
_LOGS = {"debug", "info", "warning", "warn", "error", "critical", "exception", "log", "fatal"}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function and kind of line, with a paste for each line."""
    yield from printed_later(facts)
    found: dict[tuple[str, int, bool], dict[int, tuple[Definition, ast.Call]]] = {}
    for _, _, noticed in facts.notices["printed-symbol"]:
        if noticed["graph"]:
            continue  # long after: the state that kept it is the cause
        file, line = str(noticed["file"]), int(noticed["line"])
        call = _prints(facts, file, line)
        functions = pastes.around(facts.tree(file), line, ast.FunctionDef)
        if call is None or not functions:
            continue
        words = [one.value for one in ast.walk(call) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        if not any(ON_PURPOSE.search(one) for one in words):
            place = (file, pastes.first_line(functions[-1]), _is_tf_print(call))
            found.setdefault(place, {})[call.lineno] = (functions[-1], call)
    for (file, _, in_graph), calls in found.items():
        yield _finding(facts, file, [calls[line] for line in sorted(calls)], in_graph)
    told = {(file, line) for (file, _, _), calls in found.items() for line in calls}
    for file, function, runs in _traced(facts):
        texts = [
            one for one in code.own_nodes(function)
            if isinstance(one, ast.Call) and (file, one.lineno) not in told and _is_plain_text(one)
            and isinstance(pastes.source(facts, file).parent(one), ast.Expr)
        ]  # fmt: skip
        if texts:
            yield _once(facts, file, function, sorted(texts, key=lambda one: one.lineno), runs)


def _traced(facts: Facts) -> Iterator[tuple[str, Definition, int]]:
    """Functions of the user's whose graphs ran more often than they were traced: file, definition, and the runs."""
    runs = dict(facts.reader.rows("SELECT function, count(*) FROM run WHERE kind = 'forward' GROUP BY function"))
    traces = Counter(trace.function for trace in facts.traces)
    for number, function in facts.functions.items():
        found = facts.definition(function.file, function.line)
        if function.origin != "user" or function.kind != "tf.function" or found is None or function.file is None:
            continue
        if runs.get(number, 0) > max(2, 2 * traces[number]) and traces[number]:
            yield function.file, found, runs[number]
    for file, _, _, method, steps in traced_in_steps(facts):
        yield file, method, steps


def _is_plain_text(call: ast.Call) -> bool:
    """Whether a call prints a text as it is written, which says nothing of graphs or of what happens once."""
    if dotted(call.func) != "print" or not call.args or not {one.arg for one in call.keywords} <= {"end", "flush"}:
        return False
    texts = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    words = " ".join(texts)
    plain = len(texts) == len(call.args) and any(map(str.isalpha, words))
    return plain and not ON_PURPOSE.search(words) and not _ONCE.search(words.lower())


def _once(facts: Facts, file: str, function: Definition, calls: list[ast.Call], runs: int) -> Finding:
    """Lines that print a text while the graph is built."""
    lines, name = [one.lineno for one in calls], getattr(function, "name", "the function")
    s = "s" * (len(lines) > 1)
    return Finding(
        NAMES[0], "note", None, (),
        f"line{s} {listed(lines)} of {name} print{'s' * (not s)} while TensorFlow builds the graph, and not in each "
        f"of its {runs:,} runs",
        pastes.written(*[_edit(facts, file, function, one) for one in calls[:_PASTED]])
        or "tf.print(...) prints it in each run",
        file, lines[0], evidence=tuple(f"line {line}: {facts.line(file, line)}" for line in lines[: pastes.MOST]),
    )  # fmt: skip


def _finding(facts: Facts, file: str, calls: list[tuple[Definition, ast.Call]], in_graph: bool) -> Finding:
    lines = [call.lineno for _, call in calls]
    function = calls[0][0]
    name = getattr(function, "name", "the function")
    edits = [_edit(facts, file, function, call) for _, call in calls[:_PASTED] if not _lasted(function, call)]
    several = len(lines) > 1
    where = f"line{'s' * several} {listed(lines)} of {name}"
    if in_graph:
        what = (
            f"{where} give{'s' * (not several)} tf.print a text that Python made while the graph was built: each run "
            "prints the name of a tensor instead of its value"
        )
    else:
        what = (
            f"{where} print{'s' * (not several)} while TensorFlow builds the graph: that shows the name of a tensor, "
            "which has no value yet, and no run prints anything"
        )
    return Finding(
        NAMES[0], "note", None, (), what,
        pastes.written(*edits) or "tf.print(...) with the tensors themselves prints their values in each run",
        file, lines[0], evidence=tuple(f"line {line}: {facts.line(file, line)}" for line in lines[: pastes.MOST]),
    )  # fmt: skip


def _prints(facts: Facts, file: str, line: int) -> ast.Call | None:
    """The call on a line that prints, or logs; None where something else asked for the text."""
    calls = [one for one in pastes.around(facts.tree(file), line, ast.Call) if is_print(one) or is_log(one)]
    calls = [one for one in calls if isinstance(pastes.source(facts, file).parent(one), ast.Expr)]
    return calls[0] if len(calls) == 1 else None


def is_print(call: ast.Call) -> bool:
    """Whether a call is `print`, or TensorFlow's."""
    return dotted(call.func) == "print" or _is_tf_print(call)


def _is_tf_print(call: ast.Call) -> bool:
    return dotted(call.func).endswith(".print")


def is_log(call: ast.Call) -> bool:
    """Whether a call logs."""
    owner, _, method = dotted(call.func).rpartition(".")
    return method in _LOGS and "log" in owner.lower()


def _lasted(function: Definition, call: ast.Call) -> bool:
    """Whether a line shows how long something took: not in a graph, and the rule trace-only tells it."""
    times = {id(one) for one in code.durations(function)}
    kept = {
        target.id for one in code.own_nodes(function) if isinstance(one, ast.Assign) and id(one.value) in times
        for target in one.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    return any(id(one) in times or (isinstance(one, ast.Name) and one.id in kept) for one in ast.walk(call))


def _edit(facts: Facts, file: str, function: Definition, call: ast.Call) -> Edit | None:
    """The line with `tf.print` and the values; with Python in a py_function where it does not go to the output."""
    own, tf = pastes.source(facts, file), pastes.module(facts, file, "tensorflow")
    if tf is None:
        return None
    given = {one.arg: one.value for one in call.keywords}
    if not _is_tf_print(call) and (is_log(call) or not given.keys() <= {"sep", "end", "flush"}):
        new = each_time(own, function, call, tf)
        return None if new is None else pastes.replaced(facts, file, {call: new})
    texts: list[str] = []
    for argument in call.args:
        parts = [argument] if isinstance(argument, ast.Starred) else shown(argument)
        for one in parts:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                texts += [quoted(one.value.strip())] * bool(one.value.strip())
            else:
                texts.append(own.text(one) or ast.unparse(one))
    texts += [f"{one}={own.text(value)}" for one, value in given.items() if one != "flush"]
    return pastes.replaced(facts, file, {call: f"{tf}.print({', '.join(texts)})"})
