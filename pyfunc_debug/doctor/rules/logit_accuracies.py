"""An accuracy of logits: Keras, and many a metric, take 0.5 for the bound of two classes, and that of logits is 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import as_given, given
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.models.compiled_models import Compiled, compiled_models, last_layer
from pyfunc_debug.doctor.rules.batch_means import metric_of
from pyfunc_debug.records import Finding, Node

NAMES = ("logit-accuracy",)
_LOGITS = re.compile(r"\bBinary(?:Focal)?Crossentropy\([^()]*from_logits\s*=\s*True")
_HALF = 0.5
_NAMES = ("accuracy", "acc", "binary_accuracy")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a `compile` of a model with one column of logits, and one a metric's body that is given logits."""
    for group in facts.lines:
        function = facts.function(group[0])
        if function is not None and metric_of(facts, group[0]) is not None:
            yield from _in_body(facts, group, function)
    for compiled in compiled_models(facts):
        loss = compiled.loss
        if loss is None or not _LOGITS.search(ast.unparse(loss)) or not _is_linear(compiled):
            continue
        asked = next((one.value for one in compiled.call.keywords if one.arg == "metrics"), None)
        metrics = asked.elts if isinstance(asked, (ast.List, ast.Tuple)) else []
        for metric in metrics:
            if _is_accuracy(metric):
                yield _finding(facts, compiled, metric)
                break


def _in_body(facts: Facts, group: Sequence[Node], function: Definition) -> Iterator[Finding]:
    """`p > 0.5` of what was below 0 and above 1."""
    node, own = group[0], pastes.source(facts, group[0].file)
    for one in code.own_nodes(function):
        if not isinstance(one, ast.Compare) or len(one.ops) != 1 or not isinstance(one.ops[0], (ast.Gt, ast.GtE)):
            continue
        bound = one.comparators[0]
        name = as_given(function, one.left)
        if not name or not isinstance(bound, ast.Constant) or bound.value != _HALF:
            continue
        seen = [each for each in given(facts, group, name) if each.low is not None and each.high is not None]
        low, high = min((each.low or 0 for each in seen), default=0), max((each.high or 0 for each in seen), default=0)
        if not seen or low >= 0 or not _LOGITS.search("\n".join(facts.code(node.file))):
            continue
        first = next(each for each in seen if (each.low or 0) < 0)
        yield Finding(
            NAMES[0], "error", node.id, (first.call,),
            f"{own.text(one)} in {facts.name(node)} takes {name} for probabilities, and the model gives logits "
            f"(from_logits=True): {low:.3g} to {high:.3g} in the recorded calls. Their bound is 0",
            pastes.written(pastes.replaced(facts, node.file, {bound: "0.0"})) or f"{name} > 0.0", node.file, one.lineno,
            several(each.id for each in group), (f"call #{first.call}: {facts.inputs(first.call)}",),
        )  # fmt: skip
        return


def _is_linear(compiled: Compiled) -> bool:
    """Whether the last layer is a Dense of one column without an activation."""
    layer = last_layer(compiled)
    if layer is None:
        return False
    units, activation = pastes.argument(layer, 0, "units"), pastes.argument(layer, 1, "activation")
    plain = activation is None or ast.unparse(activation) in ("None", "'linear'")
    return plain and isinstance(units, ast.Constant) and units.value == 1


def _is_accuracy(metric: ast.expr) -> bool:
    if isinstance(metric, ast.Constant):
        return metric.value in _NAMES
    named = isinstance(metric, ast.Call) and pastes.last_name(metric.func) == "BinaryAccuracy"
    return named and isinstance(metric, ast.Call) and pastes.argument(metric, 2, "threshold") is None


def _finding(facts: Facts, compiled: Compiled, metric: ast.expr) -> Finding:
    file = compiled.file
    own, tf, keras = pastes.source(facts, file), *(pastes.module(facts, file, one) for one in ("tensorflow", "keras"))
    made = f'{keras or f"{tf}.keras"}.metrics.BinaryAccuracy(name="accuracy", threshold=0.0)'
    if isinstance(metric, ast.Call):
        made = own.with_argument(metric, "threshold=0.0")
    return Finding(
        NAMES[0], "warning", None, (),
        f"{own.text(metric)} takes what is above 0.5 for class 1, and the model gives logits (from_logits=True), of "
        "which 0 is the bound: rows between 0 and 0.5 count for class 0",
        pastes.written(pastes.replaced(facts, file, {metric: made})) or made, file, metric.lineno,
    )  # fmt: skip
