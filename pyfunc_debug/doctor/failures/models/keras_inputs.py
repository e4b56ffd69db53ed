"""Python, NumPy or TensorFlow on a Keras input, which only describes what a model will be given."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from typing import Any

from pyfunc_debug.doctor.bodies.decorated import Call as Decorated
from pyfunc_debug.doctor.bodies.decorated import in_python
from pyfunc_debug.doctor.failures.bodies.results import body_shape
from pyfunc_debug.doctor.failures.gradients.left_behind import is_outside
from pyfunc_debug.doctor.failures.graphs import known_sizes
from pyfunc_debug.doctor.failures.graphs.chosen_values import assigned
from pyfunc_debug.doctor.failures.models import keras_chains
from pyfunc_debug.doctor.failures.models.keras_calls import whole_call
from pyfunc_debug.doctor.failures.ops.rewrites import as_ops
from pyfunc_debug.doctor.failures.pastes import wrapping
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.pastes.traced_text import RULE, explained
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.shapes import written
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import (
    alias,
    calls,
    dtype_of,
    is_keras,
    is_tf_variable,
    keras_name,
    lookup,
    root_is,
    shape_of,
    symbolic_parts,
    takes_tensors,
)
from pyfunc_debug.interception.names.private import keras_maker

_PASSES_ON = "Lambda(lambda x: [tf.py_function(body, [x], []), x][1])"
_PYTHONS = {"enumerate", "zip", "list", "tuple", "reversed", "sorted"}
"""What goes through a list of tensors: it needs no layer, what makes the list does."""
_JOINED = {"stack": "stack", "concat": "concatenate"}
_NEAR = 4
"""Lines from a call to the line that reads its input, in one paste."""


def listed_inputs(situation: Situation, spot: Spot, statement: ast.stmt, value: ast.expr) -> Explanation | None:
    """What is said where a list of Keras inputs is given to a function: `tf.add_n(inputs)`."""
    around = [one for one in situation.spots if one.file == spot.file and one.line == spot.line]
    spot = around[0] if around else spot  # a comprehension has a frame of its own
    lists = [name for name in names(value) if keras_chains.lists_inputs(spot.value(name))]
    if not lists:
        return None
    edit = keras_chains.as_layers(spot, statement, keras_name(spot))
    code, one = short(spot.source.text(statement).split("\n")[0], 44), len(lists) == 1
    cause = (
        f"`{code}` ran once, while the Keras model was built: {' and '.join(lists)} hold{'s' * one} tensors that only "
        "describe inputs of the model and have no value. Only layers and keras.ops take them."
    )
    advice = "" if edit is not None else f"Do it in {keras_name(spot)}.layers.Lambda, or use {keras_name(spot)}.ops."
    return Explanation(RULE, spot.file, spot.line, cause, edit, advice)


def _sized(spot: Spot, value: ast.expr) -> Explanation | None:
    """What is said of `Dense(tf.shape(x)[-1])(x)`, where the shape of x says that size."""
    sizes = known_sizes.sizes_in(spot, value)
    touching = [one for one in calls(value) if symbolic_parts(one, spot) and not _layer(one, spot)]
    if not sizes or not all(any(_holds(one, call) for one in sizes) for call in touching):
        return None
    asked, known = next(iter(sizes.items()))
    cause = (
        f"{spot.source.text(asked)} asks for a size as the model runs, and here a number is wanted as it is built: "
        f"{known} is one."
    )
    edit = edit_of(spot.file, spot.source.replaced(sizes))
    return Explanation(RULE, spot.file, spot.line, cause, edit, "" if edit is not None else f"Use {known}.")


def keras_input(
    situation: Situation, spot: Spot, statement: ast.stmt, value: ast.expr | None, parts: dict[str, object]
) -> Explanation:
    if value is None:
        return explained(situation, spot, statement, parts, None)
    sized = _sized(spot, value)
    if sized is not None:
        return sized
    keras = keras_name(spot)
    outer = whole_call(situation, keras)
    if outer is not None:
        return explained(situation, spot, statement, parts, outer, False)
    if isinstance(statement, (ast.If, ast.While, ast.For)):
        return explained(situation, spot, statement, parts, *_chosen(spot, statement, keras))
    if isinstance(value, ast.IfExp):
        texts = [spot.source.text(one) for one in (value.test, value.body, value.orelse)]
        edit = wrapping.replace_expression(spot, value, f"{keras}.ops.where({', '.join(texts)})")
        return explained(situation, spot, statement, parts, edit)
    chain = keras_chains.as_layers(spot, statement, keras)
    if chain is not None:
        return _untrained(explained(situation, spot, statement, parts, chain), spot, value)
    touching = [one for one in calls(value) if symbolic_parts(one, spot) and not _layer(one, spot)]
    touching = [
        one for one in touching if not isinstance(one.func, ast.Name) or one.func.id not in _PYTHONS
        or not any(one is not other and _holds(one, other) for other in touching)
    ]  # fmt: skip
    tops = [one for one in touching if not any(one is not other and _holds(other, one) for other in touching)]
    if not tops and isinstance(value, ast.Call) and _layer(value, spot):
        return explained(situation, spot, statement, parts, *_of_list(spot, value, keras))
    piece: ast.expr = tops[0] if len(tops) == 1 else value
    text = spot.source.text(piece)
    inputs = list(symbolic_parts(piece, spot)) or list(parts)
    sure = True
    if isinstance(piece, ast.Call) and dotted(piece.func).endswith(("py_function", "numpy_function")):
        if _returns_nothing(piece):
            edit = _passed_on(spot, statement, piece, inputs, keras)
            advice = "" if edit is not None else f"Call it in a layer that returns what it is given: {_PASSES_ON}."
            return explained(situation, spot, statement, parts, edit, True, advice)
        shape = body_shape(piece, spot)
        if shape == ():
            metric = _as_metric(spot, statement, piece)
            if metric is not None:
                found = explained(situation, spot, statement, parts, metric, False)
                why = " One number for a whole batch is a metric: a function of labels and predictions."
                return dataclasses.replace(found, cause=found.cause.partition(" Only layers")[0] + why)
            advice = "It gives one number for a whole batch, and a model's outputs have a row for each sample: call it "
            advice += "in a function for compile(metrics=[...])."
            return explained(situation, spot, statement, parts, None, advice=advice)
        tf, said = alias(spot, "tensorflow"), _said_shape(spot, statement)
        tout = argument(piece, 2, "Tout")
        if isinstance(tout, (ast.List, ast.Tuple)) and len(tout.elts) > 1:
            advice = f"Put it in {keras}.layers.Lambda, and say the shape of each result there: {tf}.ensure_shape."
            return explained(situation, spot, statement, parts, None, advice=advice)
        listed = isinstance(tout, (ast.List, ast.Tuple)) and _taken_apart(spot, statement)
        if isinstance(tout, (ast.List, ast.Tuple)) and isinstance(piece, Decorated):
            text = f"{text}[0]"
        elif isinstance(tout, (ast.List, ast.Tuple)):  # it gives a list then, which has no shape
            start = text.rindex(spot.source.text(tout))
            text = f"{text[:start]}{spot.source.text(tout.elts[0])}{text[start + len(spot.source.text(tout)) :]}"
        brackets = ("[", "]") if listed else ("", "")
        size = spot.source.text(said[1]) if said is not None else written(shape) if shape is not None else ""
        zeros = "" if size else _of_zeros(piece, spot, inputs)
        if zeros:
            above = f"{indent_of(spot.source.lines[statement.lineno - 1])}size = {zeros}  # of zeros"
            new = _in_lambda(spot, keras, inputs, f"{tf}.ensure_shape({text}, size)").join(brackets)
            first, last = statement.lineno, statement.end_lineno or statement.lineno
            lines = (above, *spot.source.spliced({piece: new}, first, last))
            return explained(situation, spot, statement, parts, Edit(spot.file, first, last, lines), False)
        if not size:
            advice = f"Put it in {keras}.layers.Lambda, and say its shape there: {tf}.ensure_shape(y, [None, ...])."
            return explained(situation, spot, statement, parts, None, advice=advice)
        text, sure = f"{tf}.ensure_shape({text}, {size})", False
        if listed:
            edit = wrapping.replace_expression(spot, piece, f"[{_in_lambda(spot, keras, inputs, text)}]")
            return explained(situation, spot, statement, parts, edit, sure)
        if said is not None and len(inputs) == 1 and "." not in inputs[0]:
            new = f"{keras}.layers.Lambda(lambda {inputs[0]}: {text})({inputs[0]})"
            first, last = statement.lineno, said[0].end_lineno or said[0].lineno
            lines = spot.source.spliced({piece: new}, first, said[0].lineno - 1)
            return explained(situation, spot, statement, parts, Edit(spot.file, first, last, lines))
    if isinstance(piece, ast.Call) and is_outside(piece.func, spot):
        import sys

        of_numpy = root_is(piece.func, spot, "numpy")
        ops = getattr(sys.modules.get("keras"), "ops", None)
        name = dotted(piece.func).partition(".")[2]
        name = "stack" if name in ("array", "asarray") and _listed(piece, spot) else name
        if of_numpy and takes(getattr(ops, name, None), piece):
            new = f"{keras}.ops.{name}{text[len(dotted(piece.func)) :]}"
            return explained(situation, spot, statement, parts, wrapping.replace_expression(spot, piece, new))
        layers = any(_layer(one, spot) or takes_tensors(one, spot) for one in calls(piece))
        in_ops = as_ops(piece, spot) if all(one.isidentifier() for one in inputs) and not layers else None
        if in_ops is not None:  # with its gradient
            new = _in_lambda(spot, keras, inputs, in_ops)
            return explained(situation, spot, statement, parts, wrapping.replace_expression(spot, piece, new))
        if not of_numpy:
            advice = f"{dotted(piece.func)} takes arrays, which a model has only as it runs: write it with {keras}.ops."
            return explained(situation, spot, statement, parts, None, advice=advice)
        text = (
            f"{alias(spot, 'tensorflow')}.numpy_function(lambda {', '.join(inputs)}: {text}, "
            f"[{', '.join(inputs)}], {alias(spot, 'tensorflow')}.float32)"
        )
    hidden = [name for name in names(piece) if _lists_inputs(spot.value(name))]
    if hidden:
        advice = (
            f"{' and '.join(hidden)} hold{'s' * (len(hidden) == 1)} such tensors, too: put the lines that make them "
            "and this one into the call of one layer, and give it the tensors that they begin with."
        )
        return explained(situation, spot, statement, parts, None, advice=advice)
    if not all(name.isidentifier() for name in inputs):
        return explained(
            situation, spot, statement, parts, None, advice=f"Wrap it in {keras}.layers.Lambda, or in a layer's call."
        )
    for name in inputs:  # a Lambda tries what it is given with floats, whatever its inputs are
        kind = dtype_of(spot.value(name))
        if kind and not kind.startswith(("float", "string")) and "y_function(" not in text:
            cast = f"{alias(spot, 'tensorflow')}.cast({name}, {alias(spot, 'tensorflow')}.{kind})"
            text = re.sub(rf"(?<![\w.\"']){name}\b(?!\s*=[^=])", cast, text)
    new = _in_lambda(spot, keras, inputs, text)
    found = explained(situation, spot, statement, parts, wrapping.replace_expression(spot, piece, new), sure)
    return _untrained(found, spot, piece)


def _as_metric(spot: Spot, statement: ast.stmt, call: ast.Call) -> Edit | None:
    """The call in a function of labels and predictions, where its result is a metric that `add_metric` is given."""
    source, inp = spot.source, argument(call, 1, "inp")
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    tout = argument(call, 2, "Tout")
    if not isinstance(target, ast.Name) or not isinstance(inp, (ast.List, ast.Tuple)) or len(inp.elts) != 2:
        return None
    if isinstance(tout, (ast.List, ast.Tuple)) or not isinstance(statement, ast.Assign) or statement.value is not call:
        return None
    given = [lookup(one, spot) for one in inp.elts]
    labels = [is_keras(one) and type(keras_maker(one)).__name__ == "InputLayer" for one in given]
    uses = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Name) and one.id == target.id and isinstance(one.ctx, ast.Load)
    ]  # fmt: skip
    added = [isinstance(up := source.parent(one), ast.Call) and dotted(up.func).endswith(".add_metric") for one in uses]
    if labels not in ([True, False], [False, True]) or not is_keras(given[labels.index(False)]) or not all(added):
        return None
    if not uses:
        return None
    names = ("y_true", "y_pred") if labels[0] else ("y_pred", "y_true")
    first, last = source.span(statement)
    start = source.lines[first - 1].encode()[: call.col_offset].decode()
    body = source.spliced(dict(zip(inp.elts, names)), first, last)
    tf, blanks = alias(spot, "tensorflow"), indent_of(source.lines[first - 1])
    text = " ".join([body[0][len(start) :].strip(), *(one.strip() for one in body[1:])]).replace("( ", "(")
    lines = (
        f"{blanks}def {target.id}(y_true, y_pred):",
        f"{blanks}    return {tf}.ensure_shape({text}, [])",
    )
    return Edit(spot.file, first, last, lines)


def _untrained(found: Explanation, spot: Spot, value: ast.expr) -> Explanation:
    """The explanation, which says so where a Lambda reads variables: it does not know them."""
    for one in ast.walk(value):
        held = lookup(one, spot)
        held = list(held.values()) if type(held) is dict else [held]
        layers = any(kind.__name__ == "Layer" for each in held for kind in type(each).__mro__)
        known = layers or any(map(is_keras, held))
        if not known and any(is_tf_variable(each) or getattr(each, "trainable_variables", ()) for each in held):
            return dataclasses.replace(found, cause=f"{found.cause} A Lambda does not train the variables in it.")
    return found


def _listed(call: ast.Call, spot: Spot) -> bool:
    """Whether a call is given a list of tensors: written so, or by a name."""
    first = call.args[0] if call.args else None
    return (
        isinstance(first, (ast.List, ast.Tuple)) or isinstance(lookup(first, spot), (list, tuple)) if first else False
    )


def takes(function: Any, call: ast.Call) -> bool:
    """Whether a function of keras.ops has the arguments that NumPy's is called with."""
    if function is None or any(isinstance(one, ast.Starred) for one in call.args):
        return False
    try:
        inspect.signature(function).bind(*call.args, **{one.arg: one.value for one in call.keywords if one.arg})
    except TypeError:
        return False
    return True


def _lists_inputs(value: object) -> bool:
    """Whether it is a list in which some tensor only describes what a model will be given: `[0, shape[1], -1]`."""
    return isinstance(value, (list, tuple)) and any(is_keras(one) for one in value)


def _of_list(spot: Spot, value: ast.expr, keras: str) -> tuple[Edit | None, bool, str]:
    """`tf.stack(parts)` of a list of Keras inputs, inside a call of a layer or of Model: the same of Keras' own."""
    given = [
        one for one in calls(value) if root_is(one.func, spot, "tensorflow") and one.args
        and isinstance(held := lookup(one.args[0], spot), (list, tuple)) and any(map(is_keras, held))
    ]  # fmt: skip
    name = dotted(given[0].func).rpartition(".")[2] if len(given) == 1 else ""
    if name not in _JOINED:
        return None, True, f"Put what TensorFlow does with it in {keras}.layers.Lambda, or use {keras}.ops."
    text = f"{keras}.ops.{_JOINED[name]}{spot.source.text(given[0])[len(dotted(given[0].func)) :]}"
    return wrapping.replace_expression(spot, given[0], text), True, ""


def _chosen(spot: Spot, statement: ast.If | ast.While | ast.For, keras: str) -> tuple[Edit | None, bool, str]:
    """`if b > 0: b = b * 2` as keras.ops.where; words for what Python cannot decide before there is data."""
    word = {ast.If: "if", ast.While: "while", ast.For: "for"}[type(statement)]
    advice = f"Put the `{word}` into the call of a layer, with tf.cond, tf.where or tf.map_fn for it."
    taken = assigned(statement.body) if isinstance(statement, ast.If) else None
    other = assigned(statement.orelse) if isinstance(statement, ast.If) else None
    if taken is None or (statement.orelse and (other is None or other[0] != taken[0])):
        return None, True, advice
    (name, value), source = taken, spot.source
    blanks = indent_of(source.lines[statement.lineno - 1])
    test = statement.test  # type: ignore[union-attr]
    given = ", ".join([source.text(test), source.text(value), source.text(other[1]) if other is not None else name])
    line = f"{blanks}{name} = {keras}.ops.where({given})"
    return Edit(spot.file, statement.lineno, statement.end_lineno or statement.lineno, (line,)), False, ""


def _taken_apart(spot: Spot, statement: ast.stmt) -> bool:
    """Whether the program takes the one element out of the list that a call with Tout=[...] gives."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    named = {one.id for one in targets if isinstance(one, ast.Name)}
    return any(isinstance(one, (ast.List, ast.Tuple)) for one in targets) or any(
        isinstance(one, ast.Subscript) and dotted(one.value) in named
        and isinstance(one.slice, ast.Constant) and one.slice.value == 0
        for one in ast.walk(spot.function or spot.source.tree)
    )  # fmt: skip


def _returns_nothing(call: ast.Call) -> bool:
    """Whether `Tout` is an empty list: the call is there for what it does."""
    tout = argument(call, 2, "Tout")
    return isinstance(tout, (ast.List, ast.Tuple)) and not tout.elts


def _passed_on(spot: Spot, statement: ast.stmt, call: ast.Call, inputs: list[str], keras: str) -> Edit | None:
    """A layer that calls it and returns its input, for the next line that reads this input."""
    source, name = spot.source, inputs[0]
    block = getattr(source.parent(statement), "body", [])
    after = block[block.index(statement) + 1 :] if statement in block else []
    uses = [
        (one, [part for part in ast.walk(one) if isinstance(part, ast.Name) and part.id == name
               and isinstance(part.ctx, ast.Load)])
        for one in after
    ]  # fmt: skip
    uses = [(one, found) for one, found in uses if found]
    if not isinstance(statement, ast.Expr) or len(inputs) != 1 or not name.isidentifier() or not uses:
        return None
    reader, found = uses[0]
    last = reader.end_lineno or reader.lineno
    owner = source.parent(found[0])
    if len(found) != 1 or hasattr(reader, "body") or last - statement.lineno > _NEAR or not isinstance(owner, ast.Call):
        return None
    new = f"passed_on = {keras}.layers.Lambda(lambda {name}: [{source.text(call)}, {name}][1])({name})"
    lines = source.spliced({statement.value: new, found[0]: "passed_on"}, statement.lineno, last)
    return Edit(spot.file, statement.lineno, last, lines)


def _in_lambda(spot: Spot, keras: str, inputs: list[str], text: str) -> str:
    """An expression of tensors as a Lambda layer, in their dtype: Keras casts what it gives a layer to float32."""
    dtype = keras_chains.in_dtype(dtype_of(spot.value(one)) for one in inputs)
    if len(inputs) == 1:
        return f"{keras}.layers.Lambda(lambda {inputs[0]}: {text}{dtype})({inputs[0]})"
    listed = ", ".join(inputs)
    return f"{keras}.layers.Lambda(lambda both: (lambda {listed}: {text})(*both){dtype})([{listed}])"


def _said_shape(spot: Spot, statement: ast.stmt) -> tuple[ast.stmt, ast.expr] | None:
    """`y.set_shape(...)` behind `y = tf.py_function(...)`, and the shape in it: a Keras tensor has no set_shape."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    block = getattr(spot.source.parent(statement), "body", [])
    after = block[block.index(statement) + 1 :][:1] if statement in block else []
    value = after[0].value if after and isinstance(after[0], ast.Expr) else None
    if not isinstance(target, ast.Name) or not isinstance(value, ast.Call) or len(value.args) != 1:
        return None
    return (after[0], value.args[0]) if dotted(value.func) == f"{target.id}.set_shape" else None


def _of_zeros(call: ast.Call, spot: Spot, inputs: list[str]) -> str:
    """The shape of what the body gives for one sample of zeros, as an expression; empty where sizes are open."""
    function, inp = argument(call, 0, "func"), argument(call, 1, "inp")
    open_ = any(None in (shape_of(spot.value(one)) or ())[1:] for one in inputs)
    if not dotted(function) or not isinstance(inp, (ast.List, ast.Tuple)):
        return ""
    if [spot.source.text(one) for one in inp.elts] != inputs or open_:
        return ""
    tf, end = alias(spot, "tensorflow"), "" if dotted(call.func).rpartition(".")[2] == "py_function" else ".numpy()"
    zeros = [f"{tf}.zeros([1, *{one}.shape[1:]], {one}.dtype){end}" for one in inputs]
    return f"[None, *{in_python(call, dotted(function))}({', '.join(zeros)}).shape[1:]]"


def _layer(call: ast.Call, spot: Spot) -> bool:
    owner = str(getattr(spot.value(dotted(call.func).partition(".")[0]), "__name__", ""))
    if ".backend." in dotted(call.func) or owner.endswith(".backend"):  # of Keras 2: they take tensors of TensorFlow's
        return False
    return root_is(call.func, spot, "keras") or ".layers." in dotted(call.func) or isinstance(call.func, ast.Call)


def _holds(node: ast.AST, other: ast.AST) -> bool:
    return any(one is other for one in ast.walk(node))
