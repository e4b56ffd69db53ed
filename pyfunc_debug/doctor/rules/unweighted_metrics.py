"""Weights of the rows that validate, beside `metrics=`, which take every row alike: `weighted_metrics=` take them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.rules.ran_out import STEPS, files_of_keras
from pyfunc_debug.records import Finding

NAMES = ("unweighted-metric",)
_AS_THEY_ARE = {"batch", "cache", "prefetch", "repeat", "shuffle", "skip", "take", "with_options"}
"""Methods of a dataset that leave the parts of its elements as they are."""
_DEPTH = 20


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a model."""
    functions = [one.id for one in facts.functions.values() if one.name.rpartition(".")[2] in STEPS]
    sites = {site for one in functions for site in pastes.run_sites(facts, one)}
    for file in files_of_keras(facts):
        tree = facts.tree(file)
        compiles = [one for one in pastes.walk(tree, ast.Call) if _method(one) == "compile"]
        weighed = [
            (one, what) for one in pastes.walk(tree, ast.Call) if _method(one) in ("fit", "evaluate")
            and any((file, line) in sites for line in range(one.lineno, (one.end_lineno or one.lineno) + 1))
            and (what := _weights(tree, one))
        ]  # fmt: skip
        if len(compiles) != 1 or not weighed or "def train_step" in "\n".join(facts.code(file)):
            continue
        named = {one.arg: one for one in compiles[0].keywords}
        if "metrics" in named and not {"weighted_metrics", None} & set(named) and _some(named["metrics"].value):
            yield _finding(facts, file, compiles[0], named["metrics"], *weighed[0])


def _finding(facts: Facts, file: str, compiled: ast.Call, metrics: ast.keyword, call: ast.Call, what: str) -> Finding:
    name = ast.Name("metrics", ast.Load())  # the name of the argument, in the text
    name.lineno = name.end_lineno = metrics.lineno
    name.col_offset, name.end_col_offset = metrics.col_offset, metrics.col_offset + len("metrics")
    return Finding(
        NAMES[0], "note", None, (),
        f"{what} count in the loss only: metrics={pastes.text_of(facts, file, metrics.value)} take every row alike. "
        "weighted_metrics take the weights",
        pastes.written(pastes.replaced(facts, file, {name: "weighted_metrics"})), file, metrics.lineno,
        evidence=(f"{_method(call)} at {facts.source_line(file, call.lineno)}",),
    )  # fmt: skip


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _some(metrics: ast.expr) -> bool:
    """Whether it is a list of metrics that is not empty."""
    return isinstance(metrics, ast.List) and bool(metrics.elts)


def _weights(tree: ast.AST | None, call: ast.Call) -> str:
    """How the weights of what validates are written; "" where there are none."""
    named = {one.arg: one.value for one in call.keywords}
    if _method(call) == "evaluate":
        given = named.get("x", call.args[0] if call.args else None)
        if "sample_weight" in named:
            return f"the weights of evaluate, {ast.unparse(named['sample_weight'])},"
    else:
        given = named.get("validation_data")
    parts = _parts(tree, given, call.lineno) if given is not None else ()
    return f"the weights of what validates, {ast.unparse(parts[2])}," if len(parts) == 3 else ""


def _parts(tree: ast.AST | None, given: ast.expr, line: int) -> tuple[ast.expr, ...]:
    """The parts of a tuple, or of a dataset's elements, as they are written where it is made."""
    for _ in range(_DEPTH):
        if isinstance(given, ast.Tuple):
            return tuple(given.elts)
        if isinstance(given, ast.Name):
            name = given.id
            made = [
                one for one in pastes.walk(tree, ast.Assign)
                if one.lineno < line and [ast.unparse(target) for target in one.targets] == [name]
            ]  # fmt: skip
            if not made:
                return ()
            last = max(made, key=lambda one: one.lineno)
            given, line = last.value, last.lineno
        elif isinstance(given, ast.Call) and _method(given) == "from_tensor_slices" and len(given.args) == 1:
            return tuple(given.args[0].elts) if isinstance(given.args[0], ast.Tuple) else ()
        elif isinstance(given, ast.Call) and _method(given) == "map" and given.args:
            return _returned(tree, given.args[0])
        elif isinstance(given, ast.Call) and _method(given) in _AS_THEY_ARE and isinstance(given.func, ast.Attribute):
            given = given.func.value
        else:
            return ()
    return ()


def _returned(tree: ast.AST | None, function: ast.expr) -> tuple[ast.expr, ...]:
    """The parts of the tuple that a map's function returns."""
    found = [function.body] if isinstance(function, ast.Lambda) else [
        part.value for one in pastes.walk(tree, ast.FunctionDef) if one.name == ast.unparse(function)
        for part in ast.walk(one) if isinstance(part, ast.Return)
    ]  # fmt: skip
    return tuple(found[0].elts) if len(found) == 1 and isinstance(found[0], ast.Tuple) else ()
