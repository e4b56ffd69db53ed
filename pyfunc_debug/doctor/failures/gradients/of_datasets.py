"""No gradient, because a dataset stands between the variables and the loss: its ops have none, those of a loop too.

In a tf.function AutoGraph makes a reduce of `for x in dataset` (tensorflow/python/autograph/operators/control_flow.py),
and an op of its own for each element of `for x in iter(dataset)`, which has a gradient.
"""

from __future__ import annotations

import ast
import json

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import (
    Source,
    as_read,
    asked_of_tape,
    dotted,
    names,
    read,
    short,
    tapes_before,
)
from pyfunc_debug.doctor.failures.reading.symbols import calls, method_calls

RULE = "cut-gradient"
_SAID = "No gradients provided for any variable"
_LOOPS = ("ReduceDataset", "ScanDataset")
_ELEMENT_BY_ELEMENT = "Ask a tape for each element, in the loop, and add the gradients up."


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the recording found an op of a dataset on all ways from the variables to the loss."""
    if situation.body or not (_SAID in situation.message or ("None" in situation.message and _reads_one(situation))):
        return None
    told = [json.loads(text) for (text,) in situation.rows("SELECT facts FROM notice WHERE rule = 'flat-op'")]
    found = [one for one in told if is_of_dataset(str(one["op"])) and len(one["variables"]) == one["count"]]
    places = {(str(one["file"]), int(one["line"])): one for one in found}
    if len(places) != 1 or len(found) != len(told):
        return None
    (place, one) = places.popitem()
    file, line = as_read(*place)
    return of_op(str(one["op"]), file, read(file), line, bool(one.get("floats")))


def _reads_one(situation: Situation) -> bool:
    """Whether the failing line asks a tape, or reads what one gave: by its name, or as a function's result."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None:
        return False
    asking = {
        getattr(spot.source.function(one.lineno), "name", "") for one in spot.source.calls_of(frozenset({"gradient"}))
    } | {"gradient"}  # fmt: skip
    given = {
        name for one in ast.walk(spot.source.tree)
        if isinstance(one, ast.Assign)
        and any(dotted(call.func).rpartition(".")[2] in asking for call in calls(one.value))
        for target in one.targets for name in names(target)
    }  # fmt: skip
    direct = any(dotted(call.func).rpartition(".")[2] in asking for call in calls(statement))
    return direct or bool(given & set(names(statement)))


def is_of_dataset(kind: str) -> bool:
    """Whether an op is one of a dataset: "ReduceDataset", "ParallelMapDatasetV2"."""
    return "Dataset" in kind


def of_op(kind: str, file: str, source: Source, line: int, floats: bool) -> Explanation | None:
    """What is said of an op of a dataset that a recording found between variables and the loss.

    Args:
      kind: The op's type.
      file: The file that made it.
      source: Its text.
      line: The line.
      floats: Whether the elements hold nothing but floats: only such have a gradient in a loop over `iter(dataset)`.
    """
    statement = source.statement(line)
    if statement is None:
        return None
    if kind in _LOOPS and isinstance(statement, ast.For):
        return _loop(file, source, statement, floats)
    if kind in _LOOPS:
        reduced = method_calls(statement, "reduce", "scan")
        return _reduced(file, source, reduced[0]) if len(reduced) == 1 else None
    mapped = method_calls(statement, "map")
    return _mapped(file, source, mapped[-1]) if mapped else None


def _loop(file: str, source: Source, loop: ast.For, floats: bool) -> Explanation:
    """`for x in dataset` in a tf.function."""
    over = source.text(loop.iter)
    cause = (
        f"`for {source.text(loop.target)} in {short(over, 30)}` over a dataset becomes one op in a tf.function, which "
        "has no gradient."
    )
    if not floats:
        return Explanation(RULE, file, loop.lineno, cause, None, _ELEMENT_BY_ELEMENT)
    edit = edit_of(file, source.replaced({loop.iter: f"iter({over})"}))
    return Explanation(RULE, file, loop.lineno, f"{cause} A loop over its iterator has one.", edit)


def _reduced(file: str, source: Source, call: ast.Call) -> Explanation:
    owner = source.text(call.func.value)  # type: ignore[attr-defined]
    cause = f"`{short(source.text(call.func), 40)}` of a dataset is one op, which has no gradient."
    return Explanation(RULE, file, call.lineno, cause, None, f"Add it up in a loop: for x in iter({short(owner, 30)}).")


def _mapped(file: str, source: Source, call: ast.Call) -> Explanation:
    given = source.text(call.args[0]) if call.args else "its function"
    cause = (
        f"{short(given, 40)} runs in the dataset, out of the tape's sight: what a dataset gives has no gradient, also "
        "where the loop over it stands under the tape."
    )
    advice = "Do in the loop what computes with the variable, and the rest in the dataset."
    return Explanation(RULE, file, call.lineno, cause, None, advice)


def at_line(file: str, source: Source, line: int) -> Explanation | None:
    """The same in eager code, for a gradient that is None; read in the source.

    Args:
      file: The file.
      source: Its text.
      line: The line that asks the tape.
    """
    blocks = tapes_before(source, line)
    if len(blocks) != 1:
        return None
    block = blocks[0]
    asked = {one.id for one in asked_of_tape(source, block) if isinstance(one, ast.Name)}
    for one in (part for part in ast.walk(block) if isinstance(part, ast.Assign)):
        reduced = one.value
        if (
            isinstance(reduced, ast.Call) and isinstance(reduced.func, ast.Attribute) and reduced.func.attr == "reduce"
            and len(reduced.args) == 2 and asked & {dotted(target) for target in one.targets}
            and _is_dataset(source, reduced.func.value)
        ):  # fmt: skip
            return _reduced(file, source, reduced)
    wanted = _wanted(source, line)
    for loop in (part for part in ast.walk(block) if isinstance(part, ast.For)):
        for call in method_calls(_made(source, loop.iter), "map"):
            given = call.args[0] if call.args else None
            if given is not None and wanted & _read(source, given) and _is_dataset(source, loop.iter):
                return _mapped(file, source, call)
    return None


def _wanted(source: Source, line: int) -> set[str]:
    """The names that gradients are asked for."""
    statement = source.statement(line)
    asked = [
        one.args[1] for one in calls(statement)
        if isinstance(one.func, ast.Attribute) and one.func.attr == "gradient" and len(one.args) > 1
    ] if statement is not None else []  # fmt: skip
    return {name for one in asked for name in names(one)}


def _made(source: Source, node: ast.expr) -> ast.expr:
    """The one expression that a name stands for."""
    if not isinstance(node, ast.Name):
        return node
    scopes = [one for one in source.around(node) if isinstance(one, (ast.FunctionDef, ast.Module))]
    made = [
        one.value for scope in scopes for one in own_nodes(scope)
        if isinstance(one, ast.Assign) and node.id in [dotted(target) for target in one.targets]
    ]  # fmt: skip
    return made[0] if len(made) == 1 else node


def _is_dataset(source: Source, node: ast.expr) -> bool:
    """Whether an expression begins at `tf.data`, as far as the source says it."""
    made = _made(source, node)
    return any("data.Dataset" in dotted(one) or dotted(one).startswith("Dataset.") for one in ast.walk(made))


def _read(source: Source, given: ast.expr) -> set[str]:
    """The names that the function of a map reads."""
    if isinstance(given, ast.Lambda):
        return set(names(given))
    own = [one for one in ast.walk(source.tree) if isinstance(one, ast.FunctionDef) and one.name == dotted(given)]
    return {name for one in own for name in names(one)}
