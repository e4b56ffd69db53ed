"""Arrays of Python objects that SciPy's sparse matrices do not take: `sp.block_diag([g.a for g in batch])`."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_ndarray, lookup
from pyfunc_debug.doctor.failures.reading.tables import valued
from pyfunc_debug.program.frames import is_installed

RULE = "mixed-dtypes"
_SAID = re.compile(r"scipy\.sparse does not support dtype object|no supported conversion for types: \(dtype\('O'\)")
_MAKERS = ("to_numpy", "array", "asarray", "load", "stack", "vstack", "concatenate")
_LOOKED_AT = 10_000


@dataclasses.dataclass(frozen=True)
class _Found:
    """An array of objects that the failing line reads: where, what of it, and whether it is one of a list's."""

    node: ast.expr
    value: Any
    place: int | None = None


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the failing line reads such arrays."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or not _SAID.search(situation.message):
        return None
    found = next(_found(statement, spot), None)
    if found is None:
        return None
    source, np = spot.source, alias(spot, "numpy")
    text = short(source.text(found.node), 30)
    listed = found.place is not None and isinstance(found.node, ast.Name) and _is_list(lookup(found.node, spot))
    which = text if found.place is None else f"{text}[{found.place}]" if listed else f"{text} (element {found.place})"
    other = next((one for one in found.value.ravel()[:_LOOKED_AT].tolist() if not _is_number(one)), None)
    cause = f"{which} is an array of Python objects (dtype object), which SciPy's sparse matrices do not take. "
    if other is not None:
        cause += f"Not all in it are numbers: `{short(repr(other), 30)}` is one of type {type(other).__name__}."
        advice = f"Make numbers of them, or leave them out, and give {text}.astype({np}.float64)."
        return Explanation(RULE, spot.file, found.node.lineno, cause, None, advice)
    dtype = f".astype({np}.float64)"
    name = dotted(found.node).rpartition(".")[2]
    made = _made(situation, name) if name else None
    if made is not None:
        file, own, value = made
        cause += f"All in it are numbers, and line {value.lineno} makes it: a dtype there is one for all that read it."
        edit = edit_of(file, own.replaced({value: f"{own.atom(value)}{dtype}"}))
        if edit is not None:
            return Explanation(RULE, spot.file, found.node.lineno, cause, edit, "", "likely")
    cause += "All in it are numbers."
    new = f"{source.atom(found.node)}{dtype}"
    if listed:
        new = f"[one{dtype} for one in {source.text(found.node)}]"
    every = _listed(lookup(found.node, spot)) if listed else []
    edit = (
        None
        if [one for one in every if not hasattr(one, "astype")]
        else edit_of(spot.file, source.replaced({found.node: new}))
    )
    return Explanation(RULE, spot.file, found.node.lineno, cause, edit, "" if edit else f"Give {new}.")


def _found(statement: ast.stmt, spot: Spot) -> Iterator[_Found]:
    """The arrays of objects that a statement reads: those of its comprehensions first."""
    inside: set[str] = set()
    for one in ast.walk(statement):
        if isinstance(one, (ast.ListComp, ast.GeneratorExp)) and len(one.generators) == 1:
            loop = one.generators[0]
            inside |= {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
            for place, element in enumerate(_listed(lookup(loop.iter, spot))):
                own = dataclasses.replace(spot, variables={**spot.variables, **_bound(loop.target, element)})
                for part in _reads(one.elt):
                    if _is_objects(value := valued(part, own)):
                        yield _Found(part, value, place)
    for part in _reads(statement):
        if inside & {name.id for name in ast.walk(part) if isinstance(name, ast.Name)}:
            continue
        value = valued(part, spot)
        value = getattr(value, "values", None) if type(value).__name__ == "DataFrame" else value
        if _is_objects(value):
            yield _Found(part, value)
        for place, element in enumerate(_listed(value) if isinstance(part, ast.Name) else []):
            if _is_objects(element):
                yield _Found(part, element, place)


def _reads(node: ast.AST) -> list[ast.expr]:
    """Names, attributes and items that are read, the longest first."""
    return [
        one for one in ast.walk(node)
        if isinstance(one, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip


def _listed(value: Any) -> list[Any]:
    return list(value[:_LOOKED_AT]) if _is_list(value) else []


def _is_list(value: Any) -> bool:
    return type(value) in (list, tuple)


def _bound(target: ast.expr, element: Any) -> dict[str, Any]:
    """What the names of a loop stand for."""
    if isinstance(target, ast.Name):
        return {target.id: element}
    if isinstance(target, (ast.Tuple, ast.List)) and _is_list(element):
        return {name: value for one, part in zip(target.elts, element) for name, value in _bound(one, part).items()}
    return {}


def _is_objects(value: Any) -> bool:
    return is_ndarray(value) and value.dtype == object and value.ndim in (1, 2) and value.size > 0


def _is_number(value: Any) -> bool:
    import numpy

    return isinstance(value, (int, float, numpy.number, numpy.bool_))


def _made(situation: Situation, name: str) -> tuple[str, Source, ast.expr] | None:
    """`table.values` of `a = table.values`, or of `Graph(a=table.values)`, where that is the one such line."""
    found: list[tuple[str, Source, ast.expr]] = []
    every = 0
    for file, source in situation.sources():
        for one in ast.walk(source.tree) if not is_installed(file) else ():
            given: ast.expr | None = None
            if isinstance(one, ast.Assign):
                named = name in [dotted(target).rpartition(".")[2] for target in one.targets]
                given = one.value if named else None
            elif isinstance(one, ast.keyword):
                given = one.value if one.arg == name else None
            if given is None or isinstance(given, (ast.Name, ast.Constant)):
                continue  # only handed on
            every += 1
            values = isinstance(given, ast.Attribute) and given.attr == "values"
            if values or (isinstance(given, ast.Call) and dotted(given.func).rpartition(".")[2] in _MAKERS):
                found.append((file, source, given))
    return found[0] if len(found) == every == 1 else None
