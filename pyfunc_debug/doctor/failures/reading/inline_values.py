"""Arrays and datasets that are made inside of a call, read as if they had names: `fit(np.ones((4, 3)), y)`.

A name is looked up, and what an expression gives is gone with the call, unless a frame of the library that was called
still has it. One that only computes is evaluated once more: it draws from a generator of its own, and a dataset is made
only where no function of the user's is traced for it.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from collections import ChainMap
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

from pyfunc_debug.doctor.failures.reading.evaluation import eagerly, evaluated, given_names
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, lines_of
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, of_package
from pyfunc_debug.program.frames import is_installed
from pyfunc_debug.program.syntax import copied

_HANDLER = "error_handler"
_LIBRARY = re.compile(r"[/\\](?:tensorflow|keras|tf_keras)[/\\]")
_DRAWN, _DATASET = "<drawn>", "<dataset>"
_OF_DATASETS = frozenset(
    ("from_tensor_slices", "from_tensors", "range", "batch", "padded_batch", "shuffle", "repeat", "take", "skip",
     "prefetch", "cache", "zip")
)  # fmt: skip
"""What makes or changes a dataset and traces no function."""
_MADE = (ast.Call, ast.BinOp, ast.Subscript, ast.UnaryOp)


def inline_values(source: Source, situation: Situation) -> Situation:
    """Gives each expression of the lines that failed, and of those that it belongs to, a name and its value."""
    spots = []
    for spot in situation.spots:
        found: dict[str, Any] = {}
        if spot.source is source and spot.statement is not None:
            kept = _kept(situation, spot)
            for holder, field, place, node in _given(spot.statement):
                value = kept.get(node)
                value = _value(node, spot) if value is None else value
                if value is None:
                    continue
                name = source.text(node)
                found[name] = value
                named = ast.copy_location(ast.Name(name, ast.Load()), node)
                if place is None:
                    setattr(holder, field, named)
                else:
                    getattr(holder, field)[place] = named
        spots.append(dataclasses.replace(spot, variables=ChainMap(found, dict(spot.variables))) if found else spot)
    return dataclasses.replace(situation, spots=tuple(spots))


def _kept(situation: Situation, spot: Spot) -> dict[ast.expr, Any]:
    """The arguments of the call of TensorFlow's or Keras' at which a line was: the frame that it led to has them."""
    frames = list(lines_of((situation.error, situation.inner)))
    for (outer, line), (frame, _) in pairwise(frames):
        file = frame.f_code.co_filename
        if frame.f_code.co_name != _HANDLER or not is_installed(file) or not _LIBRARY.search(file):
            continue
        if frame.f_back is not outer or situation.place(outer.f_code.co_filename, line) != (spot.file, spot.line):
            continue
        given, words = frame.f_locals.get("args"), frame.f_locals.get("kwargs")
        name = getattr(frame.f_locals.get("fn"), "__name__", "")
        called = [one for one in calls(spot.statement or ast.Pass()) if dotted(one.func).rpartition(".")[2] == name]
        if len(called) != 1 or not isinstance(given, tuple) or not isinstance(words, dict):
            continue
        call = called[0]
        before = len(given) - len(call.args)  # the object whose method it is
        starred = any(isinstance(one, ast.Starred) for one in call.args)
        found = {} if starred or before not in (0, 1) else dict(zip(call.args, given[before:]))
        found |= {one.value: words[one.arg] for one in call.keywords if one.arg in words}
        return dict(_parts(found))
    return {}


def _parts(found: dict[ast.expr, Any]) -> Iterator[tuple[ast.expr, Any]]:
    """Expressions and values, also of the parts of written tuples and lists."""
    for node, value in found.items():
        yield node, value
        written = node.elts if isinstance(node, (ast.Tuple, ast.List)) else []
        if written and isinstance(value, (tuple, list)) and len(value) == len(written):
            yield from _parts(dict(zip(written, value)))


def _given(statement: ast.stmt) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    """What the calls of a statement are given, and where it stands; the outer ones first."""
    done: set[ast.AST] = set()
    for call in [one for one in ast.walk(statement) if isinstance(one, ast.Call)]:
        if any(call in ast.walk(one) for one in done):
            continue
        places: list[tuple[ast.AST, str, int | None, ast.expr]]
        places = [(call, "args", place, one) for place, one in enumerate(call.args)]
        places += [(one, "value", None, one.value) for one in call.keywords]
        while places:
            holder, field, place, node = places.pop(0)
            if isinstance(node, (ast.Tuple, ast.List)):
                places += [(node, "elts", number, one) for number, one in enumerate(node.elts)]
            elif isinstance(node, _MADE):
                done.add(node)
                yield holder, field, place, node


def _value(node: ast.expr, spot: Spot) -> Any:
    """What an expression gives, if it only computes, draws, or makes a dataset of arrays."""
    tree = ast.fix_missing_locations(_Apart(spot).visit(copied(node)))
    given = given_names(tree, spot, _known())
    if given is None:
        return None
    with suppress(Exception), eagerly():
        return evaluated(tree, given)
    return None


class _Apart(ast.NodeTransformer):
    """NumPy's draws as such of a generator of our own, and datasets that trace nothing by a name that may be used."""

    def __init__(self, spot: Spot) -> None:
        self._spot = spot

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        func = node.func
        if not isinstance(func, ast.Attribute):
            return node
        if getattr(of_package(func.value, self._spot), "__name__", "") == "numpy.random":
            drawn = "random_sample" if func.attr == "random" else func.attr
            node.func = ast.Attribute(ast.Name(_DRAWN, ast.Load()), drawn, ast.Load())
        elif dotted(func.value).endswith("data.Dataset") and func.attr in _OF_DATASETS:
            func.value = ast.Name(_DATASET, ast.Load())
        elif func.attr not in _OF_DATASETS and _begins_at_dataset(func):
            func.value = ast.Name("_", ast.Load())  # it traces a function: it is not known then
        return node


def _begins_at_dataset(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == _DATASET for one in ast.walk(node))


def _known() -> dict[str, Any]:
    return {_DRAWN: sys.modules["numpy"].random.RandomState(0), _DATASET: sys.modules["tensorflow"].data.Dataset}
