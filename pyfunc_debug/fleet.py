"""Questions over the exports of many jobs, answered by DuckDB on one machine or by Dask on several.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyfunc_debug.errors import BadOptionError, NotInstalledError

ENGINES = ("duckdb", "dask")
_STRAGGLES = 1.5
_LEAST_CALLS = 5
_LEAST_NS = 100_000


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


def sums(lake: str | os.PathLike[str], engine: str = "duckdb") -> list[Sums]:
    """Reads a lake.

    Args:
      lake: A folder with an export in `job=NAME` for each job.
      engine: "duckdb", or "dask": then the files are read by the workers of Dask's current client, or scheduler.

    Returns:
      A row for each body of each process, sorted.

    Raises:
      BadOptionError: there is no export in it, or no such engine.
      NotInstalledError: the engine is not installed.

    Example:
      for one in pyfunc_debug.fleet.stragglers(pyfunc_debug.fleet.sums("lake/")):
          print(one.job, one.process, one.body, one.times)
    """
    if engine not in ENGINES:
        raise BadOptionError(f"engine={engine!r} is not one of {', '.join(ENGINES)}")
    root = glob.escape(os.fspath(lake))
    paths = sorted(glob.glob(os.path.join(root, "job=*", "calls", "process=*", "*.parquet")))
    if not paths:
        raise BadOptionError(
            f"{os.fspath(lake)} holds no export of a job: pyfunc-debug export run/ --format parquet "
            f"-o {os.path.join(os.fspath(lake), 'job=NAME')}"
        )
    engines: dict[str, Callable[[Sequence[str]], list[Sums]]] = {"duckdb": _duckdb, "dask": _dask}
    try:
        return sorted(engines[engine](paths), key=lambda one: (one.job, one.process, one.body))
    except ImportError as error:
        raise NotInstalledError(f"engine={engine!r} needs it: pip install 'pyfunc-debug[fleet]'") from error


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

    Five calls and 0.1 ms are the least, as in the ledger of a job.

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
        means = sorted((row.total_ns / row.calls, row.process) for row in own)
        if len(means) < 2:
            continue
        (mean, process), others = means[-1], statistics.median(one for one, _ in means[:-1])
        if mean >= _STRAGGLES * others and mean - others >= _LEAST_NS:
            found.append(Straggler(job, process, body, mean, others, mean / others if others else float("inf")))
    return sorted(found, key=lambda one: (-one.times, one.job, one.body))


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


def _dask(paths: Sequence[str]) -> list[Sums]:
    import dask

    parts = dask.compute(*(dask.delayed(_sums_of_file)(path) for path in paths))
    return [row for part in parts for row in part]


def _sums_of_file(path: str) -> list[Sums]:
    """On a worker of Dask."""
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
