"""The lines that give a node's result the shape it lost, by what is known of it."""

from __future__ import annotations

import ast
import itertools

from pyfunc_debug.doctor.bodies.decorated import in_python
from pyfunc_debug.doctor.failures.models import epoch_metrics, keras_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, edit_of
from pyfunc_debug.doctor.failures.reading.nodes import (
    Node,
    argument,
    return_value,
)
from pyfunc_debug.doctor.failures.reading.shapes import Shape, written
from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import Function, dotted, parameters, read
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    lookup,
)

_STATISTICS = (
    "spearmanr",
    "pearsonr",
    "kendalltau",
    "weightedtau",
    "pointbiserialr",
    "ks_2samp",
    "ttest_ind",
    "ttest_rel",
)
_BY_NUMBER = ("sin", "cos", "tan", "exp", "log", "log1p", "sqrt", "square", "abs", "tanh", "sinh", "cosh", "sign")


def asked(spot: Spot, call: ast.Call, shape: Shape | None) -> Edit | None:
    """The call with the shape that the body gives for zeros: its source does not say that it is that of its input."""
    function, inp = argument(call, 0, "func"), argument(call, 1, "inp")
    listed = inp.elts if isinstance(inp, (ast.List, ast.Tuple)) else []
    if not dotted(function) or len(listed) != 1 or not isinstance(listed[0], ast.Name) or not shape:
        return None
    eager = dotted(call.func).rpartition(".")[2] == "py_function" or spot.source.statement(call.lineno) is None
    if eager or None in shape[1:] or len(shape) < 2 or _draws(spot, dotted(function)):
        return None
    tf, np, x = alias(spot, "tensorflow"), alias(spot, "numpy"), listed[0].id
    batch = shape[0] is None
    zeros = f"{np}.zeros({f'[1, *{x}.shape[1:]]' if batch else f'{x}.shape'}, {x}.dtype.as_numpy_dtype)"
    size = f"{in_python(call, dotted(function))}({zeros}).shape"
    text = f"{tf}.ensure_shape({spot.source.text(call)}, {f'[None, *{size}[1:]]' if batch else size})"
    placed = spot.source.replaced({call: text})
    return edit_of(spot.file, placed)


def _draws(spot: Spot, name: str) -> bool:
    """Whether a function of the file draws random numbers: one call more would change those of the program."""
    own = [one for one in ast.walk(spot.source.tree) if isinstance(one, ast.FunctionDef) and one.name == name]
    return any("random" in ast.unparse(one) for one in own)


def edited(node: Node, spot: Spot, call: ast.Call, known: list[Shape | None]) -> Edit | None:
    """The lines that give the result its shape."""
    if node.site is None or not known or all(shape is None for shape in known):
        return None
    source, tf = read(node.site[0]), alias(spot, "tensorflow")
    statement = source.statement(call.lineno)
    if statement is None:
        return None
    line = source.lines[statement.lineno - 1]
    blanks = line[: len(line) - len(line.lstrip())]
    after = (statement.end_lineno or statement.lineno) + 1
    assigned = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    many = len(node.tout) > 1 or isinstance(argument(call, 2, "Tout"), (ast.List, ast.Tuple))
    if isinstance(assigned, ast.Name) and len(known) == 1 and known[0] is not None:
        name, shape = assigned.id, written(known[0])
        new = f"{blanks}{name} = {tf}.ensure_shape({name}, {shape})"
        if many:  # it is a list of one tensor
            new = f"{blanks}{name} = [{tf}.ensure_shape({name}[0], {shape})]"
        return Edit(node.site[0], after, after - 1, (new,))
    if isinstance(assigned, (ast.Tuple, ast.List)):
        lines = [
            f"{blanks}{source.text(target)} = {tf}.ensure_shape({source.text(target)}, {written(shape)})"
            for target, shape in zip(assigned.elts, known) if shape is not None
        ]  # fmt: skip
        return Edit(node.site[0], after, after - 1, tuple(lines))
    text = source.text(call)
    around = [one for one in source.around(call) if isinstance(one, (ast.Call, ast.ListComp))]
    if any("ensure_shape" in dotted(part.func) for one in around for part in calls(one)):
        return None  # it has what is known, and that was not enough
    if not many and known[0] is not None:
        new = f"{tf}.ensure_shape({text}, {written(known[0])})"
    elif many:
        listed = ", ".join("None" if shape is None else written(shape) for shape in known)
        new = f"[{tf}.ensure_shape(y, s) for y, s in zip({text}, [{listed}])]"
    else:
        return None
    found = source.replaced({call: new})
    return edit_of(node.site[0], found)


def like_its_input(spot: Spot, call: ast.Call) -> Edit | None:
    """The result with the static shape of the only input, whatever it is."""
    inp, tout = argument(call, 1, "inp"), argument(call, 2, "Tout")
    one = inp.elts[0] if isinstance(inp, (ast.List, ast.Tuple)) and len(inp.elts) == 1 else None
    if not isinstance(one, ast.Name) or isinstance(tout, (ast.List, ast.Tuple, ast.Dict)):
        return None
    text = f"{alias(spot, 'tensorflow')}.ensure_shape({spot.source.text(call)}, {one.id}.shape)"
    found = spot.source.replaced({call: text})
    return edit_of(spot.file, found)


def of_each_number(spot: Spot, call: ast.Call, function: Function) -> Edit | None:
    """The result with the shape that its inputs have together: for a body that computes number by number."""
    inp, tout, value = argument(call, 1, "inp"), argument(call, 2, "Tout"), return_value(function)
    inputs = inp.elts if isinstance(inp, (ast.List, ast.Tuple)) else []
    lines = [] if isinstance(function, ast.Lambda) else function.body
    if value is None or isinstance(tout, (ast.List, ast.Tuple, ast.Dict)) or len(lines) > 1 or len(inputs) != 2:
        return None
    if not all(isinstance(one, ast.Name) for one in inputs) or not _by_number(value, set(parameters(function))):
        return None
    tf, (one, other) = alias(spot, "tensorflow"), map(spot.source.text, inputs)
    size = f"{tf}.broadcast_static_shape({one}.shape, {other}.shape)"
    found = spot.source.replaced({call: f"{tf}.ensure_shape({spot.source.text(call)}, {size})"})
    return edit_of(spot.file, found)


def _by_number(node: ast.AST, given: set[str]) -> bool:
    """Whether an expression computes each number of its result from the numbers in the same place."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        return _by_number(node.left, given) and _by_number(node.right, given)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return _by_number(node.operand, given)
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        return dotted(node.func).rpartition(".")[2] in _BY_NUMBER and _by_number(node.args[0], given)
    number = isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
    return number or (isinstance(node, ast.Name) and node.id in given)


def of_statistic(spot: Spot, call: ast.Call, node: Node, given: list[tuple[str, Shape | None]]) -> Edit | None:
    """The statistic, without its p-value, of two rows of numbers, where the body is a function of SciPy's."""
    function = argument(call, 0, "func")
    value = lookup(function, spot) if function is not None else None
    of_scipy = str(getattr(value, "__module__", "")).startswith("scipy.stats")
    if not of_scipy or getattr(value, "__name__", "") not in _STATISTICS or function is None or len(node.tout) != 1:
        return None
    if isinstance(argument(call, 2, "Tout"), (ast.List, ast.Tuple)) or [len(one or ()) for _, one in given] != [1, 1]:
        return None
    text = f"lambda a, b: {alias(spot, 'numpy')}.{node.tout[0]}({spot.source.text(function)}(a, b)[0])"
    shaped = f"{alias(spot, 'tensorflow')}.ensure_shape({spot.source.text_with(call, {function: text})}, [])"
    return edit_of(spot.file, spot.source.replaced({call: shaped}))


def _compiled(spot: Spot, call: ast.Call) -> tuple[Function, ast.expr] | None:
    """The function around a call that `compile` was given, and the expression that gives it."""
    function = next((one for one in spot.source.around(call) if isinstance(one, (ast.FunctionDef, ast.Lambda))), None)
    if (
        function is None
        or len(parameters(function)) != 2
        or isinstance(argument(call, 2, "Tout"), (ast.List, ast.Dict))
    ):
        return None
    names = {one.name for one in (function, *spot.source.around(function)) if isinstance(one, ast.FunctionDef)}
    for one in keras_calls.given(spot):
        named = one.func if isinstance(one, ast.Call) else one
        if dotted(named).rpartition(".")[2] in names:
            return function, one
    return None


def of_compiled(spot: Spot, call: ast.Call) -> Edit | None:
    """What a loss or metric returns, as a vector: Keras takes the mean of it, whatever it was."""
    if _compiled(spot, call) is None:
        return None
    tf = alias(spot, "tensorflow")
    found = spot.source.replaced({call: f"{tf}.reshape({spot.source.text(call)}, [-1])"})
    return edit_of(spot.file, found)


def in_words(node: Node, spot: Spot, call: ast.Call, known: list[Shape | None]) -> str:
    """What to write below the node's line where nothing tells the shapes: with the name that its first result has."""
    statement = spot.source.statement(call.lineno)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    names = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    unknown = [one for one, shape in itertools.zip_longest(names, known) if shape is None]
    name = dotted(unknown[0]) if unknown and unknown[0] is not None else ""
    tf = alias(spot, "tensorflow")
    if not name or statement is None:
        return f"Give the result a shape: y = {tf}.ensure_shape(y, [...])."
    below = f"Put below line {statement.end_lineno}: {name} = {tf}.ensure_shape({name}, [...])"
    several = ", and the same for the others" if len(names) > 1 else ""
    return f"{below}, with its sizes, None for those that vary{several}."


def of_epoch(spot: Spot, call: ast.Call, node: Node) -> Edit | None:
    """A metric that asks the function around a call for all rows, where the body gives a score that is not a mean."""
    found, body = _compiled(spot, call), node.function()
    if found is None or not keras_calls.is_metric(found[1], spot):
        return None
    if not any(epoch_metrics.gives_score(one, spot) for one in (found[0], body) if one is not None):
        return None
    return epoch_metrics.of_epoch(spot, found[1], spot.source.text(found[1]))
