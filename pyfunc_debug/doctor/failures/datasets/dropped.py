"""`ds.batch(32)` or `ds.map(parse)` as a statement, where the line that failed reads `ds`, which stayed as it was."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.datasets.by_text import Dropped, Program, chain
from pyfunc_debug.doctor.failures.datasets import exhausted
from pyfunc_debug.doctor.failures.models import keras_calls
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.dtypes import own_nodes
from pyfunc_debug.doctor.failures.reading.situation import Situation, Spot
from pyfunc_debug.doctor.failures.reading.source import Source, short
from pyfunc_debug.doctor.failures.reading.symbols import is_dataset

RULE = "dropped-dataset"
_CHANGES = {"map", "batch", "padded_batch", "ragged_batch", "unbatch", "interleave", "flat_map", "apply", "window",
            "enumerate", "rebatch", "group_by_window", "bucket_by_sequence_length", "scan"}  # fmt: skip
"""Those without which the elements have other shapes, dtypes or parts."""
_FROM_DATA = ("ValueError", "TypeError", "InvalidArgumentError", "AttributeError", "IndexError", "KeyError")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if Keras or a loop took elements that a dropped method was to change."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or situation.kind not in _FROM_DATA:
        return None
    dropped = [one for name in _read(statement, spot) for one in _dropped(spot, statement, name)]
    if not any(_CHANGES & {*one.methods} for one in dropped):
        return None
    dropped = _beside(dropped, spot)
    name, edit = dropped[0].owner, _kept(dropped, spot.source, spot.file)
    methods = [one.text for one in dropped]
    said = f"{', '.join(methods[:-1])} and {methods[-1]} give" if len(methods) > 1 else f"{methods[0]} gives"
    code = short(spot.source.text(statement).partition("\n")[0], 34)
    cause = (
        f"nothing keeps the new dataset{'s' * (len(methods) > 1)} that {said}: {name} itself stays as it was. "
        f"`{code}` (line {spot.line}) reads it so."
    )
    return Explanation(RULE, spot.file, edit.first, cause, edit)


def ended(situation: Situation) -> Explanation | None:
    """The explanation, if data ended whose `ds.repeat()` was dropped, and nothing else repeats them."""
    spot = situation.last
    if spot is None or situation.body or situation.kind not in ("OutOfRangeError", "StopIteration"):
        return None
    if "End of sequence" not in situation.message and exhausted.explain(situation) is None:
        return None
    sources = dict(situation.sources())
    program = Program(one.tree for one in sources.values())
    attributes = [one for source in sources.values() for one in ast.walk(source.tree) if isinstance(one, ast.Attribute)]
    repeats = [one for one in attributes if one.attr == "repeat"]
    found = [
        (file, source, one) for file, source in sources.items() for one in program.dropped(source.tree)
        if "repeat" in one.methods and program.is_read(one)
    ]  # fmt: skip
    if len(found) != 1 or len(repeats) != 1:
        return None
    file, source, one = found[0]
    code = short(spot.source.text(spot.statement).partition("\n")[0], 34) if spot.statement is not None else "it"
    cause = (
        f"nothing keeps the new dataset that {one.text} gives: {one.owner} itself stays as it was, and ends after one "
        f"pass. `{code}` (line {spot.line}) asked for more."
    )
    edit = _kept([one], source, file)
    return Explanation(RULE, file, edit.first, cause, edit)


def _kept(dropped: list[Dropped], source: Source, file: str) -> Edit:
    """The statements, next to each other, as assignments."""
    statements = [one.statement for one in dropped]
    first, last = statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno
    lines = list(source.lines[first - 1 : last])
    for one in statements:
        line = lines[one.lineno - first]
        lines[one.lineno - first] = f"{line[: one.col_offset]}{dropped[0].owner} = {line[one.col_offset :]}"
    return Edit(file, first, last, tuple(lines))


def _read(statement: ast.stmt, spot: Spot) -> list[str]:
    """The datasets that Keras is given in a statement, or that a loop goes over, by their names."""
    given = [one.args[0] for one in keras_calls.fits(statement) if one.args]
    given += [word.value for one in keras_calls.fits(statement) for word in one.keywords]
    given += [statement.iter] if isinstance(statement, ast.For) else []
    names = dict.fromkeys(part.id for one in given for part in ast.walk(one) if isinstance(part, ast.Name))
    return [name for name in names if is_dataset(spot.value(name))]


def _dropped(spot: Spot, statement: ast.stmt, name: str) -> list[Dropped]:
    """Statements above a line, of the same function, that call such a method of a dataset and drop the result."""
    function = spot.function
    nodes = [*(own_nodes(function) if function is not None else ast.walk(spot.source.tree))]
    known = [one for one in map(chain, nodes) if one is not None]
    found = [one for one in known if one.owner == name and one.statement.lineno < statement.lineno]
    bound = [
        one.lineno for one in nodes
        if isinstance(one, ast.Assign) and any(getattr(part, "id", "") == name for part in one.targets)
        and not any(getattr(part, "id", "") == name for part in ast.walk(one.value))
    ]  # fmt: skip
    last = max((line for line in bound if line < statement.lineno), default=0)
    return sorted((one for one in found if one.statement.lineno > last), key=lambda one: one.statement.lineno)


def _beside(dropped: list[Dropped], spot: Spot) -> list[Dropped]:
    """The first that changes elements, with those of the lines next to it: one paste keeps them all."""
    block = spot.source.block(dropped[0].statement) or []
    place = next(number for number, one in enumerate(dropped) if _CHANGES & {*one.methods})
    first = last = place
    at = {id(one): number for number, one in enumerate(block)}
    where = [at.get(id(one.statement), -9 * number) for number, one in enumerate(dropped)]
    while first and where[first - 1] == where[first] - 1:
        first -= 1
    while last + 1 < len(dropped) and where[last + 1] == where[last] + 1:
        last += 1
    return [one for one in dropped[first : last + 1] if one.owner == dropped[place].owner]
