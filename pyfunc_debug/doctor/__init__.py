"""The doctor: what in a recording deserves attention, with its cause, the line, and the fix. One module a rule."""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pyfunc_debug.analysis.replicas import Replicas
from pyfunc_debug.doctor import across, joined_files, overlaps
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.imports import with_imports
from pyfunc_debug.doctor.rules import Rule
from pyfunc_debug.doctor.settings import Settings, settings
from pyfunc_debug.doctor.silenced import Silenced
from pyfunc_debug.errors import BadOptionError, BadRecordingError
from pyfunc_debug.pfrec import Reader
from pyfunc_debug.records import Finding, Front

SEVERITIES = ("error", "warning", "note")
"""Worst first."""
_CALLS = re.compile(r"\bcalls?\b")
TROUBLE = "doctor-trouble"
"""The rule that reports a failed rule of ours: the others are examined all the same."""


def names() -> list[str]:
    """Names of all rules, in the order of the alphabet."""
    return sorted({name for module in _rules() for name in module.NAMES} | set(across.NAMES))


def examine(
    reader: Reader,
    front: Front = "python",
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
) -> list[Finding]:
    """All findings of a recording, worst first.

    Findings of a line of the user's with the comment `# pyfunc: ignore[rule]` are left out.

    Args:
      reader: The recording.
      front: Where the findings are read: each fix says what to type there.
      select: Names of rules, or globs: only these. None for what pyproject.toml says, else all.
      ignore: Rules to leave out. None for what pyproject.toml says, else none.

    Raises:
      BadOptionError: no such rule; the message names the nearest.
    """
    wanted = _wanted(select, ignore)
    facts = Facts(reader, front)
    silenced = Silenced(facts)
    found = [with_imports(facts, finding) for finding in _asked(facts, wanted)]
    found = joined_files.added(facts, found, lambda whole, is_asked: [
        finding for finding in _asked(whole, lambda rule: wanted(rule) and is_asked(rule)) if finding.rule != TROUBLE
    ])  # fmt: skip
    found = [_of_stored(facts, finding) for finding in found if not silenced(finding)]
    found.sort(key=lambda finding: (SEVERITIES.index(finding.severity), finding.rule, finding.node or 0))
    return list(overlaps.marked(found))


def examine_job(
    paths: Sequence[str],
    replicas: Callable[[], Replicas],
    front: Front = "python",
    select: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
) -> list[tuple[Finding, tuple[str, ...]]]:
    """What only several processes together show, with the processes that each finding names; not what each one shows.

    Args:
      paths: The recordings.
      replicas: Compares the values of all processes; is called if somebody wants to know.
      front: As in `examine`, as are the others.
      select: Only these.
      ignore: Not these.
    """
    if not any(map(_wanted(select, ignore), across.NAMES)):
        return []
    found = list(across.diverged(replicas(), paths, front))
    with contextlib.closing(Reader(paths[0])) as reader:  # its source text may silence findings
        silenced = Silenced(Facts(reader, front))
        return [(finding, processes) for finding, processes in found if not silenced(finding)]


def _rules() -> Sequence[Rule]:
    """All rules: to import them takes longer than to begin a recording, and most processes ask nothing."""
    from pyfunc_debug.doctor.rules.every import MODULES

    return MODULES


def _asked(facts: Facts, wanted: Callable[[str], bool]) -> Iterator[Finding]:
    """What the rules of these names find."""
    for module in _rules():
        if any(map(wanted, module.NAMES)):
            yield from (finding for finding in _check(module, facts) if wanted(finding.rule))


def _wanted(select: Sequence[str] | None, ignore: Sequence[str] | None) -> Callable[[str], bool]:
    project = settings() if select is None or ignore is None else Settings()
    chosen = project.select if select is None else tuple(select)
    left_out = project.ignore if ignore is None else tuple(ignore)
    known = [*names(), TROUBLE]
    for pattern in (*chosen, *left_out):
        if not fnmatch.filter(known, pattern):
            near = difflib.get_close_matches(pattern, known, 3, 0.4) or known
            raise BadOptionError(f"the doctor has no rule {pattern!r}. There are: {', '.join(near)}")

    return lambda name: (not chosen or _fits(name, chosen)) and not _fits(name, left_out)


def _of_stored(facts: Facts, finding: Finding) -> Finding:
    """Says so where numbers of calls are of those that are stored, and there were more."""
    nodes = finding.nodes or (() if finding.node is None else (finding.node,))
    lost = facts.counted_only(nodes)
    if not lost or not _CALLS.search(" ".join((finding.message, *finding.evidence))):
        return finding
    stored = sum(facts.calls(node, kind).count for node in nodes for kind in ("forward", "gradient"))
    more = f"numbers of calls are of the {stored:,} that were stored; {lost:,} more were only counted"
    return replace(finding, evidence=(*finding.evidence, more))


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _check(module: Rule, facts: Facts) -> Iterator[Finding]:
    try:
        yield from module.check(facts)
    except BadRecordingError:
        raise
    except Exception as error:  # the others still have something to say
        if facts.meta.get("state") == "recording":
            return  # its tables were read one after another, and it went on between: at the end nothing does
        yield Finding(
            TROUBLE, "note", None, (), f"the rule {module.NAMES[0]} could not be examined, by a fault of "
            f"pyfunc_debug: {type(error).__name__}: {error}",
            "tell the authors of pyfunc_debug, with the recording if you can", None, None,
        )  # fmt: skip
