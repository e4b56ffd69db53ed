"""A body behind `batch` that draws once: all images of a batch are flipped, or none is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.body_inputs import given
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.datasets.earlier_batches import batch_before
from pyfunc_debug.doctor.draws.single_draws import draws_one
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.reading.symbols import sizes_of
from pyfunc_debug.records import Finding

NAMES = ("batch-draw",)
_ONE = {"random": 0, "rand": 0, "uniform": 2, "random_sample": 0, "randint": 2, "getrandbits": 9, "choice": 1}
"""Draws of one number, by their arguments without a size; not `beta`, which mixup draws once a batch on purpose."""
_LEAST_RANK = 4


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body."""
    for group in facts.lines:
        node, function = group[0], facts.function(group[0])
        if function is None or node.file is None or not facts.calls_of(group).count:
            continue
        tests = [*_decided(function)]
        batch = batch_before(facts, node) if tests else None
        if batch is None:
            continue
        own = pastes.source(facts, node.file)
        for name in code.parameters(function):
            seen = given(facts, group, name)
            most = max(seen, key=lambda one: one.shape[:1], default=None)
            changing = [one for one in tests if _changes(one, name)]
            if most is None or len(most.shape) < _LEAST_RANK or most.shape[0] < 2 or not changing:
                continue
            line = changing[0].lineno
            yield Finding(
                NAMES[0], "warning", node.id, (most.call,),
                f"line {line} draws once for all {most.shape[0]} images of a batch, as line {batch[0].lineno} makes "
                f"them: {own.text(changing[0].test)} holds for all of them, or for none",
                f"a draw for each image: the map of {facts.name(node)} in front of batch, with {name} of "
                f"{sizes_of(most.shape[1:])} in it; or here for {name}[i], in a loop over its images",
                node.file, line, several(one.id for one in group),
                (f"call #{most.call}: {facts.inputs(most.call)}",), confidence="likely",
            )  # fmt: skip
            break


def _decided(function: Definition) -> Iterator[ast.If]:
    """The branches that one drawn number decides, outside of loops."""
    loops = [one for one in code.own_nodes(function) if isinstance(one, (ast.For, ast.While, ast.comprehension))]
    inside = {id(part) for one in loops for part in ast.walk(one)}
    for one in code.own_nodes(function):
        if isinstance(one, ast.If) and id(one) not in inside and _is_drawn(function, one.test):
            yield one


def _is_drawn(function: Definition, test: ast.expr) -> bool:
    sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else [test]
    return any(draws_one(pastes.behind_name(function, side), _ONE) for side in sides)


def _changes(branch: ast.If, name: str) -> bool:
    """Whether a branch computes something of a parameter as a whole: `x = x[:, ::-1]`, `return np.flip(x, 2)`."""
    return any(
        isinstance(one, (ast.Assign, ast.AugAssign, ast.Return)) and one.value is not None
        and any(part.id == name for part in pastes.walk(one, ast.Name))
        for part in branch.body for one in ast.walk(part)
    )  # fmt: skip
