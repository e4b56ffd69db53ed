"""What is printed under a traceback: one line for each thing, and a paste that can be copied as it is."""

from __future__ import annotations

from pyfunc_debug.doctor.failures.pastes.explanation import Edit, Explanation

EDIT = Edit("train.py", 6, 6, ("    mean = tf.reduce_mean(image)",))
FIRST = "`mean = np.mean(image)` ran once, while step was traced, when image (float32[4, 4]) had no value yet."
SECOND = "Each run goes through the graph: ops, and Python only in py_functions."


def test_each_sentence_is_on_a_line_of_its_own():
    told = Explanation("symbolic-value", "train.py", 6, f"{FIRST} {SECOND}", EDIT).text()
    assert told.split("\n") == [
        "pyfunc-debug: train.py:6: `mean = np.mean(image)` ran once, while step was",
        "  traced, when image (float32[4, 4]) had no value yet.",
        f"  {SECOND}",
        "  Replace train.py:6 by:",
        "    mean = tf.reduce_mean(image)",
    ]


def test_where_that_takes_too_many_lines_they_follow_each_other():
    sentences = [f"Sentence {number} says a thing of its own in some words." for number in range(5)]
    lines = Explanation("structure", "train.py", 6, " ".join(sentences), EDIT).text().split("\n")
    assert len(lines) <= 6
    assert sentences[0] in lines[0]
    assert "Sentence 1" in lines[0] + lines[1]
