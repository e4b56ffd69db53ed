"""Replacing attributes of TensorFlow, and putting the very same objects back."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Patch:
    """One attribute to replace: `replacement` is made from the original object when the patch is applied."""

    owner: Any
    name: str
    replacement: Callable[[Any], Any]


class Patches:
    """A set of applied patches; `revert` restores every original by identity, newest first.

    An attribute that somebody else has replaced in the meantime is left to them (their wrapper may hold ours): it is
    named in what `revert` returns, and ours passes everything straight through from then on.
    """

    def __init__(self) -> None:
        self._applied: list[tuple[Any, str, Any, Any]] = []

    @property
    def on(self) -> bool:
        """Whether any are applied."""
        return bool(self._applied)

    def apply(self, patches: list[Patch]) -> None:
        """Applies all of them, or none if one fails."""
        try:
            for patch in patches:
                original = vars(patch.owner)[patch.name]
                new = patch.replacement(original)
                disguise(new, original)
                setattr(patch.owner, patch.name, new)
                self._applied.append((patch.owner, patch.name, original, new))
        except BaseException:
            self.revert()
            raise

    def revert(self) -> tuple[str, ...]:
        """Puts the originals back.

        Returns:
          Names of the attributes that somebody else had replaced on top of ours.
        """
        foreign = []
        while self._applied:
            owner, name, original, new = self._applied.pop()
            if vars(owner).get(name) is new:
                setattr(owner, name, original)
            else:
                foreign.append(f"{getattr(owner, '__name__', owner)}.{name}")
        return tuple(foreign)


def disguise(replacement: Any, original: Any) -> None:
    """Gives a replacement the file name of what it replaces, so that it counts as TensorFlow's frame, not the user's.

    TensorFlow keeps the Python stack of every op and prints it in error messages without frames of its own files
    (framework/error_interpolation.py); with ours in between, the text of an error would differ from stock.
    """
    if isinstance(replacement, types.FunctionType) and isinstance(original, types.FunctionType):
        replacement.__code__ = replacement.__code__.replace(
            co_filename=original.__code__.co_filename, co_firstlineno=original.__code__.co_firstlineno
        )
