"""Rows that Keras' `fit` takes for its validation: the last ones, as they stand, whose classes may be others."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

from pyfunc_debug.events import Notice, Observer
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.program.frames import own_frame

_LARGEST = 20_000_000
_EACH_CLASS = 4
"""Rows of a class at least, on average: numbers with fewer are measurements."""
_SHOWN = 5


def watched(original: Any, observer: Observer) -> Any:
    """The replacement of `train_validation_split`, which looks at the labels.

    Args:
      original: Keras' own.
      observer: Who is notified.
    """

    @functools.wraps(original)
    def train_validation_split(arrays: Any, *args: Any, **options: Any) -> Any:
        try:
            found = original(arrays, *args, **options)
        except BaseException as error:
            drop_our_frame(error)
            raise
        try:
            _look(arrays, [*args, *options.values()][0], observer.notice)
        except Exception as trouble:
            observer.trouble("looking at how fit splits its rows", trouble)
        return found

    return train_validation_split


def _look(arrays: Any, share: float, notice: Callable[..., None]) -> None:
    import numpy as np

    given, labels, *_ = arrays
    rows = _classes(labels)
    user = own_frame(sys._getframe(2))
    if rows is None or user is None:
        return
    first = math.floor(len(rows) * (1.0 - share))
    trained, validated = np.unique(rows[:first]), np.unique(rows[first:])
    changes = int((rows[1:] != rows[:-1]).sum())
    count = len(np.union1d(trained, validated))
    unseen = int(np.isin(rows[first:], np.setdiff1d(validated, trained)).sum())
    sorted_by = changes == count - 1  # each class in one place
    if count < 2 or count * _EACH_CLASS > len(rows) or not (sorted_by or unseen * 2 >= len(rows) - first):
        return
    notice(
        Notice.SORTED_SPLIT, None, None, file=user.f_code.co_filename, line=user.f_lineno, rows=len(rows),
        validated=len(rows) - first, classes=count, unseen=unseen, sorted=sorted_by,
        shown=[str(one) for one in validated[:_SHOWN]], others=max(0, len(validated) - _SHOWN),
        plain=isinstance(given, np.ndarray), sources=[user.f_code.co_filename],
    )  # fmt: skip


def _classes(labels: Any) -> Any:
    """The class of each row: a number, a text, or the column of its only one; None for labels of another kind."""
    import numpy as np

    if not isinstance(labels, np.ndarray) or labels.ndim not in (1, 2) or not 1 < labels.size <= _LARGEST:
        return None
    if labels.ndim == 2 and labels.shape[1] > 1:
        one_each = labels.dtype.kind in "biuf" and np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) == 1).all()
        return labels.argmax(axis=1) if one_each else None
    if labels.dtype.kind == "f" and not (np.mod(labels, 1) == 0).all():
        return None
    return labels.reshape(-1) if labels.dtype.kind in "biufSU" else None
