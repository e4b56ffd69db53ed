"""Functions that TensorFlow traces again and again: the argument that changes, the cost, and what one graph needs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
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
        place = facts.source_line(file, line)
        which = f"that maps the lambda at {place}" if "<lambda>" in name else f"that calls {name}"
        fix = f"build the dataset {which} once, before the loop, and iterate the same object in each epoch"
    elif rule == "function-in-loop":
        message = (
            f"{function.name} was made a tf.function {len(traces) + 1:,} times, and TensorFlow traced each of them"
            f"{ran}: {cost:,.0f} ms together. Each tf.function object has graphs of its own, which stay in memory"
        )
        fix = f"{name} = tf.function({name})  # once, outside of the function or loop that calls it"
        if "<lambda>" in name:
            made = [
                one for one in pastes.around(facts.tree(file), line or 0, ast.Call)
                if one.args and isinstance(one.args[0], ast.Lambda) and ast.unparse(one.func).endswith("function")
            ]  # fmt: skip
            text = pastes.text_of(facts, file, made[0]) if len(made) == 1 else "tf.function(lambda ...)"
            fix = f"f = {text}  # once, outside of the loop, and call f there"
    else:
        last = traces[-1].avoid or next((trace.avoid for trace in reversed(traces) if trace.avoid), None)
        changing = _changing(traces)
        message = (
            f"TensorFlow traced {function.name} {len(traces) + 1:,} times{ran}, because {changing}: "
            f"{cost:,.0f} ms together. A graph is kept for each"
        )
        if last and "=" in last:
            fix = _decorated(facts, function, last) or f"@tf.function({last})"
        else:
            fix = _as_tensors(facts, function, last) or last or "pass tensors instead of Python values"
    return Finding(rule, "warning", None, (), message, fix, file, line, evidence=tuple(evidence))


def _changing(traces: list[GraphTrace]) -> str:
    """What all the reasons begin with: the argument that changes."""
    reasons = [trace.reason[0] for trace in traces]
    heads = Counter(reason.partition(":")[0].partition(",")[0] for reason in reasons)
    head, count = heads.most_common(1)[0]
    return f"{head} changes" if count == len(reasons) and len(set(reasons)) > 1 and " " not in head else reasons[-1]


def _decorated(facts: Facts, function: Function, options: str) -> str:
    """The decorator with options; "" where the function has none, or some already."""
    found = facts.definition(function.file, function.line)
    decorators = getattr(found, "decorator_list", [])
    own = [one for one in decorators if ast.unparse(one).endswith("function")]
    if len(own) != 1:
        return ""
    text = ast.unparse(own[0])
    return pastes.written(pastes.replaced(facts, function.file, {own[0]: f"{text}({options})"}))


def _as_tensors(facts: Facts, function: Function, advice: str | None) -> str:
    """The lines that call a function with a Python number, with a tensor instead."""
    match = re.fullmatch(r"always pass `(\w+)` as a tensor: tf\.constant\(.*, (tf\.\w+)\)", advice or "")
    found = facts.definition(function.file, function.line)
    if match is None or found is None or isinstance(found, ast.Lambda):
        return ""
    parameters = [one.arg for one in (*found.args.posonlyargs, *found.args.args) if one.arg != "self"]
    place = parameters.index(match[1]) if match[1] in parameters else len(parameters)
    edits = []
    for file, line in pastes.run_sites(facts, function.id):
        call = pastes.call_at(facts, file, line, function.name.rpartition(".")[2])
        value = pastes.argument(call, place, match[1]) if call is not None else None
        if value is None:
            return ""
        new = f"tf.constant({pastes.text_of(facts, file, value)}, {match[2]})"
        edits.append(pastes.replaced(facts, file, {value: new}))
    return pastes.written(*edits) if 0 < len(edits) <= pastes.MOST else ""
