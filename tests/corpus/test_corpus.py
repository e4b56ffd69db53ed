"""Every program of the corpus, without recording and recorded, each in a fresh process: the same; and what was seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.corpus import programs  # noqa: F401  # fills the table
from tests.corpus.table import ALONE, PROGRAMS
from tests.corpus.transcript import transcript

ROOT = Path(__file__).parents[2]
EXPECTED = Path(__file__).with_name("expected.txt")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[str, Any]:
    """Outcome of every program by mode, and the folders of the recordings."""
    folder = tmp_path_factory.mktemp("corpus")
    found: dict[str, Any] = {"stock": {}, "recorded": {}, "folder": {}}
    for group in ([], *([name] for name in sorted(ALONE))):
        here = folder / (group[0] if group else "together")
        here.mkdir()
        ran = forked.run("-m", "tests.corpus.run", here, *group, cwd=ROOT)
        assert ran.returncode == 0, (ran.stdout + ran.stderr)[-4000:]
        for mode in ("stock", "recorded"):
            done = json.loads((here / f"{mode}.json").read_text())
            found[mode] |= done
            found["folder"] |= dict.fromkeys(done, here)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_recorded_program_does_what_it_does_without_us(outcomes, name):
    stock, recorded = outcomes["stock"][name], outcomes["recorded"][name]
    crashed = stock["result"].get("crashed") if isinstance(stock["result"], dict) else None
    assert crashed is None, crashed
    assert recorded["result"] == stock["result"]
    assert recorded["log"] == stock["log"]
    assert recorded["warnings"] == stock["warnings"]
    assert recorded.get("random") == stock.get("random")


def _expected() -> dict[str, str]:
    sections = EXPECTED.read_text().split("## ")[1:]
    return {section.split("\n", 1)[0]: f"## {section.rstrip()}\n" for section in sections}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_recording_says_what_the_program_did(outcomes, name):
    assert transcript(outcomes["folder"][name] / f"{name}.pfrec") == _expected()[name]
