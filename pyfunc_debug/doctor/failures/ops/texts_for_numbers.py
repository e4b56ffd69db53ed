"""A number that is a text, '8', where a call takes a number: from the command line, the environment or a file."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source, short
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup

RULE = "structure"
_NUMBER = re.compile(r"[-+]?(?:\d+|\d*\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)")
_OF_TEXT = re.compile(r"\bstr(?:ing)?\b|DT_STRING")
_REFUSED = re.compile(r"(?:could not convert string to float|invalid literal for int\(\) with base \d+): '(.*)'")
"""What Python says of the one text that it could not read as a number."""
_KINDS = ("TypeError", "ValueError", "InvalidArgumentError", "UFuncTypeError", "UFuncNoLoopError", "_UFuncNoLoopError")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the line that failed has one value that is a number's text, and the message is about it."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.kind not in _KINDS:
        return None
    found: dict[str, tuple[ast.expr, str]] = {}
    for node in ast.walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
            value = lookup(node, spot)
            if type(value) is str and _NUMBER.fullmatch(value):
                found.setdefault(spot.source.text(node), (node, value))
    if len(found) != 1:
        return None
    ((text, (node, value)),) = found.items()
    refused = _REFUSED.search(situation.message)
    if refused is not None and refused[1] != value:
        return None
    if repr(value) not in situation.message and not _OF_TEXT.search(situation.message):
        return None
    kind = "int" if value.lstrip("+-").isdigit() else "float"
    cause = f"{short(text, 40)} is the text {value!r}, and a number is needed there."
    option = _option(situation, node)
    if option is not None:
        file, source, call = option
        cause += " What the command line gives is text, unless add_argument says a type."
        new = source.with_argument(call, f"type={kind}")
        edit = edit_of(file, source.replaced({call: new}))
        return Explanation(RULE, file, call.lineno, cause, edit, "" if edit else f"Give add_argument type={kind}.")
    edit = edit_of(spot.file, spot.source.replaced({node: f"{kind}({text})"}))
    return Explanation(RULE, spot.file, node.lineno, cause, edit, "" if edit else f"Make it a number: {kind}({text}).")


def _option(situation: Situation, node: ast.expr) -> tuple[str, Source, ast.Call] | None:
    """The file, its source and the `add_argument` without a type of an option `args.batch_size`."""
    if not isinstance(node, ast.Attribute):
        return None
    for file, source in situation.sources():
        for call in calls(source.tree):
            if not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
                continue
            named = [str(one.value) for one in call.args if isinstance(one, ast.Constant)]
            dest = next((ast.literal_eval(one.value) for one in call.keywords
                         if one.arg == "dest" and isinstance(one.value, ast.Constant)), "")  # fmt: skip
            names = {dest} if dest else {one.lstrip("-").replace("-", "_") for one in named}
            if node.attr in names and not any(one.arg in ("type", "action") for one in call.keywords):
                return file, source, call
    return None
