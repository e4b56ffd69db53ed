"""What the conda recipe says twice is what pyproject.toml and setup.py say."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
RECIPE = yaml.safe_load((ROOT / "conda/recipe.yaml").read_text())


def test_the_recipe_needs_what_the_wheel_needs():
    wanted = [Requirement(one) for one in metadata.requires("pyfunc-debug") or [] if "extra ==" not in one]
    _, *named = RECIPE["requirements"]["run"]
    assert sorted(named) == sorted(f"{one.name} {one.specifier}" for one in wanted)
    assert RECIPE["context"]["version"] == metadata.version("pyfunc-debug")


def test_the_recipe_imports_every_extension_and_makes_the_command():
    extensions = re.findall(r'"(pyfunc_debug\.[\w.]+)",\s*sources', (ROOT / "setup.py").read_text())
    imported = RECIPE["tests"][0]["python"]["imports"]
    assert len(extensions) >= 5
    assert set(extensions) <= set(imported)
    (command,) = metadata.entry_points(group="console_scripts", name="pyfunc-debug")
    assert RECIPE["build"]["python"]["entry_points"] == [f"{command.name} = {command.value}"]
