"""A body that goes through the letters of a text, and looks each up among words."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.run_functions import functions_that_ran
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.records import Finding

NAMES = ("letters-for-words",)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a loop."""
    for ran in functions_that_ran(facts):
        own = pastes.source(facts, ran.file)
        for target, text in _loops(ran.function):
            name = _looked_up(ran.function, target)
            words = _words_of(own, name) if name else None
            if words is None:
                continue
            shown = own.text(text)
            yield Finding(
                NAMES[0], "error", ran.group[0].id if ran.group else None, (),
                f"a loop over {shown} gives its letters one by one, and {name} (line {words.lineno}) holds words: "
                f"{target} is none of these, but where a word has one letter",
                pastes.written(pastes.replaced(facts, ran.file, {text: f"{shown}.split()"})) or f"{shown}.split()",
                ran.file, text.lineno, several(one.id for one in ran.group),
                (f"line {words.lineno}: {facts.line(ran.file, words.lineno)}",), confidence="likely",
            )  # fmt: skip


def _loops(function: Definition) -> Iterator[tuple[str, ast.expr]]:
    """The loops over a text as a whole: `for word in text.decode()`, with the name of what they give."""
    for one in pastes.walk(function, ast.AST):
        loop = isinstance(one, (ast.For, ast.comprehension))
        if loop and isinstance(one.target, ast.Name) and _is_text(function, one.iter):  # type: ignore[attr-defined]
            yield one.target.id, one.iter  # type: ignore[attr-defined]


def _is_text(function: Definition, node: ast.expr, deep: int = 3) -> bool:
    """Whether an expression is a text: decoded, in small letters, without spaces around it."""
    if isinstance(node, ast.Name) and deep:
        made = pastes.assigned(function, node.id)
        return len(made) == 1 and made[0].lineno < node.lineno and _is_text(function, made[0], deep - 1)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "decode":
        return True
    same = node.func.attr in ("lower", "strip", "upper", "replace", "rstrip")
    return same and _is_text(function, node.func.value, deep)


def _looked_up(function: Definition, target: str) -> str:
    """The dict of the module that each is looked up in: `vocab.get(word, 0)`, `vocab[word]`."""
    local = code.local_names(function)
    for one in pastes.walk(function, ast.AST):
        place: ast.expr | None = None
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "get" and one.args:
            place = one.func.value if ast.unparse(one.args[0]) == target else None
        elif isinstance(one, ast.Subscript) and ast.unparse(one.slice) == target:
            place = one.value
        if isinstance(place, ast.Name) and place.id not in local:
            return place.id
    return ""


def _words_of(own: Source, name: str, deep: int = 3) -> ast.expr | None:
    """What makes words: the `split` that a dict of the module is made of."""
    for made in pastes.assigned(own.tree, name):
        if any(pastes.last_name(one.func) in ("split", "word_tokenize") for one in pastes.walk(made, ast.Call)):
            return made
        for one in pastes.walk(made, ast.Name) if deep else ():
            if one.id != name and (found := _words_of(own, one.id, deep - 1)) is not None:
                return found
    return None
