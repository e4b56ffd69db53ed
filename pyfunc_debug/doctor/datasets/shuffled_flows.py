"""Predictions of what Keras' ImageDataGenerator gives, matched with its labels: it shuffles by default."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.records import Finding

FLOWS = ("flow", "flow_from_directory", "flow_from_dataframe")
"""Methods of Keras' ImageDataGenerator. What they give has a length, which `fit` asks; iterated, it has no end."""
_PREDICT = ("predict", "predict_generator")
_IN_FILE_ORDER = ("classes", "labels", "filenames", "filepaths")
"""Attributes of what these give, whose order is that of the files."""
_FOLLOWED = 3

Made = Callable[[ast.Module | None, set[str]], set[str]]
SideBySide = Callable[[ast.Module | None], Iterator[list[set[str]]]]


def check(facts: Facts, rule: str, made_of: Made, side_by_side: SideBySide) -> Iterator[Finding]:
    """One finding a line that predicts.

    Args:
      facts: The recording.
      rule: The rule's name.
      made_of: Variables, and what a file computes of them.
      side_by_side: The variables in each of the things that a file takes position by position.
    """
    for file, statement, call, results in predictions(facts):
        tree = facts.tree(file)
        flow = _flow(tree, call)
        if flow is None or _keeps_order(flow):
            continue
        truth = _truth(tree, call.args[0], flow, results, made_of)
        if are_matched(tree, results, truth, made_of, side_by_side):
            yield _finding(facts, rule, file, statement, call, flow)


def predictions(facts: Facts) -> Iterator[tuple[str, ast.Assign, ast.Call, set[str]]]:
    """The calls of `predict`: file, statement, call, and the names that what it gives gets."""
    for file in facts.files:
        for statement in pastes.walk(facts.tree(file), ast.Assign):
            for call in pastes.walk(statement.value, ast.Call):
                if isinstance(call.func, ast.Attribute) and call.func.attr in _PREDICT and call.args:
                    yield (
                        file,
                        statement,
                        call,
                        {part.id for one in statement.targets for part in pastes.walk(one, ast.Name)},
                    )


def are_matched(
    tree: ast.Module | None, results: set[str], truth: set[str], made_of: Made, side_by_side: SideBySide
) -> bool:
    """Whether a file takes what was predicted and the truth position by position.

    Args:
      tree: The file.
      results: Names of what was predicted.
      truth: Names of what it is compared with.
      made_of: As for `check`.
      side_by_side: As for `check`.
    """
    mine = made_of(tree, results) - truth
    pairs = [parts for parts in side_by_side(tree) if any(one & mine for one in parts)]
    return any(one & truth and not one & mine for parts in pairs for one in parts)


def _flow(tree: ast.Module | None, call: ast.Call) -> ast.Call | None:
    """The call of `flow_from_directory` or its like that gives what a call predicts from."""
    given = handed_in(tree, call.args[0])
    for _ in range(_FOLLOWED):
        if not isinstance(given, ast.Name):
            break
        made = pastes.assigned(tree, given.id)
        if len(made) != 1:
            return None
        given = made[0]
    found = isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr in FLOWS
    return given if found and isinstance(given, ast.Call) else None


def handed_in(tree: ast.Module | None, given: ast.expr) -> ast.expr:
    """What the one call of a class gives for `self.data`, if its `__init__` keeps a parameter as that; else itself."""
    if not isinstance(given, ast.Attribute) or ast.unparse(given.value) != "self":
        return given
    kept = pastes.assigned(tree, ast.unparse(given))
    if len(kept) != 1 or not isinstance(kept[0], ast.Name):
        return given
    for holder in pastes.walk(tree, ast.ClassDef):
        init = next((one for one in holder.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
        names = [one.arg for one in init.args.args[1:]] if init is not None else []
        if init is None or kept[0].id not in names or all(part is not kept[0] for part in ast.walk(init)):
            continue
        calls = [one for one in pastes.walk(tree, ast.Call) if pastes.last_name(one.func) == holder.name]
        if len(calls) != 1:
            return given
        place = names.index(kept[0].id)
        named = next((word.value for word in calls[0].keywords if word.arg == kept[0].id), None)
        return named or (calls[0].args[place] if place < len(calls[0].args) else given)
    return given


def _keeps_order(flow: ast.Call) -> bool:
    """Whether a call says that it shuffles not, or says more than its text shows."""
    named = {one.arg: one.value for one in flow.keywords}
    said = named.get("shuffle")
    return None in named or not (said is None or (isinstance(said, ast.Constant) and said.value is True))


def _truth(tree: ast.Module | None, given: ast.expr, flow: ast.Call, results: set[str], made_of: Made) -> set[str]:
    """Variables that hold the labels or names of what is predicted, in the order of the files or arrays."""
    name = ast.unparse(given) if isinstance(given, (ast.Name, ast.Attribute)) else ""
    found = {name} - {""}
    for one in pastes.walk(tree, ast.Assign):
        read = {
            part.attr for part in ast.walk(one.value)
            if isinstance(part, ast.Attribute) and ast.unparse(part.value) == name
        }  # fmt: skip
        if read & set(_IN_FILE_ORDER):
            found |= {target.id for target in one.targets if isinstance(target, ast.Name)}
    if pastes.last_name(flow.func) == "flow":
        named = {one.arg: one.value for one in flow.keywords}
        labels = flow.args[1] if len(flow.args) > 1 else named.get("y")
        inputs = flow.args[0] if flow.args else named.get("x")
        found |= {
            part.id for one in (labels,) if one is not None for part in ast.walk(one) if isinstance(part, ast.Name)
        }
        if labels is None and isinstance(inputs, ast.Name):  # x_test goes with y_test
            found |= {inputs.id.replace(old, new) for old, new in (("x", "y"), ("X", "y"), ("X", "Y"))} - {inputs.id}
    return found | (made_of(tree, found - {name}) - made_of(tree, results))


def _finding(facts: Facts, rule: str, file: str, statement: ast.Assign, call: ast.Call, flow: ast.Call) -> Finding:
    own, name = pastes.source(facts, file), pastes.last_name(flow.func)
    given = own.text(call.args[0])
    said = next((one.value for one in flow.keywords if one.arg == "shuffle"), None)
    trains = any(
        pastes.last_name(one.func).startswith("fit")
        and any(ast.unparse(part) == ast.unparse(call.args[0]) for part in [*one.args[:1], *_named(one, "x")])
        for one in pastes.walk(facts.tree(file), ast.Call)
    )
    if flow is call.args[0] or not trains:
        fix = pastes.written(
            pastes.replaced(facts, file, {said: "False"} if said is not None else {flow: _kept(own.text(flow))})
        )
    else:
        text = " ".join(part.strip() for part in own.text(flow).splitlines())
        again = text.replace("shuffle=True", "shuffle=False") if said is not None else _kept(text)
        line = statement.lineno
        indent = facts.source(file)[line - 1][: statement.col_offset]
        fix = pastes.written(
            pastes.replaced(facts, file, {call.args[0]: "in_order"}),
            Edit(file, line, line - 1, (f"{indent}in_order = {again}",)),
        )
    where = "" if flow is call.args[0] else f" (line {flow.lineno})"
    return Finding(
        rule, "error", None, (),
        f"what predict gives of {given if where else name} does not fit to its labels by position: {name}{where} "
        "shuffles, another order in each pass, and the labels stand in the order of the "
        f"{'arrays' if name == 'flow' else 'files'}",
        fix or f"{name}(..., shuffle=False)", file, call.lineno,
        evidence=("both are compared, or paired, by their positions",), confidence="likely",
    )  # fmt: skip


def _named(call: ast.Call, name: str) -> list[ast.expr]:
    return [one.value for one in call.keywords if one.arg == name]


def _kept(text: str) -> str:
    return f"{text[:-1].rstrip().rstrip(',')}, shuffle=False)"
