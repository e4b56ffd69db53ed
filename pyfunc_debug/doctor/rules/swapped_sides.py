"""Boxes that are divided by the other side of their image, and crops that are drawn by it: x by the height."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.run_functions import Ran, functions_that_ran
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding

NAMES = ("swapped-sides",)
_X = re.compile(r"x_?(?:min|max|c|center|1|2|0)?|c_?x|center_x|x_?mid", re.I)
_Y = re.compile(r"y_?(?:min|max|c|center|1|2|0)?|c_?y|center_y|y_?mid", re.I)
_HEIGHT = re.compile(r"(?:im(?:age|g)?_?)?(?:h|height|rows)", re.I)
_WIDTH = re.compile(r"(?:im(?:age|g)?_?)?(?:w|width|cols|columns)", re.I)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function."""
    for ran in functions_that_ran(facts):
        sides = _sides(ran.function)
        if (crop := _crop(facts, ran, sides)) is not None:
            yield crop
            continue
        found = [one for one in _divisions(ran.function) if _axis(one.left) and _side(sides, one.right)]
        swapped = [one for one in found if _axis(one.left) != _side(sides, one.right)]
        if not swapped or len(swapped) < len(found) or len({_axis(one.left) for one in swapped}) < 2:
            continue
        own = pastes.source(facts, ran.file)
        by_x = next(one for one in swapped if _axis(one.left) == "x")
        other = next(one for one in swapped if _axis(one.left) == "y")
        text = {"x": own.text(other.right), "y": own.text(by_x.right)}
        pieces: dict[ast.expr, str] = {one.right: text[_axis(one.left)] for one in swapped}
        made = sides.get(ast.unparse(by_x.right))
        line = by_x.lineno
        where = f" (line {made[1]})" if made is not None else ""
        lines = dict.fromkeys([*([made[1]] if made is not None else []), line])
        yield Finding(
            NAMES[0], "error", ran.group[0].id if ran.group else None, (),
            f"{own.text(by_x)} divides a place in a row by the height of the image{where}, and {own.text(other)} one "
            "in a column by its width: in images that are not square the boxes land elsewhere",
            pastes.all_replaced(facts, ran.file, pieces), ran.file, line, several(one.id for one in ran.group),
            tuple(f"line {one}: {facts.line(ran.file, one)}" for one in lines),
            confidence="likely",
        )  # fmt: skip


def _crop(facts: Facts, ran: Ran, sides: dict[str, tuple[str, int]]) -> Finding | None:
    """`top = randint(0, w - 16)` and `left = randint(0, h - 16)` for `x[top:top + 16, left:left + 16]`."""
    own = pastes.source(facts, ran.file)
    for one in code.own_nodes(ran.function):
        if not isinstance(one, ast.Subscript) or not isinstance(one.slice, ast.Tuple) or len(one.slice.elts) < 2:
            continue
        ends = [part.lower for part in one.slice.elts[:2] if isinstance(part, ast.Slice)]
        names = [end.id for end in ends if isinstance(end, ast.Name)]
        made = [pastes.assigned(ran.function, name) for name in names]
        if len(names) < 2 or any(len(each) != 1 or not isinstance(each[0], ast.Call) for each in made):
            continue
        drawn = [each[0] for each in made]
        asked = [[part for part in pastes.walk(each, ast.expr) if _side(sides, part)] for each in drawn]
        if [[_side(sides, part) for part in each] for each in asked] != [["x"], ["y"]]:
            continue
        texts = [own.text(each[0]) for each in asked]
        pieces = {asked[0][0]: texts[1], asked[1][0]: texts[0]}
        return Finding(
            NAMES[0], "error", ran.group[0].id if ran.group else None, (),
            f"{names[0]} is a row, and is drawn by the width ({texts[0]}); {names[1]} is a column, and is drawn by the "
            f"height ({texts[1]}): of images that are not square {own.text(one)} takes less, or never the rest",
            pastes.all_replaced(facts, ran.file, pieces), ran.file, drawn[0].lineno,
            several(each.id for each in ran.group),
            (f"line {one.lineno}: {facts.line(ran.file, one.lineno)}",), confidence="likely",
        )  # fmt: skip
    return None


def _divisions(function: Definition) -> list[ast.BinOp]:
    return [one for one in code.own_nodes(function) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div)]


def _axis(node: ast.expr) -> str:
    """Of which axis a coordinate is: "x" or "y" of a name of a coordinate; "" for others."""
    name = ast.unparse(node).rpartition(".")[2] if isinstance(node, (ast.Name, ast.Attribute)) else ""
    return "x" if _X.fullmatch(name) else "y" if _Y.fullmatch(name) else ""


def _sides(function: Definition) -> dict[str, tuple[str, int]]:
    """What names of a function are of an image, by where they come from: "x" for its width, "y" for its height."""
    found: dict[str, tuple[str, int]] = {}
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Assign) or len(one.targets) != 1:
            continue
        target, text = one.targets[0], ast.unparse(one.value)
        if isinstance(target, ast.Tuple):
            names = [ast.unparse(name) for name in target.elts]
            order = _order(one.value, len(names))
            found |= {name: (axis, one.lineno) for name, axis in zip(names, order)}
        elif re.fullmatch(r"\w+\.shape\[[01]\]", text):
            found[ast.unparse(target)] = ("yx"[int(text[-2])], one.lineno)
    return found


def _order(value: ast.expr, count: int) -> str:
    """Which side stands where: `.shape[:2]` and `.shape` of three have rows first, `.size` of PIL columns."""
    if isinstance(value, ast.Subscript) and ast.unparse(value.slice) == ":2" and dotted(value.value).endswith(".shape"):
        return "yx"
    if dotted(value).endswith(".shape") and count == 3:
        return "yx"
    return "xy" if dotted(value).endswith(".size") and count == 2 else ""


def _side(sides: dict[str, tuple[str, int]], node: ast.expr) -> str:
    """Of which axis a side is: "x" for a width, "y" for a height, by where it comes from, or else by its name."""
    text = ast.unparse(node)
    if text in sides:
        return sides[text][0]
    if re.fullmatch(r"\w+\.shape\[[01]\]", text):
        return "yx"[int(text[-2])]
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return ""
    name = text.rpartition(".")[2]
    return "y" if _HEIGHT.fullmatch(name) else "x" if _WIDTH.fullmatch(name) else ""
