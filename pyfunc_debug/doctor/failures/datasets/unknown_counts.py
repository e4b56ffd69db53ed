"""`cardinality()` of a dataset whose number of elements is not known: it is -2, or -1 where it has no end."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_dataset, lookup

RULE = "unknown-length"
_SAID = re.compile(r"(?<![\w.])-\d+|negative|non-?negative|greater than (?:or equal to )?(?:0|zero)|> ?0|at least 1")
_UNKNOWN, _ENDLESS = -2, -1


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line reads a number that cardinality gave for "not known"."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    read = set(names(statement))
    within = spot.function if spot.function is not None else spot.source.tree
    for one in ast.walk(within):
        if not isinstance(one, ast.Assign) or len(one.targets) != 1 or one.lineno > statement.lineno:
            continue
        name = dotted(one.targets[0])
        asked = counted(one.value)
        if asked is None or name not in read:
            continue
        value = lookup(one.targets[0], spot)
        number = getattr(value, "item", lambda value=value: value)() if hasattr(value, "item") else value
        dataset = dataset_of(asked)
        if number not in (_UNKNOWN, _ENDLESS) or dataset is None or not is_dataset(lookup(dataset, spot)):
            continue
        text = spot.source.text(dataset)
        cause = f"{name} is {number}: `{short(spot.source.text(asked), 44)}` (line {one.lineno}) says so where "
        if number == _ENDLESS:
            cause += f"{text} has no end."
            return Explanation(RULE, spot.file, one.lineno, cause, None, "Count it in front of repeat().")
        cause += f"TensorFlow does not know how many elements {text} has, as behind a generator or a filter. The paste "
        cause += "counts them, by one pass over the data."
        edit = edit_of(spot.file, spot.source.replaced({whole(spot.source, asked): f"sum(1 for _ in {text})"}))
        return Explanation(RULE, spot.file, one.lineno, cause, edit)
    return None


def counted(node: ast.expr) -> ast.Call | None:
    """The call of cardinality in an expression: `ds.cardinality()`, `tf.data.experimental.cardinality(ds).numpy()`."""
    found = [one for one in calls(node) if dotted(one.func).rpartition(".")[2] == "cardinality"]
    return found[0] if len(found) == 1 else None


def dataset_of(call: ast.Call) -> ast.expr | None:
    """The dataset that a call of cardinality asks."""
    if call.args:
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def whole(source: Source, call: ast.Call) -> ast.expr:
    """The call with `.numpy()` behind it and `int(...)` around it."""
    node: ast.expr = call
    parent = source.parent(call)
    if isinstance(parent, ast.Attribute) and parent.attr == "numpy":
        above = source.parent(parent)
        node = above if isinstance(above, ast.Call) else node
    above = source.parent(node)
    return above if isinstance(above, ast.Call) and dotted(above.func) == "int" else node
