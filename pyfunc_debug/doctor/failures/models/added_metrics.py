"""`model.add_metric(...)`, which Keras 3 has no more: `compile` takes metrics, and a layer keeps one of its own."""

from __future__ import annotations

import ast
from types import FunctionType

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import keras_name, lookup, of_keras

RULE = "older-api"
_SAID = "Layer `add_metric()` method is deprecated"
_METHOD = "add_metric"
_MOST = 15
"""Lines from `add_metric` to `compile` in one paste."""


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a line calls it."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or _SAID not in situation.message or situation.body:
        return None
    call = _adds(statement, "")
    given = argument(call, 0, "value") if call is not None else None
    if call is None or given is None:
        return None
    owner, source = dotted(call.func).removesuffix(f".{_METHOD}"), spot.source
    if owner == "self":
        name = _named(call) or "kept"
        advice = (
            f'In __init__: self.{name} = {keras_name(spot)}.metrics.Mean(name="{name}"). '
            f"Here: self.{name}.update_state({source.text(given)})."
        )
        if not name.isidentifier():
            advice = f"Make a {keras_name(spot)}.metrics.Mean in __init__, and call its update_state here."
        return Explanation(
            RULE, spot.file, call.lineno, "A layer of Keras 3 has no add_metric: it updates a metric of its own.", None,
            advice,
        )  # fmt: skip
    cause = "A model of Keras 3 has no add_metric: compile takes metrics, functions of labels and predictions."
    edit = _moved(spot, statement, owner)
    if edit is not None:
        return Explanation(RULE, spot.file, call.lineno, cause, edit)
    advice = f"Give {source.text(given)} to {owner}.compile(metrics=[...])."
    if not _is_metric(given, spot):
        advice = (
            "What it makes of labels and predictions, write as a function of these; of other tensors, in a layer whose "
            f"call updates a {keras_name(spot)}.metrics.Mean."
        )
    return Explanation(RULE, spot.file, call.lineno, cause, None, advice)


def _adds(statement: ast.stmt, owner: str) -> ast.Call | None:
    """The call of a statement that only adds a metric, to that model."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != _METHOD:
        return None
    return call if owner in ("", dotted(call.func.value)) else None


def _named(call: ast.Call) -> str:
    name = argument(call, 1, "name")
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""


def _is_metric(node: ast.expr, spot: Spot) -> bool:
    value = lookup(node, spot)
    name = dotted(node.func if isinstance(node, ast.Call) else node)
    made = name.rpartition(".")[2][:1].isupper() or not isinstance(node, ast.Call)
    own = made and (".metrics." in name or ".losses." in name)
    return own or isinstance(value, FunctionType) or of_keras(type(value), "Metric")


def _moved(spot: Spot, statement: ast.stmt, owner: str) -> Edit | None:
    """The lines from here to `compile`, which is given the metrics, without those that add them."""
    source = spot.source
    block = getattr(source.parent(statement), "body", [])
    after: list[ast.stmt] = block[block.index(statement) :] if statement in block else []
    adds = [one for one in after if _adds(one, owner) is not None]
    compiled = [
        one for one in after
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)
        and dotted(one.value.func) == f"{owner}.compile"
    ]  # fmt: skip
    if len(compiled) != 1 or not adds or adds[-1].lineno > compiled[0].lineno:
        return None
    call = compiled[0].value
    assert isinstance(call, ast.Call)
    first, last = statement.lineno, call.end_lineno or call.lineno
    metrics = next((one.value for one in call.keywords if one.arg == "metrics"), None)
    known = isinstance(metrics, ast.List) or (metrics is None and not any(one.arg is None for one in call.keywords))
    if last - first > _MOST or len(call.args) > 2 or not known:
        return None
    there = [source.text(one) for one in metrics.elts] if isinstance(metrics, ast.List) else []
    for one in adds:
        added = _adds(one, owner)
        given = argument(added, 0, "value") if added is not None else None
        if added is None or given is None or not _is_metric(given, spot):
            return None
        text, name = source.text(given), _named(added)
        if name and isinstance(lookup(given, spot), FunctionType) and lookup(given, spot).__name__ != name:
            text = f'{keras_name(spot)}.metrics.MeanMetricWrapper({text}, name="{name}")'
        there += [] if text in there else [text]
    listed = f"[{', '.join(there)}]"
    lines = (
        source.spliced({metrics: listed}, call.lineno, last)
        if metrics is not None
        else source.ended(call, f"metrics={listed}")
    )
    gone = {line for one in adds for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    kept = [source.lines[line - 1] for line in range(first, call.lineno) if line not in gone]
    while kept and not kept[0].strip():
        kept = kept[1:]
    return Edit(spot.file, first, last, (*kept, *lines))
