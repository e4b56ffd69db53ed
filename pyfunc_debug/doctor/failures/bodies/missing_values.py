"""A call of the user's own function with fewer or more values than it takes: `scale(x)` of `def scale(x, by)`."""

from __future__ import annotations

import ast
import re
from types import CodeType

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE, in_place
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.callables import code_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import begins, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

_FEW = re.compile(r"([\w.<>]+)\(\) missing (\d+) required positional arguments?: (.*)$")
_MANY = re.compile(r"([\w.<>]+)\(\) takes (?:from \d+ to )?(\d+) positional arguments? but (\d+) (?:was|were) given")
_NAMES = re.compile(r"'(\w+)'")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line of a body or a generator makes such a call."""
    spot, statement = situation.last, situation.statement
    few, many = _FEW.search(situation.message), _MANY.search(situation.message)
    said = few or many
    if spot is None or statement is None or said is None or not situation.data or situation.kind != "TypeError":
        return None
    found = [one for one in calls(statement) if (code := code_of(one, spot)) is not None and _called(code, said[1])]
    if len(found) != 1 or any(isinstance(one, ast.Starred) for one in found[0].args):
        return None
    call, code = found[0], code_of(found[0], spot)
    assert code is not None
    file, line = begins(code)
    taken = list(code.co_varnames[: code.co_argcount])
    taken = taken[1:] if taken[:1] == ["self"] else taken
    text = short(spot.source.text(call), 40)
    where = f"line {line}" if file == spot.file else "its file"
    listed = ", ".join(taken) or "nothing"
    if few is None:
        cause = f"`{text}` gives {len(call.args)} values, and {dotted(call.func)} ({where}) takes {listed}."
        return Explanation(
            RULE, spot.file, spot.line, cause, None, f"Give it {len(taken)}, or a parameter more in {where}."
        )
    missing = _NAMES.findall(few[3])
    cause = f"`{text}` gives {_count(call)}, and {dotted(call.func)} ({where}) takes {listed}: "
    cause += f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing."
    if all(_is_value(spot, one) for one in missing) and not call.keywords:
        new = spot.source.with_argument(call, ", ".join(f"{one}={one}" for one in missing))
        cause += (
            f" {'A name' if len(missing) == 1 else 'Names'} of that kind {'is' if len(missing) == 1 else 'are'} there."
        )
        return Explanation(RULE, spot.file, spot.line, cause, in_place(spot, {call: new}), "", "likely")
    one = missing[0]
    advice = f"Give it here, {one}=..., or write a default for it in {where}: {one}=..."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _count(call: ast.Call) -> str:
    count = len(call.args) + len(call.keywords)
    return f"{count} value{'s' * (count != 1)}" if count else "no value"


def _is_value(spot: Spot, name: str) -> bool:
    """Whether a line may read a name that stands for a value, and for no function or module."""
    value = spot.value(name)
    return value is not None and not callable(value) and type(value).__name__ != "module"


def _called(code: CodeType, said: str) -> bool:
    return said.rpartition(".")[2] == code.co_name
