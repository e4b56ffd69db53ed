"""How much of a value is kept: for the whole recording, or by node."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Mapping
from enum import IntEnum

from pyfunc_debug.errors import BadOptionError


class Policy(IntEnum):
    """From nothing to everything; each keeps what the ones before it keep."""

    NONE = 0
    SHAPE = 1
    SUMMARY = 2
    SAMPLE = 3
    FULL = 4


POLICIES = tuple(policy.name.lower() for policy in Policy)


def parse_policy(text: str) -> Policy:
    """The policy called `text`.

    Raises:
      BadOptionError: no such policy; the message names the nearest.
    """
    try:
        return Policy[text.upper()]
    except (KeyError, AttributeError):
        near = difflib.get_close_matches(str(text), POLICIES, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise BadOptionError(f"values={text!r} is not one of {', '.join(POLICIES)}.{hint}") from None


def matches(pattern: str, *names: str | None) -> bool:
    """Whether a node glob fits any of a node's names: whole, or the last part of a dotted one."""
    return any(
        fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name.rpartition(".")[2], pattern)
        for name in names
        if name
    )


class Policies:
    """The policy of each node: the first glob that fits, else the default.

    Args:
      values: A policy's name, or a mapping from node globs to policies in which `*` is the default.
      nodes: Glob of the nodes whose values are captured at all.
    """

    def __init__(self, values: str | Mapping[str, str] = "summary", nodes: str = "*") -> None:
        if isinstance(values, str):
            values = {"*": values}
        self._rules = [(pattern, parse_policy(text)) for pattern, text in values.items() if pattern != "*"]
        self.default = parse_policy(values.get("*", "summary"))
        self.nodes = nodes

    def keep(self, pattern: str) -> None:
        """Keeps all of the nodes that match, before any other rule."""
        self._rules.insert(0, (pattern, Policy.FULL))

    def of(self, *names: str | None) -> Policy:
        """The policy of the node with these names."""
        return next((policy for pattern, policy in self._rules if matches(pattern, *names)), self.default)

    def keeps_any_in_full(self) -> bool:
        """Whether the values of some node are kept in full."""
        return Policy.FULL in (self.default, *(policy for _, policy in self._rules))

    def shows_all(self) -> bool:
        """Whether of each node at least a summary of its values is kept."""
        return min(self.default, *(policy for _, policy in self._rules), Policy.FULL) >= Policy.SUMMARY

    def as_dict(self) -> dict[str, str]:
        """The policies as they were given, for the recording's `meta`."""
        return {pattern: policy.name.lower() for pattern, policy in [*self._rules, ("*", self.default)]}
