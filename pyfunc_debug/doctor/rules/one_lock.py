"""Bodies that hold a lock from beginning to end: their calls run one at a time, however many are in progress."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.bodies.grouped import several
from pyfunc_debug.doctor.bodies.replacement import imports
from pyfunc_debug.doctor.datasets import pipelines
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.doctor.failures.reading.source import indent_of
from pyfunc_debug.gil.whatif import percent
from pyfunc_debug.pfrec.stopped import covered_ns
from pyfunc_debug.records import Finding

NAMES = ("one-lock",)
_LOCKS = {"Lock", "RLock"}
_QUICK = {"numpy", "decode", "int", "float", "str", "asarray", "array", "float32", "int32", "int64", "float64"}
"""What a body may call outside of the lock: it takes no time that counts."""
_OWN_STATE = {"numpy", "math", "time", "json", "zlib", "base64", "struct"}
"""Modules whose functions calls may run at once: they share nothing, but for random numbers."""
_SHARED = ("np.random", "numpy.random")
_BUILTINS = {
    "abs", "bool", "bytes", "dict", "enumerate", "float", "int", "len", "list", "max", "min", "range", "reversed",
    "round", "set", "sorted", "str", "sum", "tuple", "zip",
}  # fmt: skip
_WAIT_SHARE, _WAIT_NS = 0.4, 200_000_000


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line."""
    for group in facts.lines:
        node, calls = group[0], facts.calls_of(group)
        function = facts.function(node)
        if function is None or calls.total_ns < _WAIT_NS or isinstance(function, ast.Lambda):
            continue
        lock = _lock(function)
        if lock is None or not _is_lock(facts.tree(node.file), lock):
            continue
        busy = _busy_ns(facts, [one.id for one in group])
        waited = calls.total_ns - busy  # inside the lock is one call at a time, and all of that is in `busy`
        if waited < max(_WAIT_NS, _WAIT_SHARE * calls.total_ns):
            continue
        yield Finding(
            NAMES[0], "warning", node.id, (),
            f"{node.body} does all its work with {lock} held, so that one call at a time gets on: "
            f"{calls.total_ns / busy:.1f} were in progress on average, and waited for it at least "
            f"{percent(waited / calls.total_ns)} of their time. More parallel calls bring nothing",
            _without(facts, node.file, function)
            or pastes.written(pipelines.with_calls(facts, node, 1))
            or "dataset.map(..., num_parallel_calls=1)  # as fast; the lock only around what is shared is faster",
            node.file, node.line, several(one.id for one in group),
            (f"{calls.count:,} calls took {calls.total_ns / 1e9:.2f} s in sum, in {busy / 1e9:.2f} s of time",
             f"what is done with {lock} held is the call's own: nothing that other calls see"
             if _without(facts, node.file, function)
             else f"faster: hold {lock} only around the lines that change what calls share"),
        )  # fmt: skip


def _without(facts: Facts, file: str | None, function: Definition) -> str:
    """A body's lines without the lock, where these touch nothing but the call's own values and functions of modules."""
    block = next((one for one in getattr(function, "body", ()) if isinstance(one, ast.With)), None)
    if block is None or file is None:
        return ""
    own = code.local_names(function) - {"self"}
    known = set(imports(pastes.source(facts, file)).items())
    modules = {short for short, full in known if full.partition(".")[0] in _OWN_STATE}
    for part in (one for statement in block.body for one in ast.walk(statement)):
        if isinstance(part, (ast.Global, ast.Nonlocal, ast.Await, ast.Yield, ast.FunctionDef, ast.Lambda)):
            return ""
        if isinstance(part, ast.Name) and part.id not in own | modules | _BUILTINS:
            return ""
        if isinstance(part, ast.Attribute) and ast.unparse(part).startswith(_SHARED):
            return ""
    lines = facts.source(file)[block.lineno - 1 : block.end_lineno or block.lineno]
    outer, inner = indent_of(lines[0]), indent_of(facts.source(file)[block.body[0].lineno - 1])
    if block.body[0].lineno == block.lineno or not all(one.startswith(inner) or not one.strip() for one in lines[1:]):
        return ""
    new = tuple(f"{outer}{one.removeprefix(inner)}".rstrip() for one in lines[1:])
    return pastes.written(Edit(file, block.lineno, block.end_lineno or block.lineno, new))


def _lock(function: Definition) -> str | None:
    """The lock that is held around all of a function's work: `lock` of its one `with lock:`; None without."""
    if isinstance(function, ast.Lambda):
        return None
    blocks = [one for one in function.body if isinstance(one, ast.With)]
    if len(blocks) != 1 or len(blocks[0].items) != 1 or blocks[0].items[0].optional_vars is not None:
        return None
    for statement in function.body:
        if statement is blocks[0] or isinstance(statement, (ast.Global, ast.Nonlocal)):
            continue
        if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)):
            return None
        called = [ast.unparse(one.func).rpartition(".")[2] for one in ast.walk(statement) if isinstance(one, ast.Call)]
        if not set(called) <= _QUICK:
            return None
    held = blocks[0].items[0].context_expr
    return ast.unparse(held) if isinstance(held, (ast.Name, ast.Attribute)) else None


def _is_lock(tree: ast.Module | None, name: str) -> bool:
    """Whether a file makes it: `lock = threading.Lock()`."""
    for one in code.all_nodes(tree) if tree is not None else ():
        if isinstance(one, ast.Assign) and name in [ast.unparse(target) for target in one.targets]:
            return isinstance(one.value, ast.Call) and ast.unparse(one.value.func).rpartition(".")[2] in _LOCKS
    return False


def _busy_ns(facts: Facts, nodes: list[int]) -> int:
    """How long at least one of the nodes' calls was in progress."""
    spans = facts.reader.rows(
        f"SELECT start_ns, end_ns FROM call WHERE node IN ({', '.join('?' * len(nodes))}) AND kind = 'forward' "
        "AND end_ns IS NOT NULL",
        nodes,
    )
    return max(covered_ns(spans), 1)
