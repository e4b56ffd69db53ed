"""`pyfunc-debug show`: the ledger of a recording, a node, or a call."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any

from pyfunc_debug.analysis import gil_text
from pyfunc_debug.analysis.describe import call_line, call_text, node_text
from pyfunc_debug.analysis.filtering import Filter
from pyfunc_debug.analysis.ledger import ORDERS, as_dict, ordered
from pyfunc_debug.analysis.stages import make_stages
from pyfunc_debug.analysis.tables import job_text, ledger_text
from pyfunc_debug.api.job import Job
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.cli import options
from pyfunc_debug.cli.follow import follow
from pyfunc_debug.errors import BadOptionError
from pyfunc_debug.pfrec.folders import is_many
from pyfunc_debug.program.printable import printable

_SHOWN = 20


def add_parser(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "show",
        help="show a recording: ledger, nodes, calls",
        description="Shows a recording, also one still being made.",
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="*",
        help="several, a folder, a pattern: a job's processes as one; none: the newest here",
    )
    parser.add_argument(
        "--node", metavar="GLOB", help="the nodes whose body, op name or token fits, with their last calls"
    )
    parser.add_argument("--call", type=int, metavar="N", help="one call: values, stacks, failure")
    parser.add_argument(
        "--if", dest="condition", metavar="EXPR",
        help="the calls for which this holds, as breakpoints: nan(x), changed(x), x.max() > 1; with --node of these",
    )  # fmt: skip
    parser.add_argument("--function", metavar="NAME", help="why each graph of a tf.function was traced")
    parser.add_argument("--source", metavar="NAME", help="a function's lines, with how often each ran (record --lines)")
    parser.add_argument(
        "--gil", action="store_true", help="who waited for the GIL, for whom, and what num_parallel_calls can bring"
    )
    parser.add_argument("--sort", choices=ORDERS, help="the ledger's largest first, with total and share")
    parser.add_argument("--all", action="store_true", help="also what TensorFlow and Keras made for themselves")
    parser.add_argument(
        "--follow", action="store_true", help="print findings as they appear, until the recording is complete"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints what was asked for."""
    width, color = options.terminal(elsewhere=options.WHOLE)
    if len(arguments.file) > 1 or is_many(arguments.file[0]):
        return _job(arguments, width, color)
    recording = Recording(arguments.file[0])
    if arguments.follow:
        return follow(recording, options.terminal()[0])
    if arguments.call is not None:
        call = recording.call(arguments.call)
        if arguments.json:
            options.show_json(_plain(call))
        else:
            options.show(call_text(call, recording.reader))
    elif arguments.condition is not None:
        _show_calls(recording, arguments)
    elif arguments.function is not None:
        options.show(str(recording.explain(arguments.function)))
    elif arguments.source is not None:
        options.show(str(recording.source(arguments.source)))
    elif arguments.gil:
        contention = recording.contention()
        stages = make_stages(recording.reader, contention=contention)
        if arguments.json:
            options.show_json(gil_text.as_dict(contention, stages))
        else:
            print(gil_text.gil_text(recording.reader, contention, stages, *options.terminal()))
    elif arguments.node is not None:
        wanted = set(recording.node_ids(arguments.node))
        nodes = [node for node in recording.nodes() if node.id in wanted]
        if arguments.json:
            found = [{**_plain(node), "calls": [_plain(call) for call in recording.calls(node)]} for node in nodes]
            options.show_json(found)
        else:
            options.show("\n\n".join(node_text(node, recording.reader, _SHOWN) for node in nodes))
    else:
        ledger = recording.ledger(arguments.all)
        if arguments.sort is not None:
            ledger = ordered(ledger, arguments.sort)
        if arguments.json:
            options.show_json(as_dict(ledger))
        else:
            print(ledger_text(ledger, width, color, totals=arguments.sort is not None))
    return 0


def _show_calls(recording: Recording, arguments: argparse.Namespace) -> None:
    """The calls for which a condition holds, as they are found."""
    judge = Filter(recording.reader, arguments.condition)
    nodes = None if arguments.node is None else recording.node_ids(arguments.node)
    calls = judge.among(recording.reader.calls(nodes))
    if arguments.json:
        options.show_json_list(map(_plain, calls))
    else:
        bodies = {node.id: node.body for node in recording.nodes()}
        for call in calls:
            options.show(f"{bodies[call.node]} {call_line(call)}")
        options.show(f"{judge.matched:,} of {judge.judged:,} calls")
    if judge.undecided:
        print(f"pyfunc-debug: {printable(judge.remark())}", file=sys.stderr)


def _job(arguments: argparse.Namespace, width: int, color: bool) -> int:
    job = Job(arguments.file)
    for option in ("node", "call", "condition", "function", "source", "gil", "follow", "sort"):
        if getattr(arguments, option) not in (None, False):
            name = "if" if option == "condition" else option
            raise BadOptionError(f"--{name} is about one recording: give one of these files, as {job.paths[0]}")
    ledger = job.ledger(arguments.all)
    if arguments.json:
        options.show_json(dataclasses.asdict(ledger))
    else:
        print(job_text(ledger, width, color))
    return int(job.chosen.damaged > 0)


def _plain(noun: Any) -> Any:
    """A record as plain values for JSON: its public fields."""
    if dataclasses.is_dataclass(noun) and not isinstance(noun, type):
        return {
            field.name: _plain(getattr(noun, field.name))
            for field in dataclasses.fields(noun)
            if not field.name.startswith("_")
        }
    if isinstance(noun, (list, tuple)):
        return [_plain(item) for item in noun]
    return noun
