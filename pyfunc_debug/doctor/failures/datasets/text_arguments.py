"""Text in `from_generator(args=...)` for a library's generator: it comes as bytes, and only a lambda keeps it text."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from pyfunc_debug.doctor.failures.datasets import generator_calls
from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of, together
from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import Source, begins, dotted

_BYTES = re.compile(r"\bbytes\b|path-like|np\.bytes_|\bb'")
_NEAR = 12
"""Lines between two calls that one paste changes."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if code of a library's failed on bytes, and a generator of its own was given text by args."""
    if not situation.body or not _BYTES.search(situation.message) or situation.kind not in ("TypeError", "ValueError"):
        return None
    files = {file for file, _ in situation.sources()}
    if any(begins(frame.f_code)[0] in files for frame in frames(situation.inner.__traceback__)):
        return None
    for file, source in situation.sources():
        found = {
            one: new for one in source.calls_of(frozenset({"from_generator"}))
            if (new := _of_library(one, source, situation)) is not None
        }  # fmt: skip
        if found:
            return _explained(found, file, source)
    return None


def _explained(found: dict[ast.Call, str], file: str, source: Source) -> Explanation:
    """The explanation of calls of a library's generators, one or several, each with the lambda in its place."""
    call = next(iter(found))
    cause = (
        f"args gives {dotted(generator_calls.given(call))} its text as bytes: they are tensors on the way, and its "
        "code takes text. A lambda hands Python's own values over."
    )
    edits = [
        edit_of(file, source.replaced({one: f"{source.text(one.func)}({text})"})) for one, text in found.items()
    ]  # fmt: skip
    made = sorted((one for one in edits if one is not None), key=lambda one: one.first)
    near = all(after.first - before.last in range(1, _NEAR) for before, after in pairwise(made))
    edit = together(made, source.lines) if len(made) == len(found) and near else edits[0]
    advice = "" if edit else "Pass a lambda that calls it with these values, without args."
    return Explanation(RULE, file, call.lineno, cause, edit, advice)


def called_with_values(call: ast.Call, source: Source) -> str:
    """The arguments of from_generator with a lambda in the place of `args`; "" where these are not written there."""
    given = generator_calls.given(call)
    values = next((one.value for one in call.keywords if one.arg == "args"), None)
    if not isinstance(given, (ast.Name, ast.Attribute)) or not isinstance(values, (ast.List, ast.Tuple)):
        return ""
    lines = [f"lambda: {source.text(given)}({', '.join(map(source.text, values.elts))})"]
    lines += [source.text(one) for one in call.args[1:]]
    lines += [f"{one.arg}={source.text(one.value)}" for one in call.keywords if one.arg not in ("args", "generator")]
    return ", ".join(lines)


def handed_over(call: ast.Call, source: Source, file: str) -> Edit | None:
    """A call of from_generator with a lambda that gives the generator its arguments, in the place of `args`."""
    text, given = called_with_values(call, source), generator_calls.given(call)
    word = next((one for one in call.keywords if one.arg == "args"), None)
    if not text or given is None or word is None:
        return None
    first, last = word.lineno, word.end_lineno or word.lineno
    values = getattr(word.value, "elts", ())
    line = "".join(source.lines[first - 1 : last]).strip()
    alone = line.startswith("args") and line.rstrip(",").endswith((")", "]")) and first > (given.end_lineno or 0)
    if not alone or line.endswith("))") or any(one.lineno == first for one in call.keywords if one is not word):
        return edit_of(file, source.replaced({call: f"{source.text(call.func)}({text})"}))
    new = f"lambda: {source.text(given)}({', '.join(map(source.text, values))})"
    return Edit(file, given.lineno, last, source.spliced({given: new}, given.lineno, first - 1))


def _of_library(call: ast.Call, source: Source, situation: Situation) -> str | None:
    """The arguments of from_generator with a lambda for `args`, where a library's generator gets text by these."""
    given = generator_calls.given(call)
    texts = next((one.value for one in call.keywords if one.arg == "args"), None)
    if not isinstance(given, (ast.Name, ast.Attribute)) or not isinstance(texts, (ast.List, ast.Tuple)):
        return None
    name = dotted(given)
    if not name or _defines(situation, name.rpartition(".")[2]):
        return None
    if not any(_is_text(one, situation) for one in texts.elts):
        return None
    return called_with_values(call, source)


def _defines(situation: Situation, name: str) -> bool:
    """Whether one of the user's files has a function of that name."""
    trees = [source.tree for _, source in situation.sources()]
    return any(isinstance(one, ast.FunctionDef) and one.name == name for tree in trees for one in ast.walk(tree))


def _is_text(node: ast.expr, situation: Situation) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    values = [spot.value(node.id) for spot in situation.spots] if isinstance(node, ast.Name) else []
    return any(isinstance(one, str) for one in values)
