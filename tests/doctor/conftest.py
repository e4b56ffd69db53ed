"""What the tests of the doctor share."""

from __future__ import annotations

import functools
import os
import threading
from types import SimpleNamespace

import pytest

from pyfunc_debug.recorder import hang
from tests.limits import HANG_S


def _opencv() -> None:
    """Imports OpenCV for the programs that do: it sets LD_LIBRARY_PATH, which other tests compare."""
    before = dict(os.environ)
    import cv2  # noqa: F401

    os.environ.clear()
    os.environ.update(before)


_opencv()


@pytest.fixture
def told(monkeypatch):
    """What was printed; `.wait()` until something was."""
    found = SimpleNamespace(texts=[], event=threading.Event())

    def say(text):
        found.texts.append(text)
        found.event.set()

    monkeypatch.setattr(hang, "tell", say)
    found.wait = functools.partial(found.event.wait, HANG_S)  # no line of this file is seen to wait
    return found
