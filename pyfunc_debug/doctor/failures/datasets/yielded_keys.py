"""A dict that a generator yields, alone or in a tuple, with other keys than its signature has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.datasets import generator_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import assignments
from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import Source

RULE = "generator"
_SHOWN = 3
_PLACES = ("first", "second", "third", "fourth")


@dataclass(frozen=True)
class _Differing:
    """Two dicts, and where they stand in an element: the keys and numbers of the parts around them."""

    path: tuple[Any, ...]
    wanted: list[str]
    given: list[str]
    name: str

    @property
    def missing(self) -> list[str]:
        return [one for one in self.wanted if one not in self.given]

    @property
    def extra(self) -> list[str]:
        return [one for one in self.given if one not in self.wanted]


def explain(situation: Situation, file: str, source: Source, call: ast.Call) -> Explanation | None:
    """The explanation, if the keys of one dict are what differs.

    Args:
      situation: The failure.
      file: The file of the call of from_generator.
      source: Its text.
      call: The call.
    """
    values, declared = element(situation)
    found = [*_differing(values, declared, ())]
    if len(found) != 1:
        return None
    one = found[0]
    function = generator_calls.function_of(source, generator_calls.given(call))
    yields = generator_calls.yields_of(function)
    ran = fitting(yields, values, function)
    dicts = {id(part): part for each in ran if (part := _at(each.value, one.path, function)) is not None}
    written = next(iter(dicts.values())) if len(dicts) == 1 else None
    missing, extra = one.missing, one.extra
    parts = [f"has no {_listed(missing)}"] * bool(missing)
    parts += [f"has {_listed(extra)}, of which the signature says nothing"] * bool(extra)
    cause = f"{one.name} that the generator yields {' and '.join(parts)}. "
    cause += "Each yielded dict needs just the keys of the signature."
    line = _line(written, extra) or _put_in(function, extra) or (ran[0].lineno if len(ran) == 1 else call.lineno)
    if len(ran) > 1:
        cause += f" It may be yielded by lines {' and '.join(str(each.lineno) for each in ran)}."
    edit = _edit(one, written, file, source)
    if edit is None and missing and not extra and not _is_yielded(missing, yields, one.path, function):
        edit = _undeclared(file, source, call, missing)
        line = edit.first if edit is not None else line
        cause += f" The paste leaves {'it' if len(missing) == 1 else 'them'} out of that." if edit is not None else ""
    if edit is not None and extra and not missing:
        cause += f" The paste leaves {'it' if len(extra) == 1 else 'them'} out."
    advice = "" if edit else "Leave it out of the dict, or write it in the signature."
    if missing and not edit:
        advice = f"Yield {_listed(missing)} too, or leave it out of the signature."
    return Explanation(RULE, file, line, cause, edit, advice, "likely" if edit else "measured")


def line_of(yields: list[ast.Yield], situation: Situation, call: ast.Call) -> int:
    """The line of the `yield` that gave the element which was refused; that of the call where several may have."""
    values, _ = element(situation)
    ran = yields if len(yields) == 1 else fitting(yields, values, None)
    return ran[0].lineno if len(ran) == 1 else call.lineno


def fitting(yields: list[ast.Yield], values: Any, function: ast.FunctionDef | None) -> list[ast.Yield]:
    """The yields that may have given an element by what is written: its number of parts, and the keys of its dicts."""
    own = assignments(function) if function is not None else {}
    return [one for one in yields if one.value is not None and _may_be(one.value, values, own)]


def _may_be(node: ast.expr, value: Any, own: dict[str, ast.expr]) -> bool:
    node = own.get(node.id, node) if isinstance(node, ast.Name) else node
    if isinstance(node, ast.Dict):
        keys = [getattr(key, "value", None) for key in node.keys]
        if None in keys:
            return isinstance(value, dict)
        return (
            isinstance(value, dict) and {*keys} == {*value}
            and all(_may_be(part, value[key], own) for key, part in zip(keys, node.values))
        )  # fmt: skip
    if isinstance(node, ast.Tuple):
        if any(isinstance(one, ast.Starred) for one in node.elts):
            return isinstance(value, tuple)
        same = isinstance(value, tuple) and len(node.elts) == len(value)
        return same and all(_may_be(part, one, own) for part, one in zip(node.elts, value))
    return not isinstance(node, ast.Constant) or type(node.value) is type(value)


def element(situation: Situation) -> tuple[Any, Any]:
    """What was yielded, and its signature, as TensorFlow's frame has them; None where there is no such frame."""
    for frame in frames(situation.inner.__traceback__):
        known = frame.f_locals
        if frame.f_code.co_name == "generator_py_func" and "values" in known:
            return known["values"], known.get("output_types", known.get("output_signature"))
    return None, None


def _differing(values: Any, declared: Any, path: tuple[Any, ...]) -> Iterator[_Differing]:
    """The dicts whose keys differ; nothing where an element has another number of parts, or other kinds."""
    if isinstance(declared, dict) and isinstance(values, dict):
        if {*declared} == {*values}:
            for key, one in declared.items():
                yield from _differing(values[key], one, (*path, key))
        elif all(isinstance(key, str) for key in (*declared, *values)):
            yield _Differing(path, [*declared], [*values], _name(path))
    elif type(declared) is tuple and type(values) is tuple and len(declared) == len(values):
        for place, (one, wanted) in enumerate(zip(values, declared)):
            yield from _differing(one, wanted, (*path, place))


def _name(path: tuple[Any, ...]) -> str:
    if not path:
        return "the dict"
    if isinstance(path[-1], str):
        return f"the dict of {path[-1]!r}"
    return f"the {_PLACES[path[-1]]} part, a dict," if path[-1] < len(_PLACES) else "a dict"


def part_at(node: ast.expr | None, path: tuple[Any, ...], function: ast.FunctionDef | None) -> ast.expr | None:
    """What is written at a place of what is yielded; None where it is made otherwise.

    Args:
      node: What is yielded.
      path: The keys and numbers of the parts that it is in.
      function: The generator.
    """
    own = assignments(function) if function is not None else {}
    if isinstance(node, ast.Name):
        made = None if _is_changed(node.id, function) else own.get(node.id)
        node = made if path or isinstance(made, (ast.Call, ast.Dict)) else node
    if not path:
        return node
    if isinstance(node, ast.Tuple) and isinstance(path[0], int) and path[0] < len(node.elts):
        return part_at(node.elts[path[0]], path[1:], function)
    if isinstance(node, ast.Dict):
        parts = [value for key, value in zip(node.keys, node.values) if getattr(key, "value", None) == path[0]]
        return part_at(parts[0], path[1:], function) if len(parts) == 1 else None
    return None


def _at(node: ast.expr | None, path: tuple[Any, ...], function: ast.FunctionDef | None) -> ast.Dict | None:
    """The dict with plain keys that is written there."""
    found = part_at(node, path, function)
    return found if isinstance(found, ast.Dict) and all(isinstance(key, ast.Constant) for key in found.keys) else None


def _is_changed(name: str, function: ast.FunctionDef | None) -> bool:
    """Whether a function writes into a dict, or calls a method of it."""
    for one in ast.walk(function) if function is not None else ():
        inside = one.value if isinstance(one, (ast.Subscript, ast.Attribute)) else None
        written = isinstance(one, ast.Attribute) or isinstance(getattr(one, "ctx", None), (ast.Store, ast.Del))
        if isinstance(inside, ast.Name) and inside.id == name and written:
            return True
    return False


def _is_yielded(
    keys: list[str], yields: list[ast.Yield], path: tuple[Any, ...], function: ast.FunctionDef | None
) -> bool:
    """Whether a `yield` has one of some keys, which the signature is to have for it."""
    dicts = [_at(one.value, path, function) for one in yields]
    return any(getattr(key, "value", None) in keys for one in dicts if one is not None for key in one.keys)


def _line(written: ast.Dict | None, extra: list[str]) -> int:
    keys = [key for key in written.keys if getattr(key, "value", None) in extra] if written is not None else []
    return next((key.lineno for key in keys if key is not None), written.lineno if written is not None else 0)


def _put_in(function: ast.FunctionDef | None, extra: list[str]) -> int:
    """The line of `features["b"] = 2` for such a key; 0 where none, or several, write it."""
    found = [
        one.lineno for one in ast.walk(function) if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store)
        and isinstance(one.slice, ast.Constant) and one.slice.value in extra[:1]
    ] if function is not None else []  # fmt: skip
    return found[0] if len(found) == 1 else 0


def _edit(found: _Differing, written: ast.Dict | None, file: str, source: Source) -> Edit | None:
    """The dict with the other name of a key, or without the keys that the signature has not."""
    missing, extra = found.missing, found.extra
    if written is None or not extra:
        return None
    keys = [key for key in written.keys if isinstance(key, ast.Constant) and key.value in extra]
    if len(missing) == len(extra) == len(keys) == 1:
        return Edit(file, *source.kept_lines({keys[0]: repr(missing[0])}))
    if missing or len(keys) != len(extra):
        return None
    pairs = [(key, value) for key, value in zip(written.keys, written.values) if key is not None]
    spans = [(key.lineno, value.end_lineno or value.lineno) for key, value in pairs if key in keys]
    if len(spans) == 1 and is_alone(spans[0], pairs, written):
        first, last = spans[0]
        return Edit(file, first - 1, last, (source.lines[first - 2],))
    left = [f"{source.text(key)}: {source.text(value)}" for key, value in pairs if key not in keys]
    return Edit(file, *source.kept_lines({written: f"{{{', '.join(left)}}}"}))


def is_alone(span: tuple[int, int], pairs: list[tuple[ast.expr, ast.expr]], written: ast.Dict) -> bool:
    """Whether an item of a dict has lines of its own, with the brackets on others."""
    first, last = span
    others = {line for key, value in pairs if key.lineno != first for line in (key.lineno, value.end_lineno or 0)}
    same = [key for key, _ in pairs if key.lineno == first]
    return len(same) == 1 and not others & {first, last} and written.lineno < first and last < (written.end_lineno or 0)


def _undeclared(file: str, source: Source, call: ast.Call, keys: list[str]) -> Edit | None:
    """What declares some keys, written in one dict each, without these."""
    pieces: dict[ast.expr, str] = {}
    for one in [call, *generator_calls.assigned(call, source)]:
        for part in ast.walk(one):
            if isinstance(part, ast.Dict) and {*keys} <= {getattr(key, "value", None) for key in part.keys}:
                if None in part.keys:
                    return None
                left = [
                    f"{source.text(key)}: {source.text(value)}" for key, value in zip(part.keys, part.values)
                    if key is not None and getattr(key, "value", None) not in keys
                ]  # fmt: skip
                pieces[part] = f"{{{', '.join(left)}}}"
    if not pieces:
        return None
    first, last = min(one.lineno for one in pieces), max(one.end_lineno or one.lineno for one in pieces)
    return Edit(file, first, last, source.spliced(pieces, first, last))


def _listed(keys: list[str]) -> str:
    return ", ".join(map(repr, keys[:_SHOWN]))
