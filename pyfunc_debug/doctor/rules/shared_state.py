"""State that calls share: counters and global random numbers in parallel calls."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator

from pyfunc_debug.analysis.inputs import settings
from pyfunc_debug.doctor import code, pastes
from pyfunc_debug.doctor.datasets import pipelines
from pyfunc_debug.doctor.draws.drawn_once import draws_of
from pyfunc_debug.doctor.draws.draws import SEEDS
from pyfunc_debug.doctor.facts import Definition, Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.program import syntax
from pyfunc_debug.records import Finding, Node

NAMES = ("shared-state", "parallel-random")
_APPENDED = re.compile(r"([\w.]+)\.append\(")
_PAIRS = {"zip", "array", "asarray", "stack", "concatenate", "DataFrame", "enumerate", "from_tensor_slices"}
"""What goes by the position of a list's entries."""
_COMPARED = 10_000
"""How many calls of a body are compared."""
_OF_GENERATORS = {
    "rand": "random", "random_sample": "random", "randn": "standard_normal", "randint": "integers",
    "random_integers": "integers",
}  # fmt: skip
"""What a generator of NumPy's calls these."""
LOCKS = re.compile(r"(?<![bc])lock|semaphore", re.I)
"""Not a block, and not a clock."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body or function."""
    bodies: dict[tuple[str, str | None, int | None], list[Node]] = {}
    for group in facts.lines:
        for node in group:
            bodies.setdefault((node.body, node.file, node.line), []).append(node)
    seeded: bool | None = None
    for (_, file, _), nodes in bodies.items():
        function = facts.function(nodes[0])
        if function is None:
            continue
        counts, draws = code.counters(function), draws_of(function, facts.tree(file), of=code.global_random)
        yield from _appended(facts, nodes, function)
        if not counts and not draws:
            continue
        pair = overlap(facts, [node.id for node in nodes])
        known = settings(facts.meta, nodes) if pair is None else {}
        may = any(one.parallel != 1 for one in known.values()) and facts.calls_of(nodes).count > 1
        if (pair is None and not may) or locked(facts, nodes[0]):
            continue
        node = nodes[0]
        if counts:
            write = counts[0]
            yield Finding(
                "shared-state", "warning", node.id, pair or (),
                f"{node.body} changes {(write.target or write.name)!r}, which its calls share, "
                + (f"while others of them run: calls #{pair[0]} and #{pair[1]} ran at once" if pair
                   else "in a map with parallel calls")
                + ". Two threads that do so at the same time can lose a change",
                _with_lock(facts, node.file, write), node.file, write.line,
                evidence=(f"line {write.line}: {write.text}",), confidence="likely",
            )  # fmt: skip
        if draws:
            draw, tree = draws[0], facts.tree(file)
            seeded = _seeded(facts) if seeded is None else seeded
            in_turn = pastes.written(pipelines.with_calls(facts, node, 1))
            if (seeded and "random" in draw.name) or (tree is not None and code.has_seed(tree, draw.name)):
                yield Finding(
                    "parallel-random", "warning", node.id, pair or (),
                    f"{node.body} draws from the generator {draw.name}, which all share, in parallel calls"
                    + (f" (#{pair[0]} and #{pair[1]} ran at once)" if pair else "")
                    + ". Which call draws first changes from run to run, whatever the seed is",
                    in_turn or _of_its_own(draw), node.file, draw.line,
                    evidence=(
                        f"line {draw.line}: {draw.text}",
                        *((f"in parallel: {_of_its_own(draw)}".replace("\n", "; "),) if in_turn else ()),
                    ),
                    confidence="measured" if pair else "likely",
                )  # fmt: skip


def _appended(facts: Facts, nodes: list[Node], function: Definition) -> Iterator[Finding]:
    """Lists that parallel calls append to, in the order in which they end, and that the program pairs by position."""
    node = nodes[0]
    known = [(one, found[1]) for one in code.state_writes(function) if (found := _APPENDED.match(one.text)) is not None]
    lists = [(one, name) for one, name in known if _by_position(facts, node.file, function, name)]
    turned = _turned(facts, [one.id for one in nodes]) if lists else None
    if turned is None:
        return
    (write, name), (first, second, count) = lists[0], turned
    yield Finding(
        "shared-state", "warning", node.id, (first, second),
        f"{node.body} appends to {name} in parallel calls, which end in another order than they begin: #{second} began "
        f"after #{first} and ended before it. tf.data keeps the order of its elements, {name} does not: positions in "
        "the two do not fit together",
        pastes.written(pipelines.with_calls(facts, node, 1))
        or f"return what {name} is given from {facts.name(node)}, as one more output: it stays with its element",
        node.file, write.line,
        evidence=(f"line {write.line}: {write.text}", f"{count:,} calls ended before one that began earlier",
                  f"in parallel: return it from {facts.name(node)} as one more output, which stays with its element"),
        confidence="likely",
    )  # fmt: skip


def _by_position(facts: Facts, file: str | None, function: Definition, name: str) -> bool:
    """Whether the program pairs a list with something by position, or makes an array of it, outside of the body."""
    inside = {id(one) for one in ast.walk(function)}
    last = name.rpartition(".")[2]
    for call in pastes.walk(facts.tree(file), ast.Call):
        if id(call) in inside or ast.unparse(call.func).rpartition(".")[2] not in _PAIRS:
            continue
        if any(ast.unparse(one).rpartition(".")[2] == last for one in call.args):
            return True
    return False


def _turned(facts: Facts, nodes: list[int]) -> tuple[int, int, int] | None:
    """Two calls of some nodes, of which the later one ended first, and how many such there are."""
    rows = facts.reader.rows(
        f"SELECT id, start_ns, end_ns FROM call WHERE node IN ({', '.join('?' * len(nodes))}) AND kind = 'forward' "
        f"AND status = 'ok' ORDER BY start_ns, id LIMIT {_COMPARED}",
        nodes,
    )
    longest: tuple[int, int] | None = None  # the call that ended last of those that began before
    pair, count = None, 0
    for call, _, end in rows:
        if longest is not None and end < longest[1]:
            pair, count = pair or (longest[0], call), count + 1
        elif longest is None or end > longest[1]:
            longest = call, end
    return None if pair is None else (*pair, count)


def _with_lock(facts: Facts, file: str | None, write: code.Write) -> str:
    """The change behind a lock, which is made above the outermost function or class that the change stands in."""
    outer = [
        one for one in pastes.around(facts.tree(file), write.line, ast.stmt)
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]  # fmt: skip
    threading = pastes.module(facts, file, "threading")
    lines = ["lock = threading.Lock()"] if threading is None else [f"lock = {threading}.Lock()"]
    first = pastes.first_line(outer[0]) if outer else 0
    change = pastes.lines_of(facts, file, write.line)
    if change is None or not outer:
        return f"with lock:  # lock = threading.Lock(), once, next to {write.name}\n    {write.text}"
    made = pastes.above(facts, file, first, *(["import threading"] if threading is None else []), "", *lines, "", "")
    indent, texts = change
    new = (f"{indent}with lock:", *(f"    {text}" for text in texts))
    return pastes.written(made, Edit(str(file), write.line, write.line + len(texts) - 1, new))


def _of_its_own(draw: code.Write) -> str:
    """The same draw from a generator that is made for each element, from its index."""
    name = draw.called.rpartition(".")[2] or draw.text.partition("(")[0].rpartition(".")[2]
    python = draw.called.startswith("random.") and hasattr(random.Random, name)
    made = 'random.Random(f"{seed} {index}")' if python else "np.random.default_rng([seed, index])"
    given = draw.text[draw.text.index("(") :]
    call = syntax.expression(draw.text)
    if not python and name in ("rand", "randn") and isinstance(call, ast.Call) and len(call.args) > 1:
        given = f"(({', '.join(map(ast.unparse, call.args))}))"
    last = (name if python else _OF_GENERATORS.get(name, name)) + given
    return (
        f"rng = {made}  # in the body: a seed of yours, and the element's index, as from dataset.enumerate()\n"
        f"rng.{last}  # in line {draw.line}"
    )


def locked(facts: Facts, node: Node) -> bool:
    """Whether a body has a lock."""
    return any(LOCKS.search(text) for _, text in facts.body(node))


def _seeded(facts: Facts) -> bool:
    """Whether the program sets a seed: then somebody wants the same numbers again."""
    return any(SEEDS.search(line) for file in facts.files for line in facts.code(file))


def overlap(facts: Facts, nodes: list[int]) -> tuple[int, int] | None:
    """Two calls of some nodes that ran at once."""
    marks = ", ".join("?" * len(nodes))
    rows = facts.reader.rows(
        "SELECT id, other FROM (SELECT id, start_ns, lag(id) OVER w AS other, lag(end_ns) OVER w AS until FROM call "
        f"WHERE node IN ({marks}) AND kind = 'forward' AND end_ns IS NOT NULL WINDOW w AS (ORDER BY start_ns)) "
        "WHERE until > start_ns LIMIT 1",
        nodes,
    )
    return (rows[0][1], rows[0][0]) if rows else None
