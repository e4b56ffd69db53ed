"""`next(...)` of an iterator at its end, in a generator or in a PyDataset's `__getitem__`: Python makes it an error."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import STOPPED, Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "exhausted"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a generator that gives data raised StopIteration."""
    spot = situation.last
    if spot is None or situation.kind != "StopIteration" or STOPPED not in situation.text:
        return None
    statement, function = spot.statement, spot.function
    if statement is None or hasattr(statement, "body") or not isinstance(function, ast.FunctionDef):
        return None
    asked = next((one for one in calls(statement) if dotted(one.func) == "next" and len(one.args) == 1), None)
    if asked is None:
        return None
    text = short(spot.source.text(asked), 40)
    if any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own_nodes(function)):
        cause = (
            f"`{text}` found no more inside the generator {function.name}. There Python makes an error of it: a "
            "generator ends by `return`, or by the end of its lines."
        )
        edit = _tried(spot, statement, ["return  # the end of the data"])
        return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
    cause = (
        f"`{text}` came to the end of its iterator, which has one pass. Keras asks {function.name} for a batch by its "
        "index, for the first also before it trains, and in each epoch again."
    )
    made = _maker(spot, asked.args[0])
    if made is None:
        return Explanation(RULE, spot.file, spot.line, cause, None, "Return the batch of the index that it is given.")
    again = [f"{spot.source.text(asked.args[0])} = {made}", spot.source.text(statement)]
    return Explanation(RULE, spot.file, spot.line, cause, _tried(spot, statement, again), "", "likely")


def _tried(spot: Spot, statement: ast.stmt, instead: list[str]) -> Edit | None:
    """A statement in a `try`, and what follows where it finds no more."""
    first, last = spot.source.span(statement)
    lines = spot.source.lines[first - 1 : last]
    blanks = indent_of(lines[0])
    return Edit(spot.file, first, last, (
        f"{blanks}try:", *(f"    {line}" for line in lines), f"{blanks}except StopIteration:",
        *(f"{blanks}    {line}" for line in instead),
    ))  # fmt: skip


def _maker(spot: Spot, iterator: ast.expr) -> str | None:
    """What makes the iterator of an attribute, as its class says it once: `self.loop()`."""
    if not (isinstance(iterator, ast.Attribute) and isinstance(iterator.value, ast.Name)):
        return None
    made = {
        spot.source.text(one.value) for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Assign) and dotted(iterator) in [dotted(target) for target in one.targets]
    }  # fmt: skip
    text = made.pop() if len(made) == 1 else ""
    return text if text.startswith((f"{iterator.value.id}.", f"iter({iterator.value.id}.")) else None
