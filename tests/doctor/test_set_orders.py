"""The order of a set of texts is told of where each run has another one: not with a fixed seed of their hashes."""

from __future__ import annotations

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.recordings import written

SOURCE = 'classes = list({"cat", "dog"})\ntable = {name: i for i, name in enumerate(classes)}\nprint(table["cat"])\n'


@pytest.mark.parametrize(("seed", "told"), [("", ["classes = sorted({"]), ("0", []), ("42", [])])
def test_a_fixed_seed_of_the_hashes_gives_one_order(seed, told, tmp_path):
    path = written(tmp_path / "a.pfrec", SOURCE, {"hash_seed": seed})
    found = Recording(path).findings(select=["set-order", "doctor-trouble"])
    assert [one.fix.split("\n")[1][: len(want)] for one, want in zip(found, told)] == told
    assert len(found) == len(told)


@pytest.mark.parametrize(
    "source",
    [
        SOURCE.replace("list(", "sorted("),
        SOURCE.replace('print(table["cat"])', "print(table)"),
        SOURCE.replace('{"cat", "dog"}', "{1, 2}"),
        SOURCE.replace('{"cat", "dog"}', '["cat", "dog"]'),
        SOURCE.replace("enumerate(classes)", "zip(classes, classes)"),
        f"import json\n{SOURCE}json.dump(table, open('a', 'w'))\n",
        f"import json\n{SOURCE}open('a', 'w').write('\\n'.join(classes))\n",
        f"def one(classes):\n    return classes.index('cat')\n{SOURCE.split(chr(10))[0]}\n",
    ],
)
def test_nothing_is_told_of_other_orders(source, tmp_path):
    path = written(tmp_path / "a.pfrec", source)
    assert Recording(path).findings(select=["set-order", "doctor-trouble"]) == []
