"""Images between 0 and 1 for Keras' trained networks that take 0 to 255: their `preprocess_input`, or themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import Given
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.bodies.run_functions import functions_that_ran
from pyfunc_debug.doctor.datasets.mapped_outputs import Output, Outputs, files_of_calls
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.doctor.rules.scaled_twice import divisor, first_input, fractions, keeps_range
from pyfunc_debug.records import Finding

NAMES = ("scaled-twice",)
_MEANS = "subtracts means of 104 to 124"
_TO_ONE = "divides by 127.5 and subtracts 1"
_DOES = {
    "vgg16": _MEANS, "vgg19": _MEANS, "resnet": _MEANS, "resnet50": _MEANS, "inception_v3": _TO_ONE,
    "xception": _TO_ONE, "mobilenet": _TO_ONE, "mobilenet_v2": _TO_ONE, "inception_resnet_v2": _TO_ONE,
    "resnet_v2": _TO_ONE, "nasnet": _TO_ONE, "densenet": "divides by 255",
}  # fmt: skip
"""What `preprocess_input` of a module does with pixels from 0 to 255; that of others gives what it gets."""
_SCALE = ("EfficientNet", "MobileNetV3", "ConvNeXt", "RegNet")
"""Networks that scale for themselves."""
_SAME = ("asarray", "array", "float32", "expand_dims", "cast", "resize", "convert_to_tensor")
_STANDARDS = "per_image_standardization"
_STEPS = 6


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call of preprocess_input, and a network that is fitted."""
    told: set[tuple[str, int]] = set()
    for file in files_of_calls(facts):
        outputs = Outputs(facts, file, keeps_range)
        known = imports(outputs.own)
        calls = [one for one in code.all_nodes(outputs.own.tree) if isinstance(one, ast.Call)] if outputs else []
        for call in calls:
            does = _does(known, call)
            origin = outputs.origin(call.args[0]) if does else None
            measured = fractions(facts, origin) if origin is not None else None
            if origin is not None and measured is not None:
                told.add((file, call.lineno))
                yield _measured(facts, outputs.own, file, call, does, origin, measured)
        yield from _of_network(facts, outputs, file, known, calls)
    for ran in functions_that_ran(facts):
        own = pastes.source(facts, ran.file)
        known = imports(own)
        for one in code.own_nodes(ran.function):
            does = _does(known, one) if isinstance(one, ast.Call) else ""
            if does and isinstance(one, ast.Call) and (ran.file, one.lineno) not in told:
                told.add((ran.file, one.lineno))
                if (divided := _division(own, ran.function, one)) is not None:
                    yield _read(facts, own, ran.file, one, does, divided)


def _does(known: Mapping[str, str], call: ast.Call) -> str:
    """What a call of `preprocess_input` does with its pixels; "" for other calls."""
    head, _, rest = dotted(call.func).partition(".")
    parts = f"{known.get(head, '')}.{rest}".rstrip(".").split(".")
    if len(parts) < 4 or parts[-1] != "preprocess_input" or parts[-3] != "applications" or len(call.args) != 1:
        return ""
    return "" if call.keywords else _DOES.get(parts[-2], "")


def _measured(
    facts: Facts, own: Source, file: str, call: ast.Call, does: str, origin: Output,
    measured: tuple[int, Sequence[Given]],
) -> Finding:  # fmt: skip
    body, (_, seen) = origin.group[0], measured
    return Finding(
        NAMES[0], "error", body.id, (seen[0].call,),
        f"{own.text(call)} takes pixels from 0 to 255: it {does}. {_gave(facts, origin, measured)}, so that all images "
        "come out nearly the same",
        _paste(facts, own, file, call), file, call.lineno, several(one.id for one in origin.group),
        (facts.shown(seen[0].call),), "measured",
    )  # fmt: skip


def _gave(facts: Facts, origin: Output, measured: tuple[int, Sequence[Given]]) -> str:
    """What a body returned, in which calls, and the line that scales it where one is known."""
    line, seen = measured
    scaled = f" (line {line} scales them)" if line else ""
    high = max(one.high or 0 for one in seen)
    return f"{facts.name(origin.group[0])} returned 0 to {high:.3g} in all {len(seen):,} recorded calls{scaled}"


def _read(facts: Facts, own: Source, file: str, call: ast.Call, does: str, divided: ast.AST) -> Finding:
    line = getattr(divided, "lineno", call.lineno)
    fix, tf = _paste(facts, own, file, call), pastes.module(facts, file, "tensorflow") or "tf"
    if isinstance(divided, ast.Call):
        new = f"{tf}.cast({own.text(divided.args[0])}, {tf}.float32)"
        fix = pastes.written(pastes.replaced(facts, file, {divided: new})) or f"{new}, without {_STANDARDS}"
    return Finding(
        NAMES[0], "warning", None, (),
        f"{own.text(call)} takes pixels from 0 to 255: it {does}. {own.text(divided)} in line {line} has scaled them "
        "before, so that all images come out nearly the same",
        fix, file, call.lineno,
        evidence=(f"line {line}: {facts.line(file, line)}",), confidence="likely",
    )  # fmt: skip


def _paste(facts: Facts, own: Source, file: str, call: ast.Call) -> str:
    new = f"{own.operand(call.args[0])} * 255.0"
    return pastes.written(pastes.replaced(facts, file, {call.args[0]: new})) or f"give it {new}"


def _division(own: Source, function: Definition, call: ast.Call) -> ast.AST | None:
    """What scaled an argument before, in the same function: a division by 255, or a standardization; None elsewhere."""
    node: ast.expr = call.args[0]
    line = call.lineno
    for _ in range(_STEPS):
        if isinstance(node, ast.BinOp):
            return node if divisor(node) == 255 else None
        if isinstance(node, ast.Call):
            if pastes.last_name(node.func) == _STANDARDS and len(node.args) == 1:
                return node
            if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
                node = node.func.value
            elif node.args and pastes.last_name(node.func) in _SAME:
                node = node.args[0]
            else:
                return None
            continue
        if not isinstance(node, ast.Name) or isinstance(function, ast.Lambda):
            return None
        before = [
            one for one in code.own_nodes(function)
            if isinstance(one, ast.stmt) and one.lineno < line and node.id in code.stored_names(one)
        ]  # fmt: skip
        made = before[-1] if before else None
        if made not in function.body:
            return None
        if isinstance(made, ast.AugAssign):
            whole = ast.BinOp(made.target, made.op, made.value)
            return made if divisor(whole) == 255 else None
        if not isinstance(made, ast.Assign) or len(made.targets) != 1 or not isinstance(made.targets[0], ast.Name):
            return None
        node, line = made.value, made.lineno
    return None


def _of_network(
    facts: Facts, outputs: Outputs, file: str, known: Mapping[str, str], calls: Sequence[ast.Call]
) -> Iterator[Finding]:
    """The one network of a file that scales for itself, in the one model that is fitted."""
    own = outputs.own
    made = [one for one in calls if ".applications." in f".{_full(known, one)}." and _is_network(one)]
    fits = [one for one in calls if pastes.last_name(one.func) == "fit" and isinstance(one.func, ast.Attribute)]
    models = {ast.unparse(one.func) for one in fits}
    text = "\n".join(own.code)
    if len(made) != 1 or len(models) != 1 or "Rescaling" in text or "* 255" in text or "*255" in text:
        return
    network, name = made[0], pastes.last_name(made[0].func)
    off = argument(network, 99, "include_preprocessing")
    given = argument(fits[0], 0, "x")
    if not name.startswith(_SCALE) or off is not None or not isinstance(given, ast.expr):
        return
    origin = first_input(outputs, given)
    measured = fractions(facts, origin) if origin is not None else None
    if origin is None or measured is None:
        return
    body, (line, seen) = origin.group[0], measured
    yield Finding(
        NAMES[0], "error", body.id, (seen[0].call,),
        f"{name} takes pixels from 0 to 255 and scales them itself (line {network.lineno}). "
        f"{_gave(facts, origin, measured)}: scaled twice, all are nearly the same",
        _unscaled(facts, own, body.file, line) or f"let {facts.name(body)} return the pixels from 0 to 255, as floats",
        file, network.lineno, several(one.id for one in origin.group),
        (facts.shown(seen[0].call),), "likely",
    )  # fmt: skip


def _unscaled(facts: Facts, own: Source, file: str | None, line: int) -> str:
    """A body's line without its division: times 1.0, which gives the dtype that it gave."""
    found = [one for one in pastes.around(facts.tree(file), line, ast.BinOp) if divisor(one) == 255]
    if len(found) != 1 or not line:
        return ""
    parent = pastes.source(facts, file).parent(found[0])
    cast = isinstance(parent, ast.Attribute) and parent.attr == "astype"
    left = pastes.source(facts, file).operand(found[0].left)
    return pastes.written(pastes.replaced(facts, file, {found[0]: left if cast else f"{left} * 1.0"}))


def _full(known: Mapping[str, str], call: ast.Call) -> str:
    head, _, rest = dotted(call.func).partition(".")
    return f"{known.get(head, '')}.{rest}".rstrip(".")


def _is_network(call: ast.Call) -> bool:
    return pastes.last_name(call.func)[:1].isupper()
