"""Cache files whose elements another function made, or the same one before its source was changed."""

from __future__ import annotations

import ast
import contextlib
import os
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.kept import failures
from pyfunc_debug.places import source_line
from pyfunc_debug.records import Finding, Node

NAMES = ("stale-cache",)


class Cached(NamedTuple):
    """A node that had nothing to do, since a cache file that was there before had the elements.

    Attributes:
      node: The node.
      file: The cache's file, without TensorFlow's ending.
      written_ns: When it was written, by the wall clock.
      site: The line that read the elements.
      maker: A node with another body that filled the file while this was recorded.
    """

    node: Node
    file: str
    written_ns: int
    site: tuple[str, int] | None
    maker: Node | None

    def is_older(self, facts: Facts) -> bool:
        """Whether the body's source was changed after the file was written, and not since it was recorded."""
        clock, changed_ns = facts.meta.get("clock"), None
        with contextlib.suppress(OSError):
            changed_ns = os.stat(self.node.file or "").st_mtime_ns
        began_ns = int(clock["wall_ns"]) if isinstance(clock, dict) else 0
        return changed_ns is not None and self.written_ns < changed_ns < began_ns


def cached(facts: Facts) -> Iterator[Cached]:
    """The nodes without a call behind a cache file that was there before the loop."""
    by_token = facts.own_by_token
    loops = facts.meta.get("inputs") or []
    makers: dict[str, list[Node]] = {}
    for loop in loops:
        for place, stage in enumerate(loop["stages"]):
            if "cache" in stage and "cached_ns" not in stage:
                makers.setdefault(stage["cache"], []).extend(_behind(loop["stages"][place + 1 :], by_token))
    told: set[int] = set()
    for loop in loops:
        for place, stage in enumerate(loop["stages"]):
            if "cached_ns" not in stage:
                continue
            site = (str(loop["site"][0]), int(loop["site"][1])) if loop["site"] else None
            for node in _behind(loop["stages"][place + 1 :], by_token):
                if node.id not in told and not facts.calls(node.id).count and not facts.counted_only([node.id]):
                    told.add(node.id)
                    key = (node.body, node.file, node.line)
                    others = [one for one in makers.get(stage["cache"], ()) if (one.body, one.file, one.line) != key]
                    ran = next((one for one in others if facts.calls(one.id).count), None)
                    yield Cached(node, stage["cache"], int(stage["cached_ns"]), site, ran)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding a body that did not run, though its cache holds what something else made; one an old file."""
    told = list(failures(facts, NAMES))
    yield from told
    older: dict[str, list[Cached]] = {}
    for one in () if told else cached(facts):
        if one.maker is not None:
            yield _shared(facts, one, one.maker)
        elif one.is_older(facts):
            older.setdefault(one.file, []).append(one)
    for every in older.values():
        yield _outdated(facts, every)


def _shared(facts: Facts, one: Cached, maker: Node) -> Finding:
    file, line = one.site or (one.node.file, one.node.line)
    return Finding(
        NAMES[0], "error", one.node.id, (),
        f"{one.node.body} never ran: its elements came from the cache file {one.file}, which was filled with what "
        f"{maker.body} ({source_line(maker.file, maker.line)}) returned",
        _own_file(facts, one) or f".cache({one.file + '-2'!r})  # a file of its own for each dataset",
        file, line, evidence=(f"{maker.body}: {facts.calls(maker.id).count:,} calls",),
    )  # fmt: skip


def _outdated(facts: Facts, every: Sequence[Cached]) -> Finding:
    one = every[0]
    bodies = list(dict.fromkeys(each.node.body for each in every))
    who = bodies[0] if len(bodies) == 1 else f"{', '.join(bodies[:-1])} and {bodies[-1]}"
    names = f"{shlex.quote(one.file)}.index {shlex.quote(one.file)}.data-*"
    loop = f"for old in glob.glob({one.file + '.*'!r}):\n    os.remove(old)"
    return Finding(
        NAMES[0], "warning", one.node.id, (),
        f"{who} never ran: {'its' if len(bodies) == 1 else 'their'} elements came from the cache file {one.file}, "
        f"which is older than the last change of {os.path.basename(one.node.file or '')}. What changed in {who} since "
        "then has no effect",
        facts.say(f"rm {names}", f"!rm {names}", loop),
        one.node.file, one.node.line, confidence="likely",
    )  # fmt: skip


def _own_file(facts: Facts, one: Cached) -> str:
    """The line of the cache with the body's name in the file's, where the body is given to the function around it."""
    made = pastes.call_of(facts, one.node)
    body = pastes.argument(made[1], 0, "func") if made is not None else None
    if made is None or not isinstance(body, ast.Name):
        return ""
    for around in reversed(pastes.around(facts.tree(made[0]), made[1].lineno, ast.FunctionDef)):
        caches = [
            call for call in pastes.walk(around, ast.Call)
            if isinstance(call.func, ast.Attribute) and call.func.attr == "cache" and len(call.args) == 1
        ]  # fmt: skip
        if body.id in [parameter.arg for parameter in around.args.args] and len(caches) == 1:
            given = caches[0].args[0]
            new = f"{pastes.text_of(facts, made[0], given)} + {body.id}.__name__"
            return pastes.written(pastes.replaced(facts, made[0], {given: new}))
    return ""


def _behind(stages: list[dict[str, object]], by_token: dict[str, Node]) -> list[Node]:
    tokens = [token for stage in stages for token in stage["tokens"]]  # type: ignore[attr-defined]
    return [by_token[token] for token in tokens if token in by_token]
