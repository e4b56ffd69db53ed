"""State that calls share: counters and global random numbers in parallel calls; and Python that runs at trace only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.draws import in_graph
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Function, Node

NAMES = ("shared-state", "parallel-random", "trace-only")
_SEEDS = re.compile(r"random\.seed\(|set_seed\(|set_random_seed\(")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body or function."""
    yield from _parallel(facts)
    yield from _at_trace(facts)


def _parallel(facts: Facts) -> Iterator[Finding]:
    bodies: dict[tuple[str, str | None, int | None], list[Node]] = {}
    for group in facts.lines:
        for node in group:
            bodies.setdefault((node.body, node.file, node.line), []).append(node)
    seeded: bool | None = None
    for (_, file, line), nodes in bodies.items():
        function = facts.definition(file, line)
        if function is None:
            continue
        counts, draws = code.counters(function), code.global_random(function, facts.tree(file))
        if not counts and not draws:
            continue
        pair = _overlap(facts, [node.id for node in nodes])
        if pair is None or _locked(facts, nodes[0]):
            continue
        node = nodes[0]
        if counts:
            write = counts[0]
            yield Finding(
                "shared-state", "warning", node.id, pair,
                f"{node.body} changes {write.name!r}, which its calls share, while others of them run: calls "
                f"#{pair[0]} and #{pair[1]} ran at once. Two threads that do so at the same time can lose a change",
                f"with lock:  # lock = threading.Lock(), once, next to {write.name}\n    {write.text}", node.file,
                write.line, evidence=(f"line {write.line}: {write.text}",), confidence="likely",
            )  # fmt: skip
        if draws:
            draw, tree = draws[0], facts.tree(file)
            seeded = _seeded(facts) if seeded is None else seeded
            if (seeded and "random" in draw.name) or (tree is not None and code.has_seed(tree, draw.name)):
                yield Finding(
                    "parallel-random", "warning", node.id, pair,
                    f"{node.body} draws from the generator {draw.name}, which all share, in parallel calls "
                    f"(#{pair[0]} and #{pair[1]} ran at once). Which call draws first changes from run to run, "
                    "whatever the seed is",
                    f"rng = np.random.default_rng([SEED, index])  # in the body; pass the element's index, as from "
                    f"dataset.enumerate()\n{draw.text.replace(draw.name, 'rng')}", node.file, draw.line,
                    evidence=(f"line {draw.line}: {draw.text}",),
                )  # fmt: skip


def _locked(facts: Facts, node: Node) -> bool:
    return any("lock" in text.lower() for _, text in facts.body(node))


def _seeded(facts: Facts) -> bool:
    """Whether the program sets a seed: then somebody wants the same numbers again."""
    return any(_SEEDS.search(text) for (text,) in facts.reader.rows("SELECT text FROM source"))


def _overlap(facts: Facts, nodes: list[int]) -> tuple[int, int] | None:
    """Two calls of some nodes that ran at once."""
    marks = ", ".join("?" * len(nodes))
    rows = facts.reader.rows(
        "SELECT id, other FROM (SELECT id, start_ns, lag(id) OVER w AS other, lag(end_ns) OVER w AS until FROM call "
        f"WHERE node IN ({marks}) AND kind = 'forward' AND end_ns IS NOT NULL WINDOW w AS (ORDER BY start_ns)) "
        "WHERE until > start_ns LIMIT 1",
        nodes,
    )
    return (rows[0][1], rows[0][0]) if rows else None


def _at_trace(facts: Facts) -> Iterator[Finding]:
    """Python state that a tf.function changes: once for each graph trace, not for each run."""
    runs = Counter(
        dict(facts.reader.rows("SELECT function, count(*) FROM run WHERE kind = 'forward' GROUP BY function"))
    )
    traces = Counter(trace.function for trace in facts.traces if trace.error is None)
    for number, function in facts.functions.items():
        if function.origin != "user" or not traces[number]:
            continue
        found = facts.definition(function.file, function.line)
        draws = code.global_random(found, facts.tree(function.file)) if found is not None else []
        many = function.kind == "tf.data" or runs[number] > traces[number]
        if draws and many:
            yield _drawn_once(facts, function, draws[0], traces[number], runs[number])
        read = code.clock(found) if found is not None and many else None
        if read is not None:
            line = facts.line(function.file, read.line)
            yield Finding(
                "trace-only", "warning", None, (),
                f"line {read.line} of {function.name} reads the clock in Python. It ran {_times(traces[number])}, "
                "while the graph was built: from then on it is a constant",
                line.replace(read.text, "tf.timestamp()") if line else "tf.timestamp()", function.file, read.line,
                evidence=(f"line {read.line}: {line}",),
            )  # fmt: skip
        if function.kind != "tf.function" or not many:
            continue
        writes = code.state_writes(found) if found is not None else []
        writes = [one for one in writes if not _of_tensorflow(one)]
        if not writes:
            continue
        write = writes[0]
        yield Finding(
            "trace-only", "warning", None, (),
            f"line {write.line} of {function.name} changes Python's {write.target or write.name!r}. It ran "
            f"{_times(traces[number])}, when TensorFlow traced the function, and not in its {runs[number]:,} runs",
            _variable(write) if "=" in write.text
            else f"tf.py_function(lambda: {write.text}, [], [])  # runs each time; give it the tensors that it needs",
            function.file, write.line, evidence=(f"line {write.line}: {write.text}",),
        )  # fmt: skip


def _variable(write: code.Write) -> str:
    """The line with a variable of TensorFlow's, which a graph can change."""
    name = write.target or write.name
    left, _, right = write.text.partition("=")
    added = {"+": "assign_add", "-": "assign_sub"}.get(left.rstrip()[-1:])
    inside = f"{name}.{added or 'assign'}({right.strip()})"
    return f"{inside}  # once, before the function is traced: {name} = tf.Variable({name})"


def _drawn_once(facts: Facts, function: Function, draw: code.Write, traces: int, runs: int) -> Finding:
    """A random number that is drawn while the graph is built: from then on it is a constant."""
    data = function.kind == "tf.data"
    line = facts.line(function.file, draw.line)
    asked = "each element gets the same number" if data else f"all {runs:,} runs got what was drawn then"
    return Finding(
        "trace-only", "warning", None, (),
        f"line {draw.line} of {function.name} draws a random number in Python. It ran {_times(traces)}, when "
        f"{'the dataset was built' if data else 'TensorFlow traced the function'}: {asked}",
        in_graph(line, draw.text) or f"tf.numpy_function(lambda: {draw.text}, [], tf.float64)  # draws each time",
        function.file, draw.line, evidence=(f"line {draw.line}: {line}",),
    )  # fmt: skip


def _of_tensorflow(write: code.Write) -> bool:
    """What is part of the graph (metrics, assignments), and what the first trace makes on purpose, as variables."""
    text = write.text
    return any(word in text for word in ("Variable(", "keras.", ".assign", ".update_state")) or "metric" in text.lower()


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
