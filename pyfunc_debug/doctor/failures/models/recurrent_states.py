"""Recurrent layers and their states: how many there are, how wide they are, and how many examples they are for."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.evaluation import computed
from pyfunc_debug.doctor.failures.reading.failed_layers import Made, failed_layer, other_class
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup, of_package, shape_of

RULE = "structure"
_MANY = re.compile(r"(?:too many values to unpack \(expected|not enough values to unpack \(expected) (\d)")
_ITERATED = "Iterating over a symbolic KerasTensor is not supported"
_WIDTHS = re.compile(r"Dimensions must be equal, but are (\d+) and (\d+) for|In\[0\]: \[\d+,(\d+)\], In\[1\]: \[(\d+),")
_STATEFUL = "When using `stateful=True` in a RNN, the batch size must be static"
_ALIKE = re.compile(r'to have the same value for attribute "(\w+)", got "(\w+)" for forward layer')
_SAME_WAY = "Forward layer and backward layer should have different `go_backwards` value"
_MODE = re.compile(r"Invalid merge mode\. Received: (.*)\. Merge mode should be one of")
_STATES = {"LSTM": 2, "GRU": 1, "SimpleRNN": 1}
_MODES = {"add": "sum", "average": "ave", "avg": "ave", "mean": "ave", "multiply": "mul", "concatenate": "concat"}
_LEFT = ("forward", "backward")
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
    if _ALIKE.search(said) or _SAME_WAY in said or _MODE.search(said):
        return _directions(spot, statement, said)
    return _widths(situation) if _WIDTHS.search(said) else None


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
