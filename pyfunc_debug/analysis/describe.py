"""A node or a call in words, for the terminal."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable

from pyfunc_debug.analysis.contention import wait_text
from pyfunc_debug.analysis.tables import kind_text, milliseconds
from pyfunc_debug.events import Notice
from pyfunc_debug.gil import RESOLUTION_NS, WORDS
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.places import source_line
from pyfunc_debug.records import Call, Frame, Node, Value


def node_text(node: Node, reader: Reader, shown: int = 20) -> str:
    """A node's facts and its last calls."""
    function = next((one for one in reader.functions() if one.id == node.function), None)
    lines = [f"node {node.id}  {node.body}  {node.kind}  {source_line(node.file, node.line)}"]
    if function is not None and function.kind != "eager":
        where = f"op {node.name} in " if node.name else ""
        lines.append(f"  {where}{function.name} ({function.kind}) {source_line(function.file, function.line)}".rstrip())
    elif function is not None:
        lines.append("  called eagerly")
    if node.tout or node.paths:
        lines.append(f"  ({', '.join(node.paths)}) -> {', '.join(node.tout) or 'nothing'}")
    if node.stack:
        lines.append("  call site")
        lines += _stack(node.stack)
    ids = [
        row[0] for row in reader.rows("SELECT id FROM call WHERE node = ? ORDER BY id DESC LIMIT ?", (node.id, shown))
    ]
    total = int(reader.rows("SELECT count(*) FROM call WHERE node = ?", (node.id,))[0][0])
    lines.append(
        f"  {total:,} {'call' if total == 1 else 'calls'}"
        + (f", the last {len(ids)}:" if total > len(ids) else ":" if total else "")
    )
    for number in reversed(ids):
        call = reader.call(number)
        if call is not None:
            lines.append(f"    {call_line(call)}")
    return "\n".join(lines)


def call_line(call: Call) -> str:
    """One call in one line."""
    kind = "∇ " if call.kind == "gradient" else ""
    values = "; ".join(f"{value.path} {value.text}" for value in call.inputs)
    status = call.status if call.failure is None else call.failure.type
    odd = "NaN" if any(one.nan for one in call.outputs) else "Inf" if any(one.inf for one in call.outputs) else ""
    line = f"#{call.id} {kind}{status}{f', {odd} out' if odd else ''} {milliseconds(call.duration_ns)} ms  {values}"
    return textwrap.shorten(line, 110, placeholder=" ...")


def call_text(call: Call, reader: Reader) -> str:
    """One call: where and when, its values, stack and failure."""
    node = next(node for node in reader.nodes() if node.id == call.node)
    threads = {thread.id: thread.name for thread in reader.threads()}
    kind = "∇ gradient call" if call.kind == "gradient" else "call"
    cpu = f", CPU {milliseconds(call.cpu_ns)} ms" if call.cpu_ns is not None else ", CPU not measured"
    if call.end_ns is None:
        cpu = ""
    lines = [
        f"{kind} #{call.id} of {node.body} ({kind_text(node.kind)} {source_line(node.file, node.line)})",
        f"  {call.status}, {milliseconds(call.duration_ns)} ms{cpu}, thread {threads.get(call.thread, '?')}",
        f"  {_run(call)}",
    ]
    lines += _gil(call)
    if call.forward is not None:
        lines.append(f"  gradient of call #{call.forward}")
    if call.gradients:
        lines.append(f"  gradient calls: {', '.join(f'#{number}' for number in call.gradients)}")
    lines += _values("in", call.inputs) + _values("out", call.outputs)
    if not call.inputs and not call.outputs:
        lines.append("  values were not kept")
    if node.stack:
        lines.append("  call site when the graph was traced")
        lines += _stack(node.stack)
    lines += _stops(call, reader)
    if call.failure is not None:
        lines.append("  failure")
        lines += textwrap.indent(call.failure.traceback.rstrip(), "    ").splitlines()
    return "\n".join(lines)


def _gil(call: Call) -> list[str]:
    """What it did with the GIL: the parts sum to its time."""
    gil = call.gil
    if gil is None or gil.wait_ns is None:
        return ["  GIL not measured"] if call.end_ns is not None else []
    parts = [f"wait {wait_text(gil.wait_ns, gil.grade)}"]
    if gil.held_ns is not None:
        parts += [f"held {milliseconds(gil.held_ns)} ms", f"released {milliseconds(gil.released_ns)} ms"]
        parts.append(f"waited inside {wait_text(gil.reacquire_ns, gil.grade)}")
    lines = [f"  GIL ({WORDS[gil.grade]}): {', '.join(parts)}"]
    if gil.blame and gil.wait_ns + (gil.reacquire_ns or 0) >= RESOLUTION_NS[gil.grade]:
        who = ", ".join(f"{label} {milliseconds(ns)} ms" for label, ns in gil.blame[:3])
        lines.append(f"    meanwhile: {who}")
    return lines


def _stops(call: Call, reader: Reader) -> list[str]:
    """What happened at breakpoints: a stop, a hit that nobody could answer, values that somebody changed."""
    lines = []
    for rule, text in reader.rows("SELECT rule, facts FROM notice WHERE call = ? ORDER BY id", (call.id,)):
        noticed, kind = json.loads(text), Notice.read(rule)
        if kind == Notice.STOP:
            held = milliseconds(noticed.get("held_ns", noticed["end_ns"] - noticed["start_ns"]))
            ended = ", and ended there by hand" if noticed.get("interrupted") else ""
            lines.append(f"  stopped for {held} ms, which does not count as its time{ended}: {noticed['why']}")
        elif kind == Notice.STOP_UNANSWERED:
            lines.append(f"  hit, but nobody could answer: {noticed['why']}")
            kept = [*noticed.get("inputs", ()), *noticed.get("locals", ()), *noticed.get("frames", ())]
            lines += [f"    {one}" for one in kept]
        elif kind == Notice.LOGGED:
            lines.append(f"  logged ({noticed['at']}): {', '.join(noticed['texts']) or 'its variables'}")
            lines += [f"    {one}" for one in noticed["locals"]]
        elif kind == Notice.CHANGED_BY_HAND:
            lines.append(f"  changed at a stop: {', '.join(noticed['names'])}")
    return lines


def _run(call: Call) -> str:
    if call.run is not None:
        return f"run {call.run}"
    if call.runs:
        return f"run ambiguous between {', '.join(map(str, call.runs))}"
    if call.crowded:
        return "run not known: more than 64 were in flight"
    return "not in a run that Python started"


def _values(label: str, values: Iterable[Value]) -> list[str]:
    found = []
    for value in values:
        note = f"  ({value.note})" if value.note and value.note not in value.text else ""
        found.append(f"  {label:<4}{value.path:<12} {value.text}{note}")
    return found


def _stack(frames: tuple[Frame, ...]) -> list[str]:
    return [f"    {source_line(frame.file, frame.line)} {frame.function}  {frame.text}".rstrip() for frame in frames]
