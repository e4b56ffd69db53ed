"""What a code object reads and writes outside of itself: names and what follows them (`cfg.kl.weight`, `HP["kl"]`)."""

from __future__ import annotations

import functools
import types
from typing import Any, Literal, NamedTuple

Step = tuple[Literal[".", "["], Any]
"""`.name` or `[key]` with a constant key."""
_SILENT = {"CACHE", "EXTENDED_ARG", "PUSH_NULL", "NOP"}
_COPIES = {"COPY", "DUP_TOP", "DUP_TOP_TWO"}
"""Before what follows, where both are read and written: `x.n += 1`."""


class Reading(NamedTuple):
    """What code reads: how it finds the name (`global`, `closure` or `attribute` of `self`), what follows, the line."""

    how: str
    name: str
    path: tuple[Step, ...]
    line: int


class Code(NamedTuple):
    """What a code object reads from outside, and what it writes there itself."""

    reads: tuple[Reading, ...]
    writes: frozenset[tuple[Any, ...]]


def written_by(reading: Reading, writes: frozenset[tuple[Any, ...]] | set[tuple[Any, ...]]) -> bool:
    """Whether what is read, or what it is a part of, is among what some code writes."""
    how, name, path = reading.how, reading.name, reading.path
    return any((how, name, *path[:length]) in writes for length in range(len(path) + 1))


def shown(how: str, name: str, path: tuple[Step, ...]) -> str:
    """A reading as the code says it: `self.cfg.rate`, `HP['kl']`."""
    root = f"self.{name}" if how == "attribute" else name
    return root + "".join(f".{key}" if kind == "." else f"[{key!r}]" for kind, key in path)


@functools.lru_cache(maxsize=512)
def code_of(code: types.CodeType) -> Code:
    """What a code object itself reads; of functions in it only what they write."""
    import dis

    own = code.co_varnames[0] if code.co_argcount else ""
    reads: dict[tuple[Any, ...], Reading] = {}
    writes: set[tuple[Any, ...]] = set()
    starts = {offset: number for offset, _, number in code.co_lines() if number}
    line = at = code.co_firstlineno
    chain: list[Any] = []  # how, name, steps; it began at line `at`
    key: list[Any] = []  # a constant after it
    both = False

    def end() -> None:
        nonlocal both
        if chain and chain[1]:
            how, name, *steps = chain
            (writes.add((how, name, *steps)) if both else
             reads.setdefault((how, name, *steps), Reading(how, name, tuple(steps), at)))  # fmt: skip
        chain.clear()
        key.clear()
        both = False

    for one in dis.get_instructions(code):
        op = one.opname
        line = starts.get(one.offset, line)
        if op in _SILENT:
            continue
        begins = _begins(op, one.argval, own, code.co_freevars)
        if chain and op in ("LOAD_ATTR", "LOAD_METHOD") and not key:
            _add(chain, (".", str(one.argval)))
        elif chain and op == "LOAD_CONST" and not key and type(one.argval) in (str, int):
            key.append(one.argval)
        elif chain and key and (op == "BINARY_SUBSCR" or (op == "BINARY_OP" and one.argrepr == "[]")) and chain[1]:
            chain.append(("[", key.pop()))
        elif chain and op in _COPIES:
            both = True
        elif chain and op in ("STORE_ATTR", "DELETE_ATTR") and not key:
            _add(chain, (".", str(one.argval)))
            both = True
            end()
        elif chain and op in ("STORE_SUBSCR", "DELETE_SUBSCR") and key and chain[1]:
            chain.append(("[", key.pop()))
            both = True
            end()
        else:
            end()
            at = line
            chain += begins
            how = "global" if op.endswith("_GLOBAL") else "closure" if op.endswith("_DEREF") else ""
            if how and not begins and not op.startswith("LOAD") and (how == "global" or one.argval in code.co_freevars):
                writes.add((how, str(one.argval)))
    end()
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            writes |= code_of(inner).writes
    return Code(tuple(reads.values()), frozenset(writes))


def _begins(op: str, value: Any, own: str, free: tuple[str, ...]) -> list[Any]:
    """How and name, with which a reading begins; the name of `self` alone is still to come."""
    if op == "LOAD_GLOBAL":
        return ["global", str(value)]
    if op == "LOAD_DEREF" and value in free:
        return ["closure", str(value)] if value != "self" else ["attribute", ""]
    if op.startswith("LOAD_FAST") and own == "self":
        last = value[-1] if isinstance(value, tuple) else value
        return ["attribute", ""] if last == own else []
    return []


def _add(chain: list[Any], step: Step) -> None:
    """One step more; the first after `self` is the name."""
    if not chain[1]:
        chain[1] = step[1]
    else:
        chain.append(step)


__all__ = ["Code", "Reading", "Step", "code_of", "shown", "written_by"]
