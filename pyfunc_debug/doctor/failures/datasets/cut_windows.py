"""Windows past the end of a series: the last slices `series[i:i + 20]` are shorter, and padding would make up rows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.nodes import user_generators, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, names, read
from pyfunc_debug.doctor.failures.reading.symbols import lookup

RULE = "ragged-batch"
_BATCHED = re.compile(r"First element had shape \[([\d,]*)\] and element \d+ had shape \[([\d,]*)\]")
_ADDED = re.compile(r"\[tensor\]: \[([\d,]*)\], \[batch\]: \[([\d,]*)\]")
_YIELDED = re.compile(r"yielded an element of shape \(([\d, ]*)\) where an element of shape \(([\d, ]*)\) was expected")
_RAGGED = re.compile(r"inhomogeneous shape|all input arrays must have the same shape")
_TABLES = ("iloc", "values")
_DEEP = 4


@dataclass(frozen=True)
class _Window:
    """A slice: what it is of, and how far behind the index it ends."""

    of: str
    rest: str
    index: str


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if elements get shorter as the indices go on to where no whole window is left."""
    message = situation.message
    if _RAGGED.search(message):
        spot = situation.last
        if spot is None or spot.function is None or not _ends_short(spot):
            return None
        return _of_loop(spot.file, spot.source, spot.function, spot)
    if not _is_shorter(message):
        return None
    for node in user_generators(situation):
        function = node.function()
        if function is not None and node.file is not None:
            spot = next((one for one in situation.spots if one.file == node.file), None)
            return _of_loop(node.file, read(node.file), function, spot)
    for node in user_nodes(situation):
        function = node.function()
        if function is not None and node.file is not None and node.site is not None and node.site[0] == node.file:
            return _of_body(situation, node.file, read(node.file), function)
    return None


def _is_shorter(message: str) -> bool:
    """Whether the element that was refused has less of one axis than those before."""
    if (said := _BATCHED.search(message)) is not None:
        before, now = said[1], said[2]
    elif (said := _ADDED.search(message) or _YIELDED.search(message)) is not None:
        now, before = said[1], said[2]
    else:
        return False
    sizes = [[int(one) for one in text.replace(" ", "").split(",") if one] for text in (now, before)]
    unlike = [one < other for one, other in zip(*sizes) if one != other]
    return len(sizes[0]) == len(sizes[1]) and unlike == [True]


def _ends_short(spot: Spot) -> bool:
    """Whether the line makes an array of a list whose last elements get shorter, and are as long as each other else."""
    for one in ast.walk(spot.statement) if spot.statement is not None else ():
        value = lookup(one, spot) if isinstance(one, ast.Name) else None
        if type(value) is not list or len(value) < 3 or not all(hasattr(part, "__len__") for part in value):
            continue
        lengths = [len(part) for part in value]
        cut = [size for size in lengths if size < lengths[0]]
        if cut and max(lengths) == lengths[0] and lengths[-len(cut) :] == sorted(cut, reverse=True):
            return True
    return False


def _of_loop(file: str, source: Source, function: Function, spot: Spot | None) -> Explanation | None:
    """`for i in range(len(series) - n_in):` around the slices."""
    found: list[Explanation] = []
    for loop in (one for one in ast.walk(function) if isinstance(one, (ast.For, ast.comprehension))):
        counts = loop.iter
        ranged = isinstance(counts, ast.Call) and dotted(counts.func).rpartition(".")[2] in ("range", "arange")
        if not isinstance(loop.target, ast.Name) or not isinstance(counts, ast.Call) or not ranged:
            continue
        window = _farthest(source, function, loop.target.id, spot)
        told = _told(file, source, window, counts) if window is not None else None
        found += [told] if told is not None else []
    return found[0] if len(found) == 1 else None


def _of_body(situation: Situation, file: str, source: Source, function: Function) -> Explanation | None:
    """`Dataset.range(len(series) - n_in)` in front of a body whose parameter is the index."""
    given = [one.arg for one in function.args.args if one.arg != "self"]
    spot = next((one for one in situation.spots if one.file == file), None)
    window = _farthest(source, function, given[0], spot) if len(given) == 1 else None
    if window is None or not dotted(_parsed(window.of)):
        return None
    made = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    if made & {*names(_parsed(window.of)), *names(_parsed(window.rest))}:
        return None
    ranges = [
        one for one in ast.walk(source.tree) if isinstance(one, ast.Call)
        and dotted(one.func).rpartition(".")[2] in ("range", "arange") and f"len({window.of})" in source.text(one)
    ]  # fmt: skip
    return _told(file, source, window, ranges[0]) if len(ranges) == 1 else None


def _told(file: str, source: Source, window: _Window, counts: ast.Call) -> Explanation | None:
    """The range with the end behind which no whole window begins."""
    if counts.keywords or not 1 <= len(counts.args) <= 3 or window.of not in source.text(counts):
        return None
    step = source.text(counts.args[2]) if len(counts.args) == 3 else ""
    stop = counts.args[0] if len(counts.args) == 1 else counts.args[1]
    rest = window.rest if _is_atom(window.rest) else f"({window.rest})"
    new = f"len({window.of}) - {rest} + 1"
    if step == window.rest or source.text(stop) == new:
        return None  # batches, whose last one is smaller
    cause = (
        f"The last windows go past the end of {window.of}: a slice that ends at {window.index} + {window.rest} is cut "
        "there, and gets shorter. Padding would make up rows; the range ends too late."
    )
    edit = edit_of(file, source.replaced({stop: new}))
    return Explanation(RULE, file, counts.lineno, cause, edit, "" if edit else f"End it at {new}.", "likely")


def _farthest(source: Source, function: Function, index: str, spot: Spot | None) -> _Window | None:
    """The slice of a series that ends the farthest behind the index."""
    found = list(dict.fromkeys(_windows(source, function, index)))
    if len({one.of for one in found}) != 1:
        return None
    sizes = [evaluation.computed(_parsed(one.rest), spot) if spot is not None else None for one in found]
    if all(type(one) is int for one in sizes):
        return max(zip(sizes, found), key=lambda pair: int(pair[0] or 0))[1]
    longest = max(found, key=lambda one: len(one.rest))
    return longest if all(longest.rest.startswith(one.rest) for one in found) else None


def _windows(source: Source, function: Function, index: str) -> Iterator[_Window]:
    for one in ast.walk(function):
        if not isinstance(one, ast.Subscript) or not isinstance(one.ctx, ast.Load):
            continue
        part = one.slice.elts[0] if isinstance(one.slice, ast.Tuple) and one.slice.elts else one.slice
        if not isinstance(part, ast.Slice) or part.lower is None or part.upper is None or part.step is not None:
            continue
        begin, rest = (_behind(source, function, node, index, 0) for node in (part.lower, part.upper))
        owner = one.value.value if isinstance(one.value, ast.Attribute) and one.value.attr in _TABLES else one.value
        if begin is not None and rest and dotted(owner):
            yield _Window(dotted(owner), rest, index)


def _behind(source: Source, function: Function, node: ast.expr, index: str, deep: int) -> str | None:
    """`n_in + n_out` of `i + n_in + n_out`; "" of the index itself, None of what does not begin with it."""
    if isinstance(node, ast.Name):
        if node.id == index:
            return ""
        made = [
            one.value for one in ast.walk(function) if isinstance(one, ast.Assign)
            and [dotted(target) for target in one.targets] == [node.id]
        ]  # fmt: skip
        return _behind(source, function, made[0], index, deep + 1) if len(made) == 1 and deep < _DEEP else None
    if isinstance(node, ast.Call) and dotted(node.func) == "int" and len(node.args) == 1:
        return _behind(source, function, node.args[0], index, deep + 1) if deep < _DEEP else None
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
        return None
    left, sign = _behind(source, function, node.left, index, deep), "+" if isinstance(node.op, ast.Add) else "-"
    if left is not None:
        return (
            f"{left} {sign} {source.operand(node.right)}" if left else source.text(node.right) * (sign == "+") or None
        )
    right = _behind(source, function, node.right, index, deep) if sign == "+" else None
    return f"{right} + {source.operand(node.left)}".removeprefix(" + ") if right is not None else None


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _is_atom(text: str) -> bool:
    return not isinstance(_parsed(text), (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.BoolOp))
