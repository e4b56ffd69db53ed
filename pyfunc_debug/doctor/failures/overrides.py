"""A gradient that `gradient_override_map` gives to another op type than the one that a py_function makes."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pyfunc_debug.doctor.failures.source import Source

_TYPES = {"py_function": "EagerPyFunc", "py_func_stateless": "PyFuncStateless"}
_OTHER = "PyFunc"
_MAP = "gradient_override_map"


@dataclass(frozen=True)
class Override:
    """A key of the map that is of another op.

    Attributes:
      key: The key, where it is written.
      given: What it says: `PyFunc`.
      made: The type of the op that is made: `EagerPyFunc`.
    """

    key: ast.Constant
    given: str
    made: str

    def cause(self, what: str) -> str:
        """What is wrong, in a sentence.

        Args:
          what: The call that makes the op: `tf.py_function`.
        """
        return (
            f'gradient_override_map has a gradient for ops of type "{self.given}", but {what} makes one of type '
            f'"{self.made}": the gradient is never used'
        )


def override(source: Source, call: ast.Call, kind: str) -> Override | None:
    """The key of another op in the maps around a call; None where there is none, or one that fits.

    Args:
      source: The file.
      call: The call that makes the node.
      kind: The node's kind.
    """
    made = _TYPES.get(kind, _OTHER)
    keys = [
        key
        for one in source.around(call)
        if isinstance(one, ast.With)
        for item in one.items
        if isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func).endswith(_MAP)
        for given in item.context_expr.args[:1]
        if isinstance(given, ast.Dict)
        for key in given.keys
    ]
    names = {key.value: key for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    others = [name for name in (*_TYPES.values(), _OTHER) if name in names]
    if made in names or len(others) != 1 or len(names) != len(keys):
        return None
    return Override(names[others[0]], others[0], made)


__all__ = ["Override", "override"]
