"""What a body does besides returning a value: does it write into its inputs, and which Python state does it hold?"""

from __future__ import annotations

import dis
import inspect
import random
import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfunc_debug.errors import NotKeptError
from pyfunc_debug.program.python_state import fingerprints
from pyfunc_debug.records import Call

_WRITERS = {
    "sort", "fill", "put", "partition", "resize", "itemset", "setfield", "byteswap", "copyto", "place", "putmask",
    "put_along_axis", "fill_diagonal", "shuffle", "out", "at",
}  # fmt: skip
"""Names of methods, functions and parameters of NumPy by which an array is written to."""


@dataclass(frozen=True)
class SideEffects:
    """Paths of the inputs that a body wrote into, and names of the Python state that it can reach."""

    written: tuple[str, ...]
    state: tuple[str, ...]


def examine_body(call: Call) -> SideEffects | None:
    """What the body of a recorded call does besides returning a value.

    The body runs once more, on copies of the call's inputs, if it is given arrays and its code could write into one;
    its result is thrown away, and Python's and NumPy's random states are put back.

    Args:
      call: A forward call of a recording of this process.

    Returns:
      What was found; None if the body is gone or its inputs were not kept.
    """
    found: list[SideEffects] = []

    def look(body: Any, *args: Any) -> Any:
        state = tuple(fingerprints(body))
        arrays = [one if isinstance(one, np.ndarray) else None for one in args]
        if all(one is None for one in arrays) or not _may_write(body):
            found.append(SideEffects((), state))
            return None
        before = [None if one is None else one.copy() for one in arrays]
        python, numpy = random.getstate(), np.random.get_state()
        try:
            return body(*args)
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
            written = [
                call.inputs[index].path
                for index, (now, was) in enumerate(zip(arrays, before))
                if now is not None and was is not None and now.tobytes() != was.tobytes()
            ]
            found.append(SideEffects(tuple(written), state))

    try:
        call.replay(look)
    except NotKeptError:
        pass
    except Exception:  # the body's own, or a result that is none: what was found counts
        pass
    return found[0] if found else None


def _may_write(function: Any) -> bool:
    """Whether a function's code, or that of one inside it, has an instruction or a name by which arrays are written."""
    try:
        function = inspect.unwrap(function)  # TensorFlow wraps a numpy_function's body, for AutoGraph to leave it alone
    except ValueError:
        return True
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:  # a callable object
        code = getattr(vars(type(function)).get("__call__"), "__code__", None)
    return not isinstance(code, types.CodeType) or _code_may_write(code)


def _code_may_write(code: types.CodeType) -> bool:
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in ("STORE_SUBSCR", "STORE_SLICE") or name.startswith("INPLACE_"):
            return True
        if name == "BINARY_OP" and instruction.argrepr.endswith("="):
            return True
        if isinstance(instruction.argval, str) and instruction.argval in _WRITERS:
            return True
        if isinstance(instruction.argval, tuple) and _WRITERS.intersection(map(str, instruction.argval)):
            return True
    return any(_code_may_write(one) for one in code.co_consts if isinstance(one, types.CodeType))
