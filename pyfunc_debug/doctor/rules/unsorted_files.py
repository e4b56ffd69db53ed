"""Files and labels that are paired by position, and come from listings of folders, which have no order.

`os.listdir`, `os.walk` and `glob` give names as the file system has them; `image_dataset_from_directory` sorts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.source import Source, parameters
from pyfunc_debug.records import Finding

NAMES = ("unsorted-files",)
_LISTINGS = {"listdir", "scandir", "walk", "glob", "iglob", "rglob", "iterdir"}
_SORTS = {"sorted", "natsorted", "os_sorted", "sort"}
_DIRECTORIES = {"image_dataset_from_directory", "text_dataset_from_directory", "audio_dataset_from_directory"}
_FILLS = {"append", "extend", "insert"}
_LOADS = {"load", "loadtxt", "genfromtxt", "fromfile", "loadmat", "read_csv", "read_excel", "read_json", "readlines"}
"""What has the order of a file."""
_DEPTH = 6


@dataclass(frozen=True)
class _Order:
    """Which listings a list has its order of.

    Attributes:
      listings: Their calls, as they are written; what differs only in place is one.
      unsorted: What is to be sorted: the calls, and the names that `os.walk` gives to files.
      of_a_file: It is that of the rows of a table or an array which one file holds.
    """

    listings: frozenset[str]
    unsorted: tuple[ast.expr, ...]
    of_a_file: bool = False


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a call that pairs them."""
    for file in facts.files:
        code = "\n".join(facts.code(file))
        if not any(f"{one}(" in code for one in _LISTINGS):
            continue
        own = pastes.source(facts, file)
        for call in pastes.walk(own.tree, ast.Call):
            name = pastes.last_name(call.func)
            if name in _DIRECTORIES:
                yield from _of_directory(facts, file, own, call)
            elif name in ("from_tensor_slices", "zip", "fit"):
                yield from _of_pairs(facts, file, own, call, name)


def _of_directory(facts: Facts, file: str, own: Source, call: ast.Call) -> Iterator[Finding]:
    """A list of labels beside files that Keras sorts."""
    labels = next((one.value for one in call.keywords if one.arg == "labels"), None)
    order = _order(own, labels, call.lineno, 0) if isinstance(labels, ast.Name) else None
    if order is None or not order.unsorted:
        return
    names, listings = pastes.text_of(facts, file, labels or call), " and ".join(sorted(order.listings))
    yield Finding(
        NAMES[0], "warning", None, (),
        f"{pastes.last_name(call.func)} sorts the paths of its files, and {names} are in the order of {listings}, "
        "which is any: they may be the labels of other files",
        _sorted(facts, file, own, order.unsorted), file, call.lineno, confidence="likely",
    )  # fmt: skip


def _of_pairs(facts: Facts, file: str, own: Source, call: ast.Call, name: str) -> Iterator[Finding]:
    """Two lists of two listings."""
    parts = list(call.args[:2])
    if name == "from_tensor_slices":
        parts = list(call.args[0].elts[:2]) if call.args and isinstance(call.args[0], ast.Tuple) else []
    elif name == "zip" and (not isinstance(call.func, ast.Name) or len(call.args) != 2):
        return
    if len(parts) != 2:
        return
    orders = [_order(own, one, call.lineno, 0) for one in parts]
    orders = [
        one or (_loaded(own, given, call.lineno) if other is not None else None)
        for given, one, other in zip(parts, orders, reversed(orders))
    ]
    if orders[0] is None or orders[1] is None or orders[0].listings & orders[1].listings:
        return
    unsorted = (*orders[0].unsorted, *orders[1].unsorted)
    if not unsorted:
        return
    names = " and ".join(pastes.text_of(facts, file, one) for one in parts)
    table = [pastes.text_of(facts, file, part) for part, one in zip(parts, orders) if one is not None and one.of_a_file]
    also = [
        f"sorted() compares texts, so that '10.png' comes before '2.png': {one} has to have that order, too"
        for one in table
    ]
    listings = sorted({pastes.text_of(facts, file, one) for one in unsorted if isinstance(one, ast.Call)})
    shown = f"{' and '.join(listings) or 'os.walk'} {'give' if len(listings) > 1 else 'gives'}"
    yield Finding(
        NAMES[0], "warning", None, (),
        f"{names} are paired by position, and {shown} names in any order: an element may get the "
        "partner of another one",
        _sorted(facts, file, own, unsorted), file, call.lineno, evidence=tuple(also), confidence="likely",
    )  # fmt: skip


def _order(own: Source, given: ast.expr, line: int, depth: int) -> _Order | None:
    """The order of a list, as far as it is that of files in a folder; None where it is another."""
    if depth > _DEPTH:
        return None
    if isinstance(given, ast.Name):
        scope = next((one for one in own.around(given) if isinstance(one, ast.FunctionDef)), None)
        if scope is not None and given.id in parameters(scope):
            return None
        return _of_name(own, own.tree if scope is None else scope, given.id, line, depth)
    calls = [one for one in ast.walk(given) if isinstance(one, ast.Call)]
    if isinstance(given, ast.Call) and pastes.last_name(given.func) in _LISTINGS:
        return _Order(frozenset({ast.unparse(given)}), (given,))
    if isinstance(given, ast.Call) and pastes.last_name(given.func) in _SORTS:
        listed = {ast.unparse(one) for one in calls if pastes.last_name(one.func) in _LISTINGS}
        inner = _order(own, given.args[0], line, depth + 1) if given.args else None
        listed |= inner.listings if inner is not None else set()
        return _Order(frozenset(listed), ()) if listed else None
    if isinstance(given, (ast.ListComp, ast.GeneratorExp)):
        return _order(own, given.generators[0].iter, line, depth + 1) if len(given.generators) == 1 else None
    if isinstance(given, ast.Call) and len(given.args) >= 1 and pastes.last_name(given.func) in (
        "list", "tuple", "array", "asarray", "constant", "map", "to_categorical", "astype",
    ):  # fmt: skip
        inside = given.args[1] if pastes.last_name(given.func) == "map" and len(given.args) == 2 else given.args[0]
        return _order(own, inside, line, depth + 1)
    if isinstance(given, ast.BinOp) and isinstance(given.op, (ast.Div, ast.Mult)):
        return _order(own, given.left, line, depth + 1)
    return None


def _loaded(own: Source, given: ast.expr, line: int) -> _Order | None:
    """No listing: the order of a table or an array that is read from one file, and that nothing reorders."""
    for _ in range(_DEPTH):
        if isinstance(given, ast.Name):
            made = [
                one for one in pastes.walk(own.tree, ast.Assign)
                if any(given.id in ast.unparse(target) for target in one.targets)
            ]  # fmt: skip
            if len(made) != 1 or ast.unparse(made[0].targets[0]) != given.id or made[0].lineno >= line:
                return None
            given = made[0].value
        elif isinstance(given, ast.Call) and pastes.last_name(given.func) in _LOADS:
            return _Order(frozenset(), (), of_a_file=True)
        elif isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and not given.keywords and all(
            isinstance(one, ast.Constant) or pastes.last_name(given.func) == "astype" for one in given.args
        ):  # fmt: skip
            given = given.func.value
        elif (
            isinstance(given, ast.Call) and pastes.last_name(given.func) in ("list", "array", "asarray") and given.args
        ):
            given = given.args[0]
        elif isinstance(given, ast.Attribute) or (
            isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Constant)
        ):
            given = given.value
        else:
            return None
    return None


def _of_name(own: Source, scope: ast.AST, name: str, line: int, depth: int) -> _Order | None:
    """The order of what a name is given, or of the loop that fills it."""
    made, filled = [], []
    for one in own_nodes(scope):
        if isinstance(one, ast.Assign) and [ast.unparse(target) for target in one.targets] == [name]:
            made.append(one)
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and ast.unparse(one.func.value) == name:
            if one.func.attr in _SORTS | {"shuffle", "reverse"}:
                return None
            filled += [one] if one.func.attr in _FILLS else []
        elif (
            isinstance(one, ast.Call) and pastes.last_name(one.func) == "shuffle" and name in map(ast.unparse, one.args)
        ):
            return None
    before = [one for one in made if one.lineno < line]
    if filled:
        orders = [_of_loops(own, one, depth) for one in filled]
        first = orders[0]
        return first if first is not None and all(one == first for one in orders) else None
    if not before:
        return None
    last = max(before, key=lambda one: one.lineno)
    return _order(own, last.value, last.lineno, depth + 1)


def _of_loops(own: Source, call: ast.Call, depth: int) -> _Order | None:
    """The order in which loops over files fill a list."""
    loops = [one for one in own.around(call) if isinstance(one, ast.For)]
    listings: set[str] = set()
    unsorted: list[ast.expr] = []
    known = False
    for loop in loops[::-1]:
        order = _order(own, loop.iter, loop.lineno, depth + 1)
        walked = isinstance(loop.iter, ast.Name) and any(_walks(one, loop.iter.id) for one in loops)
        known = known or order is not None
        if order is not None:
            listings |= order.listings
            unsorted += order.unsorted
        elif walked:
            unsorted.append(loop.iter)
    return _Order(frozenset(listings), tuple(unsorted)) if known else None


def _walks(loop: ast.For, files: str) -> bool:
    """Whether it is a loop over `os.walk` that gives this name to the files of a folder."""
    target = loop.target
    named = [ast.unparse(one) for one in target.elts] if isinstance(target, ast.Tuple) else []
    return len(named) == 3 and named[2] == files and "walk(" in ast.unparse(loop.iter)


def _sorted(facts: Facts, file: str, own: Source, unsorted: tuple[ast.expr, ...]) -> str:
    """The listings, sorted."""
    pieces = {one: f"sorted({own.text(one)})" for one in dict.fromkeys(unsorted)}
    return pastes.all_replaced(facts, file, pieces)
