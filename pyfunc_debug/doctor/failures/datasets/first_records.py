"""The first record of each file of records that a program reads, as tf.train.Example."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from pyfunc_debug.doctor.failures.datasets.broken_images import file_names
from pyfunc_debug.doctor.failures.reading import datasets, evaluation
from pyfunc_debug.doctor.failures.reading.files import first_record
from pyfunc_debug.doctor.failures.reading.nodes import argument
from pyfunc_debug.doctor.failures.reading.situation import Situation
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import calls, lookup


def features(situation: Situation) -> Iterator[Mapping[str, Any]]:
    """The features, by name, of the first record of each file; of those that hold an Example."""
    names = [*file_names(situation), *file_names(situation, datasets.gone_over(situation))]
    for file, source in situation.sources():
        spot = next((one for one in situation.spots if one.file == file), situation.last)
        for call in calls(source.tree):
            given = argument(call, 0, "filenames") if dotted(call.func).endswith("TFRecordDataset") else None
            value = evaluation.computed(given, spot) if given is not None and spot is not None else None
            value = lookup(given, spot) if value is None and given is not None and spot is not None else value
            found = value if isinstance(value, list) else [value]
            names += [str(one) for one in found if type(one).__name__ in ("str", "PosixPath", "WindowsPath")]
    for name in dict.fromkeys(names):
        data = first_record(name)
        with suppress(Exception):  # no tf.train.Example
            every = sys.modules["tensorflow"].train.Example.FromString(data).features.feature if data else {}
            if every:
                yield {one: every[one] for one in list(every)}


def kinds(situation: Situation) -> Iterator[dict[str, str]]:
    """The same with the name of each feature's list: "int64_list"."""
    for every in features(situation):
        yield {name: one.WhichOneof("kind") or "" for name, one in every.items()}
