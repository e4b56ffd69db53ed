"""An attribute that the class below sets in its `__init__`, which the class itself does not call."""

from __future__ import annotations

import ast
import re
from types import CodeType
from typing import Any

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, first_statement
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import definition_of, dotted, indent_of, parameters, read
from pyfunc_debug.doctor.failures.reading.symbols import only_keeps

_SAID = re.compile(r"'(\w+)' object has no attribute '(\w+)'")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a body or a generator asked an object of the user's for such an attribute."""
    spot, statement = situation.last, situation.statement
    said = _SAID.search(situation.message) if situation.kind == "AttributeError" else None
    owner: Any = getattr(situation.inner, "obj", None)
    if spot is None or statement is None or said is None or not situation.data or owner is None:
        return None
    kinds = [one for one in type(owner).__mro__ if one is not object and "__init__" in vars(one)]
    if len(kinds) < 2 or not only_keeps(owner) or type(owner).__name__ != said[1]:
        return None
    made, *others = kinds
    own = definition_of(_init(made))
    defined = [found for one in others if (found := definition_of(_init(one))) is not None]
    base = next((function for _, function in defined if _sets(function, said[2])), None)
    if own is None or base is None or _calls_super(own[1]):
        return None
    file, function = own
    has = parameters(function)
    needed = parameters(base)
    defaults = len(base.args.defaults)
    taken = [one for place, one in enumerate(needed) if one in has or place < len(needed) - defaults]
    cause = (
        f"{said[2]} is set in the __init__ of {others[0].__name__}, and that of {made.__name__} does not call it: "
        "super().__init__ does."
    )
    if any(one not in has for one in taken):
        missing = ", ".join(one for one in taken if one not in has)
        advice = f"Write super().__init__({', '.join(needed)}) as its first line; it needs {missing}."
        return Explanation(RULE, file, function.lineno, cause, None, advice)
    first = first_statement(function)
    blanks = indent_of(read(file).lines[first - 1])
    given = ", ".join(one if needed.index(one) == place else f"{one}={one}" for place, one in enumerate(taken))
    return Explanation(
        RULE, file, function.lineno, cause, Edit(file, first, first - 1, (f"{blanks}super().__init__({given})",))
    )


def _init(kind: type) -> CodeType | None:
    """The code of a class's own `__init__`; None of one that is written in C."""
    return getattr(vars(kind)["__init__"], "__code__", None)


def _sets(function: ast.FunctionDef, name: str) -> bool:
    return any(
        isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and dotted(one) == f"self.{name}"
        for one in own_nodes(function)
    )


def _calls_super(function: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "__init__" for one in own_nodes(function))
