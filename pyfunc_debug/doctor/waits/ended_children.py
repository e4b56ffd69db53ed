"""A line that waits for a process that has ended: what is said, and a wait that ends to paste."""

from __future__ import annotations

import ast
from typing import Any

from pyfunc_debug.doctor import pastes
from pyfunc_debug.doctor.facts import Facts
from pyfunc_debug.doctor.failures.pastes.explanation import Edit
from pyfunc_debug.program.children import REPLACED

_POOL = {"apply": "apply_async", "map": "map_async", "starmap": "starmap_async"}


def sentence(gone: list[dict[str, Any]], alive: int) -> str:
    """What is known of processes that ended, as one or two sentences.

    Args:
      gone: As `program.children.Ended`.
      alive: How many of multiprocessing's have not ended.
    """
    worker = next((one for one in gone if one["how"] == REPLACED), None)
    if worker is not None:
        many = worker["process"] > 1
        died = f"{worker['process']} processes of the pool died" if many else "a process of the pool died"
        place = "others took their places: what they" if many else "another took its place: what it"
        return (
            f" {died} at work (killed, as where memory ran out, or by os._exit), and {place} worked on is "
            "lost, so that its result never comes"
        )
    said = "; ".join(f"{one['name']} (process {one['process']}) {one['how']}" for one in gone[:4])
    more = "; the traceback, where it had one, is on stderr" if any(one["failed"] for one in gone) else ""
    return f" {said}{more}{'' if alive else '. No process is left that could do it'}"


def fix(facts: Facts, file: object, line: object, gone: list[dict[str, Any]]) -> str:
    """The line that waits, with an end to it; "" where it is none of multiprocessing's that is known."""
    if not gone or not isinstance(file, str) or not isinstance(line, int):
        return ""
    calls = [one for one in pastes.around(facts.tree(file), line, ast.Call) if isinstance(one.func, ast.Attribute)]
    if gone[0]["how"] == REPLACED:
        asked = [one for one in calls if pastes.last_name(one.func) in _POOL]
        if len(asked) != 1 or not isinstance(asked[0].func, ast.Attribute):
            return ""
        text, method = pastes.text_of(facts, file, asked[0]), pastes.last_name(asked[0].func)
        owner = pastes.text_of(facts, file, asked[0].func.value)
        new = f"{owner}.{_POOL[method]}{text[len(f'{owner}.{method}') :]}.get(timeout=60)"
        return pastes.written(pastes.replaced(facts, file, {asked[0]: new}))
    return _while_alive(facts, file, line, calls, next((one for one in gone if one["variable"]), gone[0]))


def _while_alive(facts: Facts, file: str, line: int, calls: list[ast.Call], one: dict[str, Any]) -> str:
    """`queue.get()` asked again and again while the process lives, with an error where it does not."""
    asked = [call for call in calls if pastes.last_name(call.func) == "get" and not call.args and not call.keywords]
    whole = pastes.lines_of(facts, file, line)
    if len(asked) != 1 or whole is None or not one["variable"]:
        return ""
    timed = pastes.replaced(facts, file, {asked[0]: f"{pastes.text_of(facts, file, asked[0].func)}(timeout=5)"})
    if timed is None or timed.first != timed.last:
        return ""
    blanks, name = whole[0], one["variable"]
    added: tuple[str, ...] = ()
    module = pastes.module(facts, file, "queue")
    empty = f"{module}.Empty" if module else pastes.module(facts, file, "queue.Empty")
    if not empty:
        taken = any(one.id == "queue" for one in pastes.walk(facts.tree(file), ast.Name))
        empty = "Empty" if taken else "queue.Empty"
        added = (f"{blanks}from queue import Empty" if taken else f"{blanks}import queue",)
    dead = (
        f"any(one.exitcode for one in {name}) or not any(one.is_alive() for one in {name})"
        if one["among"]
        else f"{name}.exitcode is not None"
    )
    codes = f"[one.exitcode for one in {name}]" if one["among"] else f"{name}.exitcode"
    return pastes.written(Edit(file, timed.first, timed.last, (
        *added,
        f"{blanks}while True:",
        f"{blanks}    try:",
        f"{blanks}        {timed.lines[0].strip()}",
        f"{blanks}        break",
        f"{blanks}    except {empty}:",
        f"{blanks}        if {dead}:",
        f'{blanks}            raise RuntimeError(f"a process ended: exit code {{{codes}}}") from None',
    )))  # fmt: skip
