"""The datasets that a failed program holds, with those that they are made of, and what their elements are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import names
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset
from pyfunc_debug.interception.names.private import batch_size, dataset_inputs, is_eager, iterated

_MOST = 300
BATCHES = ("_BatchDataset", "_ParallelBatchDataset")


def held(situation: Situation) -> Iterator[Any]:
    """Each dataset that the user's variables and the frames of the failure hold, and those that it reads from."""
    values = [value for spot in situation.spots for known in (spot.variables, spot.module) for value in known.values()]
    for error in (situation.inner, situation.error):
        values += [value for one in frames(error.__traceback__) for value in list(one.f_locals.values())]
    yield from with_inputs(value for value in values if is_dataset(value))


def read_here(situation: Situation) -> Iterator[Any]:
    """Those that the failing line reads by name, with what these read from; all, where it names none."""
    spot, statement = situation.last, situation.statement
    named = [spot.value(name) for name in names(statement)] if spot is not None and statement is not None else []
    found = [value for value in named if is_dataset(value)]
    yield from with_inputs(found) if found else held(situation)


def gone_over(situation: Situation) -> Iterator[Any]:
    """The dataset whose iterator failed, with what it reads from; those of the failing line, where none is known."""
    known = [value for one in frames(situation.error.__traceback__) for value in list(one.f_locals.values())]
    found = [dataset for value in known if (dataset := iterated(value)) is not None]
    yield from with_inputs(found) if found else read_here(situation)


def with_inputs(found: Iterable[Any]) -> Iterator[Any]:
    """Some datasets, and those that they read from, each once."""
    waiting: list[Any] = list(found)
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        one = waiting.pop()
        if id(one) not in seen and hasattr(one, "element_spec"):  # the one that failed as it was made has none
            seen.add(id(one))
            yield one
            waiting += dataset_inputs(one)


def leaves(spec: Any) -> Iterator[Any]:
    """The parts of an element_spec that nest no further."""
    if isinstance(spec, (dict, tuple)):
        for one in spec.values() if isinstance(spec, dict) else spec:
            yield from leaves(one)
    else:
        yield spec


def part_names(count: int) -> list[str]:
    """The names that a pasted lambda gives to the parts of an element."""
    return ["x", "y", "w"][:count] if count <= 3 else [f"x{place}" for place in range(count)]


def has_datasets(spec: Any) -> bool:
    """Whether an element, or a part of it, is a dataset itself."""
    return any(type(one).__name__ == "DatasetSpec" for one in leaves(spec))


def stacks(dataset: Any) -> Any:
    """The one dataset whose elements are stacked as they are, two or more at a time: they have one shape.

    Args:
      dataset: A dataset, which may be made of it.

    Returns:
      None where nothing is stacked so, or something before is padded or ragged.
    """
    stages = list(with_inputs([dataset]))
    kinds = {type(one).__name__ for one in stages}
    if "_PaddedBatchDataset" in kinds or any(hasattr(leaf, "ragged_rank") for one in stages
                                             for leaf in leaves(one.element_spec)):  # fmt: skip
        return None
    batches = [one for one in stages if type(one).__name__ in BATCHES and _size(one) != 1]
    return dataset_inputs(batches[0])[0] if len(batches) == 1 else None


def _size(dataset: Any) -> int | None:
    """The number of elements that are stacked; None where it is not known."""
    size = batch_size(dataset)
    return int(size) if is_eager(size) else None
