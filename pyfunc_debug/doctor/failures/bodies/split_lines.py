"""A line of a file that has fewer or more fields than are taken of it: an empty one, a comma in a caption."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import origins
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, bytes_of, calls

_FEW = re.compile(r"not enough values to unpack \(expected (\d+), got (\d+)\)")
_MANY = re.compile(r"too many values to unpack \(expected (\d+)(?:, got \d+)?\)")
_CLEANS = {"strip", "rstrip", "lstrip", "decode", "numpy", "lower", "replace"}
_NUMBERS = {"int", "float"}
_TEXTS = re.compile(r"caption|text|sentence|transcri|comment|message|title|descri|utterance|review|question|answer")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line takes the fields of a text that was split, and these are too few or many."""
    spot, statement = situation.last, situation.statement
    few, many = _FEW.match(situation.message), _MANY.match(situation.message)
    lists = situation.kind == "IndexError" and situation.message == "list index out of range"
    if spot is None or statement is None or not situation.data or not (few or many or lists):
        return None
    found = dict(_asked(statement, spot)) if lists else dict(_unpacked(statement, spot, few or many))
    if len(found) != 1:
        return None
    ((call, wanted),) = found.items()
    base = _base(call)
    text = origins.kept(base, spot)
    text = text if isinstance(text, str) else bytes_of(text)
    count = origins.valued(call, spot)
    if text is None or type(count) is not list or (len(count) <= wanted if many else len(count) >= wanted):
        return None
    name = short(spot.source.text(base), 30)
    if not text.strip():
        return _empty(situation, spot, name, text, wanted)
    split = spot.source.text(call.func).rpartition(".")[2] + spot.source.text(call).removeprefix(
        spot.source.text(call.func)
    )
    fields = f"{len(count)} field{'s' * (len(count) != 1)}"
    cause = f"{name} is {short(repr(text), 60)}: {split} gives {fields} of it, and line {spot.line} takes {wanted}."
    if many:
        return _rest(spot, statement, call, cause, wanted)
    other = _other(text, wanted)
    cause += f" By {other!r} it has {wanted}." if other and few else ""
    advice = f"Correct that line of the file, or leave it out: it has fewer than {wanted} fields."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _asked(statement: ast.stmt, spot: Spot) -> Iterator[tuple[ast.Call, int]]:
    """The split whose list has no such place, and how many fields that takes: of `parts[1]` two."""
    for one in ast.walk(statement):
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load):
            place, call = origins.number(origins.valued(one.slice, spot)), _split(one.value, spot)
            fields = origins.valued(call, spot) if call is not None else None
            if call is None or type(place) is not int or type(fields) is not list:
                continue
            if not -len(fields) <= place < len(fields):
                yield call, place + 1 if place >= 0 else -place


def _unpacked(statement: ast.stmt, spot: Spot, said: re.Match[str] | None) -> Iterator[tuple[ast.Call, int]]:
    """The split whose fields are given to several names."""
    value = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if value is None or said is None or not isinstance(statement.targets[0], (ast.Tuple, ast.List)):  # type: ignore[attr-defined]
        return
    if isinstance(value, ast.Call) and dotted(value.func) == "map" and len(value.args) == 2:
        value = value.args[1]
    call = _split(value, spot)
    if call is not None and len(statement.targets[0].elts) == int(said[1]):  # type: ignore[attr-defined]
        yield call, int(said[1])


def _split(node: ast.expr, spot: Spot) -> ast.Call | None:
    """`line.strip().split(",")`, also by a name that was assigned it."""
    made = origins.origin(node, spot)
    node = made.made if made is not None else node
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split"
    return node if named and len(node.args) < 2 and not node.keywords else None  # type: ignore[attr-defined, return-value]


def _base(call: ast.Call) -> ast.expr:
    """The text that is split, as it was before spaces were taken off."""
    node: ast.expr = call.func.value  # type: ignore[attr-defined]
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CLEANS:
        node = node.func.value
    return node


def _other(text: str | bytes, wanted: int) -> str:
    """A separator by which a text has as many fields as are taken."""
    said = text if isinstance(text, str) else text.decode("utf-8", "replace")
    fits = [one for one in ("\t", ",", ";", "|", " ") if len(said.strip().split(one)) == wanted]
    return fits[0] if len(fits) == 1 else ""


def _rest(spot: Spot, statement: ast.stmt, call: ast.Call, cause: str, wanted: int) -> Explanation:
    """More fields than names: the separator is in the last of them, a text, or in the first before a number."""
    last = statement.targets[0].elts[-1]  # type: ignore[attr-defined]
    first = statement.targets[0].elts[0]  # type: ignore[attr-defined]
    inside = spot.function if spot.function is not None else spot.source.tree
    as_number = any(
        dotted(one.func) in _NUMBERS and one.args and dotted(one.args[0]) == dotted(last) for one in calls(inside)
    )
    func, text = call.func, spot.source.text
    around = spot.source.parent(call)
    if isinstance(around, ast.Call) and dotted(around.func) == "map" and wanted > 2:
        edit = edit_of(spot.file, spot.source.replaced({last: f"{text(last)}, *_"}))
        return Explanation(RULE, spot.file, spot.line, f"{cause} `*_` takes the rest.", edit, "", "likely")
    separator = text(call.args[0]) if call.args else "None"
    advice = f"Say how often it splits, {text(func)}({separator}, {wanted - 1}): the rest stays in {text(last)}."
    by = ""
    if as_number and wanted == 2:
        by = f"{text(func.value)}.rsplit({separator}, 1)"  # type: ignore[attr-defined]
        cause += f" rsplit splits once, from the end: the rest stays in {text(first)}."
    elif not as_number and _TEXTS.search(dotted(last).lower()):
        by = f"{text(func)}({separator}, {wanted - 1})"
        cause += f" With {wanted - 1} behind it, it stops there, and the rest stays in {text(last)}."
    edit = edit_of(spot.file, spot.source.replaced({call: by})) if by else None
    return Explanation(
        RULE, spot.file, spot.line, cause, edit, "" if edit else advice, "likely" if edit else "measured"
    )


def _empty(situation: Situation, spot: Spot, name: str, text: str | bytes, wanted: int) -> Explanation:
    """An empty line, which the reading leaves out where one place of the program reads lines."""
    fields = "a field" if wanted == 1 else f"{wanted} fields"
    found = [(file, source, one) for file, source in situation.sources() for one in _readers(source)]
    what = "an empty line of the file" if found else "which is empty"
    cause = f"{name} is {text!r}, {what}, and line {spot.line} takes {fields} of it."
    if len(found) == 1:
        file, source, node = found[0]
        new = f"[one for one in {source.text(node)} if one.strip()]"
        if isinstance(node, ast.Call) and dotted(node.func).endswith("TextLineDataset"):
            tf = alias(spot, "tensorflow")
            new = f"{source.text(node)}.filter(lambda line: {tf}.strings.length({tf}.strings.strip(line)) > 0)"
        edit = edit_of(file, source.replaced({node: new}))
        if edit is not None:
            cause += " This leaves empty lines out where they are read."
            return Explanation(RULE, spot.file, spot.line, cause, edit, "", "likely")
    advice = "Leave such lines out where they are read or made: `[one for one in lines if one.strip()]`."
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)


def _readers(source: Source) -> Iterator[ast.expr]:
    """What gives the lines of a file."""
    opened = {
        dotted(item.optional_vars) for one in ast.walk(source.tree) if isinstance(one, ast.With) for item in one.items
        if item.optional_vars is not None and _opens(item.context_expr)
    }  # fmt: skip
    for one in ast.walk(source.tree):
        if isinstance(one, (ast.For, ast.comprehension)) and (_opens(one.iter) or dotted(one.iter) in opened):
            yield one.iter
        if not isinstance(one, ast.Call) or not isinstance(one.func, ast.Attribute):
            continue
        owner = one.func.value
        read = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute)
        whole = read and owner.func.attr in ("read", "read_text")  # type: ignore[attr-defined]
        at_ends = one.func.attr == "split" and [ast.unparse(each) for each in one.args] == ["'\\n'"]
        lists = one.func.attr == "readlines" or (whole and (one.func.attr == "splitlines" or at_ends))
        if lists or one.func.attr == "TextLineDataset":
            yield one


def _opens(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) in ("open", "io.open", "codecs.open", "tf.io.gfile.GFile")
