"""`next(iter(ds))` in a training loop: it begins the dataset in each turn, and takes its first element.

The same is said of `next(rows())`, which begins a generator in each turn.

Where nothing shuffles it, each step trains with the same batch. Where something does, each step fills the buffer of the
shuffle again, for one batch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets import pipelines
from pyfunc_debug.doctor.datasets.built_once import innermost_loop
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import Source
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.records import Finding, Frame

NAMES = ("first-batch",)
_LEAST = 5
"""Turns from which it is said."""
_SHARE, _LEAST_NS = 0.2, 500_000_000
"""Share of the recording, and time, that the steps waited for a shuffle that begins again."""
_TRAINS = ("GradientTape", "apply_gradients", "minimize", "train_on_batch", "fit")
_CHANGES = ("Shuffle", "Sample", "Random", "DirectedInterleave")
"""Kinds of datasets, at their beginning, which give another first element in each pass."""
_DRAWS = re.compile(r"rand|shuffle|choice|sample|permut|noise|augment|rng|next\(|pop\(|read\(|recv|queue|time\(")
"""What may give a generator another first element."""
_CALLS = 2
"""How far functions of the file are followed for what trains."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line."""
    told: set[tuple[str, int]] = set()
    for entry in facts.meta.get("inputs") or []:
        if not entry["site"] or entry["iterators"] < _LEAST or entry["taken"] != entry["iterators"]:
            continue
        file, line = str(entry["site"][0]), int(entry["site"][1])
        own = pastes.source(facts, file)
        call = _first_of(own, line)
        if call is None or (file, line) in told or not _trains(own, call):
            continue
        told.add((file, line))
        yield from _finding(facts, file, own, call, entry)
    for file in facts.files:
        yield from _of_generators(facts, file)


def _first_of(own: Source, line: int) -> ast.Call | None:
    """The `next(iter(ds))`, or `next(ds.as_numpy_iterator())`, of a line, if it has one."""
    found = [
        one for one in pastes.walk(own.tree, ast.Call)
        if ast.unparse(one.func) == "next" and len(one.args) == 1 and isinstance(one.args[0], ast.Call)
        and (_is_iter(one.args[0]) or _is_of_arrays(one.args[0]))
        and one.lineno <= line <= (one.end_lineno or one.lineno)
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _is_iter(inner: ast.Call) -> bool:
    return ast.unparse(inner.func) == "iter" and len(inner.args) == 1


def _is_of_arrays(inner: ast.expr) -> bool:
    """Whether a call is that of `ds.as_numpy_iterator()`."""
    return isinstance(inner, ast.Call) and pastes.last_name(inner.func) == "as_numpy_iterator" and not inner.args


def _dataset(call: ast.Call) -> ast.expr:
    """`ds` of `next(iter(ds))`."""
    inner = call.args[0]
    assert isinstance(inner, ast.Call)
    return inner.func.value if isinstance(inner.func, ast.Attribute) and not inner.args else inner.args[0]


def _finding(facts: Facts, file: str, own: Source, call: ast.Call, entry: dict[str, Any]) -> Iterator[Finding]:
    dataset, turns = own.text(_dataset(call)), int(entry["iterators"])
    taken = own.text(call)
    kinds = [stage["kind"] for stage in entry["stages"]]
    changes = any(kind.startswith(_CHANGES) for kind in kinds)
    if changes:
        wall, waited = facts.wall_ns, int(entry["first_ns"])
        if wall is None or waited < max(_LEAST_NS, _SHARE * wall):
            return
        text = (
            f"{taken} begins {dataset} in each of {turns:,} turns, so that its shuffle is filled again "
            f"for one element: they waited {waited / 1e9:.1f} s for that, {percent(waited / wall)} of the time"
        )
    elif any("Generator" in kind or kind.startswith("FlatMap") for kind in kinds):
        text = (
            f"{taken} begins {dataset}, and its generator, in each of {turns:,} turns, and takes the "
            "first element. If that is the same each time, each step trains with it"
        )
    else:
        text = (
            f"{taken} begins {dataset} in each of {turns:,} turns, and takes the first element: each "
            "step trains with the same one"
        )
    yield Finding(
        NAMES[0], "warning", None, (), text,
        _once(facts, file, own, call, entry["stages"]) or (
            f"batches = iter({dataset}.repeat())  # above the loop, and next(batches) in it"
        ), file, call.lineno,
    )  # fmt: skip


def _once(facts: Facts, file: str, own: Source, call: ast.Call, stages: list[dict[str, Any]]) -> str:
    """The iterator above the loops, and its next element in them; "" where no line is the place."""
    dataset = own.text(_dataset(call))
    repeats = "" if any(stage.get("repeats") == -1 for stage in stages) else ".repeat()"
    name = own.unused_name("batches")
    arrays = _is_of_arrays(call.args[0])
    line = f"{name} = {dataset}{repeats}.as_numpy_iterator()" if arrays else f"{name} = iter({dataset}{repeats})"
    statement, loop = own.statement(call.lineno), innermost_loop(own, call)
    if statement is None or not isinstance(_dataset(call), (ast.Name, ast.Attribute)):
        return ""
    if loop is not None:
        root = dataset.partition(".")[0]
        if root in code.stored_names(loop):
            return ""
        above = pipelines.above_loop(facts, Frame(file, call.lineno, "", ""), root, line)
    else:  # in a function that a loop calls
        function = next((one for one in own.around(call) if isinstance(one, ast.FunctionDef)), None)
        if function is None or not _is_made_above(own, dataset, function):
            return ""
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        above = pastes.above(facts, file, first, line)
    return pastes.written(above, pastes.replaced(facts, file, {call: f"next({name})"}))


def _of_generators(facts: Facts, file: str) -> Iterator[Finding]:
    """`next(rows())` in a loop that trains, where nothing gives `rows` another first element."""
    own = pastes.source(facts, file)
    for call in pastes.walk(own.tree, ast.Call):
        made = call.args[0] if ast.unparse(call.func) == "next" and len(call.args) == 1 else None
        loop = innermost_loop(own, call) if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else None
        if loop is None or not isinstance(made, ast.Call) or not _with(own, loop, call):
            continue
        functions = [one for one in pastes.walk(own.tree, ast.FunctionDef) if one.name == ast.unparse(made.func)]
        if len(functions) != 1 or _differs(own, functions[0], made, loop):
            continue
        text, function = own.text(made), functions[0]
        name = own.unused_name("batches")
        endless = any(isinstance(one, ast.While) for one in code.own_nodes(function))
        lines = [f"{name} = {text}"] if endless else [
            "import itertools",
            f"{name} = itertools.chain.from_iterable({text} for _ in itertools.count())",
        ]  # fmt: skip
        above = pipelines.above_loop(facts, Frame(file, call.lineno, "", ""), function.name, *lines)
        yield Finding(
            NAMES[0], "warning", None, (),
            f"{own.text(call)} begins {text} in each turn of the loop, and takes its first element: each step trains "
            "with the same one",
            pastes.written(above, pastes.replaced(facts, file, {call: f"next({name})"})), file, call.lineno,
            evidence=(f"line {function.lineno}: {facts.line(file, function.lineno)}",), confidence="likely",
        )  # fmt: skip


def _differs(own: Source, function: ast.FunctionDef, made: ast.Call, loop: ast.For | ast.While) -> bool:
    """Whether a generator may begin with another element in another turn, or gives none of its own."""
    inside = list(code.own_nodes(function))
    if not any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in inside):
        return True
    if any(isinstance(one, (ast.Global, ast.Nonlocal)) for one in inside) or _DRAWS.search(ast.unparse(function)):
        return True
    changed = code.stored_names(loop) | {ast.unparse(one.target) for one in pastes.walk(loop, ast.AugAssign)}
    changed |= {
        ast.unparse(arg) for one in pastes.walk(loop, ast.Call) if _DRAWS.search(ast.unparse(one.func))
        for arg in one.args
    }  # fmt: skip
    read = code.outside(function, own.tree) | {name for arg in (*made.args, *made.keywords) for name in _names(arg)}
    return bool(read & changed) or any(isinstance(one, ast.Break) for one in loop.body)


def _is_made_above(own: Source, dataset: str, function: ast.FunctionDef) -> bool:
    """Whether a dataset is a variable of the module, made once and above a function of the module."""
    body = getattr(own.tree, "body", [])
    made = [one for one in body if isinstance(one, ast.Assign) and dataset in [ast.unparse(t) for t in one.targets]]
    return function in body and bool(made) and all(one.lineno < function.lineno for one in made)


def _trains(own: Source, call: ast.Call) -> bool:
    """Whether a model is trained with the element: to look at one batch again and again may be meant."""
    loop = innermost_loop(own, call)
    if loop is not None:
        return _with(own, loop, call)
    function = next((one for one in own.around(call) if isinstance(one, ast.FunctionDef)), None)
    if function is None:
        return False
    uses = [one for one in pastes.walk(own.tree, ast.Call) if pastes.last_name(one.func) == function.name]
    loops = [(found, one) for one in uses if (found := innermost_loop(own, one)) is not None]
    return len(uses) == len(loops) > 0 and all(_with(own, loop, one) for loop, one in loops)


def _with(own: Source, loop: ast.For | ast.While, call: ast.Call) -> bool:
    """Whether a turn of a loop trains with what a call in it gives."""
    parts = list(_of_turn(loop))
    taken: set[str] = set()
    for one in parts:
        if isinstance(one, ast.Assign) and (any(part is call for part in ast.walk(one)) or taken & _names(one.value)):
            taken |= {name for target in one.targets for name in _names(target)}
    for one in parts:
        held = any(part is call for part in ast.walk(one)) or bool(taken & _names(one))
        if isinstance(one, ast.With) and held and any("GradientTape" in ast.unparse(item) for item in one.items):
            return True
        if isinstance(one, ast.Call) and held and _is_training(own, one, _CALLS):
            return True
    return False


def _of_turn(loop: ast.AST) -> Iterator[ast.AST]:
    """What stands in a loop, in its order and without loops in it."""
    for one in ast.iter_child_nodes(loop):
        if not isinstance(one, (ast.For, ast.While)):
            yield one
            yield from _of_turn(one)


def _names(part: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}


def _is_training(own: Source, call: ast.Call, depth: int) -> bool:
    """Whether a call trains a model, or is one of a function of the file that does."""
    name = pastes.last_name(call.func)
    if name in _TRAINS:
        return name != "GradientTape"
    functions = [one for one in pastes.walk(own.tree, ast.FunctionDef) if one.name == name]
    inner = [one for function in functions for one in pastes.walk(function, ast.Call)]
    tapes = any(pastes.last_name(one.func) == "GradientTape" for one in inner)
    return tapes or (depth > 0 and any(_is_training(own, one, depth - 1) for one in inner))
