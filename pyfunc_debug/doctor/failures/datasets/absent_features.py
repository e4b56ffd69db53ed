"""A feature that the records of a file do not have: which ones they have, read from the first record."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.datasets.first_records import kinds as kinds_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_SAID = re.compile(r"Feature: ([\w/. -]+) \(data type: (\w+)\) is required but could not be found")
_PARSES = ("parse_single_example", "parse_example", "parse_single_sequence_example")
_LISTS = {"float": "float_list", "int64": "int64_list", "string": "bytes_list"}
_SHOWN = 6
_NEAR = 4
"""Lines between two places of a name that one paste holds."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a record does not have a feature that a spec asks for."""
    said = _SAID.search(situation.message)
    if said is None or situation.body or situation.kind != "InvalidArgumentError":
        return None
    key, kept = said[1], _LISTS.get(said[2], "")
    records = list(kinds_of(situation))
    kinds = records[0] if records and all(one.keys() == records[0].keys() for one in records) else {}
    for file, source in situation.sources():
        parsing = [one for one in calls(source.tree) if dotted(one.func).rpartition(".")[2] in _PARSES]
        if not parsing:
            continue
        written = [one for one in ast.walk(source.tree) if isinstance(one, ast.Constant) and one.value == key]
        line = written[0].lineno if written else parsing[0].lineno
        if not kinds:
            return _unread(file, source, key, line)
        if key in kinds:
            what = "and another record has none" if kinds[key] else "without a value"
            cause = f"the first record has the feature {key!r}, {what}: its spec asks for one in each."
            return Explanation(
                RULE, file, line, cause, None, "Give the spec a default_value, or read it as VarLenFeature."
            )
        names = ", ".join(map(repr, sorted(kinds)[:_SHOWN])) + (", ..." if len(kinds) > _SHOWN else "")
        cause = f"the records have no feature {key!r}, which the spec asks for: they have {names}."
        beside = {part for one in written for part in _beside(source, one)}
        like = [one for one in _like(key, list(kinds)) if one not in beside and (not kept or kinds[one] == kept)]
        if len(like) == 1 and (edit := _renamed(file, source, written, like[0])) is not None:
            return Explanation(RULE, file, line, cause, edit, "", "likely")
        advice = f"Write {like[0]!r} for it." if len(like) == 1 else "Ask for one of these, or give a default_value."
        return Explanation(RULE, file, line, cause, None, advice)
    return None


def _beside(source: Source, node: ast.Constant) -> list[object]:
    """The texts that stand in the same dict or list: names that are asked for already."""
    around = source.parent(node)
    parts = around.keys if isinstance(around, ast.Dict) else getattr(around, "elts", [])
    return [one.value for one in parts if isinstance(one, ast.Constant)]


def _like(key: str, names: list[str]) -> list[str]:
    """The names that are the one that is asked for but for large letters and signs: `Land_cover`, `land/cover`."""
    return [one for one in names if one != key and _letters(one) == _letters(key)]


def _letters(name: str) -> str:
    return "".join(one for one in name.lower() if one.isalnum())


def _renamed(file: str, source: Source, written: list[ast.Constant], name: str) -> Edit | None:
    """All places of a name with another one, where they stand near each other."""
    lines = [one.lineno for one in written]
    if not written or max(lines) - min(lines) > _NEAR:
        return None
    first, last, new = source.kept_lines({one: repr(name).replace("'", '"') for one in written})
    return Edit(file, first, last, new)


def _unread(file: str, source: Source, key: str, line: int) -> Explanation:
    """Where no file of records is known: what the program writes is looked at."""
    written = [
        str(getattr(name, "value", "")) for one in ast.walk(source.tree) if isinstance(one, ast.Dict)
        for name, value in zip(one.keys, one.values)
        if isinstance(value, ast.Call) and "Len" not in dotted(value.func) and "eature" in ast.unparse(value)
    ]  # fmt: skip
    like = _like(key, written)
    cause = f"a record has no feature {key!r}, which the spec asks for."
    cause += f" The program writes one {like[0]!r}." if len(like) == 1 else ""
    advice = (
        "Write the name that the records have, or give the spec a default_value. "
        "tf.train.Example.FromString of one record shows its names."
    )
    return Explanation(RULE, file, line, cause, None, advice)
