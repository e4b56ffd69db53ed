"""What is done as a module is imported leaves its import, and its failures, as they are."""

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pyfunc_debug.program.imports import when_imported
from tests.limits import HANG_S

ROOT = Path(__file__).resolve().parents[2]

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


CHECK = """
import sys, traceback
sys.path.insert(0, sys.argv[1])
def traceback_of(name):
    try:
        __import__(name)
    except BaseException:
        return traceback.format_exc()
stock = traceback_of(sys.argv[2])
from pyfunc_debug.program.imports import when_imported
called = []
cancel = when_imported(sys.argv[2], lambda: called.append(1))
print(json.dumps([stock, traceback_of(sys.argv[2]), traceback_of(sys.argv[2]), called]))
"""


@pytest.mark.parametrize("name", [*MODULES][1:])
def test_the_traceback_of_an_import_that_fails_is_pythons_own(modules, tmp_path, name):
    code = f"import json\n{CHECK}"  # a process of the tests may import by other means
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), name], cwd=ROOT, capture_output=True, text=True, timeout=HANG_S
    )
    stock, ours, again, called = json.loads(ran.stdout)
    assert ours == stock
    assert again == stock, "also the second time"
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
