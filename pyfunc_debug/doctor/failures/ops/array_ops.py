"""Functions of NumPy's, SciPy's and OpenCV's that no single op of TensorFlow's is: what computes the same in ops.

Each text is tried on made inputs before a user reads it (`tried_ops.differs`).
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyfunc_debug.doctor.failures.ops import distances
from pyfunc_debug.doctor.failures.reading.source import dotted

_MOST = 60
"""A longer expression is not written twice."""
_SPECIAL = {
    "expit": "sigmoid", "erf": "math.erf", "erfc": "math.erfc", "gammaln": "math.lgamma", "digamma": "math.digamma",
    "psi": "math.digamma", "xlogy": "math.xlogy", "xlog1py": "math.xlog1py", "i0": "math.bessel_i0",
    "i0e": "math.bessel_i0e", "i1": "math.bessel_i1", "i1e": "math.bessel_i1e",
}  # fmt: skip
_ALONG = {"softmax": "nn.softmax", "log_softmax": "nn.log_softmax", "logsumexp": "reduce_logsumexp"}
_LINALG = {"eigh": "eigh", "eigvalsh": "eigvalsh", "slogdet": "slogdet", "expm": "expm", "logm": "logm"}
_REDUCED = {
    "add": "reduce_sum", "multiply": "reduce_prod", "maximum": "reduce_max", "minimum": "reduce_min",
    "logical_and": "reduce_all", "logical_or": "reduce_any",
}  # fmt: skip
_RUNNING = {"add": "cumsum", "multiply": "math.cumprod"}
_GRAY = {"BGR": (0.114, 0.587, 0.299), "RGB": (0.299, 0.587, 0.114)}
OPENCV = "cv2"
PICKED = ("histogram", "eye", "identity", "threshold")
"""Functions of whose results a part is taken: see `of_subscript`."""


@dataclass(frozen=True)
class _Call:
    """A call whose arguments are ops already.

    Attributes:
      args, keywords: Texts of its arguments.
      nodes: The arguments by position or name, for those that are read as they are written.
      made: What each argument by position gives on made inputs; None for those that are not known.
      shape: Static sizes of the first one, None for a size that is not known.
      tf, owner: How the user's module calls TensorFlow, and the package whose function it is.
    """

    args: list[str]
    keywords: dict[str, str]
    nodes: dict[int | str, ast.expr]
    made: list[Any]
    tf: str
    owner: str

    def text(self, place: int, name: str) -> str | None:
        """An argument by position or name."""
        return self.args[place] if len(self.args) > place else self.keywords.get(name)

    def value(self, place: int, name: str, default: Any = None) -> Any:
        """An argument that is written as a value; `default` where it is left out; Ellipsis where it is computed."""
        node = self.nodes.get(place, self.nodes.get(name))
        if node is None:
            return default
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            return ...

    def only(self, *names: str) -> bool:
        """Whether no other keywords are given, and no more arguments than these and the first one."""
        return set(self.keywords) <= set(names) and len(self.args) <= 1 + len(names)

    @property
    def x(self) -> str:
        return self.args[0] if self.args else ""

    @property
    def plain(self) -> str:
        """The first argument, where it may stand more than once and in front of an index."""
        return self.x if len(self.x) <= _MOST else ""

    @property
    def indexed(self) -> str:
        return self.x if self.x.replace(".", "").replace("_", "").isalnum() else f"({self.x})"

    @property
    def masked(self) -> bool:
        """Whether it computes some elements only, and leaves 0 for the others."""
        return set(self.keywords) == {"out", "where"} and ".zeros" in self.keywords["out"]

    @property
    def rank(self) -> int | None:
        return getattr(self.made[0], "ndim", None) if self.made else None

    def axis(self, place: int = 1, default: int | None = None) -> int | None:
        """The axis, counted from the first one; None where it is left out or not known."""
        found = self.value(place, "axis", default)
        if not isinstance(found, int) or self.rank is None or not -self.rank <= found < self.rank:
            return None
        return found % self.rank

    def array(self, place: int) -> Any:
        """What an argument gives on made inputs; None where that is not known."""
        return self.made[place] if len(self.made) > place else None


def in_array_ops(call: ast.Call, written: ast.Call, made: list[Any], tf: str) -> str | None:
    """The call in TensorFlow's ops; None where none of these forms fits.

    Args:
      call: The call, its arguments in ops already.
      written: The call as the user wrote it.
      made: What its arguments by position give on made inputs, None where that is not known.
      tf: How the user's module calls TensorFlow.
    """
    name = dotted(written.func)
    parts, last = name.split("."), name.rpartition(".")[2]
    if not call.args or any(one.arg is None for one in call.keywords):
        return None
    nodes: dict[int | str, ast.expr] = dict(enumerate(written.args))
    nodes.update({one.arg: one.value for one in written.keywords if one.arg is not None})
    known = _Call(
        [ast.unparse(one) for one in call.args], {str(one.arg): ast.unparse(one.value) for one in call.keywords},
        nodes, made, tf, parts[0],
    )  # fmt: skip
    if len(parts) > 2 and last in ("accumulate", "reduce"):
        return _of_ufunc(known, parts[-2], last)
    if len(parts) > 2 and parts[-2] == "linalg":
        if last == "svd" and known.value(9, "compute_uv") is False:
            return f"{tf}.linalg.svd({known.x}, compute_uv=False)"
        return f"{tf}.linalg.{_LINALG[last]}({known.x})" if last in _LINALG and known.only() else None
    if len(parts) > 2 and parts[-2] == "norm":
        return _normal(known, last)
    form = _FORMS.get(last)
    if form is None and not call.keywords and parts[0] in ("scipy", "sklearn"):
        return distances.in_ops(last, call.args, made, tf)
    return form(known) if form is not None else None


def of_subscript(node: ast.Subscript, call: ast.Call, made: list[Any], index: str, tf: str) -> str | None:
    """`np.histogram(x, bins=8, range=(0, 1))[0]`, `np.eye(5)[labels]`, `cv2.threshold(x, t, 1, ...)[1]` in ops.

    Args:
      node: The expression as it is written.
      call: Its call, the arguments in ops already.
      made: What its arguments give on made inputs.
      index: The index in ops.
      tf: How the user's module calls TensorFlow.
    """
    assert isinstance(node.value, ast.Call)
    written = node.value
    last, place = dotted(written.func).rpartition(".")[2], getattr(node.slice, "value", None)
    texts = [ast.unparse(one) for one in call.args]
    named = {str(one.arg): ast.unparse(one.value) for one in call.keywords}
    if last in ("eye", "identity") and len(texts) == 1 and set(named) <= {"dtype"}:
        dtype = named.get("dtype", "float64").rpartition(".")[2].strip("'\"")
        dtype = {"float": "float64", "int": "int64"}.get(dtype, dtype)
        return f"{tf}.one_hot({index}, {texts[0]}, dtype={tf}.{dtype})"
    if last == "histogram" and place == 0 and set(named) <= {"bins", "range"} and 0 < len(texts) < 4:
        bins = texts[1] if len(texts) > 1 else named.get("bins", "10")
        limits = texts[2] if len(texts) > 2 else named.get("range")
        x = texts[0]
        kept = x
        if limits is not None:
            try:
                low, high = ast.literal_eval(limits)
            except (ValueError, TypeError):
                return None
            kept, limits = f"{tf}.boolean_mask({x}, ({x} >= {low}) & ({x} <= {high}))", f"[{low:.7g}, {high:.7g}]"
            limits = f"[{float(low)!r}, {float(high)!r}]"
        elif bins.isdigit():
            limits = f"[{tf}.reduce_min({x}), {tf}.reduce_max({x})]"
        return (
            f"{tf}.histogram_fixed_width({kept}, {limits}, {bins}, dtype={tf}.int64)"
            if bins.isdigit() and len(x) <= _MOST else None
        )  # fmt: skip
    if (
        last == "threshold"
        and place == 1
        and len(texts) == 4
        and texts[3].endswith((".THRESH_BINARY", ".THRESH_TOZERO"))
    ):
        x = texts[0]
        above = x if texts[3].endswith("TOZERO") else texts[2]
        zero = f"{tf}.zeros_like({x})"
        over = above if above == x else f"{tf}.cast({above}, {x}.dtype)"
        return f"{tf}.where({x} > {texts[1]}, {over}, {zero})" if x.isidentifier() else None
    return None


def _of_ufunc(known: _Call, ufunc: str, how: str) -> str | None:
    """`np.maximum.accumulate(x, axis=1)` and `np.add.reduce(x)`, which go along the first axis."""
    if not known.only("axis"):
        return None
    tf, axis = known.tf, known.axis(default=0)
    if how == "reduce":
        return f"{tf}.{_REDUCED[ufunc]}({known.x}, axis={axis})" if ufunc in _REDUCED and axis is not None else None
    if ufunc == "add" or ufunc == "multiply":
        return (
            None if axis is None else f"{tf}.{'cumsum' if ufunc == 'add' else 'math.cumprod'}({known.x}, axis={axis})"
        )
    if ufunc not in ("maximum", "minimum") or axis is None or known.rank is None:
        return None
    if axis == 0:
        return f"{tf}.scan({tf}.{ufunc}, {known.x})"
    order = "" if known.rank == 2 else f", {[axis, *(one for one in range(known.rank) if one != axis)]}"
    if known.rank > 2:
        return None
    return f"{tf}.transpose({tf}.scan({tf}.{ufunc}, {tf}.transpose({known.x}{order})))"


def _normal(known: _Call, last: str) -> str | None:
    """SciPy's normal distribution."""
    if last == "cdf" and known.only():
        return f"(1 + {known.tf}.math.erf({known.indexed} / 2 ** 0.5)) / 2"
    if last == "pdf" and known.only():
        return f"{known.tf}.exp(-{known.indexed} ** 2 / 2) / 2.5066282746310002"
    return None


def _special(last: str) -> Callable[[_Call], str | None]:
    def form(known: _Call) -> str | None:
        whole = not known.keywords and (len(known.args) == 1 or last.startswith("xlog"))
        return f"{known.tf}.{_SPECIAL[last]}({', '.join(known.args)})" if whole else None

    return form


def _along(last: str) -> Callable[[_Call], str | None]:
    def form(known: _Call) -> str | None:
        if not known.only("axis", "keepdims") or len(known.args) > 2:
            return None
        axis = known.text(1, "axis")
        if axis is None and last != "logsumexp":
            return f"{known.tf}.{_ALONG[last]}({known.x})" if known.rank == 1 else None
        kept = f", keepdims={known.keywords['keepdims']}" if "keepdims" in known.keywords else ""
        along = "" if axis is None else f", axis={axis}"
        return f"{known.tf}.{_ALONG[last]}({known.x}{along}{kept})"

    return form


def _cov(known: _Call) -> str | None:
    x, tf = known.plain, known.tf
    if not x or not known.only() or known.rank != 2:
        return None
    centred = f"{x} - {tf}.reduce_mean({x}, 1, keepdims=True)"
    count = f"{tf}.cast({tf}.shape({x})[1] - 1, {known.indexed}.dtype)"
    return f"{tf}.matmul({centred}, {centred}, transpose_b=True) / {count}"


def _gradient(known: _Call) -> str | None:
    x, tf = known.plain and known.indexed, known.tf
    step = known.text(1, "") if len(known.args) == 2 else None
    axis = known.axis(place=9, default=0 if known.rank == 1 else None)
    if not x or set(known.keywords) - {"axis"} or len(known.args) > 2 or axis is None or known.array(0) is None:
        return None
    if step is not None and getattr(known.array(1), "ndim", 1) != 0:
        return None
    at = ":, " * axis
    text = (
        f"{tf}.concat([{x}[{at}1:2] - {x}[{at}:1], ({x}[{at}2:] - {x}[{at}:-2]) / 2, {x}[{at}-1:] - {x}[{at}-2:-1]], "
        f"{axis})"
    )
    return text if step is None else f"{text} / {step}"


def _interp(known: _Call) -> str | None:
    """Linear interpolation, of new places between fixed points or of fixed places between new values."""
    if len(known.args) != 3 or known.keywords:
        return None
    points, values = known.value(1, ""), known.value(2, "")
    tf, np, x = known.tf, known.owner, known.indexed
    tainted = [str(ast.unparse(known.nodes[place])) != known.args[place] for place in (1, 2)]
    if any(tainted):
        return None
    if _numbers(points) and _numbers(values) and 1 < len(points) == len(values) <= 8:
        steps = [b - a for a, b in itertools.pairwise(points)]
        rises = [float(b - a) for a, b in itertools.pairwise(values)]
        if min(steps) <= 0:
            return None
        if len(points) == 2:
            part = f"{tf}.clip_by_value(({x} - {points[0]}) / {steps[0]}, 0, 1)"
            base = f"{float(values[0])!r} + " if values[0] else ""
            return f"{base}{part} * {rises[0]!r}" if rises[0] != 1 else f"{base}{part}"
        inside = f"({x}[..., {tf}.newaxis] - {[float(one) for one in points[:-1]]}) / {[float(one) for one in steps]}"
        base = f"{float(values[0])!r} + " if values[0] else ""
        return f"{base}{tf}.reduce_sum({tf}.clip_by_value({inside}, 0, 1) * {rises}, -1)"
    if known.array(1) is None or known.array(2) is None or getattr(known.array(1), "ndim", 0) != 1:
        return None
    xs, ys = known.args[1], known.args[2]
    inside = f"({x}[..., {tf}.newaxis] - {np}.float32({xs})[:-1]) / {np}.diff({np}.float32({xs}))"
    return (
        f"{np}.float32({ys})[0] + {tf}.reduce_sum({tf}.clip_by_value({inside}, 0, 1) * {np}.diff({np}.float32({ys})), "
        "-1)"
    )


def _numbers(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(type(one) in (int, float) for one in value)


def _convolve(known: _Call) -> str | None:
    kernel, mode = known.array(1), known.value(2, "mode", "full")
    if kernel is None or known.rank != 1 or kernel.ndim != 1 or mode not in ("full", "same", "valid"):
        return None
    if len(known.args) > 3 or set(known.keywords) - {"mode", "method"}:
        return None
    size, tf, np = len(kernel), known.tf, "np" if known.owner in ("scipy", "signal") else known.owner
    before, after = {"full": (size - 1, size - 1), "same": (size // 2, (size - 1) // 2), "valid": (0, 0)}[mode]
    x = known.x if mode == "valid" else f"{tf}.pad({known.x}, [[{before}, {after}]])"
    x = x if mode != "valid" else known.indexed
    turned = f"{np}.float32({known.args[1]})[::-1, {tf}.newaxis, {tf}.newaxis]"
    return f'{tf}.nn.conv1d({x}[{tf}.newaxis, :, {tf}.newaxis], {turned}, 1, "VALID")[0, :, 0]'


def _convolve2d(known: _Call) -> str | None:
    kernel, mode = known.array(1), known.value(2, "mode", "full")
    if kernel is None or known.rank != 2 or kernel.ndim != 2 or mode not in ("full", "same", "valid"):
        return None
    if len(known.args) > 3 or set(known.keywords) - {"mode"}:
        return None
    tf, ends = known.tf, {"full": lambda size: [size - 1, size - 1], "same": lambda size: [size // 2, (size - 1) // 2]}
    pads = [ends[mode](size) for size in kernel.shape] if mode != "valid" else []
    x = known.indexed if mode == "valid" else f"{tf}.pad({known.x}, {pads})"
    turned = f"{tf}.cast({known.args[1]}, {tf}.float32)[::-1, ::-1, {tf}.newaxis, {tf}.newaxis]"
    return f'{tf}.nn.conv2d({x}[{tf}.newaxis, :, :, {tf}.newaxis], {turned}, 1, "VALID")[0, :, :, 0]'


def _searched(known: _Call, edges: str, x: str, side: str) -> str:
    tf = known.tf
    return (
        f'{tf}.reshape({tf}.searchsorted({edges}, {tf}.reshape({x}, [-1]), side="{side}", out_type={tf}.int64), '
        f"{tf}.shape({x}))"
    )


def _searchsorted(known: _Call) -> str | None:
    side = known.value(2, "side", "left")
    if len(known.args) not in (2, 3) or set(known.keywords) - {"side"} or side not in ("left", "right"):
        return None
    return _searched(known, known.args[0], known.args[1], side) if len(known.args[1]) <= _MOST else None


def _digitize(known: _Call) -> str | None:
    right = known.value(2, "right", False)
    if len(known.args) not in (2, 3) or set(known.keywords) - {"right"} or right not in (True, False):
        return None
    return _searched(known, known.args[1], known.x, "left" if right else "right") if known.plain else None


def _unique(known: _Call) -> str | None:
    return f"{known.tf}.sort({known.tf}.unique({known.tf}.reshape({known.x}, [-1]))[0])" if known.only() else None


def _nan_to_num(known: _Call) -> str | None:
    x, tf = known.plain, known.tf
    nan = known.value(2, "nan", 0.0)
    if not x or len(known.args) > 1 or set(known.keywords) - {"nan"} or not isinstance(nan, (int, float)):
        return None
    filled = f"{tf}.zeros_like({x})" if not nan else f"{tf}.fill({tf}.shape({x}), {float(nan)!r})"
    limits = f"{known.indexed}.dtype.min, {known.indexed}.dtype.max"
    return f"{tf}.clip_by_value({tf}.where({tf}.math.is_nan({x}), {filled}, {x}), {limits})"


def _spread(known: _Call, root: bool) -> str | None:
    """A variance that divides by one less than there are."""
    ddof, x, tf = known.value(4, "ddof"), known.plain, known.tf
    if type(ddof) is not int or not x or len(known.args) > 2 or set(known.keywords) - {"axis", "ddof", "keepdims"}:
        return None
    axis, kept = known.value(1, "axis"), known.value(9, "keepdims", False)
    if kept not in (True, False) or not (axis is None or type(axis) is int):
        return None
    along = "" if axis is None else f", {axis}"
    count = f"{tf}.size({x})" if axis is None else f"{tf}.shape({x})[{axis}]"
    keeps = ", keepdims=True" if kept else ""
    text = (
        f"{tf}.reduce_sum(({x} - {tf}.reduce_mean({x}{along}, keepdims=True)) ** 2{along}{keeps}) / "
        f"{tf}.cast({count} - {ddof}, {known.indexed}.dtype)"
    )
    return f"{tf}.sqrt({text})" if root else text


def _pad(known: _Call) -> str | None:
    mode, widths = known.value(2, "mode", "constant"), known.value(1, "pad_width")
    if len(known.args) > 3 or set(known.keywords) - {"mode", "pad_width", "constant_values"}:
        return None
    same = isinstance(widths, int) or (
        isinstance(widths, (tuple, list)) and len(widths) == 2 and all(isinstance(one, int) for one in widths)
    )
    if same and known.rank is not None:
        widths = [[widths, widths] if isinstance(widths, int) else widths] * known.rank
    if same and known.rank is None:
        return None
    if not isinstance(widths, (tuple, list)) or any(
        not isinstance(one, (tuple, list)) or len(one) != 2 for one in widths
    ):
        return None
    pairs = [list(one) for one in widths]
    thin = all(size <= 1 for one in pairs for size in one)
    kinds = {"reflect": "REFLECT", "symmetric": "SYMMETRIC", "edge": "SYMMETRIC" if thin else ""}
    kind = kinds.get(str(mode), "")
    fill = known.value(9, "constant_values", 0)
    if mode == "constant" and isinstance(fill, (int, float)):
        return f"{known.tf}.pad({known.x}, {pairs}{f', constant_values={fill}' if fill else ''})"
    return f'{known.tf}.pad({known.x}, {pairs}, "{kind}")' if kind and "constant_values" not in known.keywords else None


def _tile(known: _Call) -> str | None:
    reps = known.value(1, "reps")
    reps = [reps] if isinstance(reps, int) else reps
    if not known.only("reps") or not isinstance(reps, (tuple, list)) or len(reps) != known.rank:
        return None
    return f"{known.tf}.tile({known.x}, {list(reps)})"


def _repeat(known: _Call) -> str | None:
    times, axis = known.value(1, "repeats"), known.value(2, "axis")
    if not known.only("repeats", "axis") or type(times) is not int:
        return None
    if axis is None:
        return f"{known.tf}.repeat({known.tf}.reshape({known.x}, [-1]), {times})"
    return f"{known.tf}.repeat({known.x}, {times}, axis={axis})" if isinstance(axis, int) else None


def _bincount(known: _Call) -> str | None:
    least = known.value(2, "minlength", 0)
    if len(known.args) > 1 or set(known.keywords) - {"minlength"} or type(least) is not int:
        return None
    given = f", minlength={least}" if least else ""
    return f"{known.tf}.math.bincount({known.tf}.cast({known.x}, {known.tf}.int32){given}, dtype={known.tf}.int64)"


def _hypot(known: _Call) -> str | None:
    return None if len(known.args) != 2 or known.keywords else (
        f"{known.tf}.sqrt({known.indexed} ** 2 + ({known.args[1]}) ** 2)"
    )  # fmt: skip


def _clip(known: _Call) -> str | None:
    """`np.clip(x, 0, None)`: with one bound only."""
    low, high = known.text(1, "a_min"), known.text(2, "a_max")
    if known.keywords and set(known.keywords) - {"a_min", "a_max"}:
        return None
    if high in (None, "None") and low not in (None, "None"):
        return f"{known.tf}.maximum({known.x}, {low})"
    return f"{known.tf}.minimum({known.x}, {high})" if low == "None" and high not in (None, "None") else None


def _divide(known: _Call) -> str | None:
    """`np.divide(a, b, out=np.zeros_like(a), where=b != 0)`: 0 where it would divide by 0."""
    if len(known.args) != 2 or not known.masked:
        return None
    tf, (above, below), where = known.tf, known.args, known.keywords["where"]
    if where.replace("0.0", "0") in (f"{below} != 0", f"{tf}.not_equal({below}, 0)"):
        return f"{tf}.math.divide_no_nan({above}, {below})"
    return f"{tf}.where({where}, ({above}) / {tf}.where({where}, {below}, 1.0), 0.0)"


def _log(known: _Call) -> str | None:
    """`np.log(p, out=np.zeros_like(p), where=p > 0)`."""
    if len(known.args) != 1 or not known.masked:
        return None
    tf, where = known.tf, known.keywords["where"]
    return f"{tf}.where({where}, {tf}.math.log({tf}.where({where}, {known.x}, 1.0)), 0.0)"


def _cdist(known: _Call) -> str | None:
    """The distance of each row to each row of another."""
    metric, tf = known.value(2, "metric", "euclidean"), known.tf
    if len(known.args) < 2 or set(known.keywords) - {"metric"}:
        return None
    first, second = (one if one.isidentifier() else f"({one})" for one in known.args[:2])
    gaps = f"{first}[:, {tf}.newaxis] - {second}[{tf}.newaxis]"
    return {
        "euclidean": f"{tf}.norm({gaps}, axis=-1)",
        "sqeuclidean": f"{tf}.reduce_sum({tf}.square({gaps}), axis=-1)",
        "cityblock": f"{tf}.reduce_sum({tf}.abs({gaps}), axis=-1)",
    }.get(str(metric))


def _zscore(known: _Call) -> str | None:
    axis, x, tf = known.axis(default=0), known.plain, known.tf
    if not x or axis is None or not known.only("axis"):
        return None
    return f"({x} - {tf}.reduce_mean({x}, {axis}, keepdims=True)) / {tf}.math.reduce_std({x}, {axis}, keepdims=True)"


def _detrend(known: _Call) -> str | None:
    axis, x, tf = known.axis(default=-1), known.plain, known.tf
    if not x or axis is None or known.value(2, "type") != "constant" or not known.only("axis", "type"):
        return None
    return f"{x} - {tf}.reduce_mean({x}, {axis}, keepdims=True)"


def _dct(known: _Call, op: str = "dct", norms: tuple[str | None, ...] = (None, "ortho")) -> str | None:
    """Type 2; without a norm the inverse of SciPy's divides, TensorFlow's does not."""
    kind, norm = known.value(1, "type", 2), known.value(4, "norm")
    last = known.rank is not None and known.axis(place=3, default=-1) == known.rank - 1
    if not last or kind != 2 or norm not in norms or len(known.args) > 1:
        return None
    if set(known.keywords) - {"axis", "norm", "type"}:
        return None
    return f"{known.tf}.signal.{op}({known.x}{', norm=' + chr(34) + 'ortho' + chr(34) if norm else ''})"


def _gaussian_1d(known: _Call) -> str | None:
    """Windows of weights that sum to one, which is what softmax makes of their logarithms."""
    sigma, axis = known.value(1, "sigma"), known.axis(place=2, default=-1)
    if not isinstance(sigma, (int, float)) or axis is None or not known.only("sigma", "axis"):
        return None
    reach = int(4.0 * sigma + 0.5)
    weights = f"{known.tf}.nn.softmax(-0.5 * {known.tf}.range(-{reach}.0, {reach + 1}.0) ** 2 / {float(sigma)} ** 2)"
    return _windows(known, axis, reach, weights)


def _uniform_1d(known: _Call) -> str | None:
    size, axis = known.value(1, "size"), known.axis(place=2, default=-1)
    if type(size) is not int or size % 2 == 0 or axis is None or not known.only("size", "axis"):
        return None
    return _windows(known, axis, size // 2, f"{known.tf}.fill([{size}], 1 / {size})")


def _windows(known: _Call, axis: int, reach: int, weights: str) -> str | None:
    """A filter along the last axis, with the edges mirrored: a row has to be as long as they reach."""
    tf, rank = known.tf, known.rank
    if rank not in (1, 2) or axis != rank - 1 or known.made[0].shape[-1] < reach:
        return None
    pads = [[0, 0]] * (rank - 1) + [[reach, reach]]
    padded = f'{tf}.pad({known.x}, {pads}, "SYMMETRIC")'
    return f"{tf}.linalg.matvec({tf}.signal.frame({padded}, {2 * reach + 1}, 1), {weights})"


def _gaussian(known: _Call) -> str | None:
    sigma = known.value(1, "sigma")
    if not isinstance(sigma, (int, float)) or known.rank != 2 or not known.only("sigma"):
        return None
    reach = int(4.0 * sigma + 0.5)
    return _blurred(known, reach, f"/ {float(sigma)} ** 2", "SYMMETRIC")


def _opencv_gaussian(known: _Call) -> str | None:
    size, sigma = known.value(1, "ksize"), known.value(2, "sigmaX")
    if not isinstance(size, tuple) or len(size) != 2 or size[0] != size[1] or size[0] % 2 == 0:
        return None
    if not isinstance(sigma, (int, float)) or not known.only("ksize", "sigmaX") or known.rank != 2:
        return None
    sigma = sigma if sigma > 0 else 0.3 * ((size[0] - 1) * 0.5 - 1) + 0.8
    return _blurred(known, size[0] // 2, f"/ {float(sigma):.6g} ** 2", "REFLECT")


def _opencv_blur(known: _Call) -> str | None:
    size = known.value(1, "ksize")
    if not isinstance(size, tuple) or len(size) != 2 or not known.only("ksize") or known.rank != 2:
        return None
    if any(one % 2 == 0 for one in size):
        return None
    return _blurred(known, size[0] // 2, "* 0.0", "REFLECT") if size[0] == size[1] else None


def _blurred(known: _Call, reach: int, scaled: str, edges: str) -> str:
    tf, size = known.tf, 2 * reach + 1
    row = f"{tf}.range(-{reach}.0, {reach + 1}.0)"
    square = f"{row}[:, {tf}.newaxis] ** 2 + {row} ** 2"
    weights = f"{tf}.reshape({tf}.nn.softmax({tf}.reshape(-0.5 * ({square}) {scaled}, [-1])), [{size}, {size}, 1, 1])"
    x = f'{tf}.pad({known.x}, [[{reach}, {reach}], [{reach}, {reach}]], "{edges}")[{tf}.newaxis, :, :, {tf}.newaxis]'
    return f'{tf}.nn.conv2d({x}, {weights}, 1, "VALID")[0, :, :, 0]'


def _medfilt(known: _Call) -> str | None:
    size, tf = known.value(1, "kernel_size", 3), known.tf
    if type(size) is not int or size % 2 == 0 or known.rank != 1 or not known.only("kernel_size"):
        return None
    half = size // 2
    return f"{tf}.sort({tf}.signal.frame({tf}.pad({known.x}, [[{half}, {half}]]), {size}, 1))[:, {half}]"


def _flip(known: _Call) -> str | None:
    axes = {0: [0], 1: [1], -1: [0, 1]}.get(known.value(1, "flipCode", ...))
    return f"{known.tf}.reverse({known.x}, {axes})" if axes and known.only("flipCode") else None


def _colour(known: _Call) -> str | None:
    """Channels turned round, or weighed as OpenCV weighs them."""
    code = known.text(1, "code")
    name = (code or "").rpartition(".")[2].removeprefix("COLOR_")
    floats = "float" in str(getattr(known.made[0], "dtype", "")) if known.made else False
    if name in ("BGR2RGB", "RGB2BGR"):
        return f"{known.indexed}[..., ::-1]"
    start, _, end = name.partition("2")
    if end == "GRAY" and start in _GRAY and floats:
        return f"{known.tf}.tensordot({known.x}, {list(_GRAY[start])}, 1)"
    return None


_FORMS: dict[str, Callable[[_Call], str | None]] = {
    "cov": _cov, "gradient": _gradient, "interp": _interp, "convolve": _convolve, "convolve2d": _convolve2d,
    "searchsorted": _searchsorted, "digitize": _digitize, "unique": _unique, "nan_to_num": _nan_to_num,
    "var": lambda known: _spread(known, root=False), "std": lambda known: _spread(known, root=True), "pad": _pad,
    "tile": _tile, "repeat": _repeat, "bincount": _bincount, "hypot": _hypot, "zscore": _zscore, "detrend": _detrend,
    "dct": _dct, "idct": lambda known: _dct(known, "idct", ("ortho",)),
    "gaussian_filter1d": _gaussian_1d, "uniform_filter1d": _uniform_1d, "gaussian_filter": _gaussian,
    "GaussianBlur": _opencv_gaussian, "blur": _opencv_blur, "medfilt": _medfilt, "flip": _flip,
    "cvtColor": _colour, "divide": _divide, "true_divide": _divide, "log": _log, "cdist": _cdist,
    "clip": _clip,
    **{name: _special(name) for name in _SPECIAL}, **{name: _along(name) for name in _ALONG},
}  # fmt: skip
