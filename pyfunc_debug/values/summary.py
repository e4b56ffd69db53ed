"""One value, in a line of text and a few numbers.

Statistics are over finite elements and computed in float64. Above `EXACT_ELEMENTS` all but the counts of NaN and Inf
come from evenly spaced elements, and `sampled` says how many. The plain element types are read in place by an optional
C extension (_statistics.c), all others, or all without it, by NumPy, which does the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.values.digest import digest_of
from pyfunc_debug.values.policy import Policy

statistics: Callable[[Any], Any] | None
try:
    from pyfunc_debug.values._statistics import Numbers, statistics
except ImportError:  # installed without a compiler
    statistics = None

EXACT_ELEMENTS = 1 << 16
"""Up to this many elements all statistics are exact."""
HISTOGRAM_ELEMENTS = 2048
BINS = 20
FEW_ELEMENTS = 32
"""Up to this many elements plain Python is quicker than NumPy."""
SAMPLE_ELEMENTS = 1024
"""How many elements the `sample` policy keeps."""
_STRING_SHOWN = 60
_NAMES: dict[Any, str] = {}


def _name(dtype: Any) -> str:
    """`dtype.name`, which NumPy computes each time."""
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = dtype.name
    return name


@dataclass(slots=True)
class Summary:
    """What is stored of a value; see `pyfunc_debug.records.Value` for the fields.

    `data` is the array to keep under `kept`, still to be encoded; `digest` that of all elements, see values/digest.py.
    """

    dtype: str
    shape: tuple[int, ...] | None
    nbytes: int | None = None
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    nan: int | None = None
    inf: int | None = None
    zeros: int | None = None
    sampled: int | None = None
    histogram: tuple[int, ...] = ()
    text: str = ""
    note: str = ""
    kept: str = ""
    data: Any = None
    digest: bytes | None = None


def summarize(held: Any, policy: Policy) -> Summary:
    """Makes the summary of a held value (`values.capture.Held`). Never raises."""
    try:
        thing = held.thing
        if isinstance(thing, Summary):
            return thing
        if statistics is not None and isinstance(thing, Numbers):
            return _read_in_place(thing, _name(held.dtype))
        if thing is None:
            return _typed(held)
        if isinstance(thing, np.ndarray):
            return summarize_array(thing, policy)
        if isinstance(thing, bytes):  # NumPy's own bytes lose the zeros at their end
            return summarize_array(np.array(bytes(thing), object), policy)
        if hasattr(thing, "dtype") and hasattr(thing, "shape"):
            return _tensor(thing, policy)
        return summarize_array(np.asarray(thing), policy)
    except Exception as error:
        return Summary("?", None, text="?", note=f"not read: {type(error).__name__}: {error}"[:200])


def _typed(held: Any) -> Summary:
    """Only type and shape are known."""
    dtype = getattr(held.dtype, "name", str(held.dtype))
    dtype = "string" if dtype == "object" else dtype
    shape = _shape(held.shape)
    nbytes = None
    if shape is not None and dtype not in ("string", "variant", "resource"):
        size = getattr(held.dtype, "size", None) or getattr(held.dtype, "itemsize", None)
        nbytes = None if size is None else int(size) * math.prod(shape)
    return Summary(dtype, shape, nbytes=nbytes, text=f"{type_text(dtype, shape)} {held.note}".rstrip(), note=held.note)


def _shape(shape: Any) -> tuple[int, ...] | None:
    try:
        return tuple(int(dim) for dim in shape)
    except (TypeError, ValueError):
        return None


def type_text(dtype: str, shape: tuple[int, ...] | None) -> str:
    """`float32[2, 3]`."""
    return dtype if shape is None else f"{dtype}[{', '.join(map(str, shape))}]"


def _tensor(tensor: Any, policy: Policy) -> Summary:
    dtype = tensor.dtype
    name = getattr(dtype, "name", str(dtype))
    if name in ("resource", "variant"):  # named, not read: reading a variant may run code
        shape = _shape(tensor.shape)
        return Summary(name, shape, text=f"{type_text(name, shape)} (not read)", note="not read")
    array = np.asarray(tensor) if isinstance(tensor, np.generic) else _array(tensor)
    return summarize_array(array, policy, name)


def _array(tensor: Any) -> Any:
    """A tensor's elements, without a copy where its memory can be read in place."""
    try:
        return np.asarray(memoryview(tensor))
    except (TypeError, ValueError, BufferError, RuntimeError, NotImplementedError):
        return np.asarray(tensor.numpy())


def summarize_array(array: np.ndarray[Any, Any], policy: Policy, dtype: str | None = None) -> Summary:
    """Makes the summary of an array, keeping elements as the policy wants."""
    with np.errstate(all="ignore"):  # the user's own settings, or a warning of ours, must not show in the program
        return _summarize_array(array, policy, dtype)


def _summarize_array(array: np.ndarray[Any, Any], policy: Policy, dtype: str | None) -> Summary:
    if array.dtype.hasobject or array.dtype.kind in "SU":
        summary = _strings(array)
    elif array.dtype.kind == "V" and array.dtype.names:  # quantised types come as one-field structures
        return _summarize_array(array[array.dtype.names[0]], policy, dtype or array.dtype.names[0])
    else:
        summary = _numbers(array, dtype or _name(array.dtype))
    if summary.digest is None:
        summary.digest = digest_of(array)
    if policy >= Policy.SAMPLE:
        whole = policy is Policy.FULL or array.size <= SAMPLE_ELEMENTS
        summary.kept = "full" if whole else "sample"
        summary.data = np.asarray(array, order="C") if whole else _spread(array, SAMPLE_ELEMENTS).copy()
    return summary


def _read_in_place(found: Numbers, dtype: str) -> Summary:
    """The summary from what `_statistics.statistics` returned."""
    shape, nbytes, only, nan, inf, zeros, low, high, mean, std, sampled, histogram, digest = found.as_tuple()
    summary = Summary(dtype, shape, nbytes, low, high, mean, std, nan, inf, zeros, sampled, histogram, digest=digest)
    if only is not None:
        summary.text = f"{type_text(dtype, shape)} {_element_text(only, dtype)}"
    elif nbytes:
        summary.text = _line(summary, "x")
    else:
        summary.text = f"{type_text(dtype, shape)} empty"
    return summary


def _element_text(item: Any, dtype: str) -> str:
    """As NumPy shows it: float32 0.1 is not 0.10000000149011612."""
    return str(np.float32(item)) if dtype == "float32" else str(item)


def _spread(array: np.ndarray[Any, Any], count: int) -> Any:
    """About `count` evenly spaced elements, flat; a view where possible."""
    flat = array.reshape(-1)
    step = max(1, -(-flat.size // count))
    # Not in step with what repeats in the data: with every third element of an image one would see one colour only.
    period = 6 * (array.shape[-1] if array.ndim and array.shape[-1] else 1)
    while step > 1 and math.gcd(step, period) > 1:
        step += 1
    return flat[::step]


def _numbers(array: np.ndarray[Any, Any], dtype: str) -> Summary:
    shape = array.shape
    found = statistics(array) if statistics is not None else None
    if found is not None:
        return _read_in_place(found, dtype)
    summary = Summary(dtype, shape, nbytes=int(array.nbytes))
    if array.size == 0:
        summary.nan = summary.inf = summary.zeros = 0
        summary.text = f"{type_text(dtype, shape)} empty"
        return summary
    if array.size == 1:
        return _scalar(array, summary)
    complex_ = array.dtype.kind == "c"
    if complex_:
        array = np.abs(array)
    if array.size <= FEW_ELEMENTS:
        _few([float(item) for item in array.reshape(-1).tolist()], summary)
        summary.text = _line(summary, "|x|" if complex_ else "x")
        return summary
    floating = array.dtype.kind == "f" or array.dtype.kind == "V" or _name(array.dtype).startswith(("bfloat", "float"))
    seen = array
    if array.size > EXACT_ELEMENTS:
        seen = _spread(array, EXACT_ELEMENTS)
        summary.sampled = int(seen.size)
    values = finite = seen.astype(np.float64).reshape(-1)
    summary.nan = summary.inf = 0
    if summary.sampled is None:  # of a sample it would be no count
        summary.zeros = 0
    if floating:
        finite = _count_odd(array, seen, values, summary)
    if finite.size:
        _describe(finite, _spread(values, HISTOGRAM_ELEMENTS), summary)
    summary.text = _line(summary, "|x|" if complex_ else "x")
    return summary


def _count_odd(
    array: np.ndarray[Any, Any], seen: np.ndarray[Any, Any], values: np.ndarray[Any, Any], summary: Summary
) -> Any:
    """Counts NaN and Inf among all elements; returns the finite ones of `values`."""
    if seen is array:
        good = np.isfinite(values)
        bad = values.size - int(np.count_nonzero(good))
        if bad:
            summary.nan = int(np.count_nonzero(np.isnan(values)))
            summary.inf = bad - summary.nan
            return values[good]
        return values
    flat = array.reshape(-1)
    nan = inf = 0
    for start in range(0, flat.size, EXACT_ELEMENTS):  # in pieces that stay in the cache
        piece = flat[start : start + EXACT_ELEMENTS]
        bad = piece.size - int(np.count_nonzero(np.isfinite(piece)))
        if bad:
            count = int(np.count_nonzero(np.isnan(piece)))
            nan, inf = nan + count, inf + bad - count
    summary.nan, summary.inf = nan, inf
    return values[np.isfinite(values)]


def _describe(finite: np.ndarray[Any, Any], few: np.ndarray[Any, Any], summary: Summary) -> None:
    low, high = float(finite.min()), float(finite.max())
    mean = float(finite.sum()) / finite.size
    if math.isfinite(mean):
        centred = finite - mean
        variance = float(np.dot(centred, centred)) / finite.size
        summary.mean, summary.std = mean, math.sqrt(variance) if math.isfinite(variance) else None
    summary.min, summary.max = low, high
    summary.zeros = finite.size - int(np.count_nonzero(finite))
    if summary.sampled is not None:
        summary.zeros = None  # an estimate is not a count
    if high > low and math.isfinite(high - low) and math.isfinite(BINS / (high - low)):
        few = few[np.isfinite(few)]
        positions = ((few - low) * (BINS / (high - low))).astype(np.intp)
        np.minimum(positions, BINS - 1, out=positions)
        summary.histogram = tuple(np.bincount(positions, minlength=BINS).tolist())


def _few(items: list[float], summary: Summary) -> None:
    """The same as `_count_odd` and `_describe`, for a handful of elements."""
    summary.zeros = 0
    finite = [item for item in items if item - item == 0.0]  # not so for NaN and Inf
    odd = len(items) - len(finite)
    summary.nan = sum(item != item for item in items) if odd else 0
    summary.inf = odd - summary.nan
    if not finite:
        return
    low, high, count = min(finite), max(finite), len(finite)
    summary.min, summary.max, summary.zeros = low, high, finite.count(0.0)
    try:
        mean = summary.mean = math.fsum(finite) / count
        summary.std = math.sqrt(math.fsum((item - mean) ** 2 for item in finite) / count)
    except OverflowError:  # near the largest float64: not known rather than wrong
        pass
    if high > low and math.isfinite(high - low) and math.isfinite(BINS / (high - low)):
        bins, scale = [0] * (BINS + 1), BINS / (high - low)
        for item in finite:
            bins[int((item - low) * scale)] += 1
        bins[BINS - 1] += bins.pop()
        summary.histogram = tuple(bins)


def _scalar(array: np.ndarray[Any, Any], summary: Summary) -> Summary:
    """One element: plain Python is quicker than NumPy."""
    value = array.reshape(-1)[0]
    if array.dtype.kind == "c":
        magnitude = float(abs(value))
        text = str(value.item())
    else:
        magnitude = float(value)
        text = "nan" if magnitude != magnitude else str(value)
    summary.nan = int(magnitude != magnitude)
    summary.inf = int(math.isinf(magnitude))
    summary.zeros = int(magnitude == 0)
    if math.isfinite(magnitude):
        summary.min = summary.max = summary.mean = magnitude
        summary.std = 0.0
    summary.text = f"{type_text(summary.dtype, summary.shape)} {text}"
    return summary


def _strings(array: np.ndarray[Any, Any]) -> Summary:
    summary = Summary("string", array.shape)
    flat = array.reshape(-1)
    shown = ", ".join(safe_text(item) for item in flat[:3])
    more = f", ... {flat.size - 3} more" if flat.size > 3 else ""
    summary.zeros = None
    summary.text = f"{type_text('string', array.shape)} {shown}{more}".rstrip() if flat.size else "string[0] empty"
    if flat.size == 0:
        summary.text = f"{type_text('string', array.shape)} empty"
    return summary


def safe_text(item: Any) -> str:
    """A string or bytes as a short quoted text without control characters."""
    if isinstance(item, bytes):
        try:
            decoded = item[: _STRING_SHOWN * 4].decode()
            text = repr(decoded) if decoded.isprintable() else repr(item[:_STRING_SHOWN])
        except UnicodeDecodeError:
            text = repr(item[:_STRING_SHOWN])
    else:
        text = repr(str(item))
    return text if len(text) <= _STRING_SHOWN else f"{text[: _STRING_SHOWN - 4]}...{text[0]}"


def _line(summary: Summary, symbol: str) -> str:
    """`float32[32, 224, 224, 3] x∈[0., 1.] μ=0.45 σ=0.27 NaN 3`."""
    parts = [type_text(summary.dtype, summary.shape)]
    where = ""
    if summary.min is not None and summary.max is not None:
        low, high = short(summary.min), short(summary.max)
        if low == high and not (summary.nan or summary.inf):
            where = " everywhere" if summary.sampled is None else f" in all {summary.sampled:,} elements looked at"
        parts.append(f"{symbol}={low}{where}" if low == high else f"{symbol}∈[{low}, {high}]")
        if summary.mean is not None and low != high:
            parts.append(f"μ={short(summary.mean)}")
            if summary.std is not None:
                parts.append(f"σ={short(summary.std)}")
    if summary.nan:
        parts.append(f"NaN {summary.nan:,}")
    if summary.inf:
        parts.append(f"Inf {summary.inf:,}")
    if summary.sampled is not None and not where:
        parts.append(f"(range from {summary.sampled:,} elements)")
    return " ".join(parts)


def short(number: float) -> str:
    """A number in three significant digits; whole numbers as they are."""
    if number == int(number) and abs(number) < 1e6:
        return f"{int(number)}"
    return f"{number:.3g}"
