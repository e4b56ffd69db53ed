"""A generator that shuffles in each pass: the paste gives each pass the same order, where nothing is trained on it."""

import pytest

from tests.doctor.pasting import pasted, pastes, run

PROGRAM = """import random
import numpy as np
import tensorflow as tf

kept = np.arange(20)

def rows():
    DRAW
    for i in order:
        yield np.full(2, i, np.float32), i

test = tf.data.Dataset.from_generator(rows, output_types=(tf.float32, tf.int64)).batch(4)
images = np.concatenate([x for x, _ in test])
labels = np.concatenate([y for _, y in test])
np.mean(images[:, 0] == labels)
"""
DRAWS = [
    ("order = np.random.permutation(20)", "order = np.random.default_rng(0).permutation(20)"),
    ("order = list(range(20)); random.shuffle(order)", "order = list(range(20)); random.Random(0).shuffle(order)"),
    ("order = np.arange(20)\n    np.random.shuffle(order)", "np.random.default_rng(0).shuffle(order)"),
    ("order = kept; np.random.shuffle(kept)", ""),
]


@pytest.mark.parametrize(("draw", "wanted"), DRAWS)
def test_each_pass_has_the_same_order_after_the_paste(draw, wanted, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("DRAW", draw))
    error, _, recording = run(path)
    assert error is None
    (found,) = recording.findings(select=["shuffled-results"])
    assert "rows gave the same elements in another order in each pass" in found.message
    assert pastes(found.fix) is bool(wanted), "what is kept for the next pass has another order by then"
    if wanted:
        text = pasted(path.read_text(), found.fix)
        assert wanted in text
        path.write_text(text)
        assert run(path)[2].findings(select=["shuffled-results"]) == []


def test_what_is_trained_on_keeps_its_order(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(f"{PROGRAM.replace('DRAW', DRAWS[0][0])}\ndef later(model):\n    model.fit(test)\n")
    (found,) = run(path)[2].findings(select=["shuffled-results"])
    assert not pastes(found.fix)
