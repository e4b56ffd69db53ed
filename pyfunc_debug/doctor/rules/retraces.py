"""Functions that TensorFlow traces again and again: the argument that changes, the cost, and what one graph needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Finding, Function, GraphTrace

NAMES = ("retrace", "function-in-loop", "dataset-in-loop")
_MANY = 3
"""Up to this many graphs beyond the first are usual: training and evaluation, a last batch that is smaller."""
_MANY_OBJECTS = 5
_WORTH = 10
"""Runs of a graph that pay for its trace."""


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a function and kind of reason."""
    runs = Counter(
        dict(facts.reader.rows("SELECT function, count(*) FROM run WHERE kind = 'forward' GROUP BY function"))
    )
    again: dict[tuple[int, str], list[GraphTrace]] = {}
    for trace in facts.traces:
        if trace.error is None and trace.reason and facts.functions[trace.function].origin == "user":
            again.setdefault((trace.function, _rule(trace)), []).append(trace)
    for (number, rule), traces in again.items():
        function = facts.functions[number]
        least = _MANY if rule == "retrace" else _MANY_OBJECTS
        if len(traces) < least or runs[number] >= _WORTH * (len(traces) + 1):
            continue
        yield _finding(facts, function, rule, traces, runs[number])


def _rule(trace: GraphTrace) -> str:
    first = trace.reason[0]
    if first.startswith("a new tf.function object"):
        return "function-in-loop"
    if first.startswith("a new dataset"):
        return "dataset-in-loop"
    if first.startswith("another object's method") or "created variables" in first or "left no graph" in first:
        return "usual"
    return "retrace"


def _finding(facts: Facts, function: Function, rule: str, traces: list[GraphTrace], runs: int) -> Finding:
    cost = sum(trace.duration_ns for trace in traces) / 1e6
    reasons = Counter("; ".join(trace.reason) for trace in traces)
    ran = f" for {runs:,} runs" if runs else ""
    name = function.name.rpartition(".")[2]
    file, line = function.file, function.line
    evidence = [f"{count:,}x {reason}" for reason, count in reasons.most_common(3)]
    if rule == "dataset-in-loop":
        message = (
            f"the dataset that calls {function.name} was built {len(traces) + 1:,} times, and TensorFlow traced {name} "
            f"again for each: {cost:,.0f} ms together. Each dataset also keeps its graphs"
        )
        fix = (
            f"dataset = dataset.map({name})  # once, before the loop\n"
            "for epoch in range(epochs):\n    for x in dataset:\n        ..."
        )
    elif rule == "function-in-loop":
        message = (
            f"{function.name} was made a tf.function {len(traces) + 1:,} times, and TensorFlow traced each of them"
            f"{ran}: {cost:,.0f} ms together. Each tf.function object has graphs of its own, which stay in memory"
        )
        fix = f"{name} = tf.function({name})  # once, outside of the function or loop that calls it"
        if "<lambda>" in name:
            fix = f"f = tf.function({facts.line(file, line) or 'lambda ...'})  # once, outside of the loop"
    else:
        last = traces[-1].avoid or next((trace.avoid for trace in reversed(traces) if trace.avoid), None)
        changing = _changing(traces)
        message = (
            f"TensorFlow traced {function.name} {len(traces) + 1:,} times{ran}, because {changing}: "
            f"{cost:,.0f} ms together. A graph is kept for each"
        )
        fix = f"@tf.function({last})" if last and "=" in last else last or "pass tensors instead of Python values"
    return Finding(rule, "warning", None, (), message, fix, file, line, evidence=tuple(evidence))


def _changing(traces: list[GraphTrace]) -> str:
    """What all the reasons begin with: the argument that changes."""
    reasons = [trace.reason[0] for trace in traces]
    heads = Counter(reason.partition(":")[0].partition(",")[0] for reason in reasons)
    head, count = heads.most_common(1)[0]
    return f"{head} changes" if count == len(reasons) and len(set(reasons)) > 1 and " " not in head else reasons[-1]
