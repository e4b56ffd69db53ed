"""`bucket_by_sequence_length` and `group_by_window`: a size for each bucket, and a key that is int64."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument, local_function, return_value
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, method_calls

RULE = "structure"
_SIZES = "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1`"
_KEY = "Tensor conversion requested dtype int64"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a call of one of these was refused for that."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body:
        return None
    if _SIZES in situation.message:
        return _sizes(spot, statement)
    return _key(spot, statement) if _KEY in situation.message else None


def _sizes(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """One boundary makes two buckets: shorter, and the rest."""
    found = method_calls(statement, "bucket_by_sequence_length")
    sizes = argument(found[0], 2, "bucket_batch_sizes") if len(found) == 1 else None
    bounds = argument(found[0], 1, "bucket_boundaries") if len(found) == 1 else None
    cause = "n boundaries make n + 1 buckets: the last one is for all that are longer, and has its own batch size."
    if not isinstance(sizes, ast.List) or not isinstance(bounds, ast.List) or len(sizes.elts) != len(bounds.elts):
        return Explanation(RULE, spot.file, spot.line, cause, None, "Give one size more than boundaries.")
    text = spot.source.text
    listed = ", ".join(map(text, [*sizes.elts, sizes.elts[-1]])) if sizes.elts else ""
    edit = edit_of(spot.file, spot.source.replaced({sizes: f"[{listed}]"})) if listed else None
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else "Give one size more.", "likely")


def _key(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """The key of group_by_window as int64."""
    for call in calls(statement):
        given = argument(call, 0, "key_func") if getattr(call.func, "attr", "") == "group_by_window" else None
        function = local_function(given, spot)
        value = return_value(function) if function is not None else None
        if value is None:
            continue
        tf = alias(spot, "tensorflow")
        edit = edit_of(spot.file, spot.source.replaced({value: f"{tf}.cast({spot.source.text(value)}, {tf}.int64)"}))
        cause = "group_by_window takes an int64 of its key_func, and this one gives another dtype."
        return Explanation("mixed-dtypes", spot.file, value.lineno, cause, edit)
    return None
