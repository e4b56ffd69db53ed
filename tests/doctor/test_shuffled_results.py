"""Results of two passes over a shuffled dataset are told of where one is matched with the other, and only there."""

from __future__ import annotations

import random

import pytest

from pyfunc_debug.api.recording import Recording
from tests.doctor.recordings import FILE, written
from tests.seeds import suite_seed

STAGES = [{"kind": "Batch", "tokens": []}, {"kind": "Shuffle", "tokens": [], "reshuffles": True}]
MATCHES = [
    "np.mean({0} == {1})", "list(zip({0}, {1}))", "print(np.abs({0} - {1}))", "accuracy_score({0}, y_pred={1})",
    'pd.DataFrame({{"a": {0}, "b": {1}}})', "({0} != {1}).sum()", "np.testing.assert_equal({0}, {1})",
    "confusion_matrix({0}.ravel(), np.argmax({1}, 1))",
]  # fmt: skip
MADE = ["{0} = np.concatenate({0})", "{1} = np.argmax({0}, axis=1)", "{1} = {0}[:100]", "{1} = np.array({0}).ravel()",
        "{1} = {0}[: len({2})]"]  # fmt: skip


def found(tmp_path, source, loops):
    """What is found of a program with these lines that loop over datasets: `(line, dataset)`."""
    inputs = [
        {"site": [FILE, line, ""], "stages": [*STAGES, {"kind": dataset, "tokens": []}], "iterators": 1, "taken": 2}
        for line, dataset in loops
    ]
    path = written(tmp_path / "a.pfrec", source, {"inputs": inputs})
    return Recording(path).findings(select=["shuffled-results", "doctor-trouble"])


def program(seed):
    """A random program that collects, computes and matches; its loops, and whether two passes of one are matched."""
    draw = random.Random(1000 * suite_seed() + seed)
    lines, loops, results = [], [], []
    for number in range(draw.randint(2, 5)):
        dataset, part = draw.choice(["train", "test"]), draw.choice([0, 1])
        name = f"kept{number}"
        lines.append(f"{name} = [{'xy'[part]} for x, y in {dataset}]")
        loops.append((len(lines), dataset))
        results.append((name, dataset, part, number))
    for number in range(draw.randint(0, 3)):
        place = draw.randrange(len(results))
        name, *rest = results[place]
        other = draw.choice(results)[0]
        new = f"made{number}"
        line = draw.choice(MADE)
        lines.append(line.format(name, new, other))
        if "{1}" in line:
            results.append((new, *rest))
    truth = False
    for _ in range(draw.randint(0, 3)):
        one, other = draw.choice(results), draw.choice(results)
        lines.append(draw.choice(MATCHES).format(one[0], other[0]))
        truth = truth or (one[1] == other[1] and one[2] != other[2])
    return "\n".join(lines) + "\n", loops, truth


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(tmp_path, seed):
    source, loops, truth = program(seed)
    assert bool(found(tmp_path, source, loops)) == truth, source


def test_two_results_that_are_each_matched_with_something_else(tmp_path):
    source = (
        "images = [x for x, _ in test]\nlabels = [y for _, y in test]\nprint(np.mean(images == before))\n"
        "print(list(zip(labels, names)))\nprint(images == images)\n"
    )
    assert found(tmp_path, source, [(1, "test"), (2, "test")]) == []


def test_the_two_that_are_matched_are_named(tmp_path):
    source = (
        "images = [x for x, _ in test]\nlabels = [y for _, y in test]\nagain = [x for x, _ in test]\n"
        "print(list(zip(labels, again)))\n"
    )
    (one,) = found(tmp_path, source, [(1, "test"), (2, "test"), (3, "test")])
    assert one.message.startswith("what train.py:2 and train.py:3 collect from this dataset")
