"""A function in the place of what it gives: returned, or computed with; and what py_function gave in a function's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pyfunc_debug.doctor.bodies.decorated import Call as Decorated
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.nodes import NODE_CALLS, argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Function, Source, dotted, names, parameters, short
from pyfunc_debug.doctor.failures.reading.symbols import calls

RULE = "structure"
_TRACED = re.compile(
    r"must return zero or more Tensors.*in compilation of <function ([\w.<>]+) at.*"
    r"return value of type (?:<class ')?(?:[\w.]*Function|function|method)\b",
    re.DOTALL,
)
_RETURNED = re.compile(
    r"(?:Unsupported return value from function passed to Dataset\.\w+\(\): .*?|but got |Failed to convert elements of "
    r"|following argument value should be passed as a keyword argument: )<(?:function|bound method) ([\w.<>]+)",
    re.S,
)
_WANTED = re.compile(r"must be a callable|Could not interpret loss identifier|unsupported callable")
_PLACES = {"compile": ("loss", 1), "Lambda": ("function", 0)}
"""Where Keras takes a function: the argument's name and position."""
_VALUES = ("y_true", "y_pred")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a function stood where a tensor belongs, or a tensor where a function does."""
    if situation.body or situation.spots == ():
        return None
    if _WANTED.search(situation.message):
        return _not_a_function(situation)
    if situation.kind == "NameError" or "dtypes.DType'>)" in situation.message:
        return _not_a_function(situation)
    if "'numpy'" in situation.message and isinstance(situation.inner, AttributeError):
        return _numpy_itself(situation)
    traced = _TRACED.search(situation.message)
    found = _RETURNED.search(situation.message)
    if traced is None and found is None:
        return _computed_with(situation)
    qualified = (traced or found)[1].split(".")  # type: ignore[index]
    own = [one.removeprefix("tf__") for one in qualified if one not in ("<locals>", "outer_factory", "inner_factory")]
    outer = own[-1] if traced is not None else own[-2] if len(own) > 1 else ""
    for file, source in situation.sources():
        for function in _named(source, outer, own[-1]):
            explanation = _returned(situation, file, source, function)
            if explanation is not None:
                return explanation
    return _computed_with(situation)


def call_of(value: ast.expr, function: Function, source: Source) -> str | None:
    """The call that is meant where a function returns another: of no arguments, or of its own.

    Args:
      value: What is returned, or computed with: the name of a function, or a method.
      function: The function that returns it.
      source: Its file.
    """
    inner = _definition(value, source)
    if inner is None:
        return f"{source.text(value)}()" if isinstance(value, ast.Attribute) else None
    wanted = parameters(inner)[: len(parameters(inner)) - len(inner.args.defaults)]
    given = parameters(function)
    if inner.args.vararg is not None or inner.args.kwonlyargs:
        return None
    if not wanted:
        return f"{source.text(value)}()"
    closes = set(given) & set(names(inner)) - set(parameters(inner))
    return f"{source.text(value)}({', '.join(given)})" if len(wanted) == len(given) and not closes else None


def _definition(value: ast.expr, source: Source) -> ast.FunctionDef | None:
    name = dotted(value)
    if not name or (isinstance(value, ast.Attribute) and not name.startswith("self.")):
        return None
    every = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef)]
    found = [one for one in every if one.name == name.rpartition(".")[2]]
    return found[0] if len(found) == 1 else None


def _named(source: Source, outer: str, inner: str) -> Iterator[ast.FunctionDef]:
    """Functions of a name; for a method that was returned, those that return it."""
    for one in ast.walk(source.tree):
        if not isinstance(one, ast.FunctionDef):
            continue
        if one.name == outer or any(dotted(part) == f"self.{inner}" for part in _results(one)):
            yield one


def _results(function: ast.FunctionDef) -> list[ast.expr]:
    """What a function returns."""
    return [one.value for one in own_nodes(function) if isinstance(one, ast.Return) and one.value is not None]


def _returned(situation: Situation, file: str, source: Source, function: ast.FunctionDef) -> Explanation | None:
    results = [one for one in _results(function) if _definition(one, source) is not None]
    if len(results) != 1:
        return None
    value, inner = results[0], _definition(results[0], source)
    assert inner is not None
    name = source.text(value)
    cause = f"{function.name} returned the function {name} itself, not what it gives. "
    text = call_of(value, function, source)
    placed = source.replaced({value: text}) if text is not None else None
    if placed is not None:
        edit = Edit(file, placed[0], placed[1], (placed[2],))
        return Explanation(RULE, file, value.lineno, f"{cause}Its call is missing.", edit)
    if not set(parameters(function)) & set(names(inner)) - set(parameters(inner)):
        return Explanation(RULE, file, value.lineno, cause.strip(), None, f"Return what {name}(...) gives.")
    return _maker(situation, function, name)


def _maker(situation: Situation, function: ast.FunctionDef, name: str) -> Explanation | None:
    """A function that makes the one that is wanted, and was passed without being called."""
    for spot in reversed(situation.spots):
        statement = spot.statement
        passed = [
            one for call in ast.walk(spot.source.tree) if isinstance(call, ast.Call)
            for one in (*call.args, *(part.value for part in call.keywords))
            if isinstance(one, ast.Name) and one.id == function.name
        ]  # fmt: skip
        if statement is None or len(passed) != 1:
            continue
        given, needed = passed[0], parameters(function)[: len(parameters(function)) - len(function.args.defaults)]
        cause = f"{function.name} makes the function {name} that is wanted here, and was passed without being called."
        placed = spot.source.replaced({given: f"{function.name}()"}) if not needed else None
        edit = edit_of(spot.file, placed)
        words = f"Call it: {function.name}({', '.join(f'{one}=...' for one in needed)})."
        return Explanation(RULE, spot.file, given.lineno, cause, edit, "" if edit else words)
    return None


def too_many(situation: Situation) -> Explanation | None:
    """A maker of losses that Keras called with labels and predictions: `make_loss() takes 1 positional argument`."""
    found = re.search(r"(\w+)\(\) (?:takes|missing) ", situation.message)
    spot = situation.last
    if situation.kind != "TypeError" or found is None or spot is None or situation.body:
        return None
    made = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == found[1]]
    results = [one for one in _results(made[0]) if _definition(one, spot.source) is not None] if len(made) == 1 else []
    inner = _definition(results[0], spot.source) if len(results) == 1 else None
    if inner is None or len(parameters(inner)) != 2:
        return None
    compiled = [one for one in calls(spot.source.tree) if dotted(one.func).endswith("compile")]
    passed = [
        part for call in compiled for one in (*call.args, *(word.value for word in call.keywords))
        for part in ast.walk(one) if isinstance(part, ast.Name) and part.id == made[0].name
    ]  # fmt: skip
    called = {id(call.func) for call in calls(spot.source.tree)}
    if not passed or any(id(one) in called for one in passed):
        return None
    return _maker(situation, made[0], inner.name)


def _computed_with(situation: Situation) -> Explanation | None:
    """A function of the user's among what a line computes with, or what a tape differentiates."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or "<function " not in situation.message:
        return None
    called = {id(one.func) for one in calls(statement)}
    for one in ast.walk(statement):
        value = spot.value(one.id) if isinstance(one, ast.Name) and id(one) not in called else None
        inside = spot.source.parent(one)
        asked = isinstance(inside, ast.Call) and dotted(inside.func).endswith(".gradient") and one is inside.args[0]
        if type(value).__name__ != "function" or not (isinstance(inside, (ast.BinOp, ast.Compare)) or asked):
            continue
        assert isinstance(one, ast.Name)
        source, scope = spot.source, spot.function or spot.source.tree
        made = [
            part.value for part in ast.walk(scope)
            if isinstance(part, ast.Assign) and [dotted(each) for each in part.targets] == [one.id]
        ]  # fmt: skip
        node: ast.expr = made[0] if len(made) == 1 and isinstance(made[0], (ast.Name, ast.Attribute)) else one
        cause = f"{one.id} is a function here, not what it gives. Its call is missing."
        code, defaults = getattr(value, "__code__", None), getattr(value, "__defaults__", None) or ()
        takes = getattr(code, "co_argcount", 1) - len(defaults)
        placed = source.replaced({node: f"{source.text(node)}()"}) if takes == 0 else None
        if placed is None:
            return Explanation(RULE, spot.file, spot.line, cause, None, f"Compute with {source.text(node)}(...).")
        return Explanation(RULE, spot.file, node.lineno, cause, Edit(spot.file, placed[0], placed[1], (placed[2],)))
    return None


def _numpy_itself(situation: Situation) -> Explanation | None:
    """`x.numpy` without parentheses, where the tensor is meant."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or wrapping.entry(situation)[1] != "tf.data":
        return None
    called = {id(one.func) for one in calls(statement)}
    asked = [one for one in ast.walk(statement) if isinstance(one, ast.Attribute) and one.attr == "numpy"]
    if len(asked) != 1 or id(asked[0]) in called:
        return None
    code, after = short(spot.source.text(asked[0]), 40), spot.source.parent(asked[0])
    if isinstance(after, ast.Attribute):  # of its value something is asked: `x.numpy.decode("utf-8")`
        cause = (
            f"`{code}` names the method and does not call it; and a graph's tensors have none: they have no value yet."
        )
        advice = f"Ask for `.{after.attr}` where the dataset is read, of its values, or in a py_function."
        if after.attr == "decode":
            cause += " A tensor of text holds bytes, also behind a map: str is outside of TensorFlow only."
            advice = "Leave this line out, and decode what the dataset gives where it is read: `x.numpy().decode()`."
        return Explanation(RULE, spot.file, spot.line, cause, None, advice)
    placed = spot.source.replaced({asked[0]: spot.source.text(asked[0].value)})
    cause = (
        f"`{code}` names the method and does not call it; and a graph's tensors have none. The tensor itself is wanted."
    )
    edit = edit_of(spot.file, placed)
    return None if edit is None else Explanation(RULE, spot.file, spot.line, cause, edit)


def _not_a_function(situation: Situation) -> Explanation | None:
    """What py_function gave once, where the function that calls it belongs."""
    statement = situation.statement
    for outer in reversed(situation.spots) if statement is not None else ():
        for call in calls(outer.source.tree):
            method = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
            keyword, place = _PLACES.get(method, ("map_func" if method != "filter" else "predicate", 0))
            if method not in (*_PLACES, "map", "filter", "flat_map", "interleave"):
                continue
            given = argument(call, place, keyword)
            if not isinstance(given, ast.Call) or dotted(given.func).rpartition(".")[2] not in NODE_CALLS:
                continue
            return _as_lambda(outer, given, method)
    return None


def _as_lambda(spot: Spot, given: ast.Call, method: str) -> Explanation | None:
    source, body, inp = spot.source, argument(given, 0, "func"), argument(given, 1, "inp")
    if body is None or not isinstance(inp, (ast.List, ast.Tuple)):
        return None
    count = len(inp.elts)
    known = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(body)]
    given_names = parameters(known[0]) if len(known) == 1 else parameters(body) if isinstance(body, ast.Lambda) else []
    listed = list(_VALUES) if method == "compile" else given_names if len(given_names) == count else []
    listed = listed or ["x", "y", "z"][:count]
    if len(listed) != count:
        return None
    passed = f"[{', '.join(listed)}]"
    text = source.text(given).replace(source.text(inp), passed, 1)
    if isinstance(given, Decorated):
        text = f"{source.text(body)}({', '.join(listed)})"
    op = dotted(given.func)
    if method == "compile":
        text = f"{op.rpartition('.')[0] or 'tf'}.reshape({text}, [-1])"
    new = f"lambda {', '.join(listed)}: {text}"
    placed = source.replaced({given: new})
    last = op.rpartition(".")[2]
    cause = (
        f"`{short(source.text(given), 40)}` is what {last} gives for these values, once. {method} wants a "
        "function, which it calls itself."
    )
    edit = edit_of(spot.file, placed)
    return Explanation(RULE, spot.file, given.lineno, cause, edit, "" if edit else f"Pass a lambda that calls {last}.")
