"""An own `train_step` that gives its loss to no metric of Keras 3: `fit` shows that metric, which stays 0."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.records import Finding

NAMES = ("zero-loss",)
_STEPS = {"train_step": "fit", "test_step": "evaluate"}
_TRAINS = ("tape.", ".gradient(", "trainable_", "optimizer", "minimize(")
_TELLS = ("update_state", "compute_metrics", "update_metrics", "result", "Mean")
"""A call of one of these in the class (but that of `compiled_metrics`): a metric may get the loss."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a step of a class, in a file that trains with Keras 3."""
    ran = [(file, _ways(facts, file, line)) for file, line in pastes.keras_sites(facts)]
    for file in dict.fromkeys(file for file, ways in ran if ways):
        tree = facts.tree(file)
        called = {pastes.last_name(one.func): one for one in pastes.walk(tree, ast.Call)}
        compiled = [one for one in pastes.walk(tree, ast.Call) if pastes.last_name(one.func) == "compile"]
        measured = any(
            len(one.args) > 2 or any(word.arg is None or "metrics" in word.arg for word in one.keywords)
            for one in compiled
        )
        for holder in pastes.walk(tree, ast.ClassDef):
            methods = {one.name: one for one in holder.body if isinstance(one, ast.FunctionDef)}
            if holder.name not in called:
                continue
            if any(file == one and "evaluate" in ways for one, ways in ran):
                yield from _untold_by_evaluate(facts, file, holder, methods)
            if "metrics" in methods or _told(holder):
                continue
            for name, method in _STEPS.items():
                step = methods.get(name)
                if step is not None and any(file == one and method in ways for one, ways in ran):
                    yield from _step(facts, file, holder, step, measured)


def _ways(facts: Facts, file: str, line: int) -> set[str]:
    """What a line asks of a model: `fit` with validation data evaluates, too."""
    calls = {one: pastes.call_at(facts, file, line, one) for one in _STEPS.values()}
    ways, fit = {one for one, call in calls.items() if call is not None}, calls["fit"]
    if fit is not None and any(str(one.arg).startswith("validation_") for one in fit.keywords):
        ways.add("evaluate")
    return ways


def _told(holder: ast.ClassDef) -> bool:
    """Whether some metric of the class may get the loss."""
    return any(
        pastes.last_name(one.func) in _TELLS and not dotted(one.func).startswith("self.compiled_metrics.")
        and not _of_a_dict(one)
        for step in holder.body if isinstance(step, ast.FunctionDef)
        for one in pastes.walk(step, ast.Call)
    )  # fmt: skip


def _of_a_dict(call: ast.Call) -> bool:
    """`m.result()`, with nothing between: what the comprehension over self.metrics asks."""
    return pastes.last_name(call.func) == "result" and isinstance(call.func, ast.Attribute) and isinstance(
        call.func.value, ast.Name
    )  # fmt: skip


def _step(facts: Facts, file: str, holder: ast.ClassDef, step: ast.FunctionDef, measured: bool) -> Iterator[Finding]:
    """A finding for a step that gives Keras the names of its metrics, and gives none of them its loss."""
    given = list(pastes.walk(step, ast.Return))
    loss = _shown(step, given[0].value, measured) if len(given) == 1 and given[0] in step.body else ""
    if not loss:
        return
    yield Finding(
        NAMES[0], "error", None, (),
        f"Keras 3 shows its own metric `loss` in place of what {holder.name}.{step.name} returns by that name, and "
        f"nothing gives {loss} to that metric: it shows 0 in each epoch",
        pastes.written(
            pastes.above(
                facts, file, given[0].lineno,
                f'self.metrics[0].update_state({loss})  # the metric "loss": its mean over the epoch is shown',
            )
        ),
        file, given[0].lineno, evidence=(f"line {given[0].lineno}: {facts.line(file, given[0].lineno)}",),
    )  # fmt: skip


def _untold_by_evaluate(
    facts: Facts, file: str, holder: ast.ClassDef, methods: dict[str, ast.FunctionDef]
) -> Iterator[Finding]:
    """A finding where `metrics` lists only what the own `train_step` updates, and there is no own `test_step`."""
    step, metrics = methods.get("train_step"), methods.get("metrics")
    if step is None or metrics is None or "test_step" in methods:
        return
    listed = [one.value for one in pastes.walk(metrics, ast.Return)]
    names = [ast.unparse(one) for one in listed[0].elts] if len(listed) == 1 and isinstance(listed[0], ast.List) else []
    fed = {
        ast.unparse(one.func.value): ast.unparse(one.args[0])
        for one in pastes.walk(step, ast.Call)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "update_state" and one.args
    }
    if not names or not set(names) <= set(fed):
        return
    yield Finding(
        NAMES[0], "error", None, (),
        f"evaluate shows 0 for {names[0]}: {holder.name}.metrics has nothing else, and only {holder.name}.train_step "
        "updates it. Keras' own test_step gives its loss to a metric that metrics leaves out",
        pastes.written(pastes.behind(file, step, "", *_test_step(facts, file, step)))
        or "write a test_step that updates it, as train_step does without the gradients",
        file, metrics.lineno, evidence=(f"line {step.lineno}: {facts.line(file, step.lineno)}",),
    )  # fmt: skip


def _test_step(facts: Facts, file: str, step: ast.FunctionDef) -> list[str]:
    """The lines of a train_step without what trains: the tape, its gradients and the optimizer."""
    own, kept = pastes.source(facts, file), list[str]()
    statements = [
        part for one in step.body
        for part in (one.body if isinstance(one, ast.With) and "GradientTape" in ast.unparse(one.items[0]) else [one])
    ]  # fmt: skip
    trained = set[str]()
    for one in statements:
        text = ast.unparse(one)
        reads = {part.id for part in ast.walk(one) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
        if any(word in text for word in _TRAINS) or reads & trained:
            trained |= {
                part.id for part in ast.walk(one) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            }
            continue
        lines = own.lines[one.lineno - 1 : one.end_lineno]
        blanks = len(lines[0]) - len(lines[0].lstrip())
        kept += [f"    {line[min(blanks, len(line) - len(line.lstrip())) :]}" for line in lines]
    header = f"def test_step({ast.unparse(step.args)}):"
    return [header, *(line.replace("training=True", "training=False") for line in kept)]


def _shown(step: ast.FunctionDef, value: ast.expr | None, measured: bool) -> str:
    """The name of a loss which a step computes and returns as `{"loss": loss}`, or as all metrics; "" if it shows."""
    asked = [
        one.args[0].id for one in pastes.walk(step, ast.Call)
        if pastes.last_name(one.func) in ("gradient", "minimize") and one.args and isinstance(one.args[0], ast.Name)
    ]  # fmt: skip
    if isinstance(value, ast.Dict) and not measured:
        keys = [one.value if isinstance(one, ast.Constant) else None for one in value.keys]
        return value.values[0].id if keys == ["loss"] and isinstance(value.values[0], ast.Name) else ""
    if isinstance(value, ast.DictComp) and len(asked) == 1:
        return asked[0] if ast.unparse(value.generators[0].iter) == "self.metrics" else ""
    return ""
