"""Inputs and labels in arrays or lists that a program shuffles each by itself, or one of the two only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets.zips import are_labels
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import Source, dotted
from pyfunc_debug.records import Finding

_PAIRS = ("fit", "train_on_batch", "train_test_split", "zip", "from_tensor_slices")
_SEEDS = {"seed", "set_state", "setstate", "set_random_seed", "set_seed", "default_rng", "RandomState"}
_LISTS = ("listdir", "glob", "list", "sorted")
_NO_ORDER = (
    "ones", "zeros", "full", "ones_like", "zeros_like", "random", "rand", "randn", "randint", "normal", "integers",
)  # fmt: skip
"""Labels that are made so are the same in each order, or drawn."""
_NOISE = ("noise", "latent", "fake")
_NAMELESS = ("zip", "from_tensor_slices")
"""What pairs anything, also pictures of two kinds that do not belong together."""


@dataclass(frozen=True)
class _Shuffle:
    """A statement that brings an array or list into a random order, and what draws that order: `np.random`, `rng`."""

    statement: ast.Assign | ast.Expr
    name: str
    draws: str


def check(facts: Facts, rule: str) -> Iterator[Finding]:
    """One finding a pair of names.

    Args:
      facts: The recording.
      rule: The rule's name.
    """
    for file in facts.files:
        own = pastes.source(facts, file)
        if not any("shuffle" in line or "permutation" in line or "sample(" in line for line in own.code):
            continue
        np = pastes.module(facts, file, "numpy") or "np"
        functions = pastes.walk(own.tree, ast.FunctionDef)
        for nodes in ([*code.own_nodes(own.tree)], *([*code.own_nodes(one)] for one in functions)):
            shuffles = [one for node in nodes if (one := _shuffle(own, np, node)) is not None]
            for call in (one for one in nodes if isinstance(one, ast.Call)) if shuffles else ():
                pair = _pair(call)
                if len(pair) == 2 and (found := _finding(facts, file, own, nodes, shuffles, pair, call, rule)):
                    yield found
                    break


def _shuffle(own: Source, np: str, node: ast.AST) -> _Shuffle | None:
    """What a statement shuffles."""
    if not isinstance(node, (ast.Assign, ast.Expr)) or not isinstance(node.value, (ast.Call, ast.Subscript)):
        return None
    value = node.value
    if isinstance(node, ast.Assign):
        return _assigned(np, node, value)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr != "shuffle":
        return None
    draws = dotted(value.func.value)
    known = draws in (f"{np}.random", "random") or _is_generator(own, draws)
    plain = len(value.args) == 1 and not value.keywords and isinstance(value.args[0], ast.Name)
    return _Shuffle(node, ast.unparse(value.args[0]), draws) if known and plain else None


def _assigned(np: str, node: ast.Assign, value: ast.expr) -> _Shuffle | None:
    """`x = x[np.random.permutation(len(x))]`, `x = np.random.permutation(x)`, `x = shuffle(x)` of scikit-learn."""
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return None
    name = node.targets[0].id
    if isinstance(value, ast.Subscript):
        drawn = value.slice
        if not isinstance(drawn, ast.Call) or ast.unparse(value.value) != name:
            return None
        return _Shuffle(node, name, f"{np}.random") if dotted(drawn.func) == f"{np}.random.permutation" else None
    if not isinstance(value, ast.Call) or not value.args or ast.unparse(value.args[0]) != name or value.keywords:
        return None
    called = dotted(value.func)
    if called == "random.sample" and len(value.args) == 2:
        return _Shuffle(node, name, "random")
    if called in (f"{np}.random.permutation", "shuffle", "sklearn.utils.shuffle") and len(value.args) == 1:
        return _Shuffle(node, name, f"{np}.random")
    return None


def _is_generator(own: Source, name: str) -> bool:
    """Whether a name is a generator of random numbers that the file makes once."""
    made = pastes.assigned(own.tree, name)
    calls = [pastes.last_name(one.func) for one in made if isinstance(one, ast.Call)]
    return len(made) == 1 and calls in (["default_rng"], ["RandomState"])


def _pair(call: ast.Call) -> list[str]:
    """The names of what a call pairs by position."""
    name = pastes.last_name(call.func)
    if name not in _PAIRS:
        return []
    given: Sequence[ast.expr] = call.args[:2]
    if name == "from_tensor_slices":
        given = call.args[0].elts if call.args and isinstance(call.args[0], ast.Tuple) else []
    elif name == "fit" and len(given) < 2:
        named = {one.arg: one.value for one in call.keywords}
        given = [*given, *(named[key] for key in ("x", "y") if key in named)]
    roots = [one.value if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice) else one for one in given]
    if name in _NAMELESS and not any(are_labels([], one) for one in roots):
        return []
    return [one.id for one in roots if isinstance(one, ast.Name)] if len(roots) == 2 else []


def _finding(
    facts: Facts, file: str, own: Source, nodes: list[ast.AST], shuffles: list[_Shuffle], pair: list[str],
    call: ast.Call, rule: str,
) -> Finding | None:  # fmt: skip
    """What is wrong with a pair; None where both have one order."""
    of = [[one for one in shuffles if one.name == name and one.statement.lineno < call.lineno] for name in pair]
    if pair[0] == pair[1] or any(len(one) > 1 for one in of) or not of[0]:
        return None
    first = of[0][0]
    last = of[1][0] if of[1] else first
    first, last = sorted((first, last), key=lambda one: one.statement.lineno)
    start, end = first.statement.lineno, last.statement.lineno
    if any(isinstance(around, ast.If) for one in (first, last) for around in own.around(one.statement)):
        return None
    if of[1]:
        again = (one for one in nodes if isinstance(one, ast.Call) and pastes.last_name(one.func) in _SEEDS)
        if any(start < one.lineno < end for one in again) or first.draws != last.draws:
            return None
        how = f"line {start} shuffles {first.name}, and line {end} shuffles {last.name} in an order of its own"
    elif _stays_as_it_was(own, pair[0], pair[1], start):
        how = f"line {start} shuffles {first.name}, and {pair[1]} stays as it was"
    else:
        return None
    lines = [start] if end == start else [start, end]
    return Finding(
        rule, "error", None, (),
        f"{pair[0]} and {pair[1]} are paired by position (line {call.lineno}), and {how}: inputs get the labels of "
        "others",
        _together(facts, file, own, first, last, pair), file, start,
        evidence=tuple(f"line {one}: {facts.line(file, one)}" for one in lines), confidence="likely",
    )  # fmt: skip


def _stays_as_it_was(own: Source, inputs: str, labels: str, line: int) -> bool:
    """Whether labels were made above a line, of something else than the inputs, and their order means something."""
    stores = [
        one for one in pastes.walk(own.tree, ast.Name) if one.id == labels and isinstance(one.ctx, ast.Store)
    ]  # fmt: skip
    made = [own.statement(one.lineno) for one in stores]
    known = [one for one in made if isinstance(one, ast.Assign) and one.lineno < line]
    if len(known) != len(made) or len(known) != 1:
        return False
    value = known[0].value
    apart = not any(isinstance(one, ast.Name) and one.id == inputs for one in ast.walk(value))
    noise = any(word in inputs.lower() for word in _NOISE)
    called = {pastes.last_name(one.func) for one in pastes.walk(value, ast.Call)}
    read = [one for one in pastes.walk(own.tree, ast.Call) if pastes.last_name(one.func) == "append"]
    filled = any(ast.unparse(one.func) == f"{labels}.append" for one in read)
    return apart and not noise and not filled and not called & set(_NO_ORDER)


def _together(facts: Facts, file: str, own: Source, first: _Shuffle, last: _Shuffle, pair: list[str]) -> str:
    """The lines with one order for both."""
    np = pastes.module(facts, file, "numpy")
    taken = {one.id for one in pastes.walk(own.tree, ast.Name)}
    order = next(one for one in ("order", "shuffled", "row_order", "mixed_order") if one not in taken or "_" in one)
    listed = first.draws == "random" or any(_is_list(own, name) for name in pair)
    if not listed and np is None:
        return ""
    draw = f"{order} = {first.draws}.permutation(len({first.name}))"
    if first.draws == "random":
        draw = f"{order} = random.sample(range(len({first.name})), len({first.name}))"
    # In a function a name that is assigned to would be its own, and the one outside is what was shuffled.
    function = next((one for one in own.around(first.statement) if isinstance(one, ast.FunctionDef)), None)
    outside = function is not None and not all(pastes.assigned(function, name) for name in pair)
    into = "[:]" if outside and isinstance(first.statement, ast.Expr) else ""
    if listed:
        texts = {name: f"{name}{into} = [{name}[i] for i in {order}]" for name in pair}
    else:
        texts = {name: f"{name}{into} = {name}[{order}]" for name in pair}
    if first is not last and first.statement.lineno == last.statement.lineno:
        return "in their place: " + "; ".join((draw, *texts.values()))
    if first is last:
        both = [draw, *(texts[name] for name in pair)]
        return pastes.written(_in_place(own, file, first, both))
    edits = (_in_place(own, file, first, [draw, texts[first.name]]), _in_place(own, file, last, [texts[last.name]]))
    return pastes.written(*edits)


def _in_place(own: Source, file: str, shuffle: _Shuffle, texts: Sequence[str]) -> Edit:
    """Lines in the place of a statement."""
    one = shuffle.statement
    indent = " " * one.col_offset
    return Edit(file, one.lineno, one.end_lineno or one.lineno, tuple(f"{indent}{text}" for text in texts))


def _is_list(own: Source, name: str) -> bool:
    """Whether a name is a list, as far as the lines that make it say."""
    made = pastes.assigned(own.tree, name)
    return any(
        isinstance(one, (ast.List, ast.ListComp))
        or (isinstance(one, ast.Call) and pastes.last_name(one.func) in _LISTS)
        for one in made
    )
