"""What a TensorArray does not take: more places than its size, another dtype, a second read."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import KERNELS
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, method_calls

RULE = "structure"
_BEYOND = re.compile(
    r"Trying to modify element (\d+) in a list with (\d+) elements"
    r"|Tried to write to index (\d+) but array is not resizeable and size is:? (\d+)"
)
_OTHER = re.compile(r"Invalid data types; op elements (\w+) but list elements (\w+)")
_AGAIN = re.compile(r"Could not read index (\d+) twice because it was cleared")
_WHOLE = re.compile(r"u?int\d+")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one change of the line that makes the array, or writes to it, makes it take that."""
    if (said := _BEYOND.search(situation.message)) is not None:
        index, size = (int(one) for one in said.groups() if one is not None)
        return each(situation, _beyond, index, size)
    if (said := _OTHER.search(situation.message)) is not None:
        got, wanted = (KERNELS.get(one, one) for one in said.groups())
        return each(situation, _other, got, wanted)
    if (said := _AGAIN.search(situation.message)) is not None:
        return each(situation, _again, int(said[1]))
    return None


def _made(place: Refused, name: str) -> ast.Call | None:
    """The one call of TensorArray whose result a name gets."""
    found = [
        one.value for one in ast.walk(place.spot.source.tree)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and name in map(dotted, one.targets)
        and dotted(one.value.func).rpartition(".")[2] == "TensorArray"
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _beyond(place: Refused, index: int, size: int) -> Explanation | None:
    """A write behind the end of an array that does not grow."""
    written = method_calls(place.statement, "write")
    owner = dotted(written[0].func.value) if len(written) == 1 else ""  # type: ignore[attr-defined]
    made = _made(place, owner) if owner else None
    if made is None or any(one.arg in ("dynamic_size", None) for one in made.keywords) or len(made.args) > 2:
        return None
    source = place.spot.source
    cause = f"{owner} was made with {size} places, and place {index} is written. With dynamic_size it grows."
    edit = edit_of(place.spot.file, source.replaced({made: source.with_argument(made, "dynamic_size=True")}))
    return Explanation(RULE, place.spot.file, made.lineno, cause, edit, "", "likely")


def _other(place: Refused, got: str, wanted: str) -> Explanation | None:
    """`ta.write(i, i)` of a whole number in an array of floats."""
    written = method_calls(place.statement, "write")
    call = written[0] if len(written) == 1 and len(written[0].args) == 2 else None
    made = _made(place, dotted(call.func.value)) if call is not None else None  # type: ignore[attr-defined]
    if call is None or made is None or not made.args:
        return None
    source, tf = place.spot.source, alias(place.spot, "tensorflow")
    owner, text = dotted(call.func.value), source.text(call.args[1])  # type: ignore[attr-defined]
    cause = f"{owner} holds {wanted} (line {made.lineno}), and {text} is {got}: a TensorArray converts nothing."
    if _WHOLE.fullmatch(wanted) and "float" in got and dotted(made.args[0]).endswith(wanted):
        cause += f" As {got} it loses nothing."
        edit = edit_of(place.spot.file, source.replaced({made.args[0]: f"{tf}.{got}"}))
        return Explanation(RULE, place.spot.file, made.lineno, cause, edit, "", "likely")
    return place.told(cause, {call.args[1]: f"{tf}.cast({text}, {tf}.{wanted})"}, measured=True)


def _again(place: Refused, index: int) -> Explanation | None:
    """A second read of one place, in eager code."""
    owners = {dotted(one.func.value) for one in calls(place.statement) if isinstance(one.func, ast.Attribute)
              and one.func.attr in ("read", "stack", "concat", "gather")}  # fmt: skip
    found = [(owner, made) for owner in owners if owner and (made := _made(place, owner)) is not None]
    if len(found) != 1 or any(one.arg in ("clear_after_read", None) for one in found[0][1].keywords):
        return None
    owner, made = found[0]
    cause = f"{owner} lets go of a value as it is read, also by stack(): place {index} was read before."
    source = place.spot.source
    edit = edit_of(place.spot.file, source.replaced({made: source.with_argument(made, "clear_after_read=False")}))
    return Explanation(RULE, place.spot.file, made.lineno, f"{cause} With clear_after_read=False it keeps them.", edit)
