"""No variable got a gradient, because `.numpy()` took what the model gave out of TensorFlow's sight."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.situation import Situation
from pyfunc_debug.doctor.failures.source import Source, read

RULE = "cut-gradient"
_SAID = "No gradients provided for any variable"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a `.numpy()` under a tape of the user's is why."""
    if situation.body or _SAID not in situation.message:
        return None
    for spot in reversed(situation.spots):
        source = read(spot.file)
        blocks = [
            one for one in ast.walk(source.tree)
            if isinstance(one, ast.With) and any("GradientTape(" in ast.unparse(item) for item in one.items)
        ]  # fmt: skip
        if len(blocks) > 1:
            blocks = [one for one in blocks if source.function(one.lineno) is source.function(spot.line)]
        cuts = [cut for block in blocks for cut in _cuts(block)]
        if len(blocks) == 1 and cuts:
            return _explanation(spot.file, source, cuts)
    return None


def _cuts(block: ast.With) -> list[ast.Call]:
    """Calls of `.numpy()` in a block, whose values the tape does not see."""
    return [
        one for one in ast.walk(block)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "numpy"
        and not one.args
    ]  # fmt: skip


def _explanation(file: str, source: Source, cuts: list[ast.Call]) -> Explanation:
    cut = cuts[0]
    pieces: dict[ast.expr, str] = {
        one: source.text(one.func.value) for one in cuts
        if one.lineno == cut.lineno and isinstance(one.func, ast.Attribute)
    }  # fmt: skip
    placed = source.replaced(pieces)
    edit = None if placed is None else Edit(file, placed[0], placed[1], (placed[2],))
    more = [str(one.lineno) for one in cuts if one.lineno != cut.lineno]
    also = f" So do lines {', '.join(dict.fromkeys(more))}." if more else ""
    cause = (
        f"{source.text(cut)} leaves TensorFlow: a GradientTape sees TensorFlow's ops only, and what comes after it has "
        f"no gradient to any variable.{also}"
    )
    return Explanation(RULE, file, cut.lineno, cause, edit, "" if edit else "Leave `.numpy()` out under the tape.")
