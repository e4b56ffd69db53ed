"""An image that `cv2.imread` did not read: it gives None, and a later line fails on that."""

from __future__ import annotations

import ast
import os
import re
from contextlib import suppress

from pyfunc_debug.doctor.failures.bodies.file_names import in_function, text_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "broken-image"
_NONE = re.compile(r"NoneType|[!_]?_?src\.empty\(\)|!ssize\.empty\(\)|src is not a numpy array|_img\.empty\(\)")
_LOOPS = (ast.For, ast.While)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a variable of the function that failed is the None of an image that was not read."""
    if not _NONE.search(situation.message):
        return None
    for spot in reversed(situation.spots):
        failing = spot.statement
        read = names(failing) if failing is not None else []
        for call in in_function(spot):
            statement = spot.source.parent(call)
            target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
            if not dotted(call.func).endswith("imread") or not isinstance(target, ast.Name) or not call.args:
                continue
            if (
                target.id not in read
                or target.id not in spot.variables
                or spot.variables[target.id] is not None
                or call.lineno > spot.line
            ):
                continue
            name = text_of(call.args[0], spot)
            if name is not None:
                return _told(spot, call, target.id, name)
    return None


def _told(spot: Spot, call: ast.Call, image: str, name: str) -> Explanation:
    read = f"`{spot.source.text(call.func)}` gives None then, and {image} is that."
    if os.path.isfile(name):
        cause = f"OpenCV reads no image from {name}, which is there: {read}"
        edit = _left_out(spot, call, image)
        cause += " The loop can go on with the next." if edit is not None else ""
        advice = "" if edit else f"Leave {os.path.basename(name)} out, or put an image there."
        return Explanation(RULE, spot.file, call.lineno, cause, edit, advice, "likely" if edit else "measured")
    cause = f"There is no file {name}{'' if os.path.isabs(name) else f' in {os.getcwd()}'}: {read}"
    folder = _folder(spot, name)
    if folder is not None:
        cause = f"There is no file {name}: os.listdir gives names without their folder. {read}"
        new = f"os.path.join({folder}, {spot.source.text(call.args[0])})"
        edit = edit_of(spot.file, spot.source.replaced({call.args[0]: new}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit)
    advice = "Give the path to it, from the folder the program runs in."
    if (other := _other_ending(name)) is not None:
        advice = f"{other} is there: its name has another ending."
    return Explanation(RULE, spot.file, call.lineno, cause, None, advice)


def _other_ending(name: str) -> str | None:
    """The one file beside a name that has its stem: `2.png` for `2.jpg`."""
    folder, last = os.path.split(name)
    stem = os.path.splitext(last)[0]
    with suppress(OSError):
        found = [one for one in os.listdir(folder or ".") if os.path.splitext(one)[0] == stem]
        return found[0] if len(found) == 1 else None
    return None


def _left_out(spot: Spot, call: ast.Call, image: str) -> Edit | None:
    """`if image is None: continue` below the line, in a loop of the same function."""
    statement = spot.source.statement(call.lineno)
    around = spot.source.around(statement) if statement is not None else ()
    loop = next((one for one in around if isinstance(one, (*_LOOPS, ast.FunctionDef))), None)
    if statement is None or not isinstance(loop, _LOOPS) or statement not in loop.body:
        return None
    first, last = spot.source.span(statement)
    lines = spot.source.lines[first - 1 : last]
    blanks = indent_of(lines[0])
    return Edit(spot.file, first, last, (*lines, f"{blanks}if {image} is None:", f"{blanks}    continue"))


def _folder(spot: Spot, name: str) -> str | None:
    """The folder that the file lists, in which there is a file of this name."""
    if os.path.dirname(name):
        return None
    listed = [one.args[0] for one in calls(spot.source.tree) if dotted(one.func).endswith("listdir") and one.args]
    found = [
        one
        for one in listed
        if isinstance(path := computed(one, spot), str) and os.path.isfile(os.path.join(path, name))
    ]
    return spot.source.text(found[0]) if found else None
