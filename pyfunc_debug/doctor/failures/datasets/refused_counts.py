"""A program, or a library, that refuses a dataset as it does not know how many elements that has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from pyfunc_debug.doctor.failures.datasets import generator_calls
from pyfunc_debug.doctor.failures.datasets.unknown_counts import counted, dataset_of
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.datasets import with_inputs
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot, frames
from pyfunc_debug.doctor.failures.reading.source import dotted, indent_of, short
from pyfunc_debug.doctor.failures.reading.symbols import alias, is_dataset, lookup
from pyfunc_debug.doctor.generators.element_counts import asserted, count_of, length_in
from pyfunc_debug.doctor.generators.generator_source import is_endless
from pyfunc_debug.program.frames import is_installed, is_tensorflow

RULE = "unknown-length"
_UNKNOWN, _ENDLESS = -2, -1
_NO_LENGTH = re.compile(r"^The dataset length is unknown")
_STAGES = {"_FilterDataset": "filter", "_TakeWhileDataset": "take_while", "_UnbatchDataset": "unbatch",
           "_IgnoreErrorsDataset": "ignore_errors", "_InterleaveDataset": "interleave",
           "_ParallelInterleaveDataset": "interleave", "_FlatMapDataset": "flat_map"}  # fmt: skip


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if what was raised depended on such a number."""
    if situation.body or situation.last is None:
        return None
    if situation.kind == "TypeError" and _NO_LENGTH.search(situation.message):
        asked = [one.f_locals.get("self") for one in frames(situation.inner.__traceback__)
                 if one.f_code.co_name == "__len__"]  # fmt: skip
        if len(asked) == 1 and is_dataset(asked[0]):
            return _told(situation, asked[0], situation.last.line, "the length of the dataset was asked for")
        return None
    spot = _raising(situation)
    if spot is None:
        return None
    for said, dataset, number in _read(spot):
        if number == _ENDLESS:
            cause = f"{said} is -1: the dataset has no end, as it repeats."
            advice = "Count the dataset in front of repeat(), and hand that on."
            return Explanation(RULE, situation.last.file, situation.last.line, cause, None, advice, "likely")
        return _told(situation, dataset, situation.last.line, f"{said} is -2")
    return None


def _raising(situation: Situation) -> Spot | None:
    """The frame that raised: the user's, or a library's that is not TensorFlow's."""
    found = frames(situation.inner.__traceback__)
    last = situation.last
    if not found or last is None or not is_installed(found[-1].f_code.co_filename):
        return last
    frame, file = found[-1], found[-1].f_code.co_filename
    if is_tensorflow(file) or re.search(r"[/\\](?:tf_)?keras[/\\]|[/\\]numpy[/\\]", file):
        return None
    traceback = situation.inner.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    line = traceback.tb_lineno if traceback is not None else frame.f_lineno
    return Spot(file, line, dict(frame.f_locals), frame.f_globals, "")


def _read(spot: Spot) -> Iterator[tuple[str, Any, int]]:
    """What the condition of the failing line read of cardinality(): how that is said, the dataset, and the number."""
    statement = spot.statement
    if not isinstance(statement, (ast.Raise, ast.Assert)):
        return
    tests = list(_tests(spot, statement))
    within = spot.function if spot.function is not None else spot.source.tree
    for one in ast.walk(within):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and one.lineno < statement.lineno:
            asked, name = counted(one.value), dotted(one.targets[0])
            dataset = lookup(where, spot) if asked is not None and (where := dataset_of(asked)) is not None else None
            if asked is None or not name or not is_dataset(dataset) or not any(_reads(test, name) for test in tests):
                continue
            number = _number(lookup(one.targets[0], spot))
            if number in (_UNKNOWN, _ENDLESS):
                yield (
                    f"{short(name, 32)}, `{short(spot.source.text(asked), 44)}` in line {one.lineno},",
                    dataset,
                    number,
                )
    for test in tests:
        asked = counted(test)
        where = dataset_of(asked) if asked is not None else None
        dataset = lookup(where, spot) if where is not None else None
        if asked is not None and is_dataset(dataset) and _cardinality(dataset) in (_UNKNOWN, _ENDLESS):
            yield f"`{short(spot.source.text(asked), 44)}`", dataset, _cardinality(dataset)


def _tests(spot: Spot, statement: ast.stmt) -> Iterator[ast.expr]:
    """The conditions that led to a `raise`: around it, or of an `if` just above that returns."""
    if isinstance(statement, ast.Assert):
        yield statement.test
    for one in spot.source.around(statement):
        if isinstance(one, ast.If):
            yield one.test
        elif isinstance(one, (ast.FunctionDef, ast.Lambda)):
            break
    block = spot.source.block(statement) or []
    before = block[block.index(statement) - 1] if statement in block[1:] else None
    if isinstance(before, ast.If) and isinstance(before.body[-1], ast.Return):
        yield before.test


def _reads(test: ast.expr, name: str) -> bool:
    return any(isinstance(one, (ast.Name, ast.Attribute)) and dotted(one) == name for one in ast.walk(test))


def _number(value: Any) -> int | None:
    value = value.numpy() if type(value).__name__ == "EagerTensor" else value
    value = value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value
    return value if type(value) is int else None


def _cardinality(dataset: Any) -> int:
    return int(dataset.cardinality())


def _told(situation: Situation, dataset: Any, line: int, said: str) -> Explanation | None:
    """What to say of a dataset that does not know its number of elements, and where to say that number."""
    last = situation.last
    assert last is not None
    stages = list(with_inputs([dataset]))
    unknown = [one for one in stages if _cardinality(one) == _UNKNOWN]
    source = [one for one in unknown if not any(each is not one and each in unknown for each in with_inputs([one]))]
    if _cardinality(dataset) != _UNKNOWN or not source:
        return None
    repeats = any("Repeat" in type(one).__name__ for one in stages)
    names = [(spot, name, value) for spot in situation.spots for known in (spot.variables, spot.module)
             for name, value in known.items() if any(value is one for one in unknown)]  # fmt: skip
    made = _generator_call(situation, source[0], names) if len(source) == 1 else None
    kind = _STAGES.get(type(source[0]).__name__, "a part of it") if len(source) == 1 else "its parts"
    what = "a generator" if made is not None else kind
    cause = f"{said}: TensorFlow does not know how many elements there are behind {what}. "
    advice = "Say it: ds = ds.apply(tf.data.experimental.assert_cardinality(n)), n the number of its elements."
    edit = None
    only = all(type(one).__name__ not in _STAGES or one is source[0] for one in unknown)
    if made is not None and only and not repeats:
        file, call = made
        spot = next((one for one in situation.spots if one.file == file), last)
        own = spot.source
        by_source = length_in(own)

        def length(value: ast.expr) -> int | None:
            known = lookup(value, Spot(file, call.lineno, spot.variables if spot.function is None else {},
                                       spot.module, ""))  # fmt: skip
            return len(known) if isinstance(known, (list, tuple, dict, range)) else by_source(value)

        count = count_of(own, call, length)
        if count:
            edit = asserted(file, own, call, count, alias(spot, "tensorflow"))
            cause += f"`assert_cardinality` says that it is {short(count, 40)}."
        elif is_endless(generator_calls.function_of(own, generator_calls.given(call))):
            return None
    if edit is None and not repeats and (found := _counted(situation, source[0], dataset)) is not None:
        edit, name = found
        cause += f"The paste counts those of {name}, by one pass over the data: a number that you know is faster."
    return Explanation(
        RULE, last.file, line, cause.strip(), edit, "" if edit is not None else advice, "likely" if edit else "measured"
    )


def _generator_call(
    situation: Situation, source: Any, names: list[tuple[Spot, str, Any]]
) -> tuple[str, ast.Call] | None:
    """The call of from_generator that made the source of a dataset."""
    if type(source).__name__ != "_FlatMapDataset":
        return None
    every = generator_calls.calls(situation)
    named = {name for _, name, value in names if value is source}
    fitting = [
        one for one in every
        if isinstance(up := one[1].parent(one[2]), ast.Assign) and named & set(map(dotted, up.targets))
    ]  # fmt: skip
    found = fitting if len(fitting) == 1 else every if len(every) == 1 else []
    return (found[0][0], found[0][2]) if found else None


def _counted(situation: Situation, source: Any, dataset: Any) -> tuple[Edit, str] | None:
    """A line below the one assignment of a name of the module, that counts its dataset."""
    for wanted in (source, dataset) if source is not dataset else (source,):
        for spot in situation.spots:
            for name, value in spot.module.items():
                if value is not wanted:
                    continue
                made = [one for one in spot.source.tree.body if isinstance(one, ast.Assign)
                        and [dotted(target) for target in one.targets] == [name]]  # fmt: skip
                if len(made) != 1 or made[0].lineno >= situation.spots[0].line:
                    continue
                below = (made[0].end_lineno or made[0].lineno) + 1
                tf, indent = alias(spot, "tensorflow"), indent_of(spot.source.lines[made[0].lineno - 1])
                text = (
                    f"{indent}{name} = {name}.apply({tf}.data.experimental.assert_cardinality(sum(1 for _ in {name})))"
                )
                return Edit(spot.file, below, below - 1, (text,)), name
    return None
