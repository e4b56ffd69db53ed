"""Locals of a stop as a front draws them: a tree with types, ranges and pictures, whatever the values do."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from pyfunc_debug.stops.stop import variable


class Pair(NamedTuple):
    left: int
    right: list[int]


class Model:
    limit = 3

    def __init__(self) -> None:
        self.scale = np.float32([1, 2, np.nan])
        self.__hidden = 1
        self.me = self


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError


def test_containers_and_objects_unfold_and_arrays_say_their_range():
    shown = variable("x", {"lr": 0.1, "pairs": [Pair(1, [2])], "model": Model()})
    assert [child["name"] for child in shown["children"]] == ["'lr'", "'pairs'", "'model'"]
    pair = shown["children"][1]["children"][0]
    assert (pair["name"], pair["type"]) == ("[0]", "Pair")
    assert [child["name"] for child in pair["children"]] == ["left", "right"]
    model = {child["name"]: child for child in shown["children"][2]["children"]}
    assert model["scale"]["range"] == "1 to 2, 1 NaN or Inf"
    assert "children" not in {one["name"]: one for one in model["me"]["children"]}["me"], "a cycle ends"
    json.dumps(shown)


def test_no_value_can_spoil_the_picture():
    shown = variable("x", [Hostile(), np.array([], np.float32), np.array([{}], object), np.full(4, np.nan)])
    assert "RuntimeError" in shown["children"][0]["text"]
    assert shown["children"][3]["range"] == "4 NaN or Inf"
    assert len(variable("x", list(range(100)))["children"]) == 30
    assert variable("x", list(range(100)))["more"] == 70
    assert "picture" not in variable("x", np.ones(4), lambda array: None)
    assert variable("x", np.ones(4), lambda array: {"width": 2})["picture"] == {"width": 2}


def test_a_numpy_scalar_shows_its_value():
    from pyfunc_debug.stops.stop import one_line

    assert one_line(np.float32(0.25)) == "float32[] 0.25"
    assert one_line(np.int64(7)) == "int64[] 7"
