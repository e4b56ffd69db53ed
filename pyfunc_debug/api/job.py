"""Several recordings as one: what `open` gives for a folder, a pattern or a list."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pyfunc_debug.analysis.job import JobLedger, each_open, make_job_ledger, process_names
from pyfunc_debug.analysis.job_sql import ask
from pyfunc_debug.analysis.replicas import Replicas, compare_replicas
from pyfunc_debug.api.recording import Recording
from pyfunc_debug.doctor import examine_job
from pyfunc_debug.doctor.across import NAMES as ACROSS
from pyfunc_debug.pfrec.folders import Chosen, is_many
from pyfunc_debug.records import Finding, Findings, Front


@dataclass(frozen=True, repr=False)
class JobFinding(Finding):
    """A finding of a job. `node` and `calls` are numbers of the first of `processes`, which are named by their role."""

    processes: tuple[str, ...] = ()


class Job(Sequence[Recording]):
    """The recordings of a job's processes, in the order of their names. A sequence: `job[0]` is one recording.

    Args:
      paths: Files, folders and patterns.

    Raises:
      BadRecordingError: there is none, or one cannot be read.

    Example:
      job = pfd.open("run/")
      print(job.ledger())
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.chosen = Chosen(paths)
        self._open: dict[str, Recording] = {}

    @property
    def paths(self) -> list[str]:
        """Of its recordings: a damaged one of a folder is left out once that is seen."""
        return self.chosen.files

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        path = self.paths[number]
        if path not in self._open:
            self._open[path] = Recording(path)
        return self._open[path]

    def __repr__(self) -> str:
        return f"<job of {len(self)} recordings: {', '.join(map(os.path.basename, self.paths[:3]))}, ...>"

    def ledger(self, include_internal: bool = False) -> JobLedger:
        """Each process, and each body over all of them, with the process in which it is slowest.

        Args:
          include_internal: Whether to show TensorFlow's and Keras' own nodes too.

        Returns:
          What prints as tables; `rows` are its bodies, `processes` its processes, `remarks` what stands out.

        Example:
          for row in job.ledger().rows:
              print(row.body, row.calls, row.slowest)
        """
        ledger = self.chosen.read(lambda paths: make_job_ledger(paths, include_internal))
        return replace(ledger, remarks=(*ledger.remarks, *self.chosen.told()), left_out=tuple(self.chosen.left_out))

    def findings(
        self, select: Sequence[str] | None = None, ignore: Sequence[str] | None = None, front: Front = "python"
    ) -> Findings:
        """What the doctor says of all processes: the same thing on the same line once, with the processes named.

        Args:
          select: Only these rules, or globs.
          ignore: Not these.
          front: For whom fixes are written.

        Returns:
          `JobFinding`s, worst first.

        Example:
          for finding in job.findings():
              print(finding.rule, finding.processes)
        """
        return self.chosen.read(lambda paths: self._findings(paths, select, ignore, front))

    def _findings(
        self, paths: list[str], select: Sequence[str] | None, ignore: Sequence[str] | None, front: Front
    ) -> Findings:
        processes = make_job_ledger(paths).processes
        names = [process.name for process in processes]
        others_work = any(process.calls for process in processes)  # then one without calls is as it should be
        found: dict[tuple[Any, ...], JobFinding] = {}
        for name, path in zip(names, paths, strict=True):
            with contextlib.closing(Recording(path)) as recording:
                of_this_one = recording.findings(select, ignore, front=front)
            for one in of_this_one:
                if (others_work and one.rule == "empty-recording") or (len(paths) > 1 and one.rule in ACROSS):
                    continue
                same = (one.rule, one.severity, one.file, one.line)
                seen = found.get(same)
                if seen is None:
                    found[same] = _of_job(one, (name,))
                elif name not in seen.processes:
                    found[same] = replace(seen, processes=(*seen.processes, name))
        if len(paths) > 1:
            for one, who in examine_job(paths, lambda: _replicas(paths, names), front, select, ignore):
                found[one.rule, one.file, one.line] = _of_job(one, who)
        order = {"error": 0, "warning": 1, "note": 2}
        return Findings(sorted(map(_told, found.values()), key=lambda one: order[one.severity]))

    def differences(self) -> Replicas:
        """Which values of the same node in the same step are equal in all processes, and who differs since when.

        Where a process has replicas (MirroredStrategy), these are compared, within one process too.

        A step is a run of a tf.function, counted from its first; values of tf.data's calls have none. Values are
        compared by digest, which recordings have of all values up to 64 MB; none has to be kept.

        Returns:
          What prints as text; `values` are the inputs and outputs of bodies, those that diverged first. True where one
          was equal in all processes and then was not.

        Example:
          for value in job.differences().values:
              print(value.body, value.path, value.first, value.groups)
        """
        return self.chosen.read(lambda paths: _replicas(paths, process_names(paths)))

    def sql(self, query: str, engine: str | None = None) -> list[dict[str, Any]]:
        """Rows of a SELECT over the tables of all recordings.

        Each table has two columns more in front: `process`, as the ledger names it, and `recording`, the path. Numbers
        of calls and nodes are those of one recording: join on `recording` too.

        Args:
          query: The SQL of the engine; `pyfunc-debug query --schema` prints the tables.
          engine: "sqlite" or "duckdb" (the extra `fleet`); by default DuckDB from 20 MB of recordings on, where it is
            installed.

        Returns:
          One dictionary a row, by column.

        Raises:
          BadOptionError: the engine does not accept the query, or it tries to write.
          NotInstalledError: there is no such engine here.

        Example:
          job.sql("SELECT process, count(*) AS calls FROM call GROUP BY process ORDER BY process")
        """
        columns, rows = self.chosen.read(lambda paths: ask(paths, query, engine))
        return [dict(zip(columns, row)) for row in rows]

    def close(self) -> None:
        """Closes the files."""
        for one in self._open.values():
            one.close()
        self._open.clear()


def _replicas(paths: Sequence[str], names: Sequence[str]) -> Replicas:
    return compare_replicas(zip(names if len(paths) > 1 else [""], each_open(paths), strict=True))


def _of_job(finding: Finding, processes: tuple[str, ...]) -> JobFinding:
    return JobFinding(**{field.name: getattr(finding, field.name) for field in fields(Finding)}, processes=processes)


def _told(finding: JobFinding) -> JobFinding:
    """With the processes in its evidence, where every front shows them."""
    first, *others = finding.processes
    more = f" and {len(others)} more: {', '.join(others[:5])}" if others else ""
    return replace(finding, evidence=(*finding.evidence, f"in the process {first}{more}"))


def open(path: str | os.PathLike[str] | Sequence[str]) -> Any:
    """Opens a recording, or those of a job.

    Args:
      path: A .pfrec file, which may still be growing; or a folder, a pattern, or a list of these: then a `Job`.

    Returns:
      The recording, or the job.

    Raises:
      BadRecordingError: it is missing, damaged, too new, or something else.

    Example:
      recording = pfd.open("train.pfrec")
      print(recording.ledger())
    """
    if isinstance(path, (str, os.PathLike)):
        name = os.fspath(path)
        return Job([name]) if is_many(name) else Recording(name)
    return Job(list(path))
