"""Text in `from_generator(args=...)` for a library's generator: it comes as bytes, and only a lambda keeps it text."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.body_edits import RULE
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import dotted

_BYTES = re.compile(r"\bbytes\b|path-like|np\.bytes_|\bb'")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if code of a library's failed on bytes, and a generator of its own was given text by args."""
    if not situation.body or not _BYTES.search(situation.message) or situation.kind not in ("TypeError", "ValueError"):
        return None
    files = {file for file, _ in situation.sources()}
    if any(frame.f_code.co_filename in files for frame in frames(situation.inner.__traceback__)):
        return None
    found = [
        (file, source, call) for file, source in situation.sources()
        for call in source.calls_of(frozenset({"from_generator"}))
    ]  # fmt: skip
    if len(found) != 1:
        return None
    file, source, call = found[0]
    named = {one.arg: one.value for one in call.keywords}
    given = named.get("generator", call.args[0] if call.args else None)
    texts = named.get("args")
    if not isinstance(given, (ast.Name, ast.Attribute)) or not isinstance(texts, (ast.List, ast.Tuple)):
        return None
    name = dotted(given)
    if not name or _defines(situation, name.rpartition(".")[2]):
        return None
    if not any(_is_text(one, situation) for one in texts.elts):
        return None
    lines = [f"lambda: {source.text(given)}({', '.join(map(source.text, texts.elts))})"]
    lines += [source.text(one) for one in call.args[1:]]
    lines += [f"{one.arg}={source.text(one.value)}" for one in call.keywords if one.arg not in ("args", "generator")]
    found_lines = source.replaced({call: f"{source.text(call.func)}({', '.join(lines)})"})
    cause = (
        f"args gives {name} its text as bytes: they are tensors on the way, and its code takes text. A lambda hands "
        "Python's own values over."
    )
    edit = edit_of(file, found_lines)
    return Explanation(RULE, file, call.lineno, cause, edit, "" if edit else f"Pass `{lines[0]}`, without args.")


def _defines(situation: Situation, name: str) -> bool:
    """Whether one of the user's files has a function of that name."""
    trees = [source.tree for _, source in situation.sources()]
    return any(isinstance(one, ast.FunctionDef) and one.name == name for tree in trees for one in ast.walk(tree))


def _is_text(node: ast.expr, situation: Situation) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    values = [spot.value(node.id) for spot in situation.spots] if isinstance(node, ast.Name) else []
    return any(isinstance(one, str) for one in values)
