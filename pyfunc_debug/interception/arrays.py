"""Arrays that Keras takes and gives in silence: a column of predictions, and classes that it reads out of labels."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from pyfunc_debug.events import Notice, Observer
from pyfunc_debug.interception.calls import drop_our_frame
from pyfunc_debug.interception.names import private
from pyfunc_debug.program.frames import own_frame

_LARGEST = 20_000_000
_LOOKS = 3
"""How often one line is looked at."""
_LIBRARIES = ("numpy", "tensorflow", "pandas", "scipy")
"""Packages whose objects are asked for their shape: a property of the user's would run."""
_REACHED = {
    "sigmoid": (0.0, 1.0), "softmax": (0.0, 1.0), "hard_sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0),
    "relu": (0.0, float("inf")), "softplus": (0.0, float("inf")), "relu6": (0.0, 6.0),
}  # fmt: skip
"""The least and the most that an activation gives."""
_NEAR = 1e-3
_MOST = 100
"""So much of classes is noted."""


class Arrays:
    """Looks at predictions and at weights of classes.

    Args:
      observer: Who is notified.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._looks: dict[tuple[str, int], int] = {}

    def predicted(self, original: Any) -> Any:
        """The replacement of `potentially_ragged_concat`, which joins what `predict` gives."""
        return self._watched(original, "looking at what predict gives", self._column)

    def compiled(self, original: Any) -> Any:
        """The replacement of `_get_metrics_result_or_logs`, which a model calls at the end of each epoch."""

        def look(_: Any, args: tuple[Any, ...]) -> None:
            user = self._user()
            if user is not None and len(args) > 1 and args[1] == {}:  # no step has run
                self._empty(user, sys._getframe(2))
            if user is not None:
                self._beyond(user, sys._getframe(2), args[0])
                self._counted(user, sys._getframe(2))
            facts = private.keras_output(args[0]) if user is not None else None
            if facts is not None:
                file = user.f_code.co_filename
                self._observer.notice(
                    Notice.COMPILED_LOSS, None, None, file=file, line=user.f_lineno, sources=[file], **facts
                )

        return self._watched(original, "looking at a model's loss and its last layer", look)

    def lambda_called(self, original: Any) -> Any:
        """The replacement of `Lambda.call`, whose function may give another shape than its output_shape says."""

        def look(found: Any, args: tuple[Any, ...]) -> None:
            sizes = private.declared_sizes(args[0])
            shape = getattr(found, "shape", None) if sizes is not None else None
            if sizes is None or shape is None or getattr(shape, "rank", 0) is None:
                return
            given = tuple(shape)[1:]
            if not tuple(shape) or (
                len(given) == len(sizes) and all(one in (None, size) for one, size in zip(given, sizes))
            ):
                return
            user = self._user()
            if user is not None:
                self._observer.notice(
                    Notice.LAMBDA_SHAPE, None, None, file=user.f_code.co_filename, line=user.f_lineno,
                    sizes=list(sizes), given=list(given), name=str(args[0].name), sources=[user.f_code.co_filename],
                )  # fmt: skip

        return self._watched(original, "looking at the shape that a Lambda gives", look)

    def weighted(self, original: Any) -> Any:
        """The replacement of `class_weight_to_sample_weights`, which reads a class out of each label."""
        return self._watched(original, "looking at the labels of class_weight", self._labels)

    def weighted_dataset(self, original: Any) -> Any:
        """The replacement of `TFDatasetAdapter.__init__`, which does that for a dataset."""

        def look(_: Any, args: tuple[Any, ...]) -> None:
            weights = next((one for one in args if type(one) is dict and one), None)
            labels = private.sliced_labels(args[1]) if weights is not None else None
            if weights is None or labels is None or labels.dtype.kind not in "biuf" or not labels.size:
                return
            if _classes(labels).max() <= max(weights):  # else it fails
                self._labels(None, (labels, weights))

        return self._watched(original, "looking at the labels of class_weight", look)

    def _watched(self, original: Any, what: str, look: Callable[[Any, tuple[Any, ...]], None]) -> Any:
        @functools.wraps(original)
        def watched(*args: Any, **options: Any) -> Any:
            try:
                found = original(*args, **options)
            except BaseException as error:
                drop_our_frame(error)
                raise
            try:
                look(found, (*args, *options.values()))
            except Exception as trouble:
                self._observer.trouble(what, trouble)
            return found

        return watched

    def _user(self) -> Any:
        """The user's frame; None where its line was looked at often enough."""
        user = own_frame(sys._getframe(3))
        if user is None:
            return None
        place = user.f_code.co_filename, user.f_lineno
        self._looks[place] = self._looks.get(place, 0) + 1
        return user if self._looks[place] <= _LOOKS else None

    def _empty(self, user: Any, keras: Any) -> None:
        """Notices that `fit` or `evaluate` was given an array without a row."""
        x = keras.f_locals.get("x")
        given: Any = getattr(x, "shape", None) if type(x).__module__.partition(".")[0] in _LIBRARIES else None
        shape = tuple(given) if isinstance(given, tuple) or type(given).__name__ == "TensorShape" else ()
        method = keras.f_code.co_name
        if method not in ("fit", "evaluate") or not shape or shape[0] != 0:
            return
        validates = bool(keras.f_locals.get("use_cached_eval_dataset", False))
        self._observer.notice(
            Notice.EMPTY_FIT, None, None, file=user.f_code.co_filename, line=user.f_lineno, method=method,
            shape=[int(one) for one in shape], validates=validates,
            epochs=max(0, int(keras.f_locals.get("epochs") or 1) - int(keras.f_locals.get("initial_epoch") or 0)),
            sources=[user.f_code.co_filename],
        )  # fmt: skip

    def _beyond(self, user: Any, keras: Any, model: Any) -> None:
        """Notices targets that the last layer's activation never gives, and rows of several ones for a softmax."""
        if keras.f_code.co_name != "fit":
            return
        reach = private.keras_reach(model)
        ends = _REACHED.get(reach[1]) if reach is not None else None
        if reach is None or ends is None or "sparse" in reach[2]:
            return
        x, y = keras.f_locals.get("x"), keras.f_locals.get("y")
        found: Any = y if y is not None else private.sliced_labels(x) if hasattr(x, "element_spec") else None
        found = found.numpy() if private.is_eager(found) else found
        if type(found).__module__ != "numpy" or getattr(found, "dtype", None) is None or found.dtype.kind not in "biuf":
            return
        if not 0 < found.size <= _LARGEST:
            return
        least, most = float(found.min()), float(found.max())
        shared = reach[1] == "softmax" and reach[2] == "binary_crossentropy" and found.ndim > 1
        several = int((found.sum(axis=-1) > 1).sum()) if shared and least >= 0 else 0
        if not several and ends[0] - _NEAR <= least and most <= ends[1] + _NEAR:
            return
        if least != least or most != most:  # NaN
            return
        self._observer.notice(
            Notice.TARGET_RANGE, None, None, file=user.f_code.co_filename, line=user.f_lineno, layer=reach[0],
            activation=reach[1], loss=reach[2], ends=[least, most], several=several, rows=int(found.shape[0]),
            itself=y is not None and y is x, sources=[user.f_code.co_filename],
        )  # fmt: skip

    def _counted(self, user: Any, keras: Any) -> None:
        """Notices how many steps of how many rows of a generator `fit` took for an epoch, if the call says so."""
        steps = keras.f_locals.get("steps_per_epoch") if keras.f_code.co_name == "fit" else None
        rows = private.generated_rows(keras.f_locals.get("epoch_iterator")) if isinstance(steps, int) else None
        if rows is not None and rows > 1:
            self._observer.notice(
                Notice.COUNTED_STEPS, None, None, file=user.f_code.co_filename, line=user.f_lineno, steps=steps,
                rows=rows, sources=[user.f_code.co_filename],
            )  # fmt: skip

    def _column(self, found: Any, _: tuple[Any, ...]) -> None:
        """Notices names of as many numbers in a row as there are predictions in a column."""
        shape = tuple(getattr(found, "shape", ()))
        user = self._user() if len(shape) == 2 and shape[1] == 1 and shape[0] > 1 else None
        if user is None:
            return
        flat = {
            name: kind for name, value in {**user.f_globals, **user.f_locals}.items()
            if not name.startswith("__") and (kind := _flat(value, shape[0]))
        }  # fmt: skip
        self._observer.notice(
            Notice.PREDICTED_COLUMN, None, None, file=user.f_code.co_filename, line=user.f_lineno, rows=shape[0],
            flat=flat, numbers=_ends(found), sources=[user.f_code.co_filename],
        )  # fmt: skip

    def _labels(self, _: Any, args: tuple[Any, ...]) -> None:
        """Notices labels of several classes a row, and weights of classes that are none."""
        import numpy as np

        labels, weights = args[:2]
        self._missed(labels, weights)
        if not isinstance(labels, np.ndarray) or labels.ndim != 2 or labels.shape[1] < 2 or labels.size > _LARGEST:
            return
        if labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1)).all():
            return
        ones = (labels != 0).sum(axis=1)
        user = self._user() if (ones > 1).any() else None
        if user is not None:
            self._observer.notice(
                Notice.LABEL_WEIGHTS, None, None, file=user.f_code.co_filename, line=user.f_lineno, rows=len(labels),
                columns=int(labels.shape[1]), several=int((ones > 1).sum()), none=int((ones == 0).sum()),
                classes=sorted(int(one) for one in weights), sources=[user.f_code.co_filename],
            )  # fmt: skip

    def _missed(self, labels: Any, weights: dict[Any, Any]) -> None:
        """Notices that some labels have no weight while weights are for no label."""
        import numpy as np

        if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "biuf" or not 0 < labels.size <= _LARGEST:
            return
        found, counts = np.unique(_classes(labels), return_counts=True)
        rows = dict(zip(found.tolist(), counts.tolist()))
        missed = [one for one in rows if one not in weights]
        unused = [one for one in weights if one not in rows]
        user = self._user() if missed and unused else None
        if user is not None:
            self._observer.notice(
                Notice.MISSED_WEIGHTS, None, None, file=user.f_code.co_filename, line=user.f_lineno,
                rows=labels.shape[0], missed=missed[:_MOST], missed_rows=sum(rows[one] for one in missed),
                labels=list(rows)[:_MOST],
                unused=[one if type(one) is str else int(one) for one in unused[:_MOST]],
                sources=[user.f_code.co_filename],
            )  # fmt: skip


def _classes(labels: Any) -> Any:
    """The class of each row, as Keras reads it."""
    if labels.ndim > 1:
        labels = labels.argmax(axis=-1) if labels.shape[-1] != 1 else labels[..., 0]
    return labels.round().astype("int64")


def _ends(found: Any) -> list[float] | None:
    """The smallest and the largest of some numbers, and how many are fractions; None where they are not finite."""
    import numpy as np

    found = np.asarray(found)
    if found.dtype.kind != "f" or found.size > _LARGEST or not np.isfinite(found).all():
        return None
    return [float(found.min()), float(found.max()), int((np.mod(found, 1) != 0).sum())]


def _flat(value: Any, rows: int) -> str:
    """The kind of a row of this number of values: an array (or tensor), a series of pandas', a list; "" for others."""
    kind = type(value)
    if kind is list:
        return "list" if len(value) == rows and type(value[0]) in (bool, int, float) else ""
    module = kind.__module__.partition(".")[0]
    if module not in ("numpy", "pandas", "tensorflow") or not hasattr(kind, "shape"):
        return ""
    if module == "tensorflow" and kind.__name__ != "EagerTensor":
        return ""
    if tuple(getattr(value, "shape", ())) != (rows,):
        return ""
    return {"pandas": "series"}.get(module, "array")
