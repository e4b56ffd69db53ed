"""What a recording knows of the death of its program: the calls that were in progress, and what is missing."""

from __future__ import annotations

from typing import Any

from pyfunc_debug.pfrec import Reader
from pyfunc_debug.pfrec.recovery import missing_parts, missing_text
from pyfunc_debug.places import source_line
from pyfunc_debug.records import Call, Node

_SHOWN = 3


def death_lines(reader: Reader) -> list[str]:
    """Sentences to show below the ledger of a recording whose program died.

    Args:
      reader: The recording. Its ring, where there was one, has been read (pfrec/recovery.py).
    """
    death = reader.meta.get("death")
    if not isinstance(death, dict):
        parts = missing_parts(reader.path, reader.meta)
        if not parts:
            return ["the program died without finishing this recording; its last moments may be missing"]
        return [f"the program died without finishing this recording, and {missing_text(parts)}"]
    lines = _running(reader, death)
    recovered, missing = int(death.get("recovered", 0)), int(death.get("missing", 0))
    if recovered:
        given = found if isinstance(found := death.get("given"), int) else 0
        inputs = "with" if given == recovered else f"the newest {given:,} with" if given else "without"
        calls = f"the last {recovered:,} finished calls were" if recovered > 1 else "the last finished call was"
        lines.append(f"{calls} found beside the file: {inputs} inputs, without outputs and texts of exceptions")
    if missing:
        lines.append(f"{missing:,} calls that had begun are missing")
    return lines


def calls_in_progress(reader: Reader) -> list[Call]:
    """The calls that the program died in, the oldest first."""
    death = reader.meta.get("death")
    numbers = death.get("running", ()) if isinstance(death, dict) else ()
    found = [call for number in numbers if (call := reader.call(int(number))) is not None]
    return sorted(found, key=lambda call: call.start_ns)


def died_in_calls(reader: Reader) -> bool:
    """Whether there are any, without reading them."""
    death = reader.meta.get("death")
    return isinstance(death, dict) and bool(death.get("running"))


def how_it_ended(reader: Reader) -> str:
    """`died`, or `was ended by SIGTERM`: of all signals that one and SIGHUP leave a note."""
    death = reader.meta.get("death")
    number = death.get("signal") if isinstance(death, dict) else None
    if number == "SIGHUP":
        return "was ended by SIGHUP (its terminal was closed)"
    return f"was ended by {number}" if number else "died"


def _running(reader: Reader, death: dict[str, Any]) -> list[str]:
    calls = calls_in_progress(reader)
    ended = how_it_ended(reader)
    if not calls:
        return [f"the program {ended} {_tracing(death)}"]
    nodes = {node.id: node for node in reader.nodes()}
    threads = {thread.id: thread.name for thread in reader.threads()}
    found = [describe_call(call, nodes[call.node], threads, int(death["sign_ns"])) for call in calls[:_SHOWN]]
    if len(calls) == 1:
        return [f"the program {ended} in {found[0]}"]
    more = [f"  and {len(calls) - _SHOWN:,} more"] if len(calls) > _SHOWN else []
    return [f"the program {ended} with {len(calls):,} calls in progress:", *(f"  {one}" for one in found), *more]


def _tracing(death: dict[str, Any]) -> str:
    """What it did then, where it was in no call."""
    traced = death.get("tracing")
    if not isinstance(traced, list) or not traced:
        return "outside any call"
    name, file, line = traced[-1]
    return f"while TensorFlow traced {name} ({source_line(file, line)})" if file else f"while TensorFlow traced {name}"


def describe_call(call: Call, node: Node, threads: dict[int, str], sign_ns: int) -> str:
    """`call #6 of decode (train.py:31), at least 0.2 s into it, with x float32[4], on thread TF-3`."""
    place = source_line(node.file, node.line)
    parts = [f"call #{call.id:,} of {node.body}" + (f" ({place})" if place else "")]
    if sign_ns > call.start_ns:
        parts.append(f"at least {(sign_ns - call.start_ns) / 1e9:.3g} s into it")
    if call.inputs:
        parts.append("with " + ", ".join(f"{value.path} {value.text}" for value in call.inputs))
    parts.append(f"on {threads.get(call.thread, 'a thread')}")
    return ", ".join(parts)
