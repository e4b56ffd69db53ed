"""`fit` on data without an end and without a number of steps: its first epoch goes on for ever, and nothing fails.

So does `evaluate`, also of what `fit` validates with, and `predict`. Who interrupts it reads this, and who waits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from types import FrameType
from typing import Any

from pyfunc_debug.doctor.failures.datasets import endless_loops, generator_calls
from pyfunc_debug.doctor.failures.models import unended_passes
from pyfunc_debug.doctor.failures.models.batch_makers import batch_maker
from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Locate, Query, Spot, lines_around, lines_of, spots_of
from pyfunc_debug.doctor.failures.reading.source import Source, dotted, short
from pyfunc_debug.doctor.failures.reading.symbols import calls
from pyfunc_debug.doctor.generators.generator_source import is_endless

RULE = "endless-epoch"
_TRAINER = re.compile(r"keras[/\\]src[/\\](?:.*[/\\])?trainer\.py$")
_STEPS = {"fit": "steps_per_epoch", "evaluate": "steps", "predict": "steps"}
_INFINITE, _UNKNOWN = -1, -2
"""What a dataset's `cardinality` says (tf.data.INFINITE_CARDINALITY)."""
_STOPS = "stop_training"
"""How a callback ends a pass."""
_DEPTH = 3
"""How far the names that a dataset is made of are followed."""


def interrupted(error: KeyboardInterrupt, locate: Locate, rows: Query) -> Explanation | None:
    """The explanation for who interrupts such an epoch.

    Args:
      error: What Ctrl-C raised, with its traceback.
      locate: Maps a line of AutoGraph's generated code to the user's file and line.
      rows: Asks the recording.
    """
    return _told(list(lines_of([error])), locate, rows)


def going_on(frame: FrameType, locate: Locate) -> Explanation | None:
    """The explanation for a thread that is in such an epoch now, and in this frame."""
    return _told(lines_around(frame), locate)


def _told(lines: Sequence[tuple[FrameType, int]], locate: Locate, rows: Query | None = None) -> Explanation | None:
    trainers = [place for place, (frame, _) in enumerate(lines) if _is_trainer(frame)]
    spots = spots_of(lines[: trainers[0]], locate) if trainers else []
    if not spots:
        return None
    spot, first, last = spots[-1], lines[trainers[0]][0], lines[trainers[-1]][0]
    statement = spot.statement
    called = [one for one in fits(statement) if _name(one) == first.f_code.co_name] if statement is not None else []
    count = _cardinality(last.f_locals.get("epoch_iterator"))
    if len(called) != 1 or count is None or any(_STOPS in line for line in spot.source.code):
        return None
    word, keyword, place = _STEPS[first.f_code.co_name], "x", 0
    if last is not first:  # fit evaluates
        word, keyword, place = "validation_steps", "validation_data", len(called[0].args)
    named = {one.arg: one.value for one in called[0].keywords}
    given = named.get(keyword) or (called[0].args[place] if len(called[0].args) > place else None)
    if given is None:
        return None
    text = short(spot.source.text(given), 40)
    why, edit = f"{text} repeats without an end", _without_repeat(given, spot)
    if count == _UNKNOWN:
        flow, line = _flow_behind(given, spot), _loops_at(given, spot)
        if not flow and line is None:
            first_pass = last.f_locals.get("epoch", 0) == last.f_locals.get("initial_epoch", 0)
            return _unended(called[0], word, last, spot, rows) if rows is not None and first_pass else None
        why, edit = f"the generator behind {text} (line {line}) loops without an end", None
        if flow:
            why = f"{short(flow, 40)} behind {text} begins again at its end"
            edit = _with_length(called[0], word, flow, spot)
    does = "validation" if last is not first else "first epoch" if word == "steps_per_epoch" else "pass"
    cause = f"this {first.f_code.co_name} goes on and on with its {does}: {why}, and no {word} says after how many "
    cause += "batches it is over."
    if count == _INFINITE and edit is not None:
        cause += " Keras begins a dataset again for each pass by itself."
    advice = "" if edit is not None else f"Pass {word}=..., the number of batches that are one pass over the data."
    return Explanation(RULE, spot.file, called[0].lineno, cause, edit, advice)


def _unended(call: ast.Call, word: str, frame: FrameType, spot: Spot, rows: Query) -> Explanation | None:
    """In words: a generator of which only what it has given is known."""
    adapter = getattr(frame.f_locals.get("epoch_iterator"), "data_adapter", None)
    if type(adapter).__name__ != "TFDatasetAdapter":
        return None
    method = frame.f_code.co_name
    found = unended_passes.of_pass(adapter.get_tf_dataset(), method, rows)  # type: ignore[union-attr]
    if found is None:
        return None
    cause = (
        f"{method} takes batches until the data end, as no {word} says after how many it is over. {found.who} has "
        f"given {found.elements:,} elements in {found.seconds:,.0f} s and has not ended."
    )
    advice = f"If it never ends, tell it to end after one pass (num_epochs=1, say), or pass {word}=... here."
    return Explanation(RULE, spot.file, call.lineno, cause, None, advice, "likely")


def _flow_behind(data: ast.expr, spot: Spot) -> str:
    """Keras' image generator that a from_generator gives, where each of its batches is an element."""
    made = _made_of(data, spot.source)
    every = [one for part in made for one in calls(part)]
    if any("batch" in dotted(one.func).rpartition(".")[2] for one in every):
        return ""
    for call in every:
        maker = call.args[0] if call.args else None
        if dotted(call.func).rpartition(".")[2] == "from_generator" and isinstance(maker, ast.Lambda):
            return endless_loops.flow_of(maker.body, spot)
    return ""


def _with_length(call: ast.Call, word: str, flow: str, spot: Spot) -> Edit | None:
    new = spot.source.with_argument(call, f"{word}=len({flow})")
    return edit_of(spot.file, spot.source.replaced({call: new})) if "(" not in flow else None


def _is_trainer(frame: FrameType) -> bool:
    return frame.f_code.co_name in _STEPS and _TRAINER.search(frame.f_code.co_filename) is not None


def _name(call: ast.Call) -> str:
    return dotted(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")


def _cardinality(iterator: Any) -> int | None:
    """The number of batches of what Keras goes through, infinite or unknown; None where it ends, or steps are given."""
    if iterator is None or getattr(iterator, "steps_per_epoch", 0) is not None:
        return None
    adapter = getattr(iterator, "data_adapter", None)
    if adapter is None or getattr(adapter, "num_batches", 0) is not None:
        return None
    given = adapter.get_tf_dataset() if type(adapter).__name__ == "TFDatasetAdapter" else None  # no new one
    count = getattr(given, "cardinality", None)
    found = int(count()) if callable(count) else _UNKNOWN
    return found if found in (_INFINITE, _UNKNOWN) else None


def _loops_at(given: ast.expr, spot: Spot) -> int | None:
    """The line of the generator behind what Keras was given, where it is a loop without an end."""
    maker = batch_maker(given, spot)
    if maker is not None:
        return maker.function.lineno if maker.verb == "yields" and is_endless(maker.function) else None
    found = [
        one for one in spot.source.calls_of(frozenset({"from_generator"}))
        if any(one in ast.walk(part) for part in _made_of(given, spot.source))
    ]  # fmt: skip
    functions = [generator_calls.function_of(spot.source, generator_calls.given(one)) for one in found]
    return (
        functions[0].lineno if len(functions) == 1 and functions[0] is not None and is_endless(functions[0]) else None
    )


def _made_of(given: ast.expr, source: Source) -> list[ast.AST]:
    """The expressions of a file that a dataset is made by: of its names, and of functions that give it."""
    found: list[ast.AST] = [given]
    todo = [(given, _DEPTH)]
    while todo:
        one, left = todo.pop()
        names = {dotted(part) for part in ast.walk(one) if isinstance(part, (ast.Name, ast.Attribute))} - {""}
        for part in ast.walk(source.tree) if left else ():
            made: ast.AST | None = None
            if isinstance(part, ast.Assign) and names & {dotted(target) for target in part.targets}:
                made = part.value
            elif isinstance(part, ast.FunctionDef) and part.name in {name.rpartition(".")[2] for name in names}:
                made = part
            if made is not None and made not in found:
                found.append(made)
                todo.append((made, left - 1))  # type: ignore[arg-type]
    return found


def _without_repeat(given: ast.expr, spot: Spot) -> Edit | None:
    """The line of a dataset's only `.repeat()` without it."""
    source = spot.source
    repeats = [
        one for one in ast.walk(source.tree)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and _is_endless_repeat(one)
        and any(one in ast.walk(part) for part in _made_of(given, source))
    ]  # fmt: skip
    statement = source.statement(repeats[0].lineno) if len(repeats) == 1 else None
    if statement is None:
        return None
    call = repeats[0]
    owner = call.func.value  # type: ignore[attr-defined]
    first, last = source.span(statement)
    block = source.block(statement) or [statement]
    alone = isinstance(statement, ast.Assign) and statement.value is call
    if alone and isinstance(statement, ast.Assign) and [dotted(one) for one in statement.targets] == [dotted(owner)]:
        follows = block[block.index(statement) + 1 :]
        if not follows:
            return None
        return Edit(spot.file, first, follows[0].lineno, tuple(source.lines[last : follows[0].lineno]))
    place = ast.Name("repeat", ast.Load())
    place.lineno, place.col_offset = owner.end_lineno or call.lineno, owner.end_col_offset or 0
    place.end_lineno, place.end_col_offset = call.end_lineno, call.end_col_offset
    top, bottom = place.lineno, place.end_lineno or place.lineno
    lines = source.spliced({place: ""}, top, bottom)
    if len(lines) == 1 and not lines[0].strip():  # `.repeat()` on a line of its own
        return Edit(spot.file, top, bottom + 1, (source.lines[bottom],)) if bottom < len(source.lines) else None
    return Edit(spot.file, top, bottom, tuple(one.rstrip() for one in lines if one.strip()))


def _is_endless_repeat(call: ast.Call) -> bool:
    if getattr(call.func, "attr", "") != "repeat":
        return False
    given = [*call.args, *(one.value for one in call.keywords)]
    return not given or (len(given) == 1 and ast.unparse(given[0]) in ("None", "-1"))
