"""Records unlike what `tf.io.parse_single_example` or `tf.io.decode_csv` expects, which only a run shows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.files import first_line
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_LENGTH = re.compile(
    r"Key: ([\w/.-]+)\.\s+Can't parse serialized Example|Key: ([\w/.-]+), Index: \d+\.\s+Number of \w+ values"
)
_DTYPE = re.compile(
    r"Key: ([\w/.-]+)\.\s+Data types don't match\. (?:Data type: (\w+) but expected|Expected) type: (\w+)"
)
_FIELD = re.compile(r"Field (\d+) in record \d+ is not a valid (\w+): (.*)")
_NUMBER = re.compile(
    r"(?:could not convert string to float|invalid literal for int\(\) with base 10): b?'([^']+)'"
    r"|StringToNumberOp could not correctly convert string: (.+)"
)
_COUNT = re.compile(r"Expect (\d+) fields but have (\d+) in record")
_BATCHED = re.compile(r"serialized must be a (?:scalar|vector)")
_NAMES = {"float": "float32", "int64": "int64", "string": "string"}
_SPECS = ("FixedLenFeature", "VarLenFeature", "FixedLenSequenceFeature")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a record has other values than the program says."""
    text = situation.message
    number = _NUMBER.search(text) if situation.kind in ("ValueError", "InvalidArgumentError") else None
    if number is not None:
        return _header(situation, number[1] or number[2], "a number")
    if _BATCHED.search(text) and not situation.body:
        return _of_batch(situation)
    if situation.body or situation.kind != "InvalidArgumentError":
        return None
    for pattern, tell in ((_LENGTH, _length), (_DTYPE, _dtype), (_FIELD, _field), (_COUNT, _count)):
        found = pattern.search(text)
        if found is not None:
            return tell(situation, found)
    return None


def _of_batch(situation: Situation) -> Explanation | None:
    """`parse_single_example` behind a batch, and `parse_example` in front of one."""
    spot, statement = situation.last, situation.statement
    found = [
        one for one in calls(statement)
        if dotted(one.func).rpartition(".")[2] in ("parse_single_example", "parse_example")
    ] if spot is not None and statement is not None else []  # fmt: skip
    if spot is None or len(found) != 1 or not isinstance(found[0].func, ast.Attribute):
        return None
    single = found[0].func.attr == "parse_single_example"
    new = "parse_example" if single else "parse_single_example"
    what = "a batch of records" if single else "one record"
    cause = f"{found[0].func.attr} got {what}: {new} takes that."
    text = spot.source.text(found[0].func)
    edit = edit_of(spot.file, spot.source.replaced({found[0].func: f"{text.rpartition('.')[0]}.{new}"}))
    return Explanation(RULE, spot.file, found[0].lineno, cause, edit)


def _specs(situation: Situation, key: str) -> Iterator[tuple[str, Source, ast.Call]]:
    """The specs that the program has for a feature."""
    for file, source in situation.sources():
        for name, value in _pairs(source):
            if name == key and dotted(value.func).rpartition(".")[2] in _SPECS:
                yield file, source, value


def _pairs(source: Source) -> Iterator[tuple[object, ast.Call]]:
    """The keys of all dicts that are written with a call as their value, and that call."""
    for one in ast.walk(source.tree):
        for name, value in zip(one.keys, one.values) if isinstance(one, ast.Dict) else ():
            if isinstance(value, ast.Call):
                yield getattr(name, "value", None), value


def _length(situation: Situation, found: re.Match[str]) -> Explanation | None:
    """`FixedLenFeature([], ...)` of a feature with another number of values."""
    key = found[1] or found[2]
    every = list(_specs(situation, key))
    if len(every) != 1 or not dotted(every[0][2].func).endswith("FixedLenFeature"):
        return None
    file, source, call = every[0]
    shape, dtype = argument(call, 0, "shape"), argument(call, 1, "dtype")
    if shape is None or dtype is None:
        return None
    module = dotted(call.func).removesuffix("FixedLenFeature")
    new = f"{module}FixedLenSequenceFeature([], {source.text(dtype)}, allow_missing=True)"
    cause = (
        f"{source.text(call)} says how many values {key!r} has, and a record has another number of them. "
        "FixedLenSequenceFeature takes as many as there are, as one vector."
    )
    return Explanation(RULE, file, call.lineno, cause, edit_of(file, source.replaced({call: new})), "", "likely")


def _dtype(situation: Situation, found: re.Match[str]) -> Explanation | None:
    """A spec of another dtype than the record has."""
    key, stored = found[1], _NAMES.get(found[2] or "")
    for file, source, call in _specs(situation, key):
        dtype = argument(call, 0 if dotted(call.func).endswith("VarLenFeature") else 1, "dtype")
        if dtype is None:
            continue
        tf = dotted(dtype).rpartition(".")[0] or "tf"
        cause = f"the spec says {source.text(dtype)} for {key!r}, and the records hold "
        cause += f"{tf}.{stored}." if stored else "another dtype: int64, float32 or string are all that there is."
        cause += " Nothing is converted: cast what was parsed, where you want another dtype."
        edit = edit_of(file, source.replaced({dtype: f"{tf}.{stored}"})) if stored else None
        advice = "" if edit else "Write the dtype of the list that wrote it: int64_list, float_list or bytes_list."
        return Explanation(RULE, file, call.lineno, cause, edit, advice)
    return None


def _field(situation: Situation, found: re.Match[str]) -> Explanation | None:
    """The names in the first line of a file, taken for numbers by `decode_csv`."""
    return _header(situation, found[3].split("\n")[0], f"a valid {found[2]}", found[1])


def _header(situation: Situation, text: str, wanted: str, field: str = "") -> Explanation | None:
    """The names in the first line of a file, taken for numbers."""
    text = text.strip()
    for file, source in situation.sources():
        read = [one for one in calls(source.tree) if dotted(one.func).endswith("TextLineDataset")]
        if len(read) != 1 or not re.fullmatch(r"[A-Za-z_][\w .-]*", text):
            continue
        around = source.parent(read[0])
        if isinstance(around, ast.Attribute) and around.attr == "skip":
            continue
        spot = next((one for one in situation.spots if one.file == file), situation.last)
        first = first_line(evaluation.computed(read[0].args[0], spot) if spot is not None and read[0].args else None)
        if text not in first if first is not None else not field:  # "NA" may stand in any line
            continue
        where = f"field {field}" if field else "a field"
        cause = (
            f"{where} of a line is {text!r}, and not {wanted}: the first line of the file has the names of the "
            "columns. skip(1) leaves it out."
        )
        edit = edit_of(file, source.replaced({read[0]: f"{source.text(read[0])}.skip(1)"}))
        return Explanation(RULE, file, read[0].lineno, cause, edit, "", "measured" if first is not None else "likely")
    return None


def _count(situation: Situation, found: re.Match[str]) -> Explanation | None:
    """Another number of defaults than a line has fields."""
    wanted, got = int(found[1]), int(found[2])
    for file, source in situation.sources():
        parsed = [one for one in calls(source.tree) if dotted(one.func).rpartition(".")[2] == "decode_csv"]
        defaults = argument(parsed[0], 1, "record_defaults") if len(parsed) == 1 else None
        if defaults is None:
            continue
        times = [
            one.right for one in ast.walk(defaults)
            if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult) and isinstance(one.right, ast.Constant)
            and isinstance(one.right.value, int)
        ]  # fmt: skip
        cause = f"record_defaults has {wanted} values, one for each column, and a line has {got} fields."
        edit = None
        if len(times) == 1 and isinstance(times[0].value, int) and times[0].value + got - wanted > 0:
            edit = edit_of(file, source.replaced({times[0]: str(times[0].value + got - wanted)}))
        advice = "" if edit else "Give each column its default: its dtype is that of the column."
        return Explanation(RULE, file, parsed[0].lineno, cause, edit, advice, "likely")
    return None
