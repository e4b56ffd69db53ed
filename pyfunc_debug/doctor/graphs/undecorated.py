"""The line of `@tf.function` without it, for a function whose Python has to run each time."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Function


def undecorated(facts: Facts, function: Function, found: Definition | None, why: str) -> str:
    """The line to paste; "" where the tf.function is made in another way.

    Args:
      facts: The recording.
      function: The function that was traced.
      found: Its definition.
      why: What stands behind its name in the comment: "goes on with what Python keeps".
    """
    decorators = getattr(found, "decorator_list", ())
    own = [one for one in decorators if ast.unparse(one).partition("(")[0].endswith("tf.function")]
    if len(own) != 1 or function.file is None or own[0].lineno != own[0].end_lineno:
        return ""
    name, blanks = function.name.rpartition(".")[2], " " * (own[0].col_offset - 1)  # before the @
    line = f"{blanks}# no tf.function: {name} {why}"
    return pastes.written(Edit(function.file, own[0].lineno, own[0].lineno, (line,)))
