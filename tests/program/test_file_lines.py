"""Lines of the user's files and of TensorFlow's."""

from __future__ import annotations

import functools
import inspect
import json.decoder

import pytest

from pyfunc_debug.program.file_lines import definition_lines


@functools.lru_cache(
    maxsize=1,
)
def decorated():
    """Text."""
    return [
        1,
    ]


def test_the_lines_of_a_function_are_those_that_inspect_finds(monkeypatch):
    functions = [
        decorated.__wrapped__,
        json.decoder.JSONDecoder.decode,
        test_the_lines_of_a_function_are_those_that_inspect_finds,
    ]
    wanted = [inspect.getsourcelines(one) for one in functions]
    monkeypatch.setattr(inspect, "getmodule", None)  # looks at the files of all modules: 0.2 s with TensorFlow
    assert [definition_lines(one.__code__) for one in functions] == wanted


@pytest.mark.parametrize("file", ["/nowhere.py", "<string>", __file__])
def test_lines_that_cannot_be_read_are_an_error(file):
    code = decorated.__wrapped__.__code__.replace(co_filename=file, co_firstlineno=100_000)
    with pytest.raises(OSError, match="no line 100000 in "):
        definition_lines(code)
