"""The layer of Keras' that refused its input, and the user's calls that made it and the layers before it.

Keras cuts its own frames out of a traceback, but for the one that hands a call on: that has the layer and the input.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.paired.layers import is_layer
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, lines_of
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.failures.reading.symbols import (
    calls,
    is_keras,
    is_keras_class,
    keras_name,
    lookup,
    of_keras,
    shape_of,
)
from pyfunc_debug.interception.names.private import keras_given, keras_layers, keras_maker

Shape = tuple[int | None, ...]
_HANDS_ON = ("error_handler", "__call__")
_KERAS = re.compile(r"[/\\]keras[/\\]src[/\\]")
_LOOPS = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.If, ast.Try)
_NUMBER = re.compile(r"_(\d+)$")
_FARTHEST, _MOST = 50, 400
_PLAIN = (bool, int, str)


@dataclass(frozen=True)
class Made:
    """A call of the user's that makes a layer.

    Attributes:
      spot: The frame of the failure that is in its file.
      call: The call: `layers.LSTM(8)`.
      layer: The layer.
    """

    spot: Spot
    call: ast.Call
    layer: Any

    @property
    def source(self) -> Source:
        """Its file."""
        return self.spot.source

    def other(self, name: str) -> str:
        """Another layer's class, as the file would write it."""
        return other_class(self.call.func, name, self.spot)

    def with_arguments(self, **texts: str) -> str:
        """The call with other arguments, or more of them."""
        every = arguments(self.call, type(self.layer) if self.layer is not None else object)
        text = self.source.text_with(self.call, {every[name]: new for name, new in texts.items() if name in every})
        more = [f"{name}={new}" for name, new in texts.items() if name not in every]
        return (
            f"{text[:-1].rstrip(', ')}{', ' if self.call.args or self.call.keywords else ''}{', '.join(more)})"
            if more
            else text
        )

    def edit(self, text: str) -> Edit:
        """The lines of the call with another text in its place."""
        return Edit(self.spot.file, *self.source.kept_lines({self.call: text}))

    def with_other(self, call: ast.Call) -> Made:
        """The same of another call in its file, which makes a layer of any class."""
        return Made(self.spot, call, None)

    def in_front(self, text: str) -> Edit | None:
        """The lines with another layer in front of it, in a list of layers or in `model.add(...)`."""
        around = self.source.parent(self.call)
        if isinstance(around, (ast.List, ast.Tuple)):
            line = self.source.lines[self.call.lineno - 1]
            if not line[: self.call.col_offset].strip():  # it begins its line
                lines = (f"{line[: self.call.col_offset]}{text},",)
                return Edit(self.spot.file, self.call.lineno, self.call.lineno - 1, lines)
            return self.edit(f"{text}, {self.source.text(self.call)}")
        statement = self.source.parent(around) if around is not None else None
        if not isinstance(around, ast.Call) or not isinstance(statement, ast.Expr) or not is_add(around):
            return None
        line = f"{' ' * statement.col_offset}{dotted(around.func)}({text})"
        return Edit(self.spot.file, statement.lineno, statement.lineno - 1, (line,))


@dataclass(frozen=True)
class FailedLayer:
    """A layer that refused its input.

    Attributes:
      situation: The failure.
      spot: The user's innermost frame.
      layer: The layer.
      given: What it was called on: the positional arguments.
      model: The Sequential that called it; None where there is none.
    """

    situation: Situation
    spot: Spot
    layer: Any
    given: tuple[Any, ...]
    model: Any

    @property
    def kind(self) -> str:
        """Its class: `LSTM`."""
        return type(self.layer).__name__

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of the tensors that it got; none where one is not known."""
        first = self.given[0] if self.given else None
        every = list(first) if isinstance(first, (list, tuple)) else [first]
        found = [shape_of(one) for one in every]
        return [one for one in found if one is not None] if None not in found else []

    @property
    def before(self) -> list[Any]:
        """The layers in front of it, nearest first, as far as each has one input."""
        first = self.given[0] if self.given else None
        return list(_before(first)) if is_keras(first) else list(self._above())

    def _above(self) -> Iterator[Any]:
        """The same in a `call` of the user's, where tensors know nothing of layers: by the lines above."""
        statement, function, call = self.spot.statement, self.spot.function, self.call
        node = call.args[0] if call is not None and call.args else None
        if not isinstance(function, ast.FunctionDef) or statement not in function.body:
            return
        for one in reversed(function.body[: function.body.index(statement)]):
            if not isinstance(node, ast.Name) or not isinstance(one, ast.Assign):
                return
            if [dotted(target) for target in one.targets] != [node.id]:
                continue
            layer = lookup(one.value.func, self.spot) if isinstance(one.value, ast.Call) else None
            if not isinstance(one.value, ast.Call) or not is_layer(layer) or len(one.value.args) != 1:
                return
            yield layer
            node = one.value.args[0]

    def made(self, layer: Any) -> Made | None:
        """The user's call that made a layer; None where it may be one of several."""
        found = [one for one in self._calls(layer) if self._fits(one, layer)]
        if len(found) < 2:
            return found[0] if found else None
        named = [one for one in found if self._is_named(one, layer)]
        if len(named) == 1:
            return named[0]
        if layer is self.layer:
            here = [one for one in found if self.spot.statement is not None and self._is_here(one)]
            if len(here) == 1:
                return here[0]
        return self._by_place(found, layer)

    @property
    def call(self) -> ast.Call | None:
        """The one call of the layer in the statement that failed: `lstm(x)`, `LSTM(8)(x)`, `concatenate([x, y])`."""
        function = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.kind).lower()
        found = [
            one for one in calls(self.spot.statement or ast.Pass())
            if lookup(one.func, self.spot) is self.layer
            or (isinstance(one.func, ast.Call) and self._is_class(one.func.func, self.layer, self.spot))
            or dotted(one.func).rpartition(".")[2] == function
        ]  # fmt: skip
        return found[0] if len(found) == 1 else None

    @property
    def runs_often(self) -> bool:
        """Whether the statement that failed stands in a loop, or in a function that has not one call."""
        source, statement = self.spot.source, self.spot.statement
        for one in source.around(statement) if statement is not None else ():
            if isinstance(one, (ast.For, ast.While)):
                return True
            if isinstance(one, ast.FunctionDef) and len(source.calls_of(frozenset({one.name}))) != 1:
                return True
        return False

    def other(self, name: str) -> str:
        """Another layer's class, as the call would write it."""
        function = self.call.func if self.call is not None else ast.Name(name)
        return other_class(function.func if isinstance(function, ast.Call) else function, name, self.spot)

    def with_layer(self, call: str) -> Edit | None:
        """The lines with another layer, `Reshape((7, 3))`, around its input, above its `add`, or in front in a list."""
        own, made = self.call, self.made(self.layer)
        if own is not None and len(own.args) == 1 and not isinstance(own.args[0], (ast.List, ast.Tuple)):
            return self.around({own.args[0]: call})
        name, _, rest = call.partition("(")
        return made.in_front(f"{made.other(name)}({rest}") if made is not None else None

    def around(self, calls: dict[ast.expr, str]) -> Edit:
        """The lines with another layer around some inputs of the call."""
        pieces = {}
        for node, call in calls.items():
            name, _, rest = call.partition("(")
            pieces[node] = f"{self.other(name)}({rest}({self.spot.source.text(node)})"
        return Edit(self.spot.file, *self.spot.source.kept_lines(pieces))

    def _calls(self, layer: Any) -> Iterator[Made]:
        for file, source in self.situation.sources():
            spot = next((one for one in reversed(self.situation.spots) if one.file == file), None)
            if spot is not None:
                yield from (
                    Made(spot, one, layer) for one in calls(source.tree) if self._is_class(one.func, layer, spot)
                )

    @staticmethod
    def _is_class(function: ast.expr, layer: Any, spot: Spot) -> bool:
        name = dotted(function)
        return bool(name) and (name.rpartition(".")[2] == type(layer).__name__ or lookup(function, spot) is type(layer))

    def _fits(self, made: Made, layer: Any) -> bool:
        """Whether what a call says of a layer is so in the layer."""
        kept = vars(layer)
        for name, node in arguments(made.call, type(layer)).items():
            value = computed(node, made.spot)
            own = kept.get(name)
            if type(value) in _PLAIN and type(own) in _PLAIN and type(value) is type(own) and value != own:
                return False
            if isinstance(value, str) and callable(own) and value != getattr(own, "__name__", value):
                return False
            if type(value) in (int, tuple) and isinstance(own, tuple) and value not in (own, own[0] if own else own):
                return False
        return True

    def _is_here(self, made: Made) -> bool:
        return made.spot.file == self.spot.file and made.call in ast.walk(self.spot.statement or ast.Pass())

    def _is_named(self, made: Made, layer: Any) -> bool:
        """Whether it is what the layer's own name was given."""
        statement = made.source.parent(made.call)
        if not isinstance(statement, ast.Assign) or statement.value is not made.call or len(statement.targets) != 1:
            return False
        target = dotted(statement.targets[0])
        same = [
            one for one in ast.walk(made.source.tree)
            if isinstance(one, ast.Assign) and [dotted(each) for each in one.targets] == [target]
        ]  # fmt: skip
        return len(same) == 1 and lookup(statement.targets[0], made.spot) is layer

    def _by_place(self, found: list[Made], layer: Any) -> Made | None:
        """The call of the place that a layer has among those of its class."""
        every = sorted(self._calls(layer), key=lambda one: (one.call.lineno, one.call.col_offset))
        if len({one.spot.file for one in every}) != 1 or any(
            isinstance(part, _LOOPS) for one in every for part in one.source.around(one.call)
        ):
            return None
        if self.model is not None:
            same = [one for one in keras_layers(self.model) or () if type(one) is type(layer)]
            inside = [one for one in every if self._is_here(one)]
            inside = inside if len(inside) == len(same) else every
            place = next((at for at, one in enumerate(same) if one is layer), -1)
            chosen = inside[place] if 0 <= place < len(inside) == len(same) else None
            return chosen if chosen in found else None
        same = [one for one in self._behind() if type(one) is type(layer)]
        same.sort(key=lambda one: _number(vars(one).get("name")))  # as Keras numbers them while they are made
        done = [one for one in every if one.call.lineno <= self.spot.line or one.spot.file != self.spot.file]
        place = next((at for at, one in enumerate(same) if one is layer), -1)
        return done[place] if 0 <= place < len(done) == len(same) and done[place] in found else None

    def _behind(self) -> list[Any]:
        """The layer, and all that its input is computed by."""
        first = self.given[0] if self.given else None
        waiting = list(first) if isinstance(first, (list, tuple)) else [first]
        found = {id(self.layer): self.layer}
        while waiting and len(found) < _MOST:
            layer, given = one_back(waiting.pop())
            if layer is not None and id(layer) not in found:
                found[id(layer)] = layer
                waiting += given
        return list(found.values())


def is_add(call: ast.Call) -> bool:
    """Whether it is `model.add(...)`."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "add" and bool(dotted(call.func))


def other_class(function: ast.expr, name: str, spot: Spot) -> str:
    """Another layer's class, as the file would write it: `layers.Flatten` beside `layers.Dense`."""
    owner = dotted(function).rpartition(".")[0]
    if owner and not owner.startswith("self"):
        return f"{owner}.{name}"
    if not owner and spot.value(name) is not None:
        return name
    module = next(
        (key for key, one in spot.module.items() if str(getattr(one, "__name__", "")).endswith("keras.layers")), ""
    )
    return f"{module or f'{keras_name(spot)}.layers'}.{name}"


def failed_layer(situation: Situation) -> FailedLayer | None:
    """The layer of Keras' own that refused its input; None where none did."""
    spot = situation.last
    if spot is None or situation.body:
        return None
    found: FailedLayer | None = None
    model: Any = None
    for frame, _ in lines_of((situation.error, situation.inner)):
        kept = frame.f_locals
        if not _KERAS.search(frame.f_code.co_filename):
            continue
        own = kept.get("self")
        if own is not None and of_keras(type(own), "Sequential"):
            model = own
        if frame.f_code.co_name == "call" and type(own).__name__.endswith("Cell"):  # an RNN calls it with its states
            names = frame.f_code.co_varnames[1 : frame.f_code.co_argcount]
            found = FailedLayer(situation, spot, own, tuple(kept.get(one) for one in names), None)
        if frame.f_code.co_name not in _HANDS_ON:
            continue
        given = kept.get("args") or ()
        layer = own if own is not None else given[0] if given else None
        given = tuple(given) if own is not None else tuple(given[1:])
        if is_layer(layer) and is_keras_class(type(layer)) and not of_keras(type(layer), "Model"):
            inside = model is not None and any(one is layer for one in keras_layers(model) or ())
            found = FailedLayer(situation, spot, layer, given, model if inside else None)
    return found


def arguments(call: ast.Call, kind: type) -> dict[str, ast.expr]:
    """The arguments of a call that makes an object of a class, by their names."""
    given = {one.arg: one.value for one in call.keywords if one.arg is not None}
    if any(isinstance(one, ast.Starred) for one in call.args):
        return given
    with suppress(TypeError, ValueError):
        names = list(inspect.signature(kind).parameters)
        given.update(zip(names, call.args))
    return given


def one_back(tensor: Any) -> tuple[Any, list[Any]]:
    """The layer or operation that made a Keras tensor, and the tensors that it was given; None of another tensor."""
    layer = keras_maker(tensor) if is_keras(tensor) else None
    return layer, keras_given(layer) if layer is not None else []


def _number(name: object) -> int:
    found = _NUMBER.search(str(name))
    return int(found[1]) if found else 0


def _before(tensor: Any) -> Iterator[Any]:
    for _ in range(_FARTHEST):
        layer, given = one_back(tensor)
        if layer is None:
            return
        yield layer
        if len(given) != 1:
            return
        tensor = given[0]
