"""What a recording of a corpus program says, as text: compared with `expected.txt`, which people have read.

`python -m tests.corpus.transcript FOLDER > tests/corpus/expected.txt` writes it anew from recordings made by `run.py`.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections import Counter
from pathlib import Path

from pyfunc_debug.analysis.ledger import make_ledger
from pyfunc_debug.analysis.tables import count
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.records import Call, Node

_CHANCE = ("errors_in_data.pfrec",)  # how often tf.data calls a body that fails is a matter of chance
_RANDOM = ("random_numbers", "random_data")
_DIGITS = re.compile(r"(true|false|body|cond|case|branch\d|lambda|model|sequential|scale)_\d+\b")


def line(file: str | None, number: int | None) -> str:
    """A place as the text of its line, so that adding a program above does not change it."""
    if file is None:
        return "nowhere"
    if "site-packages" in file:
        return "TensorFlow"
    return "file" if number is None else f"`{linecache.getline(file, number).strip()}`"


def transcript(path: str | Path) -> str:
    """Functions, nodes and calls of one recording; TensorFlow's own are left out."""
    name = Path(path).stem
    recording = Recording(path)
    try:
        lines = [f"## {name}"]
        if recording.meta.get("troubles") or recording.meta.get("limits"):
            lines.append(f"TROUBLE {recording.meta['troubles']} {recording.meta['limits']}")
        functions = {one.id: one.name for one in recording.functions()}
        for row in make_ledger(recording.reader).rows:
            if row.function.origin != "user" or row.function.kind == "eager":
                continue
            where = line(row.function.file, row.function.line)
            errors = f", {row.run_errors} failed" if row.run_errors else ""
            backward = f" and {row.backward_runs} backward" if row.backward_runs else ""
            lines.append(
                f"{row.function.kind} {row.function.name} {where}: traced {row.traces}x, runs {count(row.runs)}"
                f"{backward}{errors}"
            )
        for node in recording.nodes():
            if node.origin == "user":
                lines += _node(recording, node, functions, values=name not in _RANDOM)
        return "\n".join(lines) + "\n"
    finally:
        recording.close()


def _node(recording: Recording, node: Node, functions: dict[int, str], values: bool) -> list[str]:
    site = line(node.stack[-1].file, node.stack[-1].line) if node.stack else "nowhere"
    op = _DIGITS.sub(r"\1", node.name) if node.name else "no op"
    if node.function is not None and not functions[node.function].startswith(("Tensor", "(")):
        op += f" in {functions[node.function]}"
    lines = [
        f"  {node.kind} {node.body} {line(node.file, node.line)}",
        f"    {op} from {site}: ({', '.join(node.paths)}) -> ({', '.join(node.out_paths)}): {', '.join(node.tout)}",
    ]
    calls = list(recording.calls(node))
    counts = Counter(_outcome(call) for call in calls)
    if ".meet" in node.body:  # whether the other run is in flight already is a matter of chance
        counts = Counter(f"{call.kind} {call.status}, run certain or ambiguous" for call in calls if call.runs)
    for outcome, number in sorted(counts.items()):
        lines.append(f"    {'several ' if recording.path.endswith(_CHANCE) else f'{number}x '}{outcome}")
    if values:
        lines += sorted({f"      {_values(call)}" for call in calls if call.status == "ok"})[:2]
    if node.body == "sqrt":  # NumPy 1 tells no parameters of its ufuncs
        lines = [text.replace("in[0]", "x") for text in lines]
    return lines


def _outcome(call: Call) -> str:
    run = "run certain" if call.run is not None else "run ambiguous" if call.runs else "no run"
    text = f"{call.kind} {call.status}, {run}"
    if call.failure is not None:
        last = call.failure.frames[-1] if call.failure.frames else None
        place = line(last.file, last.line) if last is not None else "no frame of the user's"
        text += f": {call.failure.type}: {call.failure.message.splitlines()[:1]} at {place}"
    text = re.sub(r"pyfunc_\d+", "pyfunc_N", text)
    text = re.sub(r"0x[0-9a-f]+", "0xN", text)
    return text.replace("<listcomp>.", "")  # Python 3.12 has none


def _values(call: Call) -> str:
    left, right = ("; ".join(f"{one.path}={one.text}" for one in some) for some in (call.inputs, call.outputs))
    return re.sub(r"0x[0-9a-f]+", "0xN", f"{left or 'nothing'} -> {right or 'nothing'}")


if __name__ == "__main__":
    from tests.corpus.table import PROGRAMS
    from tests.corpus import programs  # noqa: F401  # isort: skip  # fills the table

    for each in PROGRAMS:
        sys.stdout.write(transcript(Path(sys.argv[1]) / f"{each}.pfrec") + "\n")
