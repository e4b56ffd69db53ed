"""Defaults of options: PYFUNC_DEBUG_<OPTION> of the environment, then `[tool.pyfunc_debug]` of the project.

What is typed goes first. Of `--hang-after 5` the variable is PYFUNC_DEBUG_HANG_AFTER=5 and the key in pyproject.toml
`hang-after = 5`; both hold for every command that has the option.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pyfunc_debug.cli.parser import Parser
from pyfunc_debug.doctor.settings import project_table
from pyfunc_debug.errors import BadOptionError

_DOCTORS = ("select", "ignore", "fail-on")
"""Keys that Python's `findings()` reads too: doctor/settings.py."""
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


class _Several(list[Any]):
    """Of an option that may be repeated: what is typed takes its place, where argparse would add it to a copy."""

    def __copy__(self) -> list[Any]:
        return []


def set_defaults(parsers: Mapping[str, Parser], argv: Sequence[str]) -> None:
    """Changes the defaults of the command that a command line names.

    Args:
      parsers: Those of all commands, by name.
      argv: The command line.

    Raises:
      BadOptionError: a variable or key does not have what its option takes, or there is no option of a key's name.
    """
    command = next((word for word in argv if word in parsers), None)
    if command is None:
        return
    file, table = project_table()
    known = {name for parser in parsers.values() for name in _options(parser)}
    for key in table.keys() - known - {*_DOCTORS}:
        near = difflib.get_close_matches(key, [*known, *_DOCTORS], 1)
        hint = f". Did you mean {near[0]!r}?" if near else ""
        raise BadOptionError(f"{file}: [tool.pyfunc_debug] has no key {key!r}{hint}")
    for name, action in _options(parsers[command]).items():
        several = name in parsers[command].repeated
        variable = f"PYFUNC_DEBUG_{name.upper().replace('-', '_')}"
        if variable in os.environ:
            action.default = _read(action, several, os.environ[variable], variable)
        elif name in table and name not in _DOCTORS:
            action.default = _read(action, several, table[name], f"{file}: [tool.pyfunc_debug] {name}")
        else:
            continue
        action.required = False


def _options(parser: Parser) -> dict[str, argparse.Action]:
    """Actions by the long names of their options, without the two dashes."""
    return {name: one for name, one in parser.options.items() if f"--{name}" in one.option_strings and name != "help"}


def _read(action: argparse.Action, several: bool, given: Any, where: str) -> Any:
    """What an option is worth that was given as text, or as TOML has it."""
    if action.nargs in (0, "?"):
        text = str(given).strip().lower()
        if text not in _YES + _NO:
            raise BadOptionError(f"{where}={given!r}: say 1 or 0")
        return action.const if text in _YES else action.default
    words = given if isinstance(given, list) else shlex.split(given) if several and isinstance(given, str) else [given]
    if not several and len(words) != 1:
        raise BadOptionError(f"{where}={given!r}: give one value")
    values = [_one(action, word, where) for word in words]
    return _Several(values) if several else values[0]


def _one(action: argparse.Action, given: Any, where: str) -> Any:
    kind = action.type if callable(action.type) else str
    try:
        value = kind(given)
    except (TypeError, ValueError) as error:
        raise BadOptionError(f"{where}={given!r} is not what the option takes: {error}") from None
    if action.choices is not None and value not in action.choices:
        raise BadOptionError(f"{where}={given!r} is not one of {', '.join(map(str, action.choices))}")
    return value
