"""What the conda recipe and the changelog say twice is what pyproject.toml and setup.py say."""

from __future__ import annotations

import datetime
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
    text = (ROOT / "setup.py").read_text()
    extensions = set(re.findall(r'"(pyfunc_debug\.[\w.]+)",\s*sources', text))
    imports = RECIPE["tests"][0]["python"]["imports"]
    older = {one["then"] for one in imports if isinstance(one, dict) and one["if"] == 'match(python, "<3.12")'}
    assert len(extensions) >= 5
    assert older == {"pyfunc_debug.stops._pause"}
    assert "[pause] if has_gil and sys.version_info < (3, 12)" in text
    assert extensions <= {one for one in imports if isinstance(one, str)} | older
    (command,) = metadata.entry_points(group="console_scripts", name="pyfunc-debug")
    assert RECIPE["build"]["python"]["entry_points"] == [f"{command.name} = {command.value}"]


def test_the_newest_section_of_the_changelog_is_this_version_with_its_date():
    first, *others = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    version, date = re.fullmatch(r"(\S+) \((\d{4}-\d{2}-\d{2})\)", first).groups()
    assert version == metadata.version("pyfunc-debug") == RECIPE["context"]["version"]
    assert datetime.date.fromisoformat(date) >= datetime.date(2026, 1, 1)
    assert not any(one.startswith(f"{version} ") for one in others)
