"""Elements that are larger than `padded_shapes`: which part, in which call, and the size that is written for it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.datasets.padded_ranks import components, making_node, padded_stage
from pyfunc_debug.doctor.failures.reading.shapes import Shape, written
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.interception.names.private import dataset_inputs

_RESULTS = (
    "SELECT v.shape FROM call c JOIN value v ON v.call = c.id WHERE c.node = ? AND c.kind = 'forward' "
    "AND v.role = 'output' AND v.position = ? AND v.shape IS NOT NULL ORDER BY c.id"
)


@dataclass(frozen=True)
class Larger:
    """A part of an element that has more of an axis than its padded shape.

    Attributes:
      place: Its number among the parts, in the order in which TensorFlow counts them.
      key: Its key, where elements are dicts; else "".
      count: How many parts there are; 0 where they nest deeper than in one tuple or dict.
      shape: The first that was larger.
      padded: What padded_shapes says of it.
      fitted: The same, with None for each size that was too small in any call.
    """

    place: int
    key: str
    count: int
    shape: Shape
    padded: Shape
    fitted: Shape

    def words(self) -> str:
        """`mel is [1012, 80], larger than the [871, 80]`."""
        what = self.key or ("an element" if self.count == 1 else f"part {self.place + 1} of an element")
        return f"{what} is {written(self.shape)}, larger than {written(self.padded)}"


def larger(situation: Situation) -> list[Larger]:
    """The parts of elements that were recorded as larger than the one padded_batch of the program says."""
    stage = padded_stage(situation)
    below = dataset_inputs(stage) if stage is not None else []
    node = making_node(situation, below[0]) if len(below) == 1 else None
    if stage is None or node is None:
        return []
    spec, found = stage.element_spec, []
    specs = list(components(spec))
    keys = sorted(map(str, spec)) if isinstance(spec, dict) and len(spec) == len(specs) else [""] * len(specs)
    beside = [*spec.values()] if isinstance(spec, dict) else [*spec] if type(spec) is tuple else [spec]
    count = len(specs) if not any(isinstance(one, (dict, tuple)) for one in beside) else 0
    for place, (key, own) in enumerate(zip(keys, specs)):
        shape: Any = getattr(own, "shape", None)
        if shape is None or shape.rank is None:
            continue
        padded = tuple(shape.as_list()[1:])
        seen = [tuple(json.loads(text)) for (text,) in situation.rows(_RESULTS, (node.id, place))]
        seen = [one for one in seen if len(one) == len(padded)]
        over = [one for one in seen if any(size is not None and own > size for own, size in zip(one, padded))]
        if over:
            most = [max(sizes) for sizes in zip(*over)]
            fitted = tuple(None if size is None or own > size else size for own, size in zip(most, padded))
            found.append(Larger(place, key, count, over[0], padded, fitted))
    return found


def places(source: Source, asked: ast.expr, found: list[Larger]) -> dict[ast.expr, str]:
    """The shapes that are written for these parts, each with what fits; empty where one of them is not there."""
    if isinstance(asked, ast.Name):
        values = list(_values(source, asked.id))
        if len(values) != 1:
            return {}
        asked = values[0]
    pieces: dict[ast.expr, str] = {}
    for one in found:
        part: ast.expr | None = asked if one.count == 1 and not isinstance(asked, ast.Dict) else None
        if isinstance(asked, ast.Dict) and one.key and one.count:
            keys = [key.value if isinstance(key, ast.Constant) else None for key in asked.keys]
            part = asked.values[keys.index(one.key)] if keys.count(one.key) == 1 else None
        elif isinstance(asked, ast.Tuple) and len(asked.elts) == one.count > 1:
            part = asked.elts[one.place]
        if part is None:
            return {}
        pieces[part] = written(one.fitted)
    return pieces


def _values(source: Source, name: str) -> Iterator[ast.expr]:
    """What is assigned to a name in a file."""
    for one in ast.walk(source.tree):
        if isinstance(one, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in one.targets):
            yield one.value
