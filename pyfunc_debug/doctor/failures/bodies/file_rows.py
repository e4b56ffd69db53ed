"""Rows of an HDF5 file, asked for by an array of places: h5py takes these in increasing order, each once."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_ndarray, lookup

_SAID = "Indexing elements must be in increasing order"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if h5py refused an array of places, or a list of them."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or _SAID not in situation.message:
        return None
    for one in ast.walk(statement):
        places = lookup(one.slice, spot) if isinstance(one, ast.Subscript) else None
        if not isinstance(one, ast.Subscript) or not (is_ndarray(places) or type(places) is list):
            continue
        taken = {each.id for each in ast.walk(spot.source.tree) if isinstance(each, ast.Name)}
        text, np = spot.source.text, alias(spot, "numpy")
        first, last = spot.source.span(statement)
        if taken & {"places", "back"} or np == "numpy":
            break
        blanks = indent_of(spot.source.lines[first - 1])
        same: dict[ast.expr, str] = {
            each: f"{text(each.value)}[places][back]" for each in ast.walk(statement)
            if isinstance(each, ast.Subscript) and text(each.slice) == text(one.slice)
        }  # fmt: skip
        new = spot.source.spliced(same, first, last)
        made = f"{blanks}places, back = {np}.unique({text(one.slice)}, return_inverse=True)"
        cause = (
            f"h5py reads rows in increasing order, each once, and {short(text(one.slice), 30)} has them in another. "
            "unique sorts them, and its second result puts the rows back into that order."
        )
        return Explanation(RULE, spot.file, spot.line, cause, Edit(spot.file, first, last, (made, *new)))
    return Explanation(
        RULE, spot.file, spot.line, "h5py reads rows in increasing order, each once.", None,
        "Read them sorted, np.unique(rows, return_inverse=True), and put them back into their order.",
    )  # fmt: skip
