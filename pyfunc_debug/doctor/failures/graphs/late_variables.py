"""Variables that Keras makes at the first use of an optimizer or a model, where that is a later trace of a tf.function.

The optimizer and the model are the live objects of the frame that failed. A line that builds them goes to the user's
outermost frame that knows them, above the loops in which they stay the same; there they are found by being the same
objects, under the names that they have in that frame.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.paired.layers import is_layer
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names
from pyfunc_debug.doctor.failures.reading.symbols import calls, is_symbolic, lookup, of_keras

RULE = "variable-in-function"
_APPLIES = {"apply_gradients": 0, "apply": 1, "minimize": 1}
"""Methods of an optimizer, and where they take its variables."""
_VARIABLES = ("trainable_variables", "trainable_weights", "variables", "weights")
_EQUAL = (bool, int, float, complex, str, bytes)
"""Types of values that may be one object by chance."""
_KNOWS_SHAPE = re.compile(r"\bInput\(|InputLayer\(|input_shape=|input_dim=|batch_shape=")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an optimizer or a model was used for the first time in a later trace."""
    spots = list(situation.spots)
    first = next((place for place, one in enumerate(spots) if one.generated or one.by == "tf.function"), 0)
    inner = [one for one in spots[first:] if not _is_of_layer(one)]
    spot = spots[-1]
    if not first or not inner:
        return None
    outer, traced = spots[:first], spots[first]
    applied = _applied(spot)
    if applied is not None:
        return _of_optimizer(spot, traced, outer, *applied)
    step = inner[-1]
    called = _called(step)
    return None if called is None else _of_model(step, traced, outer, called)


def _is_of_layer(spot: Spot) -> bool:
    """Whether Keras called a frame: a method of a layer, as a model was called."""
    return spot.code.removeprefix("tf__") in ("call", "build") and is_layer(spot.variables.get("self"))


# -- an optimizer -----------------------------------------------------------------------------------------------------


def _applied(spot: Spot) -> tuple[ast.Call, Any, ast.expr | None] | None:
    """The line's call of an optimizer that is being built, the optimizer, and the variables that it is given."""
    statement = spot.statement
    for one in calls(statement) if statement is not None else ():
        if not isinstance(one.func, ast.Attribute) or one.func.attr not in _APPLIES:
            continue
        optimizer = _value(one.func.value, spot)
        if _is_optimizer(optimizer):
            return one, optimizer, _variables(one, spot)
    return None


def _value(node: ast.expr, spot: Spot) -> Any:
    """The value of a name, of `self.name`, or of an entry of a list or a dict of such a name."""
    if not isinstance(node, ast.Subscript):
        return lookup(node, spot)
    owner = lookup(node.value, spot)
    key = node.slice.value if isinstance(node.slice, ast.Constant) else lookup(node.slice, spot)
    if isinstance(owner, dict) and isinstance(key, _EQUAL):
        return dict.get(owner, key)
    if type(owner) in (list, tuple) and type(key) is int and -len(owner) <= key < len(owner):
        return owner[key]
    return None


def _is_optimizer(value: object) -> bool:
    return of_keras(type(value), "BaseOptimizer")


def _variables(call: ast.Call, spot: Spot) -> ast.expr | None:
    """The expression of the variables in `apply_gradients(zip(gradients, variables))`."""
    method = getattr(call.func, "attr", "")
    found: ast.expr | None
    if method == "apply_gradients":
        pairs = argument(call, 0, "grads_and_vars")
        if isinstance(pairs, ast.Call) and dotted(pairs.func) == "list" and len(pairs.args) == 1:
            pairs = pairs.args[0]
        zipped = isinstance(pairs, ast.Call) and dotted(pairs.func) == "zip" and len(pairs.args) == 2
        found = pairs.args[1] if zipped and isinstance(pairs, ast.Call) else None
    else:
        found = argument(call, _APPLIES[method], "trainable_variables" if method == "apply" else "var_list")
    function = spot.function
    if isinstance(found, ast.Name) and isinstance(function, ast.FunctionDef):
        made = [
            one.value for one in ast.walk(function)
            if isinstance(one, ast.Assign) and found.id in [dotted(target) for target in one.targets]
        ]  # fmt: skip
        found = made[0] if len(made) == 1 else None if made else found
    return found


def _of_optimizer(
    spot: Spot, traced: Spot, outer: list[Spot], call: ast.Call, optimizer: Any, variables: ast.expr | None
) -> Explanation:
    name = getattr(traced.function, "name", "the function")
    own = spot.source.text(call.func.value)  # type: ignore[attr-defined]  # it is a method's call
    cause = (
        f"{own}, {_article(optimizer)}, is used for the first time in a later trace of {name}. Keras makes an "
        "optimizer's variables at its first use, and only the first trace of a tf.function may make variables."
    )
    for frame in outer if variables is not None else ():  # the outermost one that knows both
        words = _Words(spot, traced, frame, outer[-1])
        owner, given = words.of(call.func.value), words.of(variables)  # type: ignore[attr-defined, arg-type]
        statement = frame.statement
        if owner is None or given is None or statement is None:
            continue
        place = _above_loops(frame, statement, words.used, [owner, given])
        blanks = indent_of(frame.source.lines[place.lineno - 1])
        text = f"{owner}.build({given})"
        late = list(dict.fromkeys(_built_late(variables, spot, words))) if variables is not None else []
        check = " and ".join(f"{one}.built" for one in late)
        lines = (f"{blanks}if {check}:", f"{blanks}    {text}") if late else (f"{blanks}{text}",)
        edit = Edit(frame.file, place.lineno, place.lineno - 1, lines)
        return Explanation(RULE, frame.file, frame.line, cause, edit)
    return Explanation(
        RULE, spot.file, spot.line, cause, None,
        f"Call {own}.build(variables), with the variables that it trains, before {name} is called with it.",
    )  # fmt: skip


def _built_late(variables: ast.expr, spot: Spot, words: _Words) -> Iterator[str]:
    """The models whose variables are asked for that may have none yet: they do not say what their input is."""
    for one in ast.walk(variables):
        if not isinstance(one, ast.Attribute) or one.attr not in _VARIABLES:
            continue
        model, text = lookup(one.value, spot), words.of(one.value)
        if text is None or not is_layer(model) or type(model).__name__ == "Functional":
            continue
        last = text.rpartition(".")[2]
        made = [
            part.value for part in ast.walk(spot.source.tree)
            if isinstance(part, ast.Assign) and last in [dotted(each).rpartition(".")[2] for each in part.targets]
        ]  # fmt: skip
        sequential = any(kind.__name__ == "Sequential" for kind in type(model).__mro__)
        if not sequential or not made or not all(_KNOWS_SHAPE.search(spot.source.text(part)) for part in made):
            yield text


# -- a model ----------------------------------------------------------------------------------------------------------


def _called(step: Spot) -> tuple[ast.Call, Any] | None:
    """The line's call of a model or layer that had no variables yet."""
    statement = step.statement
    for one in calls(statement) if statement is not None else ():
        model = lookup(one.func, step)
        if is_layer(model) and one.args:
            return one, model
    return None


def _of_model(step: Spot, traced: Spot, outer: list[Spot], called: tuple[ast.Call, Any]) -> Explanation | None:
    """The model called once before, where the step is called: the batch is known there."""
    call, _ = called
    frame, words = outer[-1], _Words(step, traced, outer[-1], outer[-1])
    model, given = words.of(call.func), words.of(call.args[0])
    statement = frame.statement
    name = getattr(traced.function, "name", "the function")
    if model is None or given is None or statement is None or step is not traced:
        return None
    blanks = indent_of(frame.source.lines[statement.lineno - 1])
    optimizers = [f"{blanks}    {text}" for text in _built_too(step, words)]
    cause = (
        f"`{step.source.text(call)}` makes the variables of {model} in a later trace of {name}: Keras makes them when "
        "a model is first called, and only the first trace of a tf.function may make variables."
    )
    lines = (f"{blanks}if not {model}.built:", f"{blanks}    {model}({given})", *optimizers)
    return Explanation(
        RULE, frame.file, frame.line, cause, Edit(frame.file, statement.lineno, statement.lineno - 1, lines)
    )


def _built_too(step: Spot, words: _Words) -> Iterator[str]:
    """The lines that build the optimizers of the step, which would be the next to make variables."""
    for one in calls(step.function) if step.function is not None else ():
        if isinstance(one.func, ast.Attribute) and one.func.attr in _APPLIES:
            if not _is_optimizer(_value(one.func.value, step)):
                continue
            variables = _variables(one, step)
            owner, given = words.of(one.func.value), words.of(variables) if variables is not None else None
            if owner is not None and given is not None:
                yield f"{owner}.build({given})"


# -- names in another frame -------------------------------------------------------------------------------------------


class _Words:
    """How a frame outside of a trace says what a frame inside it says.

    Attributes:
      used: The names of the outer frame that were needed.
    """

    def __init__(self, inside: Spot, traced: Spot, frame: Spot, caller: Spot) -> None:
        self._inside, self._frame = inside, frame
        self._passed = _passed(traced, caller) if inside is traced and frame is caller else {}
        self.used: set[str] = set()

    def of(self, node: ast.expr) -> str | None:
        """The expression as the outer frame has to write it; None where it does not know a part."""
        source = self._inside.source
        pieces: dict[ast.expr, str] = {}
        for name in names(node):
            own = self._named(name)
            if own is None:
                return None
            pieces.update({
                one: own for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == name
            })  # fmt: skip
        if isinstance(node, ast.Name):
            return pieces.get(node)
        text = source.text(node)
        if all(one.id == new for one, new in pieces.items() if isinstance(one, ast.Name)):
            return text
        return _substituted(node, {one.id: new for one, new in pieces.items() if isinstance(one, ast.Name)})

    def _named(self, name: str) -> str | None:
        value = self._inside.value(name)
        if value is None and hasattr(builtins, name):
            return name
        if value is not None and not is_symbolic(value) and not isinstance(value, _EQUAL):
            for other, known in [*self._frame.variables.items(), *self._frame.module.items()]:
                if (
                    known is value
                    and other.isidentifier()
                    and self._frame.value(other) is value
                    and self._frame.has(other)
                ):
                    self.used.add(other)
                    return str(other)
        given = self._passed.get(name)
        if given is None:
            return None
        self.used.update(names(given))
        return self._frame.source.text(given)


def _substituted(node: ast.expr, new: dict[str, str]) -> str:
    class Renamed(ast.NodeTransformer):
        def visit_Name(self, one: ast.Name) -> ast.expr:
            return ast.parse(new[one.id], mode="eval").body if one.id in new else one

    return ast.unparse(Renamed().visit(ast.parse(ast.unparse(node), mode="eval").body))


def _passed(traced: Spot, caller: Spot) -> dict[str, ast.expr]:
    """What the caller's line passes for the parameters of the traced function."""
    function, statement = traced.function, caller.statement
    if not isinstance(function, ast.FunctionDef) or statement is None:
        return {}
    found = [one for one in calls(statement) if dotted(one.func).rpartition(".")[2] == function.name]
    if len(found) != 1 or any(isinstance(one, ast.Starred) for one in found[0].args):
        return {}
    parameters = [one.arg for one in function.args.args]
    static = any(dotted(one) == "staticmethod" for one in function.decorator_list)
    if isinstance(traced.source.parent(function), ast.ClassDef) and not static:
        parameters = parameters[1:]
    passed = dict(zip(parameters, found[0].args))
    return {**passed, **{one.arg: one.value for one in found[0].keywords if one.arg is not None}}


def _above_loops(frame: Spot, statement: ast.stmt, used: set[str], texts: list[str]) -> ast.stmt:
    """The statement itself, or the outermost loop around it in which what is named stays the same."""
    place = statement
    for one in frame.source.around(statement):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            break
        if isinstance(one, (ast.For, ast.While)):
            stores = [part for part in ast.walk(one) if isinstance(getattr(part, "ctx", None), ast.Store)]
            bound = {part.id for part in stores if isinstance(part, ast.Name)}
            owned = [dotted(part) for part in stores if isinstance(part, ast.Attribute)]
            if bound & used or any(text.startswith(own) for own in owned for text in texts):
                break
            place = one
    return place


def _article(optimizer: Any) -> str:
    kind = type(optimizer).__name__
    return f"{'an' if kind[:1] in 'AEIOU' else 'a'} {kind}"
