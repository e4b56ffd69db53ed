"""Questions over the exports of many jobs, answered by DuckDB on one machine, by Dask, Ray or Spark on several.

    pyfunc-debug export run/ --format parquet -o lake/job=monday      # each job into one lake

The engine reads the Parquet files and gives one row for each body of each process (`sums`); the questions are answered
from these rows, so every engine gives the same answers. They are about the calls that are stored: what sampling left
out, or a budget dropped, is in no export.
"""

from __future__ import annotations

import glob
import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pyfunc_debug.errors import BadOptionError, NotInstalledError

ENGINES = ("duckdb", "dask", "ray", "spark")
_STRAGGLES = 1.5
_LEAST_CALLS = 5
_LEAST_NS = 100_000
_OLD = "an export in it is of before exports had digests: export the recordings again"
_Row = TypeVar("_Row")


@dataclass(frozen=True, order=True)
class Sums:
    """The forward calls of one body in one process that have ended.

    Attributes:
      job, process: What stands behind `job=` in the lake, and the recording's name: HOST-PID-ROLE.
      body: Of the calls.
      calls, errors: How many, and how many of them failed.
      total_ns, max_ns: How long they took, without time at breakpoints, and the longest of them.
      nan_calls: How many gave a NaN.
      first_nan_ns: When the first of these began, in ns since 1970 by the clock of its host; None without one.
    """

    job: str
    process: str
    body: str
    calls: int
    errors: int
    total_ns: int
    max_ns: int
    nan_calls: int
    first_nan_ns: int | None


@dataclass(frozen=True)
class Body:
    """A body over all jobs. Times in ns."""

    body: str
    jobs: int
    calls: int
    errors: int
    total_ns: int
    mean_ns: float
    max_ns: int


@dataclass(frozen=True)
class Straggler:
    """A process in which a body takes `times` the median of the other processes of its job."""

    job: str
    process: str
    body: str
    mean_ns: float
    others_ns: float
    times: float


@dataclass(frozen=True, order=True)
class Outcome:
    """What one version of a body gave for one input.

    Attributes:
      body: Of the calls.
      input, code, output: Digests of the inputs, of the body's text and of the outputs.
      call: The first such call: (job, process, its number).
    """

    body: str
    input: str
    code: str
    output: str
    call: tuple[str, str, int]


@dataclass(frozen=True)
class Change:
    """A body whose outputs for equal inputs are others in another version of its text.

    Attributes:
      body: Its name.
      inputs: How many inputs were given to more than one version.
      changed: For how many of them two versions gave different outputs.
      unsteady: For how many one version gave several outputs (a random number, a clock, a state): not compared.
      calls: Two calls that show the first of them: (job, process, number).
    """

    body: str
    inputs: int
    changed: int
    unsteady: int
    calls: tuple[tuple[str, str, int], tuple[str, str, int]]


def sums(lake: str | os.PathLike[str], engine: str = "duckdb") -> list[Sums]:
    """Reads a lake.

    Args:
      lake: A folder with an export in `job=NAME` for each job.
      engine: "duckdb"; or "dask", "ray", "spark": then each file is read by a worker of Dask's current client or
        scheduler, by a task of Ray's current cluster, or in a partition of the active Spark session. What is not there
        is started on this machine. Workers need pyfunc_debug, pyarrow, and the lake under the same name.

    Returns:
      A row for each body of each process, sorted.

    Raises:
      BadOptionError: there is no export in it, or no such engine.
      NotInstalledError: the engine is not installed.

    Example:
      for one in pyfunc_debug.fleet.stragglers(pyfunc_debug.fleet.sums("lake/")):
          print(one.job, one.process, one.body, one.times)
    """
    rows = _asked(lake, engine, _duckdb, _sums_of_file)
    return sorted(rows, key=lambda one: (one.job, one.process, one.body))


def outcomes(lake: str | os.PathLike[str], engine: str = "duckdb") -> list[Outcome]:
    """Reads what several versions of a body gave for the same input: of the calls whose values were all read.

    Args:
      lake: A folder with an export in `job=NAME` for each job.
      engine: As in `sums`.

    Returns:
      A row for each input, version and output, of inputs that more than one version was given; sorted.

    Raises:
      BadOptionError: there is no export in it, one is older than digests in exports, or no such engine.
      NotInstalledError: the engine is not installed.

    Example:
      fleet.changes(fleet.outcomes("lake/"))
    """
    rows = _asked(lake, engine, _duckdb_outcomes, _outcomes_of_file)
    return sorted(rows if engine == "duckdb" else _of_several(rows))


def _asked(
    lake: str | os.PathLike[str], engine: str, duckdb: Callable[[Sequence[str]], list[_Row]],
    of_file: Callable[[str], list[_Row]],
) -> list[_Row]:  # fmt: skip
    if engine not in ENGINES:
        raise BadOptionError(f"engine={engine!r} is not one of {', '.join(ENGINES)}")
    root = glob.escape(os.fspath(lake))
    paths = sorted(glob.glob(os.path.join(root, "job=*", "calls", "process=*", "*.parquet")))
    if not paths:
        raise BadOptionError(
            f"{os.fspath(lake)} holds no export of a job: pyfunc-debug export run/ --format parquet "
            f"-o {os.path.join(os.fspath(lake), 'job=NAME')}"
        )
    try:
        if engine == "duckdb":
            return duckdb(paths)
        return [row for part in _ON_WORKERS[engine](of_file, paths) for row in part]
    except ImportError as error:
        package = _PACKAGES.get(engine, "'pyfunc-debug[fleet]'")
        raise NotInstalledError(f"engine={engine!r} needs it: pip install {package}") from error


def slowest(rows: Sequence[Sums]) -> list[Body]:
    """The bodies of all jobs, those that took the most time first.

    Args:
      rows: What `sums` gives.

    Returns:
      One a name of a body.

    Example:
      fleet.slowest(fleet.sums("lake/"))[:10]
    """
    by_body: dict[str, list[Sums]] = defaultdict(list)
    for row in rows:
        by_body[row.body].append(row)
    found = []
    for body, own in by_body.items():
        calls, total = sum(row.calls for row in own), sum(row.total_ns for row in own)
        found.append(
            Body(
                body, len({row.job for row in own}), calls, sum(row.errors for row in own), total, total / calls,
                max(row.max_ns for row in own),
            )
        )  # fmt: skip
    return sorted(found, key=lambda one: (-one.total_ns, one.body))


def stragglers(rows: Sequence[Sums]) -> list[Straggler]:
    """Processes in which a body takes one and a half times the median of the job's other processes, or more.

    Also without each process's longest call, which may be its first. Five calls and 0.1 ms are the least, as in the
    ledger of a job.

    Args:
      rows: What `sums` gives.

    Returns:
      The worst first.

    Example:
      fleet.stragglers(fleet.sums("lake/"))
    """
    groups: dict[tuple[str, str], list[Sums]] = defaultdict(list)
    for row in rows:
        if row.calls >= _LEAST_CALLS:
            groups[row.job, row.body].append(row)
    found = []
    for (job, body), own in groups.items():
        if len(own) < 2:
            continue
        *rest, slow = sorted(own, key=lambda row: (row.total_ns / row.calls, row.process))
        mean, others = slow.total_ns / slow.calls, statistics.median(row.total_ns / row.calls for row in rest)
        usual = _without_longest(slow), statistics.median(map(_without_longest, rest))
        if all(mine >= _STRAGGLES * theirs and mine - theirs >= _LEAST_NS for mine, theirs in ((mean, others), usual)):
            times = mean / others if others else float("inf")
            found.append(Straggler(job, slow.process, body, mean, others, times))
    return sorted(found, key=lambda one: (-one.times, one.job, one.body))


def _without_longest(row: Sums) -> float:
    """The mean without the one call that took longest: a first call that sets things up makes no straggler."""
    return (row.total_ns - row.max_ns) / (row.calls - 1)


def first_nan(rows: Sequence[Sums]) -> list[Sums]:
    """The first NaN of each job: of several hosts, by their own clocks.

    Args:
      rows: What `sums` gives.

    Returns:
      The row of the process and body that gave it, for each job that has one.

    Example:
      fleet.first_nan(fleet.sums("lake/"))
    """
    first: dict[str, tuple[int, Sums]] = {}
    for row in rows:
        at = row.first_nan_ns
        if at is not None and (row.job not in first or at < first[row.job][0]):
            first[row.job] = at, row
    return [row for _, (_, row) in sorted(first.items())]


def changes(rows: Sequence[Outcome]) -> list[Change]:
    """Bodies whose output for equal input changed between versions of their text.

    Args:
      rows: What `outcomes` gives.

    Returns:
      Those with the most changed inputs first.

    Example:
      for one in fleet.changes(fleet.outcomes("lake/")):
          print(one.body, one.changed, one.calls)
    """
    given: dict[tuple[str, str], dict[str, dict[str, Outcome]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        given[row.body, row.input][row.code][row.output] = row
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    shown: dict[str, tuple[Outcome, Outcome]] = {}
    for (body, _), versions in sorted(given.items()):
        if len(versions) < 2:
            continue
        counts = found[body]
        counts[0] += 1
        if any(len(outputs) > 1 for outputs in versions.values()):
            counts[2] += 1
            continue
        first, *others = sorted((row for outputs in versions.values() for row in outputs.values()), key=_when)
        other = next((row for row in others if row.output != first.output), None)
        if other is not None:
            counts[1] += 1
            shown.setdefault(body, (first, other))
    rows_of = []
    for body, (first, other) in shown.items():
        inputs, changed, unsteady = found[body]
        rows_of.append(Change(body, inputs, changed, unsteady, (first.call, other.call)))
    return sorted(rows_of, key=lambda one: (-one.changed, one.body))


def _when(row: Outcome) -> tuple[str, str, int]:
    return row.call


# -- engines ----------------------------------------------------------------------------------------------------------


def _of_path(path: str) -> tuple[str, str]:
    """Job and process."""
    parts = os.path.normpath(path).split(os.sep)
    return parts[-4].removeprefix("job="), os.path.splitext(parts[-1])[0]


_SQL = """
SELECT filename, body, count(*), count(*) FILTER (status = 'error'),
    sum(CAST(round(ms * 1000000) AS BIGINT)), max(CAST(round(ms * 1000000) AS BIGINT)), count(*) FILTER (nan > 0),
    min(epoch_ns(time)) FILTER (nan > 0)
FROM read_parquet($paths, filename = true, hive_partitioning = false)
WHERE kind = 'forward' AND ms IS NOT NULL GROUP BY filename, body
"""


def _duckdb(paths: Sequence[str]) -> list[Sums]:
    import duckdb

    with duckdb.connect() as db:
        rows = db.execute(_SQL, {"paths": list(paths)}).fetchall()
    return [
        Sums(*_of_path(path), body, calls, errors, int(total), int(most), nans, first)
        for path, body, calls, errors, total, most, nans, first in rows
    ]


_OUTCOMES_SQL = """
WITH file AS (SELECT unnest($paths) AS name, unnest(range(len($paths))) AS number), one AS (
    SELECT body, input_digest AS i, code AS c, output_digest AS o, min((number, id)) AS call
    FROM read_parquet($paths, filename = true, hive_partitioning = false) JOIN file ON filename = name
    WHERE kind = 'forward' AND status = 'ok' AND i IS NOT NULL AND c IS NOT NULL AND o IS NOT NULL GROUP BY ALL
)
SELECT body, i, c, o, call[1], call[2] FROM one
WHERE (body, i) IN (SELECT (body, i) FROM one GROUP BY body, i HAVING count(DISTINCT c) > 1)
"""


def _duckdb_outcomes(paths: Sequence[str]) -> list[Outcome]:
    import duckdb

    ordered = sorted(paths, key=_of_path)  # which of the files of equal outcomes is the first is asked by number
    with duckdb.connect() as db:
        try:
            rows = db.execute(_OUTCOMES_SQL, {"paths": ordered}).fetchall()
        except duckdb.BinderException as error:
            raise BadOptionError(_OLD) from error
    return [Outcome(body, i, c, o, (*_of_path(ordered[number]), call)) for body, i, c, o, number, call in rows]


def _on_dask(of_file: Callable[[str], list[_Row]], paths: Sequence[str]) -> Iterable[list[_Row]]:
    import dask

    parts: Iterable[list[_Row]] = dask.compute(*(dask.delayed(of_file)(path) for path in paths))
    return parts


def _on_ray(of_file: Callable[[str], list[_Row]], paths: Sequence[str]) -> Iterable[list[_Row]]:
    import ray

    task = ray.remote(num_cpus=1)(of_file)
    parts: list[list[_Row]] = ray.get([task.remote(path) for path in paths])
    return parts


def _on_spark(of_file: Callable[[str], list[_Row]], paths: Sequence[str]) -> Iterable[list[_Row]]:
    from pyspark.sql import SparkSession

    context = SparkSession.builder.getOrCreate().sparkContext
    partitions = min(len(paths), 8 * context.defaultParallelism)
    parts: list[list[_Row]] = context.parallelize(paths, partitions).map(of_file).collect()
    return parts


_ON_WORKERS: dict[str, Callable[[Callable[[str], list[Any]], Sequence[str]], Iterable[list[Any]]]] = {
    "dask": _on_dask, "ray": _on_ray, "spark": _on_spark,
}  # fmt: skip
_PACKAGES = {"ray": "ray pyarrow", "spark": "pyspark pyarrow"}


def _outcomes_of_file(path: str) -> list[Outcome]:
    """On a worker."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    keys = ["body", "input_digest", "code", "output_digest"]
    file = pq.ParquetFile(path)
    if not {*keys} <= {*file.schema_arrow.names}:
        raise BadOptionError(_OLD)
    table = file.read(columns=[*keys, "kind", "status", "id"])
    table = table.filter(pc.and_(pc.equal(table["kind"], "forward"), pc.equal(table["status"], "ok")))
    table = pa.table({key: table[key] for key in [*keys, "id"]}).drop_null()
    grouped = table.group_by(keys).aggregate([("id", "min")])
    return [
        Outcome(row["body"], row["input_digest"], row["code"], row["output_digest"], (*_of_path(path), row["id_min"]))
        for row in grouped.to_pylist()
    ]


def _of_several(rows: Sequence[Outcome]) -> list[Outcome]:
    """Each outcome with its first call, of inputs that more than one version was given."""
    first: dict[tuple[str, str, str, str], Outcome] = {}
    versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        key = row.body, row.input, row.code, row.output
        if key not in first or row.call < first[key].call:
            first[key] = row
        versions[row.body, row.input].add(row.code)
    return [row for row in first.values() if len(versions[row.body, row.input]) > 1]


def _sums_of_file(path: str) -> list[Sums]:
    """On a worker."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.ParquetFile(path).read(columns=["body", "kind", "status", "ms", "nan", "time"])
    table = table.filter(pc.and_(pc.equal(table["kind"], "forward"), pc.is_valid(table["ms"])))
    ns = pc.cast(pc.round(pc.multiply(table["ms"], 1e6)), pa.int64())
    failed = pc.cast(pc.equal(table["status"], "error"), pa.int64())
    has_nan = pc.fill_null(pc.greater(table["nan"], 0), False)
    nan_time = pc.if_else(has_nan, pc.cast(table["time"], pa.int64()), None)
    columns = {"body": table["body"], "ns": ns, "failed": failed, "nan": pc.cast(has_nan, pa.int64()), "at": nan_time}
    wanted = [("ns", "count"), ("failed", "sum"), ("ns", "sum"), ("ns", "max"), ("nan", "sum"), ("at", "min")]
    grouped = pa.table(columns).group_by("body").aggregate(wanted)
    names = ["body", *("_".join(one) for one in wanted)]
    return [Sums(*_of_path(path), *(row[name] for name in names)) for row in grouped.to_pylist()]
