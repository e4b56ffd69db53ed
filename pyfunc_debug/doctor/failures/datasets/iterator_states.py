"""A checkpoint of an iterator whose dataset runs Python: TensorFlow cannot save what Python remembers, and refuses."""

from __future__ import annotations

import ast
import re

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.nodes import Node, user_generators, user_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, calls

RULE = "serialization"
_STATEFUL = re.compile(r"\b(EagerPyFunc|PyFunc) is stateful\b")
_GENERATOR = re.compile(r"\bGeneratorDataset\b|generator_dataset")
_POLICY = "tf.data.experimental.ExternalStatePolicy.IGNORE"


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an iterator was saved with a checkpoint."""
    text = situation.text
    if situation.body or situation.last is None or "SerializeIterator" not in text:
        return None
    found = _STATEFUL.search(text)
    generators = user_generators(situation)
    if found is None and not _GENERATOR.search(text):
        return None
    if generators or found is None:
        return _of_generator(situation.last, generators)
    nodes = [one for one in user_nodes(situation) if (one.kind == "py") == (found[1] == "EagerPyFunc")]
    kind = "py_function" if found[1] == "EagerPyFunc" else "numpy_function"
    what = f"{kind} of {nodes[0].called}" if len({one.called for one in nodes}) == 1 else kind
    cause = (
        f"The checkpoint holds an iterator, and its dataset runs the {what}. TensorFlow cannot save what Python "
        "remembers (a random generator, a counter), and refuses, unless the dataset says to leave that out."
    )
    for spot in reversed(situation.spots):
        edit = _ignoring(spot)
        if edit is not None:
            return Explanation(RULE, edit.file, edit.first, cause, edit)
    advice = f"Give the dataset options whose experimental_external_state_policy is {_POLICY}."
    return Explanation(RULE, situation.last.file, situation.last.line, cause, None, advice)


def _ignoring(spot: Spot) -> Edit | None:
    """The line that makes the iterator, with a dataset that leaves out what Python remembers."""
    for place in (spot.function, spot.source.tree):
        for call in calls(place) if place is not None else ():
            if dotted(call.func).rpartition(".")[2] != "Checkpoint":
                continue
            for one in call.keywords:
                made = _made(one.value, place)
                if made is not None:
                    return _edit(spot, made)
    return None


def _made(given: ast.expr, place: ast.AST | None) -> ast.Call | None:
    """`iter(ds)`, given to a checkpoint or assigned to the name, or to the attribute, that is."""
    name = dotted(given)
    if name and place is not None:
        kept = [
            one.value for one in ast.walk(place)
            if isinstance(one, ast.Assign) and [dotted(target) for target in one.targets] == [name]
        ]  # fmt: skip
        return _made(kept[0], None) if len(kept) == 1 else None
    found = isinstance(given, ast.Call) and dotted(given.func) == "iter" and len(given.args) == 1
    return given if found and isinstance(given, ast.Call) else None


def _edit(spot: Spot, made: ast.Call) -> Edit | None:
    source, tf = spot.source, alias(spot, "tensorflow")
    statement = source.statement(made.lineno)
    found = source.replaced({made.args[0]: f"{_called(source.text(made.args[0]), made.args[0])}.with_options(options)"})
    if statement is None or found is None or made.lineno != statement.lineno:
        return None
    blank = indent_of(source.lines[found[0] - 1])
    lines = (
        f"{blank}options = {tf}.data.Options()",
        f"{blank}options.experimental_external_state_policy = {_POLICY.replace('tf', tf, 1)}",
        found[2],
    )
    return Edit(spot.file, found[0], found[1], lines)


def _called(text: str, node: ast.expr) -> str:
    """An expression that a method can be asked of."""
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"


def _of_generator(spot: Spot, generators: list[Node]) -> Explanation:
    name = generators[0].called if len(generators) == 1 else "a generator"
    given = f"{name}, a Python generator" if len(generators) == 1 else name
    cause = (
        f"The checkpoint holds an iterator over {short(given, 50)}: where a Python generator stands cannot be saved, "
        "so tf.data saves no iterator over one."
    )
    advice = (
        "Save the number of steps in its place, and go on with ds.skip(steps) after a restart; or make the dataset of "
        "indices, Dataset.range(n), and map a tf.numpy_function(..., stateful=False) over them: that can be saved."
    )
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
