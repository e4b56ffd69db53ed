"""Elements that have another number of axes than their padded shape: the part of the element, by its own name.

`padded_batch` and `bucket_by_sequence_length` only say a component's number, and both ranks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.datasets import generator_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.datasets import gone_over, with_inputs
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import Node, return_values, user_generators, user_nodes
from pyfunc_debug.doctor.failures.reading.shapes import Shape, recorded, written
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source, begins, dotted, read, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls, kept_by, method_calls, only_keeps, sizes_of
from pyfunc_debug.interception.names.private import dataset_inputs

RULE = "ragged-batch"
RANK = re.compile(
    r"same rank as the padded shape for component ?(\d+): expected rank (\d+) but got element with rank (\d+)"
)
_PADS = ("padded_batch", "bucket_by_sequence_length")
_SAME = frozenset((
    "CacheDataset", "FilterDataset", "OptionsDataset", "PrefetchDataset", "RepeatDataset", "ShuffleDataset",
    "SkipDataset", "TakeDataset",
))  # fmt: skip
"""Stages that give elements on as they are."""
_MAPS = ("MapDataset", "ParallelMapDataset")
_PADDED = ("PaddedBatchDataset", "GroupByWindowDataset")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_DEEPEST = 8
_MOST_AXES = 4


@dataclass(frozen=True)
class _Code:
    """A function of the user's, and the object whose method it is; None where that is not known."""

    file: str
    function: Function
    own: Any = None

    @property
    def source(self) -> Source:
        return read(self.file)


@dataclass(frozen=True)
class _Element:
    """What makes the elements: the shapes that were recorded, and the code of each part, where it is known."""

    shapes: dict[int, Shape]
    code: _Code | None
    parts: list[ast.expr]


@dataclass(frozen=True)
class _Known:
    """What is known of a failure: the number of the part, both ranks, the padded shape, and what makes the elements."""

    place: int
    wanted: int
    rank: int
    expected: Shape | None
    element: _Element | None
    key: str

    @property
    def shape(self) -> Shape | None:
        return self.element.shapes.get(self.place) if self.element is not None else None

    @property
    def part(self) -> ast.expr | None:
        parts = self.element.parts if self.element is not None else []
        return parts[self.place] if self.place < len(parts) else None

    @property
    def code(self) -> _Code | None:
        return self.element.code if self.element is not None else None


def explain(situation: Situation) -> Explanation | None:
    """The explanation with a paste, if the part is a name in the code, and has an axis of size 1 too many."""
    known = _known(situation)
    edit = _edit(situation, known) if known is not None else None
    return _said(situation, known, edit) if known is not None and edit is not None else None


def in_words(situation: Situation) -> Explanation | None:
    """The same in words, if the part of the element, or the padded shape, is known."""
    known = _known(situation)
    return _said(situation, known, None) if known is not None else None


def _known(situation: Situation) -> _Known | None:
    found = RANK.search(situation.message)
    if found is None or situation.body or situation.last is None:
        return None
    place, wanted, rank = int(found[1]), int(found[2]), int(found[3])
    expected, count, below, key = _padded(situation, place, wanted)
    element = _element(situation, below, count) if below is not None else None
    shape = element.shapes.get(place) if element is not None else None
    if shape is not None and len(shape) != rank:
        element = None  # something on the way changes it
    return _Known(place, wanted, rank, expected, element, key)


def _said(situation: Situation, known: _Known, edit: Edit | None) -> Explanation | None:
    """The words: which part it is, what shape it has, and what padded_shapes says."""
    call = padding_call(situation)
    place, wanted, rank, expected = known.place, known.wanted, known.rank, known.expected
    code, part, shape = known.code, known.part, known.shape
    ordinal = f"the {_ORDINALS[place]} part" if place < len(_ORDINALS) else f"part {place}"
    name = short(code.source.text(part), 40) if code is not None and part is not None else ""
    if known.key:
        ordinal = f"the part {known.key!r}"
    what = f"{name}, {ordinal} of each element," if name else f"{ordinal} of each element"
    if known.element is not None and len(known.element.parts) == 1:
        what = name
    has = f"has the shape {sizes_of(shape)}" if shape is not None else f"has {_axes(rank)}"
    says = f"has {written(expected)} for it: " if expected is not None else "has "
    cause = f"{what} {has}, but padded_shapes {says}{_axes(wanted)}. Only the sizes are filled up, and no axis is "
    cause += "added or dropped."
    thing = name if part is not None and isinstance(part, ast.Name) else "it"
    if rank == wanted + 1:
        advice = f"Give {thing} one axis less"
        if shape is not None and 1 in shape:
            advice += f", np.squeeze({thing if thing != 'it' else 'x'}, axis={shape.index(1)}),"
    else:
        more = wanted - rank
        count = "one axis" if abs(more) == 1 else _axes(abs(more))
        advice = f"Give {thing} {count} {'more' if more > 0 else 'less'}"
        if more == 1:
            advice += f", np.expand_dims({thing if thing != 'it' else 'x'}, axis=...),"
    advice += f" or write {written((None,) * rank)} for it in padded_shapes."
    if part is not None and code is not None:
        file, line = code.file, part.lineno
    elif call is not None:
        file, line = call[0], call[1].lineno
    else:
        return None
    return Explanation(RULE, file, line, cause, edit, "" if edit else advice)


def _axes(count: int) -> str:
    return f"{count or 'no'} {'axis' if count == 1 else 'axes'}"


def padding_call(situation: Situation) -> tuple[str, ast.Call] | None:
    """The program's one call that pads."""
    found = [
        (file, one) for file, source in situation.sources() for one in calls(source.tree)
        if dotted(one.func).rpartition(".")[2] in _PADS or getattr(one.func, "attr", "") in _PADS
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _kind(dataset: Any) -> str:
    return type(dataset).__name__.strip("_")


def padded_stage(situation: Situation) -> Any:
    """The one dataset that pads; None where there are several, or none."""
    found = [one for one in gone_over(situation) if _kind(one) in _PADDED]
    return found[0] if len(found) == 1 else None


def _padded(situation: Situation, place: int, wanted: int) -> tuple[Shape | None, int, Any, str]:
    """Of the stage that pads: a part's padded shape, how many parts there are, what is padded, and the part's key."""
    stage = padded_stage(situation)
    if stage is None:
        return None, 0, None, ""
    specs = list(components(stage.element_spec))
    shape = getattr(specs[place], "shape", None) if place < len(specs) else None
    if shape is None or shape.rank != wanted + 1:
        return None, 0, None, ""
    below, spec = dataset_inputs(stage), stage.element_spec
    key = str(sorted(spec, key=str)[place]) if isinstance(spec, dict) and len(spec) == len(specs) else ""
    return tuple(shape.as_list()[1:]), len(specs), below[0] if len(below) == 1 else None, key


def components(spec: Any) -> Iterator[Any]:
    """The parts of an element_spec in the order by which TensorFlow counts them: those of a dict by their keys."""
    if isinstance(spec, dict):
        for key in sorted(spec, key=str):
            yield from components(spec[key])
    elif isinstance(spec, tuple):
        for one in spec:
            yield from components(one)
    else:
        yield spec


def making_node(situation: Situation, dataset: Any) -> Node | None:
    """What makes the elements that are padded: a generator, or the body of a map that gives its results as they are."""
    while _kind(dataset) in _SAME:
        before = dataset_inputs(dataset)
        if len(before) != 1:
            return None
        dataset = before[0]
    if _kind(dataset) == "FlatMapDataset":
        made = user_generators(situation)
        return made[0] if len(made) == 1 and len(generator_calls.calls(situation)) == 1 else None
    if _kind(dataset) in _MAPS:
        nodes = [one for one in user_nodes(situation) if one.call() is not None]
        maps = [one for one in with_inputs([dataset]) if _kind(one) in _MAPS]
        return nodes[0] if len(nodes) == 1 and len(maps) == 1 and _is_result(nodes[0]) else None
    return None


def _element(situation: Situation, dataset: Any, count: int) -> _Element | None:
    """The same, with the code of the parts."""
    node = making_node(situation, dataset)
    if node is None:
        return None
    if node in user_generators(situation):
        file, source, call = generator_calls.calls(situation)[0]
        begun = generator_calls.function_of(source, generator_calls.given(call))
        if begun is not None and begun.name != "__call__" and _namesakes(source, begun) > 1:
            begun = None
        start = _Code(file, begun, _holder(situation, file, begun)) if begun is not None else None
        return _of_node(situation, node, start, count)
    function = node.function()
    start = _Code(node.file, function) if function is not None and node.file is not None else None
    return _of_node(situation, node, start, count)


def _namesakes(source: Source, function: ast.FunctionDef) -> int:
    """How many functions of a file have a function's name."""
    return sum(isinstance(one, ast.FunctionDef) and one.name == function.name for one in ast.walk(source.tree))


def _is_result(node: Node) -> bool:
    """Whether what a map is given gives the results of py_function as they are."""
    call = node.call()
    if call is None:
        return False
    outer, maps = node.source.parent(call), method_calls(node.source.tree, "map")
    if isinstance(outer, ast.Lambda):
        return outer.body is call and any(outer in one.args[:1] for one in maps)
    function = node.source.function(call.lineno)
    if not isinstance(outer, ast.Return) or not isinstance(function, ast.FunctionDef):
        return False
    return any(dotted(one.args[0]).rpartition(".")[2] == function.name for one in maps if one.args)


def _of_node(situation: Situation, node: Node, start: _Code | None, count: int) -> _Element:
    shapes = recorded(situation.rows, node.id)[0]
    found = _parts(situation, start, count, 0) if start is not None else None
    return _Element(shapes, *(found or (None, [])))


def _parts(situation: Situation, code: _Code, count: int, depth: int) -> tuple[_Code, list[ast.expr]] | None:
    """The expressions of an element's parts, in the order of the components, with the function where they stand."""
    if isinstance(code.function, ast.Lambda):
        values: list[ast.expr] = [code.function.body]
    else:
        yields = [one for one in own_nodes(code.function) if isinstance(one, (ast.Yield, ast.YieldFrom))]
        values = [one.value for one in yields if isinstance(one, ast.Yield) and one.value is not None]
        values = values if yields else return_values(code.function)
    return _of_value(situation, code, values[0], count, depth) if len(values) == 1 else None


def _of_value(
    situation: Situation, code: _Code, value: ast.expr, count: int, depth: int
) -> tuple[_Code, list[ast.expr]] | None:  # fmt: skip
    if depth > _DEEPEST:
        return None
    if isinstance(value, (ast.GeneratorExp, ast.ListComp)):
        return _of_value(situation, code, value.elt, count, depth + 1)
    if isinstance(value, (ast.Tuple, ast.List)) and count > 1:
        plain = len(value.elts) == count and not any(isinstance(one, (ast.Starred, ast.Tuple)) for one in value.elts)
        return (code, value.elts) if plain else None
    if isinstance(value, ast.Dict):
        keys = [one.value if isinstance(one, ast.Constant) else None for one in value.keys]
        if len(keys) != count or not all(isinstance(one, str) for one in keys):
            return None
        return code, [one for _, one in sorted(zip(keys, value.values), key=lambda pair: str(pair[0]))]
    if isinstance(value, ast.Name) and isinstance(code.function, ast.FunctionDef):
        bound = [
            one for one in own_nodes(code.function)
            if isinstance(one, ast.Name) and one.id == value.id and isinstance(one.ctx, ast.Store)
        ]  # fmt: skip
        outer = code.source.parent(bound[0]) if len(bound) == 1 else None
        if isinstance(outer, ast.Assign) and isinstance(outer.value, (ast.Tuple, ast.Dict, ast.Call)):
            found = _of_value(situation, code, outer.value, count, depth + 1)
            if found is not None or count > 1:
                return found
        return (code, [value]) if count == 1 else None
    if isinstance(value, ast.Call):
        called = _called(situation, code, value.func)
        found = _parts(situation, called, count, depth + 1) if called is not None else None
        if found is not None:
            return found
    return (code, [value]) if count == 1 else None


def _called(situation: Situation, code: _Code, func: ast.expr) -> _Code | None:
    """The user's function that a call runs: one of the module, a method, or what an object keeps."""
    value: Any = None
    if isinstance(func, ast.Name):
        module = next((spot.module for spot in situation.spots if spot.file == code.file), {})
        value = module.get(func.id)
    elif isinstance(func, ast.Attribute) and dotted(func.value) == "self" and code.own is not None:
        value = kept_by(code.own, func.attr)
        if type(value).__name__ == "function":
            return _of_function(value, code.own)
    if type(value).__name__ == "method":
        return _of_function(value.__func__, value.__self__)
    if type(value).__name__ == "function":
        return _of_function(value, None)
    if value is not None and not isinstance(value, type) and only_keeps(value):
        method = kept_by(type(value), "__call__")
        return _of_function(method, value) if type(method).__name__ == "function" else None
    return None


def _of_function(function: Any, own: Any) -> _Code | None:
    file, line = begins(function.__code__)
    for one in ast.walk(read(file).tree):
        if isinstance(one, ast.FunctionDef) and line in (one.lineno, *(each.lineno for each in one.decorator_list)):
            return _Code(file, one, own)
    return None


def _holder(situation: Situation, file: str, function: ast.FunctionDef) -> Any:
    """The one object that the frames hold and whose method a function is."""
    found: dict[int, Any] = {}
    for value in _values(situation):
        method = vars(type(value)).get(function.name)
        code = getattr(method, "__code__", None)
        lines = (function.lineno, *(one.lineno for one in function.decorator_list))
        if code is not None and begins(code) in [(file, line) for line in lines] and only_keeps(value):
            found[id(value)] = value
    return next(iter(found.values())) if len(found) == 1 else None


def _values(situation: Situation) -> Iterator[Any]:
    for spot in situation.spots:
        yield from spot.variables.values()
        yield from spot.module.values()


def _edit(situation: Situation, known: _Known) -> Edit | None:
    """The part without its axis of size 1, in the line that gives it: where it is a name, and one axis can go."""
    code, part, shape, expected = known.code, known.part, known.shape, known.expected
    if code is None or shape is None or expected is None or not isinstance(part, ast.Name):
        return None
    if len(shape) != len(expected) + 1 or len(shape) > _MOST_AXES:
        return None
    axes = [at for at, size in enumerate(shape) if size == 1 and _fits(shape[:at] + shape[at + 1 :], expected)]
    statement = code.source.statement(part.lineno)
    if len(axes) != 1 or statement is None or isinstance(code.function, ast.Lambda):
        return None
    module = next((spot.module for spot in situation.spots if spot.file == code.file), None)
    if module is None:
        return None
    np = alias(Spot(code.file, part.lineno, {}, module, ""), "numpy")
    first, last, lines = code.source.kept_lines({part: f"{np}.squeeze({part.id}, axis={axes[0]})"})
    return Edit(code.file, first, last, lines)


def _fits(shape: Shape, expected: Shape) -> bool:
    return all(room is None or (size is not None and size <= room) for size, room in zip(shape, expected))
