"""A recorded value in the place of an array: it answers from its statistics, and from its elements where kept."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from pyfunc_debug.errors import NotKeptError
from pyfunc_debug.records import Value

_EXACT = 2**53
"""Up to here every whole number is one of the REAL numbers in which the file keeps a minimum."""
_MOST = 1 << 20
"""A larger value that has one element everywhere is not filled in."""


class KeptValue(NDArrayOperatorsMixin):
    """What was kept of a value, behaving as the array that it was. Where that does not suffice: NotKeptError.

    Args:
      value: The recorded value.
    """

    def __init__(self, value: Value) -> None:
        self._value = value
        self._array: Any = None

    # -- what presets ask ---------------------------------------------------------------------------------------------

    def count(self, what: str) -> int:
        """How many elements are "nan" or "inf"."""
        number: int | None = getattr(self._value, what)
        if number is not None:
            return number
        if self._value.dtype == "string":
            return 0
        raise self._not_kept(f"how many elements are {what} is not known")

    def content(self) -> Hashable:
        """Equal for equal elements of one dtype and shape."""
        value = self._value
        if value.digest is None:
            raise self._not_kept("whether it changed is not known")
        return value.dtype, value.shape, value.digest

    # -- what an array has --------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """As NumPy's."""
        if self._value.shape is None:
            raise self._not_kept("its shape is not known")
        return self._value.shape

    @property
    def ndim(self) -> int:
        """As NumPy's."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """As NumPy's."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int | None:
        """As NumPy's; None for strings."""
        return self._value.nbytes

    @property
    def dtype(self) -> Any:
        """NumPy's dtype; TensorFlow's name of one that NumPy does not have."""
        try:
            return np.dtype(self._value.dtype)
        except TypeError:
            return self._value.dtype

    def max(self, *args: Any, **options: Any) -> Any:
        """As NumPy's: NaN if one element is."""
        return self._statistic("max", args, options)

    def min(self, *args: Any, **options: Any) -> Any:
        """As NumPy's: NaN if one element is."""
        return self._statistic("min", args, options)

    def mean(self, *args: Any, **options: Any) -> Any:
        """As NumPy's, computed in double precision."""
        return self._statistic("mean", args, options)

    def std(self, *args: Any, **options: Any) -> Any:
        """As NumPy's, computed in double precision."""
        return self._statistic("std", args, options)

    def _statistic(self, name: str, args: Any, options: Any) -> Any:
        value = self._value
        number: float | None = getattr(value, name)
        unclear = value.inf or value.sampled or value.dtype.startswith("complex")
        if args or options or value.kept == "full" or unclear or (number is None and not value.nan):
            return getattr(self._elements(), name)(*args, **options)
        return math.nan if value.nan else number

    def numpy(self) -> Any:
        """The elements, as a tensor gives them."""
        return self._elements()[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._elements() if dtype is None else self._elements().astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        inputs = tuple(np.asarray(one) if isinstance(one, KeptValue) else one for one in inputs)
        return getattr(ufunc, method)(*inputs, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a recorded value has no attribute {name!r}")
        return getattr(self._elements(), name)

    def __getitem__(self, key: Any) -> Any:
        return self._elements()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements())

    def __len__(self) -> int:
        return self.shape[0] if self.shape else len(self._elements())

    def __bool__(self) -> bool:
        return bool(self._elements())

    def __float__(self) -> float:
        return float(self._elements())

    def __int__(self) -> int:
        return int(self._elements())

    def __index__(self) -> int:
        return int(self._elements().__index__())

    def __contains__(self, item: Any) -> bool:
        return item in self._elements()

    def __hash__(self) -> int:
        return hash(self._elements().item())

    def __format__(self, how: str) -> str:
        return format(self._elements()[()], how)

    def __str__(self) -> str:
        return self._value.text

    def _elements(self) -> Any:
        """All elements: those kept, or those that the statistics leave no doubt about."""
        if self._array is None:
            value = self._value
            if value.kept == "full":
                self._array = value.array()
            elif self._is_one_number():
                self._array = np.full(self.shape, value.min, self.dtype)
            elif value.shape == () and value.nan == 1 and not value.dtype.startswith("complex"):
                self._array = np.full((), math.nan, self.dtype)
            else:
                raise self._not_kept("its elements were not kept")
        return self._array

    def _is_one_number(self) -> bool:
        value = self._value
        return (
            value.min is not None and value.min == value.max and abs(value.min) <= _EXACT
            and not (value.nan or value.inf or value.sampled) and value.shape is not None and self.size <= _MOST
            and not isinstance(self.dtype, str) and self.dtype.kind in "biuf"
        )  # fmt: skip

    def _not_kept(self, what: str) -> NotKeptError:
        note = f" ({self._value.note})" if self._value.note else ""
        return NotKeptError(f"{self._value.path}: {what}{note}")
