"""One image generator of Keras' (`flow_from_directory`) for a model of several inputs, or with a list of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from pyfunc_debug.doctor.failures.models.keras_calls import failed_fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.flows import Flow, flow_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, lines_of
from pyfunc_debug.doctor.failures.reading.source import indent_of, names, short
from pyfunc_debug.doctor.failures.reading.symbols import lookup, of_keras, shape_of, sizes_of

RULE = "structure"
_ONE = re.compile(r"expects (\d+) (?:named )?input\(s\).*?but it received 1 input tensors", re.DOTALL)
_LISTS = "`output_signature` must contain objects that are subclass of"
_COUNTS = {"fit": "steps_per_epoch", "evaluate": "steps", "predict": "steps"}
_MOST = 4
"""For more inputs than these nothing is pasted."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if `fit`, `evaluate` or `predict` of a model of several inputs is given one image generator."""
    one, listed = _ONE.search(situation.message), situation.message.startswith(_LISTS)
    if situation.body or (one is None and not listed):
        return None
    for spot, call in failed_fits(situation):
        model = lookup(call.func.value, spot) if isinstance(call.func, ast.Attribute) else None
        inputs = list(getattr(model, "inputs", None) or ()) if of_keras(type(model), "Model") else []
        flows = _given(situation, spot, call)
        if len(inputs) < 2 or "x" not in flows or flows["x"].listed is not listed:
            continue
        return _told(spot, call, inputs, flows)
    return None


def _given(situation: Situation, spot: Spot, call: ast.Call) -> dict[str, Flow]:
    """The image generators that a call has for `x` and `validation_data`; Keras' frame has those made in the call."""
    written = {one.arg: one.value for one in call.keywords if one.arg in ("x", "validation_data")}
    if call.args and not isinstance(call.args[0], ast.Starred):
        written["x"] = call.args[0]
    values: dict[str, Any] = {}
    for frame, _ in lines_of((situation.error,)):
        given, words = frame.f_locals.get("args"), frame.f_locals.get("kwargs")
        if frame.f_code.co_name == "error_handler" and isinstance(given, tuple) and isinstance(words, dict):
            values = {**({"x": given[1]} if len(given) > 1 else {}), **words}
            break
    found: dict[str, Flow] = {}
    for name, node in written.items():
        value = lookup(node, spot) if not isinstance(node, ast.Call) else values.get(str(name))
        flow = flow_of(node, spot, value) if value is not None else None
        if flow is not None:
            found[str(name)] = flow
    return found


def _told(spot: Spot, call: ast.Call, inputs: list[Any], flows: dict[str, Flow]) -> Explanation | None:
    flow, count = flows["x"], len(inputs)
    text = short(spot.source.text(flow.node), 40)
    called = [str(one.name) for one in inputs]
    own = not any(one.startswith("keras_tensor") for one in called)
    named = f"{count} inputs" + (f" ({short(', '.join(called), 40)})" if own else "")
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if flow.listed:
        cause = f"{text} gives its inputs as a list, and tf.data takes a list for one tensor. Several are a tuple."
        return _pasted(spot, call, flows, cause, ["inputs"], "tuple(inputs)", "")
    shape = flow.image_shape
    cause = f"{text} gives one array of images{f', {sizes_of([None, *shape])}' if shape else ''}, and the model has "
    cause += f"{named}. Keras takes a tuple of {count} arrays for them."
    other = _beside(spot, flow, set(names(call)), count)
    if other and all(_fits(one, own) for one, own in zip(inputs, [flow, *other.values()])):
        cause += f" {', '.join(other)} goes through as many rows in the same order." if len(other) == 1 else ""
        parts = [f"x{place + 1}" for place in range(count)]
        return _pasted(spot, call, {"x": flow}, cause, parts, f"({', '.join(parts)})", "", [*other])
    advice = f"Give {method} a generator function that yields ((a, b), labels)."
    if not all(_fits(one, flow) for one in inputs) or count > _MOST:
        return Explanation(RULE, spot.file, call.lineno, cause, None, advice)
    cause += f" If {'both' if count == 2 else 'all'} take the same images:"
    return _pasted(spot, call, flows, cause, ["images"], f"({', '.join(['images'] * count)})", advice)


def _fits(tensor: Any, flow: Flow) -> bool:
    """Whether an input of the model takes the images of a generator."""
    wanted, given = shape_of(tensor), flow.image_shape
    if wanted is None or given is None or len(wanted) != len(given) + 1:
        return False
    return all(None in pair or pair[0] == pair[1] for pair in zip(wanted[1:], given))


def _beside(spot: Spot, flow: Flow, used: set[str], count: int) -> dict[str, Flow]:
    """Other image generators by name that give their rows in the same order as one, as many as are needed."""
    wanted = [flow.held.get(name) for name in ("n", "batch_size", "seed", "shuffle")]
    if wanted[2] is None and wanted[3]:
        return {}
    spaces = {**spot.module, **spot.variables}
    flows = {
        name: other for name, value in spaces.items()
        if name not in used and (other := flow_of(ast.Name(name, ast.Load()), spot, value)) is not None
    }  # fmt: skip
    found = {
        name: other for name, other in flows.items()
        if [other.held.get(one) for one in ("n", "batch_size", "seed", "shuffle")] == wanted
        and other.parts == flow.parts
    }  # fmt: skip
    return found if len(found) == count - 1 else {}


def _pasted(
    spot: Spot,
    call: ast.Call,
    flows: Mapping[str, Flow],
    cause: str,
    taken: list[str],
    inputs: str,
    advice: str,
    beside: list[str] | None = None,
) -> Explanation | None:
    """The explanation with a generator function above the call, and the call with what it yields."""
    source, statement = spot.source, spot.statement
    parts, method = flows["x"].parts, call.func.attr if isinstance(call.func, ast.Attribute) else ""
    alike = len({(one.parts, one.listed) for one in flows.values()}) == 1
    nothing = Explanation(RULE, spot.file, call.lineno, cause.removesuffix(":"), None, advice)
    starred = any(one.arg is None for one in call.keywords)
    if statement is None or starred or not alike or (method != "predict" and parts < 2):
        return nothing
    every = {one.id for one in ast.walk(source.tree) if isinstance(one, ast.Name)}
    every |= {one.name for one in ast.walk(source.tree) if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
    maker = next(name for name in ("as_inputs", "in_a_tuple", "as_inputs_of_model") if name not in every)
    rest = ["labels", "weights"][: parts - 1]
    blanks = indent_of(source.lines[statement.lineno - 1])
    if beside:
        each = ", ".join(
            f"({', '.join([one, *(rest if place == 0 else ['_'] * len(rest))])})" if rest else one
            for place, one in enumerate(taken)
        )
        head = [f"def {maker}(*flows):", f"    for {each} in zip(*flows):"]
    else:
        head = [f"def {maker}(flow):", f"    for {', '.join([*taken, *rest])} in flow:"]
    yielded = ", ".join([inputs, *rest]) if rest else f"({inputs},)"
    lines = [blanks + one for one in (*head, f"        yield {yielded}")]
    pieces: dict[ast.expr, str] = {}
    added: list[str] = []
    for name, flow in flows.items():
        text = source.text(flow.node)
        if isinstance(flow.node, ast.Call):
            text = "train" if name == "x" else "validation"
            if text in every:
                text += "_images"
            lines.append(f"{blanks}{text} = {source.text(flow.node)}")
        pieces[flow.node] = f"{maker}({', '.join([text, *(beside or ())])})"
        steps = _COUNTS[method] if name == "x" else "validation_steps"
        if not any(one.arg == steps for one in call.keywords):
            added.append(f"{steps}=len({text})")
    first, last = statement.lineno, call.end_lineno or call.lineno
    lines += _call(spot, call, pieces, added, first, last)
    return Explanation(RULE, spot.file, call.lineno, cause, Edit(spot.file, first, last, tuple(lines)))


def _call(
    spot: Spot, call: ast.Call, pieces: dict[ast.expr, str], added: list[str], first: int, last: int
) -> tuple[str, ...]:
    """The lines of the call with other data."""
    lines = spot.source.ended(call, ", ".join(added), "", pieces) if added else None
    if lines is None:
        return spot.source.spliced(pieces, first, last)
    return (*spot.source.lines[first - 1 : call.lineno - 1], *lines)
