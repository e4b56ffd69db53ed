"""Values looked at closely: batches as images, scalars over calls, two calls side by side with their difference."""

from __future__ import annotations

import contextlib
import json
import sqlite3

import numpy as np
import pytest

from pyfunc_debug.report.answers import Answers
from pyfunc_debug.report.pictures import Elements, frames, picture
from tests.report import recordings


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return Answers(recordings.small(tmp_path_factory.mktemp("looks") / "train.pfrec", steps=5))


def ask(answers, method, **params):
    with answers.reading():
        return answers.ask(method, params)[0]


def test_a_batch_is_its_first_images_and_what_is_no_batch_is_none():
    batch = np.random.default_rng(0).random((40, 8, 8, 3)).astype(np.float32)
    shown, count = frames(Elements(batch))
    assert (len(shown), count) == (16, 40)
    assert frames(Elements(batch[0])) == ([], 0), "one image"
    assert frames(Elements(batch[:, :, :, 0]))[1] == 40, "gray images without a channel"
    assert frames(Elements(np.zeros((4, 2, 2, 3)))) == ([], 0), "too small for pictures"
    assert frames(Elements(None, ("a", "b"))) == ([], 0)


def test_an_image_a_little_above_one_is_no_image_of_bytes():
    image = np.linspace(0, 1, 8 * 8 * 3, dtype=np.float32).reshape(8, 8, 3)
    highest = {scale: picture(Elements(image * scale))["high"] for scale in (1, 2, 255)}
    assert highest == {1: 1.0, 2: pytest.approx(2), 255: 255.0}
    assert picture(Elements((image * 9).astype(np.uint8)))["high"] == 255.0, "dark bytes stay dark"


def test_a_value_is_large_when_somebody_asks(answers):
    seen = ask(answers, "value", call=1, side="out", position=0)
    assert (seen["picture"]["width"], seen["picture"]["kind"]) == (48, "rgb")
    assert seen["kept"] == "full"
    assert ask(answers, "value", call=10**6, side="out", position=0) is None


def test_a_scalar_is_drawn_over_the_calls_of_its_node(answers):
    call = next(row["id"] for row in ask(answers, "calls", nodes=[3], kind="forward")["rows"])
    detail = ask(answers, "call", id=call)
    assert detail["trends"] == {"in:2": {"ids": detail["trends"]["in:2"]["ids"], "values": [1.0] * 5}}


def test_what_a_logpoint_logged_is_drawn_over_the_calls_of_its_node(tmp_path):
    path = recordings.small(tmp_path / "logged.pfrec", steps=5)
    answers = Answers(path)
    calls = [row["id"] for row in ask(answers, "calls", nodes=[3], kind="forward")["rows"]]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for position, call in enumerate(calls):
            for number in (0.0, float(position)):  # twice in one call: the last counts
                numbers = {"x.max()": number}
                facts = {"at": "before", "texts": [f"x.max() = {number}"], "numbers": numbers, "locals": ["k = 3"]}
                row = ("logged", 3, call, json.dumps(facts))
                connection.execute("INSERT INTO notice (rule, node, call, facts) VALUES (?, ?, ?, ?)", row)
    detail = ask(Answers(path), "call", id=calls[2])
    assert detail["trends"]["logged:before:x.max()"] == {"ids": calls, "values": [0.0, 1.0, 2.0, 3.0, 4.0]}
    assert [one["facts"]["texts"] for one in detail["notices"]] == [["x.max() = 0.0"], ["x.max() = 2.0"]]
    other = ask(Answers(path), "call", id=1)
    assert other["notices"] == []
    assert not [key for key in other["trends"] if key.startswith("logged")]


def test_two_calls_stand_side_by_side(answers):
    rows = {(row["role"], row["path"]): row for row in ask(answers, "compare", left=1, right=2)["rows"]}
    out = rows["out", "out"]
    assert out["equal"] is False
    assert out["texts"][0] != out["texts"][1]
    same = ask(answers, "compare", left=1, right=1)["rows"]
    assert all(row["equal"] for row in same if row["pictures"][0])
    steps = [row["id"] for row in ask(answers, "calls", nodes=[3], kind="forward")["rows"]]
    pair = {row["path"]: row for row in ask(answers, "compare", left=steps[0], right=steps[1])["rows"]}
    assert pair["delta"]["equal"] is True
    assert pair["y"]["largest"] > 0
    assert pair["y"]["difference"]["width"] == 48
    assert ask(answers, "compare", left=1, right=10**6) is None
