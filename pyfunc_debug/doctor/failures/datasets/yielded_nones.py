"""A part of a yielded element that is None: left out of the yield and of what declares it, or a value in its place."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.datasets import generator_calls, odd_elements, signature_parts, yielded_keys
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, together
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, short
from pyfunc_debug.doctor.failures.reading.symbols import alias

RULE = "generator"
_MOST = 60
"""A paste over more lines is not read."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if parts of the element that was refused are None."""
    values, _ = yielded_keys.element(situation)
    nones = [path for path, one in signature_parts.paths(values) if one is None]
    calls = generator_calls.calls(situation)
    if not nones or not calls:
        return None
    file, source, call = calls[0]
    function = generator_calls.function_of(source, generator_calls.given(call))
    yields = generator_calls.yields_of(function)
    line = yielded_keys.line_of(yields, situation, call)
    ran = yielded_keys.fitting(yields, values, function)
    what = " and ".join(map(_named, nones))
    made = yielded_keys.part_at(ran[0].value, nones[0], function) if len(ran) == 1 else None
    text = source.text(made) if made is not None and not isinstance(made, ast.Constant) else ""
    said = f", {short(text, 40)}," if text and len(nones) == 1 else ""
    number = odd_elements.its_number(situation)
    if number is not None and number > 1:
        cause = f"the generator yields None for {what}{said} in its element {number:,}, and none before it was None."
        cause += " TensorFlow has no dtype for None."
        advice = "Leave such elements out, with `if ... is None: continue` above the yield, or yield a value that "
        advice += "stands for it, as -1 or zeros."
        return Explanation(RULE, file, line, cause, None, advice)
    cause = f"the generator yields None for {what}{said} in its first element, and TensorFlow has no dtype for None."
    keys = [str(path[-1]) for path in nones if path and isinstance(path[-1], str)]
    edit = _left_out(file, source, call, ran, keys) if keys and len(keys) == len(nones) else None
    several = len(nones) > 1
    if edit is not None:
        each = f"{'They are' if several else 'It is'} left out of the yield and of what declares {_it(several)}"
        cause += f" {each}: right where it is None in every element."
        return Explanation(RULE, file, line, cause, edit, "", "likely")
    tf = alias(situation.spots[0], "tensorflow") if situation.spots else "tf"
    signed = any(one.arg == "output_signature" for one in call.keywords)
    where = " and of output_signature" if signed else ", of output_types and of output_shapes"
    advice = f"Leave {_it(several)} out of the yield{where}, or yield a value that stands for {_it(several)}, as "
    advice += f"zeros. Where a model wants None, output_signature can say so: {tf}.NoneTensorSpec()."
    return Explanation(RULE, file, line, cause, None, advice)


def _it(several: bool) -> str:
    return "them" if several else "it"


def _named(path: tuple[Any, ...]) -> str:
    if path and isinstance(path[-1], str):
        return repr(path[-1])
    return "element" + "".join(f"[{place!r}]" for place in path) if path else "an element"


def _left_out(file: str, source: Source, call: ast.Call, ran: list[ast.Yield], keys: list[str]) -> Edit | None:
    """The dicts with these keys, in the yield and in what declares it, without them.

    None where the rest of the file reads such a key, as a model with an input of that name does.
    """
    if len(ran) != 1:
        return None
    declared = [call, *generator_calls.assigned(call, source)]
    dicts: dict[int, ast.Dict] = {}
    for one in (ran[0], *declared):
        found = [part for part in ast.walk(one) if isinstance(part, ast.Dict) and _has(part, keys)]
        if one is ran[0] and len(found) != 1:
            return None
        dicts |= {id(part): part for part in found}
    function = source.function(ran[0].lineno)
    within = {id(part) for one in dicts.values() for part in one.keys}
    within |= {id(part) for part in ast.walk(function)} if function is not None else set()
    used = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Constant) and one.value in keys and id(one) not in within
    ]  # fmt: skip
    if used or len(dicts) < 2:
        return None
    edits: list[Edit] = []
    for part in dicts.values():
        edit = _without(file, source, part, keys)
        if edit is None or any(edit.first <= one.last and one.first <= edit.last for one in edits):
            return None
        edits.append(edit)
    edit = together(edits, source.lines)
    return edit if edit.last - edit.first < _MOST else None


def _has(node: ast.Dict, keys: list[str]) -> bool:
    written = [getattr(key, "value", None) for key in node.keys]
    return {*keys} <= {*written} and None not in node.keys and len(written) > len(keys)


def _without(file: str, source: Source, node: ast.Dict, keys: list[str]) -> Edit | None:
    """A dict without some keys: lines of its own go, else its text changes."""
    pairs = [(key, value) for key, value in zip(node.keys, node.values) if key is not None]
    gone = [(key, value) for key, value in pairs if getattr(key, "value", None) in keys]
    spans = [(key.lineno, value.end_lineno or value.lineno) for key, value in gone]
    if all(yielded_keys.is_alone(span, pairs, node) for span in spans):
        first, last = node.lineno, node.end_lineno or node.lineno
        dropped = {line for begin, end in spans for line in range(begin, end + 1)}
        kept = [text for line, text in enumerate(source.lines[first - 1 : last], first) if line not in dropped]
        return Edit(file, first, last, tuple(kept))
    left = [f"{source.text(key)}: {source.text(value)}" for key, value in pairs if (key, value) not in gone]
    return Edit(file, *source.kept_lines({node: f"{{{', '.join(left)}}}"}))
