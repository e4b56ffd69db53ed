"""A PyDataset that gives a batch without rows, as the slices of its `__getitem__` end too early."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.models.batch_makers import batch_maker
from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.doctor.generators.index_slices import ends, uneven

RULE = "generator"
_SAID = re.compile(r"yielded an element of shape \(0,|need at least one array to (?:stack|concatenate)|zero-size array")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if slices that do not follow each other gave an empty batch."""
    if not _SAID.search(situation.message):
        return None
    for spot in reversed(situation.spots):
        if isinstance(spot.function, ast.FunctionDef) and spot.function.name == "__getitem__":
            return _told(spot.file, spot.function, spot.source)
    for spot, fit in failed_fits(situation):
        given = argument(fit, 0, "x")
        maker = batch_maker(given, spot) if given is not None else None
        if maker is not None:
            return _told(maker.spot.file, maker.function, maker.source)
    return None


def _told(file: str, function: ast.FunctionDef, source: Source) -> Explanation | None:
    found = uneven(function, source)
    first = found[0] if found else None
    if first is None or first.part.upper is None:
        return None
    cause = (
        f"a batch has no rows: __getitem__ takes those up to {source.text(first.part.upper)}, and the next batch "
        f"begins at {first.end}."
    )
    edit = edit_of(file, source.replaced(dict(ends(found))))
    return Explanation(RULE, file, first.part.lineno, cause, edit, "" if edit else f"End at {first.end}.")
