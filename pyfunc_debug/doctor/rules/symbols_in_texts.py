"""A text that Python makes of a tensor without a value: `f"{i}.png"` holds `Tensor("args_0:0", ...)`, in each run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.doctor.failures.pastes import texts_in_ops
from pyfunc_debug.doctor.failures.pastes.texts_in_ops import is_text
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.rules.printed_symbols import ON_PURPOSE, is_log, is_print
from pyfunc_debug.records import Finding

NAMES = ("symbol-in-text",)
_OWN_TEXT = {"__repr__", "__str__", "__format__"}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a text, with the same text in TensorFlow's ops where it goes to these."""
    found: dict[tuple[str, int, int], tuple[ast.expr, list[dict[str, Any]]]] = {}
    for _, _, noticed in facts.notices["printed-symbol"]:
        file, line = str(noticed["file"]), int(noticed["line"])
        for text in texts_in_ops.texts_at(pastes.source(facts, file), line):
            key = (file, text.lineno, text.col_offset)
            found.setdefault(key, (text, []))[1].append(noticed)
    told = {(one.file, one.line) for one in failures(facts, NAMES)}
    for (file, line, _), (text, tensors) in found.items():
        function = pastes.source(facts, file).function(line)
        finding = _finding(facts, file, function, text, tensors) if function is not None else None
        if finding is not None and (file, line) not in told:
            yield finding


def _finding(
    facts: Facts, file: str, function: Definition, text: ast.expr, noticed: list[dict[str, Any]]
) -> Finding | None:
    own, name = pastes.source(facts, file), getattr(function, "name", "the lambda")
    words = [one.value for one in ast.walk(text) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if any(map(ON_PURPOSE.search, words)) or name in _OWN_TEXT or any(one["graph"] for one in noticed):
        return None
    uses = texts_in_ops.uses(own, function, text)
    if not uses or all(_shows(own, one) for one in uses):
        return None
    tf = pastes.module(facts, file, "tensorflow")
    pieces = {} if tf is None else texts_in_ops.pieces_in_ops(own, function, text, texts_in_ops.tensors(noticed), tf)
    which = next((called for one in noticed for called in one["names"]), "a tensor")
    return Finding(
        NAMES[0], "warning", None, (), texts_in_ops.cause(own.text(text), name, which),
        pastes.all_replaced(facts, file, pieces) or texts_in_ops.advice(tf or "tf"),
        file, text.lineno, evidence=(f"line {text.lineno}: {facts.line(file, text.lineno)}",),
    )  # fmt: skip


def _shows(own: Any, use: ast.expr) -> bool:
    """Whether a text is only printed or logged, or is a message of an error or a name of an op."""
    for outer in own.around(use):
        if isinstance(outer, ast.Call) and (is_log(outer) or dotted(outer.func) == "print"):
            return True
        if isinstance(outer, (ast.Raise, ast.Assert)) or (isinstance(outer, ast.keyword) and outer.arg == "name"):
            return True
        if isinstance(outer, ast.Call) and is_print(outer) and own.parent(use) is outer and is_text(use):
            return True  # the rule printed-symbol has it
        if isinstance(outer, ast.stmt):
            return False
    return False
