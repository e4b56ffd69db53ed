"""Keyword arguments that py_function does not take: those meant for the body, and other names for its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import argument, py_call
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, names, short
from pyfunc_debug.doctor.failures.reading.symbols import is_symbolic

RULE = "structure"
_SAID = re.compile(r"unexpected keyword argument '(\w+)'|missing \d+ required positional argument")
_OWN = {
    "py_function": ("func", "inp", "Tout", "name"),
    "numpy_function": ("func", "inp", "Tout", "stateful", "name"),
    "py_func": ("func", "inp", "Tout", "stateful", "name"),
}
_MEANT = {
    "inp": {"inputs", "input", "args", "inps", "x"},
    "Tout": {"tout", "dtype", "output_types", "out", "output_type", "output_signature", "dtypes"},
    "func": {"function", "fn", "f"},
}
"""What people write for TensorFlow's own names, where these are missing."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a keyword is why py_function could not be called."""
    spot = situation.last
    if spot is None or situation.body or situation.kind != "TypeError" or not _SAID.search(situation.message):
        return None
    call = py_call(spot.source, spot.line)
    op = dotted(call.func).rpartition(".")[2] if call is not None else ""
    if call is None or op not in _OWN or any(one.arg is None for one in call.keywords):
        return None
    foreign = [one for one in call.keywords if one.arg not in _OWN[op]]
    return _explanation(spot, call, op, foreign) if foreign else None


def _explanation(spot: Spot, call: ast.Call, op: str, foreign: list[ast.keyword]) -> Explanation:
    if [one.arg for one in foreign] == ["stateful"]:
        cause = f"{op} takes no stateful=, as numpy_function does: TensorFlow always takes its body for stateful."
        return Explanation(RULE, spot.file, spot.line, cause, _edit(spot, call, {}, foreign))
    listed = ", ".join(f"{one.arg}=" for one in foreign)
    missing = [name for place, name in enumerate(_OWN[op][:3]) if argument(call, place, name) is None]
    renamed = {str(one.arg): name for one in foreign for name in missing if one.arg in _MEANT[name]}
    if len(renamed) == len(foreign):
        cause = f"{op} takes func, inp and Tout by these names; {listed} is none of its arguments."
        edit = _edit(spot, call, {one: f"{renamed[str(one.arg)]}={spot.source.text(one.value)}" for one in foreign})
        return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit else f"Call it {', '.join(missing)}.")
    cause = (
        f"{op} takes no {listed}, and gives its body the values of inp and nothing else. What is known "
        "when the graph is built goes into a lambda around the body."
    )
    edit = _bound(spot, call, foreign) if not missing else None
    given = argument(call, 0, "func")
    body = short(spot.source.text(given), 30) if given is not None else "f"
    bound = ", ".join(f"{one.arg}={spot.source.text(one.value)}" for one in foreign)
    advice = "" if edit else f"Pass `lambda *inputs: {body}(*inputs, {bound})` as func."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _bound(spot: Spot, call: ast.Call, foreign: list[ast.keyword]) -> Edit | None:
    """The call with the keywords in a lambda around its body; those with tensors come through inp."""
    func, inp = argument(call, 0, "func"), argument(call, 1, "inp")
    if func is None or not isinstance(inp, (ast.List, ast.Tuple)) or not isinstance(func, (ast.Name, ast.Attribute)):
        return None
    source = spot.source
    tensors = [one for one in foreign if any(is_symbolic(spot.value(name)) for name in names(one.value))]
    values = [one for one in foreign if one not in tensors]
    own = [part.id for part in inp.elts if isinstance(part, ast.Name)]
    if len(own) != len(inp.elts) or len(set(own)) != len(own):
        own = [f"x{place}" for place in range(len(inp.elts))]
    taken = [*own, *(str(one.arg) for one in tensors)]
    if len(set(taken)) != len(taken) or set(taken) & {name for one in values for name in names(one.value)}:
        return None
    given = [*own, *(f"{one.arg}={one.arg}" for one in tensors)]
    given += [f"{one.arg}={source.text(one.value)}" for one in values]
    pieces: dict[Any, str] = {func: f"lambda {', '.join(taken)}: {source.text(func)}({', '.join(given)})"}
    if tensors:
        pieces[inp] = f"[{', '.join(source.text(one) for one in (*inp.elts, *(part.value for part in tensors)))}]"
    return _edit(spot, call, pieces, foreign)


def _edit(spot: Spot, call: ast.Call, pieces: Mapping[Any, str], without: Collection[ast.keyword] = ()) -> Edit | None:
    """The call, written again with other text for some of its arguments."""
    texts = {id(part): text for part, text in pieces.items()}
    source = spot.source
    parts = [texts.get(id(one), source.text(one)) for one in call.args]
    for one in call.keywords:
        if one in without:
            continue
        parts.append(texts.get(id(one)) or f"{one.arg}={texts.get(id(one.value), source.text(one.value))}")
    placed = source.replaced({call: f"{source.text(call.func)}({', '.join(parts)})"})
    return edit_of(spot.file, placed)
