"""What the GIL tab shows: waits over time, who waited for whom, one sentence a node, the worst calls, tf.data stages.

The same answers as `recording.contention()` and `recording.stages()`, from columns: a recording that grows is asked
many times, and its program should not notice. Only what was measured, each with its grade.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfunc_debug.analysis.columns import GRADES, GRADIENT, Array, Columns
from pyfunc_debug.analysis.contention import NodeContention, culprits, grade_of, process_lines
from pyfunc_debug.analysis.facts import ProgramFacts
from pyfunc_debug.analysis.inputs import loops_of, settings
from pyfunc_debug.analysis.stages import at_stops_ns, is_stage, mean_cpu_ns, setting_of, shares_cpus, stage_answer
from pyfunc_debug.gil import RESOLUTION_NS, WORDS, Grade
from pyfunc_debug.gil.blame import NOBODY, OURS
from pyfunc_debug.pfrec.checks import fits
from pyfunc_debug.report.folds import Folds, folded
from pyfunc_debug.report.timeline import binned, overview, tracing

Json = dict[str, Any]
Blame = dict[int, Counter[tuple[str, int | None, str | None]]]
MAX_BLAME = 100_000
MAX_BLAME_LIVE = 20_000
"""The blame of this many calls is added up: unpacking that of more would be felt in a program that still runs."""
_HOLDERS = 4
_WORST = 10


def page(
    connection: sqlite3.Connection,
    facts: ProgramFacts,
    columns: Columns,
    ledger: Sequence[Json],
    start: int,
    end: int,
    width: int = 320,
    folds: Folds | None = None,
) -> Json:
    """The GIL over the recording; `grade` is None when nothing was measured."""
    reported = facts.meta.get("gil")
    reported = reported if isinstance(reported, dict) else {}
    grades = columns.grades
    if not grades:
        return {"grade": None, "why": reported.get("why"), "nodes": [], "holders": [], "series": None, "blame_of": None,
                "matrix": [], "worst": [], "stages": [],
                "loops": _loops(connection, facts), "process": list(process_lines(reported))}  # fmt: skip
    matrix, by_node, counted = _blame(connection, facts)
    nodes = _nodes(facts, columns, by_node, reported)
    rows, holders = _matrix(ledger, matrix)
    return {
        "grade": grades[0] if len(grades) == 1 else "mixed",
        "grades": [{"name": name, "words": WORDS[grade_of(name)]} for name in grades],
        "why": reported.get("why"),
        "measured": int((columns.grade > 0).sum()),
        "calls": int((columns.end >= 0).sum()),
        "nodes": [_node_json(one, facts) for one in nodes],
        "matrix": rows,
        "holders": holders,
        "blame_of": counted,
        "worst": _worst(connection, facts, columns),
        "stages": _stages(facts, columns, nodes),
        "loops": _loops(connection, facts),
        "process": list(process_lines(reported)),
        "series": _series(facts, columns, start, end, width, folds, reported),
    }


def _nodes(facts: ProgramFacts, columns: Columns, blame: Blame, reported: Json) -> list[NodeContention]:
    """One answer a line of code, the most waiting first; TensorFlow's own nodes too: they wait and are waited for."""
    ended = columns.end >= 0
    position = np.searchsorted(np.asarray(sorted(facts.nodes)), columns.node)
    keys = np.asarray([facts.group_of[node] for node in sorted(facts.nodes)], np.int64)
    groups = keys[position] if len(keys) else np.empty(0, np.int64)
    found: dict[int, Array] = {key: np.flatnonzero((groups == key) & ended) for key in facts.groups}
    bodies = Counter(facts.nodes[key].body for key, positions in found.items() if len(positions))
    answers = []
    for key, positions in found.items():
        if len(positions):
            shared = bodies[facts.nodes[key].body] > 1
            answers.append(_node(facts, columns, key, positions, blame.get(key, Counter()), reported, shared))
    return sorted(answers, key=lambda one: -(one.wait_ns + (one.reacquire_ns or 0)))


def _node(
    facts: ProgramFacts,
    columns: Columns,
    key: int,
    positions: Array,
    blame: Counter[tuple[str, int | None, str | None]],
    reported: Json,
    shared: bool,
) -> NodeContention:
    node = facts.nodes[key]
    measured = positions[~np.isnan(columns.wait[positions])]
    grade: Grade = grade_of(GRADES[columns.grade[measured[-1]]]) if len(measured) else "none"

    def total(name: str) -> int | None:
        numbers = getattr(columns, name)[measured].astype(np.float64)
        return None if not len(numbers) or np.isnan(numbers).all() else int(np.nansum(numbers))

    wait, held, released = total("wait") or 0, total("held"), total("released")
    own = (held or 0) + (released or 0)
    share = held / own if held is not None and own else None
    samples = None
    estimates = reported.get("held")
    if share is None and isinstance(estimates, dict) and node.body in estimates:
        share, samples = estimates[node.body]
    return NodeContention(
        node, grade, len(positions), len(measured), wait, int(columns.wait[measured].max()) if len(measured) else 0,
        int(columns.duration[measured].sum()), held, released, total("reacquire"), share, samples,
        culprits(blame.items()), shared,
    )  # fmt: skip


def _node_json(one: NodeContention, facts: ProgramFacts) -> Json:
    return {
        "key": f"n{one.node.id}",
        "name": facts.label(one.node.id),
        "grade": one.grade,
        "sentence": one.sentence,
        "calls": one.calls,
        "measured": one.measured,
        "wait_ns": one.wait_ns if one.measured else None,
        "worst_ns": one.worst_ns if one.measured else None,
        "resolution_ns": RESOLUTION_NS[one.grade],
        "held_share": one.held_share,
        "held_samples": one.held_samples,
    }


def _matrix(ledger: Sequence[Json], blame: dict[str, dict[str, float]]) -> tuple[list[Json], list[str]]:
    """Who waited, by row of the ledger, and who ran meanwhile: the largest holders, and all others together."""
    rows = [
        {"key": item["key"], "name": _name(item, ledger), "blame": dict(blame.get(item["key"], {}))}
        for item in ledger
        if item["type"] == "node" and item["parts"]
    ]
    totals: Counter[str] = Counter()
    for row in rows:
        totals.update(row["blame"])
    largest = [holder for holder, _ in totals.most_common(_HOLDERS)]
    # What is not the program's stands apart, behind what is.
    shown = sorted(largest, key=lambda holder: (holder.startswith(OURS), holder == NOBODY))
    for row in rows:
        rest = sum(ns for holder, ns in row["blame"].items() if holder not in shown)
        row["blame"] = {holder: row["blame"][holder] for holder in shown if holder in row["blame"]}
        if rest:
            row["blame"]["others"] = rest
    rows.sort(key=lambda row: -sum(row["blame"].values()))
    return rows, shown + (["others"] if any("others" in row["blame"] for row in rows) else [])


def _name(item: Json, ledger: Sequence[Json]) -> str:
    if item["call_kind"] == "forward":
        return str(item["name"])
    return "∇ " + next((str(other["name"]) for other in ledger if other["key"] == item["parent"]), "")


def _blame(
    connection: sqlite3.Connection, facts: ProgramFacts
) -> tuple[dict[str, dict[str, float]], Blame, int | None]:
    """Who ran while calls waited: by row of the ledger and body, and by line of code, node and thread."""
    most = MAX_BLAME_LIVE if facts.recording else MAX_BLAME
    newest = connection.execute("SELECT max(call) FROM gil").fetchone()[0] or 0
    # Holders are named with their call, `log_huber (#168)`: that call says which node and thread it was.
    found = connection.execute(
        "WITH one AS (SELECT gil.call AS call, b.value ->> 0 AS label, b.value ->> 1 AS ns,"
        " CASE WHEN b.value ->> 0 LIKE '% (#%)' THEN instr(b.value ->> 0, ' (#') ELSE 0 END AS cut"
        " FROM gil, json_each(gil.blame) AS b WHERE gil.call > ? AND gil.blame <> '[]')"
        " SELECT call.node, call.kind, CASE WHEN cut THEN substr(label, 1, cut - 1) ELSE label END AS body,"
        " holder.node, holder.thread, sum(ns) FROM one JOIN call ON call.id = one.call"
        " LEFT JOIN call AS holder ON cut AND holder.id = CAST(substr(label, cut + 3) AS INTEGER)"
        " GROUP BY 1, 2, 3, 4, 5",
        (newest - most,),
    )
    matrix: dict[str, dict[str, float]] = {}
    by_node: Blame = defaultdict(Counter)
    for node, kind, body, holder, thread, ns in found:
        key = facts.group_of.get(node, node)
        row = matrix.setdefault(f"n{key}" + ("g" if kind == "gradient" else ""), {})
        row[body] = row.get(body, 0.0) + float(ns)
        name = None if thread is None else facts.threads.get(thread)
        by_node[key][body, None if holder is None else facts.group_of.get(holder, holder), name] += int(ns)
    return matrix, by_node, most if newest > most else None


def _worst(connection: sqlite3.Connection, facts: ProgramFacts, columns: Columns) -> list[Json]:
    """The calls that waited longest, before and inside the body together."""
    waited = np.nan_to_num(columns.wait) + np.nan_to_num(columns.reacquire)
    least = np.asarray([RESOLUTION_NS[grade_of(name)] for name in GRADES], np.float32)[columns.grade]
    waited = np.where((columns.grade > 0) & (columns.end >= 0) & (waited >= least), waited, 0)
    count = min(_WORST, int((waited > 0).sum()))
    top = np.argpartition(-waited, count - 1)[:count] if count else np.empty(0, np.int64)
    result = []
    for position in top[np.argsort(-waited[top], kind="stable")].tolist():
        call, inside = int(columns.id[position]), float(columns.reacquire[position])
        text = connection.execute("SELECT blame FROM gil WHERE call = ?", (call,)).fetchone()
        blame = sorted(json.loads(text[0] or "[]") if text else [], key=lambda item: -item[1])
        result.append(
            {
                "call": call,
                "name": facts.label(int(columns.node[position])),
                "gradient": bool(columns.kind[position] == GRADIENT),
                "node": int(columns.node[position]),
                "thread": facts.threads.get(int(columns.thread[position]), ""),
                "grade": GRADES[columns.grade[position]],
                "resolution_ns": RESOLUTION_NS[grade_of(GRADES[columns.grade[position]])],
                "wait_ns": float(columns.wait[position]),
                "reacquire_ns": None if np.isnan(inside) else inside,
                "blame": blame[:3],
            }
        )
    return result


def _stages(facts: ProgramFacts, columns: Columns, nodes: Sequence[NodeContention]) -> list[Json]:
    """tf.data stages that call Python, with what num_parallel_calls can still bring."""
    reported = facts.meta.get("cores")
    cores = reported if isinstance(reported, int) and reported > 0 else 1
    known = settings(facts.meta, facts.nodes.values())
    result = []
    for one in nodes:
        function = facts.functions.get(one.node.function or 0)
        group = facts.groups[one.node.id]
        setting = setting_of(group, known)
        if function is None or not is_stage(one, function, setting):
            continue
        positions = np.flatnonzero(np.isin(columns.node, group) & (columns.end >= 0))
        if not len(positions):  # all its calls still run
            continue
        start, end, wait, reacquire = (
            getattr(columns, name)[positions].astype(np.float64) for name in ("start", "end", "wait", "reacquire")
        )
        end -= columns.stopped[positions]
        cpu = np.where(columns.cpu[positions] >= 0, columns.cpu[positions], np.nan)
        threads = len(np.unique(columns.thread[positions]))
        times = start, end, wait, reacquire
        pool = (setting.pool if setting else None) or cores
        answer = stage_answer(
            one, function.name, times, threads, mean_cpu_ns(cpu), pool, cores, setting=setting,
            at_stops_ns=at_stops_ns(columns.stops, start + columns.origin_ns, end + columns.origin_ns),
            shared=shares_cpus(facts.meta),
        )  # fmt: skip
        result.append(
            {
                "key": f"n{one.node.id}",
                "name": facts.label(one.node.id),
                "function": function.name,
                "at_once": answer.at_once,
                "python_share": answer.python_share,
                "wait_share": answer.wait_share,
                "pool_share": answer.pool_share,
                "pool": pool,
                "present": answer.present,
                "now": None if setting is None else setting.parallel,
                "without": [list(item) for item in answer.without],
                "cures": list(answer.cures),
                "ceilings": [
                    {"calls": ceiling.calls, "speedup": ceiling.speedup, "why": ceiling.why}
                    for ceiling in answer.ceilings
                ],
            }
        )
    return result


def _loops(connection: sqlite3.Connection, facts: ProgramFacts) -> list[Json]:
    """The program's loops over datasets: whether the training waits for its input at all."""
    return [
        {
            "place": "" if one.site is None else facts.source_line(one.site.file, one.site.line),
            "bodies": list(one.bodies),
            "steps": one.steps,
            "step_ns": one.step_ns,
            "wait_ns": one.wait_ns,
            "wait_share": one.wait_share,
            "at_most": one.at_most,
            "sentence": one.sentence,
        }
        for one in loops_of(facts.meta, facts.nodes.values(), connection.execute)
    ]


def _series(
    facts: ProgramFacts, columns: Columns, start: int, end: int, width: int, folds: Folds | None, reported: Json
) -> Json:
    """Contention over the folded axis. A bound is not a measurement: without another grade `waiting` is None."""
    waiting = held = None
    if set(columns.grades) - {"bound"}:
        waiting = [round(float(x), 3) for x in overview(columns, start, end, width, folds)]
    threads = np.unique(columns.thread).tolist()
    if threads and columns.split:
        parts = binned(columns, np.arange(len(columns)), threads, start, end, width, folds)
        held = [round(float(min(x, 1.0)), 3) for x in parts[:, 0].sum(0) + parts[:, 1].sum(0)]
    traces = [round(float(x), 3) for x in tracing(facts, columns.origin_ns, start, end, width, folds)]
    return {
        "start_ns": start,
        "end_ns": end,
        "waiting": waiting,
        "held": held,
        "traces": traces if any(traces) else None,
        "elsewhere": _elsewhere(reported.get("elsewhere"), columns.origin_ns, start, end, width, folds),
    }


def _elsewhere(band: Any, origin: int, start: int, end: int, width: int, folds: Folds | None) -> list[float] | None:
    """The share of each column in which threads outside of any body held the GIL (gil/band.py); None: not measured."""
    if not isinstance(band, dict):
        return None
    since, wide, sums = band.get("start_ns"), band.get("width_ns"), band.get("us")
    if not (
        isinstance(since, int) and isinstance(wide, int) and wide > 0 and isinstance(sums, list) and fits(sums, [int])
    ):
        return None
    edges = folded(since - origin + wide * np.arange(len(sums) + 1, dtype=np.float64), folds or [])
    # What lies in a fold is not drawn; the rest of such a column keeps its density.
    held = np.asarray(sums, np.float64) * 1000 * np.diff(edges) / wide
    until = np.concatenate([[0], np.cumsum(held)])
    first, last = folded(np.array([start, end]), folds or [])
    shares = np.diff(np.interp(np.linspace(first, last, width + 1), edges, until)) * width / max(1, last - first)
    return [round(float(x), 3) for x in np.clip(shares, 0, 1)]
