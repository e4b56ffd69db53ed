"""Switching on and off leaves nothing behind: TensorFlow and Python are as they were, to the last number."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import forked
from tests.interception.no_traces import IDLE, MODES

ROOT = Path(__file__).parents[2]
_NUMBER = re.compile(r"(__inference_(?:step|<lambda>))_\d+")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each mode printed, in a process of its own that has only imported TensorFlow.

    Of each way to switch on one imports us as well; the others are forked with it.
    """
    stock, ours = "stock", ("summary", "break_on", "exact_gradients")
    modes = [stock, f"{stock}:ready", f"{stock}:inside", *ours]
    later = [*(f"{mode}{how}" for how in ("", ":ready") for mode in IDLE), *(f"{mode}:inside" for mode in MODES)]
    wanted = [*modes, "import", *(mode for mode in later if mode not in modes)]
    program = Path(__file__).with_name("no_traces.py")
    done = forked.run(program, tmp_path_factory.mktemp("files"), *wanted, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    return {one.pop("mode"): one for one in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("how", ["", ":ready"])
@pytest.mark.parametrize("mode", IDLE)
def test_nothing_is_left_behind(found, mode, how):
    one = found[mode + how]
    assert one["after"] == one["before"]


@pytest.mark.parametrize("how", ["", ":ready"])
@pytest.mark.parametrize("mode", IDLE)
def test_a_program_that_runs_afterwards_is_given_the_numbers_of_stock(found, mode, how):
    stock = found["stock" + how]
    assert {key: found[mode + how][key] for key in stock if key not in ("before", "after")} == {
        key: value for key, value in stock.items() if key not in ("before", "after")
    }


@pytest.mark.parametrize("mode", MODES)
def test_a_program_that_runs_meanwhile_is_given_the_numbers_of_stock(found, mode):
    """Only function names end in other numbers: each py_function has one tensor more, and TensorFlow counts tensors."""
    ours, stock = (json.dumps({**found[f"{one}:inside"], "uid": None}) for one in (mode, "stock"))
    assert _NUMBER.sub(r"\1", ours) == _NUMBER.sub(r"\1", stock)
