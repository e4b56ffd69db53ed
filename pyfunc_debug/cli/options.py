"""Options that several commands share, and how their texts become values."""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.pfrec.folders import Chosen
from pyfunc_debug.program.printable import printable
from pyfunc_debug.records import Finding

WHOLE = 100_000
"""Columns of a table in which nothing is cut; none is padded to it."""
_SHOWN = 5
"""Findings shown at the end of a recording; the doctor shows all."""


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Options of everything that records."""
    parser.add_argument("-o", "--output", metavar="FILE", help="the recording (default: named after the program)")
    parser.add_argument(
        "--values", action="append", metavar="[GLOB=]POLICY",
        help="what to keep of values: none, shape, summary (default), sample or full; for some nodes only with a glob "
        "before it (--values 'augment*=full'); may be repeated",
    )  # fmt: skip
    parser.add_argument("--nodes", metavar="GLOB", default="*", help="record the calls of these nodes only")
    parser.add_argument(
        "--gradients", choices=("stock", "exact"), default="stock",
        help="stock (default): exactly TensorFlow's, right or wrong; exact: each call's own",
    )  # fmt: skip
    parser.add_argument("--order", type=int, choices=(1, 2), default=1, help="2: second derivatives too (with exact)")
    parser.add_argument(
        "--hang-after", type=float, metavar="S", default=30.0,
        help="report calls in which nothing moves for S seconds, and what they wait for (30; 0: never)",
    )  # fmt: skip
    parser.add_argument("--lines", action="store_true", help="count how often each line ran, at trace and at run")
    parser.add_argument(
        "--graph-lines", action="store_true",
        help="also how often the graph ran each line, by TensorFlow's profiler (for short programs)",
    )  # fmt: skip
    parser.add_argument(
        "--sample", metavar="1/N",
        help="store every Nth call of each node (10+1/N: the first 10 too) and count the others; those that fail, give "
        "a NaN or are the slowest are always stored",
    )  # fmt: skip
    parser.add_argument(
        "--sample-when", metavar="EXPR", help="store calls only while this holds, as in 'step %% 1000 == 0'"
    )
    parser.add_argument(
        "--random-state", action="store_true",
        help="record the state of Python's and NumPy's global random generators for each call, for call.replay()",
    )  # fmt: skip
    parser.add_argument("--no-gil", action="store_true", help="do not measure waiting for the GIL")
    parser.add_argument("--budget", metavar="BYTES", default="256MB", help="largest size of the recording (256MB)")
    parser.add_argument(
        "--folder-budget", metavar="BYTES", help="largest size of all recordings in the folder together"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an older recording of that name")


def record_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of `pyfunc_debug.record` from the options above."""
    return {
        "values": values_option(arguments.values or []),
        "nodes": arguments.nodes,
        "gradients": arguments.gradients,
        "gil": not arguments.no_gil,
        "lines": "graph" if arguments.graph_lines else arguments.lines,
        "budget": arguments.budget,
        "folder_budget": arguments.folder_budget,
        "overwrite": arguments.overwrite,
        "hang_after": arguments.hang_after or None,
        "order": arguments.order,
        "sample": arguments.sample,
        "sample_when": arguments.sample_when,
        "random_state": arguments.random_state,
    }


def values_option(texts: list[str]) -> dict[str, str]:
    """`["augment*=full", "none"]` -> `{"augment*": "full", "*": "none"}`.

    Raises:
      BadOptionError: two defaults.
    """
    found: dict[str, str] = {}
    for text in texts:
        pattern, equals, policy = text.rpartition("=")
        key = pattern if equals else "*"
        if key in found:
            raise BadOptionError(f"--values is given twice for {key!r}")
        found[key] = policy
    return found or {"*": "summary"}


def newest_here() -> str | None:
    """The name of the newest recording in this folder; None if there is none."""
    found = [entry for entry in os.scandir() if entry.name.endswith(".pfrec") and entry.is_file()]
    return max(found, key=lambda entry: (entry.stat().st_mtime_ns, entry.name)).name if found else None


def newest() -> str:
    """The newest recording in this folder; its name is said on stderr.

    Raises:
      BadOptionError: there is none.
    """
    name = newest_here()
    if name is None:
        raise BadOptionError("which recording? There is none (*.pfrec) in this folder")
    print(f"pyfunc-debug: {printable(name)}, the newest here", file=sys.stderr)
    return name


def terminal(stream: Any = None, elsewhere: int = 80) -> tuple[int, bool]:
    """Width of the terminal and whether to use colour.

    Args:
      stream: Where it is printed; by default stdout.
      elsewhere: Columns anywhere else, without colour: `WHOLE` for tables.
    """
    stream = sys.stdout if stream is None else stream
    if not stream.isatty():
        return elsewhere, False
    return max(60, min(shutil.get_terminal_size().columns, 140)), "NO_COLOR" not in os.environ


def say_left_out(chosen: Chosen) -> int:
    """Says on stderr which files of a folder were not read; the exit code, which is 1 where one is damaged."""
    for one in chosen.told():
        print(f"pyfunc-debug: {printable(one)}", file=sys.stderr)
    return int(chosen.damaged > 0)


def print_findings(findings: Sequence[Finding], width: int, path: str) -> None:
    """Prints the most important ones on stderr, as a recording has come to its end.

    Args:
      findings: Worst first.
      width: Columns of the terminal.
      path: Of the recording, in which the doctor finds the rest.
    """
    if findings:
        from pyfunc_debug.doctor.text import findings_text

        print(f"\n{findings_text(findings, width, _SHOWN, f'pyfunc-debug doctor {path}')}", file=sys.stderr)


def show(text: str) -> None:
    """Prints text that may hold a program's own: names, values, messages."""
    print(printable(text))


def show_json(thing: Any) -> None:
    """Prints JSON: valid for every reader, so NaN and infinities are null."""
    print(json.dumps(_finite(thing), indent=1, allow_nan=False))


def show_json_list(things: Iterable[Any]) -> None:
    """Prints a JSON list of objects as they come, one a line."""
    lead = "["
    for thing in things:
        print(lead + as_json(thing), end="")
        lead = ",\n "
    print("[]" if lead == "[" else "]")


def as_json(thing: Any) -> str:
    """The same on one line."""
    return json.dumps(_finite(thing), allow_nan=False)


def _finite(thing: Any) -> Any:
    if isinstance(thing, dict):
        return {key: _finite(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_finite(item) for item in thing]
    return None if isinstance(thing, float) and not math.isfinite(thing) else thing
