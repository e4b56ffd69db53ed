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


def test_a_module_that_loads_itself_when_it_is_asked_is_not_loaded(tmp_path, monkeypatch):
    (tmp_path / "lazy_of_test.py").write_text("raise RuntimeError('this has run')\n")
    spec = importlib.util.spec_from_file_location("lazy_of_test", tmp_path / "lazy_of_test.py")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lazy_of_test", module)
    spec.loader.exec_module(module)
    (tmp_path / "program.py").write_text("import lazy_of_test\n")
    assert imported_files([str(tmp_path / "program.py")]) == [str(tmp_path / "lazy_of_test.py")]
