"""Recurrent layers and their states: how many there are, how wide they are, and how many examples they are for."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.failed_layers import Made, failed_layer, other_class
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of
from pyfunc_debug.doctor.failures.reading.symbols import calls, keras_name, lookup, of_keras, of_package, shape_of

RULE = "structure"
_MANY = re.compile(r"(?:too many values to unpack \(expected|not enough values to unpack \(expected) (\d)")
_ITERATED = "Iterating over a symbolic KerasTensor is not supported"
_WIDTHS = re.compile(r"Dimensions must be equal, but are (\d+) and (\d+) for|In\[0\]: \[\d+,(\d+)\], In\[1\]: \[(\d+),")
_STATEFUL = "When using `stateful=True` in a RNN, the batch size must be static"
_ROWS = re.compile(r"If an RNN is stateful, .*Expected batch size: (\d+)\s+- Received batch size: (\d+)", re.DOTALL)
_ALIKE = re.compile(r'to have the same value for attribute "(\w+)", got "(\w+)" for forward layer')
_SAME_WAY = "Forward layer and backward layer should have different `go_backwards` value"
_MODE = re.compile(r"Invalid merge mode\. Received: (.*)\. Merge mode should be one of")
_STATES = {"LSTM": 2, "GRU": 1, "SimpleRNN": 1}
_MODES = {"add": "sum", "average": "ave", "avg": "ave", "mean": "ave", "multiply": "mul", "concatenate": "concat"}
_LEFT = ("forward", "backward")
_FARTHEST = 12
"""Lines that one paste goes over."""
_PLACE_OF_SIZE = 2
"""`predict(x, batch_size)`, and `fit(x, y, batch_size)` further behind."""
_BATCH = 32
"""Of `fit` that says none."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if states of a recurrent layer do not fit."""
    spot, statement, said = situation.last, situation.statement, situation.message
    if spot is None or statement is None or situation.body:
        return None
    if _MANY.search(said) or _ITERATED in said:
        return _unpacked(spot, statement)
    if _STATEFUL in said:
        return _stateful(spot)
    if (rows := _ROWS.search(said)) is not None:
        return _other_rows(spot, statement, int(rows[1]), int(rows[2]))
    if _ALIKE.search(said) or _SAME_WAY in said or _MODE.search(said):
        return _directions(spot, statement, said)
    return _widths(situation) if _WIDTHS.search(said) else None


def _other_rows(spot: Spot, statement: ast.stmt, states: int, rows: int) -> Explanation | None:
    """`predict` of one row, or of batches of 32, by a model that was made for batches of 4."""
    for call in fits(statement):
        model = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
        inputs = list(getattr(model, "inputs", None) or ()) if of_keras(type(model), "Model") else []
        shape = shape_of(inputs[0]) if len(inputs) == 1 else None
        if shape is None or shape[0] != states or not isinstance(call.func, ast.Attribute):
            continue
        data, size = argument(call, 0, "x"), next((one.value for one in call.keywords if one.arg == "batch_size"), None)
        value = lookup(data, spot) if data is not None else None
        if value is None and data is not None:
            value = computed(data, spot)
        whole = shape_of(value)
        name, source = spot.source.text(call.func.value), spot.source
        cause = (
            f"{name} is made for batches of {states} rows (its Input says so), of which its stateful layer keeps "
            f"the states, and {call.func.attr} gives it {rows}."
        )
        if whole and whole[0] and whole[0] % states == 0 and len(call.args) < _PLACE_OF_SIZE:
            new = source.with_argument(call, f"batch_size={states}") if size is None else ""
            found = source.replaced({size: str(states)} if size is not None else {call: new})
            return Explanation(RULE, spot.file, call.lineno, cause, edit_of(spot.file, found))
        advice = f"Give it {states} rows at once, or make a model of batch_shape=({rows}, ...) and give it the weights."
        if call.func.attr != "predict" or not whole or whole[0] != rows or None in shape[1:]:
            return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
        keras, top = keras_name(spot), _above_loops(spot, statement, name)
        blanks = indent_of(source.lines[top - 1])
        sizes = ", ".join(map(str, (rows, *shape[1:])))
        other = f"{name.replace('.', '_')}_of_{rows}"
        lines = (
            f"{blanks}{other} = {keras}.models.clone_model({name}, {keras}.Input(batch_shape=({sizes})))",
            f"{blanks}{other}.set_weights({name}.get_weights())",
        )
        last = call.func.value.end_lineno or call.lineno
        own = source.spliced({call.func.value: other}, top, last)
        if last - top > _FARTHEST:
            return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
        cause += " The same model for other batches takes its weights:"
        return Explanation(RULE, spot.file, call.lineno, cause, Edit(spot.file, top, last, (*lines, *own)))
    return None


def _above_loops(spot: Spot, statement: ast.stmt, model: str) -> int:
    """The line of the outermost loop around a statement that does not train the model; else the statement's."""
    top = statement.lineno
    for one in spot.source.around(statement):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            break
        if isinstance(one, (ast.For, ast.While)):
            trains = ("fit", "train_on_batch", "set_weights", "load_weights")
            if any(dotted(call.func) in {f"{model}.{name}" for name in trains} for call in calls(one)):
                break
            top = one.lineno
    return top


def _layer(call: ast.Call, spot: Spot) -> tuple[ast.Call, ast.Call | None] | None:
    """The call that makes the recurrent layer that a call is of, and the Bidirectional around it."""
    made = _assigned(call.func, spot)
    if made is None:
        return None
    if _kind(made) != "Bidirectional":
        return (made, None) if _kind(made) in _STATES else None
    inner = argument(made, 0, "layer")
    return (inner, made) if isinstance(inner, ast.Call) and _kind(inner) in _STATES else None


def _kind(call: ast.Call) -> str:
    return dotted(call.func).rpartition(".")[2]


def _unpacked(spot: Spot, statement: ast.stmt) -> Explanation | None:
    """Names for what a recurrent layer gives."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return None
    target, found = statement.targets[0], _layer(statement.value, spot)
    if not isinstance(target, (ast.Tuple, ast.List)) or found is None:
        return None
    if any(not isinstance(one, ast.Name) for one in target.elts):
        return None
    layer, around = found
    names, kind = [one.id for one in target.elts if isinstance(one, ast.Name)], _kind(layer)
    given = next((one.value for one in layer.keywords if one.arg == "return_state"), None)
    count = _STATES[kind] * (1 if around is None else 2) + 1
    if given is None and len(names) == count:
        cause = f"Without return_state=True {kind} gives its output alone, and no states."
        edit = edit_of(spot.file, spot.source.replaced({layer: spot.source.with_argument(layer, "return_state=True")}))
        return Explanation(RULE, spot.file, layer.lineno, cause, edit)
    if given is None or computed(given, spot) is not True or around is None or len(names) != _STATES[kind] + 1:
        return None
    states = names[1:]
    parts = [f"{way}_{name.removeprefix('state_')}" for way in _LEFT for name in states]
    if any(spot.value(one) is not None for one in parts) or "_" in states:
        return None
    first, last, lines = spot.source.kept_lines({target: ", ".join([names[0], *parts])})
    joined = f"{' ' * statement.col_offset}{{}} = {other_class(layer.func, 'Concatenate', spot)}()([{{}}, {{}}])"
    lines += tuple(joined.format(name, *(f"{way}_{name.removeprefix('state_')}" for way in _LEFT)) for name in states)
    units = argument(layer, 0, "units")
    width = computed(units, spot) if units is not None else None
    size = f", {2 * width} numbers wide" if isinstance(width, int) else ""
    cause = (
        f"Bidirectional has two {kind} layers, and gives the states of both: {2 * len(states)} of them. "
        f"A decoder takes {len(states)}: here both are joined{size}."
    )
    return Explanation(RULE, spot.file, statement.lineno, cause, Edit(spot.file, first, last, lines), "", "likely")


def _widths(situation: Situation) -> Explanation | None:
    """A state of another width than the layer has units, as two joined ones of a Bidirectional."""
    failed = failed_layer(situation)
    states = failed.given[1] if failed is not None and len(failed.given) > 1 else None
    if failed is None or failed.kind not in [f"{one}Cell" for one in _STATES]:
        return None
    first: Any = states[0] if isinstance(states, (list, tuple)) and states else states
    shape, units = shape_of(first), vars(failed.layer).get("units")
    width = shape[-1] if shape else None
    if width is None or units is None or width == units:
        return None
    kind = failed.kind.removesuffix("Cell")
    for file, source in situation.sources():
        spot = next((one for one in reversed(situation.spots) if one.file == file), None)
        for_states = [
            found[0] for one in calls(source.tree) if spot is not None
            and any(word.arg == "initial_state" for word in one.keywords)
            and (found := _layer(one, spot)) is not None and found[1] is None and _kind(found[0]) == kind
        ]  # fmt: skip
        if spot is None or len(for_states) != 1:
            continue
        made = Made(spot, for_states[0], None)
        given = argument(made.call, 0, "units")
        if given is None:
            return None
        new = f"2 * {source.atom(given)}" if width == 2 * units and not isinstance(given, ast.Constant) else str(width)
        cause = (
            f"{kind} (line {made.call.lineno}) has {units} units, and its initial_state is {width} numbers wide: a "
            "state has one number for each unit."
        )
        edit = made.edit(source.text_with(made.call, {given: new}))
        return Explanation(RULE, file, made.call.lineno, cause, edit)
    return None


def _stateful(spot: Spot) -> Explanation | None:
    """An Input without the size of a batch, for a layer that keeps a state for each example of one."""
    source = spot.source
    inputs = [one for one in source.calls_of(frozenset({"Input"})) if argument(one, 0, "shape") is not None]
    sizes = {
        ast.unparse(word.value): word.value for one in source.calls_of(frozenset({"fit", "predict", "evaluate"}))
        for word in one.keywords if word.arg == "batch_size"
    }  # fmt: skip
    batched = any(isinstance(one.func, ast.Attribute) and one.func.attr == "batch" for one in calls(source.tree))
    if len(sizes) > 1 or (batched and not sizes):
        return None
    size = next((source.text(one) for one in sizes.values()), str(_BATCH))
    if sizes and computed(next(iter(sizes.values())), spot) is None:
        return None
    how = f"{size}, as fit says" if sizes else f"{_BATCH}, which fit takes where it is not told another"
    cause = f"A stateful layer keeps a state for each example of a batch, so the Input says how many there are: {how}."
    declared = [
        (one, word) for one in calls(source.tree) for word in one.keywords if word.arg == "input_shape"
    ]  # fmt: skip
    if len(inputs) == 1 and not any(one.arg in ("batch_size", "batch_shape") for one in inputs[0].keywords):
        new = source.with_argument(inputs[0], f"batch_size={size}")
        return Explanation(
            RULE,
            spot.file,
            inputs[0].lineno,
            cause,
            edit_of(spot.file, source.replaced({inputs[0]: new})),
            "",
            "likely",
        )
    if inputs or len(declared) != 1:
        return None
    call, word = declared[0]
    rest = [
        *map(source.text, call.args),
        *(f"{one.arg}={source.text(one.value)}" for one in call.keywords if one is not word),
    ]
    made = f"{other_class(call.func, 'Input', spot)}({source.text(word.value)}, batch_size={size})"
    new = f"{source.text(call.func)}({', '.join(rest)})"
    around = source.parent(call)
    if isinstance(around, ast.List):
        edit = edit_of(spot.file, source.replaced({call: f"{made}, {new}"}))
        return Explanation(RULE, spot.file, call.lineno, cause, edit, "", "likely")
    statement = source.parent(around) if around is not None else None
    if isinstance(around, ast.Call) and isinstance(statement, ast.Expr) and statement.lineno == call.lineno:
        first, last, lines = source.kept_lines({call: new})
        line = f"{' ' * statement.col_offset}{source.text(around.func)}({made})"
        return Explanation(
            RULE, spot.file, call.lineno, cause, Edit(spot.file, first, last, (line, *lines)), "", "likely"
        )
    return None


def _directions(spot: Spot, statement: ast.stmt, said: str) -> Explanation | None:
    """The two layers of a Bidirectional."""
    found = [one for one in calls(statement) if _kind(one) == "Bidirectional"]
    if len(found) != 1:
        return None
    call, source = found[0], spot.source
    mode = argument(call, 1, "merge_mode")
    if _MODE.search(said):
        value = computed(mode, spot) if mode is not None else None
        if mode is not None and isinstance(value, str) and value in _MODES:
            cause = f'Bidirectional calls it "{_MODES[value]}".'
            edit = edit_of(spot.file, source.replaced({mode: f'"{_MODES[value]}"'}))
            return Explanation(RULE, spot.file, mode.lineno, cause, edit)
        made = of_package(mode.func, spot) if isinstance(mode, ast.Call) else type(lookup(mode, spot)) if mode else None
        if mode is None or getattr(made, "__name__", "") not in (*_STATES, "RNN") or len(call.args) != 2:
            return None
        cause = "The second argument of Bidirectional is its merge_mode; the layer for the other way is backward_layer."
        text = source.text(mode)
        if isinstance(mode, ast.Call) and not any(one.arg == "go_backwards" for one in mode.keywords):
            text = source.with_argument(mode, "go_backwards=True")
        edit = edit_of(spot.file, source.replaced({mode: f"backward_layer={text}"}))
        return Explanation(RULE, spot.file, mode.lineno, cause, edit)
    given = argument(call, len(call.args), "backward_layer")
    backward = _assigned(given, spot)
    if backward is None:
        return None
    alike = _ALIKE.search(said)
    name, value = (alike[1], alike[2]) if alike is not None else ("go_backwards", "True")
    old = next((one.value for one in backward.keywords if one.arg == name), None)
    if alike is None and old is not None:
        return None
    new = (
        source.text_with(backward, {old: value})
        if old is not None
        else source.with_argument(backward, f"{name}={value}")
    )
    cause = "The backward_layer reads a series from its end: it says so itself."
    if alike is not None:
        cause = f"The layers of both ways are joined, so both need {name}={value}, as the forward one has."
    return Explanation(RULE, spot.file, backward.lineno, cause, edit_of(spot.file, source.replaced({backward: new})))


def _assigned(node: ast.expr | None, spot: Spot) -> ast.Call | None:
    """The call that makes a layer, where the layer has a name."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        same = spot.source.given_to(dotted(node))
        node = same[0] if len(same) == 1 else None
    return node if isinstance(node, ast.Call) else None
