"""`tf.einsum("bqd,bdk->bqk", q, k)` whose letters stand in another order than the sizes of its inputs."""

from __future__ import annotations

import ast
import itertools
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading import evaluation
from pyfunc_debug.doctor.failures.reading.refused_ops import Refused, Shape, each, shape_at
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of

_SAID = re.compile(
    r"Expected dimension \d+ at axis \d+ of the input shaped \[|Dimensions must be equal, but are .*= Einsum\["
)


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the letters of one input in another order fit the sizes."""
    return each(situation, _told) if _SAID.search(situation.message) else None


def _told(place: Refused) -> Explanation | None:
    found = place.calls_of("einsum")
    given = found[0].args if len(found) == 1 and len(found[0].args) > 1 else []
    text = evaluation.computed(given[0], place.spot) if given else None
    if not isinstance(text, str) or "." in text or "->" not in text:
        return None
    head, _, tail = text.replace(" ", "").partition("->")
    terms, inputs = head.split(","), given[1:]
    shapes = [shape_at(one, place.spot) for one in inputs]
    known = [one for one in shapes if one is not None]
    if len(terms) != len(inputs) or len(known) != len(shapes) or not isinstance(given[0], ast.Constant):
        return None
    if any(len(term) != len(shape) for term, shape in zip(terms, known)):
        return None
    for at, term in enumerate(terms):
        turned = {"".join(one) for one in itertools.permutations(term)} - {term} if len(term) < 5 else set()
        fitting = sorted(one for one in turned if _fit([*terms[:at], one, *terms[at + 1 :]], known))
        if len(fitting) == 1:
            name, shape = short(place.text(inputs[at]), 30), known[at]
            new = ",".join([*terms[:at], fitting[0], *terms[at + 1 :]])
            letter, two = _clash(terms, known)
            cause = (
                f"{letter!r} is {two[0]} in one input and {two[1]} in another. {name} has the shape {sizes_of(shape)}: "
                f"as {fitting[0]!r} its sizes fit."
            )
            return place.told(cause, {given[0]: f'"{new}->{tail}"'})
    return None


def _sizes(terms: list[str], shapes: list[Shape]) -> dict[str, list[int]]:
    """The sizes that each letter stands for, each once."""
    found: dict[str, list[int]] = {}
    for term, shape in zip(terms, shapes):
        for letter, size in zip(term, shape):
            if size is not None and size not in found.setdefault(letter, []):
                found[letter].append(size)
    return found


def _fit(terms: list[str], shapes: list[Shape]) -> bool:
    return all(len(one) <= 1 for one in _sizes(terms, shapes).values())


def _clash(terms: list[str], shapes: list[Shape]) -> tuple[str, list[int]]:
    return next((letter, two) for letter, two in _sizes(terms, shapes).items() if len(two) > 1)
