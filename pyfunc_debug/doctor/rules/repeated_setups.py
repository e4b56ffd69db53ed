"""A generator that reads its file, or builds its store, at the beginning of each pass: each epoch waits for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.generators.shared_sources import is_iterator, passes
from pyfunc_debug.doctor.graphs.hoist import hoisted
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.records import Finding, Node

NAMES = ("repeated-setup",)
_LEAST = 3
"""Passes that begin with it."""
_TOTAL_NS, _SHARE = 1_000_000_000, 0.15
"""What it took in the passes behind the first, and of the recording."""
_LONGER, _EACH_NS = 10, 50_000_000
"""How much longer the first element takes than the others, and at least."""
_USED_UP = frozenset(("open", "reader", "DictReader", "iter", "map", "filter", "zip", "enumerate", "reversed", "chain",
                      "connect", "cursor", "urlopen", "Popen", "shuffled", "Pool"))  # fmt: skip
"""What one pass uses up, or keeps to itself."""


@dataclass(frozen=True)
class _Repeated:
    """What a generator makes in each pass: its call, how many there were, and how long it took, and all but once."""

    node: Node
    made: ast.expr
    passes: int
    each_ns: float
    again_ns: float


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a generator's line."""
    wall = facts.wall_ns
    if wall is None:
        return
    found: dict[tuple[str | None, int], list[_Repeated]] = {}
    for node, _ in facts.generators.values():
        one = _repeated(facts, node) if facts.calls(node.id).count > _LEAST else None
        if one is not None:
            found.setdefault((node.file, one.made.lineno), []).append(one)
    for several in found.values():
        again = sum(one.again_ns for one in several)
        if again >= max(facts.least_ns(_TOTAL_NS), _SHARE * wall):
            yield _finding(facts, several, again / wall)


def _repeated(facts: Facts, node: Node) -> _Repeated | None:
    """What a generator makes again in each pass, if its first element takes much longer than the others."""
    if facts.calls(node.id).total_ns < _LEAST * _EACH_NS:
        return None
    made = _setup(facts, node)
    runs = passes(facts, node) if made is not None else []
    if made is None or len(runs) < _LEAST:
        return None
    first, others = _times(facts, node, {one for one, _, _ in runs})
    if not first or not others or median(first) < max(_EACH_NS, _LONGER * median(others)):
        return None
    return _Repeated(node, made, len(first), median(first), sum(first[1:]) - len(first[1:]) * median(others))


def _times(facts: Facts, node: Node, begins: set[int]) -> tuple[list[int], list[int]]:
    """How long the first calls of the passes took, in order, and the others."""
    rows = facts.reader.rows(
        "SELECT id, end_ns - start_ns FROM call WHERE node = ? AND end_ns IS NOT NULL ORDER BY id", (node.id,)
    )
    return [ns for call, ns in rows if call in begins], [ns for call, ns in rows if call not in begins]


def _setup(facts: Facts, node: Node) -> ast.expr | None:
    """The one call that a generator makes something by before its loop, which the loop only reads."""
    function, tree = facts.function(node), facts.tree(node.file)
    if not isinstance(function, ast.FunctionDef) or tree is None:
        return None
    found: list[ast.expr] = []
    for one in function.body:
        if isinstance(one, (ast.For, ast.While, ast.With)):
            found += _read_by(one.iter) if isinstance(one, ast.For) else []
            break
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and not _is_small(one.value):
            found.append(one.value)
    made = found[0] if len(found) == 1 else None
    statement = pastes.source(facts, node.file).parent(made) if made is not None else None
    if made is None or _is_used_up(made, tree) or _draws(made):
        return None
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        if len(statement.targets) > 1 or not isinstance(target, ast.Name) or _is_changed(function, target.id):
            return None
        if is_iterator(tree, target.id):
            return None
    return made


def _read_by(iterated: ast.expr) -> list[ast.expr]:
    """The call that reads what a loop goes through: `pd.read_csv(path)` of `pd.read_csv(path).iterrows()`."""
    return [
        one for one in pastes.walk(iterated, ast.Call)
        if pastes.last_name(one.func).startswith(("read_", "load", "imread", "genfromtxt"))
    ]  # fmt: skip


def _is_small(call: ast.Call) -> bool:
    """Whether a call is one of Python's own or NumPy's that take no time: `len(rows)`, `np.arange(n)`."""
    return pastes.last_name(call.func) in ("len", "list", "range", "arange", "zeros", "ones", "int", "dict", "set")


def _is_used_up(call: ast.expr, tree: ast.Module) -> bool:
    names = {pastes.last_name(one.func) for one in pastes.walk(call, ast.Call)}
    generators = {
        one.name for one in pastes.walk(tree, ast.FunctionDef)
        if any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in code.own_nodes(one))
    }  # fmt: skip
    return bool(names & (_USED_UP | generators))


def _draws(call: ast.expr) -> bool:
    """Whether its text says that each pass has another order or other numbers."""
    text = ast.unparse(call)
    return any(word in text for word in ("random", "shuffle", "permut", "sample", "rng", "now(", "time("))


def _is_changed(function: ast.FunctionDef, name: str) -> bool:
    """Whether a generator writes into what it made, or gives it another value."""
    stores = [one for one in code.own_nodes(function) if isinstance(one, ast.Name) and one.id == name
              and isinstance(one.ctx, ast.Store)]  # fmt: skip
    writes = [one for one in code.own_nodes(function) if isinstance(one, (ast.Subscript, ast.Attribute))
              and not isinstance(one.ctx, ast.Load) and code.root(one) == name]  # fmt: skip
    shuffles = [
        one for one in code.own_nodes(function) if isinstance(one, ast.Call)
        and pastes.last_name(one.func) in ("shuffle", "pop", "popleft", "sort", "append", "remove", "clear", "next")
        and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(one))
    ]  # fmt: skip
    return len(stores) > 1 or bool(writes) or bool(shuffles)


def _finding(facts: Facts, several: list[_Repeated], share: float) -> Finding:
    node, made = several[0].node, several[0].made
    text = pastes.text_of(facts, node.file, made)
    count, each = sum(one.passes for one in several), max(one.each_ns for one in several)
    name = facts.name(node)
    return Finding(
        NAMES[0], "warning", node.id, (),
        f"{name} makes `{text}` at the beginning of each pass: the first element of each of {count:,} passes took "
        f"{each / 1e9:.2f} s. That is {percent(share)} of the program's time behind the first pass; each epoch is a "
        "pass of its own",
        hoisted(facts, node.file, made, "read_once") or (
            f"make `{text}` once, outside of {name}, and let it only go through that"
        ), node.file, made.lineno,
        evidence=("the rest of a pass takes it as it is: no line of the generator changes it",), confidence="likely",
    )  # fmt: skip
