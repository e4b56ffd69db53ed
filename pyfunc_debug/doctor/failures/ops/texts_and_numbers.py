"""Text where an op takes numbers, and numbers where it takes text: tf.cast, tf.strings and lookups convert neither."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import KERNELS
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, each
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, dtype_of, lookup

_CAST = re.compile(r"Cast (\w+) to (\w+) is not supported")
_NUMBER = re.compile(r"StringToNumberOp could not correctly convert string: (.*?)\s*(?:\[\[|\[Op:|$)", re.DOTALL)
_JOINED = re.compile(r"passed to 'inputs' of 'StringJoin' Op have types \[([\w, ]+)\]")
_JOINED_EAGER = re.compile(r"cannot compute StringJoin as input #(\d+)\(zero-based\) was expected to be a string")
_KEYS = re.compile(r"Dtype of argument `keys` must be <dtype: '(\w+)'>, received: <dtype: '(\w+)'>")
_ADDED = re.compile(
    r"Input 'y' of 'Add\w*' Op has type (\w+) that does not match type string of argument 'x'"
    r"|cannot compute Add\w* as input #1\(zero-based\) was expected to be a string tensor but is an? (\w+) tensor"
)
_MADE = ("float32", "float64", "int32", "int64")
_WHOLE = re.compile(r"u?int\d+")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the line converts by an op that does not, or joins or looks up what is of another dtype."""
    message = situation.message
    if (said := _CAST.search(message)) is not None and "string" in said.groups():
        return each(situation, _cast, said[1], said[2])
    if (said := _NUMBER.search(message)) is not None:
        return each(situation, _number, said[1])
    if (said := _JOINED.search(message)) is not None:
        kinds = said[1].split(", ")
        return each(situation, _joined, {at: one for at, one in enumerate(kinds) if one != "string"})
    if (said := _JOINED_EAGER.search(message)) is not None:
        return each(situation, _joined, {int(said[1]): ""})
    if (said := _ADDED.search(message)) is not None:
        return each(situation, _added, KERNELS.get(said[1] or said[2], said[1] or said[2]))
    if (said := _KEYS.search(message)) is not None:
        return each(situation, _looked_up, said[1], said[2])
    return None


def _cast(place: Refused, got: str, wanted: str) -> Explanation | None:
    tf, wanted = alias(place.spot, "tensorflow"), KERNELS.get(wanted, wanted)
    found = [one for one in place.calls_of("cast") if argument(one, 1, "dtype") is not None]
    of_kind = [one for one in found if dotted(argument(one, 1, "dtype")).rpartition(".")[2] == wanted]
    call = found[0] if len(found) == 1 else of_kind[0] if len(of_kind) == 1 else None
    given = argument(call, 0, "x") if call is not None else None
    if call is None or given is None:
        return None
    text, name = place.text(given), short(place.text(given), 30)
    if got != "string":
        cause = f"{name} holds numbers, and a cast makes no text of them. tf.strings.as_string does."
        return place.told(cause, {call: f"{tf}.strings.as_string({text})"}, measured=True)
    cause = f"{name} holds text, and a cast reads no number in it. tf.strings.to_number does."
    if wanted == "bool":
        return None
    alike = [one for one in found if one is call or _same_parts(argument(one, 0, "x"), given)]
    return place.told(cause, {one: _read(place, one, tf) for one in alike}, measured=True)


def _same_parts(node: ast.expr | None, other: ast.expr) -> bool:
    """Whether both are parts of one name, as `parts[0]` and `parts[1]`: of one dtype."""
    if not isinstance(node, ast.Subscript) or not isinstance(other, ast.Subscript):
        return False
    return dotted(node.value) == dotted(other.value) != ""


def _read(place: Refused, call: ast.Call, tf: str) -> str:
    """`tf.strings.to_number(x, tf.float32)` of `tf.cast(x, tf.float32)`."""
    kind, text = argument(call, 1, "dtype"), place.text(argument(call, 0, "x") or call)
    wanted = dotted(kind).rpartition(".")[2] if kind is not None else ""
    new = f"{tf}.strings.to_number({text}, {tf}.{wanted if wanted in _MADE else 'float32'})"
    return new if wanted in _MADE or kind is None else f"{tf}.cast({new}, {place.text(kind)})"


def _number(place: Refused, field: str) -> Explanation | None:
    """`tf.strings.to_number(s, tf.int32)` of "3.5", "1,234" or "3,5"."""
    found = place.calls_of("to_number")
    call, tf = (found[0] if len(found) == 1 else None), alias(place.spot, "tensorflow")
    given = argument(call, 0, "input") if call is not None else None
    kind = argument(call, 1, "out_type") if call is not None else None
    if call is None or given is None:
        return None
    source, shown = place.spot.source, short(repr(field), 30)
    name = dotted(kind).rpartition(".")[2] if kind is not None else "float32"
    if _WHOLE.fullmatch(name) and kind is not None and re.fullmatch(r"\s*[-+]?\d*\.\d+\s*", field):
        new = f"{tf}.cast({source.text_with(call, {kind: f'{tf}.float32'})}, {place.text(kind)})"
        return place.told(
            f"{shown} is a fraction, and {name} is asked for. Read as float32, a cast cuts it.", {call: new}
        )
    for pattern, sign, new, what in (
        (r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", ",", '""', "commas between its thousands"),
        (r"[-+]?\d+,\d+", ",", '"."', "a decimal comma"),
        (r"\s*[$€£]\s*[\d.]+", field.strip()[:1], '""', "a sign of money"),
        (r"[-+\d.]+\s*%", "%", '""', "a percent sign"),
    ):  # fmt: skip
        if re.fullmatch(pattern, field):
            sign = f"[{sign}]" if sign in "$" else sign
            cause = f"{shown} has {what}, and to_number reads digits and a point."
            return place.told(cause, {given: f'{tf}.strings.regex_replace({place.text(given)}, "{sign}", {new})'})
    if not field.strip():
        cause = f"a text in {short(place.text(given), 30)} is empty, and to_number reads no number in it."
        new = (
            f'{tf}.strings.regex_replace({place.text(given)}, r"^\\s*$", "{"0" if _WHOLE.fullmatch(name) else "nan"}")'
        )
        return place.told(f"{cause} {'0' if _WHOLE.fullmatch(name) else 'nan'} stands for it.", {given: new})
    return None


def _joined(place: Refused, other: dict[int, str]) -> Explanation | None:
    """`tf.strings.join(["img_", i, ".png"])` of a number."""
    found, tf = place.calls_of("join", "string_join"), alias(place.spot, "tensorflow")
    inputs = argument(found[0], 0, "inputs") if len(found) == 1 else None
    if not isinstance(inputs, (ast.List, ast.Tuple)) or max(other, default=0) >= len(inputs.elts):
        return None
    nodes = [inputs.elts[at] for at in other]
    kind = next(iter(other.values())) or dtype_of(lookup(nodes[0], place.spot)) or "of numbers"
    cause = (
        f"{short(place.text(nodes[0]), 30)} is {kind}, and join takes text only. as_string gives the text of a number."
    )
    return place.told(cause, {one: f"{tf}.strings.as_string({place.text(one)})" for one in nodes}, measured=True)


def _added(place: Refused, kind: str) -> Explanation | None:
    """`name + label` of a text and a number."""
    sums = [one for one in ast.walk(place.statement) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add)]
    named = [one.right for one in sums if dtype_of(lookup(one.right, place.spot)) == kind]
    others = named or [one.right for one in sums] if len(sums) == 1 else named
    if len(others) != 1:
        return None
    tf = alias(place.spot, "tensorflow")
    cause = (
        f"{short(place.text(others[0]), 30)} is {kind}, and text is joined with text only. as_string gives the text "
    )
    cause += "of a number."
    return place.told(cause, {others[0]: f"{tf}.strings.as_string({place.text(others[0])})"}, measured=True)


def _looked_up(place: Refused, wanted: str, got: str) -> Explanation | None:
    """`table.lookup(i)` of an int64 where the keys are int32."""
    found = [
        one for one in calls(place.statement)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "lookup" and argument(one, 0, "keys") is not None
    ]  # fmt: skip
    keys, tf = (argument(found[0], 0, "keys") if len(found) == 1 else None), alias(place.spot, "tensorflow")
    if keys is None:
        return None
    text, owner = place.text(keys), short(place.text(found[0].func.value), 30)  # type: ignore[attr-defined]
    cause = f"the keys of {owner} are {wanted}, and {short(text, 30)} is {got}: a table converts nothing."
    if wanted == "string":
        return place.told(cause, {keys: f"{tf}.strings.as_string({text})"}) if _WHOLE.fullmatch(got) else None
    if got == "string":
        return place.told(cause, {keys: f"{tf}.strings.to_number({text}, {tf}.{wanted})"}) if wanted in _MADE else None
    return place.told(cause, {keys: f"{tf}.cast({text}, {tf}.{wanted})"}, measured=True)
