"""A finding about values shows what its first call was given: a picture, or a histogram without its elements."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tensorflow as tf

import pyfunc_debug as pfd
from pyfunc_debug.report.answers import Answers
from pyfunc_debug.report.pictures import Elements, picture, png

IMAGES = np.random.default_rng(0).random((8, 16, 16, 3)).astype(np.float32)
IMAGES[5, 2:] = 0


def logarithm(image):
    return np.log(image.sum((1, 2)) - 1e-9)


def found(values):
    with pfd.record(values=values, gil=False) as recording, np.errstate(all="ignore"):
        for _ in tf.data.Dataset.from_tensor_slices(IMAGES).map(
            lambda x: tf.numpy_function(logarithm, [x], tf.float32)
        ):
            pass
    return recording, recording.findings(select=["nan-born"])


def shown(recording, findings):
    answers = Answers(recording.path, findings=lambda: findings)
    with answers.reading():
        answers.use_findings(findings)
        return answers.ask("findings", {})[0]["findings"][0]["inputs"]


def test_the_panel_the_report_and_the_notebook_show_the_input_that_made_nan():
    recording, findings = found("full")
    (one,) = shown(recording, findings)
    assert (one["path"], one["picture"]["width"], one["picture"]["kind"]) == ("image", 16, "rgb")
    assert re.findall(r"<figcaption>(.*?)</figcaption>", findings._repr_html_()) == ["image of call #6"]
    ((_, file),) = recording.thumbnails(findings[0])
    np.testing.assert_allclose(tf.io.decode_png(file).numpy(), IMAGES[5] * 255, atol=1)
    recording.close()


def test_without_elements_there_is_a_histogram():
    recording, findings = found("summary")
    (one,) = shown(recording, findings)
    assert one["picture"] is None
    assert sum(one["histogram"]) == IMAGES[0].size
    assert recording.thumbnails(findings[0]) == []
    recording.close()


def test_findings_do_not_keep_a_recording_alive():
    recording, findings = found("full")
    recording.close()
    del recording
    assert "<figure" not in findings._repr_html_()


@pytest.mark.parametrize(
    ("array", "corner"),
    [
        (np.linspace(0, 1, 64).reshape(8, 8), [0]),
        (np.linspace(-1, 1, 64).reshape(8, 8), [0, 114, 178]),
        (np.linspace(0, 1, 192).reshape(8, 8, 3), [0, 1, 2]),
    ],
    ids=["gray", "diverging", "rgb"],
)
def test_a_picture_is_a_png_in_the_panels_colours(array, corner):
    made = tf.io.decode_png(png(picture(Elements(array.astype(np.float32))))).numpy()
    assert made.shape[:2] == (8, 8)
    np.testing.assert_allclose(made[0, 0], corner, atol=2)
