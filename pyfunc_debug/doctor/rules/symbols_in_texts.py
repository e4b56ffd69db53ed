"""A text that Python makes of a tensor without a value: `f"{i}.png"` holds `Tensor("args_0:0", ...)`, in each run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.printed import quoted
from pyfunc_debug.doctor.failures.reading.source import dotted, short
from pyfunc_debug.doctor.rules.printed_symbols import ON_PURPOSE, is_log, is_print
from pyfunc_debug.records import Finding

NAMES = ("symbol-in-text",)
_SPEC = re.compile(r"(?:(0?)(\d+))?d?|\.(\d+)f")
_PLAIN = re.compile(r"%[sd]|\{\}")
_WHOLE = re.compile(r"u?int\d+")
_OWN_TEXT = {"__repr__", "__str__", "__format__"}
_KEPT = {"constant", "convert_to_tensor"}
"""What makes a tensor of a text: in its place stands the text's tensor."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a text, with the same text in TensorFlow's ops where it goes to these."""
    found: dict[tuple[str, int, int], tuple[ast.expr, list[dict[str, Any]]]] = {}
    for _, _, noticed in facts.notices["printed-symbol"]:
        file, line = str(noticed["file"]), int(noticed["line"])
        for text in _texts(facts, file, line):
            key = (file, text.lineno, text.col_offset)
            found.setdefault(key, (text, []))[1].append(noticed)
    for (file, line, _), (text, tensors) in found.items():
        functions = pastes.around(facts.tree(file), line, ast.FunctionDef)
        finding = _finding(facts, file, functions[-1], text, tensors) if functions else None
        if finding is not None:
            yield finding


def _texts(facts: Facts, file: str, line: int) -> Iterator[ast.expr]:
    """The expressions on a line that make a text, without parts of another one."""
    own = pastes.source(facts, file)
    statement = own.statement(line)
    if statement is None or isinstance(statement, (ast.Raise, ast.Assert)):
        return
    every = [one for one in ast.walk(statement) if isinstance(one, ast.expr) and _is_text(one)]
    inner = {id(part) for one in every for part in ast.walk(one) if part is not one}
    for one in every:
        if id(one) not in inner and one.lineno <= line <= (one.end_lineno or one.lineno):
            yield one


def _is_text(one: ast.expr) -> bool:
    if isinstance(one, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) for part in one.values)
    if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mod):
        return isinstance(one.left, ast.Constant) and isinstance(one.left.value, str)
    if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Add):
        return _is_text(one.left) or _is_text(one.right)
    if not isinstance(one, ast.Call):
        return False
    plain = isinstance(one.func, ast.Attribute) and one.func.attr == "format"
    return dotted(one.func) == "str" or (plain and isinstance(getattr(one.func, "value", None), ast.Constant))


def _finding(
    facts: Facts, file: str, function: Definition, text: ast.expr, noticed: list[dict[str, Any]]
) -> Finding | None:
    own, name = pastes.source(facts, file), getattr(function, "name", "")
    words = [one.value for one in ast.walk(text) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if any(map(ON_PURPOSE.search, words)) or name in _OWN_TEXT or any(one["graph"] for one in noticed):
        return None
    uses = _uses(own, function, text)
    if not uses or all(_shows(own, one) for one in uses):
        return None
    tf = pastes.module(facts, file, "tensorflow")
    tensors = {called: one for one in noticed for called in one["names"]}
    fits = tf is not None and all(_takes_tensor(own, one, tf) for one in uses)
    new = _in_ops(own, text, tensors, tf) if tf is not None and fits else None
    made = [] if new is None else [(one, own.parent(one)) for one in uses]
    kept = {outer: own.text(one) for one, outer in made if isinstance(outer, ast.Call) and _keeps(outer)}
    pieces: dict[ast.expr, str] = {}
    if new is not None:
        pieces = {text: new} if text not in uses or not kept else {}
        pieces.update({outer: new if text in uses else one for outer, one in kept.items()})
    shown = f"`{short(own.text(text), 40)}`"
    which = next(iter(tensors), "a tensor")
    return Finding(
        NAMES[0], "warning", None, (),
        f"{shown} in {name} is made once, while TensorFlow builds the graph: it holds the name of {which}, "
        '`Tensor("...:0", ...)`, and no run puts a value there',
        pastes.all_replaced(facts, file, pieces) or
        f"{tf or 'tf'}.strings.as_string(...) gives the text of each value as a tensor; where Python needs the text (a "
        f"key, a file that it opens), do that in a {tf or 'tf'}.py_function",
        file, text.lineno, evidence=(f"line {text.lineno}: {facts.line(file, text.lineno)}",),
    )  # fmt: skip


def _uses(own: Any, function: Definition, text: ast.expr) -> list[ast.expr]:
    """Where a text goes: itself, or the names that read it."""
    outer = own.parent(text)
    if isinstance(outer, ast.Assign) and len(outer.targets) == 1 and isinstance(outer.targets[0], ast.Name):
        name = outer.targets[0].id
        return [
            one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name
            and isinstance(one.ctx, ast.Load)
        ]  # fmt: skip
    return [] if isinstance(outer, ast.Expr) else [text]


def _shows(own: Any, use: ast.expr) -> bool:
    """Whether a text is only printed or logged, or is a message of an error or a name of an op."""
    for outer in own.around(use):
        if isinstance(outer, ast.Call) and (is_log(outer) or dotted(outer.func) == "print"):
            return True
        if isinstance(outer, (ast.Raise, ast.Assert)) or (isinstance(outer, ast.keyword) and outer.arg == "name"):
            return True
        if isinstance(outer, ast.Call) and is_print(outer) and own.parent(use) is outer and _is_text(use):
            return True  # the rule printed-symbol has it
        if isinstance(outer, ast.stmt):
            return False
    return False


def _keeps(call: ast.Call) -> bool:
    """Whether a call makes a tensor of a text and nothing else."""
    return dotted(call.func).rpartition(".")[2] in _KEPT and len(call.args) == 1 and not call.keywords


def _takes_tensor(own: Any, use: ast.expr, tf: str) -> bool:
    """Whether a tensor may stand where a text goes: it is returned, or given to TensorFlow's functions."""
    outer = own.parent(use)
    while isinstance(outer, (ast.Tuple, ast.List, ast.Dict)):
        use, outer = outer, own.parent(outer)
    if isinstance(outer, ast.Return):
        return True
    called = dotted(outer.func) if isinstance(outer, ast.Call) and use in outer.args else ""
    part = called.removeprefix(f"{tf}.")
    if part in _KEPT:
        return isinstance(outer, ast.Call) and _keeps(outer)
    return called != part and (part.startswith(("io.", "strings.", "image.")) or part == "print")


def _in_ops(own: Any, text: ast.expr, tensors: dict[str, dict[str, Any]], tf: str) -> str | None:
    """The text as a tensor; None where it is not plain how."""
    pieces: list[tuple[str, bool]] = []  # a text of Python's or of an op, and whether it is an op
    for part, spec in _parts(text):
        if isinstance(part, ast.Constant):
            pieces += [(quoted(str(part.value)), False)] * bool(part.value)
            continue
        known = tensors.get(part.id) if isinstance(part, ast.Name) else None
        if known is None and isinstance(part, ast.Name) and not spec:
            pieces.append((f"str({part.id})", False))
            continue
        made = _as_string(own.text(part), known, spec, tf) if known is not None else None
        if made is None:
            return None
        pieces.append((made, True))
    if not any(op for _, op in pieces):
        return None
    return pieces[0][0] if len(pieces) == 1 else f"{tf}.strings.join([{', '.join(one for one, _ in pieces)}])"


def _as_string(name: str, known: dict[str, Any], spec: str, tf: str) -> str | None:
    found, dtype = _SPEC.fullmatch(spec), known["dtype"]
    if known["rank"] != 0 or found is None:
        return None
    if dtype == "string":
        return name if not spec else None
    if _WHOLE.fullmatch(dtype) and found[3] is None:
        width = f", width={found[2]}" if found[2] else ""
        return f"{tf}.strings.as_string({name}{width}{', fill=' + quoted('0') if found[1] else ''})"
    if "float" in dtype and found[2] is None:
        return f"{tf}.strings.as_string({name}, {f'precision={found[3]}' if found[3] else 'shortest=True'})"
    return None


def _parts(text: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """The constants and values of a text, and how each is formatted; "?" where that is not plain."""
    if isinstance(text, ast.JoinedStr):
        for one in text.values:
            if not isinstance(one, ast.FormattedValue):
                yield one, ""
                continue
            spec = one.format_spec.values if isinstance(one.format_spec, ast.JoinedStr) else []
            fixed = "".join(str(part.value) if isinstance(part, ast.Constant) else "?" for part in spec)
            yield one.value, fixed if one.conversion == -1 else "?"
    elif isinstance(text, ast.BinOp) and isinstance(text.op, ast.Add):
        yield from _parts(text.left)
        yield from _parts(text.right)
    elif isinstance(text, ast.Call) and dotted(text.func) == "str" and len(text.args) == 1:
        yield text.args[0], ""
    elif isinstance(text, (ast.BinOp, ast.Call)):
        of_call = isinstance(text, ast.Call)
        form = getattr(text.func, "value", None) if isinstance(text, ast.Call) else text.left
        values = text.args if isinstance(text, ast.Call) else [text.right]
        values = values[0].elts if isinstance(text, ast.BinOp) and isinstance(values[0], ast.Tuple) else values
        written = form.value if isinstance(form, ast.Constant) else ""
        words = _PLAIN.split(written) if isinstance(written, str) else []
        left = set("{}") if of_call else {"%"}
        fits = len(words) == len(values) + 1 and not any(left & set(one) for one in words)
        if not fits or (isinstance(text, ast.Call) and text.keywords):
            yield text, "?"
            return
        for before, value in zip(words, values):
            yield ast.Constant(before), ""
            yield value, ""
        yield ast.Constant(words[-1]), ""
    else:
        yield text, ""
