"""A zip of inputs and labels of which only one side leaves elements out: from there on each gets another one's label.

A `filter`, `ignore_errors`, or a generator that goes on with `continue`, shortens its own side only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets.zips import way, zips_of_labels
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding

NAMES = ("filtered-apart",)
_LEAVES_OUT = {"Filter": "filter", "IgnoreErrors": "ignore_errors"}
_ARRAYS = ("TensorSlice", "TextLine", "FlatMap", "Tensor", "Range")
"""Where sides come from whose elements belong together by their position."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a zip."""
    told: set[tuple[str, int]] = set()
    for file, call, given, sides in zips_of_labels(facts, _by_position):
        if (file, call.lineno) in told:
            continue
        found = _filtered(facts, file, call, given, sides) or _skipped(facts, file, call, given, sides)
        if found is not None:
            told.add((file, call.lineno))
            yield found


def _by_position(sides: Sequence[dict[str, Any]]) -> bool:
    """Whether two sides of a source each have elements whose position says what they belong to."""
    return sides[1]["source"] == 1 and all(one["kinds"][-1] in _ARRAYS for one in sides)


def _filtered(
    facts: Facts, file: str, call: ast.Call, given: list[ast.expr], sides: Sequence[dict[str, Any]]
) -> Finding | None:
    """A side behind a filter, and one behind none."""
    own = pastes.source(facts, file)
    shorter = [[_LEAVES_OUT[one] for one in side["kinds"] if one in _LEAVES_OUT] for side in sides]
    if bool(shorter[0]) == bool(shorter[1]):
        return None
    place = 0 if shorter[0] else 1
    made = [one for one in way(facts, file, given[place], call) if _does(one) in shorter[place]]
    if len(made) != 1:
        return None
    name, other = (own.text(given[one]) if isinstance(given[one], ast.Name) else "" for one in (place, 1 - place))
    line = pastes.end_of(made[0]).lineno
    does = _does(made[0])
    return _finding(
        facts, file, call, f"{does} in line {line} leaves out elements of {name or 'one side'} only", other,
        _behind(own, facts, file, call, made[0], place) or f"zip first, and {does} behind it, of the pairs", line,
    )  # fmt: skip


def _does(call: ast.Call) -> str:
    """`filter` and `ignore_errors`, also of `apply(tf.data.experimental.ignore_errors())`."""
    name = pastes.last_name(call.func)
    if name == "apply" and call.args and "ignore_errors" in ast.unparse(call.args[0]):
        return "ignore_errors"
    return name


def _behind(own: Source, facts: Facts, file: str, call: ast.Call, made: ast.Call, place: int) -> str:
    """The same of the pairs: the side without its filter, and a filter behind the zip."""
    if (
        _does(made) == "ignore_errors"
        or not isinstance(made.func, ast.Attribute)
        or len(made.args) != 1
        or made.keywords
    ):
        return ""
    asked = made.args[0]
    names = ["value", "other"]
    if isinstance(asked, ast.Lambda) and len(asked.args.args) == 1:
        names[0], body = asked.args.args[0].arg, own.text(asked.body)
        names[1] = "value" if names[0] == "other" else "other"
    elif isinstance(asked, (ast.Name, ast.Attribute)):
        body = f"{own.text(asked)}(value)"
    else:
        return ""
    pair = ", ".join(names if place == 0 else reversed(names))
    behind, plain = f".filter(lambda {pair}: {body})", own.text(made.func.value)
    if any(one is made for one in ast.walk(call)):
        return pastes.all_replaced(facts, file, {call: f"{own.text_with(call, {made: plain})}{behind}"})
    statement = own.parent(made)
    if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == plain:
        line, last = made.lineno, made.end_lineno or made.lineno
        gone = Edit(file, line, last, (f"{' ' * statement.col_offset}# {plain} is filtered behind the zip",))
        return pastes.written(gone, pastes.replaced(facts, file, {call: f"{own.text(call)}{behind}"}))
    return pastes.all_replaced(facts, file, {made: plain, call: f"{own.text(call)}{behind}"})


def _skipped(
    facts: Facts, file: str, call: ast.Call, given: list[ast.expr], sides: Sequence[dict[str, Any]]
) -> Finding | None:
    """A generator that leaves out elements in its loop, beside as many elements as it goes through."""
    for place, other in ((0, 1), (1, 0)):
        count = sides[other].get("count")
        made = [one for one in way(facts, file, given[place], call) if _does(one) == "from_generator"]
        if count is None or len(made) != 1:
            continue
        for node, _ in facts.generators.values():
            asked = pastes.dataset_call(facts, node)
            function = facts.function(node)
            if asked is None or asked[0] != file or asked[1].lineno != made[0].lineno or function is None:
                continue
            goes_on = [one for one in code.own_nodes(function) if isinstance(one, ast.Continue)]
            yields = [one for one in code.own_nodes(function) if isinstance(one, ast.Yield)]
            gave = _elements(facts, node.id)
            if len(goes_on) != 1 or len(yields) != 1 or not 0 < gave < count:
                continue
            line = goes_on[0].lineno
            name = pastes.text_of(facts, file, given[other]) if isinstance(given[other], ast.Name) else ""
            body = facts.name(node)
            return _finding(
                facts, file, call, f"{body} leaves out elements (line {line}): it gave {gave:,} in a pass", name,
                f"yield the pair: {body} goes through both, and leaves out both", line,
            )  # fmt: skip
    return None


def _elements(facts: Facts, node: int) -> int:
    """How many elements a generator gave in a pass that it ended; 0 where none was seen to its end."""
    rows = facts.reader.rows(
        "SELECT max(given) FROM (SELECT count(o.call) AS given, count(*) AS asked FROM call c "
        "JOIN value i ON i.call = c.id AND i.role = 'input' AND i.position = 0 "
        "LEFT JOIN value o ON o.call = c.id AND o.role = 'output' AND o.position = 0 "
        "WHERE c.node = ? AND c.kind = 'forward' GROUP BY i.min) WHERE asked = given + 1",
        (node,),
    )
    return int(rows[0][0] or 0)


def _finding(facts: Facts, file: str, call: ast.Call, what: str, other: str, fix: str, line: int) -> Finding:
    return Finding(
        NAMES[0], "error", None, (),
        f"{what}, and {other or 'the other side'} keeps all of its own: zip pairs them by their position, so that from "
        "the first one left out each gets the partner of another",
        fix, file, call.lineno, evidence=tuple(f"line {one}: {facts.line(file, one)}" for one in (line,)),
    )  # fmt: skip
