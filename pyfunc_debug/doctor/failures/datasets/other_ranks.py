"""A generator that yields an element of another rank than those before it, on which an op of the dataset fails."""

from __future__ import annotations

import json
import re
from collections import Counter

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.nodes import Node, user_generators
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.generators.element_numbers import element_number

RULE = "generator"
_SHAPES = re.compile(r"shape|rank|dimension|ndims|axis|size", re.I)
_LEAST = 2
"""Elements that say of what rank they are."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if one element of a generator's had another number of axes than the others."""
    spot = situation.last
    if spot is None or situation.body or not type(situation.error).__module__.startswith("tensorflow."):
        return None
    if not _SHAPES.search(situation.text):
        return None
    for node in user_generators(situation):
        found = _other(node, situation)
        if found is not None:
            odd, usual, call, count = found
            number = element_number(situation.rows, node.id, call)
            which = f" as element {number:,}" if number is not None else " once"
            cause = (
                f"{node.called} yielded a value of shape {odd}{which}, where {count:,} others had {usual}: an op of "
                "the dataset failed on the number of its axes."
            )
            advice = f"Let {node.called} yield one number of axes."
            if usual.count(",") == 2 and usual.endswith(" 3]") and odd.removesuffix("]") == usual.rpartition(",")[0]:
                advice = "A grey image has no axis of colours: `np.stack([image] * 3, axis=-1)` has one."
            line = node.line if node.file is not None and node.line is not None else spot.line
            return Explanation(RULE, node.file or spot.file, line, cause, None, advice, "likely")
    return None


def _other(node: Node, situation: Situation) -> tuple[str, str, int, int] | None:
    """The odd element's shape, that of the others, its call, and how many others there are.

    Its dtype is not known: TensorFlow has cast it to what from_generator declares.
    """
    rows = situation.rows(
        "SELECT v.call, v.path, v.shape FROM value v JOIN call c ON c.id = v.call "
        "WHERE c.node = ? AND v.role = 'output' ORDER BY v.call",
        (node.id,),
    )
    by_path: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    for call, path, text in rows:
        if text:
            by_path.setdefault(path, []).append((call, tuple(json.loads(text))))
    for given in by_path.values():
        ranks = Counter(len(shape) for _, shape in given)
        (usual, count), *rest = ranks.most_common()
        if len(rest) != 1 or count < _LEAST or count <= rest[0][1]:
            continue
        call, shape = next(one for one in given if len(one[1]) != usual)
        like = next(one for one in given if len(one[1]) == usual)
        return f"{list(shape)}", f"{list(like[1])}", call, count
    return None
