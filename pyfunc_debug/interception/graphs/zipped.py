"""What a dataset's zip pairs: where each side comes from, and what shuffles it on its own."""

from __future__ import annotations

from typing import Any

from pyfunc_debug.interception.names import private

_DEEPEST = 100


def sides(dataset: Any, kind: Any) -> list[dict[str, Any]] | None:
    """One entry a side of a zip, as JSON can hold it; None for other transformations.

    `kinds` are the side's transformations down to where it begins or has several inputs, the last first. `source` is
    the number of the first side that begins there, too, and `reads` the dtype and rank of an element there, "" where it
    has parts. `parts` says whether an element that is paired has some. `count` is how many elements the side has, where
    TensorFlow knows it. `order` holds what makes a shuffle's order the same as another's: its two seeds and its
    buffer's size, or None where one of them is not known; a side that is not shuffled has none.

    Args:
      dataset: The dataset.
      kind: Gives the name of a transformation.
    """
    if kind(dataset) != "Zip":
        return None
    found, sources = [], []
    for side in private.dataset_inputs(dataset):
        stages = _line(side)
        orders = [one for one in map(_order, stages) if one is not None]
        sources.append(stages[-1])
        found.append({
            "kinds": [kind(one) for one in stages], "reads": _reads(stages[-1]), "parts": not _reads(side),
            "source": next(place for place, one in enumerate(sources) if one is stages[-1]),
            **({"count": count} if (count := _count(side)) is not None else {}),
            **({"order": orders[0] if len(orders) == 1 and None not in orders[0] else None} if orders else {}),
        })  # fmt: skip
    return found


def _count(dataset: Any) -> int | None:
    """The number of elements; None of an endless dataset, and where only a pass over it would tell."""
    import tensorflow as tf

    if not tf.executing_eagerly():
        return None
    count = int(dataset.cardinality())
    return count if count >= 0 else None


def _line(dataset: Any) -> list[Any]:
    """A dataset and what it reads from, as long as that is one."""
    found = [dataset]
    while len(found) < _DEEPEST and len(inputs := private.dataset_inputs(found[-1])) == 1:
        found.append(inputs[0])
    return found


def _order(dataset: Any) -> list[int | None] | None:
    import tensorflow as tf

    found = private.shuffle_order(dataset)
    if found is None:
        return None
    known = [one if isinstance(one, int) else tf.get_static_value(one) for one in found]
    return [None if one is None else int(one) for one in known]


def _reads(dataset: Any) -> str:
    """`int32[]` is one number an element."""
    spec = dataset.element_spec
    rank = getattr(getattr(spec, "shape", None), "rank", None)
    name = getattr(getattr(spec, "dtype", None), "name", "")
    if not name:
        return ""
    return f"{name}[?]" if rank is None else f"{name}[{', '.join('?' * rank)}]"
