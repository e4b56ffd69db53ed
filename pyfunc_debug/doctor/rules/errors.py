"""Bodies that raised; and StopIteration, which TensorFlow turns into the end of the data."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.bodies.grouped import several, spread, times, together
from pyfunc_debug.doctor.bodies.nan_inputs import came_in
from pyfunc_debug.doctor.bodies.overlapping import beside_others, much_failed
from pyfunc_debug.doctor.datasets import pipelines
from pyfunc_debug.doctor.datasets.earlier_batches import batch_before
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.generators.element_numbers import element_number
from pyfunc_debug.doctor.rules.shared_state import locked
from pyfunc_debug.doctor.text import held_names
from pyfunc_debug.program.error_text import is_interrupt, plain
from pyfunc_debug.program.frames import is_installed, is_tensorflow
from pyfunc_debug.records import FROM_GENERATOR, Finding, Node, Severity

NAMES = ("body-raised", "stop-iteration")
_SAME = 150
"""Exceptions with texts that begin alike are the same."""
CONTRACTS = re.compile(r"(the body returned .+, but Tout has \d+|value \d+ .+, but Tout says \w+)")
"""How the recorder says what TensorFlow says only of a token (`pyfunc_0`)."""
_FUNCTION_NODE = re.compile(r"\{\{function_node \S+\}\} ")
_KERAS = re.compile(r"Exception encountered when calling [\w.]+\(\)\.$")
"""What Keras says before its own message of what happened."""
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_CONVERTING = re.compile(
    r"[Cc]onvert|Tensor conversion|EagerTensor of dtype|unsupported (?:object )?type|array element with a sequence"
    r"|compute Pack as input|Invalid dtype argument value"
)


_OF_PIPES = ("EOFError", "BrokenPipeError", "ConnectionResetError")
"""What a body fails with whose other process Ctrl-C ended, too."""
_END_NS = 5_000_000_000
"""How long before the end of the recording, at most, a call began that Ctrl-C ended."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body and exception type."""
    reader = facts.reader
    rows = reader.rows(  # wrong_tapes reports a gradient without a tape
        "SELECT n.id, n.body, n.file, n.line, f.type, count(*), min(c.id), min(f.id) FROM call c "
        "JOIN failure f ON f.id = c.failure JOIN node n ON n.id = c.node "
        f"LEFT JOIN function o ON o.id = n.function WHERE (n.origin = 'user' OR o.name = '{FROM_GENERATOR}') "
        "AND NOT (c.kind = 'gradient' AND f.type = 'KeyError' AND (c.forward IS NOT NULL AND c.tape IS NULL "
        "OR f.message LIKE '%pyfunc_%')) AND c.id NOT IN (SELECT call FROM notice WHERE rule = 'stop' AND call IS NOT "
        "NULL AND json_extract(facts, '$.interrupted')) "  # a person ended these at a stop
        "AND NOT (f.type = 'Abort' AND f.message LIKE '%at a pyfunc_debug stop') "  # and those that began meanwhile
        "GROUP BY n.id, f.type ORDER BY n.id"
    )
    explained = tuple(_plain(str(one["error"]))[:_SAME] for _, _, one in facts.notices["failure"])
    contracts = [one.message for one in failures(facts, ("output-contract", "structure"))]
    lost = any(failures(facts, ("serialization",)))
    rows = [row for row in rows if row[2] is None or not is_tensorflow(row[2])]
    rows = [row for row in rows if not _by_interrupt(facts, row[4], row[6])]
    for group in together(rows, 4):
        node, body, file, line, kind, _, first, failure = min(group, key=lambda row: int(row[6]))
        counts = {row[0]: row[5] for row in group}
        message, frames = reader.rows("SELECT message, frames FROM failure WHERE id = ?", (failure,))[0]
        inner = json.loads(frames)
        if not inner and facts.source(file) and (converting(message) or had_returned(facts, node, first)):
            continue  # the body had returned: `returned` tells of what TensorFlow did not take
        if _plain(f"{kind}: {message}").startswith(explained) and kind != "StopIteration":
            continue  # failed_programs says more
        if lost and "its function is not in this process" in body:
            continue  # as above
        if CONTRACTS.fullmatch(message) and any(f"{body} " in one for one in contracts):
            continue  # as above: the exception that reached the user is another one, in TensorFlow's words
        from_generator = facts.is_generator(facts.nodes[node])
        if kind == "KeyError" and from_generator and all(is_installed(one[0]) for one in inner):
            continue  # TensorFlow's own: it ends an iterator that never began, as the generator's call failed
        if inner:
            own = [one for one in inner if not is_installed(one[0])] or inner
            file, line = own[-1][0], own[-1][1]
        if file is not None and is_installed(file) and (site := facts.site(node)) is not None:
            file, line = site.file, site.line  # the body is a library's: the user's line is the one that names it
        often = f"{times(sum(counts.values()))}{spread(facts, counts)}"
        given = "" if from_generator else facts.inputs(first)  # that is the number of TensorFlow's iterator
        evidence: tuple[str, ...] = (f"call #{first}: {given}",) if given else ()
        if kind == "StopIteration":
            ended = facts.meta.get("ended")
            told = isinstance(ended, dict) and "StopIteration" in str(ended.get("message", ""))
            after = ", and the program ended by it" if told else " and may end a loop or an epoch without an error"
            fix = _default(facts, facts.nodes[node], file, line)
            if "next(" in fix:
                evidence += (f"from call #{first} on the default stands in for each element",)
                again = _again(facts, file, line)
                evidence += (f"to begin again instead: {again}",) if again else ()
            yield Finding(
                "stop-iteration", "error", node, (first,),
                f"StopIteration left {body} {often} (first in call #{first}): TensorFlow takes it for the end of the "
                f"data{after}", fix, file, line, several(counts), evidence,
            )  # fmt: skip
            continue
        evidence += _held(facts, kind, message, (file, line))
        passed, contrast = _others(facts, list(counts), first)
        number = element_number(facts.reader.rows, node, first) if from_generator else None
        if number is not None and passed:  # the call that found its end is none of its elements
            contrast = f"it had yielded {number - 1:,} {'element' if number == 2 else 'elements'} before"
        evidence += (contrast,) if contrast else ()
        severity, after = _outcome(facts, kind)
        left_out = passed and severity == "error" and facts.nodes[node].function is not None
        often_failed = much_failed(facts, list(counts))
        alike = not contrast.startswith("there ")
        alike = alike and not from_generator and not locked(facts, facts.nodes[node])
        beside = beside_others(facts, list(counts), kind, message, (file, line)) if alike else None
        if beside is not None and severity != "error" and not often_failed:
            beside = None  # the program leaves out a few elements, as it means to
        left_out = left_out and beside is None and not often_failed
        leave = pastes.written(pipelines.without_failing(facts, facts.nodes[node])) if left_out else ""
        batch = batch_before(facts, facts.nodes[node]) if leave else None
        if batch is not None:  # ignore_errors would drop good rows
            leave = ""
            after += f". Change line {line}, or correct the row. {_of_batch(*batch)}"
        after += f". Change line {line}, or leave such elements out" if leave else ""
        values = came_in(facts, node, first, message)
        if values is not None and not leave and batch is None:
            after += f". {values.words}"
        elif beside is not None:
            after += f". {beside.words}"
            evidence += (beside.evidence,)
        guessed = values.likely if values is not None else beside is not None
        which = f", for its element {number:,}" if number is not None else ""
        refused = from_generator and bool(inner) and all(is_installed(one[0]) for one in inner)
        where = f"behind {body}, which had given its element" if refused else f"in {body}"
        yield Finding(
            "body-raised", severity, node, (first,),
            f"{kind} {where}: {often} (first in call #{first}{which}){_said(message)}{after}",
            leave or (values.fix if values is not None else (beside.fix if beside is not None else "")
                      or facts.stop_at(body, "after" if refused else "error")),
            file, line, several(counts), evidence,
            confidence="likely" if guessed and not leave else "measured",
        )  # fmt: skip


def _of_batch(call: ast.Call, size: str) -> str:
    """What to leave out where the element that failed is a batch: the row in it, before there are batches."""
    name = ast.unparse(call.func).rpartition(".")[2]
    line = call.func.end_lineno or call.lineno
    return (
        f"An element is a batch{f' of {short(size, 20)}' if size else ''} there (line {line}), so ignore_errors would "
        f"leave out its good rows, too: leave out the one row, by a filter before {name}"
    )


def _by_interrupt(facts: Facts, kind: str, first: int) -> bool:
    """Whether a body failed as Ctrl-C ended the program, and the process that it had data from."""
    ended, end_ns = facts.meta.get("ended"), facts.meta.get("end_ns")
    if kind not in _OF_PIPES or not isinstance(ended, dict) or end_ns is None:
        return False
    ((start_ns,),) = facts.reader.rows("SELECT start_ns FROM call WHERE id = ?", (first,))
    return is_interrupt(str(ended.get("error")), str(ended.get("message"))) and end_ns - start_ns < _END_NS


def _plain(error: str) -> str:
    """An exception's text without the function of TensorFlow's that it names first."""
    return _FUNCTION_NODE.sub("", error, count=1)


def _held(facts: Facts, kind: str, message: str, place: tuple[str | None, int | None]) -> tuple[str, ...]:
    """What the names in the failing line held, of the exception that reached the user."""
    for _, _, one in facts.notices["failed-line"]:
        if (one["file"], one["line"]) == place and one["error"][:_SAME] == f"{kind}: {message}"[:_SAME]:
            lines = [(f"in line {one['line']}", one["held"])]
            lines += [(f"in line {one['called']}, which called it", one["around"])] if one.get("around") else []
            return tuple(f"{where}: {held_names(names)}" for where, names in lines if names)
    return ()


def _others(facts: Facts, nodes: list[int], failed: int) -> tuple[int, str]:
    """How many calls passed, and what differed in the inputs of the one that failed."""
    marks = ", ".join("?" * len(nodes))
    rows = facts.reader.rows
    passed = rows(
        f"SELECT count(*) FROM call WHERE node IN ({marks}) AND kind = 'forward' AND failure IS NULL "
        "AND end_ns IS NOT NULL", nodes,
    )[0][0]  # fmt: skip
    if not passed:
        return 0, ""
    calls = f"{passed:,} {'call' if passed == 1 else 'calls'}"
    own = rows("SELECT position, path, dtype, shape FROM value WHERE call = ? AND role = 'input'", (failed,))
    for position, path, dtype, shape in own:
        other = rows(
            f"SELECT DISTINCT v.dtype, v.shape FROM value v JOIN call c ON c.id = v.call WHERE c.node IN ({marks}) "
            "AND c.kind = 'forward' AND c.failure IS NULL AND v.role = 'input' AND v.position = ? LIMIT 2",
            (*nodes, position),
        )
        if shape is not None and len(other) == 1 and other[0] != (dtype, shape):
            return passed, f"there {path} is {dtype}{shape}, and {other[0][0]}{other[0][1]} in the {calls} that passed"
    return passed, f"{calls} of it passed"


def _said(message: str) -> str:
    words = _first_lines(message).rstrip(".")
    return f": {words}" if words else ""


def _first_lines(message: str) -> str:
    """A message up to the values that are printed in it: the line that says what happened."""
    lines = [one.strip() for one in _COLOURS.sub("", message).strip().split("\n") if one.strip()] or [""]
    if len(lines) > 1 and _KERAS.match(lines[0]):
        lines = lines[1:]
    lines = [plain(one) for one in lines[:2]]
    text = lines[0] if len(lines[0]) > 40 else " ".join(lines)
    return short(text, 200)


def converting(message: str) -> bool:
    """Whether an exception's text says that TensorFlow could not convert a value."""
    return bool(_CONVERTING.search(message))


def had_returned(facts: Facts, node: int, call: int) -> bool:
    """Whether a call is known to have returned: the recording has kept what."""
    return facts.has("returned") and bool(
        facts.reader.rows("SELECT 1 FROM returned WHERE node = ? AND first = ? LIMIT 1", (node, call))
    )


_TYPES_OF_TENSORFLOW = re.compile(r"(?:^|\.)(?:InvalidArgument|Internal|Unimplemented|Unknown)Error$")


def _outcome(facts: Facts, kind: str) -> tuple[Severity, str]:
    """How severe it is: the program ended with it, or it went on."""
    ended = facts.meta.get("ended")
    if not isinstance(ended, dict):
        return "warning", ""
    if ended.get("body") == kind or ended.get("error") == kind:
        return "error", ""
    if all(_TYPES_OF_TENSORFLOW.search(str(one)) for one in (kind, ended.get("error"))):
        return "warning", ""  # TensorFlow may have raised another type for it
    if ended.get("error"):
        return "warning", ""  # the program ended with another exception, perhaps because of it
    return "note", ". The program went on: it caught the exception, or skips such elements"


def _default(facts: Facts, node: Node, file: str | None, line: int | None) -> str:
    """The line with a default for `next`, of the dtype and shape that the body returned so far."""
    end = _end(facts, node, file)
    text = facts.line(file, line) or "..."
    asked = _asked(facts, file, line)
    if asked is not None and end is not None:
        own = pastes.text_of(facts, file, asked[1])
        return pastes.written(pastes.replaced(facts, file, {asked[0]: f"next({own}, {end})"}))
    return f"try:\n    {text}\nexcept StopIteration:\n    return {end or '...'}  # what stands for the end of the data"


def _asked(facts: Facts, file: str | None, line: int | None) -> tuple[ast.Call, ast.expr] | None:
    """The call of `next` on a line, and the iterator; None where there are several, or none."""
    calls = [
        one for one in (pastes.around(facts.tree(file), line, ast.Call) if line is not None else ())
        if (ast.unparse(one.func) == "next" and len(one.args) == 1) or ast.unparse(one.func).endswith(".__next__")
    ]  # fmt: skip
    if len(calls) != 1:
        return None
    func = calls[0].func
    return calls[0], func.value if isinstance(func, ast.Attribute) else calls[0].args[0]


def _again(facts: Facts, file: str | None, line: int | None) -> str:
    """The line that makes an iterator over a list, with one that begins again at its end; "" for other iterators."""
    asked = _asked(facts, file, line)
    name = ast.unparse(asked[1]) if asked is not None else ""
    made = [
        one for one in pastes.walk(facts.tree(file), ast.Assign)
        if name in [ast.unparse(target) for target in one.targets]
    ]  # fmt: skip
    call = made[0].value if len(made) == 1 else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "iter" or len(call.args) != 1:
        return ""
    if not isinstance(call.args[0], (ast.List, ast.Tuple, ast.ListComp)):
        return ""
    module = pastes.module(facts, file, "itertools")
    imported = "" if module else ", and `import itertools` above"
    return f"`{name} = {module or 'itertools'}.cycle(...)` in line {made[0].lineno} for `iter(...)`{imported}"


def _end(facts: Facts, node: Node, file: str | None) -> str | None:
    """A value that TensorFlow takes for the body's output; None where it has several, or none."""
    if len(node.tout) != 1:
        return None
    rows = facts.reader.rows(
        "SELECT DISTINCT v.shape FROM call c JOIN value v ON v.call = c.id AND v.role = 'output' WHERE c.node = ? "
        "AND c.kind = 'forward' LIMIT 2",
        (node.id,),
    )
    shape = rows[0][0] if rows else "[]"
    dtype = node.tout[0]
    if dtype == "string":
        return 'b""' if shape == "[]" else None
    numpy = pastes.module(facts, file, "numpy")
    if len(rows) > 1 or shape is None or numpy is None:
        return None
    return f"{numpy}.zeros({shape}, {'bool' if dtype == 'bool' else f'{numpy}.{dtype}'})"
