"""The files that a program's files import are found by their lines, among the modules that are loaded."""

from __future__ import annotations

import importlib
import sys

import pytest

from pyfunc_debug.program.imported_files import imported_files

FILES = {
    "pack_of_test/__init__.py": "",
    "pack_of_test/train.py": "import json\nfrom . import data\nfrom .losses import focal, \\\n    dice\n",
    "pack_of_test/data.py": "",
    "pack_of_test/losses.py": "import single_of_test as one\nfocal = dice = 1\n",
    "pack_of_test/unused.py": "",
    "single_of_test.py": "import numpy as np\nfrom pack_of_test import data\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    yield tmp_path
    for name in [one for one in sys.modules if one.startswith(("pack_of_test", "single_of_test"))]:
        del sys.modules[name]


def test_own_modules_are_found_over_relative_imports_and_no_installed_ones(folder):
    importlib.import_module("pack_of_test.train")
    importlib.import_module("pack_of_test.unused")
    found = imported_files([str(folder / "pack_of_test" / "train.py")])
    assert {one.removeprefix(f"{folder}/") for one in found} == {
        "pack_of_test/__init__.py", "pack_of_test/data.py", "pack_of_test/losses.py", "single_of_test.py"
    }  # fmt: skip


def test_a_module_that_was_not_loaded_is_none_of_them(folder):
    assert imported_files([str(folder / "pack_of_test" / "train.py")]) == []
