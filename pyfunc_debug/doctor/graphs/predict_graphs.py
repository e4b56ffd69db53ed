"""Graphs that Keras traces for `predict`: one for each model, and for each shape that a model is given."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.graphs.hoist import hoisted
from pyfunc_debug.records import Finding, GraphTrace

PREDICTS = "make_predict_function."
"""Part of the name of what Keras traces for `predict`."""
_LEAST = 5
"""From this number on TensorFlow warns."""
_WORTH = 3
"""Runs of a graph that pay for its trace."""
_NO_ARRAY = re.compile(r"Dataset|[Gg]enerator|Sequence|from_|\.batch\(|iter\(")
_FRAMES = re.compile(r"\bDataFrame\b|\.(?:iloc|loc)\[|read_csv")
_SEVERAL = re.compile(r"outputs=\[[^\]]*,|Model\([^()]*, \[[^\]]*,")


def found(facts: Facts) -> Iterator[Finding]:
    """One finding a line that calls `predict`."""
    sites = _sites(facts)
    for (file, line), traces in sites.items():
        runs = facts.reader.rows(
            "SELECT count(*) FROM run r JOIN stack s ON s.id = r.site WHERE r.kind = 'forward' AND r.trace IN "
            f"({', '.join(str(one.id) for one in traces)})"
        )[0][0]
        call = pastes.call_at(facts, file, line, "predict")
        if len(traces) < _LEAST or runs > _WORTH * len(traces) or call is None:
            continue
        models = len({one.object for one in traces})
        cost = sum(one.duration_ns for one in traces) / 1e6
        model = pastes.text_of(facts, file, call.func.value)  # type: ignore[attr-defined]  # it is a method's call
        what = (
            f"for {models:,} models that were made one after the other, each of which has a graph of its own"
            if models == len(traces)
            else "because the shape of what it is given changes, and each has a graph of its own"
        )
        yield Finding(
            "retrace", "note", None, (),
            f"Keras traced {model}.predict {len(traces):,} times for {runs:,} batches, {what}: {cost:,.0f} ms "
            f"together. {model}(x) computes the same without a graph",
            (_loaded_once(facts, file, call) if models == len(traces) else "")
            or called_itself(facts, file, call, runs == len(traces))
            or f"{model}(x, training=False) for a batch of arrays, in the place of {model}.predict(x)",
            file, line,
        )  # fmt: skip


def _sites(facts: Facts) -> dict[tuple[str, int], list[GraphTrace]]:
    """The graphs by the user's line that ran them."""
    traces = {
        one.id: one for one in facts.traces
        if one.error is None and PREDICTS in facts.functions[one.function].name
        and facts.functions[one.function].origin != "user"
    }  # fmt: skip
    places: dict[int, tuple[str, int]] = {}
    if traces:
        rows = facts.reader.rows(
            "SELECT r.trace, s.frames FROM run r JOIN stack s ON s.id = r.site WHERE r.kind = 'forward' AND r.trace IN "
            f"({', '.join(map(str, traces))})"
        )
        for trace, frames in rows:
            places[trace] = next(((file, line) for file, line, *_ in json.loads(frames)[-1:]), ("", 0))
    grouped: dict[tuple[str, int], list[GraphTrace]] = {}
    for number, place in places.items():
        grouped.setdefault(place, []).append(traces[number])
    return grouped


def _loaded_once(facts: Facts, file: str, call: ast.Call) -> str:
    """The model loaded above the loop or the function that loads it again each time."""
    name = dotted(call.func.value)  # type: ignore[attr-defined]  # as above
    made = [
        one for one in pastes.walk(facts.tree(file), ast.Assign)
        if name in [dotted(target) for target in one.targets] and isinstance(one.value, ast.Call)
    ]  # fmt: skip
    value = made[0].value if len(made) == 1 else None
    if not isinstance(value, ast.Call) or pastes.last_name(value.func) != "load_model":
        return ""
    return hoisted(facts, file, value, name)


def called_itself(facts: Facts, file: str, call: ast.Call, one_batch: bool) -> str:
    """The call of the model itself, where what it is given is one batch of arrays; "" where that cannot be said.

    Args:
      facts: The recording.
      file: The user's file.
      call: The call of `predict`.
      one_batch: Whether each call was one batch.
    """
    source = pastes.source(facts, file)
    given = call.args[0] if len(call.args) == 1 else None
    words = {one.arg for one in call.keywords}
    everything = "\n".join(source.lines)
    if not one_batch or given is None or isinstance(given, (ast.List, ast.Dict, ast.Tuple)) or words - {"verbose"}:
        return ""
    made = [
        source.text(one.value) for one in pastes.walk(facts.tree(file), ast.Assign)
        if dotted(given) in [dotted(target) for target in one.targets]
    ]  # fmt: skip
    if any(map(_NO_ARRAY.search, (*made, source.text(given)))) or _SEVERAL.search(everything):
        return ""
    text = source.text(given)
    if _FRAMES.search(everything):
        numpy = pastes.module(facts, file, "numpy")
        if numpy is None:
            return ""
        text = f"{numpy}.asarray({text})"
    model = pastes.text_of(facts, file, call.func.value)  # type: ignore[attr-defined]  # as above
    return pastes.all_replaced(facts, file, {call: f"{model}({text}, training=False).numpy()"})


__all__ = ["called_itself", "found"]
