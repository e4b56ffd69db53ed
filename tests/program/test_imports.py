"""What is done as a module is imported leaves its import, and its failures, as they are."""

import importlib
import importlib.util
import sys
import traceback

import pytest

from pyfunc_debug.program.imports import when_imported

MODULES = {
    "imported_well": "VALUE = 1\n",
    "imported_badly": "import imported_worse\n",
    "imported_worse": "def deep():\n    raise ValueError('a part is missing')\ndeep()\n",
    "imported_till_interrupted": "raise KeyboardInterrupt\n",
    "imported_unreadable": "x = = 1\n",
}
"""Names of modules, and their texts."""


@pytest.fixture
def modules(tmp_path, monkeypatch):
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


def traceback_of(name):
    try:
        __import__(name)
    except BaseException:
        return traceback.format_exc()
    raise AssertionError(f"{name} can be imported")


@pytest.mark.parametrize("name", [*MODULES][1:])
def test_the_traceback_of_an_import_that_fails_is_pythons_own(modules, name):
    stock = traceback_of(name)
    called = []
    cancel = when_imported(name, lambda: called.append(name))
    try:
        assert traceback_of(name) == stock
        assert traceback_of(name) == stock, "also the second time"
    finally:
        cancel()
    assert "importlib" not in stock
    assert not called


def test_it_is_called_once_as_the_module_has_run_and_not_when_it_is_called_off(modules):
    called = []
    when_imported("imported_well", lambda: called.append(sys.modules["imported_well"].VALUE))
    asked = importlib.util.find_spec("imported_well")
    assert asked is not None
    assert not called, "asking where a module is does not import it"
    module = importlib.import_module("imported_well")
    assert called == [1]
    assert module.__spec__.loader is module.__loader__
    assert type(module.__loader__).__module__.startswith("_frozen_importlib")
    when_imported("imported_well", lambda: called.append("at once"))
    assert called == [1, "at once"]
    del sys.modules["imported_well"]
    before = list(sys.meta_path)
    when_imported("imported_well", lambda: called.append("called off"))()
    assert sys.meta_path == before
    importlib.import_module("imported_well")
    assert called == [1, "at once"]
