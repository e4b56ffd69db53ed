"""Tests that a cause which fails takes no other with it, and that messages of TensorFlow 1 are read as those of 2."""

import pytest

from pyfunc_debug.doctor.failures import causes
from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import situation


def _asked(error):
    return causes.explain(error, lambda file, line: (file, line), lambda *_: [])


def _fails(_):
    raise SyntaxError("invalid syntax")


def test_the_next_cause_is_asked_behind_one_that_fails(monkeypatch):
    told = Explanation("generator", __file__, 1, "known", None, "Do it.")
    monkeypatch.setattr(causes, "CAUSES", (_fails, lambda _: told))
    assert _asked(TypeError("refused")).cause == "known"


def test_an_explanation_that_cannot_be_finished_does_not_stop_the_others(monkeypatch):
    told = Explanation("generator", __file__, 1, "known", None, "Do it.")
    seen = []

    def finished(explanation, _):
        seen.append(explanation)
        if len(seen) == 1:
            raise ValueError("unfinished")
        return explanation

    monkeypatch.setattr(causes, "CAUSES", (lambda _: told, lambda _: told))
    monkeypatch.setattr(causes, "finite", finished)
    assert _asked(TypeError("refused")).cause == "known"


def test_a_failure_of_the_only_cause_is_not_hidden(monkeypatch):
    monkeypatch.setattr(causes, "CAUSES", (_fails,))
    with pytest.raises(SyntaxError):
        _asked(TypeError("refused"))


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("of shape (3,) where (?, 3) was expected", "of shape (3,) where (None, 3) was expected"),
        ("shapes (?,) and (2, ?, ?)", "shapes (None,) and (2, None, None)"),
        ("Is it (really?) so (?)", "Is it (really?) so (None)"),
        ("Shape must be rank 2 for [?,3]", "Shape must be rank 2 for [?,3]"),
    ],
)
def test_open_sizes_are_read_alike(said, read):
    found = situation(TypeError(said), lambda file, line: (file, line), lambda *_: [])
    assert (found.message, found.text) == (read, read)
