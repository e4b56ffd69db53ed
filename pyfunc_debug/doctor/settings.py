"""What the project's pyproject.toml says about findings: `[tool.pyfunc_debug]` with `select`, `ignore`, `fail-on`."""

from __future__ import annotations

import functools
import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyfunc_debug.errors import BadOptionError


@dataclass(frozen=True)
class Settings:
    """Rules to look for (all if empty), rules to leave out, and the mildest severity that fails `doctor`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str = "error"


def settings() -> Settings:
    """Those of the project that the current folder is in; the defaults without one.

    Python 3.10 has no TOML parser: there it needs the package `tomli`, without which the defaults hold.

    Raises:
      BadOptionError: the file cannot be read, or a key has the wrong type.
    """
    file, table = project_table()
    return Settings(
        _texts(file, table, "select"), _texts(file, table, "ignore"), str(table.get("fail-on", Settings.fail_on))
    )


def project_table() -> tuple[Path, dict[str, Any]]:
    """The project's pyproject.toml, and its `[tool.pyfunc_debug]`: empty without a file or a parser.

    Raises:
      BadOptionError: the file cannot be read.
    """
    file = _project(Path(os.getcwd()))
    parser = _parser()
    if file is None or parser is None:
        return Path(), {}
    try:
        return file, _table(parser, file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadOptionError(f"{file} cannot be read: {error}") from error


@functools.lru_cache(maxsize=4)
def _table(parser: Any, text: str) -> dict[str, Any]:
    """Reading TOML takes some ms; each recording asks, and each question for its findings."""
    tool = parser.loads(text).get("tool", {})
    table = tool.get("pyfunc_debug", {}) if isinstance(tool, dict) else {}
    return table if isinstance(table, dict) else {}


def _project(folder: Path) -> Path | None:
    for one in (folder, *folder.parents):
        if (one / "pyproject.toml").is_file():
            return one / "pyproject.toml"
    return None


def _parser() -> Any:
    for name in ("tomllib", "tomli"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def _texts(file: Path, table: dict[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadOptionError(f'{file}: [tool.pyfunc_debug] {key} must be a list of rules, as ["nan-born"]')
    return tuple(value)
