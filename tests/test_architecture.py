"""docs/architecture.md is the map of this tree: each room is in its picture once, and every file it names is there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAP = ROOT / "docs" / "architecture.md"


def rooms() -> set[str]:
    """Packages and loose modules, as the picture names them: without `pyfunc_debug/`."""
    package = ROOT / "pyfunc_debug"
    found = {"jupyter_ext"}
    found |= {str(init.parent.relative_to(package)) for init in package.glob("*/**/__init__.py")}
    return found | {module.stem for module in package.glob("*.py") if module.stem != "__init__"}


def test_each_room_is_in_the_picture_once():
    picture = re.search(r"```text\n(.*?)```", MAP.read_text(), re.DOTALL)[1]
    words = Counter(re.findall(r"(?:^ +|  )([a-z_]+(?:/[a-z_]+)*)(?=   |\n)", picture, re.MULTILINE))
    named = {word: count for word, count in words.items() if word in rooms() or "/" in word}
    assert named == dict.fromkeys(rooms(), 1)


def test_every_file_that_the_map_names_is_there():
    named = set(re.findall(r"`([\w./]+\.(?:py|c|toml|sql))`", MAP.read_text()))
    assert len(named) > 25
    homes = (ROOT, ROOT / "pyfunc_debug")
    assert [name for name in sorted(named) if not any((home / name).exists() for home in homes)] == []


def test_the_readme_leads_to_the_map():
    assert "(docs/architecture.md)" in (ROOT / "README.md").read_text()
