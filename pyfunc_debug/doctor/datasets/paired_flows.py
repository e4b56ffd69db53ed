"""Images and masks of two `flow_from_directory` in step, without one seed: each shuffles and changes them by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.datasets.shuffled_flows import FLOWS
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding


def check(facts: Facts, rule: str) -> Iterator[Finding]:
    """One finding a `zip` whose pairs a generator of the program gives.

    Args:
      facts: The recording.
      rule: The rule's name.
    """
    files = {node.file for node, _ in facts.generators.values()}
    for file in facts.files:
        tree = facts.tree(file)
        flows = {
            one.targets[0].id: one.value for one in pastes.walk(tree, ast.Assign)
            if len(one.targets) == 1 and isinstance(one.targets[0], ast.Name) and isinstance(one.value, ast.Call)
            and isinstance(one.value.func, ast.Attribute) and one.value.func.attr in FLOWS
        }  # fmt: skip
        for call in pastes.walk(tree, ast.Call) if flows and file in files else ():
            if ast.unparse(call.func) != "zip" or len(call.args) != 2:
                continue
            pair = [flows.get(one.id) if isinstance(one, ast.Name) else None for one in call.args]
            sides = [one for one in pair if one is not None]
            if len(sides) == 2 and sides[0] is not sides[1] and _apart(facts, file, sides):
                yield _finding(facts, rule, file, call, sides)


def _apart(facts: Facts, file: str, sides: list[ast.Call]) -> bool:
    """Whether two flows draw, each by itself: without a seed, or with another one; one of images alone."""
    named = [{one.arg: one.value for one in side.keywords} for side in sides]
    if any(None in one for one in named):
        return False
    seeds = [pastes.text_of(facts, file, one["seed"]) if "seed" in one else None for one in named]
    ordered = all(isinstance(one.get("shuffle"), ast.Constant) for one in named) and not any(
        one["shuffle"].value for one in named if isinstance(one["shuffle"], ast.Constant)
    )
    alone = [
        len(side.args) == 1 and "y" not in one if pastes.last_name(side.func) == "flow"
        else ast.unparse(one["class_mode"]) == "None" if "class_mode" in one else False
        for side, one in zip(sides, named)
    ]  # fmt: skip
    return all(alone) and not ordered and (None in seeds or seeds[0] != seeds[1])


def _finding(facts: Facts, rule: str, file: str, call: ast.Call, sides: list[ast.Call]) -> Finding:
    own = pastes.source(facts, file)
    pieces: dict[ast.expr, str] = {}
    given = [next((one.value for one in side.keywords if one.arg == "seed"), None) for side in sides]
    seed = next((own.text(one) for one in given if one is not None), "1")
    for side, said in zip(sides, given):
        if said is None:
            pieces[side] = own.with_argument(side, f"seed={seed}")
        elif own.text(said) != seed:
            pieces[said] = seed
    names = " and ".join(ast.unparse(one) for one in call.args)
    kind = pastes.last_name(sides[0].func)
    return Finding(
        rule, "error", None, (),
        f"the zip in line {call.lineno} pairs {names} by their positions, and each {kind} shuffles and draws its "
        "changes for itself: without one seed for both, an image gets the mask of another",
        pastes.all_replaced(facts, file, pieces), file, sides[0].lineno, confidence="likely",
    )  # fmt: skip
