"""A batch of a generator or a PyDataset with an array of Python objects: what is in it, and what to make of it."""

from __future__ import annotations

import ast
import re
from typing import Any

from pyfunc_debug.doctor.failures.models.batch_makers import Maker, batch_maker, leaves
from pyfunc_debug.doctor.failures.models.keras_calls import fits
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation, edit_of
from pyfunc_debug.doctor.failures.reading.situation import Situation, frames
from pyfunc_debug.doctor.failures.reading.source import short
from pyfunc_debug.doctor.failures.reading.symbols import alias, described, is_ndarray, keras_name, sizes_of

RULE = "generator"
_SAID = re.compile(r"Invalid dtype: object")
_MAPPED = ("tree_map", "map_structure")
"""Functions that Keras asks each part of the first batch by."""
_LOOKED_AT = 10_000
_SHOWN = 3


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if the first batch is at hand, and one of its arrays holds objects."""
    spot, statement = situation.last, situation.statement
    if spot is None or statement is None or situation.body or not _SAID.search(situation.message):
        return None
    parts = _first_batch(situation)
    places = [at for at, one in enumerate(parts) if is_ndarray(one) and one.dtype == object and one.size]
    for call in fits(statement) if places else ():
        keywords = {one.arg: one.value for one in call.keywords}
        for given in (call.args[0] if call.args else keywords.get("x"), keywords.get("validation_data")):
            maker = batch_maker(given, spot) if given is not None else None
            written = [found for value in maker.values if len(found := _written(value)) == len(parts)] if maker else []
            if maker is not None and written:
                return _told(maker, parts[places[0]], [one[places[0]] for one in written])
    return None


def _first_batch(situation: Situation) -> list[Any]:
    """The parts of the first batch, as Keras took it apart; empty where its frames are gone."""
    for frame in reversed(frames(situation.error.__traceback__ if situation.error is not None else None)):
        found = frame.f_locals.get("leaves") if frame.f_code.co_name in _MAPPED else None
        if isinstance(found, (list, tuple)):
            return list(found)
    return []


def _written(value: ast.expr) -> list[ast.expr]:
    """The parts of what is yielded, as they are written: a list within a tuple is several inputs."""
    if isinstance(value, (ast.Tuple, ast.List)):
        return [part for one in value.elts for part in _written(one)]
    return leaves(value) or [value]


def _told(maker: Maker, array: Any, written: list[ast.expr]) -> Explanation:
    """What the array holds, with the cure where one is certain."""
    name = short(maker.source.text(written[0]), 40)
    held = f"{name} of {maker.name} is an array of Python objects (dtype object), {sizes_of(array.shape)}"
    what, form, advice = _held(array, maker)
    pieces: dict[ast.expr, str] = {one: form.replace("NAME", maker.source.text(one)) for one in written} if form else {}
    edit = edit_of(maker.spot.file, maker.source.replaced(pieces)) if pieces else None
    line = min(one.lineno for one in written)
    return Explanation(RULE, maker.spot.file, line, f"{held}: {what}", edit, "" if edit else advice)


def _held(array: Any, maker: Maker) -> tuple[str, str, str]:
    """What an array of objects holds; the form that makes a tensor of it, "" for none; and what to do in words."""
    import numpy

    every = array.ravel()[:_LOOKED_AT].tolist()
    np = alias(maker.spot, "numpy")
    nones = [at for at, one in enumerate(every) if one is None]
    if nones and array.ndim == 1:
        what = f"element {nones[0]} of it is None, as of a file that was not read."
        return what, "", "Leave such rows out before the array is made, with their labels."
    kinds = {type(one) for one in every}
    if kinds <= {int, float, bool}:
        dtype = "float32" if float in kinds else "int64"
        return "all that is in it are numbers.", f'NAME.astype("{dtype}")', f'.astype("{dtype}") makes numbers of it.'
    if kinds == {dict}:
        return _of_dicts(every)
    if str in kinds and array.ndim == 2:
        columns = [at for at in range(array.shape[1]) if any(isinstance(one, str) for one in array[:, at].tolist())]
        shown = ", ".join(repr(one) for one in list(dict.fromkeys(array[:, columns[0]].tolist()))[:_SHOWN])
        what = f"column {columns[0]} holds text, {shown}."
        return what, "", "Make numbers of that column first, as by keras.layers.StringLookup or pandas' get_dummies."
    if kinds <= {list, tuple, numpy.ndarray}:
        return _of_rows(array, every, np, keras_name(maker.spot))
    kind = next(iter(sorted(one.__name__ for one in kinds)))
    return f"it holds {kind}.", "", "A tensor holds numbers or text: take these out of the objects first."


def _of_dicts(every: list[dict[Any, Any]]) -> tuple[str, str, str]:
    key = next(iter(every[0]), None)
    inside = every[0].get(key)
    held = described(inside) if hasattr(inside, "dtype") else type(inside).__name__
    keys = ", ".join(repr(one) for one in list(every[0])[:_SHOWN])
    what = f"each is a dict with the key{'s' if len(every[0]) > 1 else ''} {keys}, which no tensor holds. "
    out = "list(entry.values())[0]" if len(every[0]) == 1 else f"entry[{key!r}]"
    return f"{what}Under {key!r} is {held}.", "", f"Take that out before it goes into the array: `{out}`."


def _of_rows(array: Any, every: list[Any], np: str, keras: str) -> tuple[str, str, str]:
    """Rows of one shape are stacked, rows of numbers that differ in length padded."""
    import numpy

    try:
        rows = [numpy.asarray(one) for one in every]
    except ValueError:  # lists of lists of different lengths
        return "its rows differ in length.", "", "Bring them to one length first."
    if any(one.dtype.kind not in "biuf" for one in rows) or array.ndim != 1:
        return "its rows do not only hold numbers.", "", "A tensor holds numbers or text: make these first."
    shapes = list(dict.fromkeys(one.shape for one in rows))
    if len(shapes) == 1:
        return f"its rows are arrays of the shape {sizes_of(shapes[0])}.", f"{np}.stack(NAME)", "np.stack joins them."
    shown = " and ".join(sizes_of(one) for one in shapes[:2])
    what = f"its rows have the shapes {shown}, and a tensor has rows of one shape."
    if all(len(one) == 1 for one in shapes):
        kind = "" if all(one.dtype.kind != "f" for one in rows) else ', dtype="float32"'
        return (
            f"{what} Zeros at their ends make them so.",
            f'{keras}.utils.pad_sequences(NAME, padding="post"{kind})',
            ("Pad them to one length."),
        )
    return what, "", "Resize or crop them to one shape where they are read."
