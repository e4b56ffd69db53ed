"""What only several processes or replicas together show: values that were equal in all of them, and then are not."""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pyfunc_debug.analysis.replicas import Replicas, ReplicaValue, first_names
from pyfunc_debug.records import Finding, Front

NAMES = ("diverged-replicas",)
_EQUAL_BEFORE = 3
"""Steps in which a value was equal in all processes before it differed: in one it may be by chance."""


def diverged(found: Replicas, paths: Sequence[str], front: Front) -> Iterator[tuple[Finding, tuple[str, ...]]]:
    """Findings, each with the processes or replicas that differ: of each body the value that differed first.

    Args:
      found: The values compared.
      paths: The recordings.
      front: Where the findings are read.
    """
    bodies: dict[tuple[str, str | None, int | None], list[ReplicaValue]] = defaultdict(list)
    for value in found.values:
        bodies[value.body, value.file, value.line].append(value)
    for (body, file, line), values in bodies.items():
        late = [one for one in values if one.first is not None and one.first > _EQUAL_BEFORE and one.diverged]
        if not late:
            continue
        value = min(late, key=lambda one: (one.first, one.role != "input"))
        inputs = [one for one in values if one.role == "input"]
        same = value.role == "output" and bool(inputs)
        same = same and all(one.first is None or (one.first > (value.first or 0)) for one in inputs)
        what = f"{value.role} {value.path} of {body}"
        message = (
            f"{what} was equal in all {value.among} and is not from step {value.first:,} on: {_who(value)}"
            + (", though the inputs are equal: the body reads something else" if same else "")
        )  # fmt: skip
        evidence = [f"{first_names(names)}: {text}" for names, text in zip(value.groups, value.texts, strict=True)]
        evidence.append(f"equal in {value.equal:,} of {value.steps:,} steps")
        yield Finding("diverged-replicas", "warning", None, (), message, _fix(paths, front), file, line,
                      evidence=tuple(evidence)), _odd(value)  # fmt: skip


def _odd(value: ReplicaValue) -> tuple[str, ...]:
    """Those outside the largest group; all where no group is the largest."""
    first, second = value.groups[0], value.groups[1]
    others = value.groups[1:] if len(first) > len(second) else value.groups
    return tuple(name for names in others for name in names)


def _who(value: ReplicaValue) -> str:
    odd = _odd(value)
    if len(odd) == sum(map(len, value.groups)):
        return f"{first_names(odd)} differ"
    return f"{first_names(odd)} {'differs' if len(odd) == 1 else 'differ'} from {first_names(value.groups[0])}"


def _fix(paths: Sequence[str], front: Front) -> str:
    if len(paths) == 1:
        path = os.path.relpath(paths[0])
        told = f"pyfunc-debug diff {shlex.quote(path)}"
        told = told if front == "shell" else f"print(pyfunc_debug.open([{path!r}]).differences())"
        return f"{told}  # every value, and since which step"
    folders = {os.path.dirname(os.path.relpath(path)) or "." for path in paths}
    if front == "shell":
        where = " ".join(map(shlex.quote, sorted(folders) if len(folders) == 1 else map(os.path.relpath, paths)))
        return f"pyfunc-debug diff {where}  # every value, and since which step"
    where = repr(folders.pop()) if len(folders) == 1 else repr([*map(os.path.relpath, paths)])
    return f"print(pyfunc_debug.open({where}).differences())  # every value, and since which step"
