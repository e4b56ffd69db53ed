"""Calls of `Dataset.zip` in a program: what made the datasets that they pair, and which of them are labels."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts

CLASS = re.compile(r"(?:bool|u?int\d+)\[\]")
"""One whole number an element: a class."""
_LABELS = re.compile(
    r"\b(?:ys?|labels?|targets?|masks?|truths?|class(?:es)?|captions?|annotations?|answers?|segmentations?)\b"
)


def zips(tree: ast.Module | None) -> list[ast.Call]:
    """Calls of Dataset.zip."""
    return [
        one for one in pastes.walk(tree, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "zip"
        and ast.unparse(one.func.value).endswith("Dataset")
    ]  # fmt: skip


def way(facts: Facts, file: str, value: ast.expr, before: ast.Call) -> list[ast.Call]:
    """The calls that made a dataset, the last first, through the variables of the zip's function; empty if unknown."""
    own = pastes.source(facts, file)
    scope = next((one for one in own.around(before) if isinstance(one, ast.FunctionDef)), facts.tree(file))
    found: list[ast.Call] = []
    line = before.lineno
    for _ in range(50):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            found.append(value)
            if ast.unparse(value.func.value).endswith("Dataset"):
                return found
            value = value.func.value
        elif isinstance(value, ast.Name):
            name = value.id
            made = [
                one for one in pastes.walk(scope, ast.Assign) if (one.end_lineno or one.lineno) < line
                and any(isinstance(target, ast.Name) and target.id == name for target in one.targets)
            ]  # fmt: skip
            if not made:
                return []
            last = max(made, key=lambda one: one.lineno)
            value, line = last.value, last.lineno
        else:
            return []
    return []


def are_labels(made: list[ast.Call], given: ast.expr) -> bool:
    """Whether the program calls a side's data labels."""
    texts = [ast.unparse(given) if isinstance(given, ast.Name) else ""]
    texts += [ast.unparse(one) for call in made[-1:] for one in call.args]
    words = [re.sub(r"[^a-z]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()) for text in texts]
    return any(_LABELS.search(text) for text in words)


def is_of_labels(
    facts: Facts, file: str, call: ast.Call, given: Sequence[ast.expr], sides: Sequence[dict[str, Any]]
) -> bool:
    """Whether a call of zip pairs inputs with labels, and is the only one that may have these sides."""
    ways = [way(facts, file, one, call) for one in given]
    if not all(ways) or len(zips(facts.tree(file))) > 1:
        return False
    kinds = [bool(CLASS.fullmatch(side["reads"])) for side in sides]
    if kinds[0] != kinds[1] or sum(are_labels(one, own) for one, own in zip(ways, given)) == 1:
        return True
    code = "\n".join(facts.code(file))
    return ".fit(" in code and ".compile(" in code and "def train_step" not in code


def zips_of_labels(
    facts: Facts, fits: Callable[[Sequence[dict[str, Any]]], bool]
) -> Iterator[tuple[str, ast.Call, list[ast.expr], Sequence[dict[str, Any]]]]:
    """The calls of zip in the program that may have paired what its loops read: file, call, arguments, and sides.

    Args:
      facts: The recording.
      fits: Whether the two sides of a zip are asked for.
    """
    for loop in facts.meta.get("inputs") or []:
        for stage in loop["stages"] if loop["site"] is not None else ():
            sides = stage.get("sides") or []
            if len(sides) != 2 or not fits(sides):
                continue
            for file, call in [(each, one) for each in facts.files for one in zips(facts.tree(each))]:
                given = listed_arguments(call)
                if len(given) == 2 and is_of_labels(facts, file, call, given, sides):
                    yield file, call, given, sides


def listed_arguments(call: ast.Call) -> list[ast.expr]:
    """The datasets that a call of zip pairs: of one tuple, or each an argument."""
    return call.args[0].elts if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple) else call.args
