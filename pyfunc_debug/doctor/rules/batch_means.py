"""A metric function in Keras that is not a mean over rows: Keras shows the mean of what it gives for each batch."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from typing import NamedTuple

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.models import epoch_metrics
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import indent_of
from pyfunc_debug.events import Notice
from pyfunc_debug.records import Finding, Node

NAMES = ("batch-mean",)
_LISTS = ("metrics", "weighted_metrics")


class Given(NamedTuple):
    """A metric function that `compile` was given.

    Attributes:
      file: The file.
      call: The call of `compile`.
      place: What stands in its list: the function, or a MeanMetricWrapper around it.
      function: The function.
    """

    file: str
    call: ast.Call
    place: ast.expr
    function: ast.Name | ast.Lambda

    @property
    def name(self) -> str:
        """What Keras calls the metric."""
        named = pastes.argument(self.place, 1, "name") if isinstance(self.place, ast.Call) else None
        if isinstance(named, ast.Constant) and isinstance(named.value, str):
            return named.value
        return self.function.id if isinstance(self.function, ast.Name) else "the lambda"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a metric, of which batches were put together as the recording ended."""
    told: set[tuple[str, str]] = set()
    for number, _, seen in facts.notices.get(Notice.BATCH_MEAN, []):
        node = facts.nodes.get(number or 0)
        given = metric_of(facts, node) if node is not None else None
        if node is None or given is None or not _of_several(facts, node):
            continue
        name, count = given.name, int(seen["batches"])
        told.add((given.file, name))
        like = "" if seen["recorded"] else " of inputs like its own"
        kept = "recorded ones" if seen["recorded"] else "made from what is known of them, as values were not kept"
        yield Finding(
            NAMES[0], "warning", node.id, (),
            f"Keras shows the mean over batches of {name}, which is another number than {name} of the epoch: for "
            f"{count} batches{like} {seen['mean']:.3g}, for all their rows together {seen['whole']:.3g}",
            _fix(facts, given), given.file, given.call.lineno,
            evidence=(
                f"a function in metrics= is asked for each batch; {node.body} ran again as the recording ended: for "
                f"each batch ({kept}), and for their rows together",
            ),
            confidence="proven",
        )  # fmt: skip
    yield from _of_sums(facts, told)


def _of_sums(facts: Facts, told: Container[tuple[str, str]]) -> Iterator[Finding]:
    """Metrics in ops, of the user's, that divide sums over a batch's rows by others: read in the source."""
    for file in dict.fromkeys(file for file, _ in pastes.keras_sites(facts)):
        tree = facts.tree(file)
        functions = {one.name: one for one in pastes.walk(tree, ast.FunctionDef)}
        for given in _given(tree, file):
            own = functions.get(given.function.id) if isinstance(given.function, ast.Name) else None
            line = epoch_metrics.divides_sums(own) if own is not None else None
            if own is None or line is None or (file, own.name) in told:
                continue
            yield Finding(
                NAMES[0], "note", None, (),
                f"Keras shows the mean over batches of {own.name}, which divides sums over the rows of a batch "
                f"(line {line}): that is another number than {own.name} of all rows, unless one batch has them all",
                _fix(facts, given), file, given.call.lineno, evidence=(f"line {line}: {facts.line(file, line)}",),
                confidence="likely",
            )  # fmt: skip


def _given(tree: ast.AST | None, file: str) -> Iterator[Given]:
    """The names in the lists of metrics of each `compile`."""
    for call in pastes.walk(tree, ast.Call):
        if pastes.last_name(call.func) == "compile":
            for value in (word.value for word in call.keywords if word.arg in _LISTS):
                yield from (Given(file, call, *one) for one in _functions(value))


def _of_several(facts: Facts, node: Node) -> bool:
    """Whether an epoch may have more than one batch: Keras makes an iterator or two for each."""
    iterators = sum(int(one["iterators"]) for one in facts.meta.get("inputs") or [])
    return facts.calls(node.id).count > iterators


def metric_of(facts: Facts, node: Node) -> Given | None:
    """The metric function of `compile` that a node was made in."""
    for frame in reversed(node.stack):
        if not any("metrics" in line for line in facts.source(frame.file)):
            continue
        tree = facts.tree(frame.file)
        around = [one.name for one in pastes.around(tree, frame.line, ast.FunctionDef)]
        for given in _given(tree, frame.file) if around or frame.function == "<lambda>" else ():
            own = given.function
            if isinstance(own, ast.Name) and own.id in around:
                return given
            lines = range(own.lineno, (own.end_lineno or own.lineno) + 1)
            if isinstance(own, ast.Lambda) and frame.function == "<lambda>" and frame.line in lines:
                return given
    return None


def _functions(value: ast.expr) -> Iterator[tuple[ast.expr, ast.Name | ast.Lambda]]:
    """Functions in a list of metrics, or in the dict or list of them by output: not what another class is given there.

    Yields:
      What stands in the list, and the function: the same, or what a MeanMetricWrapper is given.
    """
    if isinstance(value, ast.Name):
        yield value, value
    wrapped = isinstance(value, ast.Call) and pastes.last_name(value.func) == "MeanMetricWrapper"
    function = pastes.argument(value, 0, "fn") if isinstance(value, ast.Call) and wrapped else None
    if isinstance(function, (ast.Name, ast.Lambda)):
        yield value, function
    parts = (
        value.elts if isinstance(value, (ast.List, ast.Tuple)) else value.values if isinstance(value, ast.Dict) else []
    )
    for part in parts:
        yield from _functions(part)


def _of_one_batch(tree: ast.AST | None, given: Given) -> bool:
    """Whether a function reads a name that other functions write, for each batch: rows of an epoch are not its."""
    function: ast.AST | None = given.function
    if isinstance(given.function, ast.Name):
        function = next((one for one in pastes.walk(tree, ast.FunctionDef) if one.name == given.function.id), None)
    if function is None:
        return False
    written = {name for one in pastes.walk(tree, ast.Global) for name in one.names}
    written |= {name for one in pastes.walk(tree, ast.Nonlocal) for name in one.names}
    for one in pastes.walk(tree, ast.Assign):
        written |= {
            target.value.id for target in one.targets
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice)
            and isinstance(target.value, ast.Name)
        }  # fmt: skip
    return any(isinstance(one, ast.Name) and one.id in written for one in ast.walk(function))


def _fix(facts: Facts, given: Given) -> str:
    """A metric that keeps an epoch's rows, above the statement that compiles, and the function in it."""
    if _of_one_batch(facts.tree(given.file), given):
        return "a Metric class of yours: add both sums up in update_state, divide them in result()"
    tf = pastes.module(facts, given.file, "tensorflow")
    modules = (pastes.module(facts, given.file, one) for one in ("keras", "tensorflow.keras", "tf_keras"))
    keras = next(filter(None, modules), f"{tf}.keras")
    source = pastes.source(facts, given.file)
    statement = source.statement(given.call.lineno)
    text = source.text(given.function)
    if isinstance(given.place, ast.Call) and given.name != text:
        text += f', "{given.name}"'
    if tf is None or statement is None:
        return f"OfEpoch({text}): a metric class that keeps the rows of an epoch"
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    blanks = indent_of(source.lines[first - 1])
    lines = tuple(f"{blanks}{line}" for line in epoch_metrics.class_lines(keras, tf))
    with_it = source.spliced({given.place: f"OfEpoch({text})"}, first, last)
    joined = Edit(given.file, first, last, (*lines, *with_it))
    return pastes.written(joined)
