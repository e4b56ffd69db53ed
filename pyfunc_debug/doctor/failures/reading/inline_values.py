"""Arrays and datasets that are made inside of a call, read as if they had names: `fit(np.ones((4, 3)), y)`.

A name is looked up, and what an expression gives is gone with the call. What Keras and TensorFlow were given, the
frames of theirs still hold. Any other expression that only computes is evaluated once more: it draws from a generator
of its own, and a dataset is made only where no function of the user's is traced for it.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
from collections import ChainMap
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, TracebackType
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.callables import called
from pyfunc_debug.doctor.failures.reading.evaluation import eagerly, evaluated, given_names
from pyfunc_debug.doctor.failures.reading.situation import Inline, Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import InlineName, Source, as_read, dotted, indent_of, read
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset, is_ndarray, is_tensor, of_package
from pyfunc_debug.program.syntax import copied

_DRAWN, _DATASET = "<drawn>", "<dataset>"
_OF_DATASETS = frozenset(
    ("from_tensor_slices", "from_tensors", "range", "batch", "padded_batch", "shuffle", "repeat", "take", "skip",
     "prefetch", "cache", "zip")
)  # fmt: skip
"""What makes or changes a dataset and traces no function."""
_MADE = (ast.Call, ast.BinOp, ast.Subscript, ast.UnaryOp)
_INNER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_HANDED_ON = "error_handler"
"""Keras' and TensorFlow's function that takes what is given as `*args, **kwargs`, and calls the one asked for."""
_SAID = 30
"""An expression of no more characters is said as it is written."""
_TWICE = 40
"""One of no more may be pasted in two places."""
_GIVES_OTHERS = re.compile(r"random|rng|\biter\(|\bnext\(|shuffle")
_TAKES = re.compile(r"\b(?:iter|next)\(|get_next")
_UNKNOWN = object()
_Place = tuple[ast.AST, str, int | None, ast.expr, Any]
"""An expression: the node that has it, in which field and where there, itself, and the value that a frame holds."""


def inline_values(source: Source, situation: Situation) -> Situation:
    """Gives each expression of the lines that failed a name, its value, and an assignment above its statement."""
    spots, named = [], dict[str, Inline]()
    held = _held(situation)
    for spot in situation.spots:
        found: dict[str, Any] = {}
        if spot.source is source and spot.statement is not None:
            found = _named(spot, spot.statement, held, named)
        spots.append(dataclasses.replace(spot, variables=ChainMap(found, dict(spot.variables))) if found else spot)
    return dataclasses.replace(situation, spots=tuple(spots), inline=named)


def _named(
    spot: Spot, statement: ast.stmt, held: dict[tuple[int, ...], _Held], named: dict[str, Inline]
) -> dict[str, Any]:
    """The values of the expressions of one statement, by the names that they get."""
    found: dict[str, Any] = {}
    source, done = spot.source, set[ast.AST]()
    for call, (holder, field, place, node, value) in _given(statement, held, done):
        computes = value is _UNKNOWN
        if computes:
            value = _value(node, spot)
            if value is None:
                continue
        done.add(node)
        name = f"inline{len(named)}value"
        above = 0 if isinstance(statement, ast.While) else statement.lineno
        named[name] = Inline(
            _written(node, source), _said(node, value, call, source), computes, _kind(value), above, node.lineno,
            node.end_lineno or node.lineno,
        )  # fmt: skip
        found[name] = value
        as_name = ast.copy_location(InlineName(name, ast.Load()), node)
        if place is None:
            setattr(holder, field, as_name)
        else:
            getattr(holder, field)[place] = as_name
        _assign(name, node, statement, source)
    return found


def spelled(explanation: Explanation, situation: Situation) -> Explanation | None:
    """An explanation with the expressions that are read as names: said shortly, and pasted as they are written.

    One that is needed twice, and is long or may not give the same again, gets a name in a line of its own.

    Returns:
      None where that line has no place.
    """
    edit, taken = explanation.edit, list[str]()
    for name, inline in situation.inline.items():
        if edit is not None and name in (text := "\n".join(edit.lines)):
            alike = inline.computes and not _GIVES_OTHERS.search(inline.written)
            if text.count(name) > 1 and not (alike and len(inline.written) <= _TWICE):
                edit = _with_line(edit, name, inline, taken)
                if edit is None:
                    return None
            else:
                edit = Edit(edit.file, edit.first, edit.last, tuple(text.replace(name, inline.written).split("\n")))
        explanation = dataclasses.replace(
            explanation,
            cause=_saying(explanation.cause, name, inline),
            advice=_saying(explanation.advice, name, inline),
        )
    return dataclasses.replace(explanation, edit=edit)


def _with_line(edit: Edit, name: str, inline: Inline, taken: list[str]) -> Edit | None:
    """A paste with `array = ...` above the statement that has the expression, and that name in its places.

    None where the paste begins above the statement or leaves the expression as it is, and where it would be the first
    to take from an iterator that others take from.
    """
    covered = inline.statement <= edit.first <= inline.first and inline.last <= edit.last
    if not inline.statement or not covered or _TAKES.search(inline.written):
        return None
    source = read(edit.file)
    new = source.unused_name(inline.kind, tuple(taken))
    taken.append(new)
    kept = source.lines[inline.statement - 1 : edit.first - 1]
    head = f"{indent_of(source.lines[inline.statement - 1])}{new} = {inline.written}"
    lines = "\n".join(edit.lines).replace(name, new).split("\n")
    return Edit(edit.file, inline.statement, edit.last, (head, *kept, *lines))


def _saying(text: str, name: str, inline: Inline) -> str:
    said = inline.said
    text = re.sub(rf"(?:(?<=[.:] )|^){name}", said[0].upper() + said[1:] if said.startswith("the ") else said, text)
    return text.replace(name, said)


def _assign(name: str, node: ast.expr, statement: ast.stmt, source: Source) -> None:
    """Puts `name = node` above a statement, at the statement's place."""
    block = source.block(statement)
    if block is not None:
        made = ast.Assign([ast.copy_location(InlineName(name, ast.Store()), node)], node)
        block.insert(block.index(statement), ast.copy_location(made, statement))


def _written(node: ast.expr, source: Source) -> str:
    text = source.text(node)
    return text if isinstance(node, (ast.Call, ast.Subscript)) else f"({text})"


def _said(node: ast.expr, value: Any, call: ast.Call, source: Source) -> str:
    """`np.ones(20)`, `np.random.rand(...)`, or `the dataset given to fit`."""
    text = source.text(node)
    function = dotted(node.func) if isinstance(node, ast.Call) else ""
    if len(text) <= _SAID:
        return text
    if function and len(function) <= _SAID:
        return f"{function}(...)"
    return f"the {_kind(value)} given to {called(call)}"


def _kind(value: Any) -> str:
    return (
        "dataset" if is_dataset(value) else "array" if is_ndarray(value) else "tensor" if is_tensor(value) else "value"
    )


def _given(
    statement: ast.stmt, held: dict[tuple[int, ...], _Held], done: set[ast.AST]
) -> Iterator[tuple[ast.Call, _Place]]:
    """What the calls of a statement, or of its first lines, are given; outer ones first, and none inside of `done`."""
    for call in list(_calls(statement)):
        if any(call in ast.walk(one) for one in done):
            continue
        known = held.get(_position(call))
        places: list[_Place] = [
            (call, "args", number, one, known.by_place(call, number) if known else _UNKNOWN)
            for number, one in enumerate(call.args)
        ]
        places += [
            (word, "value", None, word.value, known.by_name(word.arg) if known else _UNKNOWN) for word in call.keywords
        ]
        while places:
            holder, field, place, node, value = places.pop(0)
            if isinstance(node, (ast.Tuple, ast.List)):
                fits = isinstance(value, (tuple, list)) and len(value) == len(node.elts)
                places += [
                    (node, "elts", number, one, value[number] if fits else _UNKNOWN)
                    for number, one in enumerate(node.elts)
                ]
            elif isinstance(node, ast.Dict) and type(value) is dict:
                keys = [getattr(one, "value", None) for one in node.keys]
                places += [
                    (node, "values", number, one, value.get(key, _UNKNOWN))
                    for number, (key, one) in enumerate(zip(keys, node.values))
                ]
            elif isinstance(node, _MADE):
                yield call, (holder, field, place, node, value)


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement, or of what stands above its block, that are in no function of their own."""
    blocks = ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list")
    waiting: list[ast.AST] = [
        one for name, value in ast.iter_fields(statement) if name not in blocks
        for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST)
    ]  # fmt: skip
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, _INNER):
            continue
        if isinstance(one, ast.Call):
            yield one
        waiting += ast.iter_child_nodes(one)


@dataclasses.dataclass(frozen=True)
class _Held:
    """What a function of Keras' or TensorFlow's was given, as its frame holds it."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def by_place(self, call: ast.Call, place: int) -> Any:
        """The value of an argument by place; a method's object stands before the others."""
        before = len(self.args) - len(call.args)
        plain = not any(isinstance(one, ast.Starred) for one in call.args)
        return self.args[before + place] if plain and before in (0, 1) else _UNKNOWN

    def by_name(self, name: str | None) -> Any:
        """The value of one by name."""
        return self.kwargs.get(name, _UNKNOWN) if name is not None else _UNKNOWN


def _held(situation: Situation) -> dict[tuple[int, ...], _Held]:
    """The calls that failed, by their places in the text: what their frames hold."""
    found: dict[tuple[int, ...], _Held] = {}
    for error in (situation.error, situation.inner):
        traceback: TracebackType | None = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            inner = traceback.tb_next.tb_frame
            args, kwargs = inner.f_locals.get("args"), inner.f_locals.get("kwargs")
            if inner.f_code.co_name == _HANDED_ON and isinstance(args, tuple) and isinstance(kwargs, dict):
                place = _place(traceback.tb_frame.f_code, traceback.tb_lasti)
                if place is not None:
                    found[place] = _Held(args, kwargs)
            traceback = traceback.tb_next
    return found


def _place(code: CodeType, instruction: int) -> tuple[int, ...] | None:
    """First and last line and column of a call, as it is read; Python before 3.11 does not know them."""
    every = getattr(code, "co_positions", None)
    for number, place in enumerate(every() if every is not None else ()):
        if number == instruction // 2:
            line, end, column, last = place
            if line is None or end is None or column is None or last is None:
                return None
            return as_read(code.co_filename, line)[1], as_read(code.co_filename, end)[1], column, last
    return None


def _position(node: ast.expr) -> tuple[int, ...]:
    return node.lineno, node.end_lineno or 0, node.col_offset, node.end_col_offset or 0


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
