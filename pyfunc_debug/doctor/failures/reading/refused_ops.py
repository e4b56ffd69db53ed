"""The user's line whose op refused what it was given: in eager code, at trace, or in a graph that ran.

Where a graph ran, no frame of the function is left: a dataset's graph knows the line of each op, and TensorFlow's text
names it for a tf.function.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading import datasets, evaluation
from pyfunc_debug.doctor.failures.reading.made_values import made_shape, made_value
from pyfunc_debug.doctor.failures.reading.node_results import results_above
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, names, parameters
from pyfunc_debug.doctor.failures.reading.symbols import (
    Described,
    calls,
    dtype_of,
    is_tf_variable,
    lookup,
    root_is,
    shape_of,
    shape_of_data,
)
from pyfunc_debug.interception.names.private import (
    dataset_functions,
    dataset_inputs,
    mapped_function,
    nested_graphs,
    slices,
)
from pyfunc_debug.program.frames import is_installed, is_user, user_frames

Shape = tuple[int | None, ...]
RULE = "structure"
_NODE = re.compile(r"\{\{node ([\w./-]+)\}\}")
_ITERATES = re.compile(r"\[Op:(?:IteratorGetNext|MakeIterator)|Error in user-defined function passed to")
_DEFINED = re.compile(r"Detected at node \S+ defined at \(most recent call last\):")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_MOST = 2_000_000


@dataclass(frozen=True)
class Refused:
    """Where an op refused what it was given.

    Attributes:
      spot: The line; of what ran in a graph its names are those of the module, and a mapped function's parameters.
      statement: The statement of that line.
      op: The op of a dataset's graph; None elsewhere.
      elements: What a mapped function's parameters are given, all of it, where the dataset slices tensors.
    """

    spot: Spot
    statement: ast.stmt
    op: Any = None
    elements: Mapping[str, Any] = field(default_factory=dict)

    def text(self, node: ast.AST) -> str:
        """A node as it is written."""
        return self.spot.source.text(node)

    def calls_of(self, *wanted: str) -> list[ast.Call]:
        """The calls of TensorFlow's functions of these last names in the statement."""
        return [
            one for one in calls(self.statement)
            if dotted(one.func).rpartition(".")[2] in wanted and root_is(one.func, self.spot, "tensorflow")
        ]  # fmt: skip

    def shape(self, node: ast.expr, at: int = 0) -> Shape | None:
        """The shape of one of the op's inputs: as its graph knows it, or as it is in the line."""
        known = shape_of(self.op.inputs[at]) if self.op is not None and len(self.op.inputs) > at else None
        return known if known is not None else shape_at(node, self.spot)

    def told(
        self, cause: str, pieces: dict[ast.expr, str], advice: str = "", measured: bool = False
    ) -> Explanation | None:
        """The explanation with text in the place of some expressions, or with the advice where there is none."""
        edit = edit_of(self.spot.file, self.spot.source.replaced(pieces)) if pieces else None
        if edit is None and not advice:
            return None
        line = min((one.lineno for one in pieces), default=self.spot.line)
        return Explanation(
            RULE, self.spot.file, line, cause, edit, "" if edit else advice, "measured" if measured else "likely"
        )


def refused(situation: Situation) -> Iterator[Refused]:
    """The places that an op which failed may be of: one, but for ops of one name in several functions of datasets."""
    message, last = situation.message, situation.last
    node = _NODE.search(message)
    if last is None:
        return
    if not situation.body and node is not None and _ITERATES.search(message):
        yield from _of_datasets(situation, node[1])
        return
    defined = _DEFINED.search(message)
    if not situation.body and defined is not None:
        yield from _of_text(situation, message[defined.end() :])
        return
    if (statement := _statement(last)) is not None:
        yield Refused(last, statement)


def _statement(spot: Spot) -> ast.stmt | None:
    """The statement of a line; the whole line of `for x in ds.map(f): print(x)`."""
    found = spot.statement
    around = spot.source.parent(found) if found is not None else None
    while isinstance(around, ast.stmt) and around.lineno == spot.line == (around.end_lineno or 0):
        found, around = around, spot.source.parent(around)
    return found


def _of_datasets(situation: Situation, name: str) -> Iterator[Refused]:
    seen: set[tuple[str, int]] = set()
    for dataset in datasets.gone_over(situation):
        for wrapper in dataset_functions(dataset):
            graph = getattr(getattr(wrapper, "function", None), "graph", None)
            for op in _named(graph, name) if graph is not None else ():
                at = user_frames(op.traceback)[-1:] if op.traceback is not None else ()
                if not at or (at[0].file, at[0].line) in seen:
                    continue
                seen.add((at[0].file, at[0].line))
                spot = _spot(situation, at[0].file, at[0].line, "tf.data", dataset, mapped_function(wrapper))
                if (statement := _statement(spot)) is not None:
                    yield Refused(spot, statement, op, _elements(spot.function, dataset))


def _spot(situation: Situation, file: str, line: int, by: str, dataset: Any = None, mapped: Any = None) -> Spot:
    """A frame as it would be: with the names of its module, and what is known of those of its function.

    Args:
      situation: The failure.
      file: The file of the op's line.
      line: The line.
      by: What ran it.
      dataset: The dataset whose function it is in.
      mapped: That function, if it is a dataset's.
    """
    module = next((one.module for one in situation.spots if one.file == file), None)
    found = Spot(file, line, {}, _module(file) if module is None else module, by)
    function = found.source.function(line) if _is_lambda(mapped) else found.function
    around = [] if function is None else [id(one) for one in found.source.around(function)]
    known: dict[str, Any] = {}
    for one in situation.spots:
        if one.file == file and id(one.function) in around:
            known.update(one.variables)
    if function is not None and dataset is not None:
        known.update(_kept(function, mapped))
        known.update(_given(function, dataset))
    spot = Spot(file, line, known, found.module, by)
    if function is not None:
        known.update(results_above(function, spot, situation))
    return Spot(file, line, known, found.module, by)


def _elements(function: Function | None, dataset: Any) -> dict[str, Any]:
    """The tensors that a dataset slices for the function that it maps, by the function's parameters."""
    before = dataset_inputs(dataset)[:1]
    parts = slices(before[0]) if before and "TensorSlice" in type(before[0]).__name__ else []
    known = parameters(function) if function is not None else []
    return dict(zip(known, parts)) if len(known) == len(parts) else {}


def _is_lambda(mapped: Any) -> bool:
    return type(mapped).__name__ == "function" and mapped.__name__ == "<lambda>"


def _kept(function: Function, mapped: Any) -> dict[str, Any]:
    """`self` and the names around it that a mapped function keeps; empty of a function that it calls."""
    if type(mapped).__name__ not in ("function", "method"):
        return {}
    owner, plain = getattr(mapped, "__self__", None), getattr(mapped, "__func__", mapped)
    code = getattr(plain, "__code__", None)
    if code is None or code.co_name != getattr(function, "name", "<lambda>"):
        return {}
    kept: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, plain.__closure__ or ()):
        with suppress(ValueError):  # not yet assigned
            kept[name] = cell.cell_contents
    return {**kept, code.co_varnames[0]: owner} if owner is not None else kept


def _module(file: str) -> Mapping[str, Any]:
    """The names of the module that is loaded from a file."""
    for one in list(sys.modules.values()):
        if type(one).__name__ == "module" and vars(one).get("__file__") == file:
            return vars(one)
    return {}


def _named(graph: Any, name: str) -> Iterator[Any]:
    for one in (graph, *filter(None, nested_graphs(graph))):
        try:
            yield one.get_operation_by_name(name)
        except (KeyError, ValueError):
            continue


def _given(function: Function, dataset: Any) -> dict[str, Any]:
    """The parameters of a mapped function, by the elements that it is given; empty of a function that it calls."""
    if not dataset_inputs(dataset):
        return {}
    spec, known = dataset_inputs(dataset)[0].element_spec, parameters(function)
    parts = list(spec) if type(spec) is tuple else [spec]
    if len(parts) != len(known) or not all(hasattr(one, "shape") and hasattr(one, "dtype") for one in parts):
        return {}
    return {name: Described(dtype_of(one), shape_of(one)) for name, one in zip(known, parts)}


def _of_text(situation: Situation, text: str) -> Iterator[Refused]:
    """The line that TensorFlow's text names last: that of the op."""
    found = [(file, int(line)) for file, line, _ in _FRAME.findall(text) if is_user(file) and not is_installed(file)]
    if found:
        file, line = found[-1]
        spot = _spot(situation, file, line, "tf.function")
        if (statement := _statement(spot)) is not None:
            yield Refused(spot, statement)


def _is_eager(value: Any) -> bool:
    return type(value).__name__ == "EagerTensor"


def value_of(node: ast.expr, spot: Spot) -> Any:
    """What an expression of tensors with values gives, as it gave it in the user's line; None where that is not known.

    Nothing of the user's runs, and nothing that draws random numbers: see `evaluation`.
    """
    value = lookup(node, spot)
    if value is not None:
        return value
    known: dict[str, Any] = {}
    for name in names(node):
        value = spot.value(name)
        if _is_eager(value) or is_tf_variable(value):
            if math.prod(one or 1 for one in shape_of(value) or (_MOST,)) > _MOST:
                return None
            known[name] = value if _is_eager(value) else evaluation.apart(value.numpy)
    given = evaluation.given_names(node, spot, known) if None not in known.values() else None
    return evaluation.apart(evaluation.evaluated, node, given) if given is not None else None


def shape_at(node: ast.expr, spot: Spot) -> Shape | None:
    """The shape of an expression: of its value, or of what is known at trace; None where it is not known."""
    value = value_of(node, spot)
    if value is not None:
        return shape_of_data(value)
    if not names(node):
        return None
    return made_shape(lambda inputs: made_value(node, spot, inputs=inputs))


def numbers_of(value: Any) -> Any:
    """The array of an eager tensor, a variable, an array or a list of numbers; None of anything else, or of text."""
    numpy = sys.modules["numpy"]
    if _is_eager(value) or is_tf_variable(value):
        value = evaluation.apart(value.numpy)
    if not isinstance(value, (bool, int, float, list, tuple)) and type(value).__module__ != "numpy":
        return None
    try:
        found = numpy.asarray(value) if value is not None else None
    except ValueError:
        return None
    return found if found is not None and found.dtype.kind in "iuf" and found.size else None


def each(situation: Situation, told: Callable[..., Explanation | None], *given: Any) -> Explanation | None:
    """What a cause says of the place that an op was refused at; None where two places fit what it says.

    Args:
      situation: The failure.
      told: What it says of a place.
      given: What it is given behind the place.
    """
    found = [one for place in refused(situation) if (one := told(place, *given)) is not None]
    return found[0] if len(found) == 1 else None


def fits(shape: Shape | None, said: Shape) -> bool:
    """Whether a shape may be the one that TensorFlow's text says; also where it is not known."""
    return shape is None or (len(shape) == len(said) and all(a == b or None in (a, b) for a, b in zip(shape, said)))


def sizes(text: str) -> Shape:
    """`[8,4]` or `(8, 4)` as a shape, with None for `?` and `None`."""
    parts = [one.strip() for one in text.strip("[]() ").split(",") if one.strip()]
    return tuple(int(one) if one.lstrip("-").isdigit() else None for one in parts)
