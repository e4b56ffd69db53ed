"""More files are open than a process may have: each element opens one, and nothing closes it."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "file-read"
_SAID = "[Errno 24] Too many open files"
_OPENS = ("open", "File", "load", "ZipFile", "VideoCapture", "Dataset", "imread", "memmap", "connect")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a file could not be opened because too many are."""
    spot, statement = situation.last, situation.statement
    if _SAID not in situation.message or spot is None or statement is None:
        return None
    found = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] in _OPENS]
    if not found:
        return None
    text = short(spot.source.text(found[0].func), 30)
    cause = (
        f"this process has as many files open as it may. {text} in line {spot.line} opens one each time, and that "
        "stays open as long as something holds the object."
    )
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    name = dotted(target) if target is not None else "f"
    advice = f"Read in a block that closes it: `with {text}(...) as {name or 'f'}:`, and keep the values only."
    if dotted(found[0].func).endswith("Image.open"):
        advice = "Keep the values: `np.array(image)` reads the file, and then it is closed."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
