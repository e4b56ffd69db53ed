"""A generator that empties one list behind its yield and not the other: the second batch has more labels than rows."""

from __future__ import annotations

import re

from pyfunc_debug.doctor.failures.models.batch_makers import batch_maker
from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import indent_of
from pyfunc_debug.doctor.generators.list_batches import filled_lists, kept_lists
from pyfunc_debug.doctor.text import listed

RULE = "generator"
_SAID = re.compile(
    r"Incompatible shapes: \[(\d+)[^\]]*\] vs\. \[(\d+)|logits shape \[(\d+)[^\]]*\] and labels shape \[(\d+)"
    r"|logits_size=\[(\d+)[^\]]*\] labels_size=\[(\d+)"
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if as many rows as are in one batch stand beside the labels of several."""
    said = _SAID.search(situation.message)
    sizes = sorted(int(one) for one in said.groups() if one is not None) if said is not None else []
    if not sizes or not 0 < sizes[0] < sizes[1] or sizes[1] % sizes[0]:
        return None
    for spot, fit in failed_fits(situation):
        given = argument(fit, 0, "x")
        maker = batch_maker(given, spot) if given is not None else None
        own = maker.spot.source if maker is not None else None
        if maker is None or own is None or maker.verb != "yields" or len(maker.values) != 1:
            continue
        statement = own.statement(maker.values[0].lineno)
        kept = kept_lists(own, maker.function, statement, outer=False) if statement is not None else []
        emptied = [one for one in filled_lists(maker.function) if one not in kept]
        if statement is None or not kept or not emptied:
            continue
        cause = (
            f"a batch of {maker.function.name} has {sizes[0]} rows of one part and {sizes[1]} of another: it empties "
            f"{listed(emptied)} behind the yield in line {statement.lineno}, but not {listed(kept)}."
        )
        indent, end = indent_of(own.lines[statement.lineno - 1]), statement.end_lineno or statement.lineno
        edit = Edit(maker.spot.file, end + 1, end, tuple(f"{indent}{name} = []" for name in kept))
        return Explanation(RULE, maker.spot.file, statement.lineno, cause, edit, "")
    return None
