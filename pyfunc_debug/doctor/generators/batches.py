"""The batches that a generator gave, as they were recorded, and its function."""

from __future__ import annotations

import ast
import json
import math
from dataclasses import dataclass
from typing import Literal

from pyfunc_debug.doctor import code
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.records import Node

_MOST = 2_000


@dataclass(frozen=True)
class Array:
    """One array of a batch: the digest of its values, None where they were not looked at; its shape, and its ends.

    Attributes:
      zeros: The share of numbers that are 0, as far as was looked at.
    """

    digest: bytes | None
    shape: tuple[int, ...]
    least: float | None
    most: float | None
    zeros: float | None


@dataclass(frozen=True)
class Batches:
    """What a generator gave.

    Attributes:
      file: Its file.
      function: Its tree.
      each: The arrays of each batch, flat, in the order in which it gave them.
    """

    file: str
    function: ast.FunctionDef
    each: list[list[Array]]

    @classmethod
    def of(cls, facts: Facts, node: Node) -> Batches | None:
        """Those of a node; None where there are too few of them, or there is no function to read."""
        function = facts.function(node)
        if not isinstance(function, ast.FunctionDef) or node.file is None:
            return None
        rows = facts.reader.rows(
            "SELECT c.id, v.digest, v.shape, v.min, v.max, v.zeros, v.sampled FROM (SELECT id FROM call WHERE node = ? "
            f"AND kind = 'forward' AND status = 'ok' ORDER BY id LIMIT {_MOST}) c JOIN value v ON v.call = c.id "
            "WHERE v.role = 'output' ORDER BY c.id, v.position",
            (node.id,),
        )
        calls: dict[int, list[Array]] = {}
        for call, digest, shape, least, most, zeros, sampled in rows:
            sizes = tuple(json.loads(shape or "[]"))
            share = None if zeros is None else zeros / max(1, sampled or math.prod(sizes))
            calls.setdefault(call, []).append(Array(digest, sizes, least, most, share))
        return cls(node.file, function, list(calls.values())) if len(calls) > 2 else None

    @property
    def rows(self) -> list[int]:
        """How many rows each batch has: those of its first array; none where it is a number."""
        return [one[0].shape[0] if one[0].shape else 0 for one in self.each]

    @property
    def yields(self) -> list[ast.stmt]:
        """The statements that yield."""
        return [
            one for one in code.own_nodes(self.function)
            if isinstance(one, (ast.Expr, ast.Assign)) and isinstance(one.value, ast.Yield)
        ]  # fmt: skip

    def all_same(self) -> bool:
        """Whether all of them held the same values."""
        first = [one.digest for one in self.each[0]]
        return None not in first and all([one.digest for one in batch] == first for batch in self.each)


@dataclass(frozen=True)
class Seen:
    """What is wrong with them."""

    message: str
    fix: str
    line: int
    evidence: tuple[str, ...] = ()
    severity: Literal["error", "warning"] = "error"
