"""Replacing attributes of TensorFlow, and putting the very same objects back."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Patch:
    """One attribute, or item of a dictionary, to replace: `replacement` makes the new object from the original."""

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
                original = _named(patch.owner)[patch.name]
                new = patch.replacement(original)
                disguise(new, original)
                _put(patch.owner, patch.name, new)
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
            if _named(owner).get(name) is new:
                _put(owner, name, original)
            else:
                holder = "TensorFlow's registry of gradients" if isinstance(owner, dict) else owner
                foreign.append(f"{getattr(owner, '__name__', holder)}.{name}")
        return tuple(foreign)


def _named(owner: Any) -> Any:
    return owner if isinstance(owner, dict) else vars(owner)


def _put(owner: Any, name: str, thing: Any) -> None:
    if isinstance(owner, dict):
        owner[name] = thing
    else:
        setattr(owner, name, thing)


def disguise(replacement: Any, original: Any) -> None:
    """Gives a replacement the file name of what it replaces, so that it counts as TensorFlow's frame, not the user's.

    TensorFlow keeps the Python stack of every op and prints it in error messages without frames of its own files
    (framework/error_interpolation.py); with ours in between, the text of an error would differ from stock.
    """
    if isinstance(replacement, types.FunctionType) and isinstance(original, types.FunctionType):
        replacement.__code__ = replacement.__code__.replace(
            co_filename=original.__code__.co_filename, co_firstlineno=original.__code__.co_firstlineno
        )
