"""Elements of more axes than `padded_batch` can pad: its kernel knows five. A ragged batch pads any number of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyfunc_debug.doctor.failures.datasets.padded_ranks import padding_call
from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation
from pyfunc_debug.doctor.failures.reading.datasets import gone_over, part_names
from pyfunc_debug.doctor.failures.reading.nodes import argument, tail
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import read
from pyfunc_debug.doctor.failures.reading.symbols import alias, shape_of
from pyfunc_debug.interception.names.private import dataset_inputs

RULE = "ragged-batch"
_SAID = re.compile(r"CopyElementToLargerSlice Unhandled rank: (\d+)")


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if a batch was to be padded along more axes than the kernel knows."""
    said, found = _SAID.search(situation.message), padding_call(situation)
    if said is None or found is None or situation.last is None:
        return None
    file, call = found
    name = getattr(call.func, "attr", "padded_batch")
    whole = "padded_batch" if name == "padded_batch" else f"{name}, which pads as padded_batch does,"
    cause = (
        f"{whole} fills up elements of at most 5 axes, and these have {said[1]}: TensorFlow has no kernel for more. "
    )
    cause += "The elements themselves are right."
    text = _ragged(situation, alias(situation.last, "tensorflow")) if name == "padded_batch" else None
    size, drops = argument(call, 0, "batch_size"), argument(call, 3, "drop_remainder")
    source = read(file)
    if text is None or size is None or argument(call, 2, "padding_values") is not None or len(call.args) > 4:
        advice = "Fill them up to one size where they are made (np.pad) and use batch(...), or reshape them to fewer "
        advice += "axes before, and back behind it."
        return Explanation(RULE, file, call.lineno, cause, None, advice)
    before, behind = text
    sizes = source.text(size) + (f", drop_remainder={source.text(drops)}" if drops is not None else "")
    place = tail(call)
    edit = Edit(file, *source.kept_lines({place: f"{before}.ragged_batch({sizes}){behind}"}))
    cause += " Below, a ragged batch is made a tensor: that fills up with zeros, too."
    return Explanation(RULE, file, call.lineno, cause, edit)


def _ragged(situation: Situation, tf: str) -> tuple[str, str] | None:
    """What goes before and behind a ragged batch: maps that say the ranks, and that make tensors of ragged ones.

    None where the dataset is not known, or padded_shapes has sizes that the elements need not have.
    """
    found = [one for one in gone_over(situation) if type(one).__name__.strip("_") == "PaddedBatchDataset"]
    below = dataset_inputs(found[0]) if len(found) == 1 else []
    if len(below) != 1:
        return None
    spec = below[0].element_spec
    try:
        parts = _parts(spec, found[0].element_spec)
    except ValueError:
        return None
    known = _mapped(
        below[0].element_spec, parts, lambda text, rank: f"{tf}.ensure_shape({text}, [None] * {rank})", True
    )
    dense = _mapped(spec, parts, lambda text, _: f"{text}.to_tensor()", False)
    return (known, dense) if dense else None


def _parts(spec: Any, padded: Any) -> dict[int, tuple[int, bool]]:
    """The rank of each part that becomes ragged, by the identity of its spec, and whether only padded_shapes has it."""
    if isinstance(spec, dict):
        return {key: one for name in spec for key, one in _parts(spec[name], padded[name]).items()}
    if isinstance(spec, tuple):
        return {key: one for own, other in zip(spec, padded) for key, one in _parts(own, other).items()}
    if type(spec).__name__ != "TensorSpec" or (sizes := shape_of(padded)) is None:
        raise ValueError("no shape is known")
    own, sizes = shape_of(spec), sizes[1:]
    if own is None:
        if any(one is not None for one in sizes):
            raise ValueError("padded to a size")
        return {id(spec): (len(sizes), True)}
    if any(one is not None and one != other for one, other in zip(sizes, own)):
        raise ValueError("padded to a size")
    return {id(spec): (len(own), False)} if None in own else {}


def _mapped(spec: Any, parts: dict[int, tuple[int, bool]], make: Callable[[str, int], str], unknown: bool) -> str:
    """`.map(...)` that changes the parts of an element; "" where there is nothing to change."""
    wanted = {key: rank for key, (rank, open_) in parts.items() if (open_ if unknown else rank > 0)}
    names = part_names(len(spec)) if isinstance(spec, tuple) else part_names(1)
    if isinstance(spec, tuple):
        listed = [_changed(one, name, wanted, make) for one, name in zip(spec, names)]
        whole = f"({', '.join(listed)}{',' * (len(listed) == 1)})"
    else:
        whole = _changed(spec, names[0], wanted, make)
    return f".map(lambda {', '.join(names)}: {whole})" if wanted else ""


def _changed(spec: Any, text: str, wanted: dict[int, int], make: Callable[[str, int], str]) -> str:
    if isinstance(spec, dict):
        inside = {key: _changed(one, f"{text}[{key!r}]", wanted, make) for key, one in spec.items()}
        new = [f"{key!r}: {one}" for key, one in inside.items() if one != f"{text}[{key!r}]"]
        kept = [] if len(new) == len(inside) else [f"**{text}"]
        return f"{{{', '.join([*kept, *new])}}}" if new else text
    if isinstance(spec, tuple):
        inside_parts = [_changed(one, f"{text}[{place}]", wanted, make) for place, one in enumerate(spec)]
        return f"({', '.join(inside_parts)}{',' * (len(inside_parts) == 1)})"
    return make(text, wanted[id(spec)]) if id(spec) in wanted else text
