"""The HTML report: one self-contained file with the panel's own views over data that are in the page.

No network, no server: it opens from a file, and its content security policy forbids it to load anything. Its size is
bounded: values of calls are left out first, then calls, and the page says so. Of several recordings (several processes)
it holds each and a page over all; they share the room of one.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import ERROR, GRADIENT, Array
from pyfunc_debug.analysis.tables import ledger_html
from pyfunc_debug.errors import CannotWriteError
from pyfunc_debug.records import Finding
from pyfunc_debug.report import calls, timeline
from pyfunc_debug.report.answers import Answers
from pyfunc_debug.report.first_call import first_call
from pyfunc_debug.report.processes import Processes, names

Json = dict[str, Any]
MAX_CALLS = 200_000
SOURCE_BYTES = 4 << 20
"""Room for the text of source files, before compression."""
EXPLAINED_BYTES = 6 << 20
"""Room for the graph traces of functions, before compression."""
MAX_BYTES = 10_000_000
"""Room for the whole page: what the rest does not need is filled with the details of calls."""
FRAME_BYTES = 250_000
"""Of it, for the bundle."""
MOST_TRACES = 5_000
"""Graph traces that the timeline draws, the longest; the pages of their functions have all."""
MOST_DETAILS = 50_000
"""Calls whose details are in it: each is read for itself, and a report is to be written while one waits."""
_MISSES = 100
"""As many calls one after the other that have no room: then there is none."""
_FIRST_LAST = 20
_SLOWEST = 20
_ERRORS = 60
_FLAGGED = 20
_STEPS = (64, 16, 4, 2, 1)
"""A few of everywhere first, in the end all."""
_BUNDLE = "jupyter_ext"


def write(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    findings: Callable[[], Sequence[Finding]] | None = None,
) -> str:
    """Writes the report of a recording.

    Args:
      path: The recording.
      out: The HTML file; an older one is replaced.
      findings: What the doctor says; without it the report says that nobody looked.

    Returns:
      The absolute path of the file.

    Raises:
      BadRecordingError: the recording cannot be read.
      CannotWriteError: the file cannot be written there.
    """
    return _save(page(path, findings), out)


def write_together(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    findings: Callable[[str], Sequence[Finding]] | None = None,
) -> str:
    """Writes one report of several recordings; see `page_together` and `write`."""
    return _save(page_together(paths, findings), out)


def _save(text: str, out: str | os.PathLike[str]) -> str:
    out = os.path.abspath(os.fspath(out))
    try:
        with open(out, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CannotWriteError(f"cannot write the report {out}: {error.strerror or error}") from error
    return out


def page(
    path: str | os.PathLike[str],
    findings: Callable[[], Sequence[Finding]] | None = None,
) -> str:
    """The report of a recording as the text of an HTML file; see `write`."""
    data, answers, plain = _one(path, None, findings, 1)
    with answers.reading():
        first = first_call(answers.connection, answers.facts, answers.columns)
    return assemble(answers.name, [data], plain, {} if first is None else {"call": first})


def page_together(
    paths: Sequence[str | os.PathLike[str]], findings: Callable[[str], Sequence[Finding]] | None = None
) -> str:
    """The report of several recordings: each as in `page`, and a page over all of them.

    Args:
      paths: The recordings; one that is named twice counts once.
      findings: Asked with each path; without it the report says that nobody looked.

    Raises:
      BadRecordingError: one of them cannot be read.
    """
    real = list(dict.fromkeys(os.path.realpath(os.fspath(path)) for path in paths))
    if len(real) == 1:
        return page(real[0], functools.partial(findings, real[0]) if findings else None)
    processes = Processes()
    packed, plain = [], []
    for path, name in zip(real, names(real), strict=True):
        look = functools.partial(findings, path) if findings else None
        data, _, table = _one(path, name, look, len(real), processes)
        packed.append(data)
        plain.append(f"<h2>{html.escape(name)}</h2>{table}")
    notes = ["A recording was named twice and counts once"] if len(real) < len(paths) else []
    everything = _pack(*processes.overview(notes))
    return assemble(f"{len(real)} recordings", packed, "".join(plain), {}, everything)


def _one(
    path: str | os.PathLike[str],
    name: str | None,
    findings: Callable[[], Sequence[Finding]] | None,
    share: int,
    processes: Processes | None = None,
) -> tuple[str, Answers, str]:
    """A recording packed, and as plain tables. It gets one part in `share` of the report's room."""
    answers = Answers(path, name, findings)
    with answers.reading():
        # A recording that still grows is examined too: a report is made now or never.
        found = answers.findings if answers.findings is not None else findings() if findings else None
        answers.use_findings(found)
        items = "".join(
            f"<li><b>{html.escape(f.severity)}: {html.escape(f.rule)}</b> {html.escape(f.message)} "
            f"<{tag}>{html.escape(f.fix)}</{tag}></li>"
            for f in found or ()
            for tag in ("pre" if "\n" in f.fix else "i",)
        )
        plain = f"{f'<ul>{items}</ul>' if items else ''}{ledger_html(answers.ledger())}"
        data, arrays = collect(answers, share, len(plain))
        if processes is not None:
            processes.add(answers, first_call(answers.connection, answers.facts, answers.columns))
    return _pack(data, arrays), answers, plain


def bundle(name: str) -> str:
    """A file of the front end's bundle, read as data: the report imports nothing of the notebook's code."""
    return resources.files(_BUNDLE).joinpath("static").joinpath(name).read_text(encoding="utf-8")


def collect(answers: Answers, share: int = 1, taken: int = 0) -> tuple[Json, dict[str, Array]]:
    """All that the page embeds: answers to what its views will ask, within bounds.

    Args:
      answers: The recording, open.
      share: It gets one part in this many of the report's room.
      taken: Bytes of that part that are used already.
    """
    columns = answers.columns
    trimmed = []
    overview, arrays = answers.ask("overview", {"width": 1000})
    positions = np.arange(len(columns))
    if len(positions) > MAX_CALLS // share:
        positions = _thin(answers, MAX_CALLS // share)
        trimmed.append(
            f"This report shows {len(positions):,} of {len(columns):,} calls: the first, the last and those that failed"
        )
    arrays.update(timeline.single(columns, positions))
    _, runs = timeline.viewport(answers.connection, answers.facts, columns, *answers.extent(), 4000)
    arrays.update({name: array for name, array in runs.items() if name.startswith("run_")})
    failed = columns.id[positions[columns.status[positions] == ERROR]].tolist()[:5000]
    ledger, _ = answers.ask("ledger", {})
    sources, untold = _sources(answers, ledger, SOURCE_BYTES // share)
    if untold:
        trimmed.append(f"The text of {untold:,} of {len(ledger['files']):,} source files was left out")
    gil, _ = answers.ask("gil", {})
    findings, _ = answers.ask("findings", {})
    traces = timeline.traces(answers.facts, columns.origin_ns, *answers.extent())
    if len(traces) > MOST_TRACES:
        trimmed.append(f"The timeline draws the {MOST_TRACES:,} longest of {len(traces):,} graph traces")
    data = {
        "overview": overview,
        "ledger": ledger,
        "traces": traces[:MOST_TRACES],
        "failures": {str(i): kind for i, kind in calls.failures(answers.connection, failed).items()},
        "odd": {str(call): what for call, what in calls.not_finite(answers.connection).items()},
        "sources": sources,
        "explained": _explained(answers, ledger, EXPLAINED_BYTES // share),
        "nodes": {str(i): calls.node_facts(answers.facts, node) for i, node in answers.facts.nodes.items()},
        "findings": findings["findings"],
        "gil": gil,
    }
    # In the page base64 makes four bytes of three.
    room = ((MAX_BYTES - FRAME_BYTES) // share - taken) * 3 // 4 - len(_deflated(data, arrays, 1))
    data["details"], data["trends"], why = _details(answers, room)
    left_out = len(columns) - len(data["details"])
    if left_out:
        trimmed.append(f"Values of {left_out:,} of {len(columns):,} calls were left out: {why}")
    data["left_out"] = f"The values of this call are not in this report: {why}." if left_out else ""
    data["trimmed"] = ". ".join(trimmed)
    return data, arrays


def _explained(answers: Answers, ledger: Json, room: int) -> dict[str, Json]:
    """Graph traces by function; of a function that has too many, the page says that there was no room."""
    result: dict[str, Json] = {}
    for row in ledger["rows"]:
        if row["type"] == "function":
            page, _ = answers.ask("traces", {"function": row["function"]})
            size = len(json.dumps(page))
            if size <= room:
                room -= size
                result[str(row["function"])] = page
    return result


def _sources(answers: Answers, ledger: Json, room: int) -> tuple[dict[str, Json], int]:
    """Source files by path, those with a body or a traced function first, and how many found no room."""
    wanted = dict.fromkeys(row["file"] for row in ledger["rows"])
    files = [file for file, _ in ledger["files"]]
    result: dict[str, Json] = {}
    for file in sorted(files, key=lambda file: file not in wanted):
        page, _ = answers.ask("source", {"file": file})
        size = len(json.dumps(page))
        if size <= room:
            room -= size
            result[file] = page
    return result, len(files) - len(result)


def _thin(answers: Answers, most: int) -> Array:
    """Positions of calls for a report that has no room for all."""
    columns = answers.columns
    keep = np.zeros(len(columns), bool)
    failed = np.flatnonzero(columns.status == ERROR)[: most // 20]
    half = (most - len(failed)) // 2
    keep[:half] = keep[len(columns) - half :] = True
    keep[failed] = True
    return np.flatnonzero(keep)


def _details(answers: Answers, room: int) -> tuple[dict[str, Json], dict[str, Json], str]:
    """Details of calls by number, until the room is used up.

    Returns:
      The details, scalars over calls by node and kind, and why details of other calls are not there.
    """
    details: dict[str, Json] = {}
    trends: dict[str, Json] = {}
    packer, used, misses = zlib.compressobj(1), 0, 0
    why = (
        f"it holds those of the calls that matter most, and of others evenly spaced ones, up to {MAX_BYTES // 10**6} MB"
    )
    for call in _interesting(answers):
        if str(call) in details:
            continue
        if len(details) >= MOST_DETAILS:
            return details, trends, f"it holds those of {MOST_DETAILS:,} calls at most"
        detail = calls.detail(answers.connection, answers.facts, answers.columns, call, of_page=True)
        if detail is None:
            continue
        trends.setdefault(f"{detail['group']}:{detail['kind']}", {}).update(detail.pop("trends"))
        packed, packer = _packed(packer, detail, room - used)
        if used + packed > room:
            # A large call gives its place to smaller ones: without its pictures it may fit.
            for value in detail["values"]:
                value["picture"] = value["frames"] = None
            packed, packer = _packed(packer, detail, room - used)
        if used + packed > room:
            misses += 1
            if misses == _MISSES:
                break
            continue
        used, misses = used + packed, 0
        details[str(call)] = detail
    return details, trends, why


def _packed(packer: Any, detail: Json, room: int) -> tuple[int, Any]:
    """How many bytes a detail takes behind what was packed before it, and the packer that has it if they fit."""
    text = json.dumps(detail, separators=(",", ":")).encode()
    # What does not fit must not be known to the packer: what follows would seem smaller than it is.
    trial = packer if len(text) < room else packer.copy()
    size = len(trial.compress(text)) + len(trial.flush(zlib.Z_SYNC_FLUSH))
    return size, trial if size <= room else packer


def _interesting(answers: Answers) -> Iterator[int]:
    """Calls to look at, most likely first: failed, flagged, slowest, first and last, then evenly spaced ones."""
    columns = answers.columns
    failed = columns.id[np.flatnonzero(columns.status == ERROR)]
    yield from failed[:_ERRORS].tolist()
    flagged = [finding.calls for finding in answers.findings or ()]
    for flags in flagged:
        yield from flags[:_FLAGGED]
    groups = []
    for group in answers.facts.groups.values():
        for kind in (0, GRADIENT):
            mask = np.isin(columns.node, group) & (columns.kind == kind)
            groups.append(np.flatnonzero(mask))
    for count in (2, _FIRST_LAST):
        for positions in groups:
            slowest = positions[np.argsort(-columns.duration[positions], kind="stable")[:count]]
            for part in (slowest, positions[:count], positions[-count:]):
                yield from columns.id[part].tolist()
    for step in _STEPS:
        yield from failed[::step].tolist()
    for flags in flagged:
        yield from flags[_FLAGGED:]
    for step in _STEPS:
        for positions in groups:
            yield from columns.id[positions[::step]].tolist()


def _pack(data: Json, arrays: dict[str, Array]) -> str:
    """JSON and arrays as base64 of one deflated container, which the page unpacks without a library."""
    return base64.b64encode(_deflated(data, arrays, 6)).decode("ascii")


def _deflated(data: Json, arrays: dict[str, Array], level: int) -> bytes:
    layout: dict[str, tuple[str, int, int, int]] = {}
    blobs = []
    offset = 0
    for name, array in arrays.items():
        content = np.ascontiguousarray(array)
        layout[name] = (content.dtype.name, 0, offset, content.size)
        blobs.append(content.tobytes())
        offset += content.nbytes
    text = json.dumps({**data, "arrays": layout}, allow_nan=False, separators=(",", ":")).encode()
    return zlib.compress(struct.pack("<I", len(text)) + text + b"".join(blobs), level)


def assemble(name: str, packed: Sequence[str], plain: str, selected: Json, together: str | None = None) -> str:
    """The page: policy, styles, the plain tables for readers without scripts, the data, the bundle.

    Args:
      name: Its title.
      packed: The data of each recording.
      plain: The plain tables.
      selected: What to select first.
      together: The data about all recordings, if there are several.
    """
    style = f"{_PAGE_STYLE}{bundle('panel.css')}"
    script = bundle("panel.js").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    # Style attributes (of the plain tables) are not covered by hashes; scripts are, to the last byte.
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    data = "".join(f'<script type="text/plain" class="pfd-recording">{one}</script>\n' for one in packed)
    if together is not None:
        data += f'<script type="text/plain" id="pfd-together">{together}</script>\n'
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(name)}: pyfunc_debug report</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<div id="pfd-report" data-place="{html.escape(json.dumps(selected))}"></div>\n'
        f'<div id="pfd-plain"><h1>{html.escape(name)}</h1>{plain}</div>\n'
        f'{data}<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


_PAGE_STYLE = (
    "html{color-scheme:light dark}"
    ":root{--pfd-bg:#fff;--pfd-fg:#212121}"
    "@media (prefers-color-scheme:dark){:root{--pfd-bg:#111;--pfd-fg:#fff}}"
    "body{margin:0;background:var(--pfd-bg);color:var(--pfd-fg);font:14px/1.45 system-ui,sans-serif}"
    "body .pfd{--c-bg:var(--pfd-bg);--c-fg:var(--pfd-fg)}"
    "#pfd-plain{padding:16px 24px}#pfd-plain table{border-collapse:collapse}"
    "#pfd-plain td,#pfd-plain th{padding:2px 8px}"
)
