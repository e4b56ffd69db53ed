"""`tf.squeeze(x)` without an axis where a size is not known at trace: its result has no rank; the axis can be named.

Of a batch of one, or of an element of one row, it also takes an axis that the others keep.
"""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import is_batched, shape_of, sizes_of
from pyfunc_debug.interception.names.private import dataset_inputs


def named(
    op: Any, dataset: Any, alike: bool, file: str, line: int, source: Source
) -> tuple[str, Edit | None, str] | None:
    """What to say and to paste of a squeeze.

    Args:
      op: The op.
      dataset: The dataset whose function has it; None where it is another function's.
      alike: Whether its elements are stacked, two or more at a time: then the first one says their shape.
      file: The user's file.
      line: The user's line that made the op.
      source: The text of the file.

    Returns:
      A sentence, the paste and an advice; None where the first element may say more.
    """
    found = [one for one in ast.walk(source.tree) if isinstance(one, ast.Call) and _without_axis(one)]
    here = [one for one in found if one.lineno <= line <= (one.end_lineno or one.lineno)]
    shape = shape_of(op.inputs[0])
    if len(here) != 1 or not shape:
        return None
    call, rank = here[0], len(shape)
    sizes = sizes_of(shape)
    ones = [place for place, size in enumerate(shape) if size == 1]
    if ones:
        places = [place if place < rank / 2 else place - rank for place in ones]
        axis = str(places[0]) if len(places) == 1 else str(places)
        edit = Edit(file, *source.kept_lines({call: source.with_argument(call, f"axis={axis}")}))
        return f"Of {sizes} it is to take axis {axis}: named, the others stay", edit, ""
    inputs = dataset_inputs(dataset) if dataset is not None else []
    if shape[0] is None and None not in shape[1:] and any(map(is_batched, inputs)):
        edit = Edit(file, *source.kept_lines({call: source.text(call.args[0])}))
        return f"{sizes} has no axis of size 1 but a batch of one: there is nothing to squeeze", edit, ""
    if dataset is None or alike:
        return None
    function = dotted(call.func)
    advice = f"Name the axis whose size is always 1: {function}(x, axis=0). If none is, leave the squeeze out: it "
    return f"It gets {sizes}", None, f"{advice}takes away the axis of the rows where there is one row."


def _without_axis(call: ast.Call) -> bool:
    """Whether it is `tf.squeeze(x)`."""
    return dotted(call.func).rpartition(".")[2] == "squeeze" and len(call.args) == 1 and not call.keywords
