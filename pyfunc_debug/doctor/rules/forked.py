"""Processes that were forked after TensorFlow had started threads, and stood still in TensorFlow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.text import listed
from pyfunc_debug.doctor.waits.spawned import spawned
from pyfunc_debug.records import Finding

NAMES = ("forked-process",)
_TRAINS = ("fit", "predict", "evaluate")


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a line at which forked processes stood."""
    groups: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    went_on = {one["process"] for _, _, one in facts.notices["forked"] if one["went_on"]}
    for _, _, noticed in facts.notices["forked"]:
        if not noticed["went_on"] and noticed["frames"]:
            places = *(noticed["forked"] or [None, None])[:2], *noticed["frames"][-1][:2]
            groups.setdefault(places, []).append(noticed)
    for found in groups.values():
        yield _finding(facts, found, all(one["process"] in went_on for one in found))


def _finding(facts: Facts, found: list[dict[str, Any]], went_on: bool) -> Finding:
    first = found[0]
    inner, outer = first["frames"][-1], first["frames"][0]
    file, line = (first["forked"] or inner)[:2]
    who = f"{len(found)} forked processes" if len(found) > 1 else first["name"] or "a forked process"
    stood = f"{'stood' if went_on or len(found) > 1 else 'stands'} still in TensorFlow"
    age = max(one["age_s"] for one in found)
    text = (
        f"{who} ({'processes' if len(found) > 1 else 'process'} {', '.join(str(one['process']) for one in found[:4])}) "
        f"{stood} at {facts.source_line(*inner[:2])} for {age:.0f} s{' and went on later' if went_on else ''}: "
        f"TensorFlow had {first['threads']} threads to run operations on at the fork, and a forked process has "
        f"{'none' if not first['threads_here'] else first['threads_here']} of them"
    )
    waits = next((one["waits"] for one in found if one["waits"]), None)
    if waits:
        text += f". The program waits for {waits['what']} at {facts.source_line(*waits['frames'][-1][:2])}"
    fix, more = _fix(facts, file, line if first["forked"] else None, outer)
    shown = dict.fromkeys(tuple(one) for one in (first["forked"], outer, inner) if one)
    return Finding(
        NAMES[0], "warning" if went_on else "error", None, (), f"{text}{more}", fix, file, line,
        evidence=tuple(f"{facts.source_line(*one[:2])} {one[3]}".rstrip() for one in shown), confidence="likely",
    )  # fmt: skip


def _fix(facts: Facts, file: str, line: int | None, outer: list[Any]) -> tuple[str, str]:
    """What to paste, and a sentence more for the message."""
    threads = _in_threads(facts, file, line)
    if threads:
        return threads, ""
    found = spawned(facts, file, (outer[0], outer[1]))
    name = outer[2]
    if found.fix:
        more = f". A spawned process runs the top level of the file again: it makes {listed(found.made)} for itself"
        return found.fix, more if found.made else ""
    why = f" ({found.why})" if found.why else ""
    return (
        f"use NumPy in place of TensorFlow in {name}; or start its processes before the first operation of TensorFlow; "
        f'or spawn them, multiprocessing.set_start_method("spawn") under `if __name__ == "__main__":`{why}'
    ), ""


def _in_threads(facts: Facts, file: str, line: int | None) -> str:
    """Threads of Keras', or processes of joblib's that are not forked, in the user's own line; "" where neither is."""
    tree = facts.tree(file)
    calls = [] if line is None else pastes.around(tree, line, ast.Call)
    for call in calls:
        given = next((one.value for one in call.keywords if one.arg == "backend"), None)
        if isinstance(given, ast.Constant) and given.value == "multiprocessing":
            return pastes.written(pastes.replaced(facts, file, {given: '"loky"'}))
    asked = [
        one.value for call in pastes.walk(tree, ast.Call) for one in call.keywords
        if one.arg == "use_multiprocessing" and isinstance(one.value, ast.Constant) and one.value.value is True
    ]  # fmt: skip
    if asked and (line is None or any(pastes.last_name(one.func) in _TRAINS for one in calls)):  # Keras forks
        return pastes.all_replaced(facts, file, dict.fromkeys(asked, "False"))
    return ""
