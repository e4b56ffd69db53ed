"""An array of Python objects that a body returns or a generator yields: pandas' rows of several dtypes are such."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source, read, short
from pyfunc_debug.doctor.failures.reading.symbols import alias

RULE = "output-contract"
_SAID = re.compile(r"Unsupported object type ([\w.]+)")
_HOLDS = re.compile(r"value (\d+) holds Python objects, but Tout says (\w+)")
_NUMBERS = re.compile(r"(numpy\.)?(float|int|bool)\w*$")
_PLAIN = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if numbers stood in such an array: they have the declared dtype, or a text."""
    said = _SAID.search(f"{situation.message}\n{situation.error}")
    if said is None or not _NUMBERS.match(said[1]):
        return None
    rows = situation.rows(
        "SELECT n.file, n.line, n.body, f.message FROM call c JOIN node n ON n.id = c.node JOIN failure f ON "
        "f.id = c.failure WHERE f.message LIKE 'value % holds Python objects, but Tout says %' ORDER BY c.id DESC "
        "LIMIT 1",
        (),
    )
    holds = _HOLDS.match(rows[0][3]) if rows else None
    if holds is None or rows[0][0] is None:
        return None
    file, line, body, _ = rows[0]
    source, dtype = read(file), holds[2]
    found = _given(source, line, int(holds[1]))
    if found is None or (dtype != "string" and dtype not in _PLAIN):
        return None
    module = next((one.module for one in situation.spots), {})
    np = alias(Spot(file, line, {}, module, ""), "numpy")
    text, name = source.text(found), "the lambda" if body.endswith("<lambda>") else body.rpartition(".")[2]
    new = f"{np}.asarray({text}).astype(str)" if dtype == "string" else f"{np}.asarray({text}, {np}.{dtype})"
    kind = said[1].rpartition(".")[2]
    article = "an" if kind[0] in "aeiou" else "a"
    cause = (
        f"{short(text, 40)} of {name} is an array of Python objects (dtype object) with {article} {kind} in it, as "
        f"pandas and NumPy make of mixed values; {dtype} is declared. "
        f"{'As text it has that dtype.' if dtype == 'string' else 'Where all are numbers, it can have that dtype.'}"
    )
    edit = edit_of(file, source.replaced({found: new}))
    return Explanation(RULE, file, found.lineno, cause, edit, "" if edit else f"Give {new}.")


def _given(source: Source, line: int | None, place: int) -> ast.expr | None:
    """The one expression that a function returns or yields for an output."""
    functions: list[Function] = [
        one for one in ast.walk(source.tree)
        if isinstance(one, (ast.FunctionDef, ast.Lambda)) and line in (
            one.lineno, *(decorator.lineno for decorator in getattr(one, "decorator_list", ()))
        )
    ]  # fmt: skip
    if len(functions) != 1:
        return None
    values: list[ast.expr | None] = [
        one.value for one in own_nodes(functions[0]) if isinstance(one, (ast.Yield, ast.Return))
    ]
    if isinstance(functions[0], ast.Lambda):
        values = [functions[0].body]
    given = [one for one in values if one is not None]
    if len(given) != 1:
        return None
    if isinstance(given[0], (ast.Tuple, ast.List)):
        return given[0].elts[place] if place < len(given[0].elts) else None
    return given[0] if place == 0 else None
