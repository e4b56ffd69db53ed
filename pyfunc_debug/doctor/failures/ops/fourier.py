"""NumPy's Fourier transforms as TensorFlow's ops, which have a gradient."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor.failures.reading.source import dotted

_OPS = {
    "fft": ("fft", 1), "ifft": ("ifft", 1), "rfft": ("rfft", 1), "irfft": ("irfft", 1),
    "fft2": ("fft2d", 2), "ifft2": ("ifft2d", 2), "rfft2": ("rfft2d", 2), "irfft2": ("irfft2d", 2),
}  # fmt: skip
"""TensorFlow's names, and over how many axes, the last ones, they go."""
_ALL_AXES = {"fftn": ("fft", "fft2d", "fft3d"), "ifftn": ("ifft", "ifft2d", "ifft3d")}
_FORWARD = ("fft", "fft2d", "rfft", "rfft2d")
_SHIFTS = ("fftshift", "ifftshift")
_OF_SCIPY = ("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", *_SHIFTS)
"""Those that are NumPy's in every module of SciPy's; fftpack has its own form of `rfft`."""


def is_fourier(func: ast.expr, library: str) -> bool:
    """Whether a function is a transform of NumPy's or SciPy's, by its name: `np.fft.rfft`, `scipy.fftpack.fft`."""
    module, _, name = dotted(func).rpartition(".")
    place = module.rpartition(".")[2]
    if library == "scipy" and (name not in _OF_SCIPY or place not in ("fft", "fftpack")):
        return False
    return place in ("fft", "fftpack") and (name in _OPS or name in _ALL_AXES or name in _SHIFTS)


def transformed(call: ast.Call, made: Any, kind: str, tf: str) -> str | None:
    """The call with TensorFlow's op; None where no op does it.

    Args:
      call: The call of NumPy's function, whose arguments are ops already.
      made: What its first argument gives on made inputs: says its rank and dtype; None where these are not known.
      kind: That argument's dtype, as far as it is known without that.
      tf: How the user's module calls TensorFlow.
    """
    name = dotted(call.func).rpartition(".")[2]
    given: dict[str | None, ast.expr] = {one.arg: one.value for one in call.keywords}
    sizes = "n" if name in _OPS and _OPS[name][1] == 1 else "s"
    along = "axis" if sizes == "n" else "axes"
    positions = ("axes",) if name in _SHIFTS else (sizes, along, "norm")
    given |= dict(zip(positions, call.args[1:]))
    if not call.args or len(call.args) > 4 or set(given) - {sizes, along, "norm"}:
        return None
    given = {key: one for key, one in given.items() if not (isinstance(one, ast.Constant) and one.value is None)}
    x, rank = ast.unparse(call.args[0]), getattr(made, "ndim", None)
    if name in _SHIFTS:
        axes = f", axes={ast.unparse(given['axes'])}" if "axes" in given else ""
        return f"{tf}.signal.{name}({x}{axes})"
    norm = getattr(given.pop("norm"), "value", None) if "norm" in given else "backward"
    if norm not in ("backward", "ortho", "forward"):
        return None
    last = _axes(given.get(along), rank)
    if last is None and along in given:
        return None
    if name in _ALL_AXES:
        count = rank if last is None else len(last)
        if count not in (1, 2, 3):
            return None
        op = _ALL_AXES[name][count - 1]
    else:
        op, count = _OPS[name]
    if last is not None and len(last) != count:
        return None
    kind = str(getattr(made, "dtype", kind))
    if "int" in kind or "bool" in kind:
        return None
    if norm != "backward":
        scaled = _scaled(x, norm, count, kind, tf) if op in _FORWARD and not last and sizes not in given else None
        if scaled is None:
            return None
        x = scaled
    if not op.startswith(("rfft", "irfft")) and "complex" not in kind:
        zero = "0.0" if kind == "float32" else f"{tf}.zeros_like({x})"  # the gradient of a cast warns of what it drops
        x = f"{tf}.complex({x}, {zero})" if kind else f"{tf}.cast({x}, {tf}.complex64)"
    length = ""
    if sizes in given:
        if not op.startswith(("rfft", "irfft")):
            return None
        length = f", [{ast.unparse(given[sizes])}]" if sizes == "n" else f", {ast.unparse(given[sizes])}"
    if last is None or last == list(range((rank or 0) - count, rank or 0)) or last == list(range(-count, 0)):
        return f"{tf}.signal.{op}({x}{length})"
    order = [one for one in range(rank or 0) if one not in last] + last
    back = sorted(range(len(order)), key=order.__getitem__)
    return f"{tf}.transpose({tf}.signal.{op}({tf}.transpose({x}, {order}){length}), {back})"


def _scaled(x: str, norm: str, count: int, kind: str, tf: str) -> str | None:
    """What goes into a transform of real numbers whose result is divided by their number, or by its root."""
    if "float" not in kind or not x.isidentifier():
        return None
    sizes = [f"{tf}.shape({x})[{place}]" for place in range(-count, 0)]
    number = f"{tf}.cast({' * '.join(sizes)}, {x}.dtype)"
    return f"({x} / {number})" if norm == "forward" else f"({x} / {tf}.sqrt({number}))"


def _axes(node: ast.expr | None, rank: int | None) -> list[int] | None:
    """The axes as they are written: counted from the first one where the rank is known."""
    if node is None:
        return None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    found = [value] if isinstance(value, int) else list(value) if isinstance(value, (tuple, list)) else []
    if not found or not all(isinstance(one, int) for one in found):
        return None
    if rank is not None:
        counted = [one + rank if one < 0 else one for one in found]
        return counted if all(0 <= one < rank for one in counted) else None
    return found if found == list(range(-len(found), 0)) else None
