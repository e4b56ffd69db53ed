"""What `tf.debugging.enable_check_numerics()` stopped at: the op, its line, and why it gave NaN or an infinity."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, root_is

RULE = "nan-loss"
_SAID = re.compile(r'!!! Detected Infinity or NaN in output \d+ of (eagerly-executing|graph) op "(\w+)"')
_VALUES = re.compile(r": Tensor had ([^\n\[]*?) values")
_FRAME = re.compile(r"^ +\+ (\S+) \(L(\d+)\) \S+$", re.MULTILINE)
_GIVEN = re.compile(r'^ +(?:Input tensor|\d+): (?:Tensor\("([^"]+)", |tf\.Tensor\(.*?)shape=(\([\d, None]*\))', re.M)
_STACK = "Stack trace of op's creation"
_GRADIENT = re.compile(r"\{\{node (?:\S*/)?gradient(?:s|_tape)/")
_WHY = {
    ("Log", True): "the logarithm of 0 is infinite", ("Log", False): "the logarithm of a number below 0 is NaN",
    ("Log1p", True): "it is infinite at -1", ("Log1p", False): "it is NaN below -1",
    ("RealDiv", True): "it divides by 0", ("RealDiv", False): "0 / 0 is NaN",
    ("Mean", False): "the mean of no elements is NaN",
    ("Sqrt", False): "the root of a number below 0 is NaN", ("Rsqrt", True): "1 / sqrt(0) is infinite",
    ("Rsqrt", False): "the root of a number below 0 is NaN", ("Reciprocal", True): "1 / 0 is infinite",
    ("Exp", True): "exp of more than 88 is infinite in float32",
}  # fmt: skip
"""By op, and by whether it gave an infinity: what makes it from finite numbers."""
_COMES = {
    "Placeholder": "what is fed for it", "PlaceholderWithDefault": "what is fed for it",
    "IteratorGetNext": "an element of the dataset", "PyFunc": "what its body returned",
    "PyFuncStateless": "what its body returned", "EagerPyFunc": "what its body returned",
}  # fmt: skip
"""Ops that compute nothing: the numbers came so."""
_MOVES = {"BroadcastTo", "Cast", "ConcatV2", "ExpandDims", "GatherNd", "GatherV2", "Identity", "Pack", "Pad", "PadV2",
          "Reshape", "ReverseV2", "Slice", "Squeeze", "StridedSlice", "Tile", "Transpose", "Unpack"}  # fmt: skip
"""Ops that give the numbers that they get: the first of them to be checked got what no op computed."""
_IN_DATA = "Look for it in the data, by np.isfinite(x).all() of each, and leave such elements out."
_ADVICE = {
    "Log": "Keep what it is given above 0: tf.maximum(x, 1e-7).",
    "RealDiv": "Write tf.math.divide_no_nan(a, b), which gives 0 there, or keep b away from 0.",
    "Mean": "Leave out elements for which there is nothing to average.",
}
_LOOK = "Print what the line is given there with tf.print, and keep it away from such values."


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an op that is checked gave NaN or an infinity."""
    text = str(situation.error)
    said = _SAID.search(text) or _SAID.search(situation.message)
    if said is None:
        return None
    text, eager = said.string, said[1] == "eagerly-executing"
    spot = situation.last if eager else _place(situation, text)
    values = _VALUES.search(text)
    if spot is None or values is None:
        return None
    op, what = said[2], values[1]
    infinite, given = "Inf" in what, _given(text)
    cause = f"{op} in this line is the first checked op that gave {what}{given and f': it was given {given}'}."
    if _GRADIENT.search(text):
        cause = f"{op} in the gradient of this line is the first checked op that gave {what}."
        return Explanation(RULE, spot.file, spot.line, cause, None, _LOOK)
    if op in _COMES:
        return Explanation(RULE, spot.file, spot.line, f"{_COMES[op]} has {what}.", None, _IN_DATA)
    if op in _MOVES:
        cause = (
            f"{op} in this line is the first checked op that has {what}, and it only moves numbers: they came so, from "
            "what is fed, read from a dataset, or returned by a body."
        )
        return Explanation(RULE, spot.file, spot.line, cause, None, _IN_DATA)
    known = [sizes for _, sizes in _GIVEN.findall(text)[:1]]
    why = _WHY.get((op, infinite), "")
    if op == "Mean" and known and "None" not in known[0] and not re.search(r"\b0\b", known[0]):
        why = ""  # it has elements
    if not why:
        return Explanation(RULE, spot.file, spot.line, cause, None, _LOOK)
    cause += f" {why[0].upper()}{why[1:]}."
    edit = _edit(spot, op, infinite)
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else _ADVICE.get(op, _LOOK), "likely")


def _given(text: str) -> str:
    """What the op was given first: `logistic_loss, (None,)`."""
    found = _GIVEN.search(text)
    if found is None:
        return ""
    sizes = "no elements" if re.search(r"\b0\b", found[2]) else "one number" if found[2] == "()" else found[2]
    name = (found[1] or "").partition(":")[0]
    return f"{name}, {sizes}" if name else f"numbers, {sizes}" if sizes.startswith("(") else sizes


def _place(situation: Situation, text: str) -> Spot | None:
    """The user's line that made an op of a graph, by the stack that TensorFlow's text has of it: paths may be cut."""
    stack = text.partition(_STACK)[2]
    for written, line in reversed(_FRAME.findall(stack)):
        path = written.removeprefix("...")
        for file, source in situation.sources():
            if (file.endswith(path) if path != written else file == path) and source.statement(int(line)) is not None:
                module = next((one.module for one in situation.spots if one.file == file), {})
                return Spot(file, int(line), {}, module, "")
    return None


def _edit(spot: Spot, op: str, infinite: bool) -> Edit | None:
    """The line with a bound for the one expression in it that is that op."""
    statement, source = spot.statement, spot.source
    if statement is None or isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return None
    tf = alias(spot, "tensorflow")
    if op == "Log" and infinite:
        found = [one for one in _called(statement, spot, "log") if len(one.args) == 1]
        pieces: dict[ast.expr, str] = {one.args[0]: f"{tf}.maximum({source.text(one.args[0])}, 1e-7)" for one in found}
        return edit_of(spot.file, source.replaced(pieces)) if len(found) == 1 else None
    if op == "RealDiv":
        every = [one for one in ast.walk(statement) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div)]
        if len(every) != 1 or isinstance(every[0].right, ast.Constant):
            return None
        left, right = source.text(every[0].left), source.text(every[0].right)
        simple = isinstance(every[0].left, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        text = f"{tf}.math.divide_no_nan({left}, {right})"
        return edit_of(spot.file, source.replaced({every[0]: text})) if simple else None
    means = _called(statement, spot, "reduce_mean") if op == "Mean" else []
    if len(means) != 1 or len(means[0].args) != 1 or means[0].keywords:
        return None
    return _of_none(spot, statement, source, means[0], tf)


def _called(statement: ast.stmt, spot: Spot, name: str) -> list[ast.Call]:
    return [
        one for one in calls(statement)
        if dotted(one.func).rpartition(".")[2] == name and root_is(one.func, spot, "tensorflow")
    ]  # fmt: skip


def _of_none(spot: Spot, statement: ast.stmt, source: Source, mean: ast.Call, tf: str) -> Edit | None:
    """A mean that is 0 of no elements: the sum by their number."""
    given = mean.args[0]
    plain = isinstance(given, ast.Name)
    name = source.text(given) if plain else source.unused_name("values")
    text = f"{tf}.math.divide_no_nan({tf}.reduce_sum({name}), {tf}.cast({tf}.size({name}), {name}.dtype))"
    placed = source.replaced({mean: text})
    if placed is None or placed[0] != statement.lineno or (not plain and not isinstance(statement, ast.Assign)):
        return None
    first, last, line = placed
    above = () if plain else (f"{indent_of(source.lines[first - 1])}{name} = {source.text(given)}",)
    return Edit(spot.file, first, last, (*above, *line.split("\n")))
