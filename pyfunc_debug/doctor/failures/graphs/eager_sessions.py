"""Programs for a v1 Session under TensorFlow 2, which runs eagerly: placeholders, and an empty graph."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot

RULE = "older-api"
_SAID = re.compile(
    r"placeholder\(\) is not compatible with eager execution|The Session graph is empty"
    r"|(?:make_one_shot_iterator|make_initializable_iterator) is not supported when eager execution is enabled"
)
_SESSION = re.compile(r"\bSession\(|\bInteractiveSession\(|\bMonitoredTrainingSession\(")
_SWITCH = "disable_eager_execution"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a program for a Session runs eagerly."""
    spot = situation.spots[0] if situation.spots else None  # where the program was begun
    if spot is None or situation.body or _SAID.search(situation.message) is None:
        return None
    code = "\n".join(spot.source.code)
    if _SWITCH in code or not uses_session(situation):
        return None
    line = situation.last.line if situation.last is not None else spot.line
    file = situation.last.file if situation.last is not None else spot.file
    cause = (
        "This program builds a graph for a Session, as TensorFlow 1 did. TensorFlow 2 runs each line at once, if "
        "nobody switches that off before the first of them."
    )
    imported = _imported(spot)
    if imported is None:
        return Explanation(RULE, file, line, cause, None, f"Call tf.compat.v1.{_SWITCH}() under the import.")
    statement, call = imported
    end = statement.end_lineno or statement.lineno
    edit = Edit(spot.file, end + 1, end, (call,))
    return Explanation(RULE, file, line, cause, edit)


def uses_session(situation: Situation) -> bool:
    """Whether a file of the program makes a Session."""
    return _SESSION.search("\n".join("\n".join(one.code) for _, one in situation.sources())) is not None


def _imported(spot: Spot) -> tuple[ast.stmt, str] | None:
    """The import of TensorFlow at the top of a file, and the call by the name that it has there."""
    for one in spot.source.tree.body:
        for name in one.names if isinstance(one, ast.Import) else ():
            if name.name == "tensorflow":
                return one, f"{name.asname or name.name}.compat.v1.{_SWITCH}()"
            if name.name == "tensorflow.compat.v1" and name.asname:
                return one, f"{name.asname}.{_SWITCH}()"
        if isinstance(one, ast.ImportFrom) and one.module == "tensorflow.compat":
            named = [part.asname or part.name for part in one.names if part.name == "v1"]
            if named:
                return one, f"{named[0]}.{_SWITCH}()"
    return None
